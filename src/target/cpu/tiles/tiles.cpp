#include "ir/reshape_parts.h"
#include "passes/stream_reductions.h"
#include "target/cpu/prepare_dots.h"
#include "target/cpu/tiles/tiles_state.h"
#include "target/interface/tile_order.h"

#include <mlir/Interfaces/SideEffectInterfaces.h>

namespace vortex::target::cpu::tiles {

using llvm::Value;

std::unique_ptr<emit::TileEmitter> makeTileEmitter(Emitter& emitter) { return std::make_unique<Tiles>(emitter); }

/// Used inside the regions of a later operation, where evaluating it again may happen many times.
static bool isUsedInRegions(mlir::Operation* op) {
  return llvm::any_of(op->getUsers(), [&](mlir::Operation* user) { return user->getBlock() != op->getBlock(); });
}

void Tiles::emit(mlir::Operation* op) {
  if (!e_.state.error.empty())
    return;
  if (auto store = mlir::dyn_cast<ir::TileStoreOp>(op))
    return emitStore(store);
  if (auto element = mlir::dyn_cast<ir::ElementOp>(op))
    return emitElement(element);
  if (auto load = mlir::dyn_cast<ir::TileLoadOp>(op)) {
    const void* base = rootView(load.getView()).getAsOpaquePointer();
    if (llvm::any_of(scopes_.back().stores,
                     [&](ir::TileStoreOp store) { return rootView(store.getView()).getAsOpaquePointer() == base; }))
      flushStores();
    scopes_.back().loads.push_back(load);
  }
  if (auto reduce = mlir::dyn_cast<ir::ReduceOp>(op)) {
    if (!isTile(reduce.getResult()))
      return e_.setScalar(reduce.getResult(), group().emitScalar(reduce));
    if (op->getParentOp()->hasAttr(passes::kStreamedAttr))
      return emitStreamed(reduce);
  }
  if (op->getNumResults() != 1 || !isTile(op->getResult(0)))
    return e_.fail(op, "this operation on tiles");
  // Before the loop that needs it, while its operands are what they are.
  if (isUsedInRegions(op) && costOf(v_, op->getResult(0)) >= kExpensive)
    toMemory(op->getResult(0));
}

/// In a loop over chunks (passes/stream_reductions.h): scores are written by their product, maximum, weights and sum row by row together.
void Tiles::emitStreamed(ir::ReduceOp reduce) {
  mlir::Value weights = reduce.getValue();
  if (reduce.getKind() == ir::Combine::MaxF)
    return toMemory(weights);
  if (v_.place(weights) || weights.hasOneUse())
    return;
  std::vector<Root> roots;
  auto add = [&](mlir::Value tile) {
    if (!v_.place(tile))
      roots.push_back({tile, placeOf(e_, e_.allocateFor(reduce, tile)), nullptr});
  };
  mlir::Value maximum = reduce->getBlock()->getTerminator()->getOperand(0);
  for (mlir::Value tile : {maximum, weights, mlir::Value(reduce.getResult())})
    add(tile);
  emitRoots(roots);
  for (const Root& root : roots)
    v_.setPlace(root.value, root.sink);
}

void Tiles::emitElement(ir::ElementOp op) {
  group().prepareExpression(op.getValue());
  Values extents = v_.extents(op.getValue());
  At at;
  Value* inside = e_.ir.getTrue();
  for (auto [index, extent] : llvm::zip(op.getIndices(), extents)) {
    at.index.push_back(Lane::uniform(e_.scalar(index)));
    inside = e_.ir.CreateAnd(inside, e_.ir.CreateICmpULT(at.index.back().value, extent));
  }
  Values value = emit::emitIf(
      e_.ir, inside,
      [&] {
        Frame frame(v_);
        return Values{v_.eval(op.getValue(), at)};
      },
      [&] { return Values{e_.zero(op.getType())}; });
  e_.setScalar(op, value[0]);
}

//===-- stores and the order of memory ------------------------------------------------------------------------===//

bool Tiles::isReadAfter(ir::TileLoadOp load, mlir::Operation* op) const {
  return target::isReadAfter(
      load, op, [this](mlir::Value value) { return v_.place(value) != nullptr; },
      [](mlir::Operation*) { return false; });
}

/// Stores wait for others that can share their loops.
void Tiles::emitStore(ir::TileStoreOp op) {
  if (op->hasAttr(kPanelsAttribute))
    return emitPack(op);
  const void* base = rootView(op.getView()).getAsOpaquePointer();
  Scope& scope = scopes_.back();
  if (llvm::any_of(scope.stores,
                   [&](ir::TileStoreOp store) { return rootView(store.getView()).getAsOpaquePointer() == base; }))
    flushStores();
  scope.stores.push_back(op);
}

/// A store of a reshape that merges dimensions writes the dimensions before: one of the view's is cut into them.
static void writeBeforeMerging(Evaluator& v, Root& root) {
  auto reshape = root.value.getDefiningOp<ir::ReshapeOp>();
  if (!reshape || v.place(root.value) || root.sink.guarded)
    return;
  ir::ReshapeParts parts = ir::reshapeParts(reshape);
  Values extents = v.extents(reshape.getValue());
  size_t kept = parts.prefix + parts.suffix, dim = parts.prefix;
  if (root.sink.view.rank() != kept + 1 || extents.size() < kept + 2)
    return;
  Place& sink = root.sink;
  llvm::IRBuilder<>& ir = v.e.ir;
  Value* stride = sink.view.strides[dim];
  if (!sink.offsets.empty()) {
    sink.view.pointer =
        emit::elementPointer(ir, sink.view.elementType, sink.view.pointer, ir.CreateMul(sink.offsets[dim], stride));
    sink.offsets.erase(sink.offsets.begin() + dim);
    sink.offsets.insert(sink.offsets.begin() + dim, extents.size() - kept, v.e.i64(0));
  }
  sink.view.strides.erase(sink.view.strides.begin() + dim);
  sink.view.extents.erase(sink.view.extents.begin() + dim);
  for (size_t i = extents.size() - parts.suffix; i-- > dim;) {
    sink.view.strides.insert(sink.view.strides.begin() + dim, stride);
    sink.view.extents.insert(sink.view.extents.begin() + dim, extents[i]);
    stride = ir.CreateMul(stride, extents[i]);
  }
  sink.window = reshape.getAsOpaquePointer();
  root.value = reshape.getValue();
}

/// The two share their rows, or all of their loops where one of them has no rows of its own.
bool Tiles::sharesLoops(const Root& a, const Root& b) {
  std::optional<unsigned> rank = group().rowRank(a.value), other = group().rowRank(b.value);
  Values extents = v_.extents(a.value), otherExtents = v_.extents(b.value);
  if (rank == other) {
    extents.resize(rank.value_or(extents.size()));
    otherExtents.resize(other.value_or(otherExtents.size()));
  } else if (rank && other) {
    return false;
  }
  return extents == otherExtents;
}

/// What a nest overwrites and something behind it reads.
void Tiles::keepReadAfter(llvm::ArrayRef<Root> roots) {
  for (ir::TileLoadOp load : llvm::SmallVector<ir::TileLoadOp>(scopes_.back().loads)) {
    const void* base = rootView(load.getView()).getAsOpaquePointer();
    if (!v_.place(load) && llvm::any_of(roots, [&](const Root& root) { return root.sink.base == base; }) &&
        isReadAfter(load, roots.back().store))
      toMemory(load.getResult());
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
    writeBeforeMerging(v_, root);
    if (!llvm::all_of(roots, [&](const Root& other) { return sharesLoops(root, other); }))
      emit();
    roots.push_back(root);
  }
  emit();
}

void Tiles::emitRoots(llvm::ArrayRef<Root> roots) {
  if (ir::DotOp dot = epilogueDot(roots))
    return emitDot(dot, roots);
  group().emitStores(roots);
}

void Tiles::flushReads(mlir::Operation* effect) {
  if (!e_.state.error.empty())
    return;
  flushStores();
  for (ir::TileLoadOp load : llvm::SmallVector<ir::TileLoadOp>(scopes_.back().loads)) {
    if (!v_.place(load) && mayWrite(effect, load.getView()) && isReadAfter(load, effect))
      toMemory(load.getResult());
  }
}

void Tiles::enterScope() {
  scopes_.emplace_back();
  v_.enterScope();
  v_.pushFrame();
}

void Tiles::leaveScope() {
  flushStores();
  v_.popFrame();
  v_.leaveScope();
  scopes_.pop_back();
}

//===-- memory ------------------------------------------------------------------------------------------------===//

static TileBuffer bufferOf(const Place& place) {
  return {place.view.elementType, place.view.pointer, place.view.extents};
}

void Tiles::bind(mlir::Value tile, TileBuffer buffer) { v_.setPlace(tile, placeOf(e_, buffer)); }

TileBuffer Tiles::materialize(mlir::Value tile) {
  toMemory(tile);
  const Place* place = v_.place(tile);
  return place ? bufferOf(*place) : e_.allocateFor(tile.getDefiningOp(), tile);
}

/// Gives the tile a place, in the current scope.
void Tiles::toMemory(mlir::Value tile) {
  if (v_.place(tile) || !e_.state.error.empty())
    return;
  mlir::Operation* op = tile.getDefiningOp();
  if (!op || op->getNumRegions() != 0)
    return e_.fail(op ? op : tile.getParentBlock()->getParentOp(), "this tile");
  if (auto reshape = mlir::dyn_cast<ir::ReshapeOp>(op)) {  // the same memory
    toMemory(reshape.getValue());
    if (const Place* source = v_.place(reshape.getValue())) {
      TileBuffer buffer = bufferOf(*source);
      buffer.extents = v_.extents(tile);
      v_.setPlace(tile, placeOf(e_, buffer));
    }
    return;
  }
  TileBuffer buffer = e_.allocateFor(op, tile);
  evaluateInto(tile, buffer);
  v_.setPlace(tile, placeOf(e_, buffer));
}

void Tiles::materializeInto(mlir::Value tile, const TileBuffer& destination) {
  if (!e_.state.error.empty())
    return;
  flushStores();  // they may read what the destination holds now
  evaluateInto(tile, destination);
}

void Tiles::evaluateInto(mlir::Value tile, const TileBuffer& destination) {
  if (const Place* place = v_.place(tile)) {
    if (place->view.pointer != destination.pointer)
      e_.copyTile(bufferOf(*place), destination);
    return;
  }
  mlir::Operation* op = tile.getDefiningOp();
  Root root{tile, placeOf(e_, destination), nullptr};
  if (group().readsOwnSink(root)) {
    // Lives as long as the tiles that the evaluation puts into memory behind it: later ones read these, too.
    TileBuffer temporary = e_.allocateFor(op, tile);
    root.sink = placeOf(e_, temporary);
    if (auto scan = mlir::dyn_cast<ir::ScanOp>(op))
      emitScan(scan, root.sink);
    else
      emitRoots(root);
    e_.copyTile(temporary, destination);
    return;
  }
  if (auto scan = mlir::dyn_cast_if_present<ir::ScanOp>(op))
    return emitScan(scan, root.sink);
  emitRoots(root);
}

}  // namespace vortex::target::cpu::tiles
