// Operations on views: verifiers, effects, folding.
#include "base/tensor_bytes.h"
#include "ir/vx.h"

#include "ir/tile_sizes.h"

namespace vortex::ir {

using llvm::SmallVectorImpl;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Type;
using EffectInstance = mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>;
namespace MemoryEffects = mlir::MemoryEffects;

//===-- views -------------------------------------------------------------------------------------------------===//

LogicalResult AllocOp::verify() {
  ViewType type = getResult().getType();
  if (type.getSpace() != Space::Shared && type.getSpace() != Space::Local)
    return emitOpError() << "allocates shared or local memory, not " << stringifySpace(type.getSpace());
  for (auto [i, extent] : llvm::enumerate(type.getShape()))
    if (mlir::ShapedType::isDynamic(extent))
      return emitOpError() << "dimension " << i << " is not static";
  const uint64_t most = type.getSpace() == Space::Shared ? base::kMostSharedBytes : base::kMostLocalBytes;
  if (base::WideBytes bytes = base::fullBytes(type.getShape(), static_cast<uint64_t>(type.elementBytes()));
      bytes > most)
    return emitOpError() << "`" << getName().value_or("") << "` takes " << base::showBytes(bytes) << " bytes of "
                         << stringifySpace(type.getSpace()) << " memory, at most " << most << " are possible";
  if (SwizzleAttr swizzle = type.getSwizzle()) {
    // The XOR must stay inside the allocation: every power-of-two chunk it permutes has to be whole.
    int64_t highest = (swizzle.getMask() << swizzle.getBase());
    int64_t chunk = highest ? int64_t(llvm::PowerOf2Ceil(uint64_t(highest) + 1)) : 1;
    if (type.numElements() % chunk != 0)
      return emitOpError() << "swizzle permutes chunks of " << chunk << " elements but the view has "
                           << type.numElements();
  }
  return success();
}

LogicalResult DimOp::verify() {
  int64_t dim = getDim(), rank = getView().getType().getRank();
  if (dim < 0 || dim >= rank)
    return emitOpError() << "dimension " << dim << " of a view of rank " << rank;
  return success();
}

mlir::OpFoldResult DimOp::fold(FoldAdaptor) { return viewSizes(getView())[getDim()]; }

/// Checks offsets, sizes, dropped dimensions and extents of a rectangular part. `what`: "view" or "tile".
LogicalResult verifyPart(Operation* op, llvm::StringRef what, llvm::ArrayRef<int64_t> source,
                         llvm::ArrayRef<int64_t> result, size_t offsets, size_t sizes, llvm::ArrayRef<int64_t> dropped,
                         llvm::ArrayRef<int64_t> guarded = {}) {
  if (offsets != source.size())
    return op->emitOpError() << "has " << offsets << " offsets for a " << what << " of rank " << source.size();
  for (auto [i, dim] : llvm::enumerate(dropped)) {
    if (dim < 0 || dim >= int64_t(source.size()))
      return op->emitOpError() << "drops dimension " << dim << " of a " << what << " of rank " << source.size();
    if (i != 0 && dropped[i - 1] >= dim)
      return op->emitOpError() << "lists dropped dimensions out of order: " << dropped[i - 1] << " before " << dim;
  }
  if (result.size() + dropped.size() != source.size())
    return op->emitOpError() << "drops " << dropped.size() << " of " << source.size() << " dimensions but yields rank "
                             << result.size();
  if (sizes != size_t(llvm::count_if(result, mlir::ShapedType::isDynamic)))
    return op->emitOpError() << "has " << sizes << " sizes for " << llvm::count_if(result, mlir::ShapedType::isDynamic)
                             << " dynamic result dimensions";
  size_t next = 0;
  for (auto [dim, extent] : llvm::enumerate(source)) {
    if (llvm::is_contained(dropped, int64_t(dim)))
      continue;
    int64_t part = result[next++];
    if (!llvm::is_contained(guarded, int64_t(dim)) && !mlir::ShapedType::isDynamic(part) &&
        !mlir::ShapedType::isDynamic(extent) && part > extent)
      return op->emitOpError() << "takes " << part << " elements of dimension " << dim << " of extent " << extent;
  }
  return success();
}

LogicalResult SubviewOp::verify() {
  ViewType source = getSource().getType(), result = getResult().getType();
  if (source.getElementType() != result.getElementType())
    return emitOpError() << "changes the element type from " << source.getElementType() << " to "
                         << result.getElementType();
  if (source.getSpace() != result.getSpace())
    return emitOpError() << "changes the space from " << stringifySpace(source.getSpace()) << " to "
                         << stringifySpace(result.getSpace());
  if (source.getLayout() != result.getLayout())
    return emitOpError() << "changes the layout; a subview keeps its source's";
  return verifyPart(*this, "view", source.getShape(), result.getShape(), getOffsets().size(), getSizes().size(),
                    getDropped());
}

//===-- accesses ----------------------------------------------------------------------------------------------===//

static LogicalResult verifyAccess(Operation* op, ViewType view, size_t indices, Type element, bool writes) {
  if (int64_t(indices) != view.getRank())
    return op->emitOpError() << "has " << indices << " indices for a view of rank " << view.getRank();
  if (element != view.getElementType())
    return op->emitOpError() << "accesses " << element << " in a view of " << view.getElementType();
  if (writes && view.getSpace() == Space::Constant)
    return op->emitOpError() << "writes constant memory";
  if (view.getSpace() == Space::Local && !enclosingThreads(op))
    return op->emitOpError() << "accesses a local view outside vx.threads; local memory is per thread";
  return success();
}

/// Only what other threads can reach may be said to be free of races.
static LogicalResult verifyRaceFree(Operation* op, ViewType view, bool isRaceFree) {
  if (!isRaceFree || view.getSpace() == Space::Global || view.getSpace() == Space::Shared)
    return success();
  return op->emitOpError() << "is race_free on " << stringifySpace(view.getSpace())
                           << " memory; only accesses of global and shared memory are";
}

LogicalResult LoadOp::verify() {
  if (mlir::failed(verifyRaceFree(*this, getView().getType(), getRaceFree())))
    return mlir::failure();
  return verifyAccess(*this, getView().getType(), getIndices().size(), getResult().getType(), false);
}
LogicalResult StoreOp::verify() {
  if (mlir::failed(verifyRaceFree(*this, getView().getType(), getRaceFree())))
    return mlir::failure();
  return verifyAccess(*this, getView().getType(), getIndices().size(), getValue().getType(), true);
}

static LogicalResult verifyAtomic(Operation* op, ViewType view, size_t indices, Type element, bool writes) {
  if (mlir::failed(verifyAccess(op, view, indices, element, writes)))
    return mlir::failure();
  if (view.getSpace() != Space::Global && view.getSpace() != Space::Shared)
    return op->emitOpError() << "is atomic on " << stringifySpace(view.getSpace())
                             << " memory; only global and shared are";
  if (element.isInteger(1))
    return op->emitOpError() << "is atomic on i1 elements";
  return success();
}

LogicalResult AtomicRmwOp::verify() {
  Type type = getValue().getType();
  if (mlir::failed(verifyAtomic(*this, getView().getType(), getIndices().size(), type, true)))
    return mlir::failure();
  if (getOrder() == Order::SeqCst)
    return emitOpError() << "is an atomic with order seq_cst; only fences have it";
  bool multiplies = getKind() == Combine::MulI || getKind() == Combine::MulF;
  bool anyType = getKind() == Combine::Exchange;
  if (multiplies || (!anyType && isFloatCombine(getKind()) != llvm::isa<mlir::FloatType>(type)))
    return emitOpError() << "cannot combine " << type << " with " << stringifyCombine(getKind());
  return success();
}

LogicalResult AtomicCasOp::verify() {
  if (getOrder() == Order::SeqCst)
    return emitOpError() << "is an atomic with order seq_cst; only fences have it";
  return verifyAtomic(*this, getView().getType(), getIndices().size(), getExpected().getType(), true);
}

LogicalResult AtomicLoadOp::verify() {
  if (getOrder() != Order::Relaxed && getOrder() != Order::Acquire)
    return emitOpError() << "is a load with order " << stringifyOrder(getOrder());
  return verifyAtomic(*this, getView().getType(), getIndices().size(), getResult().getType(), false);
}

LogicalResult AtomicStoreOp::verify() {
  if (getOrder() != Order::Relaxed && getOrder() != Order::Release)
    return emitOpError() << "is a store with order " << stringifyOrder(getOrder());
  return verifyAtomic(*this, getView().getType(), getIndices().size(), getValue().getType(), true);
}

static LogicalResult verifyTileAccess(Operation* op, ViewType view, mlir::RankedTensorType tile, size_t offsets,
                                      bool writes) {
  if (view.getSpace() == Space::Local)
    return op->emitOpError() << "moves a tile through local memory, which is per thread";
  if (tile.getRank() != view.getRank())
    return op->emitOpError() << "moves a tile of rank " << tile.getRank() << " through a view of rank "
                             << view.getRank();
  return verifyAccess(op, view, offsets, tile.getElementType(), writes);
}

LogicalResult TileLoadOp::verify() {
  auto tile = llvm::cast<mlir::RankedTensorType>(getResult().getType());
  if (mlir::failed(verifyTileAccess(*this, getView().getType(), tile, getOffsets().size(), false)))
    return mlir::failure();
  if (int64_t(getSizes().size()) != tile.getNumDynamicDims())
    return emitOpError() << "has " << getSizes().size() << " sizes for " << tile.getNumDynamicDims()
                         << " dynamic result dimensions";
  if (getOther() && getOther().getType() != tile.getElementType())
    return emitOpError() << "fills with " << getOther().getType() << " a tile of " << tile.getElementType();
  return success();
}

LogicalResult TileStoreOp::verify() {
  auto tile = llvm::cast<mlir::RankedTensorType>(getValue().getType());
  return verifyTileAccess(*this, getView().getType(), tile, getOffsets().size(), true);
}

LogicalResult StageCopyOp::verify() {
  ViewType source = getSource().getType(), destination = getDestination().getType();
  if (enclosingThreads(*this))
    return emitOpError() << "stands inside vx.threads; the block copies";
  if (destination.getSpace() != Space::Shared)
    return emitOpError() << "copies into " << stringifySpace(destination.getSpace()) << " memory, not shared";
  if (source.getSpace() == Space::Local)
    return emitOpError() << "copies from local memory, which is per thread";
  if (!destination.hasStaticShape())
    return emitOpError() << "has a destination with dynamic extents";
  if (source.getElementType() != destination.getElementType())
    return emitOpError() << "changes the element type from " << source.getElementType() << " to "
                         << destination.getElementType();
  // Elements outside read as zero, so the window may be larger than the source.
  llvm::SmallVector<int64_t> anyExtent(source.getRank(), mlir::ShapedType::kDynamic);
  return verifyPart(*this, "view", anyExtent, destination.getShape(), getOffsets().size(), 0, getDropped());
}

//===-- effects -----------------------------------------------------------------------------------------------===//
// Without a value or resource: views may alias, so an effect is on all memory.

static void addRead(SmallVectorImpl<EffectInstance>& effects) { effects.emplace_back(MemoryEffects::Read::get()); }
static void addWrite(SmallVectorImpl<EffectInstance>& effects) { effects.emplace_back(MemoryEffects::Write::get()); }

void LoadOp::getEffects(SmallVectorImpl<EffectInstance>& effects) {
  addRead(effects);
  if ((*this)->hasAttr("vx.watched"))  // it stays though nothing uses its value
    addWrite(effects);
}

void TileLoadOp::getEffects(SmallVectorImpl<EffectInstance>& effects) { addRead(effects); }
void StoreOp::getEffects(SmallVectorImpl<EffectInstance>& effects) { addWrite(effects); }
void TileStoreOp::getEffects(SmallVectorImpl<EffectInstance>& effects) { addWrite(effects); }

void StageCopyOp::getEffects(SmallVectorImpl<EffectInstance>& effects) {
  addRead(effects);
  addWrite(effects);
}

static void addBoth(SmallVectorImpl<EffectInstance>& effects) {
  addRead(effects);
  addWrite(effects);
}
void AtomicRmwOp::getEffects(SmallVectorImpl<EffectInstance>& effects) { addBoth(effects); }
void AtomicCasOp::getEffects(SmallVectorImpl<EffectInstance>& effects) { addBoth(effects); }
// An acquire or release orders the accesses around it, and a spinning load must not be hoisted: both, too.
void AtomicLoadOp::getEffects(SmallVectorImpl<EffectInstance>& effects) { addBoth(effects); }
void AtomicStoreOp::getEffects(SmallVectorImpl<EffectInstance>& effects) { addBoth(effects); }

}  // namespace vortex::ir
