// How much random work tests do: code under AddressSanitizer runs ten to thirty times slower, and the paths are the same.
#pragma once

namespace vortex::base {

#if __has_feature(address_sanitizer)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

/// Of `count` random programs, launches or files: a tenth under AddressSanitizer, at least one.
template <typename Count> constexpr Count sampled(Count count) {
  return kIsSanitized ? (count + Count(9)) / Count(10) : count;
}

}  // namespace vortex::base
