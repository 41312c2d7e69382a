#include "target/gpu/tiles/tiles.h"

#include "ir/size_attr.h"
#include "ir/tile_sizes.h"
#include "passes/plan/launch_places.h"
#include "target/gpu/dot/product.h"
#include "target/gpu/tiles/schedule.h"
#include "target/gpu/tiles/tiles_state.h"

#include <mlir/Dialect/Utils/StaticValueUtils.h>
#include <mlir/Interfaces/SideEffectInterfaces.h>

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;

std::unique_ptr<TileLowering> makeTileLowering(Lowering& lowering) { return std::make_unique<Tiles>(lowering); }

Nest Tiles::nest() {
  return Nest(v_, [this](mlir::Value tile, std::optional<unsigned> along) { return toMemory(tile, along); });
}

/// Rows of wide elements that need more than themselves (weights, but not a byte of a mask): more threads, so that both fit the registers of each and are loaded
/// together. Nothing: other work.
static std::optional<int64_t> threadsForRows(mlir::Operation* phase) {
  constexpr int64_t kWideRows = 512;
  llvm::DenseSet<mlir::Value> loads;
  int64_t widest = 0, bytes = 0;
  bool hasRows = false;
  auto consider = [&](mlir::Value tile) {
    Closure closure;
    closure.walk(tile, identityMap(rankOf(tile)), [&](mlir::Value value, const DimMap& map) {
      if (value.getDefiningOp<ir::TileLoadOp>() && usesLoop(map, static_cast<int>(rankOf(tile)) - 1)) {
        const int64_t own = ir::vxt::scalarBytes(elementType(value));
        bytes += loads.insert(value).second ? own : 0;
        widest = std::max(widest, own);
      }
      return !value.getDefiningOp<ir::ReduceOp>();
    });
  };
  phase->walk([&](mlir::Operation* op) {
    auto reduce = llvm::dyn_cast<ir::ReduceOp>(op);
    hasRows |= reduce && isTile(reduce.getResult()) && reducesInnermost(reduce);
    if (reduce)
      consider(reduce.getValue());
    else if (auto store = llvm::dyn_cast<ir::TileStoreOp>(op))
      consider(store.getValue());
  });
  return hasRows && bytes > widest + 1 && widest >= 4 ? std::optional(kWideRows) : std::nullopt;
}

/// What the schedule says, else the program's own threads, else a number that fills a core with a few blocks.
int64_t Tiles::chooseThreads(mlir::Operation* phase, std::optional<int64_t> logicalThreads) {
  constexpr int64_t kDefault = 256, kMost = 1024;
  markPerElement(phase);
  lifetimes_.emplace(phase);
  if (auto threads = dot::threadsFor(l.state.chip, phase))
    return *threads;
  if (auto size = phase->getAttrOfType<ir::SizeAttr>("vx.hardware_threads"))
    if (auto threads = ir::constantSize(size))
      return *threads;
  if (!logicalThreads) {
    l.freeThreads();
    return l.assumptions().longRows ? kLongRowThreads : threadsForRows(phase).value_or(kDefault);
  }
  return std::clamp<int64_t>(llvm::alignTo(static_cast<uint64_t>(*logicalThreads), 32), 32, kMost);
}

void Tiles::lower(mlir::Operation* op) {
  if (!l.state.error.empty())
    return;
  if (op->getNumResults() == 1 && perThread_.contains(op->getResult(0)))
    return lowerPerThread(op);
  if (auto store = llvm::dyn_cast<ir::TileStoreOp>(op))
    return lowerStore(store);
  if (auto element = llvm::dyn_cast<ir::ElementOp>(op))
    return lowerElement(element);
  if (auto load = llvm::dyn_cast<ir::TileLoadOp>(op)) {
    const void* base = rootView(load.getView()).getAsOpaquePointer();
    if (llvm::any_of(scopes_.back().stores,
                     [&](ir::TileStoreOp store) { return rootView(store.getView()).getAsOpaquePointer() == base; }))
      flushStores();
    scopes_.back().loads.push_back(load);
  }
  if (auto reduce = llvm::dyn_cast<ir::ReduceOp>(op); reduce && !isTile(reduce.getResult())) {
    flushStores();
    return l.setScalar(reduce.getResult(), nest().emitScalar(reduce));
  }
  if (auto product = llvm::dyn_cast<ir::DotOp>(op)) {
    flushStores();
    for (mlir::Value operand : {product.getA(), product.getB()})
      nest().prepareExpression(operand);
    if (collector_.add(product))
      return;
    nest().prepareExpression(product.getAcc());
    dot::lowerDot(v_, product);
    return;
  }
  if (op->getNumResults() != 1 || !isTile(op->getResult(0)))
    l.fail(op, "this operation on tiles");
}

