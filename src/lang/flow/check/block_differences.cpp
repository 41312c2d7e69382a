#include "lang/flow/check/block_differences.h"

#include <algorithm>

namespace vortex::lang::flow {

static bool grow(std::vector<bool>& known, size_t at, bool differs) {
  if (!differs || known[at])
    return false;
  known[at] = true;
  return true;
}

BlockDifferences::BlockDifferences(const Graph& graph, const Structure& structure)
    : graph_(graph), structure_(structure), values_(graph.values.size()), blocks_(graph.blocks.size()),
      locals_(graph.locals.size()) {
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b = 0; b < blocks_.size(); ++b)
      changed |= grow(blocks_, b, causeOf(BlockId{b}) != kNoBlock);
    for (const Access& access : graph.accesses)
      if (access.mode != AccessMode::Read && graph[access.place].storage == Storage::Variable)
        for (LocalId local : graph[access.place].roots())
          changed |= grow(locals_, indexOf(local), ofStep(access.step));
    for (uint32_t v = 0; v < values_.size(); ++v)
      changed |= grow(values_, v, ofValue(ValueId{v}));
  }
}

BlockId BlockDifferences::causeOf(BlockId block) const {
  for (const ControlEdge& edge : structure_.controls(block)) {
    if (isDifferent(graph_.terminator(edge.branch).value))
      return edge.branch;
    if (blocks_[indexOf(edge.branch)])
      return edge.branch == block ? edge.branch : causeIn(edge.branch);
  }
  const LoopId loop = graph_[block].loop;
  if (loop != kNoLoop && graph_[loop].header != block && blocks_[indexOf(graph_[loop].header)])
    return causeIn(graph_[loop].header);
  return kNoBlock;
}

/// Of a block that is known to be reached by some only: the nearest condition that says so.
BlockId BlockDifferences::causeIn(BlockId block) const {
  std::vector<bool> seen(blocks_.size());
  std::vector<BlockId> pending{block};
  while (!pending.empty()) {
    const BlockId at = pending.back();
    pending.pop_back();
    if (seen[indexOf(at)])
      continue;
    seen[indexOf(at)] = true;
    for (const ControlEdge& edge : structure_.controls(at)) {
      if (isDifferent(graph_.terminator(edge.branch).value))
        return edge.branch;
      pending.push_back(edge.branch);
    }
    if (const LoopId loop = graph_[at].loop; loop != kNoLoop)
      pending.push_back(graph_[loop].header);
  }
  return block;
}

bool BlockDifferences::ofValue(ValueId value) const {
  if (graph_.values.resolved(value) != value)
    return false;
  const Node& node = graph_.values[value];
  switch (node.kind) {
  case NodeKind::Constant:
  case NodeKind::Extent:
  case NodeKind::Argument: return false;
  case NodeKind::Position:
    return node.position() == PositionKind::BlockId || node.position() == PositionKind::ThreadId ||
           node.position() == PositionKind::ThreadGlobalId;
  case NodeKind::Phi: return ofPhi(value);
  case NodeKind::Convert:
  case NodeKind::Op: {
    const Operands operands = graph_.values.operands(value);
    return std::any_of(operands.begin(), operands.end(), [&](ValueId each) { return isDifferent(each); });
  }
  case NodeKind::Load:
  case NodeKind::Ticket:
  case NodeKind::Unknown: {
    const StepId step = graph_.definition(value);
    return step != kNoStep && ofStep(step);
  }
  }
  return true;
}

bool BlockDifferences::ofPhi(ValueId phi) const {
  const auto operands = graph_.values.phiOperands(phi);
  if (std::any_of(operands.begin(), operands.end(), [&](ValueId each) { return isDifferent(each); }))
    return true;
  const auto& from = graph_[graph_.values.phiBlock(phi)].predecessors;
  return std::any_of(from.begin(), from.end(), [&](BlockId each) {
    return blocks_[indexOf(each)] || isDifferent(graph_.terminator(each).value);
  });
}

bool BlockDifferences::ofStep(StepId id) const {
  const Step& step = graph_[id];
  if (step.kind == StepKind::Atomic || blocks_[indexOf(graph_.blockOf(id))])
    return true;
  for (ValueId use : graph_.uses(step))
    if (isDifferent(use))
      return true;
  const auto accesses = graph_.accessesOf(step);
  return std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) { return ofPlace(access.place); });
}

/// Which element it is, or what blocks find there.
bool BlockDifferences::ofPlace(PlaceId id) const {
  const Place& place = graph_[id];
  if (place.isUnknown() || place.storage == Storage::Shared || place.storage == Storage::Local)
    return true;
  for (LocalId root : place.roots())
    if (place.storage == Storage::Variable && locals_[indexOf(root)])
      return true;
  const std::vector<ValueId> subscripts = place.subscripts();
  return std::any_of(subscripts.begin(), subscripts.end(), [&](ValueId each) { return isDifferent(each); });
}

}  // namespace vortex::lang::flow
