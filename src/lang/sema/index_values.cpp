#include "lang/sema/index_values.h"

#include <algorithm>
#include <array>

#include "lang/sema/children.h"
#include "lang/sema/expr_parts.h"

namespace vortex::lang {

using flow::Condition;
using flow::kBool;
using flow::kUsize;
using flow::MachineType;
using flow::Op;
using flow::PointId;
using flow::ValueId;

static std::optional<MachineType> machineType(Type type) {
  if (!type || type->kind != TypeKind::Scalar || type->param ||
      (!isInteger(type->scalar) && type->scalar != Scalar::Bool))
    return std::nullopt;
  if (type->scalar == Scalar::Bool)
    return kBool;
  return MachineType{static_cast<uint8_t>(bitWidth(type->scalar)), !isUnsigned(type->scalar)};
}

IndexValues::IndexValues(const Function& function, std::function<bool(const Variable&)> isFixed)
    : isFixed_(std::move(isFixed)) {
  learnLaunch(function);
  if (function.body)
    walk(*function.body);
  values_ = std::make_unique<flow::Values>(
      nodes_,
      flow::Surroundings{.conditions = [this](PointId point) { return conditionsAt(point); },
                         .counter = [this](ValueId phi) -> std::optional<flow::LoopCounter> {
                           const auto found = counters_.find(phi);
                           return found == counters_.end() ? std::nullopt : std::optional(found->second);
                         }},
      launch_);
}

IndexValues::IndexValues(const Function& kernel, const Roots& roots)
    : IndexValues(kernel, [&roots](const Variable& variable) {
        return !roots.isAssigned(&variable) && !roots.isWritten(&variable);
      }) {}

std::vector<Condition> IndexValues::conditionsAt(PointId point) const {
  return flow::indexOf(point) < points_.size() ? points_[flow::indexOf(point)] : std::vector<Condition>();
}

PointId IndexValues::pointOf(const Expr& access) const {
  const auto found = pointOf_.find(&access);
  return found == pointOf_.end() ? flow::kNoPoint : found->second;
}

const Expr* IndexValues::initialiserOf(const Variable& variable) const {
  const auto found = initialisers_.find(&variable);
  return found == initialisers_.end() ? nullptr : found->second;
}

//===-- launch ----------------------------------------------------------------------------------------------------===//

/// Extents multiplied in one shape: what they stand for fits memory.
void IndexValues::learnShape(Type type) {
  type = stripRef(type);
  if (!type || !type->isTensor() || type->shape.size() < 2)
    return;
  flow::LaunchFacts::Product product{{}, flow::kMostElements};
  for (const DimExpr& extent : type->shape) {
    if (extent.terms().size() != 1)
      return;
    const auto& [monomial, coefficient] = *extent.terms().begin();
    for (const DimAtom& atom : monomial)
      product.factors.push_back(ofAtom(atom));
    if (coefficient < 1)
      return;
    product.limit /= coefficient;
  }
  std::sort(product.factors.begin(), product.factors.end());
  if (product.factors.size() > 1)
    launch_.products.push_back(std::move(product));
}

void IndexValues::learnLaunch(const Function& function) {
  for (const Variable* param : function.params)
    learnShape(param->type);
  learnShape(function.resultType);
  if (!function.kernel)
    return;
  const KernelSpec& spec = *function.kernel;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (axis < spec.block.size())
      launch_.blockDim[axis] = index(*spec.block[axis]);
    else if (!spec.block.empty())
      launch_.blockDim[axis] = constant(1);
    if (spec.tile && axis < spec.grid.size())  // no launch can replace it
      launch_.gridDim[axis] = index(*spec.grid[axis]);
  }
  for (const LaunchCheck& check : function.checks)
    if (check.kind != LaunchCheck::Kind::ExtentEquals)
      facts_.push_back({atMost(constant(1), of(check.expected)), true});
}

//===-- points ----------------------------------------------------------------------------------------------------===//

static bool alwaysLeaves(const Expr& expr) {
  switch (expr.kind) {
  case ExprKind::Return:
  case ExprKind::Break:
  case ExprKind::Continue: return true;
  case ExprKind::Block: return !expr.args.empty() && expr.args.back() && alwaysLeaves(*expr.args.back());
  default: return false;
  }
}

