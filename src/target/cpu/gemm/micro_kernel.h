// The innermost part of the packed product.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include "target/cpu/gemm/plan.h"

namespace vortex::target::cpu::gemm {

/// Internal function void(ptr a, ptr b, i64 depth, ptr tile): tile[mr][nr] = Σ_k a[k][mr] ⊗ b[k][nr], all packed without gaps; `b` and `tile`
/// aligned to a vector. Created once per module and plan. A function of its own so that its registers are allocated alone.
llvm::Function *microKernel(llvm::Module &module, llvm::Type *type, const Plan &plan);

} // namespace vortex::target::cpu::gemm
