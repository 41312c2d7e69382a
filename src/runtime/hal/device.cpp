#include "runtime/hal/device.h"

#include "base/text.h"

#include <set>
#include <string_view>

namespace vortex::hal {

using base::concat;

Buffer::~Buffer() = default;
LoadedKernel::~LoadedKernel() = default;
Event::~Event() = default;
Graph::~Graph() = default;
Stream::~Stream() = default;
Device::~Device() = default;

LoadedKernel::LoadedKernel(const Device* device, std::shared_ptr<const artifact::Kernel> artifact,
                           std::shared_ptr<artifact::EntrySource> entries)
    : device_(device), artifact_(std::move(artifact)), sizes_(sizeProgram(*artifact_)),
      readsBack_(artifact::readsBack(*artifact_)), entries_(std::move(entries)) {
  if (entries_ || artifact_->absent.empty())
    return;
  const std::set<std::string_view> absent(artifact_->absent.begin(), artifact_->absent.end());
  for (const artifact::Phase& phase : artifact_->phases) {
    std::vector<bool>& lacking = lacking_.emplace_back();
    for (const artifact::Version& version : phase.versions)
      lacking.push_back(absent.contains(version.symbol));
    lacking.push_back(absent.contains(phase.symbol));
  }
}

Result<void> LoadedKernel::bind(Launch&) { return {}; }

bool LoadedKernel::lacks(const artifact::Phase& phase, uint32_t version) const {
  return !lacking_.empty() && lacking_[static_cast<size_t>(&phase - artifact_->phases.data())][version];
}

Result<void> LoadedKernel::provide(const artifact::Phase&, uint32_t) { return {}; }

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
  return {std::move(text), ErrorKind::Fault};
}

}  // namespace vortex::hal