void IndexValues::walk(const Expr& expr) {
  switch (expr.kind) {
  case ExprKind::Let:
    if (const auto [variable, value] = asLet(expr); variable && value)
      initialisers_[variable] = value;
    break;
  case ExprKind::If: return walkIf(expr);
  case ExprKind::For: return walkFor(expr);
  case ExprKind::While:
    walk(*asLoop(expr).condition);
    return walkUnder(*asLoop(expr).condition, true, asLoop(expr).body);
  case ExprKind::Binary:
    if (expr.binaryOp == BinaryOp::And || expr.binaryOp == BinaryOp::Or) {
      walk(asBinary(expr).lhs);
      return walkUnder(asBinary(expr).lhs, expr.binaryOp == BinaryOp::And, asBinary(expr).rhs);
    }
    break;
  case ExprKind::Block:
  case ExprKind::Inline: {
    const size_t before = facts_.size();
    for (const Expr* each : expr.args) {
      walk(*each);
      learnFromLeaving(*each);
    }
    facts_.resize(before);
    return;
  }
  default: break;
  }
  forEachChild(expr, [&](const Expr& child) { walk(child); });
  if (expr.kind == ExprKind::Element || expr.kind == ExprKind::Slice) {
    if (points_.empty() || points_.back() != facts_)
      points_.push_back(facts_);
    pointOf_[&expr] = PointId{static_cast<uint32_t>(points_.size() - 1)};
  }
}

void IndexValues::walkUnder(const Expr& condition, bool holds, const Expr& body) {
  facts_.push_back({of(condition), holds});
  walk(body);
  facts_.pop_back();
}

void IndexValues::walkIf(const Expr& expr) {
  const auto [condition, then, otherwise] = asIf(expr);
  walk(condition);
  walkUnder(condition, true, then);
  if (otherwise)
    walkUnder(condition, false, *otherwise);
}

/// Behind `if c { return }` the condition is false.
void IndexValues::learnFromLeaving(const Expr& statement) {
  if (statement.kind != ExprKind::If)
    return;
  const auto [condition, then, otherwise] = asIf(statement);
  if (alwaysLeaves(then))
    facts_.push_back({of(condition), false});
  else if (otherwise && alwaysLeaves(*otherwise))
    facts_.push_back({of(condition), true});
}

/// `.enumerate()`: from 0; a range of unsigned numbers has no more iterations than its end, a list no more than memory holds.
void IndexValues::countIterations(const Expr& loop) {
  const auto [list, body, variable, index] = asFor(loop);
  const auto type = index ? machineType(index->type) : std::nullopt;
  if (!type || !isFixed_(*index))
    return;
  ValueId end = nodes_.constant(*type, type->highest() / 2);
  if (list.kind == ExprKind::IntList)
    end = nodes_.constant(*type, static_cast<__int128>(list.intList.size()));
  else if (list.kind != ExprKind::Range)
    end = nodes_.constant(*type, flow::kMostElements);
  else if (const auto number = machineType(asRange(list).end.type); number && !number->isSigned)
    end = nodes_.convert(*type, of(asRange(list).end));
  const ValueId counter = nodes_.phi(*type, flow::kNoBlock);
  counters_.emplace(counter, flow::LoopCounter{nodes_.constant(*type, 0), end, nodes_.constant(*type, 1), {}});
  variables_[index] = counter;
}

void IndexValues::walkFor(const Expr& loop) {
  const Expr& over = asFor(loop).list;
  walk(over);
  const auto type = loop.variable ? machineType(loop.variable->type) : std::nullopt;
  if (type && isFixed_(*loop.variable) && (over.kind == ExprKind::Range || over.kind == ExprKind::IntList)) {
    const ValueId counter = nodes_.phi(*type, flow::kNoBlock);
    flow::LoopCounter known;
    if (over.kind == ExprKind::IntList) {
      known.list.assign(over.intList.begin(), over.intList.end());
    } else {
      const auto [begin, end, step] = asRange(over);
      known.begin = nodes_.convert(*type, of(begin));
      known.end = nodes_.convert(*type, of(end));
      known.step = step ? nodes_.convert(*type, of(*step)) : nodes_.constant(*type, 1);
    }
    if (over.kind == ExprKind::Range || !known.list.empty())
      counters_.emplace(counter, std::move(known));
    variables_[loop.variable] = counter;
  }
  countIterations(loop);
  walk(asFor(loop).body);
}

