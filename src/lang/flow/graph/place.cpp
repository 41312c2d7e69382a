// Places: each once.
#include <algorithm>

#include "lang/flow/graph/builder.h"

namespace vortex::lang::flow {

constexpr bool isSubscript(ProjectionKind kind) {
  return kind == ProjectionKind::Slot || kind == ProjectionKind::At || kind == ProjectionKind::Window;
}

bool Place::hasDeref() const {
  return std::any_of(path.begin(), path.end(), [](const auto& each) { return each.kind == ProjectionKind::Deref; });
}

bool Place::isIndexed() const {
  return std::any_of(path.begin(), path.end(), [](const auto& each) { return isSubscript(each.kind); });
}

bool Place::isMovePath() const {
  return std::all_of(path.begin(), path.end(), [](const auto& each) { return each.kind == ProjectionKind::Field; });
}

std::vector<uint32_t> Place::fields() const {
  std::vector<uint32_t> out;
  for (const Projection& each : path) {
    if (each.kind != ProjectionKind::Field)
      break;
    out.push_back(each.field);
  }
  return out;
}

static size_t hashOf(const Place& place) {
  size_t hash = indexOf(place.root);
  const auto mix = [&](size_t next) { hash = (hash ^ next) * 0x9E3779B97F4A7C15u + (hash >> 29); };
  for (const Projection& each : place.path) {
    mix(static_cast<size_t>(each.kind));
    mix(each.field);
    mix(indexOf(each.index));
    for (const DimRange& dim : each.dims) {
      mix(indexOf(dim.begin));
      mix(indexOf(dim.end));
    }
  }
  for (LocalId local : place.candidates)
    mix(indexOf(local));
  return hash;
}

PlaceId GraphBuilder::intern(Place place) {
  const size_t hash = hashOf(place);
  for (auto [at, end] = placesByHash_.equal_range(hash); at != end; ++at)
    if (graph_[at->second] == place)
      return at->second;
  const PlaceId id{static_cast<uint32_t>(graph_.places.size())};
  graph_.places.push_back(std::move(place));
  placesByHash_.emplace(hash, id);
  return id;
}

PlaceId GraphBuilder::root(LocalId local) {
  if (indexOf(local) >= roots_.size())
    roots_.resize(graph_.locals.size(), kNoPlace);
  PlaceId& known = roots_[indexOf(local)];
  if (known == kNoPlace)
    known = intern({.root = local, .type = graph_[local].type, .storage = graph_[local].storage});
  return known;
}

/// What is taken of a window, as part of what the window is taken of.
std::vector<DimRange> GraphBuilder::inRootCoordinates(const Place& parent, const std::vector<DimRange>& dims) {
  if (parent.dims.empty())
    return dims;
  std::vector<DimRange> out = parent.dims;
  size_t next = 0;
  for (DimRange& dim : out) {
    if (dim.isIndex() || next >= dims.size())
      continue;
    const DimRange& inner = dims[next++];
    const ValueId base = dim.begin;
    dim.begin = graph_.values.op(Op::Add, kUsize, base, inner.begin);
    dim.end = inner.isIndex() ? kNoValue : graph_.values.op(Op::Add, kUsize, base, inner.end);
  }
  return out;
}

PlaceId GraphBuilder::extend(PlaceId parentId, Projection projection, Type type) {
  Place place = graph_[parentId];
  const bool isOfTensor = projection.kind == ProjectionKind::At || projection.kind == ProjectionKind::Window;
  const bool isOfStorage = place.storagePath == place.path.size() && place.dims.empty();
  if (isOfTensor)
    place.dims = inRootCoordinates(place, projection.dims);
  else if (isOfStorage)
    ++place.storagePath;
  place.type = type;
  if (stripRef(type)->isTensor() && !isOfTensor)
    place.storage = storageOf(type);
  place.path.push_back(std::move(projection));
  return intern(std::move(place));
}

PlaceId GraphBuilder::unknown(std::vector<LocalId> candidates, Type type, bool isWhole) {
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  const LocalId first = candidates.empty() ? kNoLocal : candidates[0];
  for (LocalId each : candidates)
    isWhole = isWhole && stripRef(graph_[each].type)->isTensor();
  return intern({.root = first,
                 .type = type,
                 .storage = storageOf(type),
                 .candidates = std::move(candidates),
                 .isWhole = isWhole});
}

PlaceId GraphBuilder::merge(PlaceId a, PlaceId b) {
  if (a == b)
    return a;
  std::vector<LocalId> candidates;
  bool isWhole = true;
  for (PlaceId id : {a, b}) {
    if (id == kNoPlace)
      continue;
    const Place& place = graph_[id];
    isWhole = isWhole && place.path.empty() && (place.isWhole || !place.isUnknown());
    if (place.isUnknown())
      candidates.insert(candidates.end(), place.candidates.begin(), place.candidates.end());
    else
      candidates.push_back(place.root);
  }
  return unknown(std::move(candidates), graph_[a == kNoPlace ? b : a].type, isWhole);
}

/// The place without what is computed inside the loop.
PlaceId GraphBuilder::outside(PlaceId id, LoopId loop) {
  if (id == kNoPlace)
    return id;
  const std::vector<ValueId> subscripts = graph_[id].subscripts();
  const bool isInside = std::any_of(subscripts.begin(), subscripts.end(),
                                    [&](ValueId each) { return graph_.isInside(loopOf(each), loop); });
  return isInside ? unknown({graph_[id].root}, graph_[id].type) : id;
}

std::vector<ValueId> Place::subscripts() const {
  std::vector<ValueId> out;
  for (const Projection& each : path) {
    out.push_back(each.index);
    for (const DimRange& dim : each.dims)
      out.insert(out.end(), {dim.begin, dim.end});
  }
  std::erase(out, kNoValue);
  return out;
}

}  // namespace vortex::lang::flow
