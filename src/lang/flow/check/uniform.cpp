#include "lang/flow/check/uniform.h"

#include <algorithm>

namespace vortex::lang::flow {
namespace {

Level most(Level a, Level b) { return std::max(a, b); }

/// Read-only memory of the launch: reading it early or late makes no difference.
bool isConstantStorage(Storage storage) { return storage == Storage::Constant; }

/// Every lane gets the same result.
bool isWarpWide(Builtin builtin) {
  switch (builtin) {
  case Builtin::WarpSum:
  case Builtin::WarpMax:
  case Builtin::WarpMin:
  case Builtin::WarpBallot:
  case Builtin::WarpAny:
  case Builtin::WarpAll: return true;
  default: return false;
  }
}

}  // namespace

Uniformity::Uniformity(const Graph& graph, const Structure& structure, const BlockShape& shape)
    : graph_(graph), structure_(structure), shape_(shape), valueLevels_(graph.values.size(), Level::Block),
      blockLevels_(graph.blocks.size(), Level::Block), joined_(graph.blocks.size()) {
  findJoins();
  while (true) {
    const bool blocks = updateBlocks(), values = updateValues();
    if (!blocks && !values)
      return;
  }
}

/// The blocks between a branch and where its sides have met again whose phis tell by which side a thread came. A loop header tells nothing of that
/// to the threads that are still in the loop, unless they came back by different ways.
void Uniformity::findJoins() {
  std::vector<uint32_t> seen(graph_.blocks.size(), UINT32_MAX);
  for (uint32_t b = 0; b < graph_.blocks.size(); ++b) {
    const BlockId branch{b};
    if (graph_.terminator(branch).kind != StepKind::Branch)
      continue;
    const BlockId join = structure_.postDominator(branch);
    std::vector<BlockId> pending(graph_[branch].successors.begin(), graph_[branch].successors.end());
    while (!pending.empty()) {
      const BlockId at = pending.back();
      pending.pop_back();
      if (seen[indexOf(at)] == b)
        continue;
      seen[indexOf(at)] = b;
      const Block& block = graph_[at];
      const LoopId loop = block.loop;
      const bool isHeader = loop != kNoLoop && graph_[loop].header == at;
      const bool leavesLoop = std::any_of(block.predecessors.begin(), block.predecessors.end(), [&](BlockId from) {
        return graph_[from].loop != block.loop && graph_.isInside(from, graph_[branch].loop) &&
               graph_[branch].loop != kNoLoop && !graph_.isInside(at, graph_[branch].loop);
      });
      const bool meets =
          isHeader ? graph_.isInside(branch, loop) && graph_[loop].latches.size() > 1 : block.predecessors.size() > 1;
      if (meets || leavesLoop)
        joined_[indexOf(at)].push_back(branch);
      if (at != join)
        pending.insert(pending.end(), block.successors.begin(), block.successors.end());
    }
  }
}

bool Uniformity::updateBlocks() {
  bool changed = false;
  for (uint32_t b = 0; b < graph_.blocks.size(); ++b) {
    Level level = blockLevels_[b];
    for (const ControlEdge& edge : structure_.controls(BlockId{b}))
      level = most(level, most(ofBlock(edge.branch), ofValue(graph_.terminator(edge.branch).value)));
    changed |= level != blockLevels_[b];
    blockLevels_[b] = level;
  }
  return changed;
}

bool Uniformity::updateValues() {
  bool changed = false;
  for (uint32_t v = 0; v < valueLevels_.size(); ++v) {
    const Level level = most(valueLevels_[v], levelOf(ValueId{v}));
    changed |= level != valueLevels_[v];
    valueLevels_[v] = level;
  }
  return changed;
}

Level Uniformity::levelOf(ValueId value) const {
  if (graph_.values.resolved(value) != value)
    return Level::Block;
  const Node& node = graph_.values[value];
  switch (node.kind) {
  case NodeKind::Constant:
  case NodeKind::Extent:
  case NodeKind::Argument: return Level::Block;
  case NodeKind::Position: return ofPosition(node);
  case NodeKind::Phi: return levelOfPhi(value);
  case NodeKind::Convert: return ofValue(graph_.values.operand(value, 0));
  case NodeKind::Op: {
    Level level = Level::Block;
    for (size_t i = 0; i < operandCount(node.op); ++i)
      level = most(level, ofValue(graph_.values.operand(value, i)));
    return level;
  }
  case NodeKind::Load:
  case NodeKind::Ticket:
  case NodeKind::Unknown: {
    const StepId step = graph_.definition(value);
    return step == kNoStep ? Level::Block : levelOfDefinition(step);
  }
  }
  VORTEX_UNREACHABLE();
}

Level Uniformity::ofPosition(const Node& node) const {
  switch (node.position()) {
  case PositionKind::BlockId:
  case PositionKind::BlockDim:
  case PositionKind::GridDim: return Level::Block;
  case PositionKind::WarpId: return Level::Warp;
  case PositionKind::ThreadLocalId:
  case PositionKind::LaneId: return Level::Lane;
  case PositionKind::ThreadId:
  case PositionKind::ThreadGlobalId: break;
  }
  int64_t before = 1;
  for (uint32_t axis = 0; axis < node.axis(); ++axis) {
    if (!shape_[axis])
      return Level::Lane;
    before *= *shape_[axis];
  }
  if (shape_[node.axis()] == 1 && node.position() == PositionKind::ThreadId)
    return Level::Block;
  return node.axis() > 0 && before % 32 == 0 ? Level::Warp : Level::Lane;
}

Level Uniformity::levelOfPhi(ValueId phi) const {
  Level level = Level::Block;
  for (ValueId operand : graph_.values.phiOperands(phi))
    level = most(level, ofValue(operand));
  for (BlockId branch : joined_[indexOf(graph_.values.phiBlock(phi))])
    level = most(level, most(ofBlock(branch), ofValue(graph_.terminator(branch).value)));
  return level;
}

Level Uniformity::ofPlace(PlaceId id) const {
  const Place& place = graph_[id];
  Level level = place.isUnknown() ? Level::Lane : Level::Block;
  for (const Projection& projection : place.path) {
    if (projection.kind == ProjectionKind::Slot)
      level = most(level, ofValue(projection.index));
    for (const DimRange& range : projection.dims) {
      level = most(level, ofValue(range.begin));
      if (!range.isIndex())
        level = most(level, ofValue(range.end));
    }
  }
  return level;
}

Level Uniformity::levelOfDefinition(StepId id) const {
  const Step& step = graph_[id];
  if (step.kind == StepKind::Atomic)
    return Level::Lane;
  if (step.kind == StepKind::Warp)
    return step.origin && isWarpWide(step.origin->builtin) ? Level::Warp : Level::Lane;
  Level level = Level::Block;
  for (ValueId use : graph_.uses(step))
    level = most(level, ofValue(use));
  bool isMemory = false;
  for (const Access& access : graph_.accessesOf(step)) {
    level = most(level, ofPlace(access.place));
    const Storage storage = graph_[access.place].storage;
    isMemory |= !isConstantStorage(storage);
    // A thread's own memory may hold another value in each thread.
    if (storage == Storage::Local || (storage == Storage::Variable && graph_[access.place].root != kNoLocal))
      level = Level::Lane;
  }
  return isMemory ? most(level, ofBlock(graph_.blockOf(id))) : level;
}

Level Uniformity::ofStep(StepId id) const {
  const Step& step = graph_[id];
  Level level = ofBlock(graph_.blockOf(id));
  for (ValueId use : graph_.uses(step))
    level = most(level, ofValue(use));
  if (step.value != kNoValue && graph_.definition(step.value) == kNoStep)
    level = most(level, ofValue(step.value));
  for (const Access& access : graph_.accessesOf(step))
    level = most(level, ofPlace(access.place));
  return level;
}

}  // namespace vortex::lang::flow