void Tiles::lowerElement(ir::ElementOp op) {
  flushStores();
  nest().prepareExpression(op.getValue());
  Closure closure;
  closure.walk(op.getValue(), identityMap(rankOf(op.getValue())), [&](mlir::Value value, const DimMap&) {
    if (const Place* place = v_.place(value))
      l.hazards().read(place->base);
    else if (auto load = value.getDefiningOp<ir::TileLoadOp>())
      l.hazards().read(rootView(load.getView()));
    return !v_.place(value);
  });
  At at;
  Value inside;
  for (auto [index, extent] : llvm::zip(op.getIndices(), v_.extents(op.getValue()))) {
    at.index.push_back({l.scalar(index), 0});
    Value here = isLess(l, at.index.back().base, extent);
    inside = inside ? l.both(inside, here) : here;
  }
  auto value = [&]() -> Values {
    Frame frame(v_);
    return {v_.eval(op.getValue(), at)};
  };
  Values result = inside ? l.emitIf(inside, value, [&]() -> Values { return {l.zero(op.getType())}; }) : value();
  l.setScalar(op.getResult(), result[0]);
}

void Tiles::enterScope() {
  scopes_.emplace_back();
  v_.enterScope();
  v_.pushFrame();
}

void Tiles::leaveScope() {
  flushStores();
  emitYields();
  v_.popFrame();
  v_.leaveScope();
  scopes_.pop_back();
}

//===-- memory ------------------------------------------------------------------------------------------------===//

/// Elements from row to row of a tile that is read along its columns: an odd number of banks, so that a column lies in different ones.
/// Zero: rows follow each other.
static int64_t paddedRow(mlir::Value tile) {
  if (rankOf(tile) < 2 || !tile.getDefiningOp<ir::TileLoadOp>())
    return 0;
  mlir::OpFoldResult size = ir::tileSizes(tile).back();
  std::optional<int64_t> bound = mlir::getConstantIntValue(size);
  if (auto value = llvm::dyn_cast_if_present<mlir::Value>(size); value && !bound)
    bound = upperBound(value);
  int64_t perBank = std::max<int64_t>(1, 4 / ir::vxt::scalarBytes(elementType(tile)));
  return bound ? (llvm::divideCeil(*bound, perBank) | 1) * perBank : 0;
}

std::optional<SharedMemory::Piece> Tiles::reserve(mlir::Value tile) {
  auto bound = elementBound(tile);
  if (int64_t row = paddedRow(tile); row && bound) {
    std::optional<int64_t> columns = mlir::getConstantIntValue(ir::tileSizes(tile).back());
    if (!columns)
      columns = upperBound(llvm::cast<mlir::Value>(ir::tileSizes(tile).back()));
    bound = *bound / std::max<int64_t>(*columns, 1) * row;
  }
  int64_t bytes = bound.value_or(0) * ir::vxt::scalarBytes(elementType(tile));
  if (!bound || !l.shared().hasRoomForTile(bytes))
    return std::nullopt;
  return l.shared().take(std::max<int64_t>(bytes, 16), 16, "tile " + describe(tile));
}

/// Buffers of tiles that leave the regions of branches and `while` conditions outlive the regions' own memory.
void Tiles::reserveResults(mlir::Operation* op) {
  mlir::ValueRange targets;
  if (auto branch = llvm::dyn_cast<mlir::scf::IfOp>(op))
    targets = branch.getResults();
  else if (auto loop = llvm::dyn_cast<mlir::scf::WhileOp>(op))
    targets = loop.getAfterArguments();
  for (mlir::Value target : targets)
    if (isTile(target) && !perThread_.contains(target))
      if (auto piece = reserve(target))
        reserved_.insert({target, *piece});
}

