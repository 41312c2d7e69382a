// Balancing the brackets before parsing keeps one missing bracket one error: the parser always finds a closing bracket, and after an
// error inside a bracket it continues behind the closing one. An unclosed `(` or `[` ends where a line starts with a word that can only
// start a statement or an item, otherwise before the closing bracket of the surrounding pair. An unclosed `{` is only noticed at the end
// of the file; if some `}` stands further left than the line of its `{`, the block of that `{` is closed where the indentation returns to
// its line, and the balancing starts over. Without such a hint the rest of the file is parsed but no further syntax errors are reported.
// A missing `{` makes a `}` the surplus one; where a `}` stands further right than the line of the `{` that it would close, the last line that
// is indented like it and begins a block gets the `{`.

#include "lang/syntax/lexer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

namespace vortex::lang::syntax {
namespace {

class Balancer {
public:
  /// A bracket to add before an input token.
  struct Repair {
    uint32_t before;
    /// The `{` that the indentation says is unclosed, to which a `}` is added; or the `}` to which a `{` is.
    Token other;
    /// That `}` is the surplus one: it is dropped.
    bool isDropped = false;
  };

  Balancer(const std::vector<Token>& input, const std::vector<Repair>& repairs, source::FileId file,
           const source::SourceManager& sources, diag::DiagnosticSink& sink)
      : input_(input), repairs_(repairs), file_(file), sources_(sources), sink_(sink) {}

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

  /// Where a `}` or a `{` should be added, if the indentation says so.
  std::optional<Repair> repair() const {
    if (!unclosedBrace_ && !stream_.surplus.empty() && deeper_) {
      const std::optional<Repair> opening = missingOpening(*deeper_);
      return opening || !closesSome_ ? opening : Repair{*deeper_, input_[*deeper_], true};
    }
    if (!unclosedBrace_ || !suspicious_)
      return std::nullopt;
    const Token opening = *suspicious_;
    const uint32_t limit = indentOf(opening);
    for (uint32_t i = 0; i < input_.size(); ++i)
      if (input_[i].begin > opening.begin && input_[i].newlineBefore && indentOf(input_[i]) <= limit)
        return Repair{i, opening, false};
    return std::nullopt;
  }

private:
  /// The line above input token `closing`, a `}`, that is indented like it: what begins there needs a `{` at its end if it has a block.
  std::optional<Repair> missingOpening(uint32_t closing) const {
    const uint32_t indent = indentOf(input_[closing]);
    uint32_t first = closing;
    do {
      if (first-- == 0)
        return std::nullopt;
    } while ((first != 0 && !input_[first].newlineBefore) || indentOf(input_[first]) > indent);
    if (indentOf(input_[first]) < indent)
      return std::nullopt;
    first = lineOfOpening(first);
    bool hasBlock = false;
    uint32_t depth = 0, end = first;
    for (; end < closing; ++end) {
      const Token& token = input_[end];
      if (end > first && token.newlineBefore && depth == 0 && token.tok != Tok::Arrow && token.tok != Tok::KwWhere)
        break;
      if (token.tok == Tok::LBrace)
        return std::nullopt;
      hasBlock |= depth == 0 && isBlockKeyword(token.tok);
      if (token.tok == Tok::LParen || token.tok == Tok::LBracket)
        ++depth;
      else if ((token.tok == Tok::RParen || token.tok == Tok::RBracket) && depth > 0)
        --depth;
    }
    return hasBlock ? std::optional(Repair{end, input_[closing], false}) : std::nullopt;
  }

  /// Where the line with `token` begins, or if that is `)` or `]` the line on which it was opened.
  uint32_t lineOfOpening(uint32_t token) const {
    const auto isRound = [&](Tok round, Tok square) {
      return input_[token].tok == round || input_[token].tok == square;
    };
    uint32_t depth = isRound(Tok::RParen, Tok::RBracket) ? 1 : 0;
    while (token > 0 && (depth > 0 || !input_[token].newlineBefore)) {
      --token;
      if (isRound(Tok::RParen, Tok::RBracket))
        ++depth;
      else if (isRound(Tok::LParen, Tok::LBracket) && depth > 0)
        --depth;
    }
    return token;
  }

