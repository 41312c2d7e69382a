// Device memory of devices whose memory is the host's.
#pragma once

#include "runtime/hal/device.h"

#include <memory>

namespace vortex::hal {

/// Allocates buffers, and keeps the storage of large freed ones for the next allocation of about the same size: a fresh 64 MB
/// mapping costs 16,000 page faults (about 10 ms), more than the kernels that fill it. Any thread may call it.
class HostMemory : public std::enable_shared_from_this<HostMemory> {
public:
  struct Options {
    uint64_t limitBytes = 0;  ///< allocations beyond this sum fail; 0: physical memory
    uint64_t keepBytes = 0;   ///< freed storage kept at most; 0: an eighth of physical memory
    bool poison = false;      ///< fill new buffers with 0xff (floats: NaN), so that reads of unwritten elements show
  };
  static std::shared_ptr<HostMemory> create(Options options);
  ~HostMemory();

  /// 64-byte aligned; from 2 MiB on aligned to 2 MiB with advice for huge pages. Error: requested and available bytes.
  Result<BufferRef> allocate(const Device* device, uint64_t bytes);
  static Result<BufferRef> wrap(const Device* device, void* memory, uint64_t bytes, bool readOnly);
  /// Returns kept storage to the system.
  void trim();
  uint64_t limitBytes() const { return limitBytes_; }
  uint64_t availableBytes() const;

private:
  friend class PooledBuffer;
  struct State;
  explicit HostMemory(Options options);
  void* take(uint64_t storageBytes);
  void give(void* storage, uint64_t storageBytes);

  uint64_t limitBytes_;
  uint64_t keepBytes_;
  bool poison_;
  std::unique_ptr<State> state_;
};

}  // namespace vortex::hal
