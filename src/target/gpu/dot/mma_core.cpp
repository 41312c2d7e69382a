// Matrix instructions of one warp. Fragments come from shared memory by ldmatrix, or element by element where ldmatrix cannot turn a tile;
// mma.sync m16n8 multiplies 32 bytes of depth at a time (f64: 64). 8-bit floats become f16 in registers: exact, and what the chips of today do
// inside the instruction for them as well.
#include "target/gpu/dot/core.h"

namespace vortex::target::gpu::dot {

namespace {

namespace arith = mlir::arith;
namespace vector = mlir::vector;
namespace vxt = ir::vxt;

class MmaCore final : public Core {
public:
  MmaCore(Lowering& lowering, const Plan& plan, const SharedTile& a, const SharedTile& b, mlir::Type type,
          mlir::Type accType)
      : l(lowering), n(lowering), plan_(plan), type_(type), accType_(accType), place_(warpPlace(n, plan)),
        a_(makeSide(a, true)), b_(makeSide(b, false)) {}

  unsigned steps() const override { return plan_.depth / stepDepth(); }

  Values zeros() override { return Values(rowTiles() * columnTiles(), l.zero(mlir::VectorType::get({4}, accType_))); }

  Values load(Value a, Value b, unsigned step) override {
    Values fragments;
    for (unsigned i = 0; i < rowTiles(); ++i)
      fragments.push_back(loadFragment(a_, a, i * 16, step * stepDepth()));
    for (unsigned j = 0; j < columnTiles() / 2; ++j)
      fragments.push_back(loadFragment(b_, b, j * 16, step * stepDepth()));
    return fragments;
  }

  void multiply(llvm::MutableArrayRef<Value> sums, llvm::ArrayRef<Value> fragments) override {
    unsigned parts = isNarrowFloat() ? 2 : 1;
    int64_t depth = stepDepth() / parts;
    auto shape = l.b.getDenseI64ArrayAttr({16, 8, depth});
    for (unsigned part = 0; part < parts; ++part) {
      Values left, right;
      for (unsigned i = 0; i < rowTiles(); ++i)
        left.push_back(operand(fragments[i], 4, part));
      for (unsigned j = 0; j < columnTiles(); ++j) {
        Value pair = fragments[rowTiles() + j / 2];
        int64_t first = (j & 1) * 2;
        right.push_back(operand(shuffle(pair, {first, first + 1}), 2, part));
      }
      for (unsigned i = 0; i < rowTiles(); ++i)
        for (unsigned j = 0; j < columnTiles(); ++j) {
          Value& sum = sums[i * columnTiles() + j];
          sum = l.b.create<vxt::MmaOp>(l.loc, sum.getType(), left[i], right[j], sum, shape);
        }
    }
  }

  void store(llvm::ArrayRef<Value> sums, const ResultTile& result) override {
    bool pairsRows = a_.load == FragmentLoad::TransposedBytes, pairsColumns = b_.load == FragmentLoad::TransposedBytes;
    Value row = n.add(place_.row, n.shiftLeft(n.shiftRight(place_.lane, 2), pairsRows ? 1 : 0));
    Value column = n.add(place_.column, n.shiftLeft(n.bitAnd(place_.lane, 3), pairsColumns ? 2 : 1));
    Value place = n.add(n.mul(row, result.pitch), column);
    Value pointer =
        l.b.create<vxt::OffsetOp>(l.loc, result.pointer.getType(), result.pointer, place, result.elementType);
    unsigned together = pairsColumns ? 2 : 1;
    for (unsigned i = 0; i < rowTiles(); ++i)
      for (unsigned j = 0; j < columnTiles(); j += together)
        for (int64_t half : {0, 1}) {
          Value sum = sums[i * columnTiles() + j];
          Value run = pairsColumns ? shuffle(sum, sums[i * columnTiles() + j + 1],
                                             {2 * half, 2 * half + 4, 2 * half + 1, 2 * half + 5})
                                   : shuffle(sum, {2 * half, 2 * half + 1});
          run = shorten(run, result.elementType);
          int64_t bytes = 2 * together * vxt::scalarBytes(result.elementType);
          Value at = n.constant((i * 16 + half * (pairsRows ? 1 : 8)) * result.pitch + j * 8);
          l.b.create<vxt::StoreOp>(l.loc, run, pointer, at, Value(), std::min<int64_t>(16, bytes), vxt::Cache::Default);
        }
  }

private:
  struct Side {
    bool isA;
    FragmentLoad load;
    FragmentAddress address;
  };

  unsigned stepDepth() const { return matrixDepth(static_cast<unsigned>(vxt::scalarBytes(type_))); }
  unsigned rowTiles() const { return plan_.warpRows / 16; }
  unsigned columnTiles() const { return plan_.warpColumns / 8; }
  bool isNarrowFloat() const { return llvm::isa<mlir::FloatType>(type_) && type_.getIntOrFloatBitWidth() == 8; }

