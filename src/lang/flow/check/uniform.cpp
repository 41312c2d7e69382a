#include "lang/flow/check/uniform.h"

#include <algorithm>

#include "lang/flow/check/surroundings.h"
#include "lang/sema/kernel/roots.h"

namespace vortex::lang::flow {
namespace {

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

/// Something asks whether the lanes of a warp agree.
bool asksForWarps(const Graph& graph) {
  for (StepId step{0}; indexOf(step) < graph.stepCount(); step = StepId{indexOf(step) + 1})
    if (const StepKind kind = graph[step].kind;
        (kind == StepKind::Warp && !isBlockReduction(graph[step].origin->builtin)) || kind == StepKind::WarpBarrier ||
        kind == StepKind::Output)
      return true;
  return false;
}

}  // namespace

Uniformity::Uniformity(Graph& graph, const Structure& structure, std::span<const BlockShape> shapes)
    : graph_(graph), structure_(structure), shapes_(shapes.begin(), shapes.end()),
      valueLevels_(graph.values.size(), Level::Block), blockLevels_(graph.blocks.size(), Level::Block),
      branchLevels_(graph.blocks.size(), Level::Block), localLevels_(graph.locals.size(), Level::Block),
      isAssigned_(graph.locals.size()), isWritten_(graph.locals.size()), joined_(graph.blocks.size()) {
  if (shapes_.empty())
    shapes_.emplace_back();
  if (asksForWarps(graph)) {
    values_ = std::make_unique<Values>(graph.values, surroundingsOf(graph, structure, graph.values));
    for (const BlockShape& shape : shapes_)
      lanes_.emplace_back(*values_, shape,
                          LaneSurroundings{[this](ValueId leaf) { return ofValue(leaf) != Level::Lane; }});
  }
  findWrites();
  findJoins();
  settle();
}

/// Variables apart from the memory that is reached through them.
void Uniformity::findWrites() {
  for (const Access& access : graph_.accesses) {
    if (access.mode == AccessMode::Read)
      continue;
    const Place& place = graph_[access.place];
    std::vector<bool>& written = place.storage == Storage::Variable ? isAssigned_ : isWritten_;
    if (place.root != kNoLocal)
      written[indexOf(place.root)] = true;
    for (LocalId each : place.candidates)
      isAssigned_[indexOf(each)] = isWritten_[indexOf(each)] = true;
  }
}

void Uniformity::raise(BlockId branch, Level level) {
  branchLevels_[indexOf(branch)] = most(branchLevels_[indexOf(branch)], level);
}

void Uniformity::settle() {
  while (true) {
    const bool blocks = updateBlocks(), locals = updateLocals(), values = updateValues();
    if (!blocks && !locals && !values)
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
      level = most(level, most(ofBlock(edge.branch), ofBranch(edge.branch)));
    // What is written in a loop is done in its iterations, even where it leads out: threads that left before are not there.
    if (const LoopId loop = graph_.blocks[b].loop; loop != kNoLoop)
      level = most(level, ofBlock(graph_[loop].header));
    changed |= level != blockLevels_[b];
    blockLevels_[b] = level;
  }
  return changed;
}

/// Variables in places hold what is ever stored there, wherever that is.
bool Uniformity::updateLocals() {
  bool changed = false;
  const auto raise = [&](LocalId local, Level level) {
    Level& known = localLevels_[indexOf(local)];
    changed |= known < level;
    known = most(known, level);
  };
  for (const Access& access : graph_.accesses) {
    if (access.mode == AccessMode::Read)
      continue;
    const Place& place = graph_[access.place];
    const Level level = ofStep(access.step);
    if (place.root != kNoLocal && place.storage == Storage::Variable)
      raise(place.root, level);
    for (LocalId each : place.candidates)
      raise(each, level);
  }
  return changed;
}

bool Uniformity::updateValues() {
  bool changed = false;
  for (LaneValues& lanes : lanes_)  // what they found was so as long as these levels were
    lanes.forget();
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
  case NodeKind::Op: return levelOfOperation(value);
  case NodeKind::Load:
  case NodeKind::Ticket:
  case NodeKind::Unknown: {
    const StepId step = graph_.definition(value);
    return step == kNoStep ? Level::Block : levelOfDefinition(step);
  }
  }
  VORTEX_UNREACHABLE();
}

Level Uniformity::levelOfOperation(ValueId value) const {
  Level level = Level::Block;
  for (ValueId operand : graph_.values.operands(value))
    level = most(level, ofValue(operand));
  return level == Level::Lane && isOneInWarp(value) ? Level::Warp : level;
}

