// Scalar expressions at the current level, and block-level expressions computed operand by operand.
#include "irgen/emitter.h"

#include "ir/vx_checked.h"

namespace vortex::irgen {

using lang::BinaryOp;
using lang::Expr;
using lang::ExprKind;
using lang::TypeKind;
using mlir::Location;
using mlir::Value;

Flat Emitter::unsupported(const Expr& expr, const llvm::Twine& what) {
  context_.failed = true;
  mlir::emitError(loc(expr)) << "not supported yet: " << what;
  Flat zero;
  llvm::SmallVector<mlir::Type> types;
  if (expr.type)
    types_.flatten(expr.type, types);
  for (mlir::Type type : types) {
    if (llvm::isa<ir::ViewType>(type))
      continue;
    bool tile = llvm::isa<mlir::RankedTensorType>(type);
    Value scalar = math_.zero(loc(expr), mlir::getElementTypeOrSelf(type));
    zero.leaves.push_back(tile ? broadcastScalar(loc(expr), scalar, expr.type) : scalar);
  }
  return zero;
}

Value Emitter::scalarOrFail(Location loc, const Flat& flat) {
  VORTEX_CHECK(flat.leaves.size() == 1, "a scalar has %zu values", flat.leaves.size());
  Value value = flat.leaves[0];
  if (llvm::isa<mlir::RankedTensorType>(value.getType()) && !inThreads_ && context_.hasThreads)
    return firstThread(loc, value);
  return value;
}

Flat Emitter::eval(const Expr& expr) {
  if (auto parked = parked_.find(&expr); parked != parked_.end())
    return read(loc(expr), parked->second);
  if (!atBlockLevel() || facts_.grade(expr) == Grade::Uniform || expr.kind == ExprKind::Var)
    return evalNode(expr);
  const Variable* variable = park(expr);
  Flat result = read(loc(expr), variable);
  parked_.erase(&expr);
  return result;
}

Flat Emitter::evalNode(const Expr& expr) {
  Location at = loc(expr);
  if (expr.type && isTileType(expr.type) && expr.kind != ExprKind::Var && expr.kind != ExprKind::Field &&
      expr.kind != ExprKind::Deref && expr.kind != ExprKind::Ref && expr.kind != ExprKind::Element)
    return evalTiles(expr);
  switch (expr.kind) {
  case ExprKind::Int: return math_.integer(at, types_.scalar(scalarOf(expr.type)), expr.intValue);
  case ExprKind::Float: return math_.real(at, types_.scalar(scalarOf(expr.type)), expr.floatValue);
  case ExprKind::String:
  case ExprKind::Unit: return {};
  case ExprKind::Var: return read(at, expr.variable);
  case ExprKind::DimValue: return math_.fromIndex(at, dimValue(at, expr.dim), scalarOf(expr.type));
  case ExprKind::Unary: return evalUnary(expr);
  case ExprKind::Binary: return evalBinary(expr);
  case ExprKind::Cast: return evalCast(expr);
  case ExprKind::Builtin: return evalBuiltin(expr);
  case ExprKind::Element:
  case ExprKind::Field: {
    Place element = place(expr);
    if (isMemoryTensor(expr.type) && !element.choices.empty()) {
      unsupported(expr, "a whole tensor of an array whose index is known only while the kernel runs");
      element.choices.clear();  // any of them
    }
    if (expr.uniformity == lang::Uniformity::Uniform)
      element.loadMask = {};  // one value for all threads, surplus ones too: control may depend on it
    return load(at, element);
  }
  case ExprKind::Deref: return load(at, place(expr));
  case ExprKind::Slice: return evalSlice(expr);
  case ExprKind::Ref: {
    Flat reference;
    if (isMemoryTensor(expr.args[0]->type)) {
      reference.leaves = evalViews(*expr.args[0]);
      return reference;
    }
    reference.ref = std::make_shared<Place>(place(*expr.args[0]));
    return reference;
  }
  case ExprKind::MakeTuple:
  case ExprKind::MakeStruct:
  case ExprKind::MakeArray: {
    Flat all;
    for (const Expr* arg : expr.args) {
      Flat part = eval(*arg);
      all.leaves.append(part.leaves.begin(), part.leaves.end());
    }
    return all;
  }
  case ExprKind::RepeatArray: {
    Flat part = eval(*expr.args[0]), all;
    for (uint64_t i = 0; i < expr.type->count; ++i)
      all.leaves.append(part.leaves.begin(), part.leaves.end());
    return all;
  }
  case ExprKind::Range: return evalRange(expr);
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
  case ExprKind::Return: return evalControl(expr);
  case ExprKind::Broadcast:
  case ExprKind::Dot: return evalTile(expr);
  case ExprKind::Call:
  case ExprKind::Launch:
  case ExprKind::CallClosure:
  case ExprKind::Closure:
  case ExprKind::IntList:
  case ExprKind::MakeVec:
  case ExprKind::RepeatVec: break;
  }
  return unsupported(expr, "this expression in a kernel");
}

Flat Emitter::evalControl(const Expr& expr) {
  bool hasValue = expr.type && expr.type->kind != TypeKind::Unit && expr.type->kind != TypeKind::Never &&
                  expr.type->kind != TypeKind::Error;
  if (!hasValue) {
    execute(expr, nullptr);
    return {};
  }
  const Variable* result = facts_.newVariable("value", facts_.wide(expr.type), expr.uniformity);
  if (expr.kind == ExprKind::Loop && facts_.flags(&expr).value)
    result = facts_.flags(&expr).value;
  declare(result);
  execute(expr, expr.kind == ExprKind::Loop ? nullptr : result);
  return read(loc(expr), result);
}

/// Is this an operator of integers of the type that must not wrap when the program is checked?
bool Emitter::reportsWrapping(const Expr& expr, lang::Scalar kind) const {
  if (!context_.forChecks || expr.mayWrap || !lang::isInteger(kind))
    return false;
  if (expr.kind == ExprKind::Unary)
    return expr.unaryOp == lang::UnaryOp::Neg;
  return expr.binaryOp == BinaryOp::Add || expr.binaryOp == BinaryOp::Sub || expr.binaryOp == BinaryOp::Mul;
}

Flat Emitter::evalUnary(const Expr& expr) {
  return userUnary(expr, scalarOf(expr.args[0]->type), evalScalar(*expr.args[0]));
}

static Value createChecked(mlir::OpBuilder& builder, Location at, BinaryOp op, lang::Scalar kind, Value lhs,
                           Value rhs) {
  const bool isUnsigned = lang::isUnsigned(kind);
  mlir::Type type = lhs.getType();
  switch (op) {
  case BinaryOp::Add: return builder.create<ir::CheckedAddOp>(at, type, lhs, rhs, isUnsigned);
  case BinaryOp::Sub: return builder.create<ir::CheckedSubOp>(at, type, lhs, rhs, isUnsigned);
  default: return builder.create<ir::CheckedMulOp>(at, type, lhs, rhs, isUnsigned);
  }
}

/// An operator as the user wrote it. Where wrapping integers are to be reported the interpreter does it; threads past the domain compute with zeros
/// there, since what they have loaded is not the user's.
Value Emitter::userBinary(const Expr& expr, BinaryOp op, lang::Scalar kind, Value lhs, Value rhs) {
  Location at = loc(expr);
  const bool isTile = llvm::isa<mlir::RankedTensorType>(lhs.getType());
  if (!reportsWrapping(expr, kind) || (isTile && context_.padsTiles))
    return math_.binary(at, op, kind, lhs, rhs);
  Value inside = inThreads_ && !context_.domain.empty() ? insideDomain() : Value();
  const auto masked = [&](Value value) -> Value {
    return inside ? b_.create<mlir::arith::SelectOp>(at, inside, value, math_.zero(at, value.getType())) : value;
  };
  Value result = createChecked(b_, at, op, kind, masked(lhs), masked(rhs));
  return inside ? b_.create<mlir::arith::SelectOp>(at, inside, result, math_.binary(at, op, kind, lhs, rhs)) : result;
}

Value Emitter::userUnary(const Expr& expr, lang::Scalar kind, Value value) {
  Location at = loc(expr);
  if (expr.unaryOp == lang::UnaryOp::Neg && lang::isInteger(kind))
    return userBinary(expr, BinaryOp::Sub, kind, math_.constantLike(at, value, 0), value);
  return math_.unary(at, expr.unaryOp, kind, value);
}

Flat Emitter::evalBinary(const Expr& expr) {
  if (expr.binaryOp == BinaryOp::And || expr.binaryOp == BinaryOp::Or)
    return evalShortCircuit(expr);
  Value lhs = evalScalar(*expr.args[0]), rhs = evalScalar(*expr.args[1]);
  if (expr.binaryOp == BinaryOp::Shl || expr.binaryOp == BinaryOp::Shr)  // the count keeps its own type
    rhs = math_.cast(loc(expr), rhs, scalarOf(expr.args[1]->type), scalarOf(expr.args[0]->type));
  return userBinary(expr, expr.binaryOp, scalarOf(expr.args[0]->type), lhs, rhs);
}

/// Code without memory accesses, effects, loops or wrapping that is reported may run although the left operand already decides.
bool Emitter::mayShortCircuitFreely(const Expr& expr) const {
  switch (expr.kind) {
  case ExprKind::Int:
  case ExprKind::Float:
  case ExprKind::Var:
  case ExprKind::DimValue: return true;
  case ExprKind::Builtin:
    if (expr.builtin > lang::Builtin::Extent &&
        (expr.builtin < lang::Builtin::ThreadId || expr.builtin > lang::Builtin::WarpSize))
      return false;
    break;
  case ExprKind::Unary:
  case ExprKind::Binary:
    if (reportsWrapping(expr, scalarOf(expr.type)))
      return false;
    break;
  case ExprKind::Cast:
  case ExprKind::Field: break;
  default: return false;
  }
  return llvm::all_of(expr.args, [&](const Expr* arg) { return mayShortCircuitFreely(*arg); });
}

Flat Emitter::evalShortCircuit(const Expr& expr) {
  Location at = loc(expr);
  const Expr& second = *expr.args[1];
  bool isAnd = expr.binaryOp == BinaryOp::And;
  if (mayShortCircuitFreely(second)) {
    Value lhs = evalScalar(*expr.args[0]), rhs = evalScalar(second);
    return math_.binary(at, expr.binaryOp, lang::Scalar::Bool, lhs, rhs);
  }
  const Variable* result = facts_.newVariable("decided", facts_.boolean(), expr.uniformity);
  declare(result);
  Value first = evalScalar(*expr.args[0]);
  assign(at, result, first);
  VariableSet assigned = assignedIn(&second);
  assigned.insert(result);
  auto decide = [&] { evaluate(second, result); };
  if (isAnd)
    emitIf(at, first, assigned, decide, [] {});
  else
    emitIf(at, first, assigned, [] {}, decide);
  return read(at, result);
}

Flat Emitter::evalCast(const Expr& expr) {
  return math_.cast(loc(expr), evalScalar(*expr.args[0]), scalarOf(expr.args[0]->type), scalarOf(expr.type));
}

Flat Emitter::evalRange(const Expr& expr) {
  Flat range;
  range.leaves = {evalScalar(*expr.args[0]), evalScalar(*expr.args[1])};
  bool hasStep = expr.args.size() > 2 && expr.args[2];
  range.leaves.push_back(hasStep ? evalScalar(*expr.args[2])
                                 : math_.integer(loc(expr), types_.scalar(scalarOf(expr.type)), 1));
  return range;
}

Value Emitter::evalIndex(const Expr& expr) { return math_.toIndex(loc(expr), evalScalar(expr), scalarOf(expr.type)); }

//===-- block-level operands --------------------------------------------------------------------------------------===//

/// Evaluates into a variable of its own, wherever the expression belongs, and makes later evaluation read that.
const lang::Variable* Emitter::park(const Expr& expr) {
  bool perThread = expr.uniformity == lang::Uniformity::PerThread || facts_.grade(expr) == Grade::Thread;
  const Variable* variable = facts_.newVariable("operand", facts_.wide(expr.type),
                                                perThread ? lang::Uniformity::PerThread : lang::Uniformity::Uniform);
  declare(variable);
  evaluate(expr, variable);
  parked_[&expr] = variable;
  return variable;
}

/// Operands used as places are not loaded; their indices are operands.
static void valueOperands(const Expr& expr, llvm::SmallVectorImpl<const Expr*>& operands) {
  bool isPlaceUser = expr.kind == ExprKind::Assign || expr.kind == ExprKind::Ref || expr.kind == ExprKind::Element ||
                     expr.kind == ExprKind::Slice || expr.kind == ExprKind::Field || expr.kind == ExprKind::Deref ||
                     (expr.kind == ExprKind::Builtin && expr.builtin >= lang::Builtin::AtomicAdd &&
                      expr.builtin <= lang::Builtin::AtomicStore);
  for (const Expr* child : children(expr)) {
    bool isPlace = isPlaceUser && child == expr.args[0];
    bool hasPlace = child->kind == ExprKind::Element || child->kind == ExprKind::Slice ||
                    child->kind == ExprKind::Field || child->kind == ExprKind::Deref || child->kind == ExprKind::Ref ||
                    child->kind == ExprKind::Var;
    if (isPlace && hasPlace)
      valueOperands(*child, operands);
    else if (child->kind != ExprKind::Int && child->kind != ExprKind::Float && child->kind != ExprKind::String &&
             child->kind != ExprKind::DimValue)
      operands.push_back(child);
  }
}

Flat Emitter::evalBlockLevel(const Expr& expr) {
  bool isTile = isTileType(expr.type) || (expr.kind == ExprKind::Assign && stripRef(expr.args[0]->type)->isTensor()) ||
                llvm::any_of(expr.args, [](const Expr* arg) { return arg && isTileType(arg->type); });
  bool isBarrier = expr.kind == ExprKind::Builtin &&
                   (expr.builtin == lang::Builtin::SyncBlock || expr.builtin == lang::Builtin::SyncGrid ||
                    expr.builtin == lang::Builtin::AsyncStage);
  if (isTile || isBarrier) {
    closeRegion();
    return evalNode(expr);
  }
  if (expr.kind == ExprKind::Builtin && lang::isBlockReduction(expr.builtin))
    return evalBlockReduction(expr);
  llvm::SmallVector<const Expr*> operands;
  valueOperands(expr, operands);
  bool inThreads = expr.uniformity == lang::Uniformity::PerThread || facts_.ownGrade(expr) == Grade::Thread;
  for (const Expr* operand : operands) {
    if (isMemoryTensor(operand->type) || operand->type->kind == TypeKind::Ref)
      continue;
    inThreads |= park(*operand)->uniformity == lang::Uniformity::PerThread;
  }
  Flat result;
  if (inThreads) {
    const Variable* value = nullptr;
    VariableSet assigned = assignedIn(&expr);
    if (expr.type && types_.leafCount(expr.type)) {
      value = facts_.newVariable("value", expr.type, lang::Uniformity::PerThread);
      declare(value);
      assigned.insert(value);
    }
    inRegion(loc(expr), assigned, [&] { execute(expr, value); });
    if (value) {
      Slot slot = variables_[value];
      result.leaves = slot.leaves;
      result.inRegion = slot.inRegion;
    }
  } else {
    closeRegion();
    result = evalNode(expr);
    if (expr.kind == ExprKind::Assign)
      result = {};
  }
  for (const Expr* operand : operands)
    parked_.erase(operand);
  return result;
}

}  // namespace vortex::irgen
