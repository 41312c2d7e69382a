#include "lang/flow/race/evaluator.h"

#include <algorithm>

namespace vortex::lang::flow {

Evaluator::Evaluator(const Graph& graph, const SampleLaunch& launch) : graph_(graph), launch_(launch) {
  for (const Argument& argument : graph.arguments) {
    const auto scalar = std::find_if(launch.scalars.begin(), launch.scalars.end(),
                                     [&](const auto& each) { return each.first == argument.variable; });
    arguments_.push_back(scalar == launch.scalars.end() ? std::nullopt : Number(scalar->second));
  }
}

void Evaluator::start(const Axes& block, const Axes& thread) {
  block_ = block;
  thread_ = thread;
  ++age_;
  ++started_;
}

void Evaluator::set(ValueId value, Number number) {
  Cell& cell = cellOf(value);
  // Else computed values stay.
  const bool isNews = cell.setBy == started_ ? cell.number != number : number.has_value();
  age_ += isNews;
  cell = {number, age_, started_};
}

/// The graph's own values have the smallest numbers: proofs have made many since.
Evaluator::Cell& Evaluator::cellOf(ValueId value) {
  if (indexOf(value) >= known_.size())
    known_.resize(indexOf(value) + size_t(1));
  return known_[indexOf(value)];
}

Number Evaluator::evaluate(ValueId value, unsigned depth) {
  const Cell& cell = cellOf(value);
  if (cell.setBy == started_ || cell.age == age_)
    return cell.number;
  const Number number = depth < 2000 ? compute(value, depth + 1) : std::nullopt;
  Cell& made = cellOf(value);
  made.number = number;
  made.age = age_;
  return number;
}

Number Evaluator::compute(ValueId value, unsigned depth) {
  const Node& node = graph_.values[value];
  switch (node.kind) {
  case NodeKind::Constant: return node.constant();
  case NodeKind::Extent:
    if (node.number() < launch_.dims.size() && launch_.dims[node.number()])
      return *launch_.dims[node.number()];
    return std::nullopt;
  case NodeKind::Position: return position(node);
  case NodeKind::Convert:
    if (const Number of = evaluate(graph_.values.operand(value, 0), depth))
      return node.type.wrap(*of);
    return std::nullopt;
  case NodeKind::Op: return operation(node, value, depth);
  case NodeKind::Argument: return node.number() < arguments_.size() ? arguments_[node.number()] : std::nullopt;
  case NodeKind::Phi:
  case NodeKind::Load:
  case NodeKind::Ticket:
  case NodeKind::Unknown: return std::nullopt;
  }
  VORTEX_UNREACHABLE();
}

Number Evaluator::operation(const Node& node, ValueId value, unsigned depth) {
  const Number a = evaluate(graph_.values.operand(value, 0), depth);
  if (node.op == Op::Select)
    return a ? evaluate(graph_.values.operand(value, *a != 0 ? 1 : 2), depth) : std::nullopt;
  return applied(node.op, node.type, a, evaluate(graph_.values.operand(value, 1), depth));
}

Number applied(Op op, MachineType type, const Number& a, const Number& b) {
  const __int128 decides = op == Op::Or;
  if (type == kBool && (op == Op::And || op == Op::Or) && ((a && *a == decides) || (b && *b == decides)))
    return decides;
  return a && b ? Number(applyOp(op, type, *a, *b)) : std::nullopt;
}

Number Evaluator::position(const Node& node) const {
  const uint32_t axis = node.axis();
  const int64_t linear = thread_[0] + launch_.block[0] * (thread_[1] + launch_.block[1] * thread_[2]);
  switch (node.position()) {
  case PositionKind::ThreadId: return thread_[axis];
  case PositionKind::ThreadLocalId: return linear;
  case PositionKind::ThreadGlobalId: return block_[axis] * launch_.block[axis] + thread_[axis];
  case PositionKind::BlockId: return block_[axis];
  case PositionKind::BlockDim: return launch_.block[axis];
  case PositionKind::GridDim: return launch_.grid[axis];
  case PositionKind::WarpId: return linear / 32;
  case PositionKind::LaneId: return linear % 32;
  }
  VORTEX_UNREACHABLE();
}

}  // namespace vortex::lang::flow
