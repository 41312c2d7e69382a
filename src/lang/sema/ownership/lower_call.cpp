// Calls, launches, built-in functions, closures, aggregates, references.
#include "lang/sema/ownership/lower.h"

#include <algorithm>

namespace vortex::lang::ownership {

LocalId Lowering::aggregate(Expr& expr, const Purpose& purpose) {
  // Several results of a kernel: each is stored, as a single one would be.
  const bool isResults = function_.inKernel && purpose.want == Want::Return && expr.kind == ExprKind::MakeTuple;
  std::vector<LocalId> held;
  for (Expr* arg : expr.args)
    if (arg)
      held.push_back(value(*arg, isResults && arg->type->isTensor() ? purpose : own(MoveReason::Part)));
  if (!mayHoldBorrows(expr.type))
    return kNoLocal;
  const LocalId out = temporary(expr);
  flow(out, std::move(held), false, expr.range);
  return out;
}

LocalId Lowering::reference(Expr& expr, const Expr* call) {
  Place of = placeOfBase(*expr.args[0]);
  Purpose purpose;
  purpose.call = call;
  return lend(expr, std::move(of), expr.type->isMutable ? LoanKind::Mutable : LoanKind::Shared, purpose, false);
}

/// What a call borrows mutably is only reserved while the other arguments are evaluated, which may still read it: `v.push(v.len())`,
/// `p.set(p.get() + 1)` with `p: &mut P`. The call itself makes the borrow mutable. Nothing for other arguments.
LocalId Lowering::reserve(Expr& arg, const Type wanted, const Expr& call) {
  const bool isMutable =
      arg.type->kind == TypeKind::Ref && arg.type->isMutable && wanted->kind == TypeKind::Ref && wanted->isMutable;
  if (!isMutable || (arg.kind != ExprKind::Ref && !isPlace(arg)))
    return kNoLocal;
  const bool isReborrow = arg.kind != ExprKind::Ref;
  Place of = isReborrow ? place(arg) : placeOfBase(*arg.args[0]);
  if (isReborrow)
    of.path.push_back({Projection::Kind::Deref, 0, nullptr});
  const LocalId local = lend(arg, std::move(of), LoanKind::Shared,
                             Purpose{Want::Lend, MoveReason::Argument, nullptr, &call, nullptr}, false);
  graph_.loans.back().isReserved = true;
  return local;
}

LocalId Lowering::call(Expr& expr) {
  const Function& callee = *expr.function;
  const bool isLaunch = expr.kind == ExprKind::Launch;
  std::vector<LocalId> held;
  std::vector<std::pair<LocalId, size_t>> reserved;  // with the number of the loan
  for (size_t i = 0; i < expr.args.size(); ++i) {
    Expr& arg = *expr.args[i];
    if (const LocalId local = reserve(arg, callee.params[i]->type, expr); local != kNoLocal) {
      reserved.emplace_back(local, graph_.loans.size() - 1);
      held.push_back(local);
      continue;
    }
    const Purpose purpose{Want::Lend, isLaunch ? MoveReason::Launch : MoveReason::Argument, &callee, &expr, nullptr};
    // `s.get()` with `s: &mut S` and `get(&self)`: what s refers to is lent for reading only.
    const Type wanted = callee.params[i]->type;
    const bool isWeakened = isPlace(arg) && arg.type->kind == TypeKind::Ref && arg.type->isMutable &&
                            wanted->kind == TypeKind::Ref && !wanted->isMutable;
    if (isWeakened) {
      Place of = place(arg);
      of.path.push_back({Projection::Kind::Deref, 0, nullptr});
      held.push_back(lend(arg, std::move(of), LoanKind::Shared, purpose, false));
      continue;
    }
    held.push_back(value(arg, purpose));
  }
  for (Expr* size : expr.launch.grid)
    value(*size, look());
  for (Expr* size : expr.launch.block)
    value(*size, look());
  // A part is found before the other arguments run, which must leave what it is a part of where it is.
  for (const auto& [local, reservation] : reserved) {
    const std::vector<Projection>& path = graph_.loans[reservation].place.path;
    if (isLaunch || std::any_of(path.begin(), path.end(),
                                [](const Projection& step) { return step.kind != Projection::Kind::Deref; }))
      emit(Op::Keep, graph_.loans[reservation].range).sources = {local};
  }
  for (const auto& [local, reservation] : reserved) {
    Loan loan = graph_.loans[reservation];
    loan.kind = LoanKind::Mutable;
    loan.isReserved = false;
    loan.wasReserved = isLaunch;
    borrow(local, std::move(loan));
  }
  std::vector<LocalId> kept = held;
  std::erase(kept, kNoLocal);
  if (!kept.empty())
    emit(Op::Keep, expr.range).sources = kept;
  // What an argument of type `&mut Vec<&T>` refers to may now hold the other arguments' borrows.
  for (size_t i = 0; i < held.size(); ++i) {
    const Type type = callee.params[i]->type;
    if (held[i] == kNoLocal || type->kind != TypeKind::Ref || !type->isMutable || !mayHoldBorrows(type->elem))
      continue;
    std::vector<LocalId> others = kept;
    std::erase(others, held[i]);
    if (const Variable* root = rootOf(*expr.args[i]))
      flow(localOf(root), std::move(others), true, expr.range);
  }
  if (isLaunch || !mayHoldBorrows(expr.type))
    return kNoLocal;
  const Summary summary = summaryOf_(callee);
  std::vector<LocalId> sources;
  for (size_t i = 0; i < held.size(); ++i)
    if (i < summary.size() && summary[i])
      sources.push_back(held[i]);
  const LocalId out = temporary(expr);
  flow(out, std::move(sources), false, expr.range);
  return out;
}

LocalId Lowering::callClosure(Expr& expr) {
  std::vector<LocalId> held;
  held.push_back(value(*expr.args[0], look()));
  for (size_t i = 1; i < expr.args.size(); ++i)
    held.push_back(value(*expr.args[i], Purpose{Want::Lend, MoveReason::Argument, nullptr, &expr, nullptr}));
  std::vector<LocalId> kept = held;
  std::erase(kept, kNoLocal);
  if (!kept.empty())
    emit(Op::Keep, expr.range).sources = kept;
  if (!mayHoldBorrows(expr.type))
    return kNoLocal;
  const LocalId out = temporary(expr);
  flow(out, std::move(held), false, expr.range);
  return out;
}

LocalId Lowering::builtin(Expr& expr) {
  const auto changes = [&](Expr& target) { emit(Op::Mutate, expr.range).place = place(target); };
  switch (expr.builtin) {
  case Builtin::FromHost: {
    Expr& list = *expr.args[0];
    const bool isLent = list.kind == ExprKind::Deref || isStorageSlice(list) || list.type->kind != TypeKind::Vec;
    value(list, isLent ? look() : own(MoveReason::ToDevice));
    for (size_t i = 1; i < expr.args.size(); ++i)
      value(*expr.args[i], look());
    return kNoLocal;
  }
  case Builtin::Push: {
    const LocalId held = value(*expr.args[1], own(MoveReason::Part));
    changes(*expr.args[0]);
    if (const Variable* root = rootOf(*expr.args[0]); root && held != kNoLocal && !aliases_.contains(root))
      flow(localOf(root), {held}, true, expr.range);
    return kNoLocal;
  }
  case Builtin::Pop: {
    const Place from = place(*expr.args[0]);
    emit(Op::Mutate, expr.range).place = from;
    if (!mayHoldBorrows(expr.type))
      return kNoLocal;
    const LocalId out = temporary(expr);
    flow(out, {from.root}, false, expr.range);
    return out;
  }
  case Builtin::AsyncStage:
    value(*expr.args[0], look());
    changes(*expr.args[1]);
    return kNoLocal;
  case Builtin::SortVec: changes(*expr.args[0]); return kNoLocal;
  case Builtin::AtomicAdd:
  case Builtin::AtomicMin:
  case Builtin::AtomicMax:
  case Builtin::AtomicAnd:
  case Builtin::AtomicOr:
  case Builtin::AtomicXor:
  case Builtin::AtomicExchange:
  case Builtin::AtomicCompareExchange:
  case Builtin::AtomicStore:
    for (size_t i = 1; i < expr.args.size(); ++i)
      value(*expr.args[i], look());
    changes(*expr.args[0]);
    return kNoLocal;
  default: return otherBuiltin(expr);
  }
}

/// Arguments are looked at; closures and references stay borrowed until the call is over.
LocalId Lowering::otherBuiltin(Expr& expr) {
  const bool keepsPart = expr.builtin == Builtin::VecFill || expr.builtin == Builtin::Fold;
  std::vector<LocalId> kept;
  for (size_t i = 0; i < expr.args.size(); ++i) {
    Expr& arg = *expr.args[i];
    const bool isWalked = (expr.builtin == Builtin::Map || expr.builtin == Builtin::Fold) && i == 0;
    LocalId held = kNoLocal;
    if (isWalked && isPlace(arg)) {
      held = lend(arg, place(arg), LoanKind::Shared, Purpose{Want::Look, MoveReason::Argument, nullptr, &expr, nullptr},
                  false);
    } else {
      held = value(arg, keepsPart && i == 1 ? own(MoveReason::Part) : look());
    }
    if (held != kNoLocal)
      kept.push_back(held);
  }
  if (!kept.empty())
    emit(Op::Keep, expr.range).sources = kept;
  if (!mayHoldBorrows(expr.type))
    return kNoLocal;
  const LocalId out = temporary(expr);
  flow(out, std::move(kept), false, expr.range);
  return out;
}

void Lowering::capture(const Variable* variable, const Capture& how, LocalId into) {
  Place of;
  if (auto alias = aliases_.find(variable); alias != aliases_.end())
    of = alias->second;
  else
    of = Place{localOf(variable), {}};
  const Local root = graph_.locals[of.root];
  if (root.closure > closures_.size())
    return;  // a part of something inside
  if (root.isView || root.type->kind == TypeKind::Ref)
    of.path.push_back({Projection::Kind::Deref, 0, nullptr});
  const LocalId part = newLocal(root.type, how.range);
  graph_.locals[part].carries = true;
  Loan loan;
  loan.place = std::move(of);
  loan.range = how.range;
  loan.kind = how.isWritten ? LoanKind::Mutable : LoanKind::Shared;
  loan.isCapture = true;
  borrow(part, std::move(loan));
  flow(into, {part}, true, how.range);
}

/// The body may run any number of times, here or wherever the closure is called: it is checked here as a loop; while the closure
/// lives it holds borrows of what it mentions.
LocalId Lowering::closure(Expr& expr) {
  const uint32_t head = newBlock(), body = newBlock(), exit = newBlock();
  graph_.loopParents.push_back(loopPath_.back());
  loopPath_.push_back(static_cast<uint32_t>(graph_.loopParents.size() - 1));
  jump(head);
  start(head);
  jump(body);
  jump(exit);
  start(body);
  closures_.push_back({head, loops_.size()});
  pushScope();
  for (Variable* param : expr.variables) {
    const LocalId local = localOf(param);
    graph_.locals[local].isElement = graph_.locals[local].isView;
    emit(Op::Declare, param->range).place = Place{local, {}};
    scopes_.back().push_back(local);
  }
  Expr& inner = *expr.args[0];
  const bool hasValue = inner.type->kind != TypeKind::Unit && inner.type->kind != TypeKind::Never;
  value(inner, hasValue ? own(MoveReason::Result) : look());
  const uint32_t depth = static_cast<uint32_t>(closures_.size());
  popScope(SourceRange{expr.range.file, expr.range.end - 1, expr.range.end});
  closures_.pop_back();
  loopPath_.pop_back();
  jump(head);
  start(exit);

  std::map<const Variable*, Capture> captures;
  std::vector<const Variable*> order;
  eachExpr(inner, [&](const Expr& each) {
    if (each.kind != ExprKind::Var)
      return;
    auto found = locals_.find(each.variable);
    if (found != locals_.end() && graph_.locals[found->second].closure >= depth)
      return;
    if (captures.try_emplace(each.variable, Capture{false, each.range}).second)
      order.push_back(each.variable);
  });
  eachWrittenPlace(inner, [&](const Expr& written, const Expr& by) {
    const Variable* root = rootOf(written);
    if (auto found = captures.find(root); root && found != captures.end() && !found->second.isWritten)
      found->second = {true, by.range};
  });
  const LocalId out = temporary(expr);
  flow(out, {}, false, expr.range);
  for (const Variable* variable : order)
    capture(variable, captures.at(variable), out);
  return out;
}

}  // namespace vortex::lang::ownership
