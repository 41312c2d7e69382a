#include "python/resident.h"

#include "python/lent_streams.h"
#include "python/torch_tensors.h"

#include <cstdlib>
#include <string_view>

namespace vortex::python {

Residents::Residents(const Device& device) : device_(device) {
  constexpr std::string_view kGpu = "cuda:";
  if (const std::string& name = device.name(); name.starts_with(kGpu))
    gpu_ = std::atoi(name.c_str() + kGpu.size());
}

std::optional<Tensor> Residents::take(nb::handle object, bool isWritten) {
  if (nb::isinstance<Array>(object)) {
    const Array& array = nb::cast<const Array&>(object);
    if (array.device.name() != device_.name() || (isWritten && array.isReadOnly))
      return std::nullopt;
    ours_ = true;
    return array.tensor;
  }
  const std::optional<ForeignArray> from = torchTensor(object);
  if (!from || from->gpu != gpu_ || (isWritten && from->isReadOnly) || !isAligned(*from))
    return std::nullopt;
  Result<Tensor> tensor = tensorOver(device_, *from);
  if (!tensor)
    return std::nullopt;
  torch_ = object;
  return *std::move(tensor);
}

std::optional<Stream> Residents::stream(const Stream& own) const {
  if (!torch_ || gpu_ < 0)
    return own;
  const std::optional<uint64_t> handle = ours_ ? std::nullopt : torchStream(gpu_);
  if (!handle)
    return std::nullopt;
  Result<Stream> stream = lentStream(device_, *handle);
  return stream ? std::optional<Stream>(*std::move(stream)) : std::nullopt;
}

}  // namespace vortex::python
