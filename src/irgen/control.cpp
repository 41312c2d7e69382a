// Structured control flow: branches and conditional loops, merging the variables assigned inside.
#include "irgen/emitter.h"

#include "ir/vx_checked.h"

namespace vortex::irgen {

using lang::Expr;
using lang::ExprKind;
using mlir::Location;
using mlir::Value;
namespace arith = mlir::arith;
namespace scf = mlir::scf;

Value Emitter::noneSet(Location loc, llvm::ArrayRef<const Variable*> flags) {
  Value any;
  for (const Variable* flag : flags) {
    if (!variables_.count(flag))
      continue;
    Value value = readScalar(loc, flag);
    any = any ? Value(b_.create<arith::OrIOp>(loc, any, value)) : value;
  }
  Value yes = math_.integer(loc, b_.getI1Type(), 1);
  return any ? Value(b_.create<arith::XOrIOp>(loc, any, yes)) : yes;
}

void Emitter::emitIf(Location loc, Value condition, const VariableSet& assigned, Body thenBody, Body elseBody) {
  llvm::SmallVector<const Variable*> variables = merged(assigned);
  llvm::SmallVector<mlir::Type> types = mergedTypes(variables);
  auto branch = b_.create<scf::IfOp>(loc, types, condition, /*addThenBlock=*/true, /*addElseBlock=*/true);
  llvm::SmallVector<Slot> before, after;
  for (const Variable* variable : variables)
    before.push_back(variables_[variable]);
  auto emitBranch = [&](mlir::Block* block, Body body) {
    block->clear();
    inNested(block, [&] {
      body();
      if (atBlockLevel())
        closeRegion();
      llvm::SmallVector<Value> values = mergedValues(loc, variables);
      b_.create<scf::YieldOp>(loc, values);
    });
    for (auto [variable, slot] : llvm::zip(variables, before)) {
      after.push_back(variables_[variable]);
      variables_[variable] = slot;
    }
  };
  emitBranch(branch.thenBlock(), thenBody);
  emitBranch(branch.elseBlock(), elseBody);
  setMerged(variables, branch.getResults());
  mergeViews(loc, variables, after);
}

/// `after`: what both branches left. Windows on memory are no results of a branch: there may be only one.
void Emitter::mergeViews(Location loc, llvm::ArrayRef<const Variable*> variables, llvm::ArrayRef<Slot> after) {
  for (size_t i = 0; i < variables.size(); ++i)
    for (auto [leaf, one, other] :
         llvm::zip(variables_[variables[i]].leaves, after[i].leaves, after[variables.size() + i].leaves)) {
      const auto isView = [](Value value) { return value && llvm::isa<ir::ViewType>(value.getType()); };
      if (!isView(one) && !isView(other))
        continue;
      if (isView(one) && isView(other) && one != other) {
        context_.failed = true;
        mlir::emitError(loc) << "not supported yet: " << kChosenReference;
      }
      leaf = isView(one) ? one : other;
    }
}

void Emitter::emitIfExpr(const Expr& expr, const Variable* into, llvm::ArrayRef<const Expr*> rest,
                         const Variable* restInto) {
  const Expr* otherwise = expr.args.size() > 2 ? expr.args[2] : nullptr;
  if (atBlockLevel() && (facts_.grade(expr) != Grade::Uniform || facts_.hasBlock(rest) ||
                         llvm::any_of(rest, [&](const Expr* s) { return facts_.grade(*s) != Grade::Uniform; })))
    closeRegion();
  Value condition = evalScalar(*expr.args[0]);
  if (atBlockLevel() && region_ && facts_.grade(expr) != Grade::Uniform)
    closeRegion();
  VariableSet assigned = assignedIn(&expr);
  VariableSet later = assignedIn(rest);
  assigned.insert(later.begin(), later.end());
  for (const Variable* target : {into, restInto})
    if (target)
      assigned.insert(target);
  emitIf(
      loc(expr), condition, assigned, [&] { evaluate(*expr.args[1], into); },
      [&] {
        if (otherwise)
          evaluate(*otherwise, into);
        if (!rest.empty())
          emitSequence(rest, restInto);
      });
}

mlir::scf::ForOp Emitter::emitFor(Location loc, Value lower, Value upper, Value step, const VariableSet& assigned,
                                  llvm::function_ref<void(Value)> body) {
  llvm::SmallVector<const Variable*> variables = merged(assigned);
  auto loop = b_.create<scf::ForOp>(loc, lower, upper, step, mergedValues(loc, variables));
  loop.getBody()->clear();
  inNested(loop.getBody(), [&] {
    setMerged(variables, loop.getRegionIterArgs());
    body(loop.getInductionVar());
    if (atBlockLevel())
      closeRegion();
    llvm::SmallVector<Value> values = mergedValues(loc, variables);
    b_.create<scf::YieldOp>(loc, values);
  });
  setMerged(variables, loop.getResults());
  return loop;
}

void Emitter::emitWhile(Location loc, const VariableSet& assigned, llvm::function_ref<Value()> condition, Body body) {
  llvm::SmallVector<const Variable*> variables = merged(assigned);
  llvm::SmallVector<mlir::Type> types = mergedTypes(variables);
  auto loop = b_.create<scf::WhileOp>(loc, types, mergedValues(loc, variables));
  llvm::SmallVector<Location> locs(types.size(), loc);
  mlir::Block* before = b_.createBlock(&loop.getBefore(), {}, types, locs);
  mlir::Block* after = b_.createBlock(&loop.getAfter(), {}, types, locs);
  b_.setInsertionPointAfter(loop);
  inNested(before, [&] {
    if (context_.forChecks)
      b_.create<ir::RoundOp>(loc);
    setMerged(variables, before->getArguments());
    Value proceed = condition();
    if (atBlockLevel())
      closeRegion();
    b_.create<scf::ConditionOp>(loc, proceed, mergedValues(loc, variables));
  });
  inNested(after, [&] {
    setMerged(variables, after->getArguments());
    body();
    if (atBlockLevel())
      closeRegion();
    llvm::SmallVector<Value> values = mergedValues(loc, variables);
    b_.create<scf::YieldOp>(loc, values);
  });
  setMerged(variables, loop.getResults());
}

/// Flags that end the loop before its condition does.
llvm::SmallVector<const lang::Variable*> Emitter::loopExits(const Expr& loop) const {
  llvm::SmallVector<const Variable*> exits;
  if (const Variable* broke = facts_.flags(&loop).broke)
    exits.push_back(broke);
  llvm::ArrayRef<const Variable*> escapes = facts_.escapes(loop);
  exits.append(escapes.begin(), escapes.end());
  return exits;
}

void Emitter::emitWhileExpr(const Expr& expr) {
  Scope scope(*this);
  Location at = loc(expr);
  if (!expr.ints.empty())
    b_.create<ir::StageCommitOp>(at);
  const JumpFlags& flags = facts_.flags(&expr);
  bool conditional = expr.kind == ExprKind::While;
  const Expr& body = *expr.args.back();
  llvm::SmallVector<const Variable*> exits = loopExits(expr);
  if (atBlockLevel() && llvm::any_of(exits, [&](const Variable* flag) { return facts_.isDivergent(flag); })) {
    unsupported(expr, "a loop with block-level statements that only some threads leave");
    return;
  }
  if (flags.broke) {
    declare(flags.broke);
    setFlag(at, flags.broke, false);
  }
  VariableSet assigned = assignedIn(&expr);
  emitWhile(
      at, assigned,
      [&] {
        if (!conditional)
          return noneSet(at, exits);
        if (exits.empty())
          return evalScalar(*expr.args[0]);
        if (mayShortCircuitFreely(*expr.args[0])) {
          Value none = noneSet(at, exits);
          return Value(b_.create<arith::AndIOp>(at, none, evalScalar(*expr.args[0])));
        }
        const Variable* proceed = facts_.newVariable("proceed", facts_.boolean(), lang::Uniformity::PerThread);
        if (atBlockLevel())
          const_cast<Variable*>(proceed)->uniformity = lang::Uniformity::Uniform;
        declare(proceed);
        assign(at, proceed, noneSet(at, exits));
        VariableSet inner = assignedIn(expr.args[0]);
        inner.insert(proceed);
        Value none = readScalar(at, proceed);
        emitIf(at, none, inner, [&] { evaluate(*expr.args[0], proceed); }, [] {});
        return readScalar(at, proceed);
      },
      [&] {
        if (flags.continued) {
          declare(flags.continued);
          setFlag(at, flags.continued, false);
        }
        evaluate(body, nullptr);
      });
}

}  // namespace vortex::irgen
