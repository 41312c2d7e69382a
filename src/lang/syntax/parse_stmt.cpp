// Blocks, statements, attributes.

#include "lang/syntax/parser_state.h"

namespace vortex::lang::syntax {

BlockExpr* Parser::expectBlock(std::string_view where) {
  if (!failed_ && is(Tok::LBrace))
    return parseBlock();
  if (!failed_ && !complainAboutForeignBlock())
    failBlock(where);
  return makeExpr<BlockExpr>(here());
}

BlockExpr* Parser::parseBlock() {
  const uint32_t first = at_;
  const uint32_t close = stream_.partner[at_];
  const Scoped allowStruct(noStruct_, false);
  advance();
  std::vector<Stmt*> stmts;
  while (at_ < close) {
    const uint32_t start = at_;
    if (accept(Tok::Semicolon))
      continue;
    Stmt* stmt = parseStmt();
    if (!failed_ && stmt)
      endStatement(stmt);
    if (failed_) {
      skipToStatement(start, close);
      failed_ = false;
    } else if (stmt && stmt->is<ExprStmt>()) {
      stmt->as<ExprStmt>()->hasSemicolon = accept(Tok::Semicolon);
    } else {
      accept(Tok::Semicolon);
    }
    if (stmt)
      stmts.push_back(stmt);
    if (at_ == start)
      skipOne();
  }
  at_ = close;
  advance();
  auto* block = makeExpr<BlockExpr>(since(first));
  for (const Stmt* stmt : stmts) {
    if (const auto* let = stmt->tryAs<LetStmt>())
      raise(block, let->init);
    else if (const auto* expr = stmt->tryAs<ExprStmt>())
      raise(block, expr->expr);
    else if (const auto* function = stmt->as<ItemStmt>()->item->tryAs<FunctionItem>())
      raise(block, function->body);
  }
  block->stmts = module_.arena.copyList(stmts);
  if (!stmts.empty())
    if (const auto* last = stmts.back()->tryAs<ExprStmt>(); last && !last->hasSemicolon)
      block->tail = last->expr;
  if (checkHeight(block) != block) {  // reported: an empty block keeps the tree low
    block = makeExpr<BlockExpr>(block->range);
  }
  return block;
}

Stmt* Parser::parseStmt() {
  const uint32_t first = at_;
  const List<Attribute> attributes = parseAttributes();
  if (failed_ || complainAboutForeignStatement())
    return nullptr;
  complainAboutMisspeltStatement();
  if (is(Tok::KwLet) || is(Tok::KwVar))
    return parseLet(first, withoutForeignSpaces(attributes));
  if (startsItem()) {
    Item* item = parseItem(ItemPlace::Block, first, attributes);
    if (!item)
      return nullptr;
    auto* stmt = makeNode<ItemStmt, Stmt>(since(first));
    stmt->item = item;
    return stmt;
  }
  if (is(Tok::Ellipsis) && attributes.empty()) {
    complain("E0113", here(), "`...` stands for code that was left out").help("write that code");
    advance();
    return nullptr;
  }
  if (!startsExpr()) {
    failStatementStart();
    return nullptr;
  }
  Expr* expr = parseStatementExpr();
  auto* stmt = makeNode<ExprStmt, Stmt>(since(first));
  stmt->attributes = attributes;
  stmt->expr = expr;
  return stmt;
}

void Parser::failStatementStart() {
  if (isClosing(current().tok) || is(Tok::EndOfFile)) {
    fail("E0118", rangeOf(previous()), "an attribute must be followed by the statement it applies to");
    return;
  }
  if (is(Tok::Plus) && ahead(1).tok == Tok::Plus && ahead(1).begin == current().end) {
    fail("E0117", join(here(), rangeOf(ahead(1))), "there is no `++`").help("write `x += 1`");
    return;
  }
  switch (current().tok) {
  case Tok::Plus:
  case Tok::Slash:
  case Tok::Percent:
  case Tok::StarStar:
  case Tok::Shl:
  case Tok::Shr:
  case Tok::EqEq:
  case Tok::NotEq:
  case Tok::Lt:
  case Tok::LtEq:
  case Tok::Gt:
  case Tok::GtEq:
  case Tok::Caret:
  case Tok::Eq:
  case Tok::PlusEq:
  case Tok::MinusEq:
  case Tok::StarEq:
  case Tok::SlashEq:
  case Tok::Question:
  case Tok::KwAs:
  case Tok::DotDot:
  case Tok::Comma:
    fail("E0128", here(), "a statement cannot start with `" + std::string(spelling(current().tok)) + "`")
        .primary("the previous line was already complete")
        .help("put the operator at the end of the previous line, or the whole expression into parentheses");
    return;
  case Tok::KwElse: failExpected("a statement").note("this `else` belongs to no `if`"); return;
  default: failExpected("a statement");
  }
}

/// Checks that a statement ends here; `;` is left to the caller.
void Parser::endStatement(const Stmt* stmt) {
  if (is(Tok::Semicolon) || newlineBefore() || isClosing(current().tok) || is(Tok::EndOfFile) ||
      previous().tok == Tok::RBrace)
    return;
  const bool startsAnother =
      is(Tok::KwLet) || is(Tok::KwVar) || startsItem() || is(Tok::KwReturn) || is(Tok::KwFor) || is(Tok::KwWhile);
  if (startsAnother) {
    complain("E0115", here(), "a second statement on one line").primary("needs a `;` or a newline before it");
    return;
  }
  if (complainAboutForeignCast() || complainAboutForeignLambda())
    return;
  const auto* expr = stmt->tryAs<ExprStmt>();
  if (expr && expr->expr->is<NameExpr>() && is(Tok::Colon)) {
    fail("E0117", here(), "expected a statement, found `:` after a name").help("declare variables with `let` or `var`");
    return;
  }
  if (expr && expr->expr->is<NameExpr>() && (is(Tok::Identifier) || is(Tok::Int) || is(Tok::String))) {
    fail("E0115", here(),
         "expected a newline or `;` after `" + std::string(expr->expr->as<NameExpr>()->name.text) + "`, found " +
             describeCurrent());
    return;
  }
  fail("E0115", here(), "expected the end of the statement, found " + describeCurrent())
      .help(is(Tok::KwWhere) ? "to choose element by element, use `select(condition, a, b)`"
            : is(Tok::KwIf)  ? "a choice is `if c { a } else { b }`, of whole tensors `select(c, a, b)`; statements on "
                               "one line are separated by `;`"
            : is(Tok::Comma) && expr && expr->expr->is<ReturnExpr>() ? "several results are a tuple: `return (a, b)`"
                                                                     : "statements on one line are separated by `;`");
}

Stmt* Parser::parseLet(uint32_t first, List<Attribute> attributes) {
  const bool isVar = is(Tok::KwVar);
  const SourceRange keyword = here();
  advance();
  if (is(Tok::KwMut)) {
    complain("E0117", here(), "there is no `mut` on variables")
        .fix(join(keyword, here()), "var", "declare a reassignable variable with");
    advance();
  }
  Pattern* pattern = parsePattern(false);
  Type* type = nullptr;
  Expr* init = nullptr;
  const auto* named = failed_ ? nullptr : pattern->tryAs<NamePattern>();
  const bool isType = named && is(Tok::Identifier) && isTypeWord(textOf(current()));
  if (!failed_ && (accept(Tok::Colon) || (isType && complainAboutMissingColon(named->name, "variable"))))
    type = parseType();
  if (!failed_ && is(Tok::Eq) && !newlineBefore()) {
    advance();
    init = parseExpr();
    if (is(Tok::Eq) && !failed_)
      fail("E0120", here(), "an assignment has no value").help("write one assignment per statement");
  }
  auto* let = makeNode<LetStmt, Stmt>(since(first));
  let->attributes = attributes;
  let->isVar = isVar;
  let->pattern = pattern;
  let->type = type;
  let->init = init;
  return let;
}

List<Attribute> Parser::parseAttributes() {
  std::vector<Attribute> attributes;
  while (!failed_ && is(Tok::At))
    attributes.push_back(parseAttribute());
  return module_.arena.copyList(attributes);
}

Attribute Parser::parseAttribute() {
  const uint32_t first = at_;
  Attribute attribute;
  advance();
  attribute.name = expectName("an attribute's name");
  if (!failed_ && is(Tok::LParen) && isAdjacent()) {
    attribute.hasParens = true;
    attribute.args = parseAttributeArgs();
  }
  attribute.range = since(first);
  return attribute;
}

/// Call arguments, and `stages(a..b): x, y`, whose strategies run to the next argument followed by `:`.
List<Arg> Parser::parseAttributeArgs() {
  std::vector<Arg> args;
  std::vector<std::vector<Expr*>> strategies;
  parseGroup(
      [&] {
        const uint32_t start = at_;
        const Arg arg = parseArg();
        if (failed_)
          return;
        const bool isStrategy = !args.empty() && !strategies.back().empty() && !arg.name.isPresent() && !is(Tok::Colon);
        if (isStrategy) {
          strategies.back().push_back(arg.value);
          args.back().range = join(args.back().range, arg.range);
          return;
        }
        args.push_back(arg);
        strategies.emplace_back();
        if (accept(Tok::Colon)) {
          strategies.back().push_back(parseExpr());
          args.back().range = since(start);
        }
      },
      "the attribute");
  for (size_t i = 0; i < args.size(); ++i)
    args[i].strategies = module_.arena.copyList(strategies[i]);
  return module_.arena.copyList(args);
}

}  // namespace vortex::lang::syntax
