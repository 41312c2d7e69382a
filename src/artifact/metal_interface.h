// What the host gives an entry point of printed Metal source.
//
// The data of the tensors that it takes are [[buffer(0)]], [[buffer(1)]], …; the launch's slots as 64-bit words are [[buffer(kMetalSlotsBuffer)]];
// the launch's report (device_report.h) is [[buffer(kMetalReportBuffer)]] where the entry asserts or prints; shared memory of the block is
// [[threadgroup(0)]] where it uses any. Threadgroups are one-dimensional in threads, as in every artifact.
#pragma once

#include "artifact/artifact.h"

namespace vortex::artifact {

/// Metal kernels take 31 buffers.
inline constexpr unsigned kMetalSlotsBuffer = 29, kMetalReportBuffer = 30;

/// Of the tensor whose slots begin there: `device uchar* t7 [[buffer(2)]]`.
std::string metalTensorName(uint32_t firstSlot);

/// First slots of the tensors that an entry point takes, in the order of its buffers. All entry points of a phase take the same ones.
std::vector<uint32_t> metalTensors(const Kernel& kernel, const std::string& symbol);

}  // namespace vortex::artifact
