// Ordinary arithmetic: every thread multiplies runs of rows by runs of columns, both read from shared memory as vectors.
#include "target/gpu/dot/core.h"

#include <mlir/Dialect/Math/IR/Math.h>

namespace vortex::target::gpu::dot {

namespace {

namespace arith = mlir::arith;
namespace vector = mlir::vector;
namespace vxt = ir::vxt;

class FmaCore final : public Core {
public:
  FmaCore(Lowering& lowering, const Plan& plan, const SharedTile& a, const SharedTile& b, mlir::Type type,
          mlir::Type accType)
      : l(lowering), n(lowering), plan_(plan), accType_(accType), type_(type), a_(a), b_(b),
        piece_(fmaPiece(a.elementBytes)) {
    WarpPlace place = warpPlace(n, plan);
    // The lane's place in the warp's lane grid: the bits fmaLaneRow and fmaLaneColumn take.
    Value bit0 = n.bitAnd(place.lane, 1);
    Value high = plan.laneRows == 4 ? n.shiftRight(place.lane, 4) : n.shiftRight(place.lane, 3);
    Value laneRow = n.add(bit0, n.shiftLeft(high, 1));
    Value laneColumn = n.bitAnd(n.shiftRight(place.lane, 1), plan.laneRows == 4 ? 7 : 3);
    row_ = n.add(place.row, n.mul(laneRow, piece_));
    column_ = n.add(place.column, n.mul(laneColumn, piece_));
  }

  unsigned steps() const override { return plan_.depth; }

  Values zeros() override { return Values(plan_.threadRows() * plan_.threadColumns(), l.zero(accType_)); }

  Values load(Value a, Value b, unsigned step) override {
    Values fragments;
    loadRuns(fragments, a, a_, row_, plan_.threadRows(), plan_.laneRows, step);
    loadRuns(fragments, b, b_, column_, plan_.threadColumns(), plan_.laneColumns(), step);
    return fragments;
  }

  void multiply(llvm::MutableArrayRef<Value> sums, llvm::ArrayRef<Value> fragments) override {
    Values elements;
    for (Value run : fragments)
      for (unsigned i = 0; i < piece_; ++i)
        elements.push_back(extend(element(run, i)));
    unsigned rows = plan_.threadRows(), columns = plan_.threadColumns();
    for (unsigned i = 0; i < rows; ++i)
      for (unsigned j = 0; j < columns; ++j) {
        Value& sum = sums[i * columns + j];
        sum = multiplyAdd(elements[i], elements[rows + j], sum);
      }
  }

  void store(llvm::ArrayRef<Value> sums, const ResultTile& result) override {
    Value place = n.add(n.mul(row_, result.pitch), column_);
    Value pointer =
        l.b.create<vxt::OffsetOp>(l.loc, result.pointer.getType(), result.pointer, place, result.elementType);
    auto run = mlir::VectorType::get({piece_}, result.elementType);
    unsigned columns = plan_.threadColumns();
    for (unsigned i = 0; i < plan_.threadRows(); ++i)
      for (unsigned j = 0; j < columns; j += piece_) {
        Values parts;
        for (unsigned p = 0; p < piece_; ++p)
          parts.push_back(shorten(sums[i * columns + j + p], result.elementType));
        Value value = piece_ == 1 ? parts[0] : l.b.create<vector::FromElementsOp>(l.loc, run, parts);
        unsigned row = i / piece_ * plan_.laneRows * piece_ + i % piece_, column = j * plan_.laneColumns();
        int64_t bytes = piece_ * vxt::scalarBytes(result.elementType);
        l.b.create<vxt::StoreOp>(l.loc, value, pointer, n.constant(int64_t(row) * result.pitch + column), Value(),
                                 std::min<int64_t>(16, bytes), vxt::Cache::Default);
      }
  }

private:
  void loadRuns(Values& fragments, Value stage, const SharedTile& tile, Value thread, unsigned count, unsigned lanes,
                unsigned step) {
    Value pointer = l.b.create<vxt::OffsetOp>(l.loc, stage.getType(), stage, thread, type_);
    mlir::Type run = piece_ == 1 ? type_ : mlir::Type(mlir::VectorType::get({piece_}, type_));
    int64_t alignment = std::min<int64_t>(16, piece_ * tile.elementBytes);
    for (unsigned i = 0; i < count; i += piece_)
      fragments.push_back(l.b.create<vxt::LoadOp>(l.loc, run, pointer,
                                                  n.constant(int64_t(step) * tile.pitch + i * lanes), Value(),
                                                  alignment, vxt::Cache::Default));
  }

  Value element(Value run, unsigned i) {
    return piece_ == 1 ? run : l.b.create<vector::ExtractOp>(l.loc, run, static_cast<int64_t>(i));
  }

  /// Integers are sign-extended, as vx.dot says.
  Value extend(Value value) {
    if (value.getType() == accType_)
      return value;
    if (llvm::isa<mlir::FloatType>(accType_))
      return l.b.create<arith::ExtFOp>(l.loc, accType_, value);
    return l.b.create<arith::ExtSIOp>(l.loc, accType_, value);
  }

  Value shorten(Value value, mlir::Type type) {
    if (value.getType() == type)
      return value;
    if (llvm::isa<mlir::FloatType>(type))
      return l.b.create<arith::TruncFOp>(l.loc, type, value);
    return l.b.create<arith::TruncIOp>(l.loc, type, value);
  }

  Value multiplyAdd(Value x, Value y, Value sum) {
    if (llvm::isa<mlir::FloatType>(accType_))
      return l.b.create<mlir::math::FmaOp>(l.loc, x, y, sum);
    return l.b.create<arith::AddIOp>(l.loc, l.b.create<arith::MulIOp>(l.loc, x, y), sum);
  }

  Lowering& l;
  Numbers n;
  const Plan plan_;
  mlir::Type accType_, type_;
  SharedTile a_, b_;
  unsigned piece_;
  Value row_, column_;
};

}  // namespace

std::unique_ptr<Core> makeFmaCore(Lowering& lowering, const Plan& plan, const SharedTile& a, const SharedTile& b,
                                  mlir::Type type, mlir::Type accType) {
  return std::make_unique<FmaCore>(lowering, plan, a, b, type, accType);
}

}  // namespace vortex::target::gpu::dot
