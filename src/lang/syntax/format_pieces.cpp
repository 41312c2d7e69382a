// Classifies the tokens and decides the space between two of them.

#include "lang/syntax/ast_walk.h"
#include "lang/syntax/format_layout.h"

#include <algorithm>

namespace vortex::lang::syntax {
namespace {

class FactCollector : public AstWalker {
public:
  explicit FactCollector(TokenFacts& facts) : facts_(facts) {}

private:
  bool onExpr(const Expr* expr) override {
    if (const auto* binary = expr->tryAs<BinaryExpr>())
      facts_.binaryOperators.insert(binary->opRange.begin);
    return true;
  }
  void onBody(const BlockExpr* body) override { facts_.bodyBraces.insert(body->range.begin); }

  TokenFacts& facts_;
};

bool isWord(Tok tok) {
  return tok == Tok::Identifier || tok == Tok::Int || tok == Tok::Float || tok == Tok::String || isKeyword(tok);
}

/// Assigns roles in one pass; closures need to know at which bracket depth their first `|` stood.
class Classifier {
public:
  explicit Classifier(const TokenFacts& facts) : facts_(facts) {}

  Role classify(const Token& token, const Piece* previous, bool startsStatement) {
    const bool afterOperand = previous && endsOperand(*previous) && !startsStatement;
    if (isOpening(token.tok))
      ++depth_;
    else if (isClosing(token.tok))
      --depth_;
    if (isWord(token.tok))
      return Role::Word;
    switch (token.tok) {
    case Tok::Lt: return isBinary(token) ? Role::Binary : (++openGenerics_, Role::GenericOpen);
    case Tok::Gt:
    case Tok::Shr:
    case Tok::GtEq:
    case Tok::ShrEq: return isBinary(token) || openGenerics_ <= 0 ? Role::Binary : closeGeneric(token.tok);
    case Tok::Pipe:
    case Tok::OrOr: return pipe(token, afterOperand);
    case Tok::At: return isBinary(token) ? Role::Binary : Role::AttributeAt;
    case Tok::Minus:
    case Tok::Star:
    case Tok::Amp:
    case Tok::AndAnd:
    case Tok::Bang:
    case Tok::Tilde: return isBinary(token) ? Role::Binary : Role::Prefix;
    case Tok::Plus: return previous && previous->tok == Tok::DotDot ? Role::Prefix : Role::Binary;
    case Tok::Dot:
      return afterOperand || (previous && startsStatement && endsOperand(*previous)) ? Role::Plain : Role::Prefix;
    default: break;
    }
    const bool isOperator = (token.tok >= Tok::StarStarEq && token.tok <= Tok::CaretEq) || token.tok == Tok::Eq ||
                            token.tok == Tok::Slash || token.tok == Tok::Percent || token.tok == Tok::Caret;
    return isOperator && token.tok != Tok::DotDot && token.tok != Tok::ColonColon ? Role::Binary : Role::Plain;
  }

private:
  bool isBinary(const Token& token) const { return facts_.binaryOperators.contains(token.begin); }

  Role closeGeneric(Tok tok) {
    openGenerics_ -= tok == Tok::Shr || tok == Tok::ShrEq ? 2 : 1;
    return Role::GenericClose;
  }

  Role pipe(const Token& token, bool afterOperand) {
    if (isBinary(token))
      return Role::Binary;
    if (!closureDepths_.empty() && closureDepths_.back() == depth_ && token.tok == Tok::Pipe) {
      closureDepths_.pop_back();
      return Role::ClosureClose;
    }
    if (afterOperand)
      return Role::Binary;  // between the alternatives of a pattern
    if (token.tok == Tok::OrOr)
      return Role::ClosureClose;
    closureDepths_.push_back(depth_);
    return Role::ClosureOpen;
  }

