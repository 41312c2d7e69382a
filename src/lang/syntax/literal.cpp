#include "lang/syntax/literal.h"

#include <algorithm>
#include <array>

namespace vortex::lang::syntax {
namespace {

constexpr auto kIntSuffixes =
    std::to_array<std::string_view>({"u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "usize"});
constexpr auto kFloatSuffixes = std::to_array<std::string_view>({"f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64"});

template <class Words> bool contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

int digitValue(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return 99;
}

/// End of the digits of `base` (and `_`) from `at`.
size_t skipDigits(std::string_view text, size_t at, int base) {
  while (at < text.size() && (text[at] == '_' || digitValue(text[at]) < base))
    ++at;
  return at;
}

/// Offsets of the parts of a decimal number: [0, intEnd) [intEnd, fractionEnd) [fractionEnd, exponentEnd) suffix.
struct DecimalParts {
  size_t intEnd, fractionEnd, exponentEnd;
};
DecimalParts splitDecimal(std::string_view text) {
  DecimalParts parts{};
  parts.intEnd = skipDigits(text, 0, 10);
  parts.fractionEnd = parts.intEnd;
  if (parts.intEnd < text.size() && text[parts.intEnd] == '.')
    parts.fractionEnd = skipDigits(text, parts.intEnd + 1, 10);
  parts.exponentEnd = parts.fractionEnd;
  if (parts.fractionEnd < text.size() && (text[parts.fractionEnd] == 'e' || text[parts.fractionEnd] == 'E')) {
    size_t at = parts.fractionEnd + 1;
    if (at < text.size() && (text[at] == '+' || text[at] == '-'))
      ++at;
    const size_t end = skipDigits(text, at, 10);
    if (std::any_of(text.begin() + at, text.begin() + end, [](char c) { return c != '_'; }))
      parts.exponentEnd = end;
  }
  return parts;
}

uint8_t baseOf(std::string_view text) {
  if (text.size() >= 2 && text[0] == '0')
    return text[1] == 'x' || text[1] == 'X' ? 16 : text[1] == 'b' || text[1] == 'B' ? 2 : text[1] == 'o' ? 8 : 10;
  return 10;
}

std::string withoutUnderscores(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c != '_')
      out += c;
  return out;
}

std::string prefixedProblem(std::string_view text, uint8_t base) {
  const char* name = base == 16 ? "hexadecimal" : "binary";
  if (base == 8)
    return "there are no octal numbers";
  if (text[1] == 'X' || text[1] == 'B')
    return std::string("the prefix is written in lower case, `0") + (base == 16 ? "x`" : "b`");
  const size_t end = skipDigits(text, 2, base);
  const std::string_view suffix = text.substr(end);
  if (withoutUnderscores(text.substr(2, end - 2)).empty())
    return std::string("`") + std::string(text.substr(0, 2)) + "` needs at least one " + name + " digit";
  if (suffix.empty() || contains(kIntSuffixes, suffix))
    return {};
  if (digitValue(suffix.front()) < 16 || std::string_view("uifb").find(suffix.front()) == std::string_view::npos)
    return std::string("`") + suffix.front() + "` is not a " + name + " digit";
  if (contains(kFloatSuffixes, suffix))
    return std::string("a ") + name + " number cannot have the float type `" + std::string(suffix) + "`";
  return "`" + std::string(suffix) + "` is not a scalar type, as in `1u32` or `1.0f32`";
}

void appendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

/// `\u{…}` with 1 to 6 hexadecimal digits naming a Unicode scalar value.
size_t decodeUnicodeEscape(std::string_view text, std::string& out) {
  if (text.size() < 4 || text[2] != '{')
    return 0;
  uint32_t code = 0;
  size_t at = 3;
  for (; at < text.size() && digitValue(text[at]) < 16 && at < 9; ++at)
    code = code * 16 + static_cast<uint32_t>(digitValue(text[at]));
  if (at == 3 || at >= text.size() || text[at] != '}' || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
    return 0;
  appendUtf8(out, code);
  return at + 1;
}

}  // namespace

bool isScalarSuffix(std::string_view word) { return contains(kIntSuffixes, word) || contains(kFloatSuffixes, word); }

bool hasExponent(std::string_view written) {
  if (baseOf(written) != 10)
    return false;
  const DecimalParts parts = splitDecimal(written);
  return parts.exponentEnd > parts.fractionEnd;
}

std::string numberProblem(std::string_view written) {
  if (const uint8_t base = baseOf(written); base != 10)
    return prefixedProblem(written, base);
  const DecimalParts parts = splitDecimal(written);
  const std::string_view suffix = written.substr(parts.exponentEnd);
  const bool isFloat = parts.exponentEnd > parts.intEnd;
  if (suffix.empty() || contains(kFloatSuffixes, suffix))
    return {};
  if (contains(kIntSuffixes, suffix))
    return isFloat
               ? "a number with a fraction or an exponent cannot have the integer type `" + std::string(suffix) + "`"
               : "";
  if ((suffix.front() == 'e' || suffix.front() == 'E') && (suffix.size() == 1 || suffix[1] == '_'))
    return "the exponent has no digits";
  return "`" + std::string(suffix) + "` is not a scalar type, as in `1u32` or `1.0f32`";
}

NumberParts splitNumber(std::string_view written) {
  NumberParts parts;
  parts.base = baseOf(written);
  const size_t begin = parts.base == 10 ? 0 : 2;
  const size_t end = parts.base == 10 ? splitDecimal(written).exponentEnd : skipDigits(written, 2, parts.base);
  parts.digits = withoutUnderscores(written.substr(begin, end - begin));
  parts.suffixBegin = static_cast<uint32_t>(end);
  parts.suffix = written.substr(end);
  return parts;
}

size_t decodeEscape(std::string_view text, std::string& out) {
  if (text.size() < 2)
    return 0;
  switch (text[1]) {
  case 'n': out += '\n'; return 2;
  case 't': out += '\t'; return 2;
  case 'r': out += '\r'; return 2;
  case '0': out += '\0'; return 2;
  case '\\': out += '\\'; return 2;
  case '"': out += '"'; return 2;
  case '\'': out += '\''; return 2;
  case 'x':
    if (text.size() < 4 || digitValue(text[2]) >= 8 || digitValue(text[3]) >= 16)
      return 0;
    out += static_cast<char>(digitValue(text[2]) * 16 + digitValue(text[3]));
    return 4;
  case 'u': return decodeUnicodeEscape(text, out);
  default: return 0;
  }
}

std::string decodeString(std::string_view written) {
  std::string out;
  std::string_view rest = written.substr(1, written.size() - 2);
  while (!rest.empty()) {
    const size_t length = rest.front() == '\\' ? decodeEscape(rest, out) : 0;
    if (length == 0)
      out += rest.front();
    rest.remove_prefix(std::max<size_t>(1, length));
  }
  return out;
}

bool parseUnsigned128(std::string_view digits, uint32_t base, unsigned __int128& value) {
  value = 0;
  for (char c : digits) {
    unsigned __int128 next;
    if (__builtin_mul_overflow(value, static_cast<unsigned __int128>(base), &next) ||
        __builtin_add_overflow(next, static_cast<unsigned __int128>(digitValue(c)), &value))
      return false;
  }
  return true;
}

}  // namespace vortex::lang::syntax
