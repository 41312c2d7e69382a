// Symbolic extents of expressions, broadcasting, shapes across calls.
#include "lang/sema/check/checker.h"

#include "base/text.h"

namespace vortex::lang {

DimEqual Checker::dimEqual(const DimExpr& a, const DimExpr& b) const {
  const DimExpr difference = DimExpr::sub(a, b);
  if (auto constant = difference.asConstant())
    return *constant == 0 ? DimEqual::Yes : DimEqual::No;
  return difference.hasOpaque() || !inKernel() ? DimEqual::Unknown : DimEqual::No;
}

bool Checker::sameShape(Type a, Type b) const {
  if (a->rank() != b->rank())
    return false;
  for (uint32_t i = 0; i < a->rank(); ++i)
    if (dimEqual(a->shape[i], b->shape[i]) == DimEqual::No)
      return false;
  return true;
}

std::string Checker::shapeText(Type type) const {
  std::string out = "[";
  for (size_t i = 0; i < type->shape.size(); ++i)
    out += (i ? ", " : "") + text(type->shape[i]);
  return out + "]";
}

Type Checker::valueOf(Type type) {
  if (type->isTensor())
    return type->isValue ? type : types.tensorValue(type->elem, type->shape);
  if (type->kind == TypeKind::Tuple) {
    std::vector<Type> elems;
    for (Type elem : type->elems)
      elems.push_back(valueOf(elem));
    return types.tuple(std::move(elems));
  }
  return type;
}

Type Checker::withElem(Type type, Type elem) { return type->isTensor() ? types.tensorValue(elem, type->shape) : elem; }

DimExpr Checker::dimOf(const Expr* expr) {
  switch (expr->kind) {
  case ExprKind::Int: return DimExpr::constant(static_cast<int64_t>(expr->intValue));
  case ExprKind::DimValue: return expr->dim;
  case ExprKind::Cast: {
    const Type from = expr->args[0]->type;
    const bool isInt = from->kind == TypeKind::Scalar && isInteger(from->scalar);
    if (isInt && (inKernel() || bitWidth(from->scalar) <= bitWidth(expr->type->scalar)))
      return dimOf(expr->args[0]);
    break;
  }
  case ExprKind::Deref:
    if (expr->args[0]->kind == ExprKind::Var)
      return dimOf(expr->args[0]);
    break;
  case ExprKind::Var: {
    if (auto found = variableDims.find(expr->variable); found != variableDims.end())
      return found->second;
    return ownExtent(expr->variable);
  }
  case ExprKind::Binary: {
    // Narrow numbers of the running program may wrap.
    const bool isWide = inKernel() || (expr->type->kind == TypeKind::Scalar && bitWidth(expr->type->scalar) >= 32);
    if (expr->binaryOp > BinaryOp::Rem || !isWide)
      break;
    const DimExpr lhs = dimOf(expr->args[0]), rhs = dimOf(expr->args[1]);
    switch (expr->binaryOp) {
    case BinaryOp::Add: return DimExpr::add(lhs, rhs);
    case BinaryOp::Sub: return DimExpr::sub(lhs, rhs);
    case BinaryOp::Mul: return DimExpr::mul(lhs, rhs);
    case BinaryOp::Div: return DimExpr::apply(DimAtom::Kind::FloorDiv, lhs, rhs);
    default: return DimExpr::apply(DimAtom::Kind::Mod, lhs, rhs);
    }
  }
  case ExprKind::Builtin:
    if (expr->args.size() == 2 && expr->builtin == Builtin::CeilDiv)
      return DimExpr::apply(DimAtom::Kind::CeilDiv, dimOf(expr->args[0]), dimOf(expr->args[1]));
    if (expr->args.size() == 2 && expr->builtin == Builtin::Min)
      return DimExpr::apply(DimAtom::Kind::Min, dimOf(expr->args[0]), dimOf(expr->args[1]));
    if (expr->args.size() == 2 && expr->builtin == Builtin::Max)
      return DimExpr::apply(DimAtom::Kind::Max, dimOf(expr->args[0]), dimOf(expr->args[1]));
    if (expr->builtin == Builtin::Extent && expr->args[0]->type->isTensor())
      return expr->args[0]->type->shape[static_cast<size_t>(expr->ints[0])];
    break;
  default: break;
  }
  return DimExpr::opaque(session.newOpaque());
}

DimExpr Checker::ownExtent(const Variable* variable) {
  const uint32_t id = session.newOpaque();
  if (variable->isVar)
    mutableOpaques.insert(id);
  if (!inKernel() && variable->type->kind == TypeKind::Scalar)
    function->extentVariables[id] = variable;
  return variableDims[variable] = DimExpr::opaque(id);
}

bool Checker::isCounted(const DimExpr& extent) const {
  for (const auto& [monomial, coefficient] : extent.terms())
    for (const DimAtom& atom : monomial) {
      if (atom.kind == DimAtom::Kind::Opaque && !function->extentVariables.contains(atom.id))
        return false;
      for (const DimExpr& operand : atom.operands)
        if (!isCounted(operand))
          return false;
    }
  return true;
}

Type Checker::leaveScope(Type type, size_t firstLocal) {
  if (inKernel() || !type || isError(type))
    return type;
  std::vector<std::optional<DimExpr>> values(function->dims.size());
  bool any = false;
  for (size_t i = firstLocal; i < locals.size(); ++i)
    if (auto id = locals[i].dim ? locals[i].dim->asVariable() : std::nullopt; id && *id >= signatureDims_) {
      values[*id] = DimExpr::opaque(session.newOpaque());
      any = true;
    }
  return any ? substitute(type, values) : type;
}

bool Checker::broadcastShapes(const std::vector<std::vector<DimExpr>>& shapes, std::vector<DimExpr>& out) {
  size_t rank = 0;
  for (const auto& shape : shapes)
    rank = std::max(rank, shape.size());
  out.assign(rank, DimExpr::constant(1));
  for (const auto& shape : shapes)
    for (size_t i = 0; i < shape.size(); ++i) {
      DimExpr& extent = out[rank - shape.size() + i];
      if (shape[i].asConstant() == 1)
        continue;
      if (extent.asConstant() == 1)
        extent = shape[i];
      else if (dimEqual(extent, shape[i]) != DimEqual::Yes)
        return false;
    }
  return true;
}

Expr* Checker::broadcastTo(Expr* expr, const std::vector<DimExpr>& shape) {
  const bool isTensor = expr->type->isTensor();
  if (isTensor && expr->type->shape == shape)
    return expr;
  Type elem = isTensor ? expr->type->elem : expr->type;
  Expr* out = make(ExprKind::Broadcast, types.tensorValue(elem, shape), expr->range, {expr});
  for (size_t i = 0; isTensor && i < expr->type->rank(); ++i)
    out->ints.push_back(static_cast<int64_t>(shape.size() - expr->type->rank() + i));
  return out;
}

bool Checker::broadcast(std::vector<Expr*>& operands, std::string_view what, SourceRange range) {
  std::vector<std::vector<DimExpr>> shapes;
  for (const Expr* operand : operands)
    shapes.push_back(operand->type->isTensor() ? operand->type->shape : std::vector<DimExpr>{});
  std::vector<DimExpr> shape;
  if (!broadcastShapes(shapes, shape)) {
    auto builder = error("E0304", range, base::concat("the shapes of `", what, "` do not match"));
    for (const Expr* operand : operands)
      if (operand->type->isTensor())
        builder.label(operand->range, "`" + shapeText(operand->type) + "`");
    builder.note("extents are aligned at the last one; they must be equal or 1");
    return false;
  }
  for (Expr*& operand : operands)
    operand = broadcastTo(operand, shape);
  return true;
}

Type Checker::substitute(Type type, const std::vector<std::optional<DimExpr>>& values) {
  std::vector<Type> elems;
  if (type->param && !type->isTensor())
    return type;
  switch (type->kind) {
  case TypeKind::Tensor: {
    std::vector<DimExpr> shape;
    for (const DimExpr& extent : type->shape)
      shape.push_back(extent.substitute(values));
    return type->isValue ? types.tensorValue(type->elem, std::move(shape))
                         : types.tensor(type->elem, std::move(shape), type->space, type->layout, type->param);
  }
  case TypeKind::Vec: return types.vec(substitute(type->elem, values));
  case TypeKind::Array: return types.array(substitute(type->elem, values), type->count);
  case TypeKind::Ref: return types.ref(substitute(type->elem, values), type->isMutable);
  case TypeKind::Tuple:
  case TypeKind::Struct:
  case TypeKind::Closure:
    for (Type elem : type->elems)
      elems.push_back(substitute(elem, values));
    return type->kind == TypeKind::Tuple    ? types.tuple(std::move(elems))
           : type->kind == TypeKind::Struct ? types.structure(type->decl, std::move(elems))
                                            : types.closure(std::move(elems), substitute(type->elem, values));
  default: return type;
  }
}

void Checker::learnDims(Type param, Type arg, std::vector<std::optional<DimExpr>>& values) {
  if (param->kind == TypeKind::Ref)
    return learnDims(param->elem, arg->kind == TypeKind::Ref ? arg->elem : arg, values);
  if (arg->kind == TypeKind::Ref)
    return learnDims(param, arg->elem, values);
  if (param->kind != arg->kind)
    return;
  if (param->isTensor())
    for (uint32_t i = 0; i < param->rank() && i < arg->rank(); ++i)
      if (auto variable = param->shape[i].asVariable(); variable && *variable < values.size() && !values[*variable])
        values[*variable] = arg->shape[i];
  for (size_t i = 0; i < param->elems.size() && i < arg->elems.size(); ++i)
    learnDims(param->elems[i], arg->elems[i], values);
  if ((param->kind == TypeKind::Vec || param->kind == TypeKind::Array))
    learnDims(param->elem, arg->elem, values);
}

bool Checker::checkDims(Type param, Type arg, const std::vector<std::optional<DimExpr>>& values, const Function& callee,
                        SourceRange argRange, std::string_view paramName) {
  if (param->kind == TypeKind::Ref)
    return checkDims(param->elem, arg->kind == TypeKind::Ref ? arg->elem : arg, values, callee, argRange, paramName);
  bool ok = true;
  if (param->isTensor() && arg->isTensor())
    for (uint32_t i = 0; i < param->rank() && i < arg->rank() && ok; ++i) {
      const DimExpr expected = param->shape[i].substitute(values);
      const DimEqual equal = dimEqual(expected, arg->shape[i]);
      if (equal == DimEqual::Yes || (equal == DimEqual::Unknown && !inKernel()))
        continue;
      ok = false;
      const std::string wanted = param->shape[i].text(callee.dimNames());
      const std::string meant = wanted == text(expected) ? wanted : base::concat(wanted, "` = `", text(expected));
      auto builder = error("E0334", argRange,
                           base::concat("extent ", i, " of `", paramName, "` must be `", meant, "`, but it is `",
                                        text(arg->shape[i]), "`"));
      builder.primary("`" + shapeText(arg) + "`");
      if (const std::string numbers = text(expected) + text(arg->shape[i]); numbers.find('_') != std::string::npos)
        builder.note("`_` stands for a number that only the running program knows");
      for (const Variable* other : callee.params)
        if (other->name == paramName)
          builder.label(other->range, "declared here as `" + lang::text(other->type, callee.dimNames()) + "`");
    }
  for (size_t i = 0; i < param->elems.size() && i < arg->elems.size(); ++i)
    ok = checkDims(param->elems[i], arg->elems[i], values, callee, argRange, paramName) && ok;
  return ok;
}

}  // namespace vortex::lang
