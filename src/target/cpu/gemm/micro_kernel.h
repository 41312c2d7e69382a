// The innermost part of the packed product.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include "target/cpu/gemm/plan.h"

namespace vortex::target::cpu::gemm {

/// Internal function void(ptr a, ptr b, i64 depth, ptr out, i64 outStride, i1 accumulate, ptr ahead, i64 aheadStride):
/// out[r·outStride + c] (+)= Σ_k a[k][r]·b[k][c] for mr rows and nr columns; every `unroll` steps the line at `ahead`
/// is prefetched and `ahead` moves by aheadStride bytes. a and b packed without gaps, b aligned to a vector. Created
/// once per module and plan. A function of its own so that its registers are allocated alone.
llvm::Function* microKernel(llvm::Module& module, llvm::Type* type, const Plan& plan);

}  // namespace vortex::target::cpu::gemm
