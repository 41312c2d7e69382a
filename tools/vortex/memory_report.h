// `vortex build`, with `--memory` in full: what a block of a kernel uses of the chip, as far as it is known exactly.
#pragma once

#include "artifact/artifact.h"
#include "chip/chip.h"

#include <optional>
#include <string>

namespace vortex::tools {

/// Blocks that one multiprocessor holds at once, and what keeps it from holding more.
struct Residency {
  uint32_t blocks = 0;
  std::string limitedBy;  ///< "registers", "shared memory", "threads", "blocks"
  uint32_t threads = 0;   ///< resident
};
/// For NVIDIA's chips, by the rules of the CUDA Occupancy Calculator: registers are allocated to warps in units of 8 per thread, a quarter of the
/// registers to a quarter of the warps; the system takes 1 KiB of shared memory per block, the rest in units of 128 bytes.
Residency residencyOf(const chip::Gpu& chip, uint32_t threads, uint32_t registers, uint64_t sharedBytes);

/// Text, one block per phase. Line numbers beyond `lastLine`, the kernel's last, are cut to it.
std::string memoryReport(const artifact::Kernel& kernel, uint32_t lastLine);
/// Without `--memory`: the sum of shared memory and the occupancy of each phase; nothing for CPUs.
std::string memorySummary(const artifact::Kernel& kernel);
/// The members of a JSON object: "phases" and "sharedTensors".
std::string memoryReportJson(const artifact::Kernel& kernel, uint32_t lastLine);

}  // namespace vortex::tools
