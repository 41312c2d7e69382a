// The register-blocked product with a copy of B in block scratch, for the direct path.
#pragma once

#include "target/cpu/gemm/gemm.h"

namespace vortex::target::cpu::gemm {

/// Packs both operands of the block itself: better than a global copy of B while one block spans all rows.
void emitLocalBlock(llvm::IRBuilderBase& builder, const Plan& plan, const Problem& problem, llvm::Value* scratch,
                    const BlockRange& range);

}  // namespace vortex::target::cpu::gemm
