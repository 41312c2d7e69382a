#pragma once

#include "lang/syntax/ast.h"
#include "lang/syntax/lexer.h"

#include <string>
#include <unordered_set>
#include <vector>

namespace vortex::lang::syntax {

/// What the tree knows about tokens, by byte offset.
struct TokenFacts {
  std::unordered_set<uint32_t> binaryOperators;
  /// `{` of functions, branches and loops: joined to the line before.
  std::unordered_set<uint32_t> bodyBraces;
};
TokenFacts collectFacts(const Module& module);

enum class Role : uint8_t {
  Plain,
  Comment,
  Word,    ///< identifiers, keywords, literals
  Binary,  ///< spaces on both sides
  Prefix,  ///< no space after
  GenericOpen,
  GenericClose,
  ClosureOpen,
  ClosureClose,
  AttributeAt,
};

/// A token or comment in the order of the file.
struct Piece {
  Role role = Role::Plain;
  Tok tok = Tok::Invalid;
  std::string_view text;
  /// Lines between this piece and the previous one: 0 same line, 1 next line, 2 after a blank line.
  uint8_t breaks = 0;
  /// The previous token touches this one (decides whether `@name(` has arguments).
  bool isAdjacent = false;
  /// A newline here ends a statement (not inside `(` or `[`).
  bool isSignificantBreak = false;
};

std::vector<Piece> makePieces(const TokenStream& raw, const TokenStream& balanced, std::string_view text,
                              const TokenFacts& facts);

/// True if the piece can end an operand.
bool endsOperand(const Piece& piece);

/// Whether a space separates two pieces on one line.
bool needsSpace(const std::vector<Piece>& pieces, size_t index);

/// One output line: pieces [begin, end), its indentation, and the width of its code (without a trailing comment).
struct Line {
  size_t begin = 0;
  size_t end = 0;
  uint32_t indent = 0;
  uint32_t width = 0;
};
std::vector<Line> layoutLines(const std::vector<Piece>& pieces);

/// Adds line breaks to lines wider than `limit`; false when nothing changed.
bool breakLongLines(std::vector<Piece>& pieces, const std::vector<Line>& lines, uint32_t limit);

}  // namespace vortex::lang::syntax
