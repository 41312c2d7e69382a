#include "vortex/mirror.h"

#include "api/runtime_access.h"
#include "base/text.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace vortex {

Result<Mirror> Mirror::create(const Device& device, uint64_t bytes) {
  constexpr uint64_t kAlignment = 64;
  const uint64_t storage = std::max<uint64_t>((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
  void* host = storage < bytes ? nullptr : std::aligned_alloc(kAlignment, storage);
  if (!host)
    return Error{base::concat("out of memory: ", bytes, " bytes of host memory requested"), ErrorKind::OutOfMemory};
  std::memset(host, 0, storage);
  return over(device, host, bytes, {.owner = std::shared_ptr<void>(host, std::free)});
}

Result<Mirror> Mirror::over(const Device& device, void* host, uint64_t bytes, MirrorOptions options) {
  Mirror mirror(device, host, bytes, std::move(options));
  mirror.isShared_ = RuntimeAccess::device(device)->info().hostMemory;
  if (!mirror.isShared_)
    return mirror;
  Result<Tensor> wrapped =
      device.wrapBytes(DType::U8, {static_cast<int64_t>(bytes)}, host, bytes, mirror.options_.isReadOnly);
  if (!wrapped)
    return wrapped.takeError();
  mirror.buffer_ = std::move(wrapped->buffer);
  return mirror;
}

Tensor Mirror::whole() const { return {buffer_, 0, DType::U8, {static_cast<int64_t>(bytes_)}, {1}}; }

Result<Buffer> Mirror::forDevice(Stream& stream, bool isWritten) {
  if (isWritten && options_.isReadOnly)
    return Error{base::concat("the ", bytes_, " bytes are read-only, and the work writes them")};
  if (isShared_)
    return buffer_;
  if (!buffer_) {
    Result<Buffer> made = device_.allocate(bytes_);
    if (!made)
      return made;
    buffer_ = *std::move(made);
  }
  if (!isDeviceNewer_ && (isHostNewer_ || (options_.isHeld && options_.isHeld()))) {
    if (Result<void> written = stream.write(whole(), host_, bytes_); !written)
      return written.takeError();
    ++copies_.toDevice;
    isHostNewer_ = false;
  }
  isDeviceNewer_ = isDeviceNewer_ || isWritten;
  return buffer_;
}

Result<void> Mirror::download(Stream& stream) {
  if (Result<void> here = stream.read(whole(), host_, bytes_); !here)
    return here;
  ++copies_.toHost;
  isDeviceNewer_ = false;
  return {};
}

Result<void*> Mirror::host(Stream& stream) {
  if (Result<void> done = stream.synchronize(); !done)
    return done.takeError();
  if (isDeviceNewer_ && !isShared_)
    if (Result<void> here = download(stream); !here)
      return here.takeError();
  isHostNewer_ = isHostNewer_ || !options_.isReadOnly;
  return host_;
}

Result<void> Mirror::settle(Stream& stream) {
  const bool isWanted = isDeviceNewer_ && !isShared_ && options_.isHeld && options_.isHeld();
  return isWanted ? download(stream) : Result<void>();
}

}  // namespace vortex
