#include "lang/syntax/lexer.h"

#include "lang/syntax/literal.h"
#include "source/utf8.h"

#include <array>
#include <cstdio>
#include <set>

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
    {"\xE2\x87\x92", "=>", "an arrow character"},
    {"\xC2\xB7", "*", "a middle dot"},
    {"\xE2\x8B\x85", "*", "a middle dot"},
    {"\xC3\xB7", "/", "a division sign"},
    {"\xC2\xAC", "!", "a mathematical sign"},
    {"\xE2\x88\xA7", "&&", "a mathematical sign"},
    {"\xE2\x88\xA8", "||", "a mathematical sign"},
    {"\xE2\x88\x9E", "inf", "a mathematical sign"},
    {"\xC2\xB2", " ** 2", "a superscript"},
    {"\xC2\xB3", " ** 3", "a superscript"},
    {"\xEF\xBC\x9A", ":", "a full-width colon"},
    {"\xEF\xBC\x9D", "=", "a full-width equals sign"},
    {"\xEF\xBC\x88", "(", "a full-width bracket"},
    {"\xEF\xBC\x89", ")", "a full-width bracket"},
    {"\xE2\x80\x8B", "", "a character of no width"},
    {"\xEF\xBB\xBF", "", "a character of no width"},
});

const Lookalike* lookalikeAt(std::string_view text) {
  for (const Lookalike& lookalike : kLookalikes)
    if (text.starts_with(lookalike.character))
      return &lookalike;
  return nullptr;
}

