// if, match, loops, jumps.

#include "lang/syntax/parser_state.h"

namespace vortex::lang::syntax {

Expr* Parser::parseCondition() {
  if (is(Tok::LBrace)) {
    complain("E0110", here(), "expected an expression before the block");
    return errorExpr();
  }
  const Scoped noStruct(noStruct_, true);
  Expr* condition = parseExpr();
  if (is(Tok::Eq) && !failed_) {
    complain("E0120", here(), "an assignment has no value").primary("compare with `==`");
    advance();
    parseExpr();
  }
  return condition;
}

Expr* Parser::parseIf() {
  const uint32_t first = at_;
  std::vector<IfBranch> branches;
  BlockExpr* elseBody = nullptr;
  uint32_t branchFirst = at_;
  advance();
  while (true) {
    IfBranch branch;
    branch.condition = parseCondition();
    branch.body = expectBlock("after the condition");
    branch.range = since(branchFirst);
    branches.push_back(branch);
    const bool isElseIf = !failed_ && complainAboutForeignElse();
    if (failed_ || (!isElseIf && !is(Tok::KwElse)))
      break;
    branchFirst = at_;
    advance();
    if (isElseIf || accept(Tok::KwIf))
      continue;
    elseBody = expectBlock("or `if` after `else`");
    break;
  }
  auto* expr = makeExpr<IfExpr>(since(first), {elseBody});
  for (const IfBranch& branch : branches) {
    raise(expr, branch.condition);
    raise(expr, branch.body);
  }
  expr->branches = module_.arena.copyList(branches);
  expr->elseBody = elseBody;
  return checkHeight(expr);
}

Expr* Parser::parseMatch() {
  const uint32_t first = at_;
  advance();
  Expr* subject = parseCondition();
  if (failed_ || !is(Tok::LBrace)) {
    if (!failed_ && !complainAboutForeignBlock())
      failBlock("after the value to match");
    return errorExpr();
  }
  const Scoped allowStruct(noStruct_, false);
  const uint32_t close = stream_.partner[at_];
  advance();
  std::vector<MatchArm> arms;
  bool isCommaSaid = false;
  while (at_ < close) {
    const uint32_t start = at_;
    MatchArm arm;
    if (isWord("case") && isOnSameLine(1) && ahead(1).tok != Tok::FatArrow) {
      complain("E0117", here(), "`case` is not part of the language").help("a pattern stands alone: `1 => a,`");
      advance();
    }
    arm.pattern = parsePattern();
    if (!failed_ && accept(Tok::KwIf))
      arm.guard = parseExpr();
    if (!failed_)
      expect(Tok::FatArrow, "after the pattern");
    if (!failed_) {
      // A block ends its arm, so that the `.Name` of the next line is a pattern.
      const bool isBlock = is(Tok::LBrace);
      arm.body = isBlock ? static_cast<Expr*>(parseBlock()) : parseStatementExpr();
      arm.range = since(start);
      arms.push_back(arm);
      if (!failed_ && is(Tok::Semicolon))
        complainAboutMissingComma(isCommaSaid);
      if (!accept(Tok::Comma) && !failed_ && !isBlock && at_ < close && !newlineBefore())
        failExpected("`,` or a newline after the arm");
    }
    if (failed_) {
      skipToStatement(start, close);
      failed_ = false;
    }
    if (at_ == start)
      skipOne();
  }
  at_ = close;
  advance();
  auto* match = makeExpr<MatchExpr>(since(first), {subject});
  for (const MatchArm& arm : arms) {
    raise(match, arm.guard);
    raise(match, arm.body);
  }
  match->subject = subject;
  match->arms = module_.arena.copyList(arms);
  return checkHeight(match);
}

Expr* Parser::parseWhile() {
  const uint32_t first = at_;
  advance();
  Expr* condition = parseCondition();
  BlockExpr* body = expectBlock("after the condition");
  auto* loop = makeExpr<WhileExpr>(since(first), {condition, body});
  loop->condition = condition;
  loop->body = body;
  return checkHeight(loop);
}

Expr* Parser::parseLoop() {
  const uint32_t first = at_;
  advance();
  BlockExpr* body = expectBlock("after `loop`");
  auto* loop = makeExpr<LoopExpr>(since(first), {body});
  loop->body = body;
  return checkHeight(loop);
}

Expr* Parser::parseFor() {
  const uint32_t first = at_;
  advance();
  if (complainAboutForeignLoop())
    return errorExpr();
  Pattern* pattern = parsePattern(false);
  if (!failed_)
    expect(Tok::KwIn, "after the loop variable");
  Expr* iterable = failed_ ? errorExpr() : parseCondition();
  BlockExpr* body = expectBlock("after the range of the loop");
  auto* loop = makeExpr<ForExpr>(since(first), {iterable, body});
  loop->pattern = pattern;
  loop->iterable = iterable;
  loop->body = body;
  return checkHeight(loop);
}

Expr* Parser::parseJump() {
  const uint32_t first = at_;
  const Tok tok = current().tok;
  advance();
  if (tok == Tok::KwContinue)
    return makeExpr<ContinueExpr>(since(first));
  Expr* value = nullptr;
  if (startsExpr() && !newlineBefore() && !(noStruct_ && is(Tok::LBrace)))
    value = parseExpr();
  if (tok == Tok::KwBreak) {
    auto* jump = makeExpr<BreakExpr>(since(first), {value});
    jump->value = value;
    return checkHeight(jump);
  }
  auto* jump = makeExpr<ReturnExpr>(since(first), {value});
  jump->value = value;
  return checkHeight(jump);
}

}  // namespace vortex::lang::syntax
