#include "base/tensor_bytes.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::base {

static constexpr WideBytes kTooMany = WideBytes{1} << 127;

WideBytes fullBytes(std::span<const int64_t> extents, uint64_t elementBytes) {
  WideBytes bytes = elementBytes;
  for (int64_t extent : extents)
    if (__builtin_mul_overflow(bytes, static_cast<WideBytes>(std::max<int64_t>(extent, 1)), &bytes) || bytes > kTooMany)
      return kTooMany;
  return bytes;
}

WideBytes addBytes(WideBytes a, WideBytes b) { return std::min(a + b, kTooMany); }

std::string showBytes(WideBytes bytes) {
  if (bytes >= kTooMany)
    return "more than 2^127";
  std::string digits;
  do
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(bytes % 10)));
  while ((bytes /= 10) != 0);
  return digits;
}

Result<uint64_t> tensorBytes(const std::string& what, std::span<const int64_t> extents, uint64_t elementBytes) {
  bool isEmpty = false;
  for (int64_t extent : extents) {
    if (extent < 0)
      return Error{concat(what, " has the negative extent ", extent)};
    isEmpty |= extent == 0;
  }
  const WideBytes bytes = fullBytes(extents, elementBytes);
  if (bytes > kMostTensorBytes)
    return Error{concat(what, " of shape [", join(extents, ", "), "] and ", elementBytes, "-byte elements ",
                        isEmpty ? "counts as " : "takes ", showBytes(bytes), " bytes", isEmpty ? " (0 as 1)" : "",
                        ", a tensor has at most ", kMostTensorBytes)};
  return isEmpty ? 0 : static_cast<uint64_t>(bytes);
}

}  // namespace vortex::base
