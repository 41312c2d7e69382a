// Operations of a stream that were recorded, the same for every driver.
#pragma once

#include "runtime/hal/launch.h"

#include <variant>
#include <vector>

namespace vortex::hal {

struct RecordedFill {
  BufferRef target;
  uint64_t offset, bytes;
  uint8_t value;
};
struct RecordedCopy {
  BufferRef target;
  uint64_t targetOffset;
  BufferRef source;
  uint64_t sourceOffset, bytes;
};
struct RecordedWrite {
  BufferRef target;
  uint64_t offset;
  std::vector<uint8_t> content;
};
using RecordedOperation = std::variant<RecordedFill, RecordedCopy, RecordedWrite, Launch>;

/// Operations in order; all were checked when they were added. Not thread-safe.
class Recording {
public:
  void add(RecordedOperation operation);
  /// Error: a launch that prints, whose prints would have nowhere to go.
  Result<void> add(const Launch& launch);
  /// As Graph::update.
  Result<void> replace(uint32_t launch, const Launch& replacement);
  const std::vector<RecordedOperation>& operations() const { return operations_; }
  uint32_t launches() const { return static_cast<uint32_t>(launches_.size()); }

private:
  std::vector<RecordedOperation> operations_;
  std::vector<size_t> launches_;  ///< positions in operations_
};

/// The error of an operation that a stream cannot do while it records.
Error recordingError(const char* operation);

}  // namespace vortex::hal
