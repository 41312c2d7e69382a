// The end of an iteration: new values of carried tiles take the places of the old ones, which they may be computed from.
//
// A new value whose elements need no other elements of the old one is computed in its place. Before that, everything else that reads the old
// one: where each of several is needed by another, one of them is kept aside first.
#include "target/gpu/tiles/tiles_state.h"

namespace vortex::target::gpu::tiles {

bool Tiles::reads(const Yield& yield, const void* base) {
  if (yield.aside)
    return false;
  bool found = false;
  Closure closure;
  closure.walk(yield.tile, identityMap(rankOf(yield.tile)), [&](mlir::Value value, const DimMap&) {
    const Place* place = v_.place(value);
    found |= place && place->base == base;
    return !found && !place && !threadTiles_.contains(value);
  });
  return found;
}

void Tiles::keepAside(Yield& yield) {
  const Place* from = v_.place(yield.tile);
  if (!from) {
    if (!toMemory(yield.tile))
      return failCarried(yield.tile, yield.target);
    yield.aside = *v_.place(yield.tile);
    return;
  }
  auto place = allocate(yield.tile, {});
  if (!place)
    return failCarried(yield.tile, yield.target);
  copy(yield.tile, *from, *place);
  yield.aside = place;
}

void Tiles::emitYield(Yield& yield) {
  if (yield.aside)
    return copy(yield.tile, *yield.aside, yield.to);
  if (const Place* place = v_.place(yield.tile))
    return copy(yield.tile, *place, yield.to);
  if (threadTiles_.contains(yield.tile))
    return spillThreadValues(yield.tile, yield.to);
  if (!nest().readsOwnSink(Root{yield.tile, yield.to, nullptr}))
    return evaluateInto(yield.tile, yield.to);
  keepAside(yield);
  if (yield.aside)
    copy(yield.tile, *yield.aside, yield.to);
}

void Tiles::emitYields() {
  std::vector<Yield> waiting = std::exchange(scopes_.back().yields, {});
  while (!waiting.empty() && l.state.error.empty()) {
    auto isFree = [&](const Yield& yield) {
      return llvm::none_of(waiting,
                           [&](const Yield& other) { return &other != &yield && reads(other, yield.to.base); });
    };
    auto next = llvm::find_if(waiting, isFree);
    if (next == waiting.end()) {
      keepAside(waiting.front());
      std::rotate(waiting.begin(), waiting.begin() + 1, waiting.end());
      continue;
    }
    Yield yield = std::move(*next);
    waiting.erase(next);
    emitYield(yield);
  }
}

}  // namespace vortex::target::gpu::tiles
