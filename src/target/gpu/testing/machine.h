// For tests: runs vxt and vxnv on the host. The threads of a block meet at barriers and warp operations; between those they run one after another
// in a random order, so that a missing barrier shows. Every access is checked against the memory of the launch.
#pragma once

#include "ir/vxt.h"
#include "size/expr.h"

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace vortex::target::gpu::testing {

struct MemoryRange {
  const char* begin;
  size_t bytes;
};

/// When asynchronous operations happen, between their start and what waits for them.
enum class Timing { Random, Early, Late };

struct Launch {
  int64_t grid[3] = {1, 1, 1};
  std::vector<uint64_t> slots;
  std::vector<MemoryRange> memory;  ///< what global accesses may touch
  unsigned seed = 1;
  unsigned together = 1;  ///< blocks that run at the same time; 1: one after the other, in order
  Timing timing = Timing::Random;
  std::optional<int64_t> sharedTail{};  ///< bytes of shared memory that the launch asks for; null: what an sm_90 has
  std::function<int64_t(const size::Node&)> argument{};  ///< what tensor maps are made of
};

/// Empty when the kernel ran to its end, else what went wrong.
std::string run(ir::vxt::KernelOp kernel, const Launch& launch);

}  // namespace vortex::target::gpu::testing