/// What other languages and word processors write around texts; the first that closes one on its line ends it.
struct Quotes {
  std::string_view open;
  std::array<std::string_view, 3> close;
};
constexpr auto kQuotes = std::to_array<Quotes>({
    {"'", {"'"}},
    {"`", {"`"}},
    {"\xE2\x80\x9C", {"\xE2\x80\x9D", "\xE2\x80\x9C", "\""}},
    {"\xE2\x80\x9D", {"\xE2\x80\x9D", "\xE2\x80\x9C", "\""}},
    {"\xE2\x80\x9E", {"\xE2\x80\x9D", "\xE2\x80\x9C", "\""}},
    {"\xE2\x80\x98", {"\xE2\x80\x99", "\xE2\x80\x98", "'"}},
    {"\xC2\xAB", {"\xC2\xBB"}},
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
    } else if (!foreignString() && !foreignComment()) {
      invalid();
    }
  }

  std::string_view restOfLine() const {
    return text_.substr(at_, std::min(text_.find_first_of("\r\n", at_), text_.size()) - at_);
  }

  /// A lifetime of Rust, `<'a>` and `&'a T`, opens no string.
  bool isLifetime() const {
    const Tok before = stream_.tokens.empty() ? Tok::EndOfFile : stream_.tokens.back().tok;
    uint32_t end = 1;
    while (isWordByte(peek(end)))
      ++end;
    return peek() == '\'' && end > 1 && peek(end) != '\'' && (before == Tok::Lt || before == Tok::Amp);
  }

  /// A text in other quotes is read as the string that it was meant to be.
  bool foreignString() {
    const std::string_view line = restOfLine();
    for (const Quotes& quotes : kQuotes) {
      if (!line.starts_with(quotes.open) || isLifetime())
        continue;
      size_t end = std::string_view::npos, length = 0;
      for (const std::string_view close : quotes.close)
        if (const size_t at = close.empty() ? line.npos : line.find(close, quotes.open.size()); at < end)
          end = at, length = close.size();
      if (end == line.npos)
        return false;
      std::string meant = "\"";
      for (const char c : line.substr(quotes.open.size(), end - quotes.open.size()))
        meant += c == '"' ? std::string("\\\"") : std::string(1, c);
      const uint32_t begin = at_;
      at_ += static_cast<uint32_t>(end + length);
      sink_.error("E0101", range(begin, at_), "unexpected character `" + std::string(quotes.open) + "`")
          .primary(static_cast<unsigned char>(quotes.open[0]) >= 0x80 ? "these are typographic quotes" : "")
          .fix(range(begin, at_), meant + "\"", "there are only strings, and they are written with `\"`");
      push(Tok::String, begin);
      return true;
    }
    return false;
  }

  /// `# text` is a comment in Python and shells, and read as one.
  bool foreignComment() {
    if (peek() != '#' || (peek(1) != ' ' && peek(1) != '#'))
      return false;
    const uint32_t begin = at_;
    sink_.error("E0101", range(begin, begin + 1), "unexpected character `#`")
        .fix(range(begin, begin + 1), "//", "comments start with `//`");
    at_ += static_cast<uint32_t>(restOfLine().size());
    addComment(CommentKind::Line, begin, at_);
    return true;
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
    if (isForeignLetter())
      return foreignWord(begin);
    push(keywordOf(text_.substr(begin, at_ - begin)), begin);
  }

  bool isForeignLetter() const { return static_cast<unsigned char>(peek()) >= 0x80 && !lookalikeAt(text_.substr(at_)); }

  /// A name with letters beyond ASCII: one error, however often it stands there.
  void foreignWord(uint32_t begin) {
    const uint32_t letter = at_;
    at_ += static_cast<uint32_t>(std::max<size_t>(1, source::utf8SequenceLength(text_.substr(at_))));
    const uint32_t behind = at_;
    while (isWordByte(peek()) || isForeignLetter())
      ++at_;
    if (foreignWords_.insert(text_.substr(begin, at_ - begin)).second)
      sink_
          .error("E0101", range(letter, behind),
                 "unexpected character `" + std::string(text_.substr(letter, behind - letter)) + "`")
          .help("names consist of ASCII letters, digits and `_`");
    push(Tok::Invalid, begin);
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
      auto error = sink_.error("E0109", range(begin, at_), "malformed number: " + problem);
      if (const std::string ours = suffixElsewhere(written); !ours.empty())
        error.fix(range(begin, at_), ours, "write");
      error.emit();
      push(Tok::Invalid, begin);
    } else {
      push(isFloat ? Tok::Float : Tok::Int, begin);
    }
  }

  /// The number with a suffix of this language instead of one of C's; empty if it has none.
  static std::string suffixElsewhere(std::string_view written) {
    constexpr std::pair<std::string_view, const char*> kSuffixes[] = {
        {"ull", "u64"}, {"ULL", "u64"}, {"ul", "u64"}, {"UL", "u64"}, {"ll", "i64"}, {"LL", "i64"}, {"l", "i64"},
        {"L", "i64"},   {"u", "u32"},   {"U", "u32"},  {"f", "f32"},  {"F", "f32"},  {"h", "f16"},  {"d", "f64"}};
    for (const auto& [suffix, ours] : kSuffixes)
      if (written.ends_with(suffix))
        if (std::string out = std::string(written.substr(0, written.size() - suffix.size())) + ours;
            numberProblem(out).empty())
          return out;
    return "";
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
    const uint32_t begin = at_;
    if (const size_t end = text_.find("\"\"\"", at_ + 3);
        text_.substr(at_).starts_with("\"\"\"") && end != text_.npos) {
      at_ = static_cast<uint32_t>(end + 3);
      sink_.error("E0101", range(begin, begin + 3), "unexpected `\"\"\"`")
          .help("a string has one `\"` at each end, and ends on its line: `\\n` in it is a newline");
      push(Tok::String, begin);
      return;
    }
    ++at_;
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

  void lookalike(const Lookalike& found) {
    const uint32_t begin = at_;
    at_ += static_cast<uint32_t>(found.character.size());
    const bool isBlank = found.meant.empty() || found.meant == " ";
    if (!isBlank || foreignWords_.insert(found.character).second) {
      auto error =
          sink_.error("E0101", range(begin, at_), "unexpected character `" + std::string(found.character) + "`");
      error.primary("this is " + std::string(found.name));
      if (found.meant == "\"" || found.meant == "'")
        error.help("strings are written with `\"`");
      else if (isBlank)
        error.help("write blanks, here and wherever else it stands");
      else
        error.fix(range(begin, at_), std::string(found.meant), "write the ASCII character");
    }
    if (!isBlank)
      push(operatorAt(found.meant), begin);
  }

  void invalid() {
    const uint32_t begin = at_;
    const std::string_view rest = text_.substr(at_);
    const std::string character(rest.substr(0, std::max<size_t>(1, source::utf8SequenceLength(rest))));
    if (const Lookalike* found = lookalikeAt(rest))
      return lookalike(*found);
    if (isForeignLetter())
      return foreignWord(begin);
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
    if (character == "'" && !foreignWords_.insert("'").second)
      return push(Tok::Invalid, begin);
    auto error = sink_.error("E0101", range(begin, at_), "unexpected character `" + character + "`");
    if (character == "'")
      error.help("strings are written with `\"`, and references have no lifetimes");
    else if (rest.starts_with("#include") || rest.starts_with("#import"))
      error.help("write `import a.b { X }`");
    else if (rest.starts_with("#["))
      error.help("attributes are written `@launch(block = 64)`");
    else if (rest.starts_with("#define"))
      error.help("there are no macros: write `const N = 64` or a `fn`");
    else if (character == "#")
      error.help("comments start with `//`, attributes with `@`");
    error.emit();
    push(Tok::Invalid, begin);
  }

  bool isUnknown(char c) const {
    return (static_cast<unsigned char>(c) < 0x80 && c != '\n' && c != ' ' && c != '\t' && c != '\r' && c != '\f' &&
            c != '\v' && c != '"' && !isWordByte(c) && operatorAt({&c, 1}) == Tok::Invalid);
  }

  FileId file_;
  std::string_view text_;
  diag::DiagnosticSink& sink_;
  TokenStream stream_;
  /// Said once: names with letters beyond ASCII, characters that look like blanks.
  std::set<std::string_view> foreignWords_;
  uint32_t at_ = 0;
  bool newline_ = false;
};

}  // namespace

TokenStream lex(FileId file, const source::SourceManager& sources, diag::DiagnosticSink& sink) {
  return Lexer(file, sources.file(file).text(), sink).run();
}

}  // namespace vortex::lang::syntax