/// Pieces of memory belong to one value of their block each.
void Tiles::lowered(mlir::Operation* op) {
  if (!l.state.error.empty() || !lifetimes_)
    return;
  if (auto loop = llvm::dyn_cast<mlir::scf::WhileOp>(op))
    for (mlir::Value argument : loop.getBeforeArguments())
      if (auto found = carried_.find(argument); found != carried_.end())
        l.shared().retire(found->second.base);
  Scope& scope = scopes_.back();
  for (mlir::Value tile : lifetimes_->endingAfter(op))
    if (scope.stores.empty())
      retire(tile);
    else
      scope.ended.push_back(tile);
}

void Tiles::retire(mlir::Value tile) {
  if (const Place* place = v_.place(tile))
    l.shared().retire(place->base);
}

bool Tiles::isPending(mlir::Value target) {
  auto found = carried_.find(target);
  return found != carried_.end() && l.hazards().isPending(found->second.base);
}

std::optional<Place> Tiles::allocate(mlir::Value tile, mlir::Value target) {
  auto found = reserved_.find(target ? target : tile);
  const bool isReserved = found != reserved_.end();
  std::optional<SharedMemory::Piece> reserved = isReserved ? found->second : reserve(tile);
  if (!reserved)
    return std::nullopt;
  SharedMemory::Piece piece = *reserved;
  mlir::Type type = elementType(tile);
  Place place;
  place.view.elementType = type;
  place.view.space = ir::Space::Shared;
  place.view.pointer = l.sharedPointer(piece);
  place.view.extents = v_.extents(tile);
  place.view.strides.resize(place.view.extents.size());
  Value stride = l.constant(1);
  for (size_t dim = place.view.extents.size(); dim-- > 0;) {
    place.view.strides[dim] = stride;
    int64_t row = dim + 1 == place.view.extents.size() && !isReserved ? paddedRow(tile) : 0;
    stride = row ? l.constant(row) : l.mul(stride, place.view.extents[dim]);
  }
  place.base = piece.root;
  place.window = piece.root;
  place.key = piece.root;
  return place;
}

/// Values computed in one region are not visible in the next: the place is described again where it is used.
std::optional<Place> Tiles::reservedPlace(mlir::Value tile, mlir::Value target) {
  return reserved_.contains(target) ? allocate(tile, target) : std::nullopt;
}

bool Tiles::toMemory(mlir::Value tile, std::optional<unsigned> along) {
  if (v_.place(tile) || (along && turnToMemory(tile, *along)))
    return true;
  auto place = allocate(tile, {});
  if (!place)
    return false;
  if (threadTiles_.contains(tile))
    spillThreadValues(tile, *place);
  else
    evaluateInto(tile, *place);
  v_.setPlace(tile, *place);
  return true;
}

void Tiles::copy(mlir::Value tile, const Place& from, const Place& to) {
  v_.enterScope();
  v_.setPlace(tile, from);
  {
    Frame frame(v_);
    nest().emitStores(Root{tile, to, nullptr});
  }
  v_.leaveScope();
}

void Tiles::evaluateInto(mlir::Value tile, const Place& destination) {
  mlir::Operation* op = tile.getDefiningOp();
  if (!v_.place(tile) && (!op || (op->getNumRegions() != 0 && !isPerElement(tile))))
    return l.fail(op ? op : tile.getParentBlock()->getParentOp(), "this tile");
  emitRoots(Root{tile, destination, nullptr});
}

//===-- thread regions ----------------------------------------------------------------------------------------===//

void Tiles::bindThreadValues(mlir::Value tile, llvm::ArrayRef<Value> values) {
  if (perThread_.contains(tile))
    return threads_.bindThreadValues(tile, values);
  threadTiles_[tile] = Values(values);
  for (auto [slot, value] : llvm::enumerate(values))
    v_.remember(tile, At{{Index{l.logicalId(static_cast<unsigned>(slot)), 0}}, 1}, value);
}

/// Computed by every thread from its own values.
bool Tiles::isThreadwise(mlir::Value tile) {
  bool all = true;
  Closure closure;
  closure.walk(tile, identityMap(1), [&](mlir::Value value, const DimMap& map) {
    if (threadTiles_.contains(value) || v_.place(value))
      return false;
    mlir::Operation* op = value.getDefiningOp();
    all &= op && isIdentity(map) &&
           (ir::isElementwise(op) || llvm::isa<ir::TileLoadOp, ir::IotaOp, arith::ConstantOp>(op) ||
            (llvm::isa<ir::BroadcastOp>(op) && !isTile(op->getOperand(0))));
    return all;
  });
  return all;
}

