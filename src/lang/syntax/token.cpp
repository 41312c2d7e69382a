#include "lang/syntax/token.h"

#include "lang/syntax/lexer.h"

#include <algorithm>
#include <array>

namespace vortex::lang::syntax {
namespace {

constexpr auto kKeywords = std::to_array<std::string_view>({
    "fn",       "kernel", "struct", "enum",  "trait", "impl",  "type",  "const", "import", "pub",
    "let",      "var",    "if",     "else",  "match", "while", "loop",  "for",   "in",     "break",
    "continue", "return", "as",     "where", "mut",   "true",  "false", "inf",
});
static_assert(kKeywords.size() == static_cast<size_t>(Tok::KwInf) - static_cast<size_t>(Tok::KwFn) + 1);

constexpr auto kBrackets = std::to_array<std::string_view>({"(", ")", "[", "]", "{", "}"});

// Longest first within one first character: the lexer takes the first that matches.
constexpr auto kOperators = std::to_array<std::string_view>({
    "...", "**=", "<<=", ">>=", "..", "::", "->", "=>", "**", "<<", ">>", "&&", "||", "==", "!=",
    "<=",  ">=",  "+=",  "-=",  "*=", "/=", "%=", "@=", "&=", "|=", "^=", ",",  ";",  ":",  ".",
    "@",   "=",   "<",   ">",   "+",  "-",  "*",  "/",  "%",  "&",  "|",  "^",  "!",  "~",  "?",
});
static_assert(kOperators.size() == static_cast<size_t>(Tok::Question) - static_cast<size_t>(Tok::Ellipsis) + 1);

}  // namespace

std::string_view spelling(Tok tok) {
  if (isKeyword(tok))
    return kKeywords[static_cast<size_t>(tok) - static_cast<size_t>(Tok::KwFn)];
  if (tok >= Tok::Ellipsis)
    return kOperators[static_cast<size_t>(tok) - static_cast<size_t>(Tok::Ellipsis)];
  if (tok >= Tok::LParen)
    return kBrackets[static_cast<size_t>(tok) - static_cast<size_t>(Tok::LParen)];
  return {};
}

Tok keywordOf(std::string_view word) {
  const auto found = std::find(kKeywords.begin(), kKeywords.end(), word);
  return found == kKeywords.end() ? Tok::Identifier
                                  : static_cast<Tok>(static_cast<size_t>(Tok::KwFn) + (found - kKeywords.begin()));
}

Tok operatorAt(std::string_view text) {
  for (size_t i = 0; i < kOperators.size(); ++i)
    if (text.starts_with(kOperators[i]))
      return static_cast<Tok>(static_cast<size_t>(Tok::Ellipsis) + i);
  for (size_t i = 0; i < kBrackets.size(); ++i)
    if (text.starts_with(kBrackets[i]))
      return static_cast<Tok>(static_cast<size_t>(Tok::LParen) + i);
  return Tok::Invalid;
}

}  // namespace vortex::lang::syntax
