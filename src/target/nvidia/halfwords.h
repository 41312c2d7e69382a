// Integers of 8 and 16 bits are negated, compared and made absolute as 32-bit ones. ptxas 13.0 (and the compiler of drivers) takes what neg.s16 and abs.s16 make of -32768 for
// 32768 where the result is extended, and the predicate of a comparison with a max.u16 from the wrong half of its VIMNMX.U16x2: `abs(x) as u32` of an i16
// was 32768, `x != 0 && max(x, 1) == 1` of a byte 2 was true (H200).
#pragma once

#include <llvm/IR/PassManager.h>

namespace vortex::target::nvidia {

/// The last pass over a function: others make narrow operations of wide ones again.
struct WidenHalfwords : llvm::PassInfoMixin<WidenHalfwords> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace vortex::target::nvidia
