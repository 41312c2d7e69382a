// Statements and control flow.
#include "lang/sema/ownership/lower.h"

namespace vortex::lang::ownership {

Lowering::Lowering(Function& function, diag::DiagnosticSink& sink, std::function<Summary(const Function&)> summaryOf)
    : function_(function), sink_(sink), summaryOf_(std::move(summaryOf)), views_(findViews(function)) {
  graph_.function = &function;
  graph_.inKernel = function.inKernel;
  graph_.loopParents = {0};
}

LocalId Lowering::newLocal(Type type, SourceRange range, const Variable* variable) {
  Local local;
  local.variable = variable;
  local.type = type;
  local.range = range;
  local.isView = variable && views_.views.contains(variable);
  local.carries = local.isView || mayHoldBorrows(type) || (!variable && type->kind != TypeKind::Scalar);
  local.loop = loopPath_.back();
  local.closure = static_cast<uint32_t>(closures_.size());
  graph_.locals.push_back(local);
  return static_cast<LocalId>(graph_.locals.size() - 1);
}

LocalId Lowering::localOf(const Variable* variable) {
  auto found = locals_.find(variable);
  if (found != locals_.end())
    return found->second;
  const LocalId made = newLocal(variable->type, variable->range, variable);
  locals_[variable] = made;
  return made;
}

uint32_t Lowering::newBlock() {
  graph_.blocks.emplace_back();
  return static_cast<uint32_t>(graph_.blocks.size() - 1);
}

/// Notes which choice leads to the block; of a block of statements its last one, which fits on a line.
void Lowering::choose(uint32_t block, const Expr& by, std::string_view label) {
  const Expr* at = &by;
  while (at->kind == ExprKind::Block && !at->args.empty())
    at = at->args.back();
  graph_.blocks[block].choice = at->range;
  graph_.blocks[block].choiceLabel = label;
}

void Lowering::jump(uint32_t to) { graph_.blocks[at_].successors.push_back(to); }

Statement& Lowering::emit(Op op, SourceRange range) {
  Statement& made = graph_.blocks[at_].statements.emplace_back();
  made.op = op;
  made.range = range;
  return made;
}

void Lowering::read(Place from, SourceRange range) { emit(Op::Read, range).place = std::move(from); }

void Lowering::flow(LocalId to, std::vector<LocalId> from, bool weak, SourceRange range) {
  std::erase(from, kNoLocal);
  Statement& made = emit(Op::Flow, range);
  made.local = to;
  made.sources = std::move(from);
  made.isWeak = weak;
}

void Lowering::borrow(LocalId to, Loan loan) {
  Statement& made = emit(Op::Borrow, loan.range);
  made.local = to;
  made.place = loan.place;
  made.index = static_cast<uint32_t>(graph_.loans.size());
  graph_.loans.push_back(std::move(loan));
}

Graph Lowering::run() {
  start(newBlock());
  pushScope();
  for (uint32_t i = 0; i < function_.params.size(); ++i) {
    const LocalId local = localOf(function_.params[i]);
    emit(Op::Declare, function_.params[i]->range).place = Place{local, {}};
    if (!graph_.locals[local].carries)
      continue;
    Loan lent;
    lent.place = Place{local, {}};
    lent.range = function_.params[i]->range;
    lent.param = i;
    borrow(local, std::move(lent));
  }
  Expr& body = *function_.body;
  const bool hasValue = body.type->kind != TypeKind::Unit && body.type->kind != TypeKind::Never;
  const LocalId result =
      value(body, hasValue ? Purpose{Want::Return, MoveReason::Result, nullptr, nullptr, nullptr} : look());
  if (result != kNoLocal)
    emit(Op::Return, body.range).sources = {result};
  return std::move(graph_);
}

LocalId Lowering::value(Expr& expr, const Purpose& purpose) {
  switch (expr.kind) {
  case ExprKind::Var:
  case ExprKind::Field:
  case ExprKind::Element:
  case ExprKind::Slice:
  case ExprKind::Deref: return usePlace(expr, purpose);
  case ExprKind::Binary:
    if ((expr.binaryOp == BinaryOp::And || expr.binaryOp == BinaryOp::Or) && !expr.type->isTensor())
      return shortCircuit(expr);
    break;
  case ExprKind::Builtin: return builtin(expr);
  case ExprKind::Call:
  case ExprKind::Launch: return call(expr);
  case ExprKind::CallClosure: return callClosure(expr);
  case ExprKind::Closure: return closure(expr);
  case ExprKind::Ref: return reference(expr, purpose.call);
  case ExprKind::MakeTuple: return aggregate(expr, purpose);
  case ExprKind::MakeStruct:
  case ExprKind::MakeArray:
  case ExprKind::MakeVec:
  case ExprKind::RepeatArray:
  case ExprKind::RepeatVec: return aggregate(expr, own(MoveReason::Part));
  case ExprKind::Block: return block(expr, purpose);
  case ExprKind::Let: let(expr); return kNoLocal;
  case ExprKind::Assign: assign(expr); return kNoLocal;
  case ExprKind::If: return branches(expr, purpose);
  case ExprKind::While:
  case ExprKind::Loop: return loop(expr, purpose);
  case ExprKind::For: forLoop(expr); return kNoLocal;
  case ExprKind::Break:
  case ExprKind::Continue: leaveLoop(expr); return kNoLocal;
  case ExprKind::Return: leaveFunction(expr); return kNoLocal;
  default: break;
  }
  for (Expr* arg : expr.args)
    if (arg)
      value(*arg, look());
  return kNoLocal;
}

void Lowering::popScope(SourceRange end) {
  endScopes(scopes_.size() - 1, end);
  scopes_.pop_back();
}

void Lowering::endScopes(size_t from, SourceRange end) {
  for (size_t i = scopes_.size(); i-- > from;)
    for (size_t j = scopes_[i].size(); j-- > 0;)
      emit(Op::Dead, end).place = Place{scopes_[i][j], {}};
}

/// What the value at the end of a block or branch is wanted for: it leaves the block even if it is only looked at.
Lowering::Purpose Lowering::tailOf(const Expr& expr, const Purpose& purpose) const {
  if (expr.type->isTensor() && expr.type->isValue)  // the compiler selects between values
    return {Want::Return, MoveReason::Result, nullptr, nullptr, nullptr};
  return purpose.want == Want::Look ? own(MoveReason::Result) : purpose;
}

LocalId Lowering::block(Expr& expr, const Purpose& purpose) {
  pushScope();
  const bool hasValue = expr.type->kind != TypeKind::Unit && expr.type->kind != TypeKind::Never;
  LocalId result = kNoLocal;
  const Purpose tail = tailOf(expr, purpose);
  for (size_t i = 0; i < expr.args.size(); ++i) {
    const bool isTail = hasValue && i + 1 == expr.args.size();
    const LocalId made = value(*expr.args[i], isTail ? tail : look());
    if (isTail)
      result = made;
  }
  const SourceRange end{expr.range.file, expr.range.end > expr.range.begin ? expr.range.end - 1 : expr.range.end,
                        expr.range.end};
  popScope(end);
  return result;
}

void Lowering::let(Expr& expr) {
  const Variable* variable = expr.variable;
  Expr* init = expr.args.empty() ? nullptr : expr.args[0];
  if (init && variable->name.empty() && isPlace(*init) && !isCopy(variable->type)) {
    // The checker's name for what a pattern takes apart: the place itself.
    aliases_[variable] = place(*init);
    return;
  }
  LocalId held = kNoLocal;
  if (init) {
    const bool copies = variable->type->isTensor() && variable->type->isValue;
    Purpose purpose{copies ? Want::Return : Want::View, MoveReason::Binding, nullptr, nullptr, nullptr};
    if (auto written = views_.written.find(variable); written != views_.written.end())
      purpose.writer = written->second;
    held = value(*init, purpose);
  }
  const LocalId local = localOf(variable);
  emit(Op::Declare, variable->range).place = Place{local, {}};
  if (graph_.locals[local].carries)
    flow(local, {held}, false, expr.range);
  scopes_.back().push_back(local);
  if (!init && variable->isDeferred)
    emit(Op::Empty, variable->range).place = Place{local, {}};
}

void Lowering::assign(Expr& expr) {
  Expr &target = *expr.args[0], &source = *expr.args[1];
  const bool copies = function_.inKernel && source.type->isTensor();
  const LocalId held = value(source, expr.hasOp || copies ? look() : own(MoveReason::Binding));
  Place to = place(target);
  const LocalId root = to.root;
  const bool isWhole = to.path.empty();
  const bool carries = graph_.locals[root].carries && mayHoldBorrows(target.type);
  emit(expr.hasOp ? Op::Mutate : Op::Assign, expr.range).place = std::move(to);
  if (carries)
    flow(root, {held}, !isWhole, expr.range);
}

LocalId Lowering::branches(Expr& expr, const Purpose& purpose) {
  const uint32_t then = newBlock(), otherwise = newBlock(), join = newBlock();
  condition(*expr.args[0], then, otherwise);
  const bool hasValue = expr.type->kind != TypeKind::Unit && expr.type->kind != TypeKind::Never;
  const LocalId result = hasValue ? temporary(expr) : kNoLocal;
  const Purpose tail = tailOf(expr, purpose);
  choose(then, *expr.args[1], "not assigned on this path");
  if (expr.args.size() > 2 && expr.args[2])
    choose(otherwise, *expr.args[2], "not assigned on this path");
  else
    choose(otherwise, *expr.args[0], "not assigned where this is false");
  for (size_t i = 1; i <= 2; ++i) {
    start(i == 1 ? then : otherwise);
    if (i < expr.args.size() && expr.args[i]) {
      const LocalId made = value(*expr.args[i], hasValue ? tail : look());
      if (hasValue)
        flow(result, {made}, false, expr.args[i]->range);
    }
    jump(join);
  }
  start(join);
  return result;
}

/// Ends the block; `a && b` reaches the branch only by way of both.
void Lowering::condition(Expr& expr, uint32_t whenTrue, uint32_t whenFalse) {
  const bool isAnd = expr.kind == ExprKind::Binary && expr.binaryOp == BinaryOp::And;
  const bool isOr = expr.kind == ExprKind::Binary && expr.binaryOp == BinaryOp::Or;
  if (isAnd || isOr) {
    const uint32_t second = newBlock();
    condition(*expr.args[0], isAnd ? second : whenTrue, isAnd ? whenFalse : second);
    start(second);
    return condition(*expr.args[1], whenTrue, whenFalse);
  }
  if (expr.kind == ExprKind::Unary && expr.unaryOp == UnaryOp::Not)
    return condition(*expr.args[0], whenFalse, whenTrue);
  value(expr, look());
  jump(whenTrue);
  jump(whenFalse);
}

LocalId Lowering::shortCircuit(Expr& expr) {
  value(*expr.args[0], look());
  const uint32_t second = newBlock(), join = newBlock();
  jump(second);
  jump(join);
  start(second);
  value(*expr.args[1], look());
  jump(join);
  start(join);
  return kNoLocal;
}

LocalId Lowering::loop(Expr& expr, const Purpose& purpose) {
  const bool hasValue = expr.type->kind != TypeKind::Unit && expr.type->kind != TypeKind::Never;
  const LocalId result = hasValue ? temporary(expr) : kNoLocal;
  const uint32_t head = newBlock(), exit = newBlock(), before = at_;
  graph_.loopParents.push_back(loopPath_.back());
  loopPath_.push_back(static_cast<uint32_t>(graph_.loopParents.size() - 1));
  jump(head);
  start(head);
  if (expr.kind == ExprKind::While) {
    const uint32_t body = newBlock(), skip = newBlock();
    choose(skip, *expr.args[0], "not assigned if this is false at once");
    graph_.blocks[skip].loopEntry = before;
    condition(*expr.args[0], body, skip);
    start(skip);
    jump(exit);
    start(body);
  }
  loops_.push_back({head, exit, scopes_.size(), result, tailOf(expr, purpose)});
  value(*expr.args.back(), look());
  loops_.pop_back();
  jump(head);
  loopPath_.pop_back();
  start(exit);
  return result;
}

void Lowering::forLoop(Expr& expr) {
  Expr& over = *expr.args[0];
  LocalId held = kNoLocal;
  bool ownsElements = true;
  if (isPlace(over) && over.type->kind != TypeKind::Range) {
    // The list is lent to the loop while it runs.
    Place from = place(over);
    held = newLocal(over.type, over.range);
    Loan loan;
    loan.place = std::move(from);
    loan.range = over.range;
    loan.isView = loan.isLoop = true;
    borrow(held, std::move(loan));
    ownsElements = false;
  } else {
    held = value(over, own(MoveReason::Binding));
  }
  const uint32_t head = newBlock(), body = newBlock(), skip = newBlock(), exit = newBlock(), before = at_;
  graph_.loopParents.push_back(loopPath_.back());
  loopPath_.push_back(static_cast<uint32_t>(graph_.loopParents.size() - 1));
  jump(head);
  start(head);
  if (held != kNoLocal)
    emit(Op::Keep, over.range).sources = {held};
  jump(body);
  choose(skip, over, "not assigned if this is empty");
  graph_.blocks[skip].loopEntry = before;
  jump(skip);
  start(skip);
  jump(exit);
  start(body);
  pushScope();
  loopVariable(expr, held, ownsElements);
  loops_.push_back({head, exit, scopes_.size() - 1, kNoLocal, look()});
  value(*expr.args[1], look());
  loops_.pop_back();
  popScope(SourceRange{expr.range.file, expr.range.end - 1, expr.range.end});
  jump(head);
  loopPath_.pop_back();
  start(exit);
}

void Lowering::loopVariable(Expr& expr, LocalId held, bool ownsElements) {
  const LocalId local = localOf(expr.variable);
  expr.variable->isView = graph_.locals[local].isView;
  graph_.locals[local].isElement = graph_.locals[local].isView;
  emit(Op::Declare, expr.variable->range).place = Place{local, {}};
  if (graph_.locals[local].carries)
    flow(local, {ownsElements && !mayHoldBorrows(expr.variable->type) ? kNoLocal : held}, false, expr.variable->range);
  scopes_.back().push_back(local);
  if (!expr.indexVariable)
    return;
  const LocalId index = localOf(expr.indexVariable);
  emit(Op::Declare, expr.indexVariable->range).place = Place{index, {}};
}

void Lowering::leaveLoop(Expr& expr) {
  const Loop target = loops_.back();
  if (!expr.args.empty() && expr.args[0]) {
    const LocalId made = value(*expr.args[0], target.purpose);
    if (target.result != kNoLocal)
      flow(target.result, {made}, false, expr.range);
  }
  endScopes(target.scope, expr.range);
  jump(expr.kind == ExprKind::Break ? target.exit : target.next);
  start(newBlock());
}

void Lowering::leaveFunction(Expr& expr) {
  LocalId result = kNoLocal;
  if (!expr.args.empty() && expr.args[0])
    result = value(*expr.args[0], Purpose{Want::Return, MoveReason::Result, nullptr, nullptr, nullptr});
  if (!closures_.empty()) {
    jump(closures_.back().end);
  } else if (result != kNoLocal) {
    emit(Op::Return, expr.args[0]->range).sources = {result};
  }
  start(newBlock());
}

}  // namespace vortex::lang::ownership
