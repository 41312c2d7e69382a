// Operators and postfix forms.

#include "lang/syntax/parser_state.h"

#include <algorithm>
#include <optional>

namespace vortex::lang::syntax {
namespace {

struct Operator {
  BinaryOp op;
  int precedence;
};

constexpr int kComparison = 3;

std::optional<Operator> binaryOperator(Tok tok) {
  switch (tok) {
  case Tok::OrOr: return Operator{BinaryOp::Or, 1};
  case Tok::AndAnd: return Operator{BinaryOp::And, 2};
  case Tok::EqEq: return Operator{BinaryOp::Eq, kComparison};
  case Tok::NotEq: return Operator{BinaryOp::Ne, kComparison};
  case Tok::Lt: return Operator{BinaryOp::Lt, kComparison};
  case Tok::LtEq: return Operator{BinaryOp::Le, kComparison};
  case Tok::Gt: return Operator{BinaryOp::Gt, kComparison};
  case Tok::GtEq: return Operator{BinaryOp::Ge, kComparison};
  case Tok::Pipe: return Operator{BinaryOp::BitOr, 4};
  case Tok::Caret: return Operator{BinaryOp::BitXor, 5};
  case Tok::Amp: return Operator{BinaryOp::BitAnd, 6};
  case Tok::Shl: return Operator{BinaryOp::Shl, 7};
  case Tok::Shr: return Operator{BinaryOp::Shr, 7};
  case Tok::Plus: return Operator{BinaryOp::Add, 8};
  case Tok::Minus: return Operator{BinaryOp::Sub, 8};
  case Tok::Star: return Operator{BinaryOp::Mul, 9};
  case Tok::Slash: return Operator{BinaryOp::Div, 9};
  case Tok::Percent: return Operator{BinaryOp::Rem, 9};
  case Tok::At: return Operator{BinaryOp::MatMul, 9};
  default: return std::nullopt;
  }
}

std::optional<BinaryOp> compoundOperator(Tok tok) {
  switch (tok) {
  case Tok::PlusEq: return BinaryOp::Add;
  case Tok::MinusEq: return BinaryOp::Sub;
  case Tok::StarEq: return BinaryOp::Mul;
  case Tok::SlashEq: return BinaryOp::Div;
  case Tok::PercentEq: return BinaryOp::Rem;
  case Tok::StarStarEq: return BinaryOp::Pow;
  case Tok::AtEq: return BinaryOp::MatMul;
  case Tok::AmpEq: return BinaryOp::BitAnd;
  case Tok::PipeEq: return BinaryOp::BitOr;
  case Tok::CaretEq: return BinaryOp::BitXor;
  case Tok::ShlEq: return BinaryOp::Shl;
  case Tok::ShrEq: return BinaryOp::Shr;
  default: return std::nullopt;
  }
}

}  // namespace

std::string_view spelling(BinaryOp op) {
  switch (op) {
  case BinaryOp::Add: return "+";
  case BinaryOp::Sub: return "-";
  case BinaryOp::Mul: return "*";
  case BinaryOp::Div: return "/";
  case BinaryOp::Rem: return "%";
  case BinaryOp::Pow: return "**";
  case BinaryOp::MatMul: return "@";
  case BinaryOp::Shl: return "<<";
  case BinaryOp::Shr: return ">>";
  case BinaryOp::BitAnd: return "&";
  case BinaryOp::BitOr: return "|";
  case BinaryOp::BitXor: return "^";
  case BinaryOp::And: return "&&";
  case BinaryOp::Or: return "||";
  case BinaryOp::Eq: return "==";
  case BinaryOp::Ne: return "!=";
  case BinaryOp::Lt: return "<";
  case BinaryOp::Le: return "<=";
  case BinaryOp::Gt: return ">";
  case BinaryOp::Ge: return ">=";
  }
  VORTEX_UNREACHABLE();
}

std::string_view spelling(UnaryOp op) { return op == UnaryOp::Neg ? "-" : op == UnaryOp::Not ? "!" : "*"; }

Expr* Parser::parseExpr() {
  const Nest nest(*this);
  return nest ? parseRange(false) : errorExpr();
}

bool Parser::isAssignTarget(const Expr* expr) const {
  switch (expr->kind) {
  case ExprKind::Error:
  case ExprKind::Name:
  case ExprKind::Member:
  case ExprKind::TupleMember:
  case ExprKind::Index: return true;
  case ExprKind::Unary: return expr->as<UnaryExpr>()->op == UnaryOp::Deref;
  case ExprKind::Tuple:
    return std::all_of(expr->as<TupleExpr>()->elems.begin(), expr->as<TupleExpr>()->elems.end(),
                       [&](const Expr* elem) { return isAssignTarget(elem); });
  default: return false;
  }
}

Expr* Parser::parseStatementExpr() {
  const uint32_t first = at_;
  Expr* target = parseExpr();
  const std::optional<BinaryOp> compound = compoundOperator(current().tok);
  if (failed_ || (!is(Tok::Eq) && !compound) || newlineBefore())
    return target;
  if (!isAssignTarget(target))
    complain("E0129", target->range, "this cannot be assigned to").primary("not a variable, field, element or slice");
  const SourceRange opRange = here();
  advance();
  Expr* value = parseExpr();
  if (is(Tok::Eq) && !failed_)
    fail("E0120", here(), "an assignment has no value").help("write one assignment per statement");
  auto* assign = makeExpr<AssignExpr>(since(first), {target, value});
  assign->isCompound = compound.has_value();
  assign->op = compound.value_or(BinaryOp::Add);
  assign->opRange = opRange;
  assign->target = target;
  assign->value = value;
  return checkHeight(assign);
}

Expr* Parser::parseRange(bool isOpenAllowed) {
  const uint32_t first = at_;
  Expr* begin = is(Tok::DotDot) ? nullptr : parseBinary(0);
  if (begin && !failed_)
    complainAboutForeignRange(isOpenAllowed);
  if (failed_ || !is(Tok::DotDot) || (begin && newlineBefore()))
    return begin ? begin : errorExpr();
  const SourceRange dots = here();
  advance();
  if (is(Tok::Eq) && isAdjacent()) {
    complain("E0117", join(dots, here()), "there are no inclusive ranges").help("`a..b` excludes b: write `a..b + 1`");
    advance();
  }
  const bool endIsLength = accept(Tok::Plus);
  Expr* end =
      endIsLength || (startsExpr() && !newlineBefore() && !(noStruct_ && is(Tok::LBrace))) ? parseBinary(0) : nullptr;
  if (!isOpenAllowed && (!begin || !end))
    complain("E0121", dots, begin ? "this range has no end" : "this range has no begin")
        .help("only inside an index, `t[..n]`, may the ends be left out");
  auto* range = makeExpr<RangeExpr>(since(first), {begin, end});
  range->begin = begin;
  range->end = end;
  range->endIsLength = endIsLength;
  if (is(Tok::DotDot) && !newlineBefore() && !failed_)
    fail("E0110", here(), "expected the end of the range, found `..`")
        .help("there are no ranges with a step: use `range(a, b, step)`");
  return checkHeight(range);
}

Expr* Parser::parseBinary(int minPrecedence) {
  const uint32_t first = at_;
  Expr* lhs = parseCast();
  bool isComparison = false;
  while (!failed_ && !newlineBefore()) {
    mendForeignOperator();
    const std::optional<Operator> found = binaryOperator(current().tok);
    if (!found || found->precedence < minPrecedence)
      break;
    if (found->precedence == kComparison && isComparison)
      complainAboutChain(lhs);
    isComparison = found->precedence == kComparison;
    const SourceRange opRange = here();
    const Tok opTok = current().tok;
    advance();
    if (is(opTok) && isAdjacent() &&
        (opTok == Tok::Plus || (opTok == Tok::Minus && (isClosing(ahead(1).tok) || ahead(1).newlineBefore ||
                                                        ahead(1).tok == Tok::Semicolon)))) {
      const std::string op(spelling(opTok));
      complain("E0117", join(opRange, here()), "there is no `" + op + op + "`").help("write `" + op + "= 1`");
      advance();
      break;
    }
    if (newlineBefore() && isClosing(current().tok))
      fail("E0110", opRange,
           "expected an expression behind `" + std::string(spelling(opTok)) + "`, found the end of the block");
    Expr* rhs = parseBinary(found->precedence + 1);
    auto* binary = makeExpr<BinaryExpr>(since(first), {lhs, rhs});
    binary->op = found->op;
    binary->opRange = opRange;
    binary->lhs = lhs;
    binary->rhs = rhs;
    lhs = checkHeight(binary);
  }
  return lhs;
}

Expr* Parser::parseCast() {
  const uint32_t first = at_;
  Expr* expr = parseUnary();
  while (!failed_ && !newlineBefore() && is(Tok::KwAs)) {
    advance();
    Type* type = parseType(false);
    auto* cast = makeExpr<CastExpr>(since(first), {expr});
    cast->operand = expr;
    cast->type = type;
    expr = checkHeight(cast);
  }
  if (expr->is<CastExpr>() && is(Tok::StarStar) && !failed_ && !newlineBefore()) {
    const SourceRange opRange = here();
    advance();
    Expr* rhs = parseUnary();
    auto* power = makeExpr<BinaryExpr>(since(first), {expr, rhs});
    power->op = BinaryOp::Pow;
    power->opRange = opRange;
    power->lhs = expr;
    power->rhs = rhs;
    expr = checkHeight(power);
  }
  return expr;
}

Expr* Parser::parseUnary() {
  const uint32_t first = at_;
  mendForeignNot();
  const Tok tok = current().tok;
  if (tok != Tok::Minus && tok != Tok::Bang && tok != Tok::Star && tok != Tok::Amp && tok != Tok::AndAnd &&
      tok != Tok::Tilde && tok != Tok::Plus)
    return parsePower();
  const Nest nest(*this);
  if (!nest)
    return errorExpr();
  if (tok == Tok::Plus)
    complain("E0117", here(), "there is no unary `+`").help("leave it out");
  if (tok == Tok::Tilde)
    complain("E0117", here(), "there is no `~`").help("`!x` inverts the bits of an integer");
  advance();
  if (tok == Tok::Plus)
    return parseUnary();
  if (tok == Tok::Amp || tok == Tok::AndAnd) {
    const bool isMutable = accept(Tok::KwMut);
    Expr* operand = parseUnary();
    SourceRange range = since(first);
    if (tok == Tok::AndAnd)
      ++range.begin;
    auto* ref = makeExpr<RefExpr>(range, {operand});
    ref->isMutable = isMutable;
    ref->operand = operand;
    if (tok == Tok::Amp)
      return checkHeight(ref);
    auto* outer = makeExpr<RefExpr>(since(first), {ref});
    outer->operand = ref;
    return checkHeight(outer);
  }
  Expr* operand = parseUnary();
  auto* unary = makeExpr<UnaryExpr>(since(first), {operand});
  unary->op = tok == Tok::Minus ? UnaryOp::Neg : tok == Tok::Star ? UnaryOp::Deref : UnaryOp::Not;
  unary->operand = operand;
  return checkHeight(unary);
}

Expr* Parser::parsePower() {
  const uint32_t first = at_;
  Expr* base = parsePostfix();
  if (failed_ || newlineBefore() || !is(Tok::StarStar))
    return base;
  const Nest nest(*this);
  if (!nest)
    return base;
  const SourceRange opRange = here();
  advance();
  Expr* exponent = parseUnary();
  auto* power = makeExpr<BinaryExpr>(since(first), {base, exponent});
  power->op = BinaryOp::Pow;
  power->opRange = opRange;
  power->lhs = base;
  power->rhs = exponent;
  return checkHeight(power);
}

Expr* Parser::parsePostfix() {
  const uint32_t first = at_;
  return parsePostfixOf(parsePrimary(), first);
}

/// Does the line that starts here lead to a `=>` of its own? Then its `.Name` is a pattern: nothing else has a `=>` outside of brackets.
bool Parser::startsArm() const {
  for (uint32_t at = at_; at < stream_.tokens.size(); ++at) {
    const Token& token = stream_.tokens[at];
    if (token.tok == Tok::FatArrow)
      return true;
    const bool continues = at == at_ || !token.newlineBefore || stream_.tokens[at - 1].tok == Tok::Pipe ||
                           token.tok == Tok::Pipe || token.tok == Tok::KwIf;
    if (!continues || token.tok == Tok::Comma || token.tok == Tok::Semicolon || token.tok == Tok::EndOfFile ||
        isClosing(token.tok))
      return false;
    if (isOpening(token.tok))
      at = stream_.partner[at];
  }
  return false;
}

Expr* Parser::parsePostfixOf(Expr* base, uint32_t first) {
  while (!failed_) {
    if (is(Tok::Dot)) {
      if (newlineBefore() && startsArm())
        return base;  // `.Blue => …`: the next arm of a match
      base = parseMember(base, first);
    } else if (newlineBefore() && !is(Tok::LBrace)) {
      return base;
    } else if (is(Tok::LParen)) {
      base = parseCall(base, first);
    } else if (is(Tok::LBracket)) {
      base = parseIndex(base, first);
    } else if (is(Tok::ColonColon)) {
      base = parseColonColon(base, first);
    } else if (complainAboutGenericCall()) {
      base = parseGenericArgsOf(base, first);
    } else if (is(Tok::LBrace) && (base->is<NameExpr>() || base->is<MemberExpr>()) && startsStructLiteral()) {
      base = parseStructLiteral(base, first);
    } else if (is(Tok::Question)) {
      fail("E0117", here(), "there is no `?` operator").help("`c ? a : b` is written `if c { a } else { b }`");
    } else if (is(Tok::Bang) && isAdjacent() && base->is<NameExpr>() && isOpening(ahead(1).tok)) {
      const std::string name(base->as<NameExpr>()->name.text);
      complain("E0117", here(), "there are no macros except `vec![…]`")
          .help("call the function: `" + (name == "println" ? "print" : name) + "(…)`");
      advance();
    } else {
      return base;
    }
    base = checkHeight(base);
  }
  return base;
}

Expr* Parser::parseMember(Expr* base, uint32_t first) {
  advance();
  if (is(Tok::Int)) {
    const std::string_view digits = textOf(current());
    uint32_t index = 0;
    const bool isPlain =
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }) && digits.size() < 6;
    if (!isPlain) {
      fail("E0110", here(), "expected a tuple index, found `" + std::string(digits.substr(0, 40)) + "`");
      return errorExpr();
    }
    for (char c : digits)
      index = index * 10 + static_cast<uint32_t>(c - '0');
    const SourceRange indexRange = here();
    advance();
    auto* member = makeExpr<TupleMemberExpr>(since(first), {base});
    member->base = base;
    member->index = index;
    member->indexRange = indexRange;
    return member;
  }
  const Name name = expectName("a field or method name");
  auto* member = makeExpr<MemberExpr>(since(first), {base});
  member->base = base;
  member->name = name;
  return member;
}

