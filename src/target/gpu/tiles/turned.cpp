// Tiles that are loaded along their last dimension and read along another (transposes, and permutations of any rank), in shared memory.
//
// Each thread loads a square of elements with one wide access per row, turns it in registers, and stores its columns with one wide access
// each, so that readers find runs of neighbours, too. An XOR swizzle, solved from both accesses, keeps the banks apart.
#include "ir/tile_sizes.h"
#include "layout/swizzle.h"
#include "target/gpu/tiles/tiles_state.h"

#include <mlir/Dialect/Utils/StaticValueUtils.h>

namespace vortex::target::gpu::tiles {

/// Elements of one 16-byte access.
static unsigned widestRun(mlir::Value tile) {
  return static_cast<unsigned>(std::max<int64_t>(1, 16 / ir::vxt::scalarBytes(elementType(tile))));
}

/// Rows and columns of a thread's square: whole accesses, as far as its elements fit 32 registers.
static unsigned squareSide(mlir::Value tile) { return std::min(8u, widestRun(tile)); }

static std::optional<llvm::SmallVector<int64_t>> boundsOf(mlir::Value tile) {
  llvm::SmallVector<int64_t> bounds;
  for (mlir::OpFoldResult size : ir::tileSizes(tile)) {
    std::optional<int64_t> bound = mlir::getConstantIntValue(size);
    if (auto value = llvm::dyn_cast_if_present<mlir::Value>(size); value && !bound)
      bound = upperBound(value);
    if (!bound || *bound <= 0)
      return std::nullopt;
    bounds.push_back(*bound);
  }
  return bounds;
}

static unsigned log2Ceil(int64_t value) { return llvm::Log2_64_Ceil(static_cast<uint64_t>(value)); }

/// Of a tile of 2^rowBits rows of 2^columnBits elements, written in squares whose lanes follow the rows first, read along its rows.
static layout::XorSwizzle solve(mlir::Value tile, unsigned rowBits, unsigned columnBits) {
  unsigned sideBits = log2Ceil(squareSide(tile)), runBits = log2Ceil(widestRun(tile));
  auto bytes = static_cast<unsigned>(ir::vxt::scalarBytes(elementType(tile)));
  layout::LaneAccess written{{}, bytes << sideBits}, read{{}, bytes << runBits};
  for (unsigned bit = sideBits; bit < rowBits && written.lanes.size() < 5; ++bit)
    written.lanes.push_back(layout::Bits(1) << (columnBits + bit));
  for (unsigned bit = sideBits; written.lanes.size() < 5; ++bit)
    written.lanes.push_back(bit < columnBits ? layout::Bits(1) << bit : 0);
  for (unsigned bit = runBits; read.lanes.size() < 5; ++bit)
    read.lanes.push_back(layout::Bits(1) << bit);
  return layout::solveXorSwizzle(rowBits, columnBits, runBits, bytes, {{written, read}}).swizzle;
}

bool Tiles::turnToMemory(mlir::Value tile, unsigned along) {
  auto load = tile.getDefiningOp<ir::TileLoadOp>();
  auto bounds = boundsOf(tile);
  if (!load || !bounds || squareSide(tile) == 1 || !v_.placeOfLoad(load).view.alignedRows)
    return false;
  size_t last = bounds->size() - 1;
  unsigned columnBits = std::max(log2Ceil((*bounds)[along]), log2Ceil(widestRun(tile)));
  unsigned rowBits = log2Ceil((*bounds)[last]);
  Place place;
  mlir::Type type = elementType(tile);
  int64_t stride = int64_t(1) << columnBits;
  place.view.strides.resize(bounds->size());
  place.view.strides[along] = l.constant(1);
  for (size_t dim = bounds->size(); dim-- > 0;)
    if (dim != along) {
      place.view.strides[dim] = l.constant(stride);
      stride *= (*bounds)[dim];
    }
  int64_t bytes = stride * ir::vxt::scalarBytes(type);
  if (!l.shared().hasRoomForTile(bytes))
    return false;
  layout::XorSwizzle swizzle = solve(tile, rowBits, columnBits);
  SharedMemory::Piece piece = l.shared().take(bytes, 128, "turned tile " + describe(tile));
  place.view.elementType = type;
  place.view.space = ir::Space::Shared;
  place.view.pointer = l.sharedPointer(piece);
  place.view.extents = v_.extents(tile);
  if (swizzle.mask)
    place.view.swizzle =
        ir::SwizzleAttr::get(l.b.getContext(), swizzle.shift, static_cast<int64_t>(swizzle.mask), swizzle.base);
  place.base = place.window = place.key = piece.root;
  nest().emitTurned(Root{tile, place, nullptr}, along);
  v_.setPlace(tile, place);
  return true;
}

void Nest::emitTurned(const Root& root, unsigned along) {
  plan(root, {});
  if (!l.state.error.empty())
    return;
  announce();
  team_ = wholeBlock(l);
  unsigned side = squareSide(root.value);
  Requirements wide(l);
  wide.multiple(passes_[0].inner[along], side);
  wide.multiple(passes_[0].inner.back(), side);
  if (Place source = v_.placeOfLoad(root.value.getDefiningOp<ir::TileLoadOp>()); source.guarded)
    wide.inside(source, v_.extents(root.value));
  branchOnFacts(
      wide,
      [&] {
        emitTurnedBlocks(root, along, side);
        return Values{};
      },
      [&] { return emitVersion({1, 0}, 0); });
}

void Nest::emitTurnedBlocks(const Root& root, unsigned along, unsigned side) {
  Values counts = passes_[0].inner;
  size_t last = counts.size() - 1;
  Value length = l.constant(side), items = l.constant(1);
  for (auto [dim, count] : llvm::enumerate(counts)) {
    if (dim == along || dim == last)
      count = l.div(count, length);
    items = l.mul(items, count);
  }
  auto square = [&](Value item) {
    Frame frame(v_);
    At from{digits(item, counts), side}, to;
    for (size_t dim : {static_cast<size_t>(along), last})
      from.index[dim].base = l.mul(from.index[dim].base, length);
    from.index[last].step = 1;
    to = from;
    to.index[last].step = 0;
    to.index[along].step = 1;
    Values rows;
    for (unsigned i = 0; i < side; ++i) {
      At row = from;
      row.index[along].base = l.add(row.index[along].base, l.constant(i));
      rows.push_back(v_.eval(root.value, row));
    }
    for (unsigned j = 0; j < side; ++j) {
      Values column;
      for (Value row : rows)
        column.push_back(extract(l, row, j));
      At target = to;
      target.index[last].base = l.add(target.index[last].base, l.constant(j));
      storeElements(l, root.sink, target, gather(l, column), {}, v_.wide, false);
    }
  };
  if (l.constantOf(items) == l.threads())
    return square(l.threadId());
  l.emitFor(l.threadId(), items, l.constant(l.threads()), {}, [&](Value item, mlir::ValueRange) {
    square(item);
    return Values{};
  });
}

}  // namespace vortex::target::gpu::tiles
