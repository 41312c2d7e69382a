#include "runtime/hal/device.h"

#include "base/text.h"

namespace vortex::hal {

using base::concat;

Buffer::~Buffer() = default;
LoadedKernel::~LoadedKernel() = default;
Event::~Event() = default;
Graph::~Graph() = default;
Stream::~Stream() = default;
Device::~Device() = default;

Result<void> LoadedKernel::bind(Launch&) const { return {}; }

Result<uint32_t> Device::residentClusters(uint32_t blocks) { return blocks == 1 ? info().workers : 0; }

Result<BufferRef> Stream::allocate(Device& device, uint64_t bytes) { return device.allocate(bytes); }

Result<BufferRef> Device::wrapDevice(uint64_t, uint64_t bytes, std::shared_ptr<void>, bool) {
  return Error{concat("device '", info().name, "' has no memory of its own that ", bytes,
                      " bytes could lie in; wrap memory of the host")};
}

Result<StreamRef> Device::wrapStream(uint64_t) {
  return Error{concat("device '", info().name, "' has no streams of other libraries")};
}

Result<void> checkRange(const char* operation, const Buffer& buffer, uint64_t offset, uint64_t bytes, bool writes) {
  if (writes && buffer.isReadOnly())
    return Error{concat(operation, ": the buffer of ", buffer.bytes(), " bytes wraps constant memory")};
  if (offset <= buffer.bytes() && bytes <= buffer.bytes() - offset)
    return {};
  return Error{concat(operation, " of ", bytes, " bytes at offset ", offset, " exceeds the buffer of ", buffer.bytes(),
                      " bytes")};
}

Error faultError(const RunFault& fault) {
  std::string text = concat("kernel '", fault.kernel, "' stopped: ");
  if (!fault.fault.id.empty())
    text += fault.fault.id + ": ";
  text += fault.fault.message;
  if (!fault.fault.file.empty())
    text += concat(" (", fault.fault.file, ":", fault.fault.line, ":", fault.fault.column, ")");
  return {std::move(text)};
}

}  // namespace vortex::hal