Expr* Parser::parseColonColon(Expr* base, uint32_t first) {
  const SourceRange colons = here();
  if (ahead(1).tok != Tok::Lt) {
    complain("E0117", colons, "`::` only stands before generic arguments").fix(colons, ".", "write a dot");
    return parseMember(base, first);
  }
  advance();
  return parseGenericArgsOf(base, first);
}

Expr* Parser::parseGenericArgsOf(Expr* base, uint32_t first) {
  const SourceRange open = previous().tok == Tok::ColonColon ? rangeOf(previous()) : here();
  const List<GenericArg> args = parseGenericArgs();
  if (auto* name = base->tryAs<NameExpr>(); name && !name->hasGenericArgs) {
    name->hasGenericArgs = true;
    name->genericArgs = args;
  } else if (auto* member = base->tryAs<MemberExpr>(); member && !member->hasGenericArgs) {
    member->hasGenericArgs = true;
    member->genericArgs = args;
  } else {
    fail("E0110", open, "generic arguments must follow a name");
    return base;
  }
  base->range = since(first);
  return base;
}

Expr* Parser::parseCall(Expr* callee, uint32_t first) {
  const List<Arg> args = parseArgs("the arguments");
  auto* call = makeExpr<CallExpr>(since(first), {callee});
  for (const Arg& arg : args)
    raise(call, arg.value);
  call->callee = callee;
  call->args = args;
  return call;
}

