// Literals, names, brackets, closures.

#include "lang/syntax/literal.h"
#include "lang/syntax/parser_state.h"

#include "base/check.h"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace vortex::lang::syntax {

bool Parser::startsExpr() const {
  switch (current().tok) {
  case Tok::Identifier:
  case Tok::Int:
  case Tok::Float:
  case Tok::String:
  case Tok::KwTrue:
  case Tok::KwFalse:
  case Tok::KwInf:
  case Tok::KwIf:
  case Tok::KwMatch:
  case Tok::KwWhile:
  case Tok::KwLoop:
  case Tok::KwFor:
  case Tok::KwBreak:
  case Tok::KwContinue:
  case Tok::KwReturn:
  case Tok::LParen:
  case Tok::LBracket:
  case Tok::LBrace:
  case Tok::Minus:
  case Tok::Bang:
  case Tok::Star:
  case Tok::Amp:
  case Tok::AndAnd:
  case Tok::Pipe:
  case Tok::OrOr:
  case Tok::Dot:
  case Tok::Tilde: return true;
  default: return false;
  }
}

Expr* Parser::parsePrimary() {
  const uint32_t first = at_;
  switch (current().tok) {
  case Tok::Int:
  case Tok::Float: return parseNumber();
  case Tok::String: return parseString();
  case Tok::KwTrue:
  case Tok::KwFalse: {
    const bool value = is(Tok::KwTrue);
    advance();
    auto* literal = makeExpr<BoolExpr>(since(first));
    literal->value = value;
    return literal;
  }
  case Tok::KwInf: {
    advance();
    auto* literal = makeExpr<FloatExpr>(since(first));
    literal->digits = "inf";
    literal->value = std::numeric_limits<double>::infinity();
    return literal;
  }
  case Tok::Identifier: return complainAboutMisspeltOperand() ? parsePrimary() : parseNameExpr();
  case Tok::LParen: return parseParenthesised();
  case Tok::LBracket: return parseArray(first, false);
  case Tok::LBrace: return parseBlock();
  case Tok::Pipe:
  case Tok::OrOr: return parseClosure();
  case Tok::KwIf: return parseIf();
  case Tok::KwMatch: return parseMatch();
  case Tok::KwWhile: return parseWhile();
  case Tok::KwLoop: return parseLoop();
  case Tok::KwFor: return parseFor();
  case Tok::KwBreak:
  case Tok::KwContinue:
  case Tok::KwReturn: return parseJump();
  case Tok::Dot: {
    advance();
    if (is(Tok::Int) && isAdjacent()) {
      fail("E0110", join(rangeOf(previous()), here()), "a number does not begin with `.`")
          .fix(rangeOf(previous()), "0.", "write a digit before it");
      return errorExpr();
    }
    const Name name = expectName("a name after `.`");
    auto* dotName = makeExpr<DotNameExpr>(since(first));
    dotName->name = name;
    return dotName;
  }
  case Tok::Ellipsis:
    fail("E0113", here(), "`...` only stands inside a progression such as `[1, 2, ..., 8]`")
        .help("in documentation it stands for code left out: write that code");
    return errorExpr();
  case Tok::KwFn:
    fail("E0117", here(), "there are no anonymous `fn`s").help("a closure is written `|x| x + 1`");
    return errorExpr();
  case Tok::KwWhere:
    fail("E0110", here(), "expected an expression, found " + describeCurrent())
        .help("to choose element by element, use `select(condition, a, b)`");
    return errorExpr();
  case Tok::ColonColon:
    fail("E0110", here(), "expected an expression, found " + describeCurrent())
        .help("slices have no step: choose elements one by one, `out[j] = x[2 * j]`");
    return errorExpr();
  default:
    if (!complainAboutForeignOperand())
      failExpected("an expression");
    return errorExpr();
  }
}

