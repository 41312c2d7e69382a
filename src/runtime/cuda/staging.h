// Copies between a program's ordinary memory and the device, through page-locked chunks: the processor fills one while the device empties
// the other.
#pragma once

#include "runtime/cuda/memory.h"

#include <array>
#include <memory>

namespace vortex::cuda {

/// Used under its stream's lock, with the context current.
class Staging {
public:
  Staging(StreamCoreRef stream, PinnedPool& pool) : stream_(std::move(stream)), pool_(pool) {}
  ~Staging();
  /// `from` is free when it returns; the copy is complete in the stream's order.
  Result<void> write(DevicePointer target, const void* from, uint64_t bytes);
  /// Complete when it returns.
  Result<void> read(void* into, DevicePointer source, uint64_t bytes);

private:
  static constexpr uint64_t kChunkBytes = uint64_t{4} << 20;
  /// The driver itself stages short copies, in memory it has at hand.
  static constexpr uint64_t kShortBytes = uint64_t{64} << 10;

  struct Chunk {
    std::unique_ptr<PinnedMemory> memory;
    EventHandle done = nullptr;
    bool busy = false;
  };
  Result<void> prepare(Chunk& chunk);
  Result<void> finish(Chunk& chunk);
  Result<void> mark(Chunk& chunk);

  StreamCoreRef stream_;
  PinnedPool& pool_;
  std::array<Chunk, 2> chunks_;
};

}  // namespace vortex::cuda
