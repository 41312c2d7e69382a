#pragma once

#include <cstddef>
#include <string_view>

namespace vortex::source {

/// Length in bytes of the valid UTF-8 sequence at the start of `text`, or 0 if it is not valid (overlong forms, surrogates and values
/// past U+10FFFF included) or `text` is empty.
inline size_t utf8SequenceLength(std::string_view text) {
  if (text.empty())
    return 0;
  const auto byteAt = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](size_t i) { return (byteAt(i) & 0xC0u) == 0x80u; };
  const unsigned lead = byteAt(0);
  if (lead < 0x80)
    return 1;
  if (lead >= 0xC2 && lead <= 0xDF)
    return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (!continues(1) || !continues(2) || (lead == 0xE0 && byteAt(1) < 0xA0) || (lead == 0xED && byteAt(1) > 0x9F))
      return 0;
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3) || (lead == 0xF0 && byteAt(1) < 0x90) ||
        (lead == 0xF4 && byteAt(1) > 0x8F))
      return 0;
    return 4;
  }
  return 0;
}

}  // namespace vortex::source
