// What is written otherwise in other languages: the message says how it is written here. Each function is asked where the parser would fail.

#include "lang/syntax/literal.h"
#include "lang/syntax/parser_state.h"

#include "base/text.h"
#include "diag/names_elsewhere.h"

namespace vortex::lang::syntax {

bool Parser::complainAboutForeignStatement() {
  if (!is(Tok::Identifier))
    return false;
  const std::string_view word = textOf(current());
  const Tok next = ahead(1).tok;
  const bool isFollowedByName =
      isOnSameLine(1) && (next == Tok::Identifier || next == Tok::String || (isKeyword(next) && next != Tok::KwAs));
  const char* help = isFollowedByName ? diag::declarationElsewhere(word) : nullptr;
  if (word == "elif" || word == "elsif" || word == "elseif")
    help = ahead(1).newlineBefore || next == Tok::Eq || next == Tok::Dot ? nullptr : "write `else if`";
  else if (next == Tok::LBrace && !startsStructFields(at_ + 1))
    help = diag::blockElsewhere(word);
  else if (next == Tok::Colon && ahead(2).tok == Tok::Eq && isOnSameLine(2))
    return fail("E0117", join(rangeOf(ahead(1)), rangeOf(ahead(2))), "there is no `:=`")
               .help(base::concat("declare the variable: `let ", word, " = …`, or `var` if it changes")),
           true;
  if (!help)
    return false;
  fail("E0117", here(), "`" + std::string(word) + "` is not part of the language").help(help);
  return true;
}

void Parser::mendForeignOperator() {
  if (newlineBefore() || isUnreliable())
    return;
  struct Row {
    Tok first, second;
    const char* written;
    Tok meant;
  };
  static constexpr Row kRows[] = {{Tok::Eq, Tok::Lt, "=<", Tok::LtEq},
                                  {Tok::Lt, Tok::Gt, "<>", Tok::NotEq},
                                  {Tok::EqEq, Tok::Eq, "===", Tok::EqEq},
                                  {Tok::NotEq, Tok::Eq, "!==", Tok::NotEq}};
  const auto mend = [&](SourceRange range, std::string_view written, Tok meant) {
    complain("E0117", range, base::concat("there is no `", written, "` operator"))
        .fix(range, std::string(spelling(meant)), "write");
    stream_.tokens[at_].tok = meant;
  };
  for (const Row& row : kRows)
    if (is(row.first) && ahead(1).tok == row.second && ahead(1).begin == current().end) {
      const SourceRange range = join(here(), rangeOf(ahead(1)));
      advance();
      return mend(range, row.written, row.meant);
    }
  if (is(Tok::FatArrow) && noStruct_)
    return mend(here(), "=>", Tok::GtEq);
  if (is(Tok::Identifier) && isOnSameLine(1))
    for (const auto& [word, meant] : {std::pair("and", Tok::AndAnd),
                                      {"or", Tok::OrOr},
                                      {"is", Tok::EqEq},
                                      {"mod", Tok::Percent},
                                      {"div", Tok::Slash},
                                      {"xor", Tok::Caret}})
      if (isWord(word))
        return mend(here(), word, meant);
}

void Parser::mendForeignNot() {
  const Tok next = ahead(1).tok;
  const bool isOperator = isWord("not") && isOnSameLine(1) &&
                          (next == Tok::Identifier || next == Tok::Int || next == Tok::KwTrue || next == Tok::KwFalse ||
                           (next == Tok::LParen && ahead(1).begin > current().end));
  if (!isOperator)
    return;
  complain("E0117", here(), "there is no `not` operator").fix({file_, current().begin, ahead(1).begin}, "!", "write");
  stream_.tokens[at_].tok = Tok::Bang;
}

bool Parser::complainAboutForeignElse() {
  if (!is(Tok::Identifier))
    return false;
  const std::string word(textOf(current()));
  const Tok next = ahead(1).tok;
  if (word == "elif" || word == "elsif" || word == "elseif") {
    const bool isName = ahead(1).newlineBefore || next == Tok::Eq || next == Tok::Dot;
    if (!isName)
      complain("E0117", here(), "`" + word + "` is not part of the language").fix(here(), "else if", "write");
    return !isName;
  }
  if ((next == Tok::LBrace || next == Tok::KwIf) && previous().tok == Tok::RBrace)
    complainAboutMisspelt("E0110", "a statement", {Tok::KwElse});
  return false;
}

bool Parser::complainAboutForeignBlock() {
  if (!is(Tok::Colon))
    return false;
  fail("E0117", here(), "blocks do not begin with `:`").help("write `{ … }` around the statements");
  return true;
}

bool Parser::complainAboutForeignOperand() {
  const bool isLaunch = is(Tok::Lt) && at_ > 0 && previous().tok == Tok::Shl && isAdjacent();
  if (isLaunch)
    fail("E0117", join(rangeOf(previous()), here()), "there is no `<<<…>>>`")
        .help("write `k(x)`: the grid follows from the tensors; or `k.launch(grid = [blocks], block = threads)(x)`");
  return isLaunch;
}

bool Parser::complainAboutForeignString() {
  const bool isFormatted = is(Tok::String) && isAdjacent() && previous().tok == Tok::Identifier;
  if (isFormatted)
    fail("E0117", rangeOf(previous()), "strings have no prefix")
        .help("values fill braces in order: `print(\"{} of {}\", i, n)`");
  return isFormatted;
}

/// `(f32) x`, where `)` is the token before.
bool Parser::complainAboutForeignCast() {
  if (at_ < 3 || previous().tok != Tok::RParen || stream_.tokens[at_ - 3].tok != Tok::LParen || newlineBefore() ||
      !isTypeWord(textOf(stream_.tokens[at_ - 2])))
    return false;
  const std::string type(textOf(stream_.tokens[at_ - 2]));
  const char* ours = diag::typeElsewhere(type);
  fail("E0117", join(rangeOf(stream_.tokens[at_ - 3]), rangeOf(previous())), "conversions are not written `(T) x`")
      .help("write `x as T`: " + (ours ? "here `" + type + "` is " + ours : "`x as " + type + "`"));
  return true;
}

bool Parser::complainAboutForeignLambda() {
  const bool isLambda = is(Tok::FatArrow);
  if (isLambda)
    fail("E0117", here(), "closures are not written with `=>`").help("a closure is written `|x| x + 1`");
  return isLambda;
}

bool Parser::complainAboutForeignImport() {
  const bool isQuoted = is(Tok::String), isSwapped = is(Tok::LBrace) || is(Tok::Star);
  if (isQuoted || isSwapped)
    fail("E0117", here(), isQuoted ? "modules are not named by strings" : "the module stands before its names")
        .help("`import a.b { X }` takes X from the file a/b.vx");
  return isQuoted || isSwapped;
}

/// `for (int i = 0; …)`, `for (i in 0..n)`.
bool Parser::complainAboutForeignLoop() {
  if (!is(Tok::LParen))
    return false;
  const uint32_t close = stream_.partner[at_];
  bool hasIn = false;
  for (uint32_t at = at_ + 1; at < close; ++at)
    hasIn |= stream_.tokens[at].tok == Tok::KwIn;
  if (bracketHasSemicolon(at_))
    fail("E0117", here(), "there are no C-style `for` loops").help("write `for i in 0..n { … }`");
  else if (hasIn)
    fail("E0117", here(), "a loop has no parentheses around its range").help("write `for i in 0..n { … }`");
  return failed_;
}

bool Parser::complainAboutTypedShape() {
  const uint32_t close = stream_.partner[at_];
  const Token& after = stream_.tokens[close + 1 < stream_.tokens.size() ? close + 1 : close];
  const bool isWritten = !bracketHasSemicolon(at_) && after.tok == Tok::Identifier && !after.newlineBefore &&
                         textOf(after) != "reduce" && textOf(after) != "and" && textOf(after) != "or";
  if (!isWritten)
    return false;
  const std::string_view shape = text_.substr(current().begin, stream_.tokens[close].end - current().begin);
  complain("E0117", join(here(), rangeOf(after)), "the type of a tensor is not written `[…] T`")
      .help("write `Tensor<" + std::string(textOf(after)) + ", " + std::string(shape) + ">`");
  at_ = close + 2;
  return true;
}

/// `f32[N]`, `Tensor[f32, N]`, `Tensor(f32, N)`.
bool Parser::complainAboutShapeBehindType() {
  const bool isCall = is(Tok::LParen) && isTypeWord(textOf(previous()));
  if ((!is(Tok::LBracket) && !isCall) || newlineBefore())
    return false;
  const Token& close = stream_.tokens[stream_.partner[at_]];
  const std::string_view type = textOf(previous());
  const bool isScalar = isScalarSuffix(type) && is(Tok::LBracket) && stream_.partner[at_] > at_ + 1;
  complain("E0117", here(), isCall ? "a type has no `(…)` behind it" : "a type has no `[…]` behind it")
      .help(isScalar ? base::concat("write `Tensor<", type, ", ",
                                    text_.substr(current().begin, close.end - current().begin), ">`")
                     : "a tensor is written `Tensor<f32, [M, N]>`, an array `[f32; 4]`");
  skipOne();
  return true;
}

/// `unsigned int`.
bool Parser::complainAboutTwoWordType() {
  if (ahead(1).tok != Tok::Identifier || !isOnSameLine(1))
    return false;
  const std::string words = base::concat(textOf(current()), " ", textOf(ahead(1)));
  const char* ours = diag::typeElsewhere(words);
  if (!ours)
    return false;
  complain("E0117", join(here(), rangeOf(ahead(1))), "there is no type `" + words + "`")
      .help(base::concat("here this is ", ours));
  advance();
  advance();
  return true;
}

bool Parser::complainAboutTypeBeforeName(const Name& name) {
  uint32_t count = 0;
  while (ahead(count).tok == Tok::Star || ahead(count).tok == Tok::Amp)
    ++count;
  if (!isTypeWord(name.text) || ahead(count).tok != Tok::Identifier || newlineBefore() || !isOnSameLine(count))
    return false;
  const std::string other(textOf(ahead(count)));
  const char* ours = diag::typeElsewhere(name.text);
  const std::string type = ours                    ? ours
                           : name.text == "Tensor" ? "`Tensor<f32, [N]>`"
                                                   : base::concat("`", name.text, "`");
  fail("E0123", join(name.range, rangeOf(ahead(count))), "the type stands behind the name")
      .help(count > 0 ? "write `" + other + ": &Tensor<f32, [N]>`, or `&mut Tensor<f32, [N]>` to write to it"
                      : "write `" + other + ": " + type.substr(1));
  return true;
}

bool Parser::complainAboutForeignResult() {
  const bool isForgotten = is(Tok::Identifier) && !newlineBefore() && isTypeWord(textOf(current()));
  if (!is(Tok::Colon) && !is(Tok::FatArrow) && !isForgotten)
    return false;
  if (isForgotten) {
    complain("E0117", here(), "a result stands behind `->`").fix({file_, here().begin, here().begin}, "-> ", "write");
    return true;
  }
  complain("E0117", here(), "results are not written behind `" + std::string(spelling(current().tok)) + "`")
      .fix(here(), "->", "write an arrow");
  advance();
  return true;
}

bool Parser::complainAboutForeignRange(bool isIndex) {
  const bool isEllipsis = is(Tok::Ellipsis) && (isIndex || noStruct_);
  // `for i in 0:n {`; a block of Python has no brace on the line.
  bool isColon = is(Tok::Colon) && noStruct_ && previous().tok == Tok::Int && isOnSameLine(1);
  for (uint32_t count = 1; isColon && ahead(count).tok != Tok::LBrace; ++count)
    isColon = isOnSameLine(count);
  if ((!isEllipsis && !isColon) || newlineBefore())
    return false;
  complain("E0117", here(), "ranges are not written with `" + std::string(spelling(current().tok)) + "`")
      .fix(here(), "..", "write two dots, which leave out the end");
  stream_.tokens[at_].tok = Tok::DotDot;
  return true;
}

/// `.Red -> x`, `.Red: x`.
bool Parser::complainAboutForeignArrow() {
  if (!is(Tok::Arrow) && !is(Tok::Colon))
    return false;
  complain("E0117", here(),
           "the value of a pattern is not written behind `" + std::string(spelling(current().tok)) + "`")
      .fix(here(), "=>", "write");
  advance();
  return true;
}

List<Attribute> Parser::withoutForeignSpaces(List<Attribute> attributes) {
  std::vector<Attribute> others;
  for (const Attribute& attribute : attributes) {
    const std::string name(attribute.name.text);
    if (name == "shared" || name == "local" || name == "constant")
      complain("E0117", attribute.range, "a memory space stands behind the type")
          .help("write `let tile: Tensor<f32, [256]> @" + name + "`");
    else
      others.push_back(attribute);
  }
  return module_.arena.copyList(others);
}

bool Parser::complainAboutUntypedConst(const Name& name) {
  const bool isInteger = is(Tok::Identifier) && isScalarSuffix(textOf(current())) &&
                         (textOf(current())[0] == 'i' || textOf(current())[0] == 'u');
  const bool isValue = isInteger || isWord("bool");
  if (isValue)
    complain("E0117", join(name.range, here()), "a parameter that is a value is declared with `const`")
        .fix(name.range, "const " + std::string(name.text), "write")
        .note("extents of tensors need no declaration: `fn f(x: &Tensor<f32, [M, N]>)`");
  return isValue;
}

}  // namespace vortex::lang::syntax
