// Expressions that have a value.
#include "lang/flow/graph/lower.h"
#include "lang/sema/children.h"

namespace vortex::lang::flow {

ValueId Lowering::unknown(MachineType type) {
  const bool isStep = !graph_.isKernel && isReachable();
  return isStep ? b_.computed(b_.emit(StepKind::Compute, nullptr), type) : b_.undefined(type);
}

Lowering::Operand Lowering::undefined(Type type) {
  Operand out;
  switch (type->kind) {
  case TypeKind::Scalar:
  case TypeKind::Enum: out.value = unknown(machineType(type)); break;
  case TypeKind::Range:
    for (int i = 0; i < 3; ++i)
      out.parts.push_back(undefined(type->elem));
    break;
  case TypeKind::Tuple:
  case TypeKind::Struct:
    for (Type each : type->elems)
      out.parts.push_back(undefined(each));
    break;
  default: break;
  }
  return out;
}

ValueId Lowering::scalar(const Expr& expr) {
  const Operand operand = value(expr);
  if (operand.value != kNoValue)
    return operand.value;
  return unknown(machineType(expr.type));
}

void Lowering::flatten(const Operand& operand, std::vector<ValueId>& out) const {
  if (operand.value != kNoValue)
    out.push_back(operand.value);
  for (const Operand& part : operand.parts)
    flatten(part, out);
}

ValueId Lowering::compute(const Expr& expr, Type type, std::span<const ValueId> uses) {
  const MachineType machine = machineType(type);
  if (!isReachable())
    return b_.undefined(machine);
  Step& step = b_.emit(StepKind::Compute, &expr);
  b_.addUses(step, uses);
  return b_.computed(step, machine);
}

Lowering::Operand Lowering::value(const Expr& expr, const Purpose& purpose) {
  if (!isReachable())
    return expr.type ? undefined(expr.type) : Operand();
  if (!graph_.isKernel)
    return evaluate(expr, purpose);
  enter(expr);
  Operand out = evaluate(expr, purpose);
  std::vector<ValueId> scalars;
  flatten(out, scalars);
  if (isReachable())
    for (ValueId each : scalars)
      graph_.evaluated.emplace(&expr, each);
  return out;
}

Lowering::Operand Lowering::evaluate(const Expr& expr, const Purpose& purpose) {
  if (!graph_.isKernel)
    if (auto made = written(expr, purpose))
      return *std::move(made);
  const auto scalarIs = [](ValueId value) {
    Operand out;
    out.value = value;
    return out;
  };
  const bool isTensorWork = isTile(expr.type);
  switch (expr.kind) {
  case ExprKind::Int: return scalarIs(values().constant(machineType(expr.type), expr.intValue));
  case ExprKind::Float: return scalarIs(values().unknown(&expr, machineType(expr.type)));
  case ExprKind::String:
  case ExprKind::Unit: return {};
  case ExprKind::DimValue: return scalarIs(values().convert(machineType(expr.type), dimension(expr.dim)));
  case ExprKind::Var:
  case ExprKind::Field:
  case ExprKind::Element:
  case ExprKind::Slice:
  case ExprKind::Deref: {
    if (expr.kind == ExprKind::Var)
      if (const Holder& holder = holderOf(*expr.variable); holder.slot)
        return readSlots(*holder.slot, expr.variable->type);
    const Operand at = place(expr);
    return at.place == kNoPlace ? at : load(at.place, expr.type, expr);
  }
  case ExprKind::Ref: {
    Operand out;
    const Expr& of = operandOf(expr);
    out.place = materialised(of, place(of));
    return out;
  }
  case ExprKind::Unary:
    if (!isTensorWork)
      return scalarIs(unary(expr));
    break;
  case ExprKind::Binary:
    if (!isTensorWork)
      return scalarIs(binary(expr));
    break;
  case ExprKind::Cast:
    if (!isTensorWork)
      return scalarIs(cast(expr));
    break;
  case ExprKind::Builtin: return builtin(expr);
  case ExprKind::MakeTuple:
  case ExprKind::MakeStruct:
  case ExprKind::Range: return aggregate(expr);
  case ExprKind::MakeArray:
  case ExprKind::RepeatArray: {
    const Holder holder = temporary(expr.type, expr);
    put(holder, expr);
    return read(holder);
  }
  case ExprKind::Block:
  case ExprKind::If:
  case ExprKind::Loop:
  case ExprKind::Inline:
  case ExprKind::Let:
  case ExprKind::Assign:
  case ExprKind::While:
  case ExprKind::For:
  case ExprKind::Break:
  case ExprKind::Continue:
  case ExprKind::Return: return control(expr, purpose);
  default: break;
  }
  if (!isTensorWork)
    return opaque(expr);
  const Holder holder = temporary(expr.type, expr);
  put(holder, expr);
  return read(holder);
}

static bool isNumber(Type type) {
  return type->kind == TypeKind::Enum || (type->kind == TypeKind::Scalar && !isFloat(type->scalar));
}

/// Neither memory nor effects: evaluating it needlessly changes nothing.
static bool isPure(const Expr& expr) {
  switch (expr.kind) {
  case ExprKind::Int:
  case ExprKind::Float:
  case ExprKind::DimValue: return true;
  case ExprKind::Var: return expr.variable->type->kind == TypeKind::Scalar;
  case ExprKind::Builtin:
    if (expr.builtin < Builtin::ThreadId || expr.builtin > Builtin::WarpSize)
      return false;
    break;
  case ExprKind::Unary:
  case ExprKind::Binary:
  case ExprKind::Cast: break;
  default: return false;
  }
  bool all = true;
  forEachChild(expr, [&](const Expr& child) { all = all && isPure(child); });
  return all;
}

/// `if c { a } else { b }` of numbers alone is one node.
std::optional<ValueId> Lowering::chosen(const Expr& expr) {
  if (expr.kind != ExprKind::If || !isNumber(expr.type))
    return std::nullopt;
  const auto sole = [](const Expr* arm) {
    while (arm && arm->kind == ExprKind::Block && arm->args.size() == 1)
      arm = arm->args.front();
    return arm;
  };
  const auto [decides, then, otherwise] = asIf(expr);
  const Expr *first = sole(&then), *second = sole(otherwise);
  if (!second || !isPure(*first) || !isPure(*second))
    return std::nullopt;
  const ValueId condition = scalar(decides), a = scalar(*first), b = scalar(*second);
  return values().op(Op::Select, machineType(expr.type), condition, a, b);
}

Lowering::Operand Lowering::control(const Expr& expr, const Purpose& purpose) {
  if (!hasValue(expr.type)) {
    execute(expr, nullptr);
    return {};
  }
  if (const auto value = chosen(expr))
    return Operand{*value, kNoPlace, {}};
  Holder holder = temporary(expr.type, expr);
  holder.purpose = tailOf(expr, purpose);
  execute(expr, &holder);
  return isReachable() ? read(holder) : undefined(expr.type);
}

Lowering::Operand Lowering::aggregate(const Expr& expr) {
  Operand out;
  if (expr.kind == ExprKind::Range) {
    const auto [begin, end, step] = asRange(expr);
    for (const Expr* part : {&begin, &end})
      out.parts.push_back(value(*part));
    out.parts.push_back(step ? value(*step)
                             : Operand{values().constant(machineType(expr.type->elem), 1), kNoPlace, {}});
    return out;
  }
  for (const Expr* part : expr.args)
    out.parts.push_back(value(*part));
  if (leaves_.of(expr.type))
    return out;
  const Holder holder = temporary(expr.type, expr);  // too large, or with arrays inside
  if (isReachable())
    store(b_.root(holder.local), expr.type, out, expr, nullptr);
  return read(holder);
}

//===-- arithmetic ------------------------------------------------------------------------------------------------===//

ValueId Lowering::unary(const Expr& expr) {
  const ValueId operand = scalar(operandOf(expr));
  if (!isNumber(expr.type))
    return compute(expr, expr.type, {&operand, 1});
  return expr.unaryOp == UnaryOp::Neg ? values().negate(operand) : values().complement(operand);
}

ValueId Lowering::binary(const Expr& expr) {
  if (expr.binaryOp == BinaryOp::And || expr.binaryOp == BinaryOp::Or)
    return shortCircuit(expr);
  const auto [lhs, rhs] = asBinary(expr);
  const ValueId a = scalar(lhs), b = scalar(rhs);
  return arithmetic(expr, expr.binaryOp, lhs.type, a, b);
}

ValueId Lowering::arithmetic(const Expr& expr, BinaryOp op, Type type, ValueId a, ValueId b) {
  const MachineType machine = machineType(type);
  const ValueId both[] = {a, b};
  const auto made = [&](Op made) { return values().op(made, machine, a, b); };
  const auto compared = [&](Op made, ValueId x, ValueId y) { return values().op(made, kBool, x, y); };
  if (!isNumber(type) || op == BinaryOp::Pow) {
    const bool isComparison = op >= BinaryOp::Eq && op <= BinaryOp::Ge;
    if (!isComparison)
      return compute(expr, type, both);
    return isReachable() ? compute(expr, expr.type, both) : b_.undefined(kBool);
  }
  switch (op) {
  case BinaryOp::Add: return made(Op::Add);
  case BinaryOp::Sub: return made(Op::Sub);
  case BinaryOp::Mul: return made(Op::Mul);
  case BinaryOp::Div: return made(Op::Div);
  case BinaryOp::Rem: return made(Op::Rem);
  case BinaryOp::Shl: return values().op(Op::Shl, machine, a, values().convert(machine, b));
  case BinaryOp::Shr: return values().op(Op::Shr, machine, a, values().convert(machine, b));
  case BinaryOp::BitAnd:
  case BinaryOp::And: return made(Op::And);
  case BinaryOp::BitOr:
  case BinaryOp::Or: return made(Op::Or);
  case BinaryOp::BitXor: return made(Op::Xor);
  case BinaryOp::Eq: return compared(Op::Eq, a, b);
  case BinaryOp::Ne: return values().complement(compared(Op::Eq, a, b));
  case BinaryOp::Lt: return compared(Op::Lt, a, b);
  case BinaryOp::Le: return compared(Op::Le, a, b);
  case BinaryOp::Gt: return compared(Op::Lt, b, a);
  case BinaryOp::Ge: return compared(Op::Le, b, a);
  case BinaryOp::Pow: break;
  }
  return compute(expr, type, both);
}

ValueId Lowering::cast(const Expr& expr) {
  const Expr& from = operandOf(expr);
  const ValueId operand = scalar(from);
  if (!isNumber(from.type) || !isNumber(expr.type))
    return compute(expr, expr.type, {&operand, 1});
  const MachineType source = machineType(from.type), target = machineType(expr.type);
  if (target == kBool && source != kBool)
    return values().complement(values().op(Op::Eq, kBool, operand, values().constant(source, 0)));
  return values().convert(target, operand);
}

/// As a value. `a && b` of numbers alone is one node; else `b` is evaluated where `a` leads to it.
ValueId Lowering::shortCircuit(const Expr& expr) {
  const auto [lhs, rhs] = asBinary(expr);
  const bool isAnd = expr.binaryOp == BinaryOp::And;
  const ValueId first = scalar(lhs);
  if (isPure(rhs))
    return values().op(isAnd ? Op::And : Op::Or, kBool, first, scalar(rhs));
  if (!isReachable())
    return first;
  const SlotId result = b_.newSlot(kBool);
  b_.write(result, values().constant(kBool, isAnd ? 0 : 1));
  Label second = b_.label(), join = b_.label();
  b_.branch(first, isAnd ? second : join, isAnd ? join : second, &lhs);
  if (b_.start(second)) {
    b_.write(result, scalar(rhs));
    b_.jump(join, &expr);
  }
  b_.start(join);
  return isReachable() ? b_.value(result) : first;
}

}  // namespace vortex::lang::flow