  Side makeSide(const SharedTile& tile, bool isA) {
    FragmentLoad load = fragmentLoad(tile.elementBytes, tile.depthInner);
    auto lanes = fragmentLanes(load, isA, tile.elementBytes);
    Value x = isA ? place_.row : place_.column, k = n.constant(0);
    uint64_t laneX = 0, laneK = 0;
    for (unsigned bit = 0; bit < lanes.size(); ++bit) {
      Value set = n.bitAnd(n.shiftRight(place_.lane, bit), 1);
      if (lanes[bit].x)
        x = n.add(x, n.mul(set, lanes[bit].x));
      if (lanes[bit].k)
        k = n.add(k, n.mul(set, lanes[bit].k));
      laneX |= lanes[bit].x;
      laneK |= lanes[bit].k;
    }
    Value offset = placeIn(tile, n, x, k);
    // Bits of coordinates that a lane or warp can have.
    uint64_t possible = 0;
    unsigned part = isA ? plan_.warpRows : plan_.warpColumns, whole = isA ? plan_.rows : plan_.columns;
    for (uint64_t bit = 1; bit < whole; bit <<= 1)
      if ((laneX & bit) || bit >= part)
        possible |= tile.offset(bit, 0);
    for (uint64_t bit = 1; bit <= laneK; bit <<= 1)
      if (laneK & bit)
        possible |= tile.offset(0, bit);
    return {isA, load, FragmentAddress(l, tile, offset, possible, type_)};
  }

  /// Four registers: of A both row halves of the first half of the depth, then of the second; of B both depth halves of columns 0–7, then
  /// of 8–15. Bytes that lie across come in pairs of neighbouring rows (columns): those of even number take the place of the first eight,
  /// those of odd number that of the others, and store() puts them back.
  Value loadFragment(Side& side, Value stage, unsigned x, unsigned k) {
    if (side.load == FragmentLoad::Elements)
      return loadElements(side, stage, x, k);
    FragmentAddress::At at = side.address.move(stage, x, k);
    bool transposed = side.load != FragmentLoad::Matrix;
    Value words = l.b.create<vxt::LoadMatrixOp>(l.loc, mlir::VectorType::get({4}, l.b.getI32Type()), at.pointer,
                                                l.i32(at.index), type_, 4, transposed);
    if (side.load != FragmentLoad::TransposedBytes)
      return words;
    Values even, odd;
    for (int64_t half : {0, 2}) {
      Value first = l.b.create<vector::ExtractOp>(l.loc, words, half),
            second = l.b.create<vector::ExtractOp>(l.loc, words, half + 1);
      constexpr int64_t kEven = 0x00ff00ff;
      constexpr auto kOdd = static_cast<int32_t>(0xff00ff00);
      even.push_back(n.bitOr(n.bitAnd(first, kEven), n.bitAnd(n.shiftLeft(second, 8), kOdd)));
      odd.push_back(n.bitOr(n.bitAnd(n.shiftRight(first, 8), kEven), n.bitAnd(second, kOdd)));
    }
    Values all = side.isA ? Values{even[0], odd[0], even[1], odd[1]} : Values{even[0], even[1], odd[0], odd[1]};
    return l.b.create<vector::FromElementsOp>(l.loc, llvm::cast<mlir::VectorType>(words.getType()), all);
  }

  Value loadElements(Side& side, Value stage, unsigned x, unsigned k) {
    struct Move {
      unsigned x, k;
    };
    constexpr Move kA[] = {{0, 0}, {8, 0}, {0, 4}, {8, 4}}, kB[] = {{0, 0}, {0, 4}, {8, 0}, {8, 4}};
    Values all;
    for (Move move : side.isA ? kA : kB) {
      FragmentAddress::At at = side.address.move(stage, x + move.x, k + move.k);
      all.push_back(
          l.b.create<vxt::LoadOp>(l.loc, type_, at.pointer, n.constant(at.index), Value(), 0, vxt::Cache::Default));
    }
    return l.b.create<vector::FromElementsOp>(l.loc, mlir::VectorType::get({4}, type_), all);
  }

  Value shuffle(Value first, Value second, llvm::ArrayRef<int64_t> which) {
    return l.b.create<vector::ShuffleOp>(l.loc, first, second, which);
  }
  Value shuffle(Value value, llvm::ArrayRef<int64_t> which) { return shuffle(value, value, which); }

  /// What the instruction takes of `registers` registers. 8-bit floats: `part` 0 or 1, two of the four depths in each register.
  Value operand(Value fragment, int64_t registers, int64_t part) {
    auto type = llvm::cast<mlir::VectorType>(fragment.getType());
    if (type.getElementType() == type_)
      return fragment;
    int64_t perRegister = 32 / type_.getIntOrFloatBitWidth();
    Value elements =
        l.b.create<vector::BitCastOp>(l.loc, mlir::VectorType::get({registers * perRegister}, type_), fragment);
    if (!isNarrowFloat())
      return elements;
    llvm::SmallVector<int64_t> which;
    for (int64_t i = 0; i < registers; ++i)
      which.append({4 * i + 2 * part, 4 * i + 2 * part + 1});
    Value wide =
        l.b.create<arith::ExtFOp>(l.loc, mlir::VectorType::get({registers * perRegister}, l.b.getF16Type()), elements);
    return shuffle(wide, which);
  }

  Value shorten(Value run, mlir::Type element) {
    if (element == accType_)
      return run;
    auto type = mlir::VectorType::get(llvm::cast<mlir::VectorType>(run.getType()).getShape(), element);
    if (llvm::isa<mlir::FloatType>(element))
      return l.b.create<arith::TruncFOp>(l.loc, type, run);
    return l.b.create<arith::TruncIOp>(l.loc, type, run);
  }

  Lowering& l;
  Numbers n;
  const Plan plan_;
  mlir::Type type_, accType_;
  WarpPlace place_;
  Side a_, b_;
};

}  // namespace

std::unique_ptr<Core> makeMmaCore(Lowering& lowering, const Plan& plan, const SharedTile& a, const SharedTile& b,
                                  mlir::Type type, mlir::Type accType) {
  return std::make_unique<MmaCore>(lowering, plan, a, b, type, accType);
}

}  // namespace vortex::target::gpu::dot
