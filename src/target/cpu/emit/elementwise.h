// Scalar arithmetic of arith, math and vx for any number of lanes.
#pragma once

#include "target/cpu/codegen/target.h"
#include "target/interface/elementwise.h"

namespace vortex::target::cpu::emit {

using target::integerPredicate;
using target::isElementwise;

/// target::emitElementwise with this back end's scalars (emit/types.h).
llvm::Value* emitElementwise(llvm::IRBuilder<>& ir, const VectorFeatures& features, mlir::Operation* op,
                             llvm::ArrayRef<llvm::Value*> operands, unsigned lanes);

}  // namespace vortex::target::cpu::emit
