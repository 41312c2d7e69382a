// Host memory and its copy on a device, which copies keep equal at three points: where work on the device is given the memory, where the host asks
// for it, and where the host waits. On devices that work in host memory the two are one, and nothing is copied.
//
//   vortex::Mirror x = vortex::Mirror::create(device, 4000).value();
//   float* numbers = static_cast<float*>(x.host(stream).value());               // the host reads and writes …
//   vortex::Buffer memory = x.forDevice(stream, /*isWritten=*/true).value();    // … until here: copied to the device
//   stream.launch(kernel, {vortex::Tensor{memory, 0, vortex::DType::F32, {1000}, {1}}}).value();
//   numbers = static_cast<float*>(x.host(stream).value());                      // waits, and is copied back
//
// The streams of successive calls are one, or the caller orders them. Not for two threads at once.
#pragma once

#include "vortex/runtime.h"

namespace vortex {

struct MirrorOptions {
  std::shared_ptr<void> owner{};  ///< keeps the host's memory
  bool isReadOnly = false;        ///< nobody may write it
  /// Someone may read and write the host's memory at any time, without asking by host(): forDevice() and settle() then copy for them.
  std::function<bool()> isHeld{};
};

class Mirror {
public:
  /// Host memory of its own, zeros, 64-byte aligned. Error: out of memory.
  static Result<Mirror> create(const Device& device, uint64_t bytes);
  /// Over memory of the caller, which must outlive every use. Errors: as Device::wrapBytes.
  static Result<Mirror> over(const Device& device, void* host, uint64_t bytes, MirrorOptions options = {});

  uint64_t bytes() const { return bytes_; }
  /// Host and device use the same memory: nothing is ever copied.
  bool isShared() const { return isShared_; }
  /// Work wrote the device's copy after the host's was last made equal.
  bool isDeviceNewer() const { return isDeviceNewer_; }

  /// The memory for work given to `stream` next: a copy to the device first if the host's may be newer. What the host writes between this and
  /// host() is lost when the work writes too. Errors: it is written and read-only; out of memory; as Stream::write.
  Result<Buffer> forDevice(Stream& stream, bool isWritten);
  /// The memory for the host, until the next forDevice(): waits for the stream, and copies from the device if that is newer. Errors: as
  /// Stream::synchronize and Stream::read.
  Result<void*> host(Stream& stream);
  /// After a wait: copies from the device if that is newer and the host's memory is held. Errors: as Stream::read.
  Result<void> settle(Stream& stream);
  /// The host's memory was written.
  void hostChanged() { isHostNewer_ = true; }

  struct Copies {
    uint64_t toDevice = 0, toHost = 0;
  };
  /// How often it was copied so far.
  Copies copies() const { return copies_; }

private:
  Mirror(const Device& device, void* host, uint64_t bytes, MirrorOptions options)
      : device_(device), host_(host), bytes_(bytes), options_(std::move(options)) {}
  Tensor whole() const;
  Result<void> download(Stream& stream);

  Device device_;
  void* host_;
  uint64_t bytes_;
  MirrorOptions options_;
  Buffer buffer_;  ///< empty until first used
  bool isShared_ = false, isHostNewer_ = true, isDeviceNewer_ = false;
  Copies copies_;
};

}  // namespace vortex