  static bool isBlockKeyword(Tok tok) {
    constexpr auto kWords =
        std::to_array({Tok::KwIf, Tok::KwElse, Tok::KwMatch, Tok::KwWhile, Tok::KwLoop, Tok::KwFor, Tok::KwFn,
                       Tok::KwKernel, Tok::KwStruct, Tok::KwEnum, Tok::KwTrait, Tok::KwImpl});
    return std::ranges::find(kWords, tok) != kWords.end();
  }

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
    } else if (const auto repair = std::ranges::find(repairs_, i, &Repair::before); repair != repairs_.end()) {
      if (repair->isDropped)
        return newIndex_.push_back(static_cast<uint32_t>(stream_.tokens.size()));
      const bool isOpening = repair->other.tok == Tok::RBrace;
      if (isOpening && stream_.tokens.back().tok == Tok::Colon) {
        stream_.tokens.pop_back();
        stream_.partner.pop_back();
      }
      Token added{.tok = isOpening ? Tok::LBrace : Tok::RBrace, .newlineBefore = !isOpening, .isSynthetic = true};
      added.begin = added.end = stream_.tokens.back().end;
      if (isOpening || prepareClosing(added))
        append(added);
    } else if (startsBody(i)) {
      closeSynthetically(token, nullptr);
    } else if (startsStatement(i)) {
      while (!open_.empty() && open_.back().tok != Tok::LBrace)
        closeSynthetically(token, nullptr);
    }
    if (isClosing(token.tok))
      noteDeeper(i);
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
      diag::DiagnosticSink braces;
      auto error = (token.tok == Tok::RBrace ? braces : sink_)
                       .error("E0107", rangeOf(token), "`" + std::string(spelling(token.tok)) + "` closes nothing");
      if (!open_.empty())
        error.label(rangeOf(stream_.tokens[open_.back().index]), "the innermost open bracket is this one");
      error.emit();
      stream_.surplus.insert(stream_.surplus.end(), braces.all().begin(), braces.all().end());
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

  /// Remembers the first `}` that stands further right than the line of the `{` it would close, or that closes nothing: a `{` is probably
  /// missing before it.
  void noteDeeper(size_t i) {
    const Token& closing = input_[i];
    if (closing.tok != Tok::RBrace || (i > 0 && !closing.newlineBefore) || deeper_)
      return;
    const auto open = std::ranges::find(open_.rbegin(), open_.rend(), Tok::LBrace, &Open::tok);
    closesSome_ = open != open_.rend();
    if (!closesSome_ || indentOf(closing) > indentOf(stream_.tokens[open->index]))
      deeper_ = static_cast<uint32_t>(i);
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
  const std::vector<Repair>& repairs_;
  TokenStream stream_;
  source::FileId file_;
  const source::SourceManager& sources_;
  diag::DiagnosticSink& sink_;
  std::vector<Open> open_;
  std::vector<uint32_t> newIndex_;
  std::optional<Token> suspicious_;
  std::optional<uint32_t> deeper_;
  bool closesSome_ = false;  ///< `deeper_`, or the last `}` without it
  std::set<uint32_t> reportedLines_;
  std::array<uint32_t, static_cast<size_t>(Tok::RBrace) + 1> openCount_{};
  uint32_t unclosedCount_ = 0;
  uint32_t surplusCount_ = 0;
  bool unclosedBrace_ = false;
  bool ok_ = true;
};

/// A `{` is missing behind `last`; `closing` is its `}`.
void reportMissingOpening(const Token& last, const Token& closing, source::FileId file, std::string_view text,
                          diag::DiagnosticSink& sink) {
  const source::SourceRange at{file, last.begin, last.end};
  const bool isColon = last.tok == Tok::Colon;
  auto error = isColon ? sink.error("E0117", at, "blocks do not begin with `:`")
                       : sink.error("E0110", at, "a `{` is missing at the end of this line");
  error.label({file, closing.begin, closing.end}, "judging by the indentation this `}` closes it");
  const std::string_view rest = text.substr(last.end, text.find_first_of("\r\n", last.end) - last.end);
  if (const size_t comment = rest.find("//"); comment != rest.npos && rest.find('{', comment) != rest.npos)
    error.help("`//` begins a comment; whole numbers are divided with `/`");
  else
    error.fix(isColon ? at : source::SourceRange{file, last.end, last.end}, " {", "begin the block");
}

}  // namespace

bool balanceBrackets(TokenStream& stream, source::FileId file, const source::SourceManager& sources,
                     diag::DiagnosticSink& sink) {
  constexpr size_t kMaxRepairs = 8;
  const std::vector<Token> input = std::move(stream.tokens);
  std::vector<Balancer::Repair> repairs;
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
    repairs.push_back(*repair);
    if (repair->isDropped)
      sink.error("E0107", {file, repair->other.begin, repair->other.end}, "`}` closes nothing")
          .primary("judging by the indentation this one is too many");
    else if (repair->other.tok == Tok::RBrace)
      reportMissingOpening(input[repair->before - 1], repair->other, file, sources.file(file).text(), sink);
    else
      sink.error("E0106", {file, repair->other.begin, repair->other.end}, "this `{` is not closed")
          .primary("opened here; judging by the indentation its `}` is missing");
  }
}

}  // namespace vortex::lang::syntax
