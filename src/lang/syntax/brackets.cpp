// Balancing the brackets before parsing keeps one missing bracket one error: the parser always finds a closing bracket, and after an
// error inside a bracket it continues behind the closing one. An unclosed `(` or `[` ends where a line starts with a word that can only
// start a statement or an item, otherwise before the closing bracket of the surrounding pair. An unclosed `{` is only noticed at the end
// of the file; if some `}` stands further left than the line of its `{`, the block of that `{` is closed where the indentation returns to
// its line, and the balancing starts over. Without such a hint the rest of the file is parsed but no further syntax errors are reported.

#include "lang/syntax/lexer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

namespace vortex::lang::syntax {
namespace {

class Balancer {
public:
  Balancer(const std::vector<Token>& input, const std::vector<uint32_t>& repairs, source::FileId file,
           const source::SourceManager& sources, diag::DiagnosticSink& sink)
      : input_(input), repairs_(repairs), file_(file), sources_(sources), sink_(sink) {}

  /// Balances; `repairs` are the input tokens before which a `}` is added.
  void run() {
    stream_.tokens.reserve(input_.size());
    newIndex_.reserve(input_.size());
    for (size_t i = 0; i < input_.size(); ++i)
      step(i);
  }

  bool isOk() const { return ok_; }

  /// The tokens with their partners and `comments` moved to the new token indices.
  TokenStream finish(std::vector<Comment> comments) {
    for (Comment& comment : comments)
      comment.tokenIndex = newIndex_[comment.tokenIndex];
    stream_.comments = std::move(comments);
    return std::move(stream_);
  }

  /// Where a `}` should be added for the first `{` that the indentation says is unclosed, and that `{`.
  struct Repair {
    uint32_t before;
    Token opening;
  };
  std::optional<Repair> repair() const {
    if (!unclosedBrace_ || !suspicious_)
      return std::nullopt;
    const Token opening = *suspicious_;
    const uint32_t limit = indentOf(opening);
    for (uint32_t i = 0; i < input_.size(); ++i)
      if (input_[i].begin > opening.begin && input_[i].newlineBefore && indentOf(input_[i]) <= limit)
        return Repair{i, opening};
    return std::nullopt;
  }

private:
  /// More unclosed or surplus brackets than this are one mistake, or no source.
  static constexpr uint32_t kMaxUnclosed = 8;

  struct Open {
    Tok tok;
    uint32_t index;
    /// `(` after `fn name`.
    bool isParams;
  };

  source::SourceRange rangeOf(const Token& token) const { return {file_, token.begin, token.end}; }
  uint32_t indentOf(const Token& token) const {
    const source::SourceFile& text = sources_.file(file_);
    const std::string_view line = text.lineText(text.lineOf(token.begin));
    return static_cast<uint32_t>(std::min(line.find_first_not_of(" \t"), line.size()));
  }

  void step(size_t i) {
    const Token& token = input_[i];
    if (isAfterOpenString(token))
      while (!open_.empty() && open_.back().tok != Tok::LBrace)
        appendSynthetic(stream_.tokens[open_.back().index], token);
    if (token.tok == Tok::EndOfFile) {
      while (!open_.empty())
        closeSynthetically(token, nullptr);
    } else if (std::binary_search(repairs_.begin(), repairs_.end(), static_cast<uint32_t>(i))) {
      Token token{.tok = Tok::RBrace, .newlineBefore = true, .isSynthetic = true};
      token.begin = token.end = stream_.tokens.back().end;
      if (prepareClosing(token))
        append(token);
    } else if (startsBody(i)) {
      closeSynthetically(token, nullptr);
    } else if (startsStatement(i)) {
      while (!open_.empty() && open_.back().tok != Tok::LBrace)
        closeSynthetically(token, nullptr);
    }
    const bool isDropped = isClosing(token.tok) && !prepareClosing(token);
    newIndex_.push_back(static_cast<uint32_t>(stream_.tokens.size()));
    if (!isDropped)
      append(token);
  }

