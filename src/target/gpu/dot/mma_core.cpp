// Matrix instructions of one warp: ldmatrix fills the fragments, mma.sync m16n8 multiplies 32 bytes of depth at a time.
#include "target/gpu/dot/core.h"

namespace vortex::target::gpu::dot {

namespace {

namespace arith = mlir::arith;
namespace vector = mlir::vector;
namespace vxt = ir::vxt;

class MmaCore final : public Core {
public:
  MmaCore(Lowering& lowering, const Plan& plan, const Operand& a, const Operand& b)
      : l(lowering), n(lowering), plan_(plan), type_(a.elementType()), place_(warpPlace(n, plan)), a_(address(a, true)),
        b_(address(b, false)), transposedA_(!a.shared().depthInner), transposedB_(!b.shared().depthInner) {}

  unsigned steps() const override { return plan_.depth / stepDepth(); }

  Values zeros() override {
    return Values(rowTiles() * columnTiles(), l.zero(mlir::VectorType::get({4}, l.b.getF32Type())));
  }

  Values load(Value a, Value b, unsigned step) override {
    Values fragments;
    for (unsigned i = 0; i < rowTiles(); ++i)
      fragments.push_back(loadMatrices(a_.move(a, i * 16, step * stepDepth()), transposedA_));
    for (unsigned j = 0; j < columnTiles() / 2; ++j)
      fragments.push_back(loadMatrices(b_.move(b, j * 16, step * stepDepth()), transposedB_));
    return fragments;
  }

  void multiply(llvm::MutableArrayRef<Value> sums, llvm::ArrayRef<Value> fragments) override {
    int64_t elements = stepDepth() / 2;  // of A in a thread: 16 rows × depth / 32 lanes
    Values left, right;
    for (unsigned i = 0; i < rowTiles(); ++i)
      left.push_back(bitcast(fragments[i], elements));
    for (unsigned j = 0; j < columnTiles(); ++j) {
      int64_t first = (j & 1) * 2;
      Value half = l.b.create<vector::ShuffleOp>(l.loc, fragments[rowTiles() + j / 2], fragments[rowTiles() + j / 2],
                                                 llvm::ArrayRef<int64_t>{first, first + 1});
      right.push_back(bitcast(half, elements / 2));
    }
    auto shape = l.b.getDenseI64ArrayAttr({16, 8, static_cast<int64_t>(stepDepth())});
    for (unsigned i = 0; i < rowTiles(); ++i)
      for (unsigned j = 0; j < columnTiles(); ++j) {
        Value& sum = sums[i * columnTiles() + j];
        sum = l.b.create<vxt::MmaOp>(l.loc, sum.getType(), left[i], right[j], sum, shape);
      }
  }

  void store(llvm::ArrayRef<Value> sums, const ResultTile& result) override {
    Value row = n.add(place_.row, n.shiftRight(place_.lane, 2));
    Value column = n.add(place_.column, n.shiftLeft(n.bitAnd(place_.lane, 3), 1));
    Value place = n.add(n.mul(row, result.pitch), column);
    Value pointer =
        l.b.create<vxt::OffsetOp>(l.loc, result.pointer.getType(), result.pointer, place, result.elementType);
    int64_t alignment = 2 * vxt::scalarBytes(result.elementType);
    for (unsigned i = 0; i < rowTiles(); ++i)
      for (unsigned j = 0; j < columnTiles(); ++j)
        for (int64_t half : {0, 1}) {
          Value sum = sums[i * columnTiles() + j];
          Value pair = l.b.create<vector::ShuffleOp>(l.loc, sum, sum, llvm::ArrayRef<int64_t>{2 * half, 2 * half + 1});
          if (!result.elementType.isF32())
            pair = l.b.create<arith::TruncFOp>(l.loc, mlir::VectorType::get({2}, result.elementType), pair);
          Value at = n.constant((i * 16 + half * 8) * result.pitch + j * 8);
          l.b.create<vxt::StoreOp>(l.loc, pair, pointer, at, Value(), alignment, vxt::Cache::Default);
        }
  }

private:
  unsigned stepDepth() const { return 256 / type_.getIntOrFloatBitWidth(); }
  unsigned rowTiles() const { return plan_.warpRows / 16; }
  unsigned columnTiles() const { return plan_.warpColumns / 8; }

  /// Lanes 8k … 8k + 7 point at the rows of matrix k. Of A: rows 0–7 and 8–15 of the first depth half, then of the second; of B: both
  /// depth halves of columns 0–7, then of 8–15. layout::mmaA and mmaB say which register that is.
  FragmentAddress address(const Operand& operand, bool isA) {
    const SharedTile& tile = operand.shared();
    Value low = n.bitAnd(place_.lane, 7), bit3 = n.bitAnd(n.shiftRight(place_.lane, 3), 1),
          bit4 = n.shiftRight(place_.lane, 4);
    Value xHalf = isA ? bit3 : bit4, kHalf = isA ? bit4 : bit3;
    Value x = n.mul(xHalf, 8), k = n.mul(kHalf, tile.depthInner ? tile.chunk() : 8);
    (tile.depthInner ? x : k) = n.add(tile.depthInner ? x : k, low);
    x = n.add(x, isA ? place_.row : place_.column);
    Value inner = tile.depthInner ? k : x, outer = tile.depthInner ? x : k;
    Value offset = n.add(n.mul(outer, tile.pitch), inner);
    if (tile.swizzle.mask != 0) {
      Value moved = n.bitAnd(n.shiftRight(offset, tile.swizzle.shift), static_cast<int64_t>(tile.swizzle.mask));
      offset = n.bitXor(offset, n.shiftLeft(moved, tile.swizzle.base));
    }
    // Coordinates a lane or warp can have.
    uint64_t possible = 0;
    for (unsigned bit = 0; bit < tile.across; ++bit) {
      unsigned part = isA ? plan_.warpRows : plan_.warpColumns;
      if ((1u << bit) < 16 || (1u << bit) >= part)
        possible |= tile.offset(uint64_t(1) << bit, 0);
    }
    for (unsigned bit = 0; (1u << bit) < stepDepth(); ++bit)
      possible |= tile.offset(0, uint64_t(1) << bit);
    return FragmentAddress(l, tile, offset, possible, operand.elementType());
  }

  Value loadMatrices(FragmentAddress::At at, bool transposed) {
    return l.b.create<vxt::LoadMatrixOp>(l.loc, mlir::VectorType::get({4}, l.b.getI32Type()), at.pointer,
                                         l.i32(at.index), type_, 4, transposed);
  }

  Value bitcast(Value words, int64_t elements) {
    return l.b.create<vector::BitCastOp>(l.loc, mlir::VectorType::get({elements}, type_), words);
  }

  Lowering& l;
  Numbers n;
  const Plan& plan_;
  mlir::Type type_;
  WarpPlace place_;
  FragmentAddress a_, b_;
  bool transposedA_, transposedB_;
};

}  // namespace

std::unique_ptr<Core> makeMmaCore(Lowering& lowering, const Plan& plan, const Operand& a, const Operand& b) {
  return std::make_unique<MmaCore>(lowering, plan, a, b);
}

}  // namespace vortex::target::gpu::dot