//===-- values ----------------------------------------------------------------------------------------------------===//

ValueId IndexValues::unknown(const Expr& expr) {
  return nodes_.unknown(nullptr, machineType(expr.type).value_or(kUsize));
}

ValueId IndexValues::of(const Expr& expr) {
  const auto type = machineType(expr.type);
  if (!type)
    return unknown(expr);
  switch (expr.kind) {
  case ExprKind::Int: return nodes_.constant(*type, expr.intValue);
  case ExprKind::DimValue: return of(expr.dim);
  case ExprKind::Var: return isFixed_(*expr.variable) ? of(*expr.variable) : unknown(expr);
  case ExprKind::Cast:
    return machineType(operandOf(expr).type) ? nodes_.convert(*type, of(operandOf(expr))) : unknown(expr);
  case ExprKind::Unary: {
    const ValueId operand = of(operandOf(expr));
    return expr.unaryOp == UnaryOp::Neg ? nodes_.negate(operand) : nodes_.complement(operand);
  }
  case ExprKind::Binary: return machineType(asBinary(expr).lhs.type) ? ofBinary(expr) : unknown(expr);
  case ExprKind::Builtin: return ofBuiltin(expr);
  case ExprKind::If:
    if (const auto [condition, then, otherwise] = asIf(expr); otherwise)
      return nodes_.op(Op::Select, *type, of(condition), of(then), of(*otherwise));
    return unknown(expr);
  case ExprKind::Block: return expr.args.size() == 1 ? of(*expr.args[0]) : unknown(expr);
  case ExprKind::Inline: return ofInline(expr);
  default: return unknown(expr);
  }
}

/// A call whose body is one expression.
ValueId IndexValues::ofInline(const Expr& expr) {
  const Expr* body = expr.args.empty() ? nullptr : expr.args.back();
  while (body && body->args.size() == 1 && body->args[0] &&
         (body->kind == ExprKind::Block || body->kind == ExprKind::Return))
    body = body->args[0];
  const bool isPlain = body && body->kind != ExprKind::Block && body->kind != ExprKind::Return;
  return isPlain && body->type == expr.type ? of(*body) : unknown(expr);
}

/// The value a fixed variable was given, evaluated once; one that comes from elsewhere is an argument.
ValueId IndexValues::of(const Variable& variable) {
  if (auto found = variables_.find(&variable); found != variables_.end())
    return found->second;
  const auto init = initialisers_.find(&variable);
  const MachineType type = *machineType(variable.type);
  const ValueId value = init != initialisers_.end() && machineType(init->second->type) == type
                            ? of(*init->second)
                            : nodes_.argument(static_cast<uint32_t>(variables_.size()), type);
  return variables_[&variable] = value;
}

ValueId IndexValues::ofBinary(const Expr& expr) {
  const ValueId a = of(asBinary(expr).lhs), b = of(asBinary(expr).rhs);
  const MachineType type = *machineType(expr.type);
  const auto make = [&](Op op) { return nodes_.op(op, type, a, b); };
  if (expr.binaryOp != BinaryOp::Pow && expr.binaryOp != BinaryOp::Shl && expr.binaryOp != BinaryOp::Shr &&
      nodes_.type(a) != nodes_.type(b))
    return unknown(expr);
  switch (expr.binaryOp) {
  case BinaryOp::Add: return make(Op::Add);
  case BinaryOp::Sub: return make(Op::Sub);
  case BinaryOp::Mul: return make(Op::Mul);
  case BinaryOp::Div: return make(Op::Div);
  case BinaryOp::Rem: return make(Op::Rem);
  case BinaryOp::Shl: return make(Op::Shl);
  case BinaryOp::Shr: return make(Op::Shr);
  case BinaryOp::BitAnd:
  case BinaryOp::And: return make(Op::And);
  case BinaryOp::BitOr:
  case BinaryOp::Or: return make(Op::Or);
  case BinaryOp::BitXor: return make(Op::Xor);
  case BinaryOp::Eq: return make(Op::Eq);
  case BinaryOp::Ne: return nodes_.complement(make(Op::Eq));
  case BinaryOp::Lt: return make(Op::Lt);
  case BinaryOp::Le: return make(Op::Le);
  case BinaryOp::Gt: return nodes_.op(Op::Lt, kBool, b, a);
  case BinaryOp::Ge: return nodes_.op(Op::Le, kBool, b, a);
  case BinaryOp::Pow: return unknown(expr);
  }
  return unknown(expr);
}

