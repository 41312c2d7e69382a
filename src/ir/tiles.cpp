// Operations on tiles: verifiers, folding.
#include "ir/guarded_slice.h"

namespace vortex::ir {

using llvm::ArrayRef;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::ShapedType;
using mlir::success;
using mlir::Type;
using mlir::Value;

LogicalResult verifyPart(Operation* op, llvm::StringRef what, ArrayRef<int64_t> source, ArrayRef<int64_t> result,
                         size_t offsets, size_t sizes, ArrayRef<int64_t> dropped,
                         ArrayRef<int64_t> guarded);  // memory.cpp

static RankedTensorType tileType(Value value) { return llvm::cast<RankedTensorType>(value.getType()); }

static Type elementType(Value value) { return mlir::getElementTypeOrSelf(value.getType()); }

static bool mayEqual(int64_t a, int64_t b) { return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || a == b; }

static LogicalResult verifySizes(Operation* op, size_t sizes, RankedTensorType result) {
  if (int64_t(sizes) == result.getNumDynamicDims())
    return success();
  return op->emitOpError() << "has " << sizes << " sizes for " << result.getNumDynamicDims()
                           << " dynamic result dimensions";
}

static LogicalResult verifyElements(Operation* op, Type operand, Type result) {
  if (operand == result)
    return success();
  return op->emitOpError() << "changes the element type from " << operand << " to " << result;
}

static LogicalResult verifyDim(Operation* op, int64_t dim, int64_t rank) {
  if (dim >= 0 && dim < rank)
    return success();
  return op->emitOpError() << "names dimension " << dim << " of a tile of rank " << rank;
}

LogicalResult BroadcastOp::verify() {
  auto result = tileType(getResult());
  auto operand = llvm::dyn_cast<RankedTensorType>(getValue().getType());
  ArrayRef<int64_t> source = operand ? operand.getShape() : ArrayRef<int64_t>();
  if (mlir::failed(verifyElements(*this, elementType(getValue()), result.getElementType())) ||
      mlir::failed(verifySizes(*this, getSizes().size(), result)))
    return mlir::failure();
  if (getDims().size() != source.size())
    return emitOpError() << "maps " << getDims().size() << " dimensions of an operand of rank " << source.size();
  for (auto [i, dim] : llvm::enumerate(getDims())) {
    if (mlir::failed(verifyDim(*this, dim, result.getRank())))
      return mlir::failure();
    if (i != 0 && getDims()[i - 1] >= dim)
      return emitOpError() << "maps operand dimensions " << i - 1 << " and " << i << " out of order, to "
                           << getDims()[i - 1] << " and " << dim;
    if (source[i] != 1 && !mayEqual(source[i], result.getShape()[dim]))
      return emitOpError() << "stretches operand dimension " << i << " of extent " << source[i] << " to "
                           << result.getShape()[dim];
  }
  return success();
}

mlir::OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  auto type = tileType(getResult());
  if (getValue().getType() == type && type.hasStaticShape())
    return getValue();
  // A constant becomes a splat: cheaper to see through for every later pass.
  if (!type.hasStaticShape() || !adaptor.getValue() || (*this)->hasAttr("vx.unwritten"))
    return {};
  if (llvm::isa<mlir::IntegerAttr, mlir::FloatAttr>(adaptor.getValue()))
    return mlir::SplatElementsAttr::get(type, adaptor.getValue());
  if (auto splat = llvm::dyn_cast<mlir::SplatElementsAttr>(adaptor.getValue()))
    return mlir::SplatElementsAttr::get(type, splat.getSplatValue<mlir::Attribute>());
  return {};
}

LogicalResult IotaOp::verify() {
  auto result = tileType(getResult());
  if (!result.getElementType().isSignlessInteger() && !result.getElementType().isIndex())
    return emitOpError() << "yields integer or index elements, not " << result.getElementType();
  if (mlir::failed(verifySizes(*this, getSizes().size(), result)))
    return mlir::failure();
  return verifyDim(*this, getDim(), result.getRank());
}

