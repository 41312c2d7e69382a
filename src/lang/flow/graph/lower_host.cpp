// Functions as written: calls, launches, closures, built-in functions, lists.
#include <algorithm>

#include "lang/flow/graph/lower.h"

namespace vortex::lang::flow {

//===-- calls -----------------------------------------------------------------------------------------------------===//

static bool isMutableRef(Type type) { return type->kind == TypeKind::Ref && type->isMutable; }

/// What a call borrows mutably is only reserved while the other arguments are evaluated, which may still read it: `v.push(v.len())`,
/// `p.set(p.get() + 1)` with `p: &mut P`. The call itself makes the borrow mutable. Nothing for other arguments.
std::optional<Lowering::Reserved> Lowering::reserve(const Expr& arg, Type wanted, const Expr& call) {
  if (!isMutableRef(arg.type) || !isMutableRef(wanted) || (arg.kind != ExprKind::Ref && !isPlace(arg)))
    return std::nullopt;
  const PlaceId of = arg.kind == ExprKind::Ref ? writtenBase(operandOf(arg)) : deref(place(arg).place);
  const Purpose purpose{.want = Want::Lend, .reason = MoveReason::Argument, .call = &call};
  const LocalId local = lend(arg, of, LoanKind::Shared, purpose).holds;
  graph_.loans.back().isReserved = true;
  return Reserved{local, static_cast<uint32_t>(graph_.loans.size() - 1), &arg};
}

void Lowering::activate(std::span<const Reserved> reserved, bool isLaunch) {
  // A part is found before the other arguments run, which must leave what it is a part of where it is.
  for (const Reserved& each : reserved) {
    const std::vector<Projection>& path = graph_[graph_.loans[each.loan].place].path;
    if (isLaunch || std::any_of(path.begin(), path.end(),
                                [](const Projection& step) { return step.kind != ProjectionKind::Deref; }))
      keep({&each.local, 1}, *each.arg);
  }
  for (const Reserved& each : reserved) {
    Loan loan = graph_.loans[each.loan];
    loan.kind = LoanKind::Mutable;
    loan.isReserved = false;
    loan.wasReserved = isLaunch;
    borrow(std::move(loan), *each.arg);
  }
}

Lowering::Operand Lowering::argument(const Expr& arg, Type wanted, const Purpose& purpose) {
  // `s.get()` with `s: &mut S` and `get(&self)`: what s refers to is lent for reading only.
  const bool isWeakened = isPlace(arg) && isMutableRef(arg.type) && wanted->kind == TypeKind::Ref && !wanted->isMutable;
  return isWeakened ? lend(arg, deref(place(arg).place), LoanKind::Shared, purpose) : value(arg, purpose);
}

/// What an argument of type `&mut Vec<&T>` refers to may now hold the other arguments' borrows.
void Lowering::spread(const Expr& call, std::span<const LocalId> held) {
  for (size_t i = 0; i < held.size(); ++i) {
    const Type type = call.function->params[i]->type;
    if (held[i] == kNoLocal || !isMutableRef(type) || !mayHoldBorrows(type->elem))
      continue;
    std::vector<LocalId> others(held.begin(), held.end());
    std::erase(others, held[i]);
    if (const Variable* root = rootOf(*call.args[i]))
      flowMore(holderOf(*root).local, others, call);
  }
}

Lowering::Operand Lowering::call(const Expr& expr) {
  const Function& callee = *expr.function;
  const bool isLaunch = expr.kind == ExprKind::Launch;
  const Purpose purpose{.want = Want::Lend,
                        .reason = isLaunch ? MoveReason::Launch : MoveReason::Argument,
                        .callee = &callee,
                        .call = &expr};
  std::vector<LocalId> held;
  std::vector<Reserved> reserved;
  for (size_t i = 0; i < expr.args.size(); ++i) {
    const Expr& arg = *expr.args[i];
    const Type wanted = callee.params[i]->type;
    if (const auto made = reserve(arg, wanted, expr)) {
      reserved.push_back(*made);
      held.push_back(made->local);
    } else {
      held.push_back(argument(arg, wanted, purpose).holds);
    }
  }
  for (const auto* sizes : {&expr.launch.grid, &expr.launch.block})
    for (const Expr* size : *sizes)
      value(*size);
  activate(reserved, isLaunch);
  keep(held, expr);
  spread(expr, held);
  Operand out = undefined(expr.type);
  if (isLaunch || !mayHoldBorrows(expr.type))
    return out;
  const Summary summary = (*summaryOf_)(callee);
  std::vector<LocalId> sources;
  for (size_t i = 0; i < held.size(); ++i)
    if (i < summary.size() && summary[i])
      sources.push_back(held[i]);
  out.holds = holding(expr, sources).holds;
  return out;
}

/// A value that holds what these hold, if its type can.
Lowering::Operand Lowering::holding(const Expr& expr, std::span<const LocalId> held) {
  Operand out;
  if (!mayHoldBorrows(expr.type))
    return undefined(expr.type);
  out.holds = newTemporary(expr);
  flow(out.holds, {}, expr);
  flowMore(out.holds, held, expr);
  return out;
}

Lowering::Operand Lowering::callClosure(const Expr& expr) {
  const auto [called, operands] = asClosureCall(expr);
  std::vector<LocalId> held{value(called).holds};
  for (const Expr* operand : operands)
    held.push_back(value(*operand, {.want = Want::Lend, .reason = MoveReason::Argument, .call = &expr}).holds);
  keep(held, expr);
  return holding(expr, held);
}

//===-- closures --------------------------------------------------------------------------------------------------===//

void Lowering::capture(const Variable& variable, const Expr& at, bool isWritten, LocalId into) {
  const auto alias = aliases_.find(&variable);
  PlaceId of = alias == aliases_.end() ? b_.root(holderOf(variable).local) : alias->second;
  const Local root = graph_[graph_[of].root];
  if (root.closure > closures_)
    return;  // a part of something inside
  if (root.isView || root.type->kind == TypeKind::Ref)
    of = deref(of);
  const LocalId part = newLocal(root.type, at.range, nullptr, root.storage);
  graph_.locals[indexOf(part)].holdsBorrows = true;
  borrow({.place = of,
          .holder = part,
          .range = at.range,
          .kind = isWritten ? LoanKind::Mutable : LoanKind::Shared,
          .isCapture = true},
         at);
  flowMore(into, {&part, 1}, at);
}

/// Borrows what the body mentions, mutably what it writes.
void Lowering::captureAll(const Expr& body, LocalId into) {
  struct Capture {
    const Expr* at = nullptr;
    bool isWritten = false;
  };
  std::map<const Variable*, Capture> captures;
  std::vector<const Variable*> order;
  eachExpr(body, [&](const Expr& each) {
    if (each.kind != ExprKind::Var)
      return;
    const auto found = holders_.find(each.variable);
    const bool isInside = found != holders_.end() && graph_[found->second.local].closure > closures_;
    if (!isInside && captures.try_emplace(each.variable, Capture{&each, false}).second)
      order.push_back(each.variable);
  });
  eachWrittenPlace(body, [&](const Expr& written, const Expr& by) {
    const Variable* root = rootOf(written);
    if (auto found = captures.find(root); root && found != captures.end() && !found->second.isWritten)
      found->second = {&by, true};
  });
  for (const Variable* variable : order)
    capture(*variable, *captures.at(variable).at, captures.at(variable).isWritten, into);
}

/// The body may run any number of times, here or wherever the closure is called: it is checked here as a loop; while the closure
/// lives it holds borrows of what it mentions.
Lowering::Operand Lowering::closure(const Expr& expr) {
  Label exit = b_.label();
  OpenLoop open = b_.openLoop(&expr, {});
  exit.exitOf = open.loop;
  Label body = b_.label();
  b_.branch(unknown(kBool), body, exit, &expr);
  b_.start(body);
  Label next = b_.label();
  frames_.push_back({&next, nullptr, scopes_.size(), loops_.size(), false});
  ++closures_;
  pushScope();
  for (const Variable* param : expr.variables) {
    const Holder holder = declare(*param, false);
    graph_.locals[indexOf(holder.local)].isElement = graph_[holder.local].isView;
    begin(holder.local, expr, StepKind::Declare);
    if (holder.slot)
      writeSlots(*holder.slot, holder.type, undefined(holder.type));
  }
  const Expr& inner = closureBodyOf(expr);
  value(inner, hasValue(inner.type) ? own(MoveReason::Result) : Purpose{});
  popScope(expr);
  --closures_;
  frames_.pop_back();
  if (!next.edges.empty()) {
    b_.jump(next, &expr);
    b_.start(next);
  }
  b_.repeat(open, &expr);
  b_.closeLoop(open);
  b_.start(exit);
  Operand out;
  out.holds = newTemporary(expr);
  flow(out.holds, {}, expr);
  captureAll(inner, out.holds);
  return out;
}

//===-- built-in functions ----------------------------------------------------------------------------------------===//

Lowering::Operand Lowering::writtenBuiltin(const Expr& expr) {
  if (const auto at = position(expr))
    return Operand{values().convert(machineType(expr.type), *at), kNoPlace, {}};
  switch (expr.builtin) {
  case Builtin::FromHost: {
    const Expr& list = subjectOf(expr);
    const bool isLent = list.kind == ExprKind::Deref || isStorageSlice(list) || list.type->kind != TypeKind::Vec;
    value(list, isLent ? Purpose{} : own(MoveReason::ToDevice));
    for (const Expr* size : parts::from(expr, 1))
      value(*size);
    return undefined(expr.type);
  }
  case Builtin::Push: {
    const LocalId held = value(pushedOf(expr), own(MoveReason::Part)).holds;
    change(subjectOf(expr), expr);
    if (const Variable* root = rootOf(subjectOf(expr)); root && held != kNoLocal && !aliases_.contains(root))
      flowMore(holderOf(*root).local, {&held, 1}, expr);
    return undefined(expr.type);
  }
  case Builtin::Pop: {
    const PlaceId from = place(subjectOf(expr)).place;
    const LocalId root = graph_[from].root;
    event(StepKind::Mutate, expr, from);
    return holding(expr, {&root, 1});
  }
  case Builtin::AsyncStage:
    value(asStage(expr).source);
    change(*asStage(expr).destination, expr);
    return undefined(expr.type);
  case Builtin::SortVec: change(subjectOf(expr), expr); return undefined(expr.type);
  case Builtin::Exit:
    for (const Expr* status : expr.args)
      value(*status);
    if (isReachable())
      b_.jump(*frames_.front().end, &expr);
    return undefined(expr.type);
  case Builtin::AtomicAdd:
  case Builtin::AtomicMin:
  case Builtin::AtomicMax:
  case Builtin::AtomicAnd:
  case Builtin::AtomicOr:
  case Builtin::AtomicXor:
  case Builtin::AtomicExchange:
  case Builtin::AtomicCompareExchange:
  case Builtin::AtomicStore:
    for (const Expr* operand : asAtomic(expr).operands)
      value(*operand);
    change(asAtomic(expr).place, expr);
    return undefined(expr.type);
  case Builtin::Extent: {
    value(subjectOf(expr));
    const Type type = stripRef(subjectOf(expr).type);
    const size_t dim = expr.ints.empty() ? 0 : static_cast<size_t>(expr.ints[0]);
    if (!type->isTensor() || dim >= type->shape.size())
      return undefined(expr.type);
    return Operand{values().convert(machineType(expr.type), dimension(type->shape[dim])), kNoPlace, {}};
  }
  default: break;
  }
  if (const auto made = integerFunction(expr))
    return Operand{*made, kNoPlace, {}};
  return otherBuiltin(expr);
}

/// Arguments are looked at; closures and references stay borrowed until the call is over.
Lowering::Operand Lowering::otherBuiltin(const Expr& expr) {
  const bool keepsPart = expr.builtin == Builtin::VecFill || expr.builtin == Builtin::Fold;
  const bool isWalk = expr.builtin == Builtin::Map || expr.builtin == Builtin::Fold;
  std::vector<LocalId> held;
  for (size_t i = 0; i < expr.args.size(); ++i) {
    const Expr& arg = *expr.args[i];
    if (isWalk && i == 0 && isPlace(arg))
      held.push_back(lend(arg, place(arg).place, LoanKind::Shared, {.call = &expr}).holds);
    else
      held.push_back(value(arg, keepsPart && i == 1 ? own(MoveReason::Part) : Purpose{}).holds);
  }
  keep(held, expr);
  return holding(expr, held);
}

//===-- lists -----------------------------------------------------------------------------------------------------===//

/// What a `for` walks over.
Lowering::Trips Lowering::listTrips(const Expr& list) {
  const Type type = stripRef(list.type);
  Trips out;
  if (list.kind == ExprKind::IntList) {
    out = positionTrips(list.intList.size());
    out.counter.kind = Counter::Kind::List;
    out.counter.list = &list;
    return out;
  }
  if (type->kind == TypeKind::Range)
    return rangeTrips(list);
  LocalId held = kNoLocal;
  if (isPlace(list)) {  // it is lent to the loop while that runs
    const PlaceId from = place(list).place;
    held = newTemporary(list);
    borrow({.place = from, .holder = held, .range = list.range, .isView = true, .isLoop = true}, list);
  } else {
    held = value(list, own(MoveReason::Binding)).holds;
  }
  out = positionTrips(type->kind == TypeKind::Array ? type->count : 0);
  if (type->kind != TypeKind::Array)
    out.counter.trips = unknown(kUsize);
  out.counter.kind = Counter::Kind::Array;
  out.counter.list = &list;
  out.held = held;
  out.ownsElements = !isPlace(list);
  return out;
}

}  // namespace vortex::lang::flow
