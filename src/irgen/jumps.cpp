// Targets of break, continue and return, and which of them only some threads take.
#include "irgen/facts.h"

namespace vortex::irgen {

using lang::Expr;
using lang::ExprKind;
using lang::Uniformity;
using lang::Variable;

struct BodyFacts::JumpContext {
  llvm::SmallVector<const Expr*> loops;
  const Expr* returnTarget = nullptr;
  bool divergentReturn = false;  ///< seen so far
};

const JumpFlags& BodyFacts::flags(const Expr* target) const {
  static const JumpFlags kNone;
  auto found = flags_.find(target);
  return found == flags_.end() ? kNone : found->second;
}

const Variable* BodyFacts::jumpFlag(const Expr& jump) const {
  switch (jump.kind) {
  case ExprKind::Break: return flags(target(jump)).broke;
  case ExprKind::Continue: return flags(target(jump)).continued;
  case ExprKind::Return: return flags(target(jump)).returned;
  default: return nullptr;
  }
}

void BodyFacts::declareFlag(const Variable*& flag, const char* name, bool divergent) {
  if (!flag)
    flag = newVariable(name, &boolean_, Uniformity::Uniform);
  if (divergent && hasThreads_)
    const_cast<Variable*>(flag)->uniformity = Uniformity::PerThread;  // owned here
}

bool BodyFacts::resolveJump(const Expr& jump, JumpContext& context, bool divergent) {
  if (jump.kind == ExprKind::Return) {
    targets_[&jump] = context.returnTarget;
    declareFlag(flags_[context.returnTarget].returned, "returned", divergent);
    context.divergentReturn |= divergent;
    return divergent;
  }
  VORTEX_CHECK(!context.loops.empty(), "break or continue outside a loop");
  const Expr* loop = context.loops.back();
  targets_[&jump] = loop;
  JumpFlags& flags = flags_[loop];
  if (jump.kind == ExprKind::Break)
    declareFlag(flags.broke, "broke", divergent);
  else
    declareFlag(flags.continued, "continued", divergent);
  return divergent;
}

bool BodyFacts::resolveLoop(const Expr& loop, JumpContext& context, bool divergent) {
  bool inner = divergent;
  if (loop.kind == ExprKind::Loop && loop.type && loop.type->kind != lang::TypeKind::Unit &&
      loop.type->kind != lang::TypeKind::Never)
    flags_[&loop].value = newVariable("loop", wide(loop.type), loop.uniformity);
  if (loop.kind != ExprKind::Loop) {
    resolve(*loop.args[0], context, divergent);
    inner |= loop.args[0]->uniformity == Uniformity::PerThread;
  }
  const Expr& body = loop.kind == ExprKind::Loop ? *loop.args[0] : *loop.args[1];
  bool before = std::exchange(context.divergentReturn, false);
  context.loops.push_back(&loop);
  bool leaves = resolve(body, context, inner);
  if (leaves && !inner)  // once some threads have left, only some run the next iteration
    resolve(body, context, true);
  context.loops.pop_back();
  bool returns = context.divergentReturn;  // breaks end at the loop
  context.divergentReturn |= before;
  return returns;
}

bool BodyFacts::resolve(const Expr& expr, JumpContext& context, bool divergent) {
  switch (expr.kind) {
  case ExprKind::Break:
  case ExprKind::Continue:
  case ExprKind::Return:
    for (const Expr* child : children(expr))
      resolve(*child, context, divergent);
    return resolveJump(expr, context, divergent);
  case ExprKind::If: {
    bool leaves = resolve(*expr.args[0], context, divergent);
    bool inner = divergent || expr.args[0]->uniformity == Uniformity::PerThread;
    for (const Expr* branch : llvm::ArrayRef(expr.args).drop_front())
      if (branch)
        leaves |= resolve(*branch, context, inner);
    return leaves;
  }
  case ExprKind::While:
  case ExprKind::Loop:
  case ExprKind::For: return resolveLoop(expr, context, divergent);
  case ExprKind::Inline: {
    for (const Expr* arg : llvm::ArrayRef(expr.args).drop_back())
      resolve(*arg, context, divergent);
    if (expr.type && expr.type->kind != lang::TypeKind::Unit && expr.type->kind != lang::TypeKind::Never)
      flags_[&expr].value = newVariable(expr.text.empty() ? "call" : expr.text, wide(expr.type), expr.uniformity);
    JumpContext inner;
    inner.returnTarget = &expr;
    resolve(*expr.args.back(), inner, divergent);
    return false;
  }
  default: {
    bool left = false;
    for (const Expr* child : children(expr))
      left |= resolve(*child, context, divergent || left);
    return left;
  }
  }
}

void BodyFacts::addBody(const Expr& body, const Expr* target) {
  JumpContext context;
  context.returnTarget = target;
  resolve(body, context, false);
}

void BodyFacts::addFunction(const lang::Function& function, const Variable* value) {
  addBody(*function.body, function.body);
  flags_[function.body].value = value;
}

}  // namespace vortex::irgen
