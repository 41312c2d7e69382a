// Where things lie in block scratch: the tile of sums at 0, then operands, then partial sums. Byte offsets, multiples
// of 64.
#pragma once

#include "target/cpu/gemm/plan.h"

namespace vortex::target::cpu::gemm {

struct ScratchLayout {
  uint64_t operands = 0;  ///< packed panels of A, or rows of A
  uint64_t columns = 0;   ///< packed panels of B, or columns of a narrow B
  uint64_t partialSums = 0;
  uint64_t end = 0;  ///< with partial sums
};

/// Panels of B that a block of the direct path packs at a time: 512 bytes of each row of a row-major f32 B with AVX2.
inline constexpr uint64_t kLocalPanels = 8;

ScratchLayout packedLayout(const Plan& plan);  ///< emitPackedBlock
ScratchLayout localLayout(const Plan& plan);   ///< direct path, packing in the block
ScratchLayout directLayout(const Plan& plan);  ///< direct path, few rows or columns

}  // namespace vortex::target::cpu::gemm
