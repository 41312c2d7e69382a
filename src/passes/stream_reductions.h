// Softmax of a product, multiplied by another one, in one pass over the axis that both contract or reduce: the online softmax of
// FlashAttention as a rule on data flow, for every target.
//
// Before, in a whole-tensor kernel, with t the streamed axis (last in S; rows: its other axes):
//   S = any elementwise function, with rows repeated, masks and casts, of q @ k.transpose()      [rows, t]
//   M = max_t S, X = exp(S - M), L = Σ_t X·f, …                                                  [rows]
//   O = (X·f·g or X·f / L, cast) @ V, …                                                          [rows, d]
//
// After (normal form). Attribute kStreamedAttr on the loop; `rows`: the axes of M.
//   for t0 = begin to end step c  carrying  m, l, …, acc, …   (maximum; sums in program order; products in program order)
//     n  = minui(T - t0, c)                    extent of the chunk; loads start at t0 along t, iota along t counts from t0
//     s  = S of the chunk                      exactly one vx.dot; loads, transposes, casts, broadcasts, iota and anything elementwise around it
//     h  = maximumf(m, vx.reduce maxf s)       [rows]
//     z  = select(h == -inf, 0, h)             [rows]
//     r  = exp(m - z)                          [rows]     exp2 where the program has it
//     x  = exp(s - broadcast z)                [rows, n]
//     l' = l·r + vx.reduce addf (x·f)          [rows]     f: factors that vary along t (weights, dropout); the sum is of x as it is, not as rounded
//     acc' = vx.dot(cast(x·f), v, acc·broadcast r)        v: the chunk's rows of V, any elementwise expression of loads; cast: to V's element type
//     yield h, l', …, acc', …
//   Between the two dots stand elementwise operations, broadcasts of rows, the reductions along t, and nothing else.
// After the loop l + (m - m) is L (NaN where the maximum is infinite, as written), m is M, and acc·g (or acc / L; acc + (m - m) where
// nothing is divided by a sum) is O; where T may be 0,
// select(T == 0, acc, …). All of that, and what is computed from it, is elementwise and in the same block.
//
// m, l, r and acc are f32 (f64 where the scores are); the algebra and its error: base/maximum_sum.h. Weights are rounded to V's type before
// they are divided by their sum.
#pragma once

#include "ir/vx.h"

#include "mlir/Pass/Pass.h"

#include <memory>

namespace vortex::passes {

/// On the loops.
inline constexpr llvm::StringLiteral kStreamedAttr = "vx.streamed";
/// On the entry: strings for the build report.
inline constexpr llvm::StringLiteral kNotesAttr = "vx.notes";

/// Rewrites whole-tensor kernels in which softmax is followed by a product, if the conditions of stream_match.h hold; leaves a note
/// in any case. `step`: elements of the streamed axis per iteration.
void streamReductions(mlir::ModuleOp module, int64_t step);

/// `vx-stream-reductions` for vx-opt.
std::unique_ptr<mlir::Pass> createStreamReductionsPass(int64_t step = 64);

}  // namespace vortex::passes
