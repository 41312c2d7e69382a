#include "metile/trace.h"

#include <algorithm>

namespace vortex::metile {

namespace {

bool hasEffect(const Op& op) {
  constexpr std::string_view kNames[] = {"store", "tile_store", "barrier", "print", "assert", "loop", "draw", "end"};
  return std::find(std::begin(kNames), std::end(kNames), op.name) != std::end(kNames) || op.name.starts_with("atomic_");
}

bool isOfLoop(const Op& op) { return op.name == "carry" || op.name == "yield"; }

/// The value that an operation gives: of `carry` and `yield` the variable.
int64_t definedBy(const Op& op) { return isOfLoop(op) ? op.operands[0].number : op.result; }

}  // namespace

void prune(Trace& trace) {
  std::vector<bool> live(static_cast<size_t>(trace.values));
  for (bool changed = true; changed;) {
    changed = false;
    // Backwards, so that one pass finds everything but what loops carry around.
    for (auto op = trace.ops.rbegin(); op != trace.ops.rend(); ++op) {
      const int64_t defined = definedBy(*op);
      if (!hasEffect(*op) && !(defined >= 0 && live[static_cast<size_t>(defined)]))
        continue;
      const bool skipsFirst = isOfLoop(*op) || op->name == "loop" || op->name == "draw";
      for (size_t i = skipsFirst ? 1 : 0; i < op->operands.size(); ++i) {
        const Operand& operand = op->operands[i];
        if ((operand.kind != Operand::Kind::Value && operand.kind != Operand::Kind::Shared) ||
            live[static_cast<size_t>(operand.number)])
          continue;
        live[static_cast<size_t>(operand.number)] = changed = true;
      }
    }
  }
  std::erase_if(trace.ops, [&](const Op& op) {
    const int64_t defined = definedBy(op);
    return !hasEffect(op) && !(defined >= 0 && live[static_cast<size_t>(defined)]);
  });
}

}  // namespace vortex::metile
