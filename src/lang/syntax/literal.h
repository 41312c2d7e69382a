#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vortex::lang::syntax {

/// The parts of a number token. Only for text that numberProblem accepts.
struct NumberParts {
  uint8_t base = 10;
  /// Without prefix, `_` and suffix; for floats with fraction and exponent.
  std::string digits;
  /// Offset and length of the suffix in the token; length 0 without one.
  uint32_t suffixBegin = 0;
  std::string_view suffix;
};
NumberParts splitNumber(std::string_view written);

/// What is wrong with a number token ("`kg` is not a scalar type"), or "".
std::string numberProblem(std::string_view written);

/// Whether a decimal number (no prefix) has an exponent.
bool hasExponent(std::string_view written);

/// True for the names of the scalar types that may follow a literal.
bool isScalarSuffix(std::string_view word);

/// Decodes the escape at the start of `text` (which starts with `\`), appends UTF-8 to `out` and returns its length; 0 if unknown.
size_t decodeEscape(std::string_view text, std::string& out);

/// The value of a string token including its quotes; unknown escapes are kept as written.
std::string decodeString(std::string_view written);

/// `digits` in `base` as a 128-bit number; false if it does not fit.
bool parseUnsigned128(std::string_view digits, uint32_t base, unsigned __int128& value);

}  // namespace vortex::lang::syntax
