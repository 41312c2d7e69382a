// Matrices of 8 by 8 that a simdgroup holds: their rows come from shared memory at a pitch, and nobody says which lane holds which element.
#include "target/gpu/dot/core.h"

namespace vortex::target::gpu::dot {

namespace {

namespace vxt = ir::vxt;

class SimdgroupCore final : public Core {
public:
  SimdgroupCore(Lowering& lowering, const Plan& plan, const SharedTile& a, const SharedTile& b, mlir::Type type,
                mlir::Type accType)
      : l(lowering), n(lowering), plan_(plan), a_(a), b_(b), type_(type), accType_(accType),
        place_(warpPlace(n, plan)) {}

  unsigned steps() const override { return plan_.depth / kSimdgroupSide; }

  Values zeros() override {
    Value zero = l.zero(accType_);
    return Values(plan_.fragments(), l.b.create<vxt::FragmentFillOp>(l.loc, fragment(accType_), zero));
  }

  Values load(Value a, Value b, unsigned step) override {
    Values fragments;
    for (unsigned row = 0; row < plan_.warpRows; row += kSimdgroupSide)
      fragments.push_back(load(a, a_, place_.row, row, step, a_.depthInner));
    for (unsigned column = 0; column < plan_.warpColumns; column += kSimdgroupSide)
      fragments.push_back(load(b, b_, place_.column, column, step, !b_.depthInner));
    return fragments;
  }

  void multiply(llvm::MutableArrayRef<Value> sums, llvm::ArrayRef<Value> fragments) override {
    unsigned rows = plan_.warpRows / kSimdgroupSide, columns = plan_.warpColumns / kSimdgroupSide;
    for (unsigned i = 0; i < rows; ++i)
      for (unsigned j = 0; j < columns; ++j) {
        Value& sum = sums[i * columns + j];
        sum = l.b.create<vxt::FragmentMultiplyOp>(l.loc, sum.getType(), fragments[i], fragments[rows + j], sum);
      }
  }

  void store(llvm::ArrayRef<Value> sums, const ResultTile& result) override {
    Value place = n.add(n.mul(place_.row, result.pitch), place_.column);
    Value pointer =
        l.b.create<vxt::OffsetOp>(l.loc, result.pointer.getType(), result.pointer, place, result.elementType);
    unsigned columns = plan_.warpColumns / kSimdgroupSide;
    for (auto [number, sum] : llvm::enumerate(sums)) {
      Value value = sum;
      if (result.elementType != accType_)
        value = l.b.create<vxt::FragmentRoundOp>(l.loc, fragment(result.elementType), value);
      int64_t row = static_cast<int64_t>(number / columns) * kSimdgroupSide,
              column = static_cast<int64_t>(number % columns) * kSimdgroupSide;
      l.b.create<vxt::FragmentStoreOp>(l.loc, value, pointer, n.constant(row * result.pitch + column), result.pitch);
    }
  }

private:
  mlir::Type fragment(mlir::Type element) { return vxt::FragmentType::get(l.b.getContext(), element); }

  /// `asIs`: rows of the fragment are rows of the tile in memory.
  Value load(Value stage, const SharedTile& tile, Value part, unsigned x, unsigned step, bool asIs) {
    Value place = placeIn(tile, n, part, n.constant(0));
    Value pointer = l.b.create<vxt::OffsetOp>(l.loc, stage.getType(), stage, place, type_);
    auto at = static_cast<int64_t>(tile.offset(x, uint64_t(step) * kSimdgroupSide));
    return l.b.create<vxt::FragmentLoadOp>(l.loc, fragment(type_), pointer, n.constant(at), tile.pitch, !asIs);
  }

  Lowering& l;
  Numbers n;
  const Plan plan_;
  SharedTile a_, b_;
  mlir::Type type_, accType_;
  WarpPlace place_;
};

}  // namespace

std::unique_ptr<Core> makeSimdgroupCore(Lowering& lowering, const Plan& plan, const SharedTile& a, const SharedTile& b,
                                        mlir::Type type, mlir::Type accType) {
  return std::make_unique<SimdgroupCore>(lowering, plan, a, b, type, accType);
}

}  // namespace vortex::target::gpu::dot
