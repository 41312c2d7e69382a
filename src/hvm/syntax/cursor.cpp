#include "hvm/syntax/cursor.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::hvm {

static constexpr uint64_t kLargeNumber = uint64_t{1} << 40;

static bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool isDigit(char c) { return c >= '0' && c <= '9'; }
static bool isNamePart(char c) { return isLetter(c) || isDigit(c) || c == '_' || c == '$'; }

char32_t decodeUtf8(std::string_view text, size_t& position) {
  static constexpr char32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
  auto lead = static_cast<unsigned char>(text[position++]);
  if (lead < 0x80)
    return lead;
  int more = lead >= 0xf8 ? -1 : lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : -1;
  if (more < 0 || position + more > text.size())
    return kBadUtf8;
  char32_t code = lead & (0x3f >> more);
  for (int i = 0; i < more; ++i, ++position) {
    auto next = static_cast<unsigned char>(text[position]);
    if ((next & 0xc0) != 0x80)
      return kBadUtf8;
    code = code << 6 | (next & 0x3f);
  }
  bool isValid = code >= kSmallest[more] && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
  return isValid ? code : kBadUtf8;
}

void appendUtf8(std::string& text, char32_t code) {
  auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80)
    return put(code);
  int more = code >= 0x10000 ? 3 : code >= 0x800 ? 2 : 1;
  static constexpr char32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  put(kLead[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i)
    put(0x80 | (code >> (6 * i) & 0x3f));
}

void Cursor::skipSpace() {
  while (!atEnd()) {
    char c = text_[position_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
      ++position_;
    else if (seesHere("//"))
      position_ = std::min(text_.find('\n', position_), text_.size());
    else
      return;
  }
}

bool Cursor::sees(std::string_view word) {
  skipSpace();
  return seesHere(word);
}

bool Cursor::take(std::string_view word) {
  skipSpace();
  return takeHere(word);
}

bool Cursor::takeHere(std::string_view word) {
  if (!seesHere(word))
    return false;
  position_ += word.size();
  return true;
}

void Cursor::expect(std::string_view word) {
  if (!take(word))
    fail(base::concat("`", word, "`"));
}

bool Cursor::seesName() {
  skipSpace();
  return !atEnd() && isLetter(text_[position_]);
}

bool Cursor::seesDigit() {
  skipSpace();
  return !atEnd() && isDigit(text_[position_]);
}

std::string Cursor::name(std::string_view what) {
  if (!seesName()) {
    fail(what);
    return {};
  }
  size_t begin = position_;
  while (!atEnd() && isNamePart(text_[position_]))
    ++position_;
  return std::string(text_.substr(begin, position_ - begin));
}

uint64_t Cursor::number() {
  uint64_t value = 0;
  for (; !atEnd() && isDigit(text_[position_]); ++position_)
    value = std::min(value * 10 + static_cast<uint64_t>(text_[position_] - '0'), kLargeNumber);
  return value;
}

std::u32string Cursor::quoted(char quote) {
  static constexpr std::string_view kLetters = "ntr0\\'\"`";
  static constexpr std::u32string_view kMeanings{U"\n\t\r\0\\'\"`", 8};
  std::u32string result;
  size_t begin = position_ - 1;
  while (!atEnd() && text_[position_] != quote) {
    bool isEscape = text_[position_] == '\\' && position_ + 1 < text_.size();
    position_ += isEscape;
    size_t letter = isEscape ? kLetters.find(text_[position_]) : std::string_view::npos;
    if (letter != std::string_view::npos) {
      result += kMeanings[letter];
      ++position_;
    } else if (isEscape) {
      failAt(position_, "one of n t r 0 \\ ' \" ` after a backslash");
      return result;
    } else {
      result += decodeUtf8(text_, position_);
    }
  }
  if (!takeHere(std::string_view(&quote, 1)))
    failWith(begin, base::concat("a closing ", quote), "the end of the file");
  return result;
}

std::string Cursor::path(char quote) {
  size_t begin = position_;
  while (!atEnd() && text_[position_] != quote && text_[position_] != '\n')
    ++position_;
  std::string path(text_.substr(begin, position_ - begin));
  expect(std::string_view(&quote, 1));
  return path;
}

std::string Cursor::next(size_t position) const {
  if (position >= text_.size())
    return "the end of the file";
  size_t end = position;
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(text_[end]);
  if (byte < 0x20 || byte == 0x7f)  // would not be seen
    return base::concat("the character U+00", kHex.substr(byte / 16, 1), kHex.substr(byte % 16, 1));
  if (isNamePart(text_[end])) {
    while (end < text_.size() && isNamePart(text_[end]) && end < position + 40)
      ++end;
  } else if (decodeUtf8(text_, end) == kBadUtf8) {
    return "bytes that are not UTF-8";
  }
  return base::concat("`", text_.substr(position, end - position), "`");
}

void Cursor::fail(std::string_view expected) {
  skipSpace();
  failAt(position_, expected);
}

void Cursor::failAt(size_t position, std::string_view expected) { failWith(position, expected, next(position)); }

void Cursor::failWith(size_t position, std::string_view expected, std::string_view detected) {
  if (failed())
    return;
  size_t line = 1, column = 1;  // columns count code points
  for (char c : text_.substr(0, position)) {
    line += c == '\n';
    column = c == '\n' ? 1 : column + ((static_cast<unsigned char>(c) & 0xc0) != 0x80);
  }
  error_ = base::concat("PARSE_ERROR (", path_, ":", line, ":", column, ")\n- expected: ", expected,
                        "\n- detected: ", detected);
  position_ = text_.size();
}

void Cursor::failAs(std::string error) {
  if (!failed())
    error_ = std::move(error);
  position_ = text_.size();
}

}  // namespace vortex::hvm
