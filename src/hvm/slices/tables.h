// Compiled definitions as the kernels read them.
#pragma once

#include "hvm/eval/code.h"

#include <optional>

namespace vortex::hvm::slices {

struct Tables {
  std::vector<uint32_t> ops, entries, slots, roots, rows;
  std::vector<uint64_t> opWords, items;
  uint64_t margin = 0;    // words that a step takes at most
  bool forks = false;     // operands are always needed, so that both may be reduced at once
  bool discards = false;  // unless the first one is stuck
  uint32_t native = 0;    // number of %gnf
};

/// Nothing: the program has what the kernels do not take.
std::optional<Tables> tabulate(const Code& code);

}  // namespace vortex::hvm::slices
