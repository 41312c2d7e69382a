#include "hvm/workspace.h"

#include <algorithm>

namespace vortex::hvm {

Result<Workspace> Workspace::open(const std::string& name) {
  Runtime runtime;
  Result<Device> device = runtime.open(name);
  if (!device)
    return device.takeError();
  Result<Stream> stream = device->createStream();
  if (!stream)
    return stream.takeError();
  return Workspace(*device, *stream);
}

Result<void> Workspace::make(Tensor& tensor, DType type, uint64_t elements) const {
  Result<Tensor> made = device.empty(type, {static_cast<int64_t>(elements)});
  if (!made)
    return made.takeError();
  tensor = *made;
  return {};
}

Result<void> Workspace::fill(Tensor& tensor, DType type, uint64_t elements, uint8_t value) {
  return inOrder([&] { return make(tensor, type, elements); },
                 [&] { return stream.fill(tensor.buffer, 0, elements * byteSize(type), value); });
}

Result<void> Workspace::copyBytes(Tensor& tensor, DType type, const void* values, uint64_t count, uint64_t elements) {
  elements = std::max<uint64_t>({elements, count, 1});
  Result<void> done = elements > count ? fill(tensor, type, elements) : make(tensor, type, elements);
  if (!done || count == 0)
    return done;
  Result<Tensor> part = tensor.slice(0, 0, static_cast<int64_t>(count));
  return part ? stream.write(*part, values, count * byteSize(type)) : Result<void>(part.takeError());
}

}  // namespace vortex::hvm
