#include "target/gpu/hopper/operand.h"

#include "base/check.h"
#include "ir/launch.h"
#include "ir/reshape_parts.h"
#include "ir/size_attr.h"
#include "ir/tile_sizes.h"
#include "target/gpu/hopper/configuration.h"
#include "target/gpu/tiles/closure.h"

#include <mlir/Dialect/Utils/StaticValueUtils.h>

namespace vortex::target::gpu::hopper {

namespace vxnv = ir::vxnv;

/// The extents of the tensor that an argument holds, whatever its rows have room for.
static llvm::SmallVector<size::Expr> heldExtents(mlir::BlockArgument argument) {
  auto module = argument.getOwner()->getParentOp()->getParentOfType<mlir::ModuleOp>();
  auto entry = *module.getOps<ir::EntryOp>().begin();
  auto facts = llvm::cast<mlir::DictionaryAttr>(entry.getArgs()[argument.getArgNumber()]);
  llvm::SmallVector<size::Expr> extents;
  if (auto held = facts.getAs<mlir::ArrayAttr>(ir::kHeldExtents)) {
    for (auto extent : held.getAsRange<ir::SizeAttr>())
      extents.push_back(extent.getExpr());
    return extents;
  }
  unsigned number = argument.getArgNumber();
  if (auto original = facts.getAs<mlir::IntegerAttr>(ir::kStandsFor))
    number = static_cast<unsigned>(original.getInt());
  auto type = llvm::cast<ir::ViewType>(argument.getOwner()->getArgument(number).getType());
  size::Arena& arena = ir::sizeArena(argument.getContext());
  for (unsigned dim = 0; dim < static_cast<unsigned>(type.getRank()); ++dim)
    extents.push_back(type.isDynamic(dim) ? arena.dim(number, dim) : arena.constant(type.getShape()[dim]));
  return extents;
}

int64_t Maps::add(mlir::Value view, llvm::ArrayRef<int64_t> box, int64_t swizzle, ir::SizeAttr columns, bool isTf32) {
  auto argument = llvm::cast<mlir::BlockArgument>(view);
  auto type = llvm::cast<ir::ViewType>(argument.getType());
  const llvm::SmallVector<size::Expr> held = heldExtents(argument);
  mlir::MLIRContext* context = view.getContext();
  size::Arena& arena = ir::sizeArena(context);
  unsigned number = argument.getArgNumber();
  llvm::SmallVector<mlir::Attribute> extents, strides;
  auto attribute = [&](size::Expr expr) { return ir::SizeAttr::get(context, expr); };
  for (auto dim = static_cast<unsigned>(type.getRank()); dim-- > 0;) {
    extents.push_back(attribute(held[dim]));
    if (columns && dim + 1 == type.getRank()) {
      extents.back() = ir::sizeBinary(size::Op::FloorDiv, llvm::cast<ir::SizeAttr>(extents.back()), columns);
      extents.insert(extents.begin(), columns);
      strides.push_back(attribute(size::make(size::Op::Mul, columns.getExpr(), type.elementBytes())));
    }
    if (dim + 1 < type.getRank())
      strides.push_back(attribute(size::make(size::Op::Mul, arena.stride(number, dim), type.elementBytes())));
  }
  mlir::Attribute map =
      vxnv::MapAttr::get(context, isTf32 ? mlir::FloatTF32Type::get(context) : type.getElementType(),
                         attribute(arena.address(number)), mlir::ArrayAttr::get(context, extents),
                         mlir::ArrayAttr::get(context, strides), mlir::DenseI64ArrayAttr::get(context, box), swizzle);
  auto known = llvm::find(maps_, map);
  if (known == maps_.end())
    known = maps_.insert(known, map);
  return known - maps_.begin();
}

mlir::ArrayAttr Maps::attribute() const { return l_.b.getArrayAttr(maps_); }

/// The dimension of what `op` moves that dimension `dim` of its result is.
static unsigned dimBefore(mlir::Operation* op, unsigned dim) {
  int64_t from = 0;
  if (auto turned = llvm::dyn_cast<ir::TransposeOp>(op)) {
    from = turned.getPermutation()[dim];
  } else if (auto repeated = llvm::dyn_cast<ir::BroadcastOp>(op)) {
    from = llvm::find(repeated.getDims(), int64_t{dim}) - repeated.getDims().begin();
  } else if (auto slice = llvm::dyn_cast<ir::SliceOp>(op)) {
    from = dim;
    for (int64_t dropped : slice.getDropped())
      from += dropped <= from;
  } else {
    from = ir::steppedDim(llvm::cast<ir::ReshapeOp>(op), dim);
  }
  VORTEX_CHECK(from >= 0, "rows that are regrouped were planned as an operand's");
  return static_cast<unsigned>(from);
}

Operand::Operand(Lowering& lowering, Maps& maps, ir::DotOp dot, bool isA, int64_t extent) : l_(lowering) {
  mlir::Value tile = isA ? dot.getA() : dot.getB();
  bool isUnsigned = false;
  unsigned rank = tiles::rankOf(tile);
  depthDim_ = isA ? rank - 1 : rank - 2;
  acrossDim_ = isA ? rank - 2 : rank - 1;
  for (mlir::Operation* op = tile.getDefiningOp();
       llvm::isa_and_nonnull<ir::TransposeOp, ir::BroadcastOp, mlir::arith::ExtUIOp, mlir::arith::ExtSIOp>(op);
       op = tile.getDefiningOp()) {
    if (llvm::isa<ir::TransposeOp, ir::BroadcastOp>(op)) {
      depthDim_ = dimBefore(op, depthDim_);
      acrossDim_ = dimBefore(op, acrossDim_);
    }
    isUnsigned |= llvm::isa<mlir::arith::ExtUIOp>(op);
    tile = op->getOperand(0);
  }
  load_ = tile.getDefiningOp<ir::TileLoadOp>();
  VORTEX_CHECK(load_, "an operand that is not loaded was planned as one");
  rank = tiles::rankOf(tile);
  element_ = tiles::elementType(tile);
  if (auto integer = llvm::dyn_cast<mlir::IntegerType>(element_))
    element_ = mlir::IntegerType::get(integer.getContext(), integer.getWidth(),
                                      isUnsigned ? mlir::IntegerType::Unsigned : mlir::IntegerType::Signed);
  else if (element_.isF32())
    element_ = mlir::FloatTF32Type::get(element_.getContext());
  across_ = acrossDim_ + 1 == rank;
  int64_t row = kDepthBytes / ir::vxt::scalarBytes(element_);  // elements of a swizzled row
  // One box with the depth inside, or boxes of one swizzled row across.
  copies_ = across_ ? llvm::divideCeil(extent, row) : 1;
  bytes_ = (across_ ? copies_ * row : extent) * kDepthBytes;
  llvm::SmallVector<int64_t> box(rank, 1);
  box[rank - 1 - depthDim_] = row;
  box[rank - 1 - acrossDim_] = across_ ? row : extent;
  map_ = maps.add(load_.getView(), box, kDepthBytes, {}, element_.isTF32());
}

void Operand::copy(Value slot, Value depth, int64_t offset) {
  int64_t row = kDepthBytes / ir::vxt::scalarBytes(element_);
  for (int64_t i = 0; i < copies_; ++i) {
    Values coordinates;
    for (unsigned dim = load_.getOffsets().size(); dim-- > 0;) {
      Value start = l_.scalar(load_.getOffsets()[dim]);
      coordinates.push_back(dim == depthDim_    ? l_.add(start, depth)
                            : dim == acrossDim_ ? l_.add(start, l_.constant(i * row))
                                                : start);
    }
    l_.b.create<vxnv::CopyOp>(l_.loc, slot, map_, coordinates, offset + i * vxnv::kAcrossBlock);
  }
}

static bool isMoved(mlir::Operation* op) {
  return llvm::isa_and_nonnull<ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::ReshapeOp>(op);
}

static Values extentsOf(Lowering& l, mlir::Value tile) {
  Values extents;
  for (mlir::OpFoldResult size : ir::tileSizes(tile)) {
    auto known = mlir::getConstantIntValue(size);
    extents.push_back(known ? l.constant(*known) : l.scalar(llvm::cast<mlir::Value>(size)));
  }
  return extents;
}

/// One element of the regrouped dimensions has a number among them, and that its digits on the other side.
static Values startsBefore(Lowering& l, ir::ReshapeOp reshape, const Values& starts) {
  const ir::ReshapeParts parts = ir::reshapeParts(reshape);
  Values to = extentsOf(l, reshape.getResult()), from = extentsOf(l, reshape.getValue());
  const size_t toEnd = to.size() - parts.suffix, fromEnd = from.size() - parts.suffix;
  Value number = l.constant(0);
  for (size_t dim = parts.prefix; dim < toEnd; ++dim)
    number = l.add(l.mul(number, to[dim]), starts[dim]);
  Values before(from.size());
  for (size_t dim = fromEnd; dim-- > parts.prefix;) {
    const bool isFirst = dim == parts.prefix;
    before[dim] = isFirst ? number : l.rem(number, from[dim]);
    number = isFirst ? number : l.div(number, from[dim]);
  }
  std::copy(starts.begin(), starts.begin() + parts.prefix, before.begin());
  std::copy(starts.end() - parts.suffix, starts.end(), before.end() - parts.suffix);
  return before;
}

/// `starts`: of what `op` gives.
static Values startsBefore(Lowering& l, mlir::Operation* op, const Values& starts) {
  if (auto reshape = llvm::dyn_cast<ir::ReshapeOp>(op))
    return startsBefore(l, reshape, starts);
  Values before(tiles::rankOf(op->getOperand(0)), l.constant(0));
  if (auto turned = llvm::dyn_cast<ir::TransposeOp>(op)) {
    for (auto [dim, source] : llvm::enumerate(turned.getPermutation()))
      before[static_cast<size_t>(source)] = starts[dim];
  } else if (auto repeated = llvm::dyn_cast<ir::BroadcastOp>(op)) {
    for (auto [dim, target] : llvm::enumerate(repeated.getDims()))
      if (llvm::cast<mlir::RankedTensorType>(repeated.getValue().getType()).getDimSize(static_cast<unsigned>(dim)) != 1)
        before[dim] = starts[static_cast<size_t>(target)];
  } else {
    auto slice = llvm::cast<ir::SliceOp>(op);
    size_t kept = 0;
    for (auto [dim, offset] : llvm::enumerate(slice.getOffsets())) {
      const bool isDropped = llvm::is_contained(slice.getDropped(), static_cast<int64_t>(dim));
      before[dim] = isDropped ? l.scalar(offset) : l.add(l.scalar(offset), starts[kept++]);
    }
  }
  return before;
}

RowOperand::RowOperand(Lowering& lowering, Maps& maps, mlir::Value tile, unsigned rowDim, int64_t boxRows)
    : l_(lowering), tile_(tile), element_(tiles::elementType(tile)), rowDim_(rowDim), boxRows_(boxRows) {
  for (mlir::Operation* op = tile.getDefiningOp(); isMoved(op); op = tile.getDefiningOp()) {
    rowDim_ = dimBefore(op, rowDim_);
    tile = op->getOperand(0);
  }
  load_ = tile.getDefiningOp<ir::TileLoadOp>();
  VORTEX_CHECK(load_, "an operand that is not loaded was planned as one");
  unsigned rank = tiles::rankOf(tile);
  VORTEX_CHECK(rowDim_ + 1 < rank, "rows of an operand that lie across were planned to lie one after another");
  llvm::SmallVector<int64_t> box(rank, 1);
  box[0] = kDepthBytes / ir::vxt::scalarBytes(element_);
  box[rank - 1 - rowDim_] = boxRows;
  map_ = maps.add(load_.getView(), box, kDepthBytes);
}

int64_t RowOperand::boxBytes() const { return boxRows_ * kDepthBytes; }

Values RowOperand::starts() const {
  Values starts(tiles::rankOf(tile_), l_.constant(0));
  for (mlir::Operation* op = tile_.getDefiningOp(); isMoved(op); op = op->getOperand(0).getDefiningOp())
    starts = startsBefore(l_, op, starts);
  return starts;
}

void RowOperand::copy(Value slot, int64_t row, int64_t column, int64_t offset) {
  Values coordinates, inside = starts();
  for (unsigned dim = load_.getOffsets().size(); dim-- > 0;) {
    Value start = l_.add(l_.scalar(load_.getOffsets()[dim]), inside[dim]);
    int64_t shift = dim == rowDim_ ? row : coordinates.empty() ? column : 0;
    coordinates.push_back(l_.add(start, l_.constant(shift)));
  }
  l_.b.create<vxnv::CopyOp>(l_.loc, slot, map_, coordinates, offset);
}

}  // namespace vortex::target::gpu::hopper