  void append(const Token& token) {
    const auto index = static_cast<uint32_t>(stream_.tokens.size());
    stream_.tokens.push_back(token);
    stream_.partner.push_back(0);
    if (!open_.empty() && open_.back().tok != Tok::LBrace)
      stream_.tokens.back().newlineBefore = false;
    if (isOpening(token.tok)) {
      const auto before = [&](uint32_t count) {
        return index >= count ? stream_.tokens[index - count].tok : Tok::EndOfFile;
      };
      const bool isParams = token.tok == Tok::LParen && before(1) == Tok::Identifier &&
                            (before(2) == Tok::KwFn || before(2) == Tok::KwKernel);
      open_.push_back({token.tok, index, isParams});
      ++openCount_[static_cast<size_t>(token.tok)];
    } else if (isClosing(token.tok)) {
      stream_.partner[index] = open_.back().index;
      stream_.partner[open_.back().index] = index;
      --openCount_[static_cast<size_t>(open_.back().tok)];
      open_.pop_back();
    }
  }

  /// Makes the innermost open bracket the one `token` closes; false if `token` closes nothing and is to be dropped.
  bool prepareClosing(const Token& token) {
    const Tok opening = openingOf(token.tok);
    // A `)` or `]` never closes across an open block: then it is the surplus one.
    size_t depth = openCount_[static_cast<size_t>(opening)] == 0 ? 0 : open_.size();
    while (depth > 0 && open_[depth - 1].tok != opening)
      depth = open_[depth - 1].tok == Tok::LBrace ? 0 : depth - 1;
    if (depth == 0) {
      ok_ = false;
      if (++surplusCount_ > kMaxUnclosed || !isNews(token, token))
        return false;
      auto error = sink_.error("E0107", rangeOf(token), "`" + std::string(spelling(token.tok)) + "` closes nothing");
      if (!open_.empty())
        error.label(rangeOf(stream_.tokens[open_.back().index]), "the innermost open bracket is this one");
      return false;
    }
    while (open_.size() > depth)
      closeSynthetically(token, &token);
    noteIndent(token);
    return true;
  }

  /// Remembers the first `}` that stands further left than the line of its `{`: an inner `}` is probably missing there.
  void noteIndent(const Token& closing) {
    if (closing.tok != Tok::RBrace || !closing.newlineBefore || closing.isSynthetic || suspicious_)
      return;
    const Token& opening = stream_.tokens[open_.back().index];
    if (indentOf(closing) < indentOf(opening))
      suspicious_ = opening;
  }

  void closeSynthetically(const Token& before, const Token* mismatch) {
    const Token opening = stream_.tokens[open_.back().index];
    ok_ = false;
    if (++unclosedCount_ > kMaxUnclosed)
      return appendSynthetic(opening, before);
    const std::string open(spelling(opening.tok)), close(spelling(closingOf(opening.tok)));
    if (opening.tok == Tok::LBrace && before.tok == Tok::EndOfFile) {
      unclosedBrace_ = true;
      stream_.unreliableFrom = std::min(stream_.unreliableFrom, opening.begin);
    }
    if (isNews(opening, mismatch && opening.tok != Tok::LBrace ? *mismatch : opening)) {
      auto error = sink_.error("E0106", rangeOf(opening), "this `" + open + "` is not closed");
      error.primary("opened here");
      if (mismatch && !mismatch->isSynthetic)
        error.label(rangeOf(*mismatch), "`" + close + "` expected before this");
    }
    appendSynthetic(opening, before);
  }