LogicalResult TransposeOp::verify() {
  auto source = tileType(getValue()), result = tileType(getResult());
  ArrayRef<int64_t> permutation = getPermutation();
  if (mlir::failed(verifyElements(*this, source.getElementType(), result.getElementType())))
    return mlir::failure();
  if (int64_t(permutation.size()) != source.getRank() || result.getRank() != source.getRank())
    return emitOpError() << "permutes " << permutation.size() << " dimensions of a tile of rank " << source.getRank()
                         << " into rank " << result.getRank();
  llvm::SmallVector<bool> seen(permutation.size(), false);
  for (auto [i, dim] : llvm::enumerate(permutation)) {
    if (mlir::failed(verifyDim(*this, dim, source.getRank())))
      return mlir::failure();
    if (std::exchange(seen[dim], true))
      return emitOpError() << "uses dimension " << dim << " twice";
    if (source.getShape()[dim] != result.getShape()[i])
      return emitOpError() << "result dimension " << i << " differs from operand dimension " << dim;
  }
  return success();
}

mlir::OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  ArrayRef<int64_t> permutation = getPermutation();
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return getValue();
  if (auto splat = llvm::dyn_cast_or_null<mlir::SplatElementsAttr>(adaptor.getValue()))
    if (tileType(getResult()).hasStaticShape())
      return mlir::SplatElementsAttr::get(tileType(getResult()), splat.getSplatValue<mlir::Attribute>());
  auto inner = getValue().getDefiningOp<TransposeOp>();
  if (!inner)
    return {};
  llvm::SmallVector<int64_t> composed;
  for (int64_t dim : permutation)
    composed.push_back(inner.getPermutation()[dim]);
  getValueMutable().assign(inner.getValue());
  setPermutation(composed);
  return getResult();
}

LogicalResult ReshapeOp::verify() {
  auto source = tileType(getValue()), result = tileType(getResult());
  if (mlir::failed(verifyElements(*this, source.getElementType(), result.getElementType())) ||
      mlir::failed(verifySizes(*this, getSizes().size(), result)))
    return mlir::failure();
  bool isStatic = source.hasStaticShape() && result.hasStaticShape();
  if (isStatic && source.getNumElements() != result.getNumElements())
    return emitOpError() << "turns " << source.getNumElements() << " elements into " << result.getNumElements();
  return success();
}

mlir::OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  auto type = tileType(getResult());
  if (!type.hasStaticShape())
    return {};
  if (getValue().getType() == type)
    return getValue();
  if (auto elements = llvm::dyn_cast_or_null<mlir::DenseElementsAttr>(adaptor.getValue()))
    return elements.reshape(type);
  if (auto inner = getValue().getDefiningOp<ReshapeOp>()) {
    getValueMutable().assign(inner.getValue());
    return getResult();
  }
  return {};
}

LogicalResult SliceOp::verify() {
  auto source = tileType(getValue()), result = tileType(getResult());
  if (mlir::failed(verifyElements(*this, source.getElementType(), result.getElementType())))
    return mlir::failure();
  for (int64_t dim : guardedDims(*this))
    if (mlir::failed(verifyDim(*this, dim, source.getRank())))
      return mlir::failure();
  return verifyPart(*this, "tile", source.getShape(), result.getShape(), getOffsets().size(), getSizes().size(),
                    getDropped(), guardedDims(*this));
}

LogicalResult ElementOp::verify() {
  auto source = tileType(getValue());
  if (int64_t(getIndices().size()) != source.getRank())
    return emitOpError() << "has " << getIndices().size() << " indices for a tile of rank " << source.getRank();
  return verifyElements(*this, source.getElementType(), getResult().getType());
}

static LogicalResult verifyCombine(Operation* op, Combine kind, Type element) {
  if (kind != Combine::Exchange && isFloatCombine(kind) == llvm::isa<mlir::FloatType>(element))
    return success();
  return op->emitOpError() << "cannot combine " << element << " with " << stringifyCombine(kind);
}

