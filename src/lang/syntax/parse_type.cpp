// Types, generic arguments, patterns.

#include "lang/syntax/literal.h"
#include "lang/syntax/parser_state.h"

namespace vortex::lang::syntax {

Type* Parser::parseType(bool isSpaceAllowed) {
  const Nest nest(*this);
  if (!nest)
    return errorType();
  const uint32_t first = at_;
  Type* type = parseTypeAtom(isSpaceAllowed);
  while (isSpaceAllowed && !failed_ && is(Tok::At) && !newlineBefore()) {
    const Attribute space = parseAttribute();
    auto* spaced = makeNode<SpacedType, Type>(since(first));
    spaced->inner = type;
    spaced->space = space;
    if (type->is<SpacedType>() && !failed_)
      complain("E0130", space.range, "the type has two memory spaces")
          .label(type->as<SpacedType>()->space.range, "first given here");
    type = spaced;
  }
  return type;
}

Type* Parser::parseTypeAtom(bool isSpaceAllowed) {
  const uint32_t first = at_;
  switch (current().tok) {
  case Tok::Identifier: {
    if (complainAboutTwoWordType())
      return errorType();
    Type* named = parseNamedType(isSpaceAllowed);
    return isSpaceAllowed && !failed_ && complainAboutShapeBehindType() ? errorType() : named;
  }
  case Tok::Amp:
  case Tok::AndAnd: {
    const bool isDouble = is(Tok::AndAnd);
    advance();
    const bool isMutable = accept(Tok::KwMut);
    Type* inner = parseType(isSpaceAllowed);
    auto* ref = makeNode<RefType, Type>(since(first));
    ref->isMutable = isMutable;
    ref->inner = inner;
    if (!isDouble)
      return ref;
    auto* outer = makeNode<RefType, Type>(since(first));
    outer->inner = ref;
    return outer;
  }
  case Tok::LBracket: return complainAboutTypedShape() ? errorType() : parseArrayType();
  case Tok::LParen: return parseParenthesisedType();
  case Tok::KwFn: return parseFunctionType();
  case Tok::KwStruct:
    fail("E0110", here(), "a struct type is only written in `type Name = struct { … }`");
    return errorType();
  case Tok::KwMut: fail("E0117", here(), "a type has no `mut` of its own").help("write `&mut T`"); return errorType();
  case Tok::Star: fail("E0117", here(), "there are no raw pointers").help("write `&T` or `&mut T`"); return errorType();
  default: failExpected("a type"); return errorType();
  }
}

Type* Parser::parseNamedType(bool isSpaceAllowed) {
  const uint32_t first = at_;
  std::vector<Name> path = {expectName("a type")};
  if (path[0].text == "_") {
    return makeNode<InferType, Type>(since(first));
  }
  while ((is(Tok::Dot) || (is(Tok::ColonColon) && ahead(1).tok == Tok::Identifier)) && !failed_) {
    if (is(Tok::ColonColon))
      complain("E0117", here(), "`::` only stands before generic arguments").fix(here(), ".", "write a dot");
    advance();
    path.push_back(expectName("a type name"));
  }
  auto* type = makeNode<NamedType, Type>(since(first));
  // `x as u32 < y` compares: scalar types take no arguments.
  const bool isScalar = path.size() == 1 && (isScalarSuffix(path[0].text) || path[0].text == "bool");
  if (!failed_ && is(Tok::ColonColon) && ahead(1).tok == Tok::Lt)
    advance();
  if (!failed_ && is(Tok::Lt) && (isSpaceAllowed || !isScalar)) {
    type->hasGenericArgs = true;
    type->genericArgs = parseGenericArgs();
  }
  type->path = module_.arena.copyList(path);
  type->range = since(first);
  Type* out = type;
  while (!failed_ && isSpaceAllowed && type->hasGenericArgs && is(Tok::Dot) && ahead(1).tok == Tok::Identifier &&
         !newlineBefore()) {
    advance();
    auto* associated = makeNode<AssociatedType, Type>(here());
    associated->base = out;
    associated->name = expectName("an associated type");
    associated->range = since(first);
    out = associated;
  }
  return out;
}

Type* Parser::parseParenthesisedType() {
  const uint32_t first = at_;
  const bool isTuple = bracketHasComma(at_) || stream_.partner[at_] == at_ + 1;
  std::vector<Type*> elems;
  parseGroup([&] { elems.push_back(parseType()); }, "the tuple type");
  if (elems.size() == 1 && !isTuple)
    return elems[0];
  auto* tuple = makeNode<TupleType, Type>(since(first));
  tuple->elems = module_.arena.copyList(elems);
  return tuple;
}

Type* Parser::parseFunctionType() {
  const uint32_t first = at_;
  advance();
  std::vector<Type*> params;
  if (is(Tok::LParen))
    parseGroup([&] { params.push_back(parseType()); }, "the function type");
  else
    failExpected("`(` in the function type");
  Type* result = !failed_ && accept(Tok::Arrow) ? parseType() : nullptr;
  auto* type = makeNode<FunctionType, Type>(since(first));
  type->params = module_.arena.copyList(params);
  type->result = result;
  return type;
}

Type* Parser::parseArrayType() {
  const uint32_t first = at_;
  Type* elem = nullptr;
  Expr* count = nullptr;
  bool isTooLong = false;
  parseGroup(
      [&] {
        isTooLong |= elem != nullptr;
        elem = parseType();
        if (!failed_ && accept(Tok::Semicolon))
          count = parseExpr();
      },
      "the array type");
  if ((!elem || !count || isTooLong) && !failed_) {
    if (!elem || !elem->is<ErrorType>())
      complain("E0110", since(first), "an array type is written `[T; N]`")
          .help("a host array of any length is `Vec<T>`");
    return errorType();
  }
  auto* array = makeNode<ArrayType, Type>(since(first));
  array->elem = elem;
  array->count = count;
  return array;
}

bool Parser::bracketHasSemicolon(uint32_t open) const {
  for (uint32_t i = open + 1; i < stream_.partner[open]; ++i) {
    if (isOpening(stream_.tokens[i].tok))
      i = stream_.partner[i];
    else if (stream_.tokens[i].tok == Tok::Semicolon)
      return true;
  }
  return false;
}

bool Parser::bracketHasComma(uint32_t open) const {
  uint32_t angles = 0;
  for (uint32_t i = open + 1; i < stream_.partner[open]; ++i) {
    const Tok tok = stream_.tokens[i].tok;
    if (isOpening(tok))
      i = stream_.partner[i];
    else if (tok == Tok::Lt)
      ++angles;
    else if (tok == Tok::Gt && angles > 0)
      --angles;
    else if (tok == Tok::Shr)
      angles -= std::min(angles, 2u);
    else if (tok == Tok::Comma && angles == 0)
      return true;
  }
  return false;
}

List<GenericArg> Parser::parseGenericArgs() {
  std::vector<GenericArg> args;
  advance();
  while (!failed_ && !isGreater()) {
    args.push_back(parseGenericArg());
    if (!failed_ && complainAboutMissingGreater())
      return module_.arena.copyList(args);
    if (!accept(Tok::Comma))
      break;
  }
  if (!failed_)
    expectGreater();
  return module_.arena.copyList(args);
}

bool Parser::genericArgIsExpr() const {
  switch (current().tok) {
  case Tok::Int:
  case Tok::Float:
  case Tok::String:
  case Tok::Minus:
  case Tok::LBrace:
  case Tok::KwTrue:
  case Tok::KwFalse:
  case Tok::Dot:
  case Tok::Bang: return true;
  case Tok::LBracket: return !bracketHasSemicolon(at_);
  case Tok::LParen: return !bracketHasComma(at_) && stream_.partner[at_] != at_ + 1;
  case Tok::Identifier: break;
  default: return false;
  }
  uint32_t next = 1;
  while (ahead(next).tok == Tok::Dot && ahead(next + 1).tok == Tok::Identifier)
    next += 2;
  switch (ahead(next).tok) {
  case Tok::Plus:
  case Tok::Minus:
  case Tok::Star:
  case Tok::Slash:
  case Tok::Percent:
  case Tok::StarStar:
  case Tok::LParen:
  case Tok::LBracket:
  case Tok::Shl: return true;
  default: return false;
  }
}

GenericArg Parser::parseGenericArg() {
  const uint32_t first = at_;
  GenericArg arg;
  if (is(Tok::Identifier) && ahead(1).tok == Tok::Eq) {  // `Item = T`
    arg.name = expectName("an associated type");
    advance();
    arg.type = parseType();
    arg.range = since(first);
    return arg;
  }
  constexpr int kAdditive = 8;  // a comparison would swallow the `>`
  if (genericArgIsExpr()) {
    const Nest nest(*this);
    const Scoped allowStruct(noStruct_, true);
    arg.expr = nest ? parseBinary(kAdditive) : errorExpr();
  } else {
    arg.type = parseType();
  }
  arg.range = since(first);
  return arg;
}

List<Type*> Parser::parseBounds() {
  std::vector<Type*> bounds;
  do {
    if (!is(Tok::Identifier)) {
      failExpected("a trait");
      break;
    }
    bounds.push_back(parseNamedType(true));
  } while (!failed_ && accept(Tok::Plus));
  return module_.arena.copyList(bounds);
}

Pattern* Parser::parsePattern(bool isOrAllowed) {
  const Nest nest(*this);
  if (!nest)
    return errorPattern();
  const uint32_t first = at_;
  if (isOrAllowed)
    accept(Tok::Pipe);
  Pattern* pattern = parsePatternAtom();
  if (!isOrAllowed || !is(Tok::Pipe) || failed_)
    return pattern;
  std::vector<Pattern*> alternatives = {pattern};
  while (!failed_ && accept(Tok::Pipe))
    alternatives.push_back(parsePatternAtom());
  auto* either = makeNode<OrPattern, Pattern>(since(first));
  either->alternatives = module_.arena.copyList(alternatives);
  return either;
}

Pattern* Parser::parsePatternAtom() {
  const uint32_t first = at_;
  switch (current().tok) {
  case Tok::Int:
  case Tok::Float:
  case Tok::String:
  case Tok::KwTrue:
  case Tok::KwFalse:
  case Tok::KwInf:
  case Tok::Minus:
  case Tok::DotDot: return parseLiteralPattern();
  case Tok::Identifier: return parseNamePattern();
  case Tok::Dot: {
    advance();
    const Name name = expectName("a variant's name");
    auto* path = makeNode<PathPattern, Pattern>(since(first));
    path->isDot = true;
    path->path = module_.arena.copyList(std::vector<Name>{name});
    return path;
  }
  case Tok::LParen: {
    const bool isTuple = bracketHasComma(at_) || stream_.partner[at_] == at_ + 1;
    std::vector<Pattern*> elems;
    parseGroup([&] { elems.push_back(parsePattern()); }, "the pattern");
    if (elems.size() == 1 && !isTuple)
      return elems[0];
    auto* tuple = makeNode<TuplePattern, Pattern>(since(first));
    tuple->elems = module_.arena.copyList(elems);
    return tuple;
  }
  case Tok::KwMut:
    fail("E0117", here(), "there is no `mut` on variables").help("declare a reassignable variable with `var`");
    return errorPattern();
  case Tok::Amp:
    fail("E0117", here(), "patterns have no `&`").help("bind the reference and read it with `*x`");
    return errorPattern();
  default:
    if (isKeyword(current().tok))
      expectName("a variable's name");
    else
      failExpected("a pattern");
    return errorPattern();
  }
}

Pattern* Parser::parseLiteralPattern() {
  const uint32_t first = at_;
  const auto parseBound = [&]() -> Expr* {
    const uint32_t start = at_;
    if (!accept(Tok::Minus))
      return parsePrimary();
    if (!is(Tok::Int) && !is(Tok::Float) && !is(Tok::KwInf)) {
      failExpected("a number after `-`");
      return errorExpr();
    }
    Expr* number = parsePrimary();
    auto* negated = makeExpr<UnaryExpr>(since(start), {number});
    negated->op = UnaryOp::Neg;
    negated->operand = number;
    return negated;
  };
  Expr* begin = is(Tok::DotDot) ? nullptr : parseBound();
  if (failed_ || !accept(Tok::DotDot)) {
    auto* literal = makeNode<LiteralPattern, Pattern>(since(first));
    literal->value = begin;
    return literal;
  }
  if (is(Tok::Eq) && isAdjacent()) {
    complain("E0117", here(), "there are no inclusive ranges")
        .help("`a..b` excludes b: end the range with the number after it");
    advance();
  }
  const bool isOpen = begin && (is(Tok::FatArrow) || is(Tok::Pipe) || is(Tok::KwIf) || is(Tok::Comma) ||
                                is(Tok::RParen) || is(Tok::RBrace));
  if (!isOpen && !is(Tok::Int) && !is(Tok::Float) && !is(Tok::KwInf) && !is(Tok::Minus)) {
    failExpected("a number at the end of the range");
    return errorPattern();
  }
  Expr* end = isOpen ? nullptr : parseBound();
  auto* range = makeNode<RangePattern, Pattern>(since(first));
  range->begin = begin;
  range->end = end;
  return range;
}

Pattern* Parser::parseNamePattern() {
  const uint32_t first = at_;
  std::vector<Name> path = {expectName("a name")};
  if (path[0].text == "_")
    return makeNode<WildcardPattern, Pattern>(since(first));
  while (!failed_ && (is(Tok::Dot) || is(Tok::ColonColon)) && !newlineBefore()) {
    if (is(Tok::ColonColon))
      complain("E0117", here(), "`::` only stands before generic arguments").fix(here(), ".", "write a dot");
    advance();
    path.push_back(expectName("a variant's name"));
  }
  if (!failed_ && is(Tok::LBrace) && !noStruct_ && !newlineBefore() && startsStructFields(at_)) {
    const List<FieldPattern> fields = parseFieldPatterns();
    auto* pattern = makeNode<StructPattern, Pattern>(since(first));
    pattern->path = module_.arena.copyList(path);
    pattern->fields = fields;
    return pattern;
  }
  if (path.size() == 1) {
    auto* name = makeNode<NamePattern, Pattern>(since(first));
    name->name = path[0];
    return name;
  }
  auto* pattern = makeNode<PathPattern, Pattern>(since(first));
  pattern->path = module_.arena.copyList(path);
  return pattern;
}

List<FieldPattern> Parser::parseFieldPatterns() {
  std::vector<FieldPattern> fields;
  parseGroup(
      [&] {
        FieldPattern field;
        field.name = expectName("a field name");
        if (failed_)
          return;
        if (accept(Tok::Colon)) {
          field.pattern = parsePattern();
        } else {
          auto* name = makeNode<NamePattern, Pattern>(field.name.range);
          name->name = field.name;
          field.pattern = name;
        }
        fields.push_back(field);
      },
      "the pattern");
  return module_.arena.copyList(fields);
}

}  // namespace vortex::lang::syntax
