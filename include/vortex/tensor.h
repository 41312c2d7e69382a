// Element types, buffers and tensors.
#pragma once

#include "vortex/result.h"

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace vortex {

namespace hal {
class Buffer;
}

enum class DType : uint8_t { Bool, U8, U16, U32, U64, I8, I16, I32, I64, F8E4M3, F8E5M2, F16, BF16, F32, F64 };

uint32_t byteSize(DType type);  ///< 0: there is no such type
const char* name(DType type);   ///< "f32", "bf16", "bool", …

/// The element type of a C++ type. f16, bf16 and f8 have none: give their DType and 16- or 8-bit words.
template <typename T> constexpr DType dtypeOf() {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8 && (std::is_integral_v<T> || sizeof(T) >= 4),
                "no element type of that C++ type");
  if constexpr (std::is_same_v<T, bool>)
    return DType::Bool;
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? DType::F32 : DType::F64;
  else
    return static_cast<DType>(static_cast<int>(std::is_signed_v<T> ? DType::I8 : DType::U8) + (sizeof(T) == 1   ? 0
                                                                                               : sizeof(T) == 2 ? 1
                                                                                               : sizeof(T) == 4 ? 2
                                                                                                                : 3));
}

/// A handle to device memory; copies refer to the same memory, the last one frees it. A default-made handle is empty.
class Buffer {
public:
  Buffer() = default;
  explicit operator bool() const { return static_cast<bool>(buffer_); }
  uint64_t bytes() const;
  /// Null if the host cannot access the memory. Contents are defined after Stream::synchronize().
  void* host() const;
  /// As kernels see it; 0 for an empty handle. What other libraries need to use the memory without a copy.
  uint64_t address() const;

private:
  friend struct RuntimeAccess;
  explicit Buffer(std::shared_ptr<hal::Buffer> buffer) : buffer_(std::move(buffer)) {}
  std::shared_ptr<hal::Buffer> buffer_;
};

/// A strided view of a buffer; a value that is cheap to copy. Extents and strides in elements, outermost dimension first;
/// strides may be zero or negative; without any the tensor is row-major.
struct Tensor {
  Buffer buffer;
  uint64_t byteOffset = 0;  ///< of element (0, 0, …)
  DType type = DType::F32;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;

  int64_t rank() const { return static_cast<int64_t>(extents.size()); }
  int64_t elements() const;   ///< product of the extents
  bool isContiguous() const;  ///< row-major without gaps
  /// Elements begin, begin + step, … below end of dimension `dim`. Errors: no such dimension, 0 <= begin <= end <= extent violated,
  /// step < 1.
  Result<Tensor> slice(int64_t dim, int64_t begin, int64_t end, int64_t step = 1) const;
  /// Two dimensions exchanged. Error: no such dimension.
  Result<Tensor> transposed(int64_t first, int64_t second) const;
  /// The same elements under other extents. Errors: not contiguous, another number of elements.
  Result<Tensor> reshaped(std::vector<int64_t> newExtents) const;
  /// The elements in host memory. Errors: T is not the element type, not contiguous, memory the host cannot access.
  template <typename T> Result<std::span<T>> span() const {
    Result<void*> first = hostElements(dtypeOf<std::remove_const_t<T>>());
    if (!first)
      return first.takeError();
    return std::span<T>(static_cast<T*>(*first), static_cast<size_t>(elements()));
  }

private:
  Result<void*> hostElements(DType expected) const;
};

}  // namespace vortex