/// `thread.local_id / 32 == 0`, `thread.local_id < 64`: asked again while levels grow, until it is not so.
bool Uniformity::isOneInWarp(ValueId value) const {
  const Op op = graph_.values[value].op;
  const bool mayBe = op == Op::Div || op == Op::Shr || op == Op::And || op == Op::Sub || op == Op::Lt || op == Op::Le;
  if (lanes_.empty() || !mayBe)
    return false;
  const auto [known, isNew] = oneInWarp_.try_emplace(indexOf(value), true);
  for (LaneValues& lanes : lanes_)
    known->second = known->second && lanes.isSameInWarp(value);
  return known->second;
}

/// Where a warp lacks the lane, as the last one of a block may, each of its lanes keeps its own value.
bool Uniformity::everyWarpHas(ValueId lane) const {
  ValueId value = graph_.values.resolved(lane);
  while (graph_.values[value].kind == NodeKind::Convert)
    value = graph_.values.resolved(graph_.values.operand(value, 0));
  const Node& node = graph_.values[value];
  const auto number = node.kind == NodeKind::Constant ? static_cast<int64_t>(node.constant() & (kLanes - 1)) : kLanes;
  return std::all_of(shapes_.begin(), shapes_.end(), [&](const BlockShape& shape) {
    int64_t rest = 1;  // threads of the last warp, 0: all; where an axis is not known, of the smallest one there may be
    bool isKnown = true;
    for (const auto& threads : shape) {
      rest = rest * (threads.value_or(1) % kLanes) % kLanes;
      isKnown &= threads.has_value();
    }
    return rest == 0 || number < (isKnown ? rest : 1);
  });
}

Level Uniformity::ofPosition(const Node& node) const {
  Level level = Level::Block;
  for (const BlockShape& shape : shapes_)
    level = most(level, ofPosition(node, shape));
  return level;
}

Level Uniformity::ofPosition(const Node& node, const BlockShape& shape) {
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
  if (shape[node.axis()] == 1 && node.position() == PositionKind::ThreadId)
    return Level::Block;
  int64_t row = 1;  // threads before the next one of this axis, modulo 32
  for (uint32_t axis = 0; axis < node.axis(); ++axis)
    row = row * (shape[axis].value_or(1) % kLanes) % kLanes;
  return node.axis() > 0 && row == 0 ? Level::Warp : Level::Lane;
}

Level Uniformity::levelOfPhi(ValueId phi) const {
  Level level = Level::Block;
  for (ValueId operand : graph_.values.phiOperands(phi))
    level = most(level, ofValue(operand));
  for (BlockId branch : joined_[indexOf(graph_.values.phiBlock(phi))])
    level = most(level, most(ofBlock(branch), ofBranch(branch)));
  return level;
}

Level Uniformity::ofPlace(PlaceId id) const {
  const Place& place = graph_[id];
  Level level = place.isUnknown() ? Level::Lane : Level::Block;
  for (ValueId subscript : place.subscripts())
    level = most(level, ofValue(subscript));
  return level;
}

/// What is read there.
Level Uniformity::ofMemory(PlaceId id, BlockId at) const {
  const Place& place = graph_[id];
  if (place.isUnknown() || place.storage == Storage::Local)
    return Level::Lane;
  if (place.storage == Storage::Constant || place.root == kNoLocal)
    return Level::Block;
  if (place.storage == Storage::Variable)
    return isAssigned_[indexOf(place.root)] ? most(ofLocal(place.root), ofBlock(at)) : Level::Block;
  return isWritten_[indexOf(place.root)] ? ofBlock(at) : Level::Block;
}

Level Uniformity::levelOfDefinition(StepId id) const {
  const Step& step = graph_[id];
  if (step.kind == StepKind::Atomic)
    return Level::Lane;
  const bool isWarp = step.kind == StepKind::Warp;
  if (isWarp && step.origin->builtin == Builtin::ShuffleIndex) {  // the value of one lane
    const ValueId lane = graph_.uses(step)[1];
    return ofValue(lane) == Level::Lane || !everyWarpHas(lane) ? Level::Lane : Level::Warp;
  }
  if (isWarp && isBlockReduction(step.origin->builtin))
    return Level::Block;
  if (isWarp)
    return isWarpWide(step.origin->builtin) ? Level::Warp : Level::Lane;
  Level level = Level::Block;
  for (ValueId use : graph_.uses(step))
    level = most(level, ofValue(use));
  for (const Access& access : graph_.accessesOf(step))
    level = most(level, most(ofPlace(access.place), ofMemory(access.place, graph_.blockOf(id))));
  return level;
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