ValueId IndexValues::ofBuiltin(const Expr& expr) {
  const uint32_t axis = expr.ints.empty() ? 0 : static_cast<uint32_t>(expr.ints[0]);
  const MachineType type = *machineType(expr.type);
  const auto position = [&](flow::PositionKind kind) { return nodes_.convert(type, nodes_.position(kind, axis)); };
  const auto binary = [&](Op op) { return nodes_.op(op, type, of(*expr.args[0]), of(*expr.args[1])); };
  switch (expr.builtin) {
  case Builtin::ThreadId: return position(flow::PositionKind::ThreadId);
  case Builtin::ThreadLocalId: return position(flow::PositionKind::ThreadLocalId);
  case Builtin::ThreadGlobalId: return position(flow::PositionKind::ThreadGlobalId);
  case Builtin::BlockId: return position(flow::PositionKind::BlockId);
  case Builtin::BlockDim: return position(flow::PositionKind::BlockDim);
  case Builtin::GridDim: return position(flow::PositionKind::GridDim);
  case Builtin::WarpId: return position(flow::PositionKind::WarpId);
  case Builtin::LaneId: return position(flow::PositionKind::LaneId);
  case Builtin::WarpSize: return nodes_.constant(type, 32);
  case Builtin::Min: return binary(Op::Min);
  case Builtin::Max: return binary(Op::Max);
  case Builtin::CeilDiv: return binary(Op::CeilDiv);
  case Builtin::Clamp: return nodes_.op(Op::Min, type, binary(Op::Max), of(*expr.args[2]));
  case Builtin::Select: {
    const auto [condition, then, otherwise] = asSelect(expr);
    return nodes_.op(Op::Select, type, of(condition), of(then), of(otherwise));
  }
  case Builtin::Extent:
    if (Type tensor = stripRef(expr.args[0]->type); tensor && axis < tensor->shape.size())
      return nodes_.convert(type, of(tensor->shape[axis]));
    return unknown(expr);
  default: return unknown(expr);
  }
}

ValueId IndexValues::ofAtom(const DimAtom& atom) {
  constexpr uint32_t kFirstOpaque = 1u << 31;
  const auto binary = [&](Op op) { return nodes_.op(op, kUsize, of(atom.operands[0]), of(atom.operands[1])); };
  switch (atom.kind) {
  case DimAtom::Kind::Variable: return nodes_.extent(atom.id);
  case DimAtom::Kind::Opaque: return nodes_.extent(kFirstOpaque | atom.id);
  case DimAtom::Kind::FloorDiv: return binary(Op::Div);
  case DimAtom::Kind::CeilDiv: return binary(Op::CeilDiv);
  case DimAtom::Kind::Mod: return binary(Op::Rem);
  case DimAtom::Kind::Min: return binary(Op::Min);
  case DimAtom::Kind::Max: return binary(Op::Max);
  }
  return nodes_.unknown(nullptr, kUsize);
}

ValueId IndexValues::of(const DimExpr& dim) {
  ValueId sum = constant(0);
  for (const auto& [monomial, coefficient] : dim.terms()) {
    ValueId product = constant(coefficient);
    for (const DimAtom& atom : monomial)
      product = nodes_.op(Op::Mul, kUsize, product, ofAtom(atom));
    sum = nodes_.op(Op::Add, kUsize, sum, product);
  }
  return sum;
}

}  // namespace vortex::lang
