#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>

namespace vortex::passes {

/// `vx-narrow-math`. Before: vx as generated. After: f32 values that only reach 16-bit formats (analysis/narrow_uses.h) are computed without
/// cancellations that the expression as written has (1 + tanh, 1 + erf, 1 / (1 + exp)), by products instead of divisions where that is safe, and
/// functions, roots and divisions whose form may be less accurate are marked with how much (ir::kNarrowAttr and the others). Errors of one
/// result stay below 2^-16 (f16) or 2^-13 (bf16 and f8) together, beside the roundings of f32. Only operations that allow contraction are
/// touched: `@strict` leaves all as it is. Runs once, before anything that depends on a schedule: results do not depend on it.
std::unique_ptr<mlir::Pass> createNarrowMathPass();

}  // namespace vortex::passes
