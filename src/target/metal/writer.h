// vxt → Metal Shading Language text.
//
// An entry point takes the data of tensor argument k in [[buffer(k)]] (k counts tensors), the launch's slots as 64-bit words in
// [[buffer(kSlotsBuffer)]], the launch's report (artifact/device_report.h) in [[buffer(kReportBuffer)]] where it asserts or prints, and shared
// memory of the block as [[threadgroup(0)]] where it uses any. Threadgroups and grids are one-dimensional in threads, as in every artifact.
#pragma once

#include "base/result.h"

#include <mlir/IR/BuiltinOps.h>
#include <string>

namespace vortex::target::metal {

inline constexpr unsigned kSlotsBuffer = 29, kReportBuffer = 30;

/// The whole module as one source file. Kernels are as `expandAsyncCopies` and `endThreads` leave them. Error: what Metal has not, with its
/// location.
Result<std::string> writeMetal(mlir::ModuleOp lowered);

}  // namespace vortex::target::metal
