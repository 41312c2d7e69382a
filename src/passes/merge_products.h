// Products that tile code takes in steps of their depth, as one product.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace vortex::passes {

/// `for k in range(from, to, step) { acc += a[.., k..+step] @ b[k..+step, ..] }` becomes `acc += a[.., from..to] @ b[from..to, ..]`, where
/// the operands may be anything that is computed from such windows element by element and copies of them in shared memory are read at their
/// source. The sums of a product have no order, so the result stays what it is, but for sums narrower than f32, which every step rounds: those
/// loops stay. Before copies to shared memory are expanded.
void mergeProducts(mlir::ModuleOp module);

/// `vx-merge-products`.
std::unique_ptr<mlir::Pass> createMergeProductsPass();

}  // namespace vortex::passes
