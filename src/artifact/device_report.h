// What a kernel on a GPU tells the host besides its results: the first fault, and prints.
//
// Every entry point of a GPU artifact takes one parameter, an array of Kernel::slotCount + 1 64-bit words by value: the launch slots, then
// the device address of a DeviceReport. The host zeroes report and print area, sets printCapacity, and reads them back after the launch.
// Where the phase has tensor maps, the parameter is 64-byte aligned and goes on: zeros up to a multiple of 64 bytes, then the maps in order.
#pragma once

#include "artifact/artifact.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace vortex::artifact {

/// Values of a fault that are kept.
inline constexpr size_t kFaultValues = 8;

struct DeviceReport {
  uint32_t
      fault;  ///< 0: none; else 1 + index into Kernel::faults, claimed by the first failing thread (compare-exchange from 0)
  uint32_t block[3];       ///< block of that thread, written after the claim
  uint32_t thread;         ///< its logical linear id in the block
  uint32_t printCapacity;  ///< words in the print area; set by the host
  uint64_t
      values[kFaultValues];  ///< of that thread: what the fault's message shows (see Fault); further ones are dropped
  uint64_t printWords;  ///< words reserved by prints (atomic add), may exceed the capacity: then records were dropped
  // uint64_t area[printCapacity] follows. A record is one header word, `(1 + fault index) | count << 32`, then `count` values (see Fault).
  // Records lie one after another from word 0; one that does not fit entirely is not written, and nothing follows it.
};
static_assert(sizeof(DeviceReport) == 96 && offsetof(DeviceReport, printWords) == 88);

/// Whether its code can print.
bool mayPrint(const Kernel& kernel);

/// What a report whose `fault` is not 0 says, its values in the message.
Fault reportedFault(const Kernel& kernel, const DeviceReport& report);

/// Calls `print` for every record of a print area, and once more for what did not fit. `reserved`: DeviceReport::printWords; `area`: as many words as
/// the report's capacity.
void forEachPrint(const Kernel& kernel, std::span<const uint64_t> area, uint64_t reserved,
                  const std::function<void(const Fault& format, std::span<const uint64_t> values)>& print);

/// Id of the entry of Kernel::faults that says where the kernel is declared. No code raises it: the driver that sees the device stop during the
/// kernel does, and knows no better place.
inline constexpr const char* kDeviceStopped = "E0708";

/// Parameter space of an entry point: 4096 bytes is what every driver takes (CUDA C++ Programming Guide, "Function Parameters").
inline constexpr uint64_t kMaxParameterBytes = 4096;

inline constexpr uint64_t kTensorMapBytes = 128, kTensorMapAlignment = 64;
/// Where the tensor maps begin in the parameter.
constexpr uint64_t tensorMapOffset(uint32_t slotCount) {
  const uint64_t words = (uint64_t{slotCount} + 1) * sizeof(uint64_t);
  return (words + kTensorMapAlignment - 1) / kTensorMapAlignment * kTensorMapAlignment;
}
/// Of an entry point of the phase.
inline uint64_t parameterBytes(uint32_t slotCount, const Phase& phase) {
  return phase.maps.empty() ? (uint64_t{slotCount} + 1) * sizeof(uint64_t)
                            : tensorMapOffset(slotCount) + phase.maps.size() * kTensorMapBytes;
}

}  // namespace vortex::artifact