List<Arg> Parser::parseArgs(std::string_view what) {
  std::vector<Arg> args;
  parseGroup(
      [&] {
        const Arg arg = parseArg();
        if (failed_)
          return;
        if (!arg.name.isPresent() && !args.empty() && args.back().name.isPresent())
          complain("E0119", arg.range, "a positional argument follows a named one")
              .label(args.back().range, "named argument");
        for (const Arg& other : args)
          if (arg.name.isPresent() && other.name.text == arg.name.text && args.size() < 64)
            complain("E0130", arg.name.range, "argument `" + std::string(arg.name.text) + "` is given twice")
                .label(other.name.range, "first given here");
        args.push_back(arg);
      },
      what);
  return module_.arena.copyList(args);
}

Arg Parser::parseArg() {
  const uint32_t first = at_;
  Arg arg;
  if ((is(Tok::Identifier) || isKeyword(current().tok)) && ahead(1).tok == Tok::Eq) {
    arg.name = expectName("an argument name");
    if (failed_)
      return arg;
    advance();
  }
  arg.value = parseExpr();
  if (is(Tok::Colon) && !failed_ && arg.value->is<NameExpr>() && !arg.name.isPresent())
    fail("E0117", here(), "a named argument is not written with `:`").fix(here(), "=", "write");
  if (is(Tok::Eq) && !failed_)
    fail("E0120", here(), "an assignment has no value")
        .help("compare with `==`; a named argument is written `name = value`");
  arg.range = since(first);
  return arg;
}

