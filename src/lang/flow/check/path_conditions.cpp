#include "lang/flow/check/path_conditions.h"

#include <set>

namespace vortex::lang::flow {

/// Whether control that is at `from`, which dominates `to`, gets to `to` without passing `from` again. kNoValue: it depends on iterations.
ValueId PathConditions::reaching(BlockId from, BlockId to) {
  auto [found, isNew] = reaching_.try_emplace({from, to}, kNoValue);
  if (isNew)
    found->second = computeReaching(from, to);
  return found->second;
}

ValueId PathConditions::computeReaching(BlockId from, BlockId to) {
  NodeTable& nodes = graph_.values;
  if (from == to)
    return nodes.constant(kBool, 1);
  // Every way passes the dominator: what it takes to get there is said once.
  const BlockId between = structure_.dominator(to);
  if (between != from && graph_.isInside(to, graph_[between].loop)) {
    const ValueId way = reaching(from, between);
    if (way == kNoValue || isCertain(between, to))
      return way;
    const ValueId rest = reaching(between, to);
    return rest == kNoValue ? rest : nodes.op(Op::And, kBool, way, rest);
  }
  ValueId any = nodes.constant(kBool, 0);
  const LoopId loop = graph_[to].loop;
  for (BlockId predecessor : graph_[to].predecessors) {
    if (loop != kNoLoop && graph_[loop].header == to && graph_.isInside(predecessor, loop))
      continue;
    const ValueId way = along(from, predecessor, to);
    if (way == kNoValue)
      return kNoValue;
    any = nodes.op(Op::Or, kBool, any, way);
  }
  return any;
}

/// Every way from `from`, which dominates `to`, leads there in the same iteration. A post-dominator may be reached in a later one.
bool PathConditions::isCertain(BlockId from, BlockId to) {
  auto [found, isNew] = certain_.try_emplace({from, to}, false);
  if (!isNew)
    return found->second;
  if (!structure_.postDominates(to, from))
    return false;
  const LoopId loop = graph_[from].loop;
  std::vector<BlockId> pending(graph_[from].successors);
  std::set<BlockId> seen{to};
  while (!pending.empty()) {
    const BlockId at = pending.back();
    pending.pop_back();
    if (!seen.insert(at).second)
      continue;
    const Block& block = graph_[at];
    if (block.successors.empty() || !graph_.isInside(at, loop) || (loop != kNoLoop && graph_[loop].header == at))
      return false;
    pending.insert(pending.end(), block.successors.begin(), block.successors.end());
  }
  return found->second = true;
}

/// By the edge from the predecessor. A loop that is left in one place is left in the end.
ValueId PathConditions::along(BlockId from, BlockId predecessor, BlockId to) {
  NodeTable& nodes = graph_.values;
  const LoopId left = graph_[predecessor].loop;
  if (left != kNoLoop && !graph_.isInside(to, left)) {
    if (graph_.isInside(from, left) || graph_[left].exits.size() != 1 || !graph_.isInside(to, graph_[left].parent))
      return kNoValue;
    return reaching(from, graph_[left].header);
  }
  const ValueId way = reaching(from, predecessor);
  const Step& branch = graph_.terminator(predecessor);
  const auto& sides = graph_[predecessor].successors;
  if (way == kNoValue || branch.kind != StepKind::Branch || sides[0] == sides[1])
    return way;
  return nodes.op(Op::And, kBool, way, sides[0] == to ? branch.value : nodes.complement(branch.value));
}

const std::vector<ValueId>& PathConditions::at(BlockId block) {
  auto [found, isNew] = at_.try_emplace(block);
  if (!isNew)
    return found->second;
  std::vector<ValueId> conditions;
  for (BlockId at = block, above = structure_.dominator(at); above != kNoBlock;
       at = above, above = structure_.dominator(at)) {
    const LoopId loop = graph_[above].loop;
    if ((loop != kNoLoop && !graph_.isInside(block, loop)) || isCertain(above, at))
      continue;
    const ValueId condition = reaching(above, at);
    if (condition == kNoValue || !graph_.values.isConstant(condition) || graph_.values[condition].constant() == 0)
      conditions.push_back(condition);
  }
  return found->second = std::move(conditions);
}

//===-- phis ------------------------------------------------------------------------------------------------------===//

/// Of a join in one iteration.
ValueId PathConditions::selection(ValueId phi) {
  auto [found, isNew] = selections_.try_emplace(phi, kNoValue);
  if (!isNew)
    return found->second;
  const BlockId block = graph_.values.phiBlock(phi), from = structure_.dominator(block);
  const LoopId loop = graph_[block].loop;
  if (from == kNoBlock || (loop != kNoLoop && graph_[loop].header == block))
    return kNoValue;
  const auto operands = graph_.values.phiOperands(phi);
  const std::vector<ValueId> values(operands.begin(), operands.end());
  ValueId selected = values.back();
  for (size_t i = values.size() - 1; i-- > 0;) {
    const BlockId predecessor = graph_[block].predecessors[i];
    const LoopId left = graph_[predecessor].loop;
    if (left != kNoLoop && !graph_.isInside(block, left))
      return kNoValue;
    const ValueId way = along(from, predecessor, block);
    if (way == kNoValue)
      return kNoValue;
    selected = graph_.values.op(Op::Select, graph_.values.type(phi), way, values[i], selected);
  }
  const LoopId last = graph_[graph_[block].predecessors.back()].loop;
  if (last != kNoLoop && !graph_.isInside(block, last))
    return kNoValue;
  return selections_[phi] = selected;
}

/// Of a counter its begin, as all that are in a loop are in one iteration; of what is read behind a loop what the last iteration left, if all lanes
/// leave it together.
LaneSurroundings::Likeness PathConditions::likeness(ValueId phi) const {
  const BlockId block = graph_.values.phiBlock(phi);
  const LoopId loop = graph_[block].loop;
  if (loop != kNoLoop && graph_[loop].header == block) {
    const auto& counter = graph_[loop].counter;
    if (!counter || graph_.values.resolved(counter->phi) != phi)
      return {};
    return {counter->isPosition ? graph_.values.constant(kUsize, 0) : counter->begin, true};
  }
  if (graph_[block].predecessors.size() != 1)
    return {};
  const BlockId from = graph_[block].predecessors[0];
  const bool isTogether = uniformity_.ofBlock(from) != Level::Lane && uniformity_.ofBranch(from) != Level::Lane;
  return {isTogether ? graph_.values.phiOperands(phi)[0] : kNoValue, false};
}

}  // namespace vortex::lang::flow
