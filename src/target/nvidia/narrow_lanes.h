// Vectors of integers of 8 and 16 bits are computed lane by lane. LLVM has pairs of 16 bits for sm_90, but cannot select all that it makes of them (a mask of
// comparisons, "Cannot select: v2i16 = setcc"). What only moves bits stays: and, or, xor, shuffles, extensions of more than one bit, loads and stores.
//
// A sign-extended narrow integer that is read as an unsigned one and converted to a float is converted from 64 bits: ptxas 13.0 makes I2F.F64.S8 of
// cvt.s32.s8 and cvt.rn.f64.u32, a negative number.
#pragma once

#include <llvm/IR/PassManager.h>

namespace vortex::target::nvidia {

/// The last pass over a function: others make vectors of lanes again.
struct SplitNarrowLanes : llvm::PassInfoMixin<SplitNarrowLanes> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace vortex::target::nvidia
