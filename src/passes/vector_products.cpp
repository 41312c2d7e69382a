#include "passes/vector_products.h"

#include "ir/tile_sizes.h"
#include "passes/plan/entry_arguments.h"

namespace vortex::passes {

using namespace mlir;

namespace {

/// Those of `sizes` that the type leaves open.
SmallVector<Value> openSizes(RankedTensorType type, ArrayRef<Value> sizes) {
  SmallVector<Value> open;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (type.isDynamicDim(static_cast<unsigned>(dim)))
      open.push_back(size);
  return open;
}

Type elementOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getElementType(); }

Value widened(OpBuilder& builder, Location loc, Value tile, Type element) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (type.getElementType() == element)
    return tile;
  return builder.create<arith::ExtFOp>(loc, RankedTensorType::get(type.getShape(), element), tile);
}

bool mayWiden(Type from, Type to) { return from == to || (isa<FloatType>(from) && isa<FloatType>(to)); }

/// A tile that an operand is made of by transposes, and which of its dimensions the operand's are.
struct Source {
  Value tile;
  SmallVector<int64_t> dims;
};

/// The operand without its transposes, for which narrow floats are widened and rounded to what they were. `line`: dimensions that must keep their
/// order.
Source sourceOf(Value operand, ArrayRef<int64_t> line) {
  const Type element = elementOf(operand);
  Source source{operand, llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(operand.getType()).getRank()))};
  SmallVector<int64_t> dims = source.dims;
  for (Operation* op = operand.getDefiningOp(); isa_and_nonnull<ir::TransposeOp, arith::ExtFOp, arith::TruncFOp>(op);
       op = operand.getDefiningOp()) {
    if (isa<arith::TruncFOp>(op) && elementOf(operand) != element)
      break;
    if (auto turned = dyn_cast<ir::TransposeOp>(op))
      for (int64_t& dim : dims)
        dim = turned.getPermutation()[static_cast<size_t>(dim)];
    operand = op->getOperand(0);
    const bool keepsOrder = llvm::is_sorted(llvm::map_range(line, [&](int64_t dim) { return dims[dim]; }));
    if (elementOf(operand) == element && keepsOrder)
      source = {operand, dims};
  }
  return source;
}

class VectorProduct {
public:
  explicit VectorProduct(ir::DotOp dot) : dot_(dot), builder_(dot), loc_(dot.getLoc()), rank_(typeOf(dot).getRank()) {}

  void run(bool sumsRows) {
    const bool isColumn = isOne(rank_ - 1);
    const Type element = elementOf(dot_.getResult());
    if ((!isColumn && !(sumsRows && isOne(rank_ - 2))) || !mayWiden(elementOf(dot_.getA()), element) ||
        !mayWiden(elementOf(dot_.getB()), element))
      return;
    if (isColumn)
      sum(dot_.getA(), rank_ - 2, rank_ - 1, dot_.getB(), rank_ - 1);
    else
      sum(dot_.getB(), rank_ - 1, rank_ - 2, dot_.getA(), rank_ - 2);
  }

private:
  static RankedTensorType typeOf(Value tile) { return cast<RankedTensorType>(tile.getType()); }
  bool isOne(int64_t dim) { return typeOf(dot_).getDimSize(static_cast<unsigned>(dim)) == 1; }

  /// `kept` and `depth`: dimensions of the matrix; `unit`: that of the vector which has one element.
  void sum(Value matrix, int64_t kept, int64_t depth, Value vector, int64_t unit) {
    SmallVector<int64_t> line = llvm::to_vector(llvm::seq<int64_t>(0, rank_ - 2));
    line.push_back(depth);
    Source source = sourceOf(matrix, line);
    SmallVector<Value> sizes = ir::tileSizeValues(builder_, loc_, source.tile);
    SmallVector<Value> results = ir::tileSizeValues(builder_, loc_, dot_.getAcc());
    if (llvm::is_contained(sizes, Value()) || llvm::is_contained(results, Value()))
      return;
    for (int64_t& dim : line)
      dim = source.dims[static_cast<size_t>(dim)];
    const Type element = elementOf(dot_.getResult()),
               wide = accumulatorType(element);  // narrow floats are rounded once
    Value tile = widened(builder_, loc_, source.tile, wide);
    Value sums = product(tile, repeated(widened(builder_, loc_, vector, wide), unit, typeOf(tile), line, sizes));
    const int64_t along = line.back();
    auto reduced = RankedTensorType::get(dropped(typeOf(tile).getShape(), along), wide);
    const bool isFloat = isa<FloatType>(wide);
    sums = builder_.create<ir::ReduceOp>(loc_, reduced, isFloat ? ir::Combine::AddF : ir::Combine::AddI, sums,
                                         SmallVector<int64_t>{along});
    replace(inOrder(sums, source.dims, kept, along), kept, results, wide);
  }

