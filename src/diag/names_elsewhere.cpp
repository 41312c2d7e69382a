#include "diag/names_elsewhere.h"

#include <span>
#include <utility>

namespace vortex::diag {

static const char* find(std::span<const std::pair<std::string_view, const char*>> names, std::string_view name) {
  for (const auto& [other, ours] : names)
    if (other == name)
      return ours;
  return nullptr;
}

const char* nameElsewhere(std::string_view name) {
  static constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"threadIdx", "`thread.id`, over the whole grid `thread.global_id`"},
      {"blockIdx", "`block.id`"},
      {"blockDim", "`block.dim`"},
      {"gridDim", "`grid.dim`"},
      {"warpSize", "`warp.size`"},
      {"__syncthreads", "`sync_block()`"},
      {"syncthreads", "`sync_block()`"},
      {"__syncwarp", "`sync_warp()`"},
      {"__shfl_xor_sync", "`warp.shuffle_xor(value, mask)`"},
      {"__shfl_down_sync", "`warp.shuffle_down(value, distance)`"},
      {"__shfl_up_sync", "`warp.shuffle_up(value, distance)`"},
      {"__shfl_sync", "`warp.broadcast(value, lane)`"},
      {"__ballot_sync", "`warp.ballot(condition)`"},
      {"atomicAdd", "`atomic_add(&mut t[i], value)`"},
      {"atomicMin", "`atomic_min(&mut t[i], value)`"},
      {"atomicMax", "`atomic_max(&mut t[i], value)`"},
      {"atomicExch", "`atomic_exchange(&mut t[i], value)`"},
      {"atomicCAS", "`atomic_compare_exchange(&mut t[i], expected, value)`"},
      {"expf", "`exp`, for floats of every width"},
      {"sqrtf", "`sqrt`, for floats of every width"},
      {"fabs", "`abs`"},
      {"fabsf", "`abs`"},
      {"fmaxf", "`max`"},
      {"fminf", "`min`"},
      {"println", "`print`"},
      {"printf", "`print`"},
      {"True", "`true`"},
      {"False", "`false`"},
      {"INFINITY", "`inf`"},
      {"argmax", "`select(x == x.max(dim = 1, keepdim = true), arange(N), N as i32).min(dim = 1)`"},
      {"argmin", "`select(x == x.min(dim = 1, keepdim = true), arange(N), N as i32).min(dim = 1)`"},
      {"std", "`sqrt((d * d).mean(dim = 1))` with `let d = x - x.mean(dim = 1, keepdim = true)`"},
      {"variance", "`(d * d).mean(dim = 1)` with `let d = x - x.mean(dim = 1, keepdim = true)`"},
      {"norm", "`sqrt((x * x).sum())`"},
      {"maximum", "`max(a, b)`"},
      {"minimum", "`min(a, b)`"},
      {"fmax", "`max(a, b)`"},
      {"fmin", "`min(a, b)`"},
      {"clip", "`clamp(x, low, high)`"},
      {"clamp_min", "`max(x, low)`"},
      {"absolute", "`abs(x)`"},
      {"power", "`x ** y`"},
      {"square", "`x * x`"},
      {"reciprocal", "`1.0 / x`"},
      {"relu", "`max(x, 0.0)`"},
      {"silu", "`x * sigmoid(x)`"},
      {"swish", "`x * sigmoid(x)`"},
      {"gelu", "`0.5 * x * (1.0 + erf(x * 0.70710678))`"},
      {"softplus", "`log1p(exp(x))`"},
      {"ones", "`full(1.0, [M, N])`"},
      {"ones_like", "`full(1.0, [M, N])`"},
      {"zeros_like", "`zeros([M, N])`"},
      {"full_like", "`full(value, [M, N])`"},
      {"empty", "`zeros([M, N])`"},
      {"eye", "`select(arange(N).reshape([N, 1]) == arange(N), 1.0, 0.0)`"},
      {"concat",
       "a result that is written in parts: `var out: Tensor<f32, [M + N]>`, `out[0..M] = x`, `out[M..M + N] = y`"},
      {"concatenate",
       "a result that is written in parts: `var out: Tensor<f32, [M + N]>`, `out[0..M] = x`, `out[M..M + N] = y`"},
      {"cat",
       "a result that is written in parts: `var out: Tensor<f32, [M + N]>`, `out[0..M] = x`, `out[M..M + N] = y`"},
      {"stack",
       "a result that is written in parts: `var out: Tensor<f32, [M + N]>`, `out[0..M] = x`, `out[M..M + N] = y`"},
      {"hstack",
       "a result that is written in parts: `var out: Tensor<f32, [M + N]>`, `out[0..M] = x`, `out[M..M + N] = y`"},
      {"vstack",
       "a result that is written in parts: `var out: Tensor<f32, [M + N]>`, `out[0..M] = x`, `out[M..M + N] = y`"},
      {"view", "`x.reshape([M, N])`"},
      {"flatten", "`x.reshape([M * N])`"},
      {"ravel", "`x.reshape([M * N])`"},
      {"squeeze", "`x.reshape([M, N])`, without the extents of 1"},
      {"unsqueeze", "`x.reshape([M, 1, N])`"},
      {"expand_dims", "`x.reshape([M, 1, N])`"},
      {"permute", "`x.transpose([1, 0, 2])`"},
      {"swapaxes", "`x.transpose([1, 0, 2])`"},
      {"T", "`x.transpose()`"},
      {"mT", "`x.transpose()`"},
      {"expand", "`x.broadcast([M, N])`"},
      {"expand_as", "`x.broadcast([M, N])`"},
      {"broadcast_to", "`x.broadcast([M, N])`"},
      {"size", "`x.shape[0]`"},
      {"astype", "`x as f32`"},
      {"to", "`x as f32`"},
      {"float", "`x as f32`"},
      {"half", "`x as f16`"},
      {"gather", "a loop over elements: `for j in 0..M { out[j] = x[i[j]] }`"},
      {"take", "a loop over elements: `for j in 0..M { out[j] = x[i[j]] }`"},
      {"index_select", "a loop over rows: `for j in 0..M { out[j] = x[i[j]] }`"},
      {"matmul", "`a @ b`"},
      {"dot", "`a @ b`"},
      {"mm", "`a @ b`"},
      {"bmm", "`a @ b`"},
      {"einsum", "`a @ b`, with `transpose` and `reshape` for other orders"},
      {"outer", "`x.reshape([M, 1]) * y`"},
      {"tril", "`x.mask_upper_triangle(0.0)`"},
      {"roll", "a result that is written in two parts: `out[1..N] = x[0..N - 1]`, `out[0] = x[N - 1]`"},
      {"np", "`exp(x)`, `x.sum()`: functions belong to no module"},
      {"numpy", "`exp(x)`, `x.sum()`: functions belong to no module"},
      {"torch", "`exp(x)`, `x.sum()`: functions belong to no module"},
      {"jnp", "`exp(x)`, `x.sum()`: functions belong to no module"},
      {"math", "`exp(x)`, `x.sum()`: functions belong to no module"},
      {"tl", "`exp(x)`, `x.sum()`: functions belong to no module"},
  };
  return find(kNames, name);
}

const char* listElsewhere(std::string_view name) {
  static constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"transpose",
       "`x.transpose()` exchanges the last two dimensions, `x.transpose([1, 0, 2])` tells the order of all"},
      {"reshape", "a shape is one list: `x.reshape([M, N])`"},
      {"broadcast", "a shape is one list: `x.broadcast([M, N])`"},
      {"zeros", "a shape is one list: `zeros([M, N])`"},
      {"full", "a shape is one list: `full(1.0, [M, N])`"},
  };
  return find(kNames, name);
}

}  // namespace vortex::diag
