// What values are computed from.
#pragma once

#include <optional>
#include <set>
#include <utility>

#include "lang/flow/value/node.h"

namespace vortex::lang::flow {

/// Visits what the pending values are computed from, and these, each once. `visit` says of a phi whether to go on with its operands.
template <typename Visit> void walkOperands(const NodeTable& nodes, std::vector<ValueId> pending, Visit visit) {
  std::set<ValueId> seen;
  while (!pending.empty()) {
    const ValueId value = nodes.resolved(pending.back());
    pending.pop_back();
    if (!seen.insert(value).second)
      continue;
    const bool entersPhis = visit(value, nodes[value]);
    const Operands operands = nodes.operands(value);
    pending.insert(pending.end(), operands.begin(), operands.end());
    if (nodes[value].kind == NodeKind::Phi && entersPhis)
      pending.insert(pending.end(), nodes.phiOperands(value).begin(), nodes.phiOperands(value).end());
  }
}

/// What a value made of constants and these phis is; nothing where it is made of more.
std::optional<__int128> evaluate(const NodeTable& nodes, ValueId value,
                                 std::span<const std::pair<ValueId, __int128>> phis, unsigned depth = 0);

}  // namespace vortex::lang::flow
