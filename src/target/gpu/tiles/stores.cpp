// Stores of tiles and the order of memory.
#include "target/gpu/tiles/tiles_state.h"
#include "target/interface/tile_order.h"

namespace vortex::target::gpu::tiles {

bool Tiles::isReadAfter(ir::TileLoadOp load, mlir::Operation* op) const {
  return target::isReadAfter(
      load, op, [this](mlir::Value value) { return v_.place(value) != nullptr; },
      [](mlir::Operation* here) { return here->hasAttr(kPerElement); });
}

/// Stores wait for others that can share their loops.
void Tiles::lowerStore(ir::TileStoreOp op) {
  const void* base = rootView(op.getView()).getAsOpaquePointer();
  Scope& scope = scopes_.back();
  if (llvm::any_of(scope.stores,
                   [&](ir::TileStoreOp store) { return rootView(store.getView()).getAsOpaquePointer() == base; }))
    flushStores();
  scope.stores.push_back(op);
}

static bool scans(mlir::Value tile) {
  bool found = false;
  Closure closure;
  closure.walk(tile, identityMap(rankOf(tile)), [&](mlir::Value value, const DimMap&) {
    found |= value.getDefiningOp<ir::ScanOp>() != nullptr;
    return !found;
  });
  return found;
}

/// The two share their rows, or all of their loops where one of them has no rows of its own.
bool Tiles::sharesLoops(const Root& a, const Root& b) {
  std::optional<unsigned> rank = nest().rowRank(a.value), other = nest().rowRank(b.value);
  Values extents = v_.extents(a.value), otherExtents = v_.extents(b.value);
  if (rank == other) {
    extents.resize(rank.value_or(static_cast<unsigned>(extents.size())));
    otherExtents.resize(other.value_or(static_cast<unsigned>(otherExtents.size())));
  } else if ((rank && other) || scans(a.value) || scans(b.value)) {
    return false;
  }
  return extents.size() == otherExtents.size() && llvm::all_of(llvm::zip(extents, otherExtents), [&](auto pair) {
           return sameValue(l, std::get<0>(pair), std::get<1>(pair));
         });
}

/// What a nest overwrites and something behind it reads.
void Tiles::keepReadAfter(llvm::ArrayRef<Root> roots) {
  for (ir::TileLoadOp load : llvm::SmallVector<ir::TileLoadOp>(scopes_.back().loads)) {
    const void* base = rootView(load.getView()).getAsOpaquePointer();
    if (!v_.place(load) && llvm::any_of(roots, [&](const Root& root) { return root.sink.base == base; }) &&
        isReadAfter(load, roots.back().store) && !toMemory(load.getResult()))
      l.fail(load, "a tile of this size that is read after its memory is written");
  }
}

/// Stores that follow each other and share their loops become one nest.
void Tiles::flushStores() {
  llvm::SmallVector<ir::TileStoreOp> stores;
  std::swap(stores, scopes_.back().stores);
  std::vector<Root> roots;
  auto emit = [&] {
    if (roots.empty())
      return;
    keepReadAfter(roots);
    emitRoots(roots);
    roots.clear();
  };
  for (ir::TileStoreOp store : stores) {
    Root root{store.getValue(), v_.placeOfStore(store), store};
    if (!llvm::all_of(roots, [&](const Root& other) { return sharesLoops(root, other); }))
      emit();
    roots.push_back(root);
  }
  emit();
  for (mlir::Value tile : std::exchange(scopes_.back().ended, {}))
    retire(tile);
}

void Tiles::emitRoots(llvm::ArrayRef<Root> roots) {
  std::vector<Root> together;
  for (const Root& root : roots) {
    auto scan = root.value.getDefiningOp<ir::ScanOp>();
    if (scan && !v_.place(root.value) && scan.getDim() + 1 != rankOf(root.value))
      emitScanAcross(scan, root);
    else
      together.push_back(root);
  }
  if (!together.empty())
    nest().emitStores(together);
}

void Tiles::flushReads(mlir::Operation* effect) {
  if (!l.state.error.empty())
    return;
  flushStores();
  for (ir::TileLoadOp load : llvm::SmallVector<ir::TileLoadOp>(scopes_.back().loads)) {
    if (v_.place(load) || !mayWrite(effect, load.getView()))
      continue;
    if (isReadAfter(load, effect) && !toMemory(load.getResult()))
      l.fail(load, "a tile of this size that is read after its memory is written");
  }
}

}  // namespace vortex::target::gpu::tiles
