#include "lang/syntax/lexer.h"

#include "lang/syntax/literal.h"
#include "source/utf8.h"

#include <array>
#include <cstdio>

namespace vortex::lang::syntax {
namespace {

using source::FileId;
using source::SourceRange;

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWordByte(char c) { return isLetter(c) || isDigit(c); }

/// What a character that looks like another one was probably meant to be.
struct Lookalike {
  std::string_view character, meant, name;
};
constexpr auto kLookalikes = std::to_array<Lookalike>({
    {"\xE2\x80\x9C", "\"", "a typographic quote"},
    {"\xE2\x80\x9D", "\"", "a typographic quote"},
    {"\xE2\x80\x98", "'", "a typographic quote"},
    {"\xE2\x80\x99", "'", "a typographic quote"},
    {"\xE2\x88\x92", "-", "a minus sign"},
    {"\xE2\x80\x93", "-", "a dash"},
    {"\xE2\x80\x94", "-", "a dash"},
    {"\xC3\x97", "*", "a multiplication sign"},
    {"\xC2\xA0", " ", "a no-break space"},
    {"\xE2\x80\xA6", "...", "an ellipsis character"},
    {"\xEF\xBC\x8C", ",", "a full-width comma"},
    {"\xEF\xBC\x9B", ";", "a full-width semicolon"},
    {"\xE2\x89\xA4", "<=", "a mathematical sign"},
    {"\xE2\x89\xA5", ">=", "a mathematical sign"},
    {"\xE2\x89\xA0", "!=", "a mathematical sign"},
    {"\xE2\x86\x92", "->", "an arrow character"},
});

class Lexer {
public:
  Lexer(FileId file, std::string_view text, diag::DiagnosticSink& sink) : file_(file), text_(text), sink_(sink) {}

