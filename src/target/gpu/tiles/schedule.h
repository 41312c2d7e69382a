#pragma once

#include "chip/chip.h"
#include "passes/plan/rules.h"

#include <mlir/IR/BuiltinOps.h>

namespace vortex::target::gpu::tiles {

/// Elements of rows that a block keeps over all its threads, and at most where rows are a little longer than a power of two.
inline constexpr int64_t kKeptElements = 8192, kMostKeptElements = kKeptElements + kKeptElements / 2;

/// Of a scanned vector, in shared memory: four blocks share a core's.
inline constexpr int64_t kHeldScanBytes = 49152;
/// Bytes of its elements at least: 16-bit floats lose (0.57 of a copy against 0.62 of three launches), narrow integers are not measured.
inline constexpr int64_t kHeldScanLeast = 4;
/// Of a block whose row fills the shared memory of a core.
inline constexpr int64_t kLongRowThreads = 512;

/// Sizes of whole-tensor work for a GPU: many small blocks, fused only as far as a block's registers reach.
/// `chip`: a table, which outlives the result.
passes::TensorSchedule tensorSchedule(const chip::Gpu& chip);

}  // namespace vortex::target::gpu::tiles
