// From a kernel and its arguments to work that a stream can run. All checks that need no execution happen here, once for
// every driver.
#pragma once

#include "artifact/device_report.h"
#include "runtime/hal/device.h"

#include <array>
#include <memory>
#include <variant>

namespace vortex::hal {

/// A strided view of a buffer. `strides` in elements, may be zero or negative; an empty `strides` with extents means row-major.
struct Tensor {
  BufferRef buffer;
  uint64_t byteOffset = 0;  ///< of element (0, 0, …)
  artifact::ScalarType type = artifact::ScalarType::F32;
  std::vector<int64_t> extents{};
  std::vector<int64_t> strides{};
};

struct Scalar {
  artifact::ScalarType type = artifact::ScalarType::F32;
  uint64_t bits = 0;  ///< as in a launch slot: floats their bit pattern, integers extended to 64 bits, bool 0 or 1
};

using Argument = std::variant<Tensor, Scalar>;

/// Called for each print of kernel code, one at a time, in no particular order of blocks.
using PrintSink = std::function<void(const artifact::Fault& format, std::span<const uint64_t> values)>;

struct LaunchOptions {
  /// Storage for results, by index: the launch then allocates nothing for them. Absent entries are allocated.
  std::vector<std::optional<Tensor>> results{};
  /// Makes the absent ones instead of the device; fields of structs (Param::structBytes) are the device's all the same.
  std::function<Result<Tensor>(size_t result, artifact::ScalarType type, std::span<const int64_t> extents)> allocate{};
  PrintSink print{};
  std::optional<std::array<int64_t, 3>> grid{};  ///< numbers of blocks, for kernels whose launches give them
  bool mayOverlap = false;                       ///< arguments that share bytes are the caller's matter
};

/// A tensor map as the device reads it.
struct alignas(artifact::kTensorMapAlignment) EncodedMap {
  std::array<uint8_t, artifact::kTensorMapBytes> bytes{};
};

struct LaunchPhase {
  const artifact::Phase* phase = nullptr;  ///< in the kernel's artifact
  uint32_t grid[3] = {0, 0, 0};
  uint32_t block[3] = {1, 1, 1};
  uint32_t hardwareThreads = 0;  ///< of a block, on devices that have them
  uint32_t version = 0;          ///< of Phase::versions; their number: Phase::symbol itself
  uint64_t blocks = 0;           ///< product of grid; never 0, such phases are left out
  uint64_t scratchBytes = 0;
  uint64_t sharedBytes = 0;
  std::vector<artifact::TensorMapOf<int64_t>> maps{};  ///< Phase::maps
  std::vector<EncodedMap> encodedMaps{};               ///< the same, made by LoadedKernel::bind
  std::shared_ptr<const std::vector<uint64_t>> slots;  ///< for the code of phases in loops; null: the launch's
};

/// How a launch goes on whose steps depend on what its phases compute.
struct Undecided {
  size::Values sizes;
  DeviceInfo device;
  std::vector<BufferRef> temporaries;  ///< null: no phase writes it
};

/// A checked launch with its memory: the phases that the kernel's steps come to, one after another, so that drivers know nothing of steps.
/// Hold it as long as the work may run.
struct Launch {
  KernelRef kernel;
  std::vector<uint64_t> slots;
  std::vector<LaunchPhase> phases;
  std::vector<Tensor> results;
  std::vector<BufferRef> keepAlive;  ///< arguments and temporaries
  struct ZeroFill {
    BufferRef buffer;
    uint64_t byteOffset, bytes;
  };
  std::vector<ZeroFill> zeroFills;  ///< before phase 0
  PrintSink print;
  /// Set: Stream::submit takes the steps, phases in parts, and `phases` is empty.
  std::shared_ptr<const Undecided> undecided;

  const std::vector<uint64_t>& slotsOf(const LaunchPhase& phase) const { return phase.slots ? *phase.slots : slots; }
};

/// Checks count, types, ranks, bounds, alignment and aliasing of the arguments, then the kernel's constraints, allocates results
/// and temporaries, and evaluates the phases. Nothing has run when it fails, and every error names the kernel and the parameter
/// and carries the numbers; only phases that depend on what others compute are checked on the way. Two tensors that share bytes are
/// an error if the kernel writes one of them, unless the options allow it. `stream`: the only one that the launch
/// is for, which then gives its memory.
Result<Launch> prepare(Device& device, const KernelRef& kernel, std::span<const Argument> arguments,
                       LaunchOptions options = {}, Stream* stream = nullptr);

/// prepare and submit. The results are complete after the stream's synchronize().
Result<std::vector<Tensor>> launch(Device& device, Stream& stream, const KernelRef& kernel,
                                   std::span<const Argument> arguments, LaunchOptions options = {});

/// Row-major strides for the extents, in elements. Zero extents count as one.
std::vector<int64_t> contiguousStrides(std::span<const int64_t> extents);

/// Bytes of a contiguous tensor. Errors: a negative extent, more than base::kMostTensorBytes; `what` starts the message.
Result<uint64_t> tensorBytes(const std::string& what, artifact::ScalarType type, std::span<const int64_t> extents);

/// "cannot launch kernel 'k': reason".
Error launchError(const artifact::Kernel& kernel, const Error& reason);
inline Error launchError(const artifact::Kernel& kernel, std::string reason) {
  return launchError(kernel, Error{std::move(reason)});
}

}  // namespace vortex::hal
