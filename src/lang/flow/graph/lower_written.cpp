// Functions as written: what reading, keeping, lending and assigning places does, and which locals hold borrows.
#include "lang/flow/graph/lower.h"

namespace vortex::lang::flow {

//===-- steps -----------------------------------------------------------------------------------------------------===//

void Lowering::event(StepKind kind, const Expr& at, PlaceId place, uint32_t index) {
  if (!isReachable())
    return;
  Step& step = b_.emit(kind, &at);
  step.place = place;
  step.index = index;
}

void Lowering::flow(LocalId to, std::span<const LocalId> from, const Expr& at) {
  event(StepKind::Flow, at, b_.root(to), indexOf(from.empty() ? kNoLocal : from.front()));
  if (!from.empty())
    flowMore(to, from.subspan(1), at);
}

void Lowering::flowMore(LocalId to, std::span<const LocalId> from, const Expr& at) {
  for (LocalId each : from)
    if (each != kNoLocal)
      event(StepKind::FlowMore, at, b_.root(to), indexOf(each));
}

void Lowering::keep(std::span<const LocalId> held, const Expr& at) {
  for (LocalId each : held)
    if (each != kNoLocal)
      event(StepKind::Keep, at, b_.root(each));
}

void Lowering::borrow(Loan loan, const Expr& at) {
  event(StepKind::Borrow, at, loan.place, static_cast<uint32_t>(graph_.loans.size()));
  graph_.loans.push_back(std::move(loan));
}

/// Notes what leads to the block that begins here; of a block of statements its last one, which fits on a line.
void Lowering::choose(const Expr& by, std::string_view label, BlockId loopEntry) {
  if (graph_.isKernel)
    return;
  const Expr* at = &by;
  while (at->kind == ExprKind::Block && !at->args.empty())
    at = at->args.back();
  graph_.choices[indexOf(b_.block())] = {at, label, loopEntry};
}

//===-- values ----------------------------------------------------------------------------------------------------===//

/// Nothing for what is lowered as in kernels.
std::optional<Lowering::Operand> Lowering::written(const Expr& expr, const Purpose& purpose) {
  switch (expr.kind) {
  case ExprKind::Var:
  case ExprKind::Field:
  case ExprKind::Element:
  case ExprKind::Slice:
  case ExprKind::Deref: return usePlace(expr, purpose);
  case ExprKind::Builtin: return writtenBuiltin(expr);
  case ExprKind::Call:
  case ExprKind::Launch: return call(expr);
  case ExprKind::CallClosure: return callClosure(expr);
  case ExprKind::Closure: return closure(expr);
  case ExprKind::Ref:
    return lend(expr, writtenBase(operandOf(expr)), expr.type->isMutable ? LoanKind::Mutable : LoanKind::Shared,
                {.call = purpose.call});
  case ExprKind::MakeTuple:
  case ExprKind::MakeStruct:
  case ExprKind::MakeArray:
  case ExprKind::MakeVec:
  case ExprKind::RepeatArray:
  case ExprKind::RepeatVec: return parts(expr, purpose);
  case ExprKind::Int:
  case ExprKind::Float:
  case ExprKind::DimValue:
  case ExprKind::Range: return std::nullopt;
  case ExprKind::Unary:
  case ExprKind::Binary:
  case ExprKind::Cast: return expr.type->isTensor() ? std::optional(looked(expr)) : std::nullopt;
  case ExprKind::Block:
  case ExprKind::Let:
  case ExprKind::Assign:
  case ExprKind::If:
  case ExprKind::While:
  case ExprKind::Loop:
  case ExprKind::For:
  case ExprKind::Break:
  case ExprKind::Continue:
  case ExprKind::Return:
  case ExprKind::Inline: return control(expr, purpose);
  default: return looked(expr);
  }
}

/// All parts are looked at; what comes of them is not known.
Lowering::Operand Lowering::looked(const Expr& expr) {
  for (const Expr* arg : expr.args)
    if (arg)
      value(*arg);
  return undefined(expr.type);
}

Lowering::Operand Lowering::parts(const Expr& expr, const Purpose& purpose) {
  // Several results of a kernel: each is stored, as a single one would be.
  const bool isResults = function_.inKernel && purpose.want == Want::Return && expr.kind == ExprKind::MakeTuple;
  const bool isList = expr.kind != ExprKind::MakeTuple && expr.kind != ExprKind::MakeStruct;
  Operand out;
  std::vector<LocalId> held;
  for (const Expr* arg : expr.args) {
    if (!arg)
      continue;
    Operand part = value(*arg, isResults && arg->type->isTensor() ? purpose : own(MoveReason::Part));
    held.push_back(part.holds);
    if (!isList)
      out.parts.push_back(std::move(part));
  }
  if (!mayHoldBorrows(expr.type))
    return out;
  out.holds = newTemporary(expr);
  flow(out.holds, {}, expr);
  flowMore(out.holds, held, expr);
  return out;
}

/// What the value at the end of a block or branch is wanted for: it leaves the block even if it is only looked at.
Lowering::Purpose Lowering::tailOf(const Expr& expr, const Purpose& purpose) const {
  if (isTile(expr.type))  // the compiler selects between values
    return handOver();
  return purpose.want == Want::Look ? own(MoveReason::Result) : purpose;
}

/// What the function returns.
void Lowering::handOut(const Expr& expr) {
  const Operand made = value(expr, handOver());
  if (made.holds != kNoLocal)
    event(StepKind::Result, expr, b_.root(made.holds));
}

//===-- variables -------------------------------------------------------------------------------------------------===//

void Lowering::writtenParams() {
  const Expr& body = *function_.body;
  for (uint32_t i = 0; i < function_.params.size(); ++i) {
    const Variable& variable = *function_.params[i];
    const Holder holder = declare(variable, false);
    const PlaceId place = b_.root(holder.local);
    graph_.params.push_back(holder.local);
    uint32_t leaf = 0;
    if (holder.slot)
      writeSlots(*holder.slot, variable.type, parameter(variable, holder.local, variable.type, place, leaf));
    event(StepKind::Declare, body, place);
    if (graph_[holder.local].holdsBorrows)
      borrow({.place = place, .holder = holder.local, .range = variable.range, .param = i}, body);
  }
}

void Lowering::writtenLet(const Expr& expr) {
  const auto [variable, init] = asLet(expr);
  if (init && variable->name.empty() && isPlace(*init) && !isCopy(variable->type)) {
    // The checker's name for what a pattern takes apart: the place itself.
    aliases_[variable] = place(*init).place;
    return;
  }
  Operand made;
  if (init) {
    Purpose purpose{.want = isTile(variable->type) ? Want::Return : Want::View};
    if (auto written = views_.written.find(variable); written != views_.written.end())
      purpose.writer = written->second;
    made = value(*init, purpose);
  }
  const Holder holder = declare(*variable, false);
  if (!isReachable())
    return;
  begin(holder.local, expr, StepKind::Declare);
  if (holder.slot)  // one without a value gets its only one before it is used
    writeSlots(*holder.slot, holder.type, init ? made : undefined(holder.type));
  if (graph_[holder.local].holdsBorrows)
    flow(holder.local, {&made.holds, 1}, expr);
  if (!init && variable->isDeferred)
    event(StepKind::Empty, expr, b_.root(holder.local));
  if (init && variable->type->isTensor())
    bindDimensions(expr);
}

void Lowering::writtenAssign(const Expr& expr) {
  const auto [target, source] = asAssign(expr);
  const bool copies = function_.inKernel && source.type->isTensor();
  const LocalId holds = value(source, expr.hasOp || copies ? Purpose{} : own(MoveReason::Binding)).holds;
  const PlaceId to = place(target).place;
  if (!isReachable())
    return;
  const LocalId root = graph_[to].root;
  const bool isWhole = graph_[to].path.empty();
  event(expr.hasOp ? StepKind::Mutate : StepKind::Store, expr, to);
  if (graph_[root].holdsBorrows && mayHoldBorrows(target.type))
    isWhole ? flow(root, {&holds, 1}, expr) : flowMore(root, {&holds, 1}, expr);
}

//===-- places ----------------------------------------------------------------------------------------------------===//

PlaceId Lowering::variablePlace(const Variable& variable) {
  if (auto alias = aliases_.find(&variable); alias != aliases_.end())
    return alias->second;
  const LocalId local = holderOf(variable).local;
  return graph_[local].isView ? deref(b_.root(local)) : b_.root(local);
}

PlaceId Lowering::deref(PlaceId place) {
  const Type type = graph_[place].type;
  return b_.extend(place, {.kind = ProjectionKind::Deref}, type->kind == TypeKind::Ref ? type->elem : type);
}

PlaceId Lowering::writtenBase(const Expr& expr) {
  if (isPlace(expr))
    return place(expr).place;
  if (expr.kind == ExprKind::Ref)  // `(&x).f`
    return writtenBase(operandOf(expr));
  const LocalId held = value(expr, own(MoveReason::Binding)).holds;
  return b_.root(held == kNoLocal ? newTemporary(expr) : held);
}

/// What stands in the place. `step`: of a number in memory, where it is read.
Lowering::Operand Lowering::valueAt(PlaceId place, Type type, Step* step) {
  if (const auto slot = slotOf(place))
    return readSlots(*slot, type);
  const bool isNumber = type->kind == TypeKind::Scalar || type->kind == TypeKind::Enum;
  return isNumber && step ? Operand{b_.loaded(*step, machineType(type)), kNoPlace, {}} : undefined(type);
}

Lowering::Operand Lowering::used(StepKind kind, const Expr& expr, PlaceId from) {
  if (!isReachable())
    return undefined(expr.type);
  Step& step = b_.emit(kind, &expr);
  step.place = from;
  Operand out = valueAt(from, expr.type, &step);
  if (mayHoldBorrows(expr.type)) {
    const LocalId root = graph_[from].root;
    out.holds = newTemporary(expr);
    flow(out.holds, {&root, 1}, expr);
  }
  return out;
}

Lowering::Operand Lowering::lend(const Expr& expr, PlaceId from, LoanKind kind, const Purpose& purpose, bool isView) {
  Operand out;
  out.holds = newTemporary(expr);
  borrow({.place = from,
          .holder = out.holds,
          .range = expr.range,
          .kind = kind,
          .lent = stripRef(expr.type),
          .call = purpose.call,
          .isView = isView,
          .writer = purpose.writer},
         expr);
  return out;
}

Lowering::Operand Lowering::usePlace(const Expr& expr, const Purpose& purpose) {
  const Type type = expr.type;
  const PlaceId from = place(expr).place;
  if (purpose.want == Want::Look)
    return used(StepKind::Use, expr, from);
  const Local& root = graph_[graph_[from].root];
  const bool isStorage = isMemory(type) || type->kind == TypeKind::Vec;
  const bool isLaunch = purpose.call && purpose.call->kind == ExprKind::Launch;
  if (isStorage && !isCopy(type)) {
    const bool isViewed =
        isStorageSlice(expr) || root.isView || (function_.inKernel && type->isTensor() && graph_[from].hasDeref());
    const bool isLent = expr.kind == ExprKind::Deref || isViewed || (type->isTensor() && type->space != Space::Global);
    if (purpose.want == Want::View && isViewed && !root.isElement)
      return lend(expr, from, purpose.writer ? LoanKind::Mutable : LoanKind::Shared, purpose, true);
    if (purpose.want == Want::Lend && isLent && (isLaunch || function_.inKernel))
      return lend(expr, from, LoanKind::Shared, purpose);
    if (function_.inKernel && purpose.want == Want::Return) {  // its elements are stored in the result
      event(StepKind::Use, expr, from);
      return {};
    }
  }
  if (isCopy(type))
    return used(StepKind::Copy, expr, from);
  const bool isMutableRef = type->kind == TypeKind::Ref && type->isMutable;
  if (isMutableRef && (purpose.want == Want::Lend || purpose.want == Want::Return))
    return lend(expr, deref(from), LoanKind::Mutable, purpose);
  return moveOut(expr, from, purpose);
}

Lowering::Operand Lowering::moveOut(const Expr& expr, PlaceId from, const Purpose& purpose) {
  const LocalId root = graph_[from].root;
  Operand out = isReachable() ? valueAt(from, expr.type, nullptr) : undefined(expr.type);
  if (!graph_[from].isMovePath() || isCaptured(root)) {
    event(StepKind::MoveOut, expr, from);
    return out;
  }
  event(StepKind::Move, expr, from, static_cast<uint32_t>(graph_.moves.size()));
  graph_.moves.push_back({.place = from,
                          .origin = &expr,
                          .reason = purpose.reason,
                          .callee = purpose.callee,
                          .launch = purpose.call && purpose.call->kind == ExprKind::Launch ? purpose.call : nullptr});
  if (!mayHoldBorrows(expr.type))
    return out;
  out.holds = newTemporary(expr);
  flow(out.holds, {&root, 1}, expr);
  return out;
}

}  // namespace vortex::lang::flow