  TokenStream run() {
    if (text_.starts_with("\xEF\xBB\xBF"))
      at_ = 3;
    if (isPlainText()) {
      stream_.tokens.reserve(text_.size() / 4);
      while (at_ < text_.size())
        step();
    } else {
      at_ = static_cast<uint32_t>(text_.size());
    }
    push(Tok::EndOfFile, at_);
    return std::move(stream_);
  }

private:
  SourceRange range(uint32_t begin, uint32_t end) const { return {file_, begin, end}; }
  char peek(uint32_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  bool isPlainText() {
    if (const size_t nul = text_.find('\0'); nul != std::string_view::npos) {
      const auto at = static_cast<uint32_t>(nul);
      sink_.error("E0102", range(at, at + 1), "the file is not text: byte " + std::to_string(at) + " is NUL")
          .primary("NUL byte")
          .help("name a .vx source file in UTF-8");
      return false;
    }
    std::string_view rest = text_;
    while (!rest.empty()) {
      // Eight ASCII bytes at a time: validation must not cost on large files.
      while (rest.size() >= 8) {
        uint64_t word;
        __builtin_memcpy(&word, rest.data(), 8);
        if (word & 0x8080808080808080u)
          break;
        rest.remove_prefix(8);
      }
      if (rest.empty())
        break;
      const size_t length = source::utf8SequenceLength(rest);
      if (length == 0) {
        const auto at = static_cast<uint32_t>(text_.size() - rest.size());
        char hex[8];
        std::snprintf(hex, sizeof hex, "0x%02X", static_cast<unsigned char>(rest.front()));
        sink_.error("E0103", range(at, at + 1), std::string("the file is not valid UTF-8: unexpected byte ") + hex)
            .help("save the file as UTF-8");
        return false;
      }
      rest.remove_prefix(length);
    }
    return true;
  }

  void push(Tok tok, uint32_t begin) {
    stream_.tokens.push_back({.tok = tok, .newlineBefore = newline_, .begin = begin, .end = at_});
    newline_ = false;
  }

  void step() {
    const char c = text_[at_];
    if (c == '\n' || c == '\r') {
      newline_ = true;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\f' || c == '\v') {
      ++at_;
    } else if (c == '/' && peek(1) == '/') {
      lineComment();
    } else if (c == '/' && peek(1) == '*') {
      blockComment();
    } else if (isLetter(c)) {
      word();
    } else if (isDigit(c)) {
      number();
    } else if (c == '"') {
      string();
    } else if (Tok tok = operatorAt(text_.substr(at_)); tok != Tok::Invalid) {
      const uint32_t begin = at_;
      at_ += static_cast<uint32_t>(spelling(tok).size());
      push(tok, begin);
    } else {
      invalid();
    }
  }

  void lineComment() {
    const uint32_t begin = at_;
    const size_t end = text_.find_first_of("\r\n", at_);
    at_ = static_cast<uint32_t>(end == std::string_view::npos ? text_.size() : end);
    const std::string_view comment = text_.substr(begin, at_ - begin);
    // Four and more slashes are a separator line, as in Rust.
    const bool isDoc = comment.starts_with("///") && !comment.starts_with("////");
    addComment(isDoc ? CommentKind::Doc : CommentKind::Line, begin, at_);
  }

  void blockComment() {
    const uint32_t begin = at_;
    uint32_t depth = 0;
    while (at_ < text_.size()) {
      if (peek() == '/' && peek(1) == '*') {
        ++depth;
        at_ += 2;
      } else if (peek() == '*' && peek(1) == '/') {
        at_ += 2;
        if (--depth == 0)
          break;
      } else {
        newline_ |= peek() == '\n' || peek() == '\r';
        ++at_;
      }
    }
    if (depth > 0)
      sink_.error("E0105", range(begin, begin + 2), "this block comment is not closed")
          .primary(depth > 1 ? "opened here, and " + std::to_string(depth - 1) + " more inside it" : "opened here")
          .help("end it with `*/`; block comments nest");
    addComment(CommentKind::Block, begin, at_);
  }

  void addComment(CommentKind kind, uint32_t begin, uint32_t end) {
    stream_.comments.push_back(
        {.kind = kind, .tokenIndex = static_cast<uint32_t>(stream_.tokens.size()), .begin = begin, .end = end});
  }

  void word() {
    const uint32_t begin = at_;
    while (isWordByte(peek()))
      ++at_;
    push(keywordOf(text_.substr(begin, at_ - begin)), begin);
  }

  /// After a `.` only digits: `t.0.1` selects twice. Otherwise one run of word bytes, `.digits`, and a signed exponent; parseNumber
  /// judges the result.
  void number() {
    const uint32_t begin = at_;
    const bool isMember = !stream_.tokens.empty() && stream_.tokens.back().tok == Tok::Dot && !newline_;
    if (isMember) {
      while (isWordByte(peek()))
        ++at_;
      push(Tok::Int, begin);
      return;
    }
    const bool isPrefixed =
        peek() == '0' && (peek(1) == 'x' || peek(1) == 'b' || peek(1) == 'X' || peek(1) == 'B' || peek(1) == 'o');
    bool isFloat = false;
    digits(isPrefixed);
    // `1..n` is a range and `1.max(2)` a call.
    if (!isPrefixed && peek() == '.' && peek(1) != '.' && !isLetter(peek(1))) {
      isFloat = true;
      ++at_;
      digits(false);
    }
    const std::string_view written = text_.substr(begin, at_ - begin);
    isFloat |= !isPrefixed && hasExponent(written);
    if (const std::string problem = numberProblem(written); !problem.empty()) {
      sink_.error("E0109", range(begin, at_), "malformed number: " + problem);
      push(Tok::Invalid, begin);
    } else {
      push(isFloat ? Tok::Float : Tok::Int, begin);
    }
  }

  /// Word bytes, and the sign of an exponent directly before digits.
  void digits(bool isPrefixed) {
    while (isWordByte(peek())) {
      const bool atExponent = !isPrefixed && (peek() == 'e' || peek() == 'E') && at_ > 0 &&
                              (isDigit(text_[at_ - 1]) || text_[at_ - 1] == '.' || text_[at_ - 1] == '_');
      ++at_;
      if (atExponent && (peek() == '+' || peek() == '-') && isDigit(peek(1)))
        ++at_;
    }
  }

  void string() {
    const uint32_t begin = at_++;
    while (at_ < text_.size() && peek() != '"' && peek() != '\n' && peek() != '\r') {
      if (peek() == '\\')
        escape();
      else
        ++at_;
    }
    if (peek() != '"' || at_ >= text_.size()) {
      sink_.error("E0104", range(begin, begin + 1), "this string is not closed")
          .primary("opened here")
          .help("end it with `\"` on the same line");
      push(Tok::Invalid, begin);
      return;
    }
    ++at_;
    push(Tok::String, begin);
  }

  void escape() {
    const uint32_t begin = at_;
    std::string ignored;
    const size_t length = decodeEscape(text_.substr(at_), ignored);
    if (length == 0) {
      // `\` plus one character; never past the end of the line.
      const std::string_view next = text_.substr(at_ + 1);
      const size_t skipped = next.empty() || next.front() == '\n' || next.front() == '\r'
                                 ? 0
                                 : std::max<size_t>(1, source::utf8SequenceLength(next));
      at_ += static_cast<uint32_t>(1 + skipped);
      sink_
          .error("E0108", range(begin, at_),
                 "unknown escape `" + std::string(text_.substr(begin, at_ - begin)) + "` in a string")
          .help("write `\\\\` for a backslash; known are \\n \\t \\r \\0 \\\\ \\\" \\' \\xHH \\u{HHHH}");
      return;
    }
    at_ += static_cast<uint32_t>(length);
  }

  void invalid() {
    const uint32_t begin = at_;
    const std::string_view rest = text_.substr(at_);
    const std::string character(rest.substr(0, std::max<size_t>(1, source::utf8SequenceLength(rest))));
    // A run of unknown characters is one error and one token.
    while (at_ < text_.size() && isUnknown(text_[at_]))
      ++at_;
    const unsigned char first = static_cast<unsigned char>(character.front());
    if (first < 0x20 || first == 0x7F) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "0x%02X", first);
      sink_.error("E0101", range(begin, at_), std::string("unexpected control character ") + hex);
      push(Tok::Invalid, begin);
      return;
    }
    auto error = sink_.error("E0101", range(begin, at_), "unexpected character `" + character + "`");
    for (const Lookalike& lookalike : kLookalikes)
      if (lookalike.character == character)
        error.primary("this is " + std::string(lookalike.name))
            .fix(range(begin, begin + static_cast<uint32_t>(character.size())), std::string(lookalike.meant),
                 "write the ASCII character");
    if (character == "'")
      error.help("there are no character literals; strings are written with `\"`");
    else if (character == "#")
      error.help("comments start with `//`, attributes with `@`");
    else if (first >= 0x80)
      error.help("names consist of ASCII letters, digits and `_`");
    error.emit();
    push(Tok::Invalid, begin);
  }

  bool isUnknown(char c) const {
    return static_cast<unsigned char>(c) >= 0x80 ||
           (c != '\n' && c != ' ' && c != '\t' && c != '\r' && c != '\f' && c != '\v' && c != '"' && !isWordByte(c) &&
            operatorAt({&c, 1}) == Tok::Invalid);
  }

  FileId file_;
  std::string_view text_;
  diag::DiagnosticSink& sink_;
  TokenStream stream_;
  uint32_t at_ = 0;
  bool newline_ = false;
};

}  // namespace

TokenStream lex(FileId file, const source::SourceManager& sources, diag::DiagnosticSink& sink) {
  return Lexer(file, sources.file(file).text(), sink).run();
}

}  // namespace vortex::lang::syntax
