// The formatter works on tokens and comments, not on the tree: nothing can get lost, and the author's line breaks stay. The tree only
// tells binary from other uses of an operator and which braces belong to bodies. Layout depends on the tokens and their line breaks
// alone, and breaking long lines only adds line breaks until nothing changes, so the result is a fixed point.

#include "lang/syntax/format.h"

#include "lang/syntax/format_layout.h"
#include "lang/syntax/parser.h"

#include <algorithm>

namespace vortex::lang::syntax {
namespace {

/// The code without whitespace and comments.
std::string codeOf(const TokenStream& stream, std::string_view text) {
  std::string code;
  for (const Token& token : stream.tokens)
    code += text.substr(token.begin, token.end - token.begin);
  return code;
}

size_t codePieces(const std::vector<Piece>& pieces) {
  return static_cast<size_t>(
      std::count_if(pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.role != Role::Comment; }));
}

std::string print(const std::vector<Piece>& pieces, const std::vector<Line>& lines) {
  std::string out;
  for (const Line& line : lines) {
    if (pieces[line.begin].breaks == 2)
      out += '\n';
    out.append(line.indent, ' ');
    for (size_t i = line.begin; i < line.end; ++i) {
      const bool isTrailing = pieces[i].role == Role::Comment && i > line.begin && pieces[i].text.starts_with("//");
      if (i > line.begin)
        out += isTrailing ? "  " : needsSpace(pieces, i) ? " " : "";
      for (char c : pieces[i].text)
        if (c != '\r')
          out += c;
    }
    out += '\n';
  }
  return out;
}

}  // namespace

std::optional<std::string> format(source::FileId file, const source::SourceManager& sources,
                                  diag::DiagnosticSink& sink) {
  const uint32_t errors = sink.errorCount();
  const std::unique_ptr<Module> module = parse(file, sources, sink);
  if (sink.errorCount() != errors)
    return std::nullopt;
  diag::DiagnosticSink silent;
  const std::string_view text = sources.file(file).text();
  const TokenStream raw = lex(file, sources, silent);
  TokenStream balanced = raw;
  balanceBrackets(balanced, file, sources, silent);
  VORTEX_CHECK(balanced.tokens.size() == raw.tokens.size());

  std::vector<Piece> pieces = makePieces(raw, balanced, text, collectFacts(*module));
  std::vector<Line> lines = layoutLines(pieces);
  while (breakLongLines(pieces, lines, kFormatWidth))
    lines = layoutLines(pieces);
  std::string formatted = print(pieces, lines);

  source::SourceManager resultSources;
  const source::FileId result = resultSources.addText(sources.file(file).name(), formatted);
  const TokenStream after = lex(result, resultSources, silent);
  VORTEX_CHECK(codeOf(raw, text) == codeOf(after, formatted) && after.tokens.size() - 1 == codePieces(pieces) &&
                   after.comments.size() == raw.comments.size(),
               "formatting changed the program");
  return formatted;
}

}  // namespace vortex::lang::syntax
