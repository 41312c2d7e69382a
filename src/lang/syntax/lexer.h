#pragma once

#include "diag/diagnostic.h"
#include "lang/syntax/token.h"
#include "source/source.h"

#include <vector>

namespace vortex::lang::syntax {

enum class CommentKind : uint8_t { Line, Doc, Block };

/// A comment; it stands before token `tokenIndex`.
struct Comment {
  CommentKind kind = CommentKind::Line;
  uint32_t tokenIndex = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
};

/// The tokens of one file, ending in EndOfFile, and its comments in order.
struct TokenStream {
  std::vector<Token> tokens;
  std::vector<Comment> comments;
  /// For an opening bracket the index of its closing one and the reverse; 0 for other tokens. Filled by balanceBrackets.
  std::vector<uint32_t> partner;
  /// From this offset on, syntax errors are probably consequences of a missing `}`. Set by balanceBrackets.
  uint32_t unreliableFrom = UINT32_MAX;
  /// About every `}` that closes nothing; it is dropped. Not reported yet: the parser may find that a `{` is missing.
  std::vector<diag::Diagnostic> surplus;
  /// Offsets of lines with a bracket too few or too many, first and last: as above.
  std::vector<std::pair<uint32_t, uint32_t>> doubtful;
};

/// The operator, punctuation or bracket at the start of `text`; Invalid if there is none.
Tok operatorAt(std::string_view text);

/// Text that is not UTF-8 or contains NUL gives one error and an empty stream. Every byte sequence ends in a valid stream.
TokenStream lex(source::FileId file, const source::SourceManager& sources, diag::DiagnosticSink& sink);

/// Matches the brackets: reports unclosed and surplus ones, inserts synthetic brackets and drops surplus closing ones, so that afterwards
/// every bracket has a partner. Clears newlineBefore directly inside of `(` and `[`, where a newline ends nothing.
/// Returns false if the brackets do not match.
bool balanceBrackets(TokenStream& stream, source::FileId file, const source::SourceManager& sources,
                     diag::DiagnosticSink& sink);

}  // namespace vortex::lang::syntax