LogicalResult ReduceOp::verify() {
  auto source = tileType(getValue());
  if (mlir::failed(verifyCombine(*this, getKind(), source.getElementType())) ||
      mlir::failed(verifyElements(*this, source.getElementType(), elementType(getResult()))))
    return mlir::failure();
  for (auto [i, dim] : llvm::enumerate(getDims())) {
    if (mlir::failed(verifyDim(*this, dim, source.getRank())))
      return mlir::failure();
    if (i != 0 && getDims()[i - 1] >= dim)
      return emitOpError() << "lists dimensions out of order: " << getDims()[i - 1] << " before " << dim;
  }
  llvm::SmallVector<int64_t> kept;
  for (auto [i, extent] : llvm::enumerate(source.getShape()))
    if (!llvm::is_contained(getDims(), int64_t(i)))
      kept.push_back(extent);
  auto result = llvm::dyn_cast<RankedTensorType>(getResult().getType());
  if (bool(result) == kept.empty())
    return emitOpError() << "keeps " << kept.size() << " dimensions and yields a " << (result ? "tile" : "scalar");
  if (result && result.getShape() != ArrayRef<int64_t>(kept))
    return emitOpError() << "result extents differ from the kept dimensions of " << source;
  return success();
}

LogicalResult ScanOp::verify() {
  auto source = tileType(getValue());
  if (mlir::failed(verifyCombine(*this, getKind(), source.getElementType())))
    return mlir::failure();
  if (getState()) {
    auto state = llvm::cast<ViewType>(getState().getType());
    if (!getNumber() || source.getRank() != 1 || state.getRank() != 1 || !state.getElementType().isInteger(64))
      return emitOpError() << "continues other pieces of vectors only, by a number and a vector of i64";
  }
  return verifyDim(*this, getDim(), source.getRank());
}

LogicalResult DotOp::verify() {
  auto a = tileType(getA()), b = tileType(getB()), acc = tileType(getAcc());
  int64_t rank = acc.getRank();
  if (rank < 2 || a.getRank() != rank || b.getRank() != rank)
    return emitOpError() << "needs operands of one rank of at least 2, got " << a.getRank() << ", " << b.getRank()
                         << " and " << rank;
  if (a.getElementType().isIndex() || b.getElementType() != a.getElementType())
    return emitOpError() << "multiplies " << a.getElementType() << " by " << b.getElementType();
  if (llvm::isa<mlir::FloatType>(a.getElementType()) != llvm::isa<mlir::FloatType>(acc.getElementType()))
    return emitOpError() << "accumulates " << a.getElementType() << " in " << acc.getElementType();
  if (a.getElementType().getIntOrFloatBitWidth() > acc.getElementType().getIntOrFloatBitWidth())
    return emitOpError() << "accumulates " << a.getElementType() << " in the narrower " << acc.getElementType();
  for (int64_t dim = 0; dim < rank - 2; ++dim)
    if (!mayEqual(a.getDimSize(dim), acc.getDimSize(dim)) || !mayEqual(b.getDimSize(dim), acc.getDimSize(dim)))
      return emitOpError() << "batch dimension " << dim << " differs";
  if (!mayEqual(a.getDimSize(rank - 1), b.getDimSize(rank - 2)))
    return emitOpError() << "dimension " << rank - 1 << " of a has extent " << a.getDimSize(rank - 1) << ", dimension "
                         << rank - 2 << " of b " << b.getDimSize(rank - 2);
  if (!mayEqual(a.getDimSize(rank - 2), acc.getDimSize(rank - 2)))
    return emitOpError() << "dimension " << rank - 2 << " of a and the accumulator differ";
  if (!mayEqual(b.getDimSize(rank - 1), acc.getDimSize(rank - 1)))
    return emitOpError() << "dimension " << rank - 1 << " of b and the accumulator differ";
  return success();
}

}  // namespace vortex::ir