Expr* Parser::parseNumber() {
  const bool isFloat = is(Tok::Float);
  const uint32_t first = at_;
  const SourceRange range = here();
  const std::string_view written = textOf(current());
  VORTEX_CHECK(numberProblem(written).empty());  // only behind a dot, `t.0x1`, are numbers lexed leniently
  const NumberParts parts = splitNumber(written);
  Name suffix;
  if (!parts.suffix.empty())
    suffix = {written.substr(parts.suffixBegin), {file_, range.begin + parts.suffixBegin, range.end}};
  const std::string_view digits = module_.arena.copyText(parts.digits);
  if (isFloat) {
    auto* literal = makeExpr<FloatExpr>(range);
    literal->digits = digits;
    literal->value = std::strtod(parts.digits.c_str(), nullptr);
    literal->suffix = suffix;
    if (std::isinf(literal->value))
      complain("E0127", range, "this number is larger than the largest f64, about 1.8e308")
          .help("write `inf` for infinity");
    advance();
    return literal;
  }
  auto* literal = makeExpr<IntExpr>(range);
  literal->digits = digits;
  literal->base = parts.base;
  literal->suffix = suffix;
  literal->fits128 = parseUnsigned128(parts.digits, parts.base, literal->value);
  if (!literal->fits128)
    literal->value = 0;
  at_ = first;
  advance();
  return literal;
}

Expr* Parser::parseString() {
  auto* literal = makeExpr<StringExpr>(here());
  literal->value = module_.arena.copyText(decodeString(textOf(current())));
  advance();
  return literal;
}

Expr* Parser::parseNameExpr() {
  const uint32_t first = at_;
  const Name name{textOf(current()), here()};
  advance();
  if (complainAboutForeignString())
    return errorExpr();
  if (name.text == "vec" && is(Tok::Bang) && isAdjacent() && ahead(1).tok == Tok::LBracket) {
    advance();
    return parseArray(first, true);
  }
  auto* expr = makeExpr<NameExpr>(name.range);
  expr->name = name;
  return expr;
}

Expr* Parser::parseParenthesised() {
  const uint32_t first = at_;
  const uint32_t close = stream_.partner[at_];
  std::vector<Expr*> elems;
  parseGroup(
      [&] {
        Expr* elem = parseExpr();
        if (is(Tok::Eq) && !failed_)
          fail("E0120", here(), "an assignment has no value").help("compare with `==`");
        elems.push_back(elem);
      },
      "the parentheses");
  const bool hasComma = close > first + 1 && stream_.tokens[close - 1].tok == Tok::Comma;
  if (elems.size() == 1 && !hasComma) {
    elems[0]->range = since(first);
    return elems[0];
  }
  auto* tuple = makeExpr<TupleExpr>(since(first));
  for (const Expr* elem : elems)
    raise(tuple, elem);
  tuple->elems = module_.arena.copyList(elems);
  return checkHeight(tuple);
}

Expr* Parser::parseArray(uint32_t first, bool isVec) {
  std::vector<Expr*> elems;
  SourceRange ellipsis;
  Expr* count = nullptr;
  size_t before = 0;
  bool isMalformed = false;
  parseGroup(
      [&] {
        if (is(Tok::Ellipsis)) {
          isMalformed |= ellipsis.isValid() || elems.size() < 2;
          ellipsis = here();
          before = elems.size();
          advance();
          return;
        }
        elems.push_back(parseExpr());
        if (is(Tok::Semicolon) && !failed_ && elems.size() == 1 && !ellipsis.isValid()) {
          advance();
          count = parseExpr();
          if (!failed_ && !isClosing(current().tok))
            failExpected("`]` after the count");
        }
      },
      "the array");
  if (ellipsis.isValid() && (isMalformed || elems.size() != before + 1)) {
    if (!failed_)
      sink_.error("E0113", ellipsis, "a progression needs two elements before `...` and the final one after it")
          .help("for example `[64, 32, ..., 1]`");
    return errorExpr();
  }
  auto* array = makeExpr<ArrayExpr>(since(first), {count});
  for (const Expr* elem : elems)
    raise(array, elem);
  array->isVec = isVec;
  array->form = count ? ArrayForm::Repeat : ellipsis.isValid() ? ArrayForm::Progression : ArrayForm::List;
  array->count = count;
  array->ellipsis = ellipsis;
  if (ellipsis.isValid()) {
    array->last = elems.back();
    elems.pop_back();
  }
  array->elems = module_.arena.copyList(elems);
  return checkHeight(array);
}

