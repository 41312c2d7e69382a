#include "metal/states.h"

#include <cstdlib>
#include <cstring>

namespace vortex::metal {

NS::Error* makeError(const std::string& text) {
  return NS::Error::error(NS::String::string("VortexMetal", NS::UTF8StringEncoding), 1,
                          NS::String::string(text.c_str(), NS::UTF8StringEncoding));
}

std::nullptr_t fail(NS::Error** error, const std::string& text) {
  if (error)
    *error = makeError(text);
  return nullptr;
}

Result<vortex::Buffer> State<MTL::Buffer>::forDevice(bool isWritten) {
  return mirror ? mirror->forDevice(device->stream, isWritten) : Result<vortex::Buffer>(memory);
}

namespace {

/// The devices and their runtime are never ended: command buffers may run until the program is.
std::vector<MTL::Device*> makeDevices() {
  static const auto* runtime = new Runtime;
  std::vector<MTL::Device*> made;
  const char* wanted = std::getenv("VORTEX_METAL_DEVICE");
  for (const vortex::Device& device : runtime->devices()) {
    if (device.target().empty() || (wanted && device.name() != wanted))
      continue;
    if (Result<Stream> stream = device.createStream()) {
      auto* object = new MTL::Device(std::make_shared<DeviceState>(device, *std::move(stream)));
      object->state().object = object;
      made.push_back(object);
    }
  }
  return made;
}

const std::vector<MTL::Device*>& devices() {
  static const auto* all = new std::vector<MTL::Device*>(makeDevices());
  return *all;
}

constexpr NS::UInteger kPageBytes = 4096;

/// Zeros; null: out of memory.
std::shared_ptr<void> hostMemory(NS::UInteger length) {
  const NS::UInteger storage = (length + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* host = storage < length ? nullptr : std::aligned_alloc(kPageBytes, storage);
  if (host)
    std::memset(host, 0, storage);
  return std::shared_ptr<void>(host, std::free);
}

}  // namespace

namespace MTL {

NS::Array* CopyAllDevices() {
  const std::vector<const NS::Object*> all(devices().begin(), devices().end());
  return NS::Array::alloc()->init(all.data(), all.size());
}

Device* CreateSystemDefaultDevice() { return devices().empty() ? nullptr : devices()[0]->retain(); }

NS::String* Device::name() const {
  return NS::String::string(state().device.product().c_str(), NS::UTF8StringEncoding);
}

bool Device::hasUnifiedMemory() const {
  const Result<Mirror> mirror = Mirror::create(state().device, 1);
  return mirror && mirror->isShared();
}

NS::UInteger Device::maxBufferLength() const { return state().device.memoryBytes(); }

Buffer* Device::newBuffer(NS::UInteger length, ResourceOptions options) {
  const unsigned mode = (static_cast<unsigned>(options) >> 4) & 15;
  if (length == 0 || mode > StorageModePrivate)  // what is memoryless is a texture
    return nullptr;
  auto made = std::make_shared<State<Buffer>>();
  made->device = &state();
  made->length = length;
  made->mode = static_cast<MTL::StorageMode>(mode);
  if (made->mode == StorageModePrivate) {
    Result<vortex::Buffer> memory = state().device.allocate(length);
    const std::scoped_lock lock(state().mutex);
    if (!memory || !state().stream.fill(*memory, 0, length, 0))
      return nullptr;
    made->memory = *std::move(memory);
  } else {
    const std::shared_ptr<void> host = hostMemory(length);
    if (!host)
      return nullptr;
    // The program may write it at any time without saying so.
    Result<Mirror> mirror =
        Mirror::over(state().device, host.get(), length, {.owner = host, .isHeld = [] { return true; }});
    if (!mirror)
      return nullptr;
    made->mirror = *std::move(mirror);
    made->host = host.get();
  }
  return new Buffer(std::move(made));
}

Buffer* Device::newBuffer(const void* pointer, NS::UInteger length, ResourceOptions options) {
  Buffer* made = pointer ? newBuffer(length, options) : nullptr;
  if (!made)
    return nullptr;
  if (made->contents()) {
    std::memcpy(made->contents(), pointer, length);
    return made;
  }
  const std::scoped_lock lock(state().mutex);
  const Tensor whole{made->state().memory, 0, DType::U8, {static_cast<int64_t>(length)}, {1}};
  if (state().stream.write(whole, pointer, length))
    return made;
  made->release();
  return nullptr;
}

NS::UInteger Buffer::length() const { return state().length; }
void* Buffer::contents() const { return state().host; }
MTL::StorageMode Buffer::storageMode() const { return state().mode; }
Device* Buffer::device() const { return state().device->object; }

}  // namespace MTL
}  // namespace vortex::metal
