// What one thread of a launch computes, as machine integers.
#pragma once

#include "lang/flow/graph/graph.h"
#include "lang/flow/race/launches.h"

namespace vortex::lang::flow {

using Number = std::optional<__int128>;
using Axes = std::array<int64_t, 3>;

/// applyOp, other than a selection, of operands that may be unknown.
Number applied(Op op, MachineType type, const Number& a, const Number& b);

/// Whether an operation or a conversion may be known where the operands that `isKnown` says are.
template <typename IsKnown> bool mayFollow(const Node& node, const IsKnown& isKnown) {
  if (node.kind == NodeKind::Convert)
    return isKnown(0);
  if (node.op == Op::Select)
    return isKnown(0) && (isKnown(1) || isKnown(2));
  const bool isEither = node.type == kBool && (node.op == Op::And || node.op == Op::Or);
  return isEither ? isKnown(0) || isKnown(1) : isKnown(0) && isKnown(1);
}

/// Where a thread is and what it knows. What memory holds is not known, nor arguments that the launch gives no number.
class Evaluator {
public:
  Evaluator(const Graph& graph, const SampleLaunch& launch);

  void start(const Axes& block, const Axes& thread);
  /// Of a phi, or of what a step made.
  void set(ValueId value, Number number);
  Number operator()(ValueId value) { return evaluate(graph_.values.resolved(value), 0); }
  const Axes& thread() const { return thread_; }
  const Axes& block() const { return block_; }

private:
  struct Cell {
    Number number;
    uint64_t age = 0;
    uint32_t setBy = 0;  ///< by set for this thread: stays until it is set again
  };

  Cell& cellOf(ValueId value);
  Number evaluate(ValueId value, unsigned depth);
  Number compute(ValueId value, unsigned depth);
  Number operation(const Node& node, ValueId value, unsigned depth);
  Number position(const Node& node) const;

  const Graph& graph_;
  const SampleLaunch& launch_;
  Axes block_{}, thread_{};
  std::vector<Cell> known_;
  std::vector<Number> arguments_;
  uint64_t age_ = 0;
  uint32_t started_ = 0;  ///< of those that were started
};

}  // namespace vortex::lang::flow
