// vx.dot: block tiles of a matrix product through stages in shared memory.
#pragma once

#include "passes/plan/rules.h"
#include "target/gpu/dot/collector.h"

namespace vortex::target::gpu::dot {

/// Block tiles of whole-tensor products that share a phase, and the plan that goes with them: of the largest, where they differ.
passes::ProductRules productRules(const chip::Gpu& chip, llvm::ArrayRef<ir::DotOp> products);

/// The plan of a product: its attribute, or by what is known of its extents. `threads` 0: the plan chooses. None: see choosePlan().
std::optional<Plan> planFor(const chip::Gpu& chip, ir::DotOp dot, int64_t threads);

/// Hardware threads for a phase with products; none without. `phase`: vx.kernel.
std::optional<int64_t> threadsFor(const chip::Gpu& chip, mlir::Operation* phase);

/// Computes the product by all threads of the block and leaves it in shared memory, as the place of the result. False after Lowering::fail.
bool lowerDot(tiles::Evaluator& evaluator, ir::DotOp dot);

//===-- sums in registers, for Collector -------------------------------------------------------------------------===//

/// The product is exactly one block tile of its plan.
bool fillsBlockTile(Lowering& l, ir::DotOp dot);
Values zeroSums(tiles::Evaluator& evaluator, ir::DotOp dot);
SumsLayout addProduct(tiles::Evaluator& evaluator, ir::DotOp dot, Values& sums);
/// Rows of the sums can be multiplied where they are.
bool canScale(Lowering& l, ir::DotOp dot);
void scaleSums(tiles::Evaluator& evaluator, ir::DotOp dot, Values& sums, mlir::Value factors);
/// Leaves the sums in shared memory, as the place of `tile`.
void storeSums(tiles::Evaluator& evaluator, ir::DotOp dot, const SumsLayout& layout, llvm::ArrayRef<Value> sums,
               mlir::Value tile);

/// A layout for a shared allocation without one in which matrix instructions can read the operands it holds without bank conflicts; null:
/// it holds none, or row-major is as good.
ir::SwizzleAttr chooseSwizzle(Lowering& l, ir::AllocOp alloc);

}  // namespace vortex::target::gpu::dot
