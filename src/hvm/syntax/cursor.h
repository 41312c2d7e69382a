// Walks the characters of one file and keeps the first error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vortex::hvm {

/// After the first error the cursor stands at the end of the text, so that every loop of the parser ends by itself.
class Cursor {
public:
  Cursor(std::string_view text, std::string path) : text_(text), path_(std::move(path)) {}

  bool atEnd() const { return position_ >= text_.size(); }
  size_t position() const { return position_; }
  char spelledAt(size_t position) const { return text_[position]; }
  /// Goes back to where position() was; not after an error.
  void rewind(size_t position) { position_ = failed() ? text_.size() : position; }

  void skipSpace();
  /// Is `word` next, after white space?
  bool sees(std::string_view word);
  /// Is `word` next, here?
  bool seesHere(std::string_view word) const { return text_.substr(position_).starts_with(word); }
  bool take(std::string_view word);
  bool takeHere(std::string_view word);
  void expect(std::string_view word);

  bool seesName();
  bool seesDigit();
  /// A name, or an error and an empty text.
  std::string name(std::string_view what);
  /// Beyond 32 bits: some number beyond 32 bits.
  uint64_t number();
  /// What was taken from `position` on.
  std::string_view since(size_t position) const { return text_.substr(position, position_ - position); }
  /// The characters up to `quote`, as code points; the opening quote is consumed.
  std::u32string quoted(char quote);
  /// The text up to `quote`, no escapes.
  std::string path(char quote);

  bool failed() const { return error_.has_value(); }
  /// Records PARSE_ERROR at `position` with what stands there, unless there is an error.
  void fail(std::string_view expected);
  void failAt(size_t position, std::string_view expected);
  void failWith(size_t position, std::string_view expected, std::string_view detected);
  /// Takes over the error of an included file.
  void failAs(std::string error);
  const std::string& error() const { return *error_; }

private:
  std::string next(size_t position) const;

  std::string_view text_;
  std::string path_;
  size_t position_ = 0;
  std::optional<std::string> error_;
};

/// The code point at text[position], which it advances past; kBadUtf8 if the bytes are no UTF-8.
inline constexpr char32_t kBadUtf8 = 0xffffffff;
char32_t decodeUtf8(std::string_view text, size_t& position);
void appendUtf8(std::string& text, char32_t code);

}  // namespace vortex::hvm