Expr* Parser::parseIndex(Expr* base, uint32_t first) {
  const SourceRange open = here();
  std::vector<Expr*> indices;
  parseGroup(
      [&] {
        const uint32_t start = at_;
        if (is(Tok::Colon)) {
          advance();
          indices.push_back(makeExpr<FullSliceExpr>(since(start)));
        } else {
          const Nest nest(*this);
          indices.push_back(nest ? parseRange(true) : errorExpr());
        }
        if (failed_ || at_ >= stream_.tokens.size())
          return;
        const bool isPythonSlice = is(Tok::Colon) || (indices.back()->is<FullSliceExpr>() && startsExpr());
        if (isPythonSlice)
          fail("E0117", join(stream_.tokens[start].tok == Tok::Colon ? rangeOf(stream_.tokens[start]) : here(), here()),
               "a slice is written with `..`")
              .help("`t[a..b]`, `t[a..]`, `t[..b]`; a lone `:` takes the whole dimension");
      },
      "the index");
  if (indices.empty() && !failed_)
    complain("E0110", join(open, rangeOf(previous())), "expected an index between the brackets")
        .help("`t[:]` takes the whole dimension");
  auto* index = makeExpr<IndexExpr>(since(first), {base});
  for (const Expr* each : indices)
    raise(index, each);
  index->base = base;
  index->indices = module_.arena.copyList(indices);
  return index;
}

}  // namespace vortex::lang::syntax
