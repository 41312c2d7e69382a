// Kernels made at random: integers of every width, casts between them, `&&` and `||`, branches, loops of all kinds with breaks, calls that
// return early, references, tuples, arrays, shared memory with barriers, warp operations. No two threads race, and control around barriers
// and warp operations is the same for all threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vortex::lang::flow::testing {

inline constexpr int kRandomThreads = 64;

struct RandomKernel {
  std::string text;                  ///< `kernel k(x: …, n: u32, o0: …, o1: …)`
  std::string input;                 ///< element type of x: Tensor<…, [64]>
  std::vector<std::string> outputs;  ///< element types of o0, o1, …: &mut Tensor<…, [64]>
};

RandomKernel randomKernel(uint64_t seed);

}  // namespace vortex::lang::flow::testing
