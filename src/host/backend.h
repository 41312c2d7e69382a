// What the host evaluator needs of a device. Implemented over the compiler and runtime (src/api) and over the reference interpreter.
#pragma once

#include "base/result.h"
#include "host/value.h"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <variant>

namespace vortex::host {

/// Device memory of one tensor. Freed when the last handle goes.
class DeviceBuffer {
public:
  virtual ~DeviceBuffer() = default;
  virtual size_t byteSize() const = 0;
  /// Waits for earlier work on the device that touches the buffer. Offset and size are in range (checked by the caller).
  virtual Result<void> read(size_t offset, std::span<uint8_t> to) = 0;
  virtual Result<void> write(size_t offset, std::span<const uint8_t> from) = 0;
};

/// A tensor, or the bits of a scalar (integers extended to 64 bits, floats as the pattern of their own width).
using LaunchArgument = std::variant<TensorValue, uint64_t>;

struct LaunchSize {
  std::optional<std::array<int64_t, 3>> grid, block;
};

/// Why a launch failed: a diagnostic id (E07xx unless the fault has its own), one sentence with the numbers, and where in the source
/// the fault was raised (0: not in the source).
struct LaunchFailure {
  std::string id;
  std::string message;
  std::string file;
  uint32_t line = 0, column = 0;
  std::vector<std::string> notes;
};

using LaunchOutcome = std::variant<std::vector<LaunchArgument>, LaunchFailure>;

class Backend {
public:
  virtual ~Backend() = default;
  /// Uninitialised. Errors: more bytes than the device has, with both numbers.
  virtual Result<std::shared_ptr<DeviceBuffer>> allocate(size_t bytes) = 0;
  /// Compiles if needed and runs `kernel`; arguments in parameter order. Returns the results in order (tensors are contiguous).
  virtual LaunchOutcome launch(const lang::Function& kernel, std::span<const LaunchArgument> arguments,
                               const LaunchSize& size) = 0;
  /// Waits for everything submitted.
  virtual Result<void> synchronize() = 0;
};

}  // namespace vortex::host
