// What is written otherwise in other languages: the message says how it is written here. Each function is asked where the parser would fail.

#include "lang/syntax/literal.h"
#include "lang/syntax/parser_state.h"

namespace vortex::lang::syntax {

namespace {

/// What to write instead of a declaration that begins with this word, and a name behind it.
const char* helpForDeclaration(std::string_view word) {
  struct Row {
    const char* word;
    const char* help;
  };
  constexpr const char* kVariable = "declare variables with `let` or, if they change, `var`";
  constexpr const char* kFunction = "functions are declared with `fn`";
  constexpr const char* kImport = "write `import a.b { X }`";
  constexpr const char* kKernel = "kernels are declared with `kernel`: `kernel scale(x: &mut Tensor<f32, [N]>) { … }`";
  constexpr const char* kShared = "memory of a block is declared in the kernel: `let tile: Tensor<f32, [256]> @shared`";
  static constexpr Row kRows[] = {{"mut", kVariable},      {"auto", kVariable},      {"int", kVariable},
                                  {"float", kVariable},    {"double", kVariable},    {"uint", kVariable},
                                  {"def", kFunction},      {"function", kFunction},  {"func", kFunction},
                                  {"void", kFunction},     {"use", kImport},         {"include", kImport},
                                  {"from", kImport},       {"__global__", kKernel},  {"__device__", kFunction},
                                  {"__shared__", kShared}, {"threadgroup", kShared}, {"shared", kShared}};
  for (const Row& row : kRows)
    if (word == row.word)
      return row.help;
  return nullptr;
}

}  // namespace

bool Parser::complainAboutForeignStatement() {
  if (!is(Tok::Identifier))
    return false;
  const std::string_view word = textOf(current());
  const bool isFollowedByName = ahead(1).tok == Tok::Identifier && !ahead(1).newlineBefore;
  const char* help = isFollowedByName ? helpForDeclaration(word) : nullptr;
  if (word == "elif" || word == "elsif" || word == "elseif")
    help = ahead(1).newlineBefore || ahead(1).tok == Tok::Eq || ahead(1).tok == Tok::Dot ? nullptr : "write `else if`";
  else if (word == "do" && ahead(1).tok == Tok::LBrace)
    help = "write `loop { … }` with `if !condition { break }` at its end";
  if (!help)
    return false;
  fail("E0117", here(), "`" + std::string(word) + "` is not part of the language").help(help);
  return true;
}

bool Parser::complainAboutWordOperator() {
  if (!isWord("and") && !isWord("or"))
    return false;
  fail("E0117", here(), "there is no `" + std::string(textOf(current())) + "` operator").help("write `&&` or `||`");
  return true;
}

bool Parser::complainAboutForeignBlock() {
  if (at_ > 0 && previous().tok == Tok::Identifier && textOf(previous()) == "not" && startsExpr())
    fail("E0117", rangeOf(previous()), "there is no `not` operator").help("write `!x`");
  else if (is(Tok::Colon))
    fail("E0117", here(), "blocks do not begin with `:`").help("write `{ … }` around the statements");
  else
    return false;
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

bool Parser::complainAboutShapeBehindType() {
  if (!is(Tok::LBracket) || newlineBefore())
    return false;
  complain("E0117", here(), "a type has no `[…]` behind it")
      .help("a tensor is written `Tensor<f32, [M, N]>`, an array `[f32; 4]`");
  skipOne();
  return true;
}

bool Parser::complainAboutForeignResult() {
  if (!is(Tok::Colon))
    return false;
  complain("E0117", here(), "results are not written behind `:`").fix(here(), "->", "write an arrow");
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
