// Scalar arithmetic of arith, math and vx for any number of lanes.
#pragma once

#include "target/cpu/codegen/target.h"

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>
#include <mlir/IR/Operation.h>

namespace vortex::target::cpu::emit {

/// Ops that map elements to elements: arith and math arithmetic, comparisons, casts, select, constants (splats for tensors), vx.int,
/// vx.float_to_int. Result types may be scalars or tensors; only the element types matter here.
bool isElementwise(mlir::Operation* op);

/// The op's single result for `lanes` elements: operands in value form (emit/types.h), all scalars (lanes == 1) or <lanes x T>.
/// Adds no basic blocks. Fast-math flags are those of the op. Integer division is total whatever the op says, so that
/// inactive lanes never trap. Null: the op is not elementwise or its types are not supported.
llvm::Value* emitElementwise(llvm::IRBuilder<>& ir, const VectorFeatures& features, mlir::Operation* op,
                             llvm::ArrayRef<llvm::Value*> operands, unsigned lanes);

/// LLVM predicate of an arith.cmpi.
llvm::CmpInst::Predicate integerPredicate(mlir::Operation* compare);

}  // namespace vortex::target::cpu::emit
