// What the host gives an entry point of printed Metal source.
//
// The data of tensor k (k counts the tensors of Kernel's arguments) is [[buffer(k)]]; the launch's slots as 64-bit words are
// [[buffer(kMetalSlotsBuffer)]]; the launch's report (device_report.h) is [[buffer(kMetalReportBuffer)]] where the entry asserts or prints;
// shared memory of the block is [[threadgroup(0)]] where it uses any. Threadgroups are one-dimensional in threads, as in every artifact.
#pragma once

namespace vortex::artifact {

/// Metal kernels take 31 buffers.
inline constexpr unsigned kMetalSlotsBuffer = 29, kMetalReportBuffer = 30;

}  // namespace vortex::artifact
