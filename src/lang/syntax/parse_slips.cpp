// Words that are keywords but for a slip, and punctuation that is missing: reported where it is missing, and read as if it stood there.

#include "lang/syntax/literal.h"
#include "lang/syntax/parser_state.h"

#include "base/nearest.h"
#include "diag/names_elsewhere.h"

namespace vortex::lang::syntax {

bool Parser::isOnSameLine(uint32_t count) const {
  const Token& token = ahead(count);
  const std::string_view between = text_.substr(current().begin, token.begin - current().begin);
  return token.tok != Tok::EndOfFile && between.find_first_of("\r\n") == std::string_view::npos;
}

bool Parser::isTypeWord(std::string_view word) const {
  return isScalarSuffix(word) || word == "bool" || word == "Tensor" || word == "Vec" || word == "String" ||
         diag::typeElsewhere(word);
}

bool Parser::complainAboutMisspelt(std::string_view id, std::string_view what, std::initializer_list<Tok> meant) {
  std::vector<std::string> words;
  for (const Tok tok : meant)
    words.emplace_back(spelling(tok));
  const std::string close = is(Tok::Identifier) ? base::nearest(textOf(current()), words) : "";
  if (close.empty())
    return false;
  complain(id, here(), "expected " + std::string(what) + ", found " + describeCurrent())
      .fix(here(), close, "did you mean");
  replaceWord(keywordOf(close));
  return true;
}

bool Parser::complainAboutMisspeltItem() {
  const bool isAlone =
      !isOnSameLine(1) || ahead(1).tok == Tok::LParen || ahead(1).tok == Tok::Eq || ahead(1).tok == Tok::Dot;
  return !isAlone && complainAboutMisspelt("E0116", "an item",
                                           {Tok::KwFn, Tok::KwKernel, Tok::KwStruct, Tok::KwEnum, Tok::KwTrait,
                                            Tok::KwImpl, Tok::KwType, Tok::KwConst, Tok::KwImport, Tok::KwPub});
}

bool Parser::complainAboutMissingStart() {
  if (!is(Tok::Identifier) || ahead(1).tok != Tok::LParen || !isOnSameLine(1))
    return false;
  const Tok after = ahead(stream_.partner[at_ + 1] - at_ + 1).tok;
  const bool isFunction = after == Tok::LBrace || after == Tok::Arrow;
  fail("E0116", here(), "expected an item, found " + describeCurrent())
      .fix({file_, current().begin, current().begin}, isFunction ? "fn " : "@",
           isFunction ? "functions begin with `fn`" : "attributes begin with `@`");
  return true;
}

/// Two words or a word and a literal side by side are no expression: the first one was to be a keyword.
bool Parser::complainAboutMisspeltStatement() {
  if (!is(Tok::Identifier) || !isOnSameLine(1))
    return false;
  const Tok next = ahead(1).tok;
  const bool isWord = next == Tok::Identifier || (isKeyword(next) && next != Tok::KwAs && next != Tok::KwWhere);
  if (isWord || next == Tok::Int || next == Tok::Float || next == Tok::String)
    return complainAboutMisspelt("E0110", "a statement",
                                 {Tok::KwLet, Tok::KwVar, Tok::KwIf, Tok::KwFor, Tok::KwWhile, Tok::KwMatch,
                                  Tok::KwReturn, Tok::KwBreak, Tok::KwFn, Tok::KwConst, Tok::KwStruct});
  return next == Tok::LBrace && !startsStructFields(at_ + 1) &&
         complainAboutMisspelt("E0110", "a statement", {Tok::KwLoop});
}

bool Parser::complainAboutMisspeltOperand() {
  const bool isFollowed =
      isOnSameLine(1) && (ahead(1).tok == Tok::Identifier || ahead(1).tok == Tok::Int || ahead(1).tok == Tok::Float);
  return isFollowed && !complainAboutForeignStatement() &&
         complainAboutMisspelt("E0110", "an expression", {Tok::KwIf, Tok::KwMatch});
}

bool Parser::complainAboutMissingColon(const Name& name, std::string_view what) {
  const bool startsType = (is(Tok::Identifier) && ahead(1).tok != Tok::Colon) || is(Tok::Amp) || is(Tok::LBracket);
  if (!startsType || newlineBefore())
    return false;
  complain("E0123", name.range,
           "a `:` is missing between the " + std::string(what) + " `" + std::string(name.text) + "` and its type")
      .fix({file_, name.range.end, name.range.end}, ":", "write a colon behind it");
  return true;
}

/// `Tensor<u8, [N], next: …`: the list of parameters goes on, so the type ended before the comma.
bool Parser::complainAboutMissingGreater() {
  if (!is(Tok::Comma) || ahead(1).tok != Tok::Identifier || ahead(2).tok != Tok::Colon)
    return false;
  const SourceRange last = rangeOf(previous());
  complain("E0110", last, "expected `>` behind the arguments of the type")
      .fix({file_, last.end, last.end}, ">", "write");
  return true;
}

bool Parser::complainAboutMissingComma(bool& isSaid) {
  if (is(Tok::Semicolon)) {
    if (!isSaid)
      complain("E0110", here(), "expected `,`, found `;`").help("write commas between them");
    isSaid = true;
    stream_.tokens[at_].tok = Tok::Comma;
    return true;
  }
  const bool startsElement =
      is(Tok::Identifier) || is(Tok::Int) || is(Tok::Float) || is(Tok::String) || is(Tok::At) || is(Tok::KwPub);
  const std::string_view between = text_.substr(previous().end, current().begin - previous().end);
  if (!startsElement || between.find_first_of("\r\n") == std::string_view::npos)
    return false;
  const SourceRange last = rangeOf(previous());
  if (!isSaid)
    complain("E0110", last, "expected `,` at the end of this line").help("write commas between them");
  isSaid = true;
  return true;
}

/// `a < b < c`; in `a < b & c < d` the `&` was to be `&&`.
void Parser::complainAboutChain(const Expr* lhs) {
  const auto* inner = lhs->is<BinaryExpr>() ? lhs->as<BinaryExpr>()->rhs->tryAs<BinaryExpr>() : nullptr;
  auto error = complain("E0114", here(), "comparisons cannot be chained");
  if (inner && (inner->op == BinaryOp::BitAnd || inner->op == BinaryOp::BitOr))
    error.label(inner->opRange, "this is an operator on bits")
        .fix(inner->opRange, inner->op == BinaryOp::BitAnd ? "&&" : "||", "to combine two comparisons, write");
  else
    error.help("write `a < b && b < c`; for generic arguments write `::` first: `f::<f32>(x)`");
}

/// `f<f32>(x)`: no type is a value, so this compares nothing.
bool Parser::complainAboutGenericCall() {
  const bool isWritten = is(Tok::Lt) && ahead(1).tok == Tok::Identifier && isTypeWord(textOf(ahead(1))) &&
                         ahead(2).tok == Tok::Gt && ahead(3).tok == Tok::LParen;
  if (isWritten)
    complain("E0114", here(), "generic arguments of a call stand behind `::`").fix(here(), "::<", "write");
  return isWritten;
}

}  // namespace vortex::lang::syntax
