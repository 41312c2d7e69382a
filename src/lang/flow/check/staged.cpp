#include "lang/flow/check/staged.h"

#include <algorithm>

namespace vortex::lang::flow {

/// Arrays of more tensors are one of which nothing is certain.
constexpr uint64_t kMostStagedSlots = 64;

StagedTensors::StagedTensors(const Graph& graph) : graph_(graph) {
  for (uint32_t i = 0; i < graph.stepCount(); ++i) {
    const Step& step = graph[StepId{i}];
    if (step.kind != StepKind::Stage || graph[step.place].storage != Storage::Shared)
      continue;
    const Place& place = graph[step.place];
    for (LocalId root : place.roots()) {
      const Type type = graph[root].type;
      if (!graph[root].variable || units_.contains(root))
        continue;
      const bool isArray = type->kind == TypeKind::Array, isFollowed = isArray && type->count <= kMostStagedSlots;
      const uint32_t slots = isFollowed ? static_cast<uint32_t>(type->count) : 1;
      units_[root] = {root, count_, slots, !isArray || isFollowed, {}};
      count_ += slots;
      mostSlots_ = std::max(mostSlots_, slots);
    }
  }
}

StagedUnits StagedTensors::of(LocalId local) const {
  const auto found = units_.find(local);
  return found == units_.end() ? StagedUnits() : found->second;
}

std::vector<StagedUnits> StagedTensors::touched(PlaceId id, const Contexts& contexts, BlockId at,
                                                Context context) const {
  const Place& place = graph_[id];
  std::vector<StagedUnits> out;
  for (LocalId root : place.roots()) {
    StagedUnits units = of(root);
    if (units.count == 0)
      continue;
    units.isCertain = units.isCertain && !place.isUnknown();
    if (graph_[root].type->kind == TypeKind::Array && !place.path.empty() &&
        place.path.front().kind == ProjectionKind::Slot && units.isCertain) {
      const auto slot = contexts.known(place.path.front().index, at, context).number();
      units.isCertain = slot && *slot >= 0 && *slot < units.count;
      if (units.isCertain) {
        units.slot = static_cast<uint32_t>(*slot);
        units = {root, units.first + *units.slot, 1, true, units.slot};
      }
    }
    out.push_back(units);
  }
  return out;
}

const std::vector<StagedUnits>& StagingFlow::touched(PlaceId place, BlockId at, Context context) const {
  const auto [found, isNew] = touched_->try_emplace({place, at, context});
  if (isNew)
    found->second = tensors_.touched(place, contexts_, at, context);
  return found->second;
}

bool Staged::isCurrent() const {
  return std::any_of(groups.begin(), groups.end(), [](const auto& each) { return (each.second & 1) != 0; });
}

/// Groups this old stay so, however many follow.
constexpr uint16_t kOldest = 1u << 15;

void StagingFlow::closeGroup(State& state) {
  const auto after = [](const LastSync& last) { return LastSync{last.step, std::min(last.closed + 1, kMostInFlight)}; };
  for (Staged& tensor : state.tensors) {
    std::map<LastSync, uint16_t> closed;
    for (const auto& [last, groups] : tensor.groups)
      closed[after(last)] |= static_cast<uint16_t>(groups << 1 | (groups & kOldest));
    tensor.groups = std::move(closed);
  }
  std::set<LastSync> lasts;
  for (const LastSync& last : state.lastSyncs)
    lasts.insert(after(last));
  state.lastSyncs = std::move(lasts);
}

void StagingFlow::synchronize(StepId id, State& state) const {
  for (Staged& tensor : state.tensors) {
    uint16_t all = 0;
    for (const auto& [last, groups] : tensor.groups)
      all |= static_cast<uint16_t>(groups << 1) & ((2u << kMostInFlight) - 1);
    tensor.groups.clear();
    if (all != 0)
      tensor.groups[{id, 0}] = all;
    if (tensor.content & kPending)
      tensor.content = static_cast<uint8_t>((tensor.content & ~kPending) | kReady);
    tensor.isTouched = false;
    tensor.stagers.clear();
  }
  state.lastSyncs = {{id, 0}};
}

void StagingFlow::stage(StepId id, const Step& step, State& state, Context context) const {
  if (plan_.barriers.contains(id))
    for (Staged& tensor : state.tensors)
      tensor.isTouched = false;
  const Place& source = graph_[graph_.accessesOf(step).front().place];
  const auto& all = touched(step.place, graph_.blockOf(id), context);
  for (const StagedUnits& units : all)
    for (Staged& tensor : StagedState::of(state, units)) {
      const bool isCertain = units.isCertain && units.count == 1 && all.size() == 1;
      tensor.content = isCertain ? uint8_t(kPending) : static_cast<uint8_t>(tensor.content | kPending);
      tensor.isTouched = tensor.isTouched && !isCertain;
      for (const LastSync& last : state.lastSyncs)
        tensor.groups[last] |= 1;
      if (isCertain && graph_[step.place].dims.empty()) {
        tensor.stagers.clear();
        tensor.sources.clear();
      }
      tensor.stagers.insert(id);
      tensor.sources.insert(source.isUnknown() ? kNoLocal : source.root);
    }
}

void StagingFlow::step(StepId id, const Step& step, State& state, Context context) const {
  switch (step.kind) {
  case StepKind::Barrier: return synchronize(id, state);
  case StepKind::Stage: return stage(id, step, state, context);
  case StepKind::Declare:
  case StepKind::Empty:
    for (Staged& tensor : StagedState::of(state, tensors_.of(graph_[step.place].root)))
      tensor.content = kNothing;
    return;
  default: break;
  }
  for (const Access& access : graph_.accessesOf(step))
    for (const StagedUnits& units : touched(access.place, graph_.blockOf(id), context))
      for (Staged& tensor : StagedState::of(state, units)) {
        tensor.isTouched = true;
        if (access.mode != AccessMode::Read)
          tensor.content =
              units.isCertain && units.count == 1 ? uint8_t(kReady) : static_cast<uint8_t>(tensor.content | kReady);
      }
}

bool StagingFlow::edge(BlockId from, uint32_t successor, State& state) const {
  if (closed.contains({from, successor}))
    return false;
  const BlockId to = graph_[from].successors[successor];
  const LoopId loop = graph_[to].loop;
  if (loop == kNoLoop || graph_[loop].header != to)
    return true;
  if (!graph_.isInside(from, loop)) {
    if (plan_.closing.contains(loop))
      closeGroup(state);
    return true;
  }
  return firstOf == kNoLoop || !graph_.isInside(firstOf, loop);
}

void StagingFlow::join(State& into, const State& other, bool) const {
  for (size_t i = 0; i < into.tensors.size(); ++i) {
    Staged& tensor = into.tensors[i];
    const Staged& joined = other.tensors[i];
    tensor.content |= joined.content;
    for (const auto& [last, groups] : joined.groups)
      tensor.groups[last] |= groups;
    tensor.isTouched |= joined.isTouched;
    tensor.stagers.insert(joined.stagers.begin(), joined.stagers.end());
    tensor.sources.insert(joined.sources.begin(), joined.sources.end());
  }
  into.lastSyncs.insert(other.lastSyncs.begin(), other.lastSyncs.end());
}

}  // namespace vortex::lang::flow