  const TokenFacts& facts_;
  int depth_ = 0;
  /// Tells `Vec<f32>= y` from `x >>= 1`.
  int openGenerics_ = 0;
  std::vector<int> closureDepths_;
};

uint8_t breaksIn(std::string_view gap) {
  // Lines may end in one or the other, or in both.
  const ptrdiff_t ends = std::max(std::count(gap.begin(), gap.end(), '\n'), std::count(gap.begin(), gap.end(), '\r'));
  return static_cast<uint8_t>(std::min<ptrdiff_t>(2, ends));
}

}  // namespace

TokenFacts collectFacts(const Module& module) {
  TokenFacts facts;
  FactCollector(facts).walk(module);
  return facts;
}

bool endsOperand(const Piece& piece) {
  switch (piece.tok) {
  case Tok::Identifier:
  case Tok::Int:
  case Tok::Float:
  case Tok::String:
  case Tok::KwTrue:
  case Tok::KwFalse:
  case Tok::KwInf:
  case Tok::RParen:
  case Tok::RBracket:
  case Tok::RBrace: return true;
  default: return piece.role == Role::GenericClose;
  }
}

std::vector<Piece> makePieces(const TokenStream& raw, const TokenStream& balanced, std::string_view text,
                              const TokenFacts& facts) {
  std::vector<Piece> pieces;
  Classifier classifier(facts);
  size_t comment = 0;
  uint32_t end = 0;
  size_t lastToken = SIZE_MAX;
  const auto addComments = [&](uint32_t tokenIndex) {
    for (; comment < raw.comments.size() && raw.comments[comment].tokenIndex == tokenIndex; ++comment) {
      const Comment& each = raw.comments[comment];
      Piece piece{.role = Role::Comment, .text = text.substr(each.begin, each.end - each.begin)};
      piece.breaks = breaksIn(text.substr(end, each.begin - end));
      while (piece.text.ends_with(' ') || piece.text.ends_with('\t'))
        piece.text.remove_suffix(1);
      pieces.push_back(piece);
      end = each.end;
    }
  };
  for (uint32_t i = 0; i < raw.tokens.size(); ++i) {
    addComments(i);
    const Token& token = raw.tokens[i];
    if (token.tok == Tok::EndOfFile)
      break;
    Piece piece{.tok = token.tok, .text = text.substr(token.begin, token.end - token.begin)};
    piece.breaks = breaksIn(text.substr(end, token.begin - end));
    piece.isAdjacent = end == token.begin;
    piece.isSignificantBreak = balanced.tokens[i].newlineBefore;
    piece.role =
        classifier.classify(token, lastToken == SIZE_MAX ? nullptr : &pieces[lastToken], piece.isSignificantBreak);
    // `{` of a body and `else` join the line before, unless a comment stands between.
    const bool afterToken = !pieces.empty() && lastToken == pieces.size() - 1;
    const bool joins =
        facts.bodyBraces.contains(token.begin) || (token.tok == Tok::KwElse && pieces.back().tok == Tok::RBrace);
    if (afterToken && joins)
      piece.breaks = 0;
    // `>=` that closes generics is two pieces, so that `A<T>= x` becomes `A<T> = x`.
    const bool isSplit = piece.role == Role::GenericClose && (token.tok == Tok::GtEq || token.tok == Tok::ShrEq);
    if (isSplit) {
      piece.tok = token.tok == Tok::GtEq ? Tok::Gt : Tok::Shr;
      piece.text.remove_suffix(1);
    }
    pieces.push_back(piece);
    if (isSplit)
      pieces.push_back({.role = Role::Binary, .tok = Tok::Eq, .text = text.substr(token.end - 1, 1)});
    lastToken = pieces.size() - 1;
    end = token.end;
  }
  if (!pieces.empty())
    pieces.front().breaks = 0;
  // `.Blue => …` starts the next arm of a match, it does not continue the line before.
  for (size_t i = 0; i + 2 < pieces.size(); ++i)
    if (pieces[i].tok == Tok::Dot && pieces[i].breaks > 0 && pieces[i + 2].tok == Tok::FatArrow)
      pieces[i].role = Role::Prefix;
  // No blank lines at the edges of a block.
  for (size_t i = 1; i < pieces.size(); ++i) {
    size_t before = i - 1;
    while (before > 0 && pieces[before].role == Role::Comment && pieces[before].breaks == 0)
      --before;
    if (pieces[before].tok == Tok::LBrace || isClosing(pieces[i].tok))
      pieces[i].breaks = std::min<uint8_t>(pieces[i].breaks, 1);
  }
  return pieces;
}

static bool spaceBeforeParen(const Piece& before, const Piece& after, const std::vector<Piece>& pieces, size_t index) {
  const bool isAttributeName = index >= 2 && pieces[index - 2].role == Role::AttributeAt;
  if (isAttributeName && after.tok == Tok::LParen)
    return !after.isAdjacent;
  if (before.tok == Tok::KwFn || before.tok == Tok::ColonColon || before.role == Role::GenericClose ||
      before.tok == Tok::Bang)
    return false;
  if (before.tok == Tok::RBrace || isKeyword(before.tok))
    return true;
  return !endsOperand(before);
}

bool needsSpace(const std::vector<Piece>& pieces, size_t index) {
  const Piece &before = pieces[index - 1], &after = pieces[index];
  if (before.role == Role::Comment || after.role == Role::Comment)
    return true;
  if (after.tok == Tok::Comma || after.tok == Tok::Semicolon || after.tok == Tok::RParen || after.tok == Tok::RBracket)
    return false;
  if (before.tok == Tok::LParen || before.tok == Tok::LBracket || before.role == Role::Prefix ||
      before.role == Role::AttributeAt || before.role == Role::GenericOpen || before.role == Role::ClosureOpen ||
      before.tok == Tok::Dot || before.tok == Tok::ColonColon)
    return false;
  if (before.tok == Tok::Comma || before.tok == Tok::Semicolon || before.role == Role::Binary ||
      before.role == Role::ClosureClose)
    return true;
  if (before.tok == Tok::LBrace)
    return after.tok != Tok::RBrace;
  if (after.role == Role::GenericOpen || after.role == Role::GenericClose || after.role == Role::ClosureClose ||
      after.tok == Tok::ColonColon || after.tok == Tok::Colon)
    return after.tok == Tok::OrOr;  // a closure without parameters
  if (after.role == Role::Plain && after.tok == Tok::Dot)
    return before.tok == Tok::Int && !after.isAdjacent;  // `10 .e5` and `10.e5` differ
  if (before.tok == Tok::DotDot)                         // `a..` ends a pattern
    return after.tok == Tok::FatArrow || after.tok == Tok::Pipe || after.tok == Tok::KwIf;
  if (after.tok == Tok::DotDot)
    return !endsOperand(before) || before.text.ends_with('.');
  if (after.tok == Tok::LParen || after.tok == Tok::LBracket)
    return spaceBeforeParen(before, after, pieces, index);
  if (after.tok == Tok::Bang && before.tok == Tok::Identifier)
    return !after.isAdjacent;
  return true;
}

}  // namespace vortex::lang::syntax