Values Tiles::threadValues(mlir::Value tile) {
  if (perThread_.contains(tile))
    return threads_.threadValues(tile);
  if (auto found = threadTiles_.find(tile); found != threadTiles_.end())
    return found->second;
  flushStores();
  if (!isThreadwise(tile))
    nest().prepareExpression(tile);
  Closure closure;
  closure.walk(tile, identityMap(1), [&](mlir::Value value, const DimMap&) {
    if (const Place* place = v_.place(value))
      l.hazards().read(place->base);
    else if (auto load = value.getDefiningOp<ir::TileLoadOp>())
      l.hazards().read(rootView(load.getView()));
    return !v_.place(value) && !threadTiles_.contains(value);
  });
  Values values;
  Value extent = v_.extents(tile)[0];
  for (unsigned slot = 0; slot < l.slots(); ++slot) {
    Value id = l.logicalId(slot);
    At at{{Index{id, 0}}, 1};
    values.push_back(l.emitIf(
        isLess(l, id, extent),
        [&]() -> Values {
          Frame frame(v_);
          return {v_.eval(tile, at)};
        },
        [&]() -> Values { return {l.zero(elementType(tile))}; })[0]);
  }
  return values;
}

void Tiles::spillThreadValues(mlir::Value tile, const Place& to) {
  l.hazards().write(to.base);
  for (auto [slot, value] : llvm::enumerate(threadTiles_.lookup(tile))) {
    Value id = l.logicalId(static_cast<unsigned>(slot));
    storeElements(l, to, At{{Index{id, 0}}, 1}, value, isLess(l, id, to.view.extents[0]), nullptr, false);
  }
}

//===-- control flow ------------------------------------------------------------------------------------------===//

mlir::Attribute Tiles::chooseSwizzle(mlir::Operation* alloc) {
  return dot::chooseSwizzle(l, llvm::cast<ir::AllocOp>(alloc));
}

void Tiles::failCarried(mlir::Value tile, mlir::Value target) {
  mlir::Operation* control = target.getDefiningOp() ? target.getDefiningOp() : target.getParentBlock()->getParentOp();
  std::string message = "a tile of this size that flows through control flow";
  if (auto bound = elementBound(tile))
    message += " (" + std::to_string(*bound * ir::vxt::scalarBytes(elementType(tile))) + " bytes; blocks have " +
               std::to_string(l.state.chip.sharedBytesPerBlock) + " bytes of shared memory)";
  if (auto why = control->getAttrOfType<mlir::StringAttr>(passes::kStaysAttribute))
    message += "; " + why.str();
  l.fail(tile.getDefiningOp() ? tile.getDefiningOp() : control, message);
}

/// Sums of products and values of threads flow in registers; other tiles that flow through control flow live in shared memory.
Values Tiles::registersFor(mlir::Value tile, mlir::Value target) {
  if (perThread_.contains(target))
    return perThreadValues(tile);
  flushStores();
  if (auto sums = collector_.registersFor(tile, target))
    return *sums;
  auto found = carried_.find(target);
  bool isFirst = found == carried_.end();
  if (isFirst) {
    auto place = allocate(tile, target);
    if (!place) {
      failCarried(tile, target);
      return {};
    }
    found = carried_.insert({target, *place}).first;
  } else if (auto here = reservedPlace(tile, target)) {
    found->second = *here;
  }
  if (const Place* same = v_.place(tile); same && same->base == found->second.base)
    return {};
  if (isFirst) {
    if (threadTiles_.contains(tile))
      spillThreadValues(tile, found->second);
    else if (v_.place(tile))
      copy(tile, *v_.place(tile), found->second);
    else
      evaluateInto(tile, found->second);
    return {};
  }
  scopes_.back().yields.push_back({tile, target, found->second});
  return {};
}

void Tiles::bindRegisters(mlir::Value target, mlir::Value like, llvm::ArrayRef<Value> registers) {
  if (perThread_.contains(target))
    return threads_.bindThreadValues(target, registers);
  if (collector_.bind(target, like, registers))
    return;
  auto found = carried_.find(like);
  if (found == carried_.end())
    return;
  Place place = found->second;
  if (auto here = reservedPlace(target, like))
    place = *here;
  v_.setPlace(target, place);
  carried_[target] = place;
}

}  // namespace vortex::target::gpu::tiles
