// For tests: the value of a node by the machine's arithmetic, one operation at a time.
#pragma once

#include "lang/flow/value/node.h"

namespace vortex::lang::flow::testing {

/// Of constants, arguments, conversions and operations on two values; `row`: a number for every argument.
template <class Row> __int128 evaluate(const NodeTable& nodes, ValueId value, const Row& row) {
  const Node& node = nodes[value];
  if (node.kind == NodeKind::Constant)
    return node.constant();
  if (node.kind == NodeKind::Argument)
    return row[node.number()];
  const __int128 a = evaluate(nodes, nodes.operand(value, 0), row);
  return node.kind == NodeKind::Convert ? node.type.wrap(a)
                                        : applyOp(node.op, node.type, a, evaluate(nodes, nodes.operand(value, 1), row));
}

}  // namespace vortex::lang::flow::testing
