// Statements and control flow.
#include "lang/flow/graph/lower.h"

#include "lang/flow/graph/lower_function.h"

namespace vortex::lang::flow {

Graph lowerKernel(const Function& kernel) {
  Graph graph;
  graph.isKernel = true;
  Lowering(kernel, graph).run();
  return graph;
}

Graph lowerWritten(const Function& function, const SummaryOf& summaryOf) {
  Graph graph;
  Lowering(function, graph, &summaryOf).run();
  return graph;
}

Lowering::Lowering(const Function& function, Graph& graph, const SummaryOf* summaryOf)
    : function_(function), graph_(graph), b_(graph), summaryOf_(summaryOf) {
  graph.function = &function;
  if (graph.isKernel)
    uses_ = findVariableUses(*function.body);
  else
    views_ = findViews(function);
}

void Lowering::run() {
  const Expr& body = *function_.body;
  graph_.frames.push_back({nullptr, function_.name, kNoFrame});
  b_.startEntry();
  pushScope();
  graph_.isKernel ? lowerParams() : writtenParams();
  Label end = b_.label();
  frames_.push_back({&end, nullptr, scopes_.size(), 0, true});
  if (hasValue(body.type))
    output(body);
  else
    execute(body, nullptr);
  b_.jump(end, &body);
  frames_.pop_back();
  if (b_.start(end))
    b_.leave(&body);
  b_.finish();
}

void Lowering::execute(const Expr& expr, const Holder* into) {
  if (!isReachable())
    return;
  enter(expr);
  const bool isDropped = !graph_.isKernel && !into && hasValue(expr.type);
  if (isDropped && (expr.kind == ExprKind::If || expr.kind == ExprKind::Block || expr.kind == ExprKind::Loop)) {
    control(expr, {});  // it is moved out all the same
    return;
  }
  switch (expr.kind) {
  case ExprKind::Block: return block(expr, into);
  case ExprKind::If: return branches(expr, into);
  case ExprKind::While:
  case ExprKind::Loop: return loop(expr, into);
  case ExprKind::For: return forLoop(expr);
  case ExprKind::Inline: return inlined(expr, into);
  case ExprKind::Let:
  case ExprKind::Assign:
    expr.kind == ExprKind::Let ? let(expr) : assign(expr);
    if (graph_.isKernel && isReachable())
      graph_.entered[&expr] = b_.block();
    return;
  case ExprKind::Break:
  case ExprKind::Continue: return leaveLoop(expr);
  case ExprKind::Return: return leaveFrame(expr);
  default: break;
  }
  if (into)
    put(*into, expr);
  else
    value(expr);
}

//===-- scopes ----------------------------------------------------------------------------------------------------===//

void Lowering::endScopes(size_t from, const Expr& at) {
  if (!isReachable())
    return;
  for (size_t i = scopes_.size(); i-- > from;)
    for (size_t j = scopes_[i].size(); j-- > 0;)
      b_.emit(StepKind::End, &at).place = b_.root(scopes_[i][j]);
}

void Lowering::popScope(const Expr& at) {
  endScopes(scopes_.size() - 1, at);
  scopes_.pop_back();
}

void Lowering::block(const Expr& expr, const Holder* into) {
  pushScope();
  for (size_t i = 0; i < expr.args.size(); ++i)
    execute(*expr.args[i], i + 1 == expr.args.size() ? into : nullptr);
  popScope(expr);
}

//===-- assignments -----------------------------------------------------------------------------------------------===//

void Lowering::assign(const Expr& expr) {
  if (!graph_.isKernel)
    return writtenAssign(expr);
  const auto [target, source] = asAssign(expr);
  if (target.kind == ExprKind::Slice || stripRef(target.type)->isTensor())
    return assignTile(expr);
  const Operand operand = value(source);
  if (!isReachable())
    return;
  const Operand to = place(target);
  if (!isReachable())
    return;
  const bool isRebound = target.kind == ExprKind::Var && target.variable->type->kind == TypeKind::Ref;
  if (isRebound) {
    const Holder& holder = holderOf(*target.variable);
    return holder.slot ? writeSlots(*holder.slot, holder.type, operand) : void();
  }
  if (to.place == kNoPlace)
    return;
  if (!expr.hasOp)
    return store(to.place, target.type, operand, expr, &target);
  const ValueId before = load(to.place, target.type, target).value;
  const ValueId after = arithmetic(expr, expr.binaryOp, target.type, before, operand.value);
  if (isReachable())
    store(to.place, target.type, Operand{after, kNoPlace, {}}, expr, &target);
}

//===-- branches --------------------------------------------------------------------------------------------------===//

void Lowering::branches(const Expr& expr, const Holder* into) {
  const auto [decides, then, otherwise] = asIf(expr);
  Label whenTrue = b_.label(), whenFalse = b_.label(), join = b_.label();
  condition(decides, whenTrue, whenFalse);
  if (b_.start(whenTrue)) {
    choose(then, "not assigned on this path");
    execute(then, into);
    b_.jump(join, &expr);
  }
  if (b_.start(whenFalse)) {
    otherwise ? choose(*otherwise, "not assigned on this path") : choose(decides, "not assigned where this is false");
    if (otherwise)
      execute(*otherwise, into);
    b_.jump(join, &expr);
  }
  b_.start(join);
}

/// Ends the block; `a && b` reaches the branch only by way of both.
void Lowering::condition(const Expr& expr, Label& whenTrue, Label& whenFalse) {
  enter(expr);
  const bool isAnd = expr.kind == ExprKind::Binary && expr.binaryOp == BinaryOp::And;
  const bool isOr = expr.kind == ExprKind::Binary && expr.binaryOp == BinaryOp::Or;
  if (isAnd || isOr) {
    const auto [lhs, rhs] = asBinary(expr);
    Label second = b_.label();
    condition(lhs, isAnd ? second : whenTrue, isAnd ? whenFalse : second);
    if (b_.start(second))
      condition(rhs, whenTrue, whenFalse);
    return;
  }
  if (expr.kind == ExprKind::Unary && expr.unaryOp == UnaryOp::Not)
    return condition(operandOf(expr), whenFalse, whenTrue);
  const ValueId decided = scalar(expr);
  b_.branch(decided, whenTrue, whenFalse, &expr);
}

//===-- calls and jumps -------------------------------------------------------------------------------------------===//

void Lowering::inlined(const Expr& expr, const Holder* into) {
  const auto [params, body] = asInline(expr);
  pushScope();
  for (const Expr* param : params)
    execute(*param, nullptr);
  if (!isReachable()) {
    scopes_.pop_back();
    return;
  }
  const FrameId caller = b_.frame;
  b_.frame = FrameId{static_cast<uint32_t>(graph_.frames.size())};
  graph_.frames.push_back({&expr, expr.text, caller});
  Label end = b_.label();
  frames_.push_back({&end, into, scopes_.size(), loops_.size(), false});
  execute(body, into);
  frames_.pop_back();
  if (!end.edges.empty()) {
    b_.jump(end, &expr);
    b_.start(end);
  }
  b_.frame = caller;
  popScope(expr);
}

void Lowering::leaveLoop(const Expr& expr) {
  const LoopContext& target = loops_.back();
  if (const Expr* handed = expr.kind == ExprKind::Break ? jumpValueOf(expr) : nullptr)
    execute(*handed, target.into);
  endScopes(target.scopes, expr);
  b_.jump(expr.kind == ExprKind::Break ? *target.exit : *target.next, &expr);
}

void Lowering::leaveFrame(const Expr& expr) {
  const FrameContext frame = frames_.back();
  if (const Expr* handed = jumpValueOf(expr)) {
    if (frame.isFunction)
      output(*handed);
    else if (graph_.isKernel)
      execute(*handed, frame.into);
    else
      value(*handed, handOver());
  }
  if (graph_.isKernel)
    endScopes(frame.scopes, expr);
  b_.jump(*frame.end, &expr);
}

}  // namespace vortex::lang::flow
