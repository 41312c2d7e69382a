// A device with a stream and the tensors that an engine keeps there.
#pragma once

#include "vortex/runtime.h"

namespace vortex::hvm {

class Workspace {
public:
  /// Errors: those of the device.
  static Result<Workspace> open(const std::string& device);

  Device device;
  Stream stream;

  /// Elements without values yet. Errors: out of memory.
  Result<void> make(Tensor& tensor, DType type, uint64_t elements) const;
  /// Every byte of the elements is `value`.
  Result<void> fill(Tensor& tensor, DType type, uint64_t elements, uint8_t value = 0);
  /// The values, and zeros behind them; kernels take no empty tensors, so one element at least.
  template <typename T> Result<void> copy(Tensor& tensor, std::span<const T> values, uint64_t elements = 0) {
    return copyBytes(tensor, dtypeOf<T>(), values.data(), values.size(), elements);
  }
  template <typename T> Result<void> copy(Tensor& tensor, const std::vector<T>& values, uint64_t elements = 0) {
    return copy(tensor, std::span<const T>(values), elements);
  }
  /// The first elements of a tensor of rank 1.
  template <typename T> Result<std::vector<T>> read(const Tensor& tensor, uint64_t first, uint64_t count) {
    Result<Tensor> part = tensor.slice(0, static_cast<int64_t>(first), static_cast<int64_t>(first + count));
    return part ? stream.read<T>(*part) : Result<std::vector<T>>(part.takeError());
  }

private:
  Workspace(Device device, Stream stream) : device(std::move(device)), stream(std::move(stream)) {}
  Result<void> copyBytes(Tensor& tensor, DType type, const void* values, uint64_t count, uint64_t elements);
};

/// Runs the functions up to the first error.
template <typename... Step> Result<void> inOrder(Step&&... steps) {
  Result<void> done;
  (void)((done = steps(), done.ok()) && ...);
  return done;
}

}  // namespace vortex::hvm