/// `{}`, `{ name: …`, `{ name, …` or `{ name }` follow at the brace.
bool Parser::startsStructFields(uint32_t brace) const {
  const Token& first = stream_.tokens[brace + 1];
  if (first.tok == Tok::RBrace)
    return !first.isSynthetic;
  if (first.tok != Tok::Identifier)
    return false;
  const Tok second = stream_.tokens[brace + 2].tok;
  return second == Tok::Colon || second == Tok::Comma || second == Tok::RBrace;
}

bool Parser::startsStructLiteral() const {
  // Only `{ name:` can never start a block: it decides where a block is expected or the brace is on a line of its own.
  const bool isCertain = ahead(1).tok == Tok::Identifier && ahead(2).tok == Tok::Colon;
  const bool isForeign = ahead(1).tok == Tok::Identifier && ahead(2).tok == Tok::Eq;  // `S { x = 1 }`
  return noStruct_ || newlineBefore() ? isCertain : startsStructFields(at_) || isForeign;
}

Type* Parser::typeOfPath(const Expr* path) {
  std::vector<Name> names;
  auto* type = makeNode<NamedType, Type>(path->range);
  if (const auto* name = path->tryAs<NameExpr>()) {
    type->hasGenericArgs = name->hasGenericArgs;
    type->genericArgs = name->genericArgs;
  } else {
    const auto* member = path->as<MemberExpr>();
    type->hasGenericArgs = member->hasGenericArgs;
    type->genericArgs = member->genericArgs;
  }
  while (const auto* member = path->tryAs<MemberExpr>()) {
    names.insert(names.begin(), member->name);
    path = member->base;
  }
  if (const auto* name = path->tryAs<NameExpr>()) {
    names.insert(names.begin(), name->name);
  } else {
    fail("E0110", path->range, "expected the name of a struct before `{`");
    return errorType();
  }
  type->path = module_.arena.copyList(names);
  return type;
}

Expr* Parser::parseStructLiteral(Expr* path, uint32_t first) {
  if (noStruct_)
    complain("E0125", join(path->range, here()), "a struct literal needs parentheses here").help("write `(S { … })`");
  Type* type = typeOfPath(path);
  std::vector<FieldInit> fields;
  parseGroup(
      [&] {
        const uint32_t start = at_;
        FieldInit field;
        field.name = expectName("a field name");
        if (failed_)
          return;
        if (is(Tok::Eq))
          complain("E0110", here(), "expected `:` after the field name, found `=`").fix(here(), ":", "write a colon");
        if (accept(Tok::Colon) || accept(Tok::Eq)) {
          field.value = parseExpr();
        } else {
          auto* value = makeExpr<NameExpr>(field.name.range);
          value->name = field.name;
          field.value = value;
        }
        field.range = since(start);
        for (const FieldInit& other : fields)
          if (other.name.text == field.name.text && fields.size() < 256)
            complain("E0130", field.name.range, "field `" + std::string(field.name.text) + "` is given twice")
                .label(other.name.range, "first given here");
        fields.push_back(field);
      },
      "the struct literal");
  auto* literal = makeExpr<StructExpr>(since(first), {path});
  for (const FieldInit& field : fields)
    raise(literal, field.value);
  literal->type = type;
  literal->fields = module_.arena.copyList(fields);
  return literal;
}

Expr* Parser::parseClosure() {
  const uint32_t first = at_;
  std::vector<ClosureParam> params;
  if (!accept(Tok::OrOr)) {
    advance();
    while (!failed_ && !is(Tok::Pipe)) {
      ClosureParam param;
      param.pattern = parsePattern(false);
      if (accept(Tok::Colon))
        param.type = parseType();
      params.push_back(param);
      if (!accept(Tok::Comma))
        break;
    }
    if (!failed_)
      expect(Tok::Pipe, "after the closure's parameters");
  }
  Type* resultType = nullptr;
  Expr* body = nullptr;
  if (accept(Tok::Arrow)) {
    resultType = parseType();
    body = expectBlock("after the closure's result type");
  } else {
    const Nest nest(*this);
    body = nest && !failed_ ? parseStatementExpr() : errorExpr();
  }
  auto* closure = makeExpr<ClosureExpr>(since(first), {body});
  closure->params = module_.arena.copyList(params);
  closure->resultType = resultType;
  closure->body = body;
  return checkHeight(closure);
}

}  // namespace vortex::lang::syntax