  template <typename T> static SmallVector<T> dropped(ArrayRef<T> all, int64_t dim) {
    SmallVector<T> rest(all);
    rest.erase(rest.begin() + dim);
    return rest;
  }

  /// The vector along the last of `line`, under every row of the matrix.
  Value repeated(Value vector, int64_t unit, RankedTensorType matrix, ArrayRef<int64_t> line, ArrayRef<Value> sizes) {
    auto type = typeOf(vector);
    auto flat = RankedTensorType::get(dropped(type.getShape(), unit), type.getElementType());
    SmallVector<Value> flatSizes;
    for (int64_t dim : line)
      flatSizes.push_back(sizes[static_cast<size_t>(dim)]);
    Value zero = builder_.create<arith::ConstantIndexOp>(loc_, 0);
    Value numbers =
        builder_.create<ir::SliceOp>(loc_, flat, vector, SmallVector<Value>(static_cast<size_t>(rank_), zero),
                                     openSizes(flat, flatSizes), SmallVector<int64_t>{unit});
    return builder_.create<ir::BroadcastOp>(loc_, matrix, numbers, line, openSizes(matrix, sizes));
  }

  Value product(Value a, Value b) {
    auto fused = arith::FastMathFlagsAttr::get(builder_.getContext(), arith::FastMathFlags::contract);
    return isa<FloatType>(elementOf(a)) ? builder_.create<arith::MulFOp>(loc_, a, b, fused).getResult()
                                        : builder_.create<arith::MulIOp>(loc_, a, b).getResult();
  }

  /// Batches, then the dimension that stays.
  Value inOrder(Value sums, ArrayRef<int64_t> dims, int64_t kept, int64_t along) {
    SmallVector<int64_t> order(dims.take_front(static_cast<size_t>(rank_ - 2)));
    order.push_back(dims[static_cast<size_t>(kept)]);
    for (int64_t& dim : order)
      dim -= dim > along;
    if (llvm::is_sorted(order))
      return sums;
    SmallVector<int64_t> shape;
    for (int64_t dim : order)
      shape.push_back(typeOf(sums).getDimSize(static_cast<unsigned>(dim)));
    return builder_.create<ir::TransposeOp>(loc_, RankedTensorType::get(shape, elementOf(sums)), sums, order);
  }

  void replace(Value sums, int64_t kept, ArrayRef<Value> sizes, Type wide) {
    auto type = RankedTensorType::get(typeOf(dot_).getShape(), wide);
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank_ - 2));
    dims.push_back(kept);
    sums = builder_.create<ir::BroadcastOp>(loc_, type, sums, dims, openSizes(type, sizes));
    Value acc = widened(builder_, loc_, dot_.getAcc(), wide);
    sums = isa<FloatType>(wide) ? builder_.create<arith::AddFOp>(loc_, acc, sums).getResult()
                                : builder_.create<arith::AddIOp>(loc_, acc, sums).getResult();
    if (wide != elementOf(dot_.getResult()))
      sums = builder_.create<arith::TruncFOp>(loc_, dot_.getType(), sums);
    dot_.replaceAllUsesWith(sums);
    dot_.erase();
  }

  ir::DotOp dot_;
  OpBuilder builder_;
  Location loc_;
  int64_t rank_;
};

}  // namespace

void sumVectorProducts(ir::KernelOp kernel, bool sumsRows) {
  for (auto dot : llvm::to_vector(kernel.getBody().front().getOps<ir::DotOp>()))
    VectorProduct(dot).run(sumsRows);
}

}  // namespace vortex::passes