  /// A bracket that is missing makes others on its line look wrong, and whatever the parser finds from there to the line's end.
  bool isNews(const Token& first, const Token& last) {
    const source::SourceFile& text = sources_.file(file_);
    const uint32_t firstLine = text.lineOf(first.begin), lastLine = text.lineOf(last.begin);
    const bool isNew = !reportedLines_.contains(firstLine) && !reportedLines_.contains(lastLine);
    reportedLines_.insert({firstLine, lastLine});
    const auto end = static_cast<uint32_t>(text.lineStart(lastLine) + text.lineText(lastLine).size());
    if (first.tok != Tok::LBrace)
      stream_.doubtful.emplace_back(text.lineStart(firstLine), end);
    return isNew;
  }

  void appendSynthetic(const Token& opening, const Token& before) {
    Token token{.tok = closingOf(opening.tok), .newlineBefore = before.newlineBefore, .isSynthetic = true};
    token.begin = token.end = stream_.tokens.back().end;
    append(token);
  }

  /// `{` directly inside a parameter list: its `)` is missing.
  bool startsBody(size_t i) const {
    return input_[i].tok == Tok::LBrace && !open_.empty() && open_.back().isParams && input_[i - 1].tok != Tok::Lt;
  }

  /// The closing brackets of the line before were swallowed by a string that is not closed (already reported).
  bool isAfterOpenString(const Token& token) const {
    if (stream_.tokens.empty() || (!token.newlineBefore && token.tok != Tok::EndOfFile))
      return false;
    const Token& last = stream_.tokens.back();
    return last.tok == Tok::Invalid && sources_.file(file_).text()[last.begin] == '"';
  }

  bool startsStatement(size_t i) const {
    if (!input_[i].newlineBefore || open_.empty() || open_.back().tok == Tok::LBrace)
      return false;
    switch (input_[i].tok) {
    case Tok::KwLet:
    case Tok::KwVar:
    case Tok::KwKernel:
    case Tok::KwStruct:
    case Tok::KwEnum:
    case Tok::KwTrait:
    case Tok::KwImpl:
    case Tok::KwImport:
    case Tok::KwPub:
    case Tok::KwFor:
    case Tok::KwWhile:
    case Tok::KwReturn: return true;
    case Tok::KwFn:
    case Tok::KwType:
    case Tok::KwConst: return i + 1 < input_.size() && input_[i + 1].tok == Tok::Identifier;
    default: return false;
    }
  }

  const std::vector<Token>& input_;
  const std::vector<uint32_t>& repairs_;
  TokenStream stream_;
  source::FileId file_;
  const source::SourceManager& sources_;
  diag::DiagnosticSink& sink_;
  std::vector<Open> open_;
  std::vector<uint32_t> newIndex_;
  std::optional<Token> suspicious_;
  std::set<uint32_t> reportedLines_;
  std::array<uint32_t, static_cast<size_t>(Tok::RBrace) + 1> openCount_{};
  uint32_t unclosedCount_ = 0;
  uint32_t surplusCount_ = 0;
  bool unclosedBrace_ = false;
  bool ok_ = true;
};

}  // namespace

bool balanceBrackets(TokenStream& stream, source::FileId file, const source::SourceManager& sources,
                     diag::DiagnosticSink& sink) {
  constexpr size_t kMaxRepairs = 8;
  const std::vector<Token> input = std::move(stream.tokens);
  std::vector<uint32_t> repairs;
  bool isOk = true;
  while (true) {
    diag::DiagnosticSink trial;
    Balancer balancer(input, repairs, file, sources, trial);
    balancer.run();
    const std::optional<Balancer::Repair> repair = repairs.size() < kMaxRepairs ? balancer.repair() : std::nullopt;
    if (!repair) {
      for (const diag::Diagnostic& diagnostic : trial.all())
        sink.report(diagnostic);
      stream = balancer.finish(std::move(stream.comments));
      return isOk && balancer.isOk();
    }
    isOk = false;
    repairs.insert(std::upper_bound(repairs.begin(), repairs.end(), repair->before), repair->before);
    sink.error("E0106", {file, repair->opening.begin, repair->opening.end}, "this `{` is not closed")
        .primary("opened here; judging by the indentation its `}` is missing");
  }
}

}  // namespace vortex::lang::syntax
