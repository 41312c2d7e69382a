#include "lang/flow/check/contents.h"

#include <algorithm>
#include <set>

namespace vortex::lang::flow {

/// Arrays of more tensors are one.
constexpr uint64_t kMostSlots = 16;

void Content::require(ValueId condition, bool holds) {
  if (!isUnwritten)
    return;
  if (known(condition) == !holds) {
    isUnwritten = false;
    under.clear();
  } else {
    remember({condition, holds});
  }
}

void Content::remember(Guard guard) {
  auto at = std::lower_bound(under.begin(), under.end(), guard,
                             [](const Guard& a, const Guard& b) { return a.value < b.value; });
  if (at == under.end() || at->value != guard.value)
    under.insert(at, guard);
}

std::optional<bool> Content::known(ValueId condition) const {
  for (const Guard& guard : under)
    if (guard.value == condition)
      return guard.holds;
  return std::nullopt;
}

void Content::merge(const Content& other) {
  if (other.isUnwritten && isUnwritten)
    std::erase_if(under, [&](const Guard& guard) {
      return std::find(other.under.begin(), other.under.end(), guard) == other.under.end();
    });
  else if (other.isUnwritten)
    under = other.under;
  isUnwritten |= other.isUnwritten;
  isWritten |= other.isWritten;
}

void merge(std::optional<Contents>& into, const std::optional<Contents>& other) {
  if (!into)
    into = other;
  else if (other)
    for (size_t i = 0; i < into->size(); ++i)
      (*into)[i].merge((*other)[i]);
}

Tensors::Tensors(const Graph& graph) : graph_(graph), units_(graph.locals.size()) {
  std::set<LocalId> staged;
  for (uint32_t i = 0; i < graph.stepCount(); ++i)
    if (const Step& step = graph[StepId{i}]; step.kind == StepKind::Stage)
      staged.insert(graph[step.place].root);
  for (uint32_t i = 0; i < graph.stepCount(); ++i)
    if (const Step& step = graph[StepId{i}]; step.kind == StepKind::Empty && !staged.contains(graph[step.place].root))
      add(graph[step.place].root);
}

void Tensors::add(LocalId id) {
  const Local& local = graph_[id];
  const bool isTracked =
      local.storage == Storage::Shared || local.storage == Storage::Local || local.storage == Storage::Tile;
  if (!local.variable || !isTracked || units_[indexOf(id)].count > 0)
    return;
  const bool isArray = local.type->kind == TypeKind::Array && local.type->count <= kMostSlots;
  const auto count = isArray ? static_cast<uint32_t>(local.type->count) : 1;
  units_[indexOf(id)] = {count_, count, local.storage == Storage::Shared};
  count_ += count;
}

std::vector<Units> Tensors::touched(const Place& place) const {
  std::vector<Units> out;
  if (place.isUnknown()) {
    for (LocalId each : place.candidates)
      out.push_back(of(each));
    return out;
  }
  Units units = of(place.root);
  if (units.count > 1 && !place.path.empty() && place.path.front().kind == ProjectionKind::Slot) {
    const ValueId slot = place.path.front().index;
    if (graph_.values.isConstant(slot) && graph_.values[slot].constant() < units.count)
      units = {units.first + static_cast<uint32_t>(graph_.values[slot].constant()), 1, units.isShared};
  }
  return {units};
}

}  // namespace vortex::lang::flow
