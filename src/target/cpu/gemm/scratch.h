// Where things lie in block scratch: the tile of sums at 0, then operands, then partial sums. Byte offsets, multiples of 64.
#pragma once

#include "target/cpu/gemm/plan.h"

namespace vortex::target::cpu::gemm {

struct ScratchLayout {
  uint64_t operands = 0;     ///< packed panels of A; direct path: rows of A
  uint64_t columns = 0;      ///< direct path: columns of a narrow B
  uint64_t partialSums = 0;
  uint64_t end = 0; ///< with partial sums
};

ScratchLayout packedLayout(const Plan &plan);
ScratchLayout directLayout(const Plan &plan);

} // namespace vortex::target::cpu::gemm
