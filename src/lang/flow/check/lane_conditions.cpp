#include "lang/flow/check/lane_conditions.h"

namespace vortex::lang::flow {
namespace {

/// Made of comparisons by order of what can be followed.
bool isBound(LaneValues& lanes, const NodeTable& nodes, ValueId condition) {
  const Node node = nodes[condition];
  if (node.kind == NodeKind::Constant)
    return true;
  if (node.kind != NodeKind::Op)
    return false;
  const auto operand = [&](size_t index) { return nodes.operand(condition, index); };
  switch (node.op) {
  case Op::Lt:
  case Op::Le: {
    for (size_t i = 0; i < 2; ++i)
      if (!lanes.integer(operand(i)) && lanes.undecided.isOfLanes)
        return false;
    return true;
  }
  case Op::Sub:
  case Op::And:
  case Op::Or: return isBound(lanes, nodes, operand(0)) && isBound(lanes, nodes, operand(1));
  default: return false;
  }
}

}  // namespace

ActiveLanes activeLanes(LaneValues& lanes, const std::vector<ValueId>& conditions) {
  ActiveLanes result;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    result.isActive[lane] = lane < lanes.laneCount();
  for (ValueId condition : conditions) {
    if (condition == kNoValue) {
      result.isUnknown = true;
      continue;
    }
    const std::array<Truth, kLanes> truth = lanes.truth(condition);
    bool isOpen = false;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      isOpen = isOpen || truth[lane] == Truth::Unknown;
      result.isActive[lane] = result.isActive[lane] && truth[lane] != Truth::No;
    }
    if (isOpen && !lanes.isSameCondition(condition) && !isBound(lanes, lanes.nodes(), condition))
      result.isUnknown = true;
  }
  return result;
}

}  // namespace vortex::lang::flow
