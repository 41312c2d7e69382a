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

/// Tensors, and what arrays and references hold, as their elements.
static Type elementOf(Type type) {
  while (type->isTensor() || type->kind == TypeKind::Array || type->kind == TypeKind::Ref)
    type = type->elem;
  return type;
}

/// Fields that can be written by themselves; an array in a struct is one.
static uint32_t leavesIn(Type type) {
  if (type->kind != TypeKind::Struct && type->kind != TypeKind::Tuple)
    return 1;
  uint32_t count = 0;
  for (Type each : type->elems)
    count += each->kind == TypeKind::Array ? 1 : leavesIn(each);
  return count;
}

/// The same of another tensor that may be meant instead.
static void addAlternative(const std::vector<Part>& other, std::vector<Part>& parts) {
  if (parts.empty())
    parts = other;
  else
    for (size_t i = 0; i < other.size(); ++i) {
      Part& into = parts[parts.size() == other.size() ? i : 0];
      into.units.insert(into.units.end(), other[i].units.begin(), other[i].units.end());
      into.isShared &= other[i].isShared;
    }
}

Tensors::Tensors(const Graph& graph) : graph_(graph), units_(graph.locals.size()), touched_(graph.places.size()) {
  std::set<LocalId> staged;
  for (uint32_t i = 0; i < graph.stepCount(); ++i)
    if (const Step& step = graph[StepId{i}]; step.kind == StepKind::Stage)
      if (const LocalId root = graph[step.place].root; leavesIn(elementOf(graph[root].type)) == 1)
        staged.insert(root);  // of a struct, other fields are left
  for (uint32_t i = 0; i < graph.stepCount(); ++i)
    if (const Step& step = graph[StepId{i}]; step.kind == StepKind::Empty && !staged.contains(graph[step.place].root))
      add(graph[step.place].root);
  for (uint32_t i = 0; count_ > 0 && i < graph.places.size(); ++i) {
    const Place& place = graph.places[i];
    touched_[i] = partsOf(place, place.root);
    for (size_t k = 1; k < place.candidates.size(); ++k)
      addAlternative(partsOf(place, place.candidates[k]), touched_[i]);
  }
}

void Tensors::add(LocalId id) {
  const Local& local = graph_[id];
  const bool isTracked =
      local.storage == Storage::Shared || local.storage == Storage::Local || local.storage == Storage::Tile;
  if (!local.variable || !isTracked || units_[indexOf(id)].slots > 0)
    return;
  const bool isArray = local.type->kind == TypeKind::Array && local.type->count <= kMostSlots;
  const auto slots = isArray ? static_cast<uint32_t>(local.type->count) : 1;
  const uint32_t leaves = std::max(leavesIn(elementOf(local.type)), 1u);
  units_[indexOf(id)] = {count_, slots, leaves, local.storage == Storage::Shared};
  count_ += slots * leaves;
}

std::vector<Part> Tensors::partsOf(const Place& place, LocalId root) const {
  const Units& units = units_[indexOf(root)];
  if (units.slots == 0)
    return {};
  uint32_t slot = 0, slots = units.slots, leaf = 0;
  Type type = elementOf(graph_[root].type);
  for (const Projection& each : place.path) {
    if (each.kind == ProjectionKind::Slot && &each == &place.path.front() && units.slots > 1 && !place.isUnknown() &&
        graph_.values.isConstant(each.index) && graph_.values[each.index].constant() < units.slots) {
      slot = static_cast<uint32_t>(graph_.values[each.index].constant());
      slots = 1;
    }
    if (each.kind != ProjectionKind::Field || each.field >= type->elems.size())
      continue;
    for (uint32_t before = 0; before < each.field; ++before)
      leaf += type->elems[before]->kind == TypeKind::Array ? 1 : leavesIn(type->elems[before]);
    type = type->elems[each.field];
  }
  const uint32_t leaves = type->kind == TypeKind::Array ? 1 : leavesIn(type);
  // Of a reference that is one of several it may not be known which field it is of.
  const bool isKnown = !place.isUnknown() || leavesIn(elementOf(place.type)) == leaves;
  std::vector<Part> out;
  for (uint32_t i = 0; i < leaves; ++i) {
    if (i == 0 || isKnown)
      out.push_back({{}, units.isShared});
    for (uint32_t k = 0; k < slots; ++k)
      out.back().units.push_back(units.first + (slot + k) * units.leaves + leaf + i);
  }
  return out;
}

}  // namespace vortex::lang::flow
