#include "vortex/tensor.h"

#include "api/runtime_access.h"
#include "base/text.h"

#include <algorithm>

namespace vortex {

using base::concat;
using base::join;

uint32_t byteSize(DType type) { return isKnown(type) ? artifact::byteSize(toArtifact(type)) : 0; }
const char* name(DType type) { return isKnown(type) ? artifact::name(toArtifact(type)) : "an unknown type"; }

uint64_t Buffer::bytes() const { return buffer_ ? buffer_->bytes() : 0; }
void* Buffer::host() const { return buffer_ ? buffer_->host() : nullptr; }
uint64_t Buffer::address() const { return buffer_ ? buffer_->address() : 0; }

int64_t Tensor::elements() const {
  // Saturates: extents of a view may be anything until something asks for their bytes.
  int64_t count = 1;
  bool isTooLarge = false;
  for (int64_t extent : extents) {
    if (extent == 0)
      return 0;
    isTooLarge = __builtin_mul_overflow(count, extent, &count) || isTooLarge;
  }
  return isTooLarge ? INT64_MAX : count;
}

bool Tensor::isContiguous() const {
  if (elements() == 0)
    return true;
  if (strides.size() != extents.size())
    return strides.empty();
  int64_t expected = 1;
  for (size_t k = extents.size(); k-- > 0;) {
    if (extents[k] != 1 && strides[k] != expected)
      return false;
    expected *= extents[k];
  }
  return true;
}

/// The tensor with its strides written out. Error: not one for each extent.
static Result<Tensor> withStrides(const Tensor& tensor) {
  Tensor result = tensor;
  if (result.strides.empty())
    result.strides = hal::contiguousStrides(result.extents);
  if (result.strides.size() != result.extents.size())
    return Error{concat("a tensor has ", result.extents.size(), " extents and ", result.strides.size(), " strides")};
  return result;
}

Result<Tensor> Tensor::slice(int64_t dim, int64_t begin, int64_t end, int64_t step) const {
  if (dim < 0 || dim >= rank())
    return Error{concat("cannot slice dimension ", dim, " of a tensor of rank ", rank())};
  if (begin < 0 || begin > end || end > extents[dim] || step < 1)
    return Error{concat("cannot take elements ", begin, "..", end, " by ", step, " of an extent of ", extents[dim])};
  Result<Tensor> result = withStrides(*this);
  if (!result)
    return result;
  if (end > begin)  // an empty slice may begin at the end of its buffer
    result->byteOffset += static_cast<uint64_t>(begin * result->strides[dim]) * byteSize(type);
  result->extents[dim] = (end - begin) / step + ((end - begin) % step != 0);
  result->strides[dim] *= step;
  return result;
}

Result<Tensor> Tensor::transposed(int64_t first, int64_t second) const {
  if (std::min(first, second) < 0 || std::max(first, second) >= rank())
    return Error{concat("cannot exchange dimensions ", first, " and ", second, " of a tensor of rank ", rank())};
  Result<Tensor> result = withStrides(*this);
  if (!result)
    return result;
  std::swap(result->extents[first], result->extents[second]);
  std::swap(result->strides[first], result->strides[second]);
  return result;
}

Result<Tensor> Tensor::reshaped(std::vector<int64_t> newExtents) const {
  Tensor result = *this;
  result.extents = std::move(newExtents);
  result.strides = hal::contiguousStrides(result.extents);
  if (const Result<uint64_t> bytes = hal::tensorBytes("a tensor", toArtifact(type), result.extents); !bytes)
    return bytes.error();
  if (result.elements() != elements())
    return Error{concat("cannot view [", join(extents, ", "), "] as [", join(result.extents, ", "),
                        "]: the number of elements differs")};
  if (!isContiguous())
    return Error{concat("cannot view a tensor with strides [", join(strides, ", "),
                        "] under other extents: it is not contiguous")};
  return result;
}

Result<void*> Tensor::hostElements(DType expected) const {
  if (expected != type)
    return Error{concat("the tensor's elements are ", name(type), ", not ", name(expected))};
  if (!isContiguous())
    return Error{concat("a tensor with strides [", join(strides, ", "), "] is not contiguous")};
  if (!buffer.host())
    return Error{"the host cannot access this tensor's memory; use Stream::read"};
  const Result<uint64_t> bytes = hal::tensorBytes("a tensor", toArtifact(type), extents);
  if (!bytes)
    return bytes.error();
  const __int128 end = static_cast<__int128>(byteOffset) + *bytes;
  if (end > static_cast<__int128>(buffer.bytes()))
    return Error{concat("a tensor of ", elements(), " elements at byte offset ", byteOffset, " leaves its buffer of ",
                        buffer.bytes(), " bytes")};
  return static_cast<void*>(static_cast<uint8_t*>(buffer.host()) + byteOffset);
}

Result<hal::Tensor> RuntimeAccess::toHal(const Tensor& tensor) {
  if (!isKnown(tensor.type))
    return Error{concat("a tensor of an unknown element type: ", static_cast<unsigned>(tensor.type))};
  return hal::Tensor{tensor.buffer.buffer_, tensor.byteOffset, toArtifact(tensor.type), tensor.extents, tensor.strides};
}

Tensor RuntimeAccess::fromHal(const hal::Tensor& tensor) {
  Tensor result;
  result.buffer = wrap(tensor.buffer);
  result.byteOffset = tensor.byteOffset;
  result.type = fromArtifact(tensor.type);
  result.extents = tensor.extents;
  result.strides = tensor.strides;
  return result;
}

}  // namespace vortex
