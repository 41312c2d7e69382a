// Metal source to what Clang takes: a pass over raw tokens that rewrites what no macro can. It changes columns only, never lines, and remembers
// how, so that positions in its output are positions in the source.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vortex::msl::front {

struct Range {
  uint32_t begin = 0, end = 0;
  auto operator<=>(const Range&) const = default;
};

struct Edit {
  uint32_t begin = 0, end = 0;  ///< bytes of the source that are replaced
  std::string text;
};

class Rewritten {
public:
  Rewritten() = default;
  /// `edits` in order and disjoint.
  /// `forbidsContraction`: a pragma in it says that a product and a sum are rounded each.
  Rewritten(std::string_view source, std::vector<Edit> edits, bool forbidsContraction = false);
  bool forbidsContraction() const { return forbidsContraction_; }
  const std::string& text() const { return text_; }
  /// The byte of the source that stands at, or became, this byte of the text.
  uint32_t sourceOffset(uint32_t offset) const;
  /// One past the bytes of the source that became the text before this byte.
  uint32_t sourceEnd(uint32_t offset) const;
  /// Byte of the text at a 1-based line and column of it.
  uint32_t offsetOf(uint32_t line, uint32_t column) const;
  /// Column in the source of a place in the text; lines are the same.
  uint32_t sourceColumn(uint32_t line, uint32_t column) const;

private:
  struct Piece {
    uint32_t from, to;  ///< first byte in the text, in the source
    bool isReplaced;
  };
  const Piece* pieceOf(uint32_t offset) const;
  std::string text_;
  std::vector<Piece> pieces_;
  std::vector<uint32_t> lineStarts_{0};
  bool forbidsContraction_ = false;
};

/// `widened`: expressions, as bytes of the source, that become the value of a cast by way of float.
Rewritten prelex(std::string_view source, const std::vector<Range>& widened = {});

}  // namespace vortex::msl::front
