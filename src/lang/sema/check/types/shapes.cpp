// Symbolic extents of expressions, broadcasting, shapes across calls.
#include "lang/sema/check/types/shapes.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"

#include "base/text.h"
#include "lang/sema/integers.h"

#include <algorithm>

namespace vortex::lang {

DimEqual dimEqual(const BodyState& body, const DimExpr& a, const DimExpr& b) {
  const DimExpr difference = DimExpr::sub(a, b);
  if (auto constant = difference.asConstant())
    return *constant == 0 ? DimEqual::Yes : DimEqual::No;
  return inKernel(body) ? DimEqual::No : DimEqual::Unknown;
}

bool sameShape(const BodyState& body, Type a, Type b) {
  if (a->rank() != b->rank())
    return false;
  for (uint32_t i = 0; i < a->rank(); ++i)
    if (dimEqual(body, a->shape[i], b->shape[i]) == DimEqual::No)
      return false;
  return true;
}

bool agree(BodyState& body, const DimExpr& a, const DimExpr& b, SourceRange range) {
  if (const bool isSame = dimEqual(body, a, b) == DimEqual::Yes; isSame || !inKernel(body))
    return isSame;
  const auto quotients = quotientsOfZero(DimExpr::sub(a, b));
  if (!quotients)
    return false;
  for (const ExactQuotient& quotient : *quotients)
    addCheck(*body.function, {.kind = LaunchCheck::Kind::Exact,
                              .expected = quotient.dividend,
                              .divisor = quotient.divisor,
                              .agrees = a,
                              .with = b,
                              .range = range});
  return true;
}

void requireSigns(BodyState& body, Type tensor, SourceRange range) {
  std::vector<const DimExpr*> differences;
  for (const DimExpr& extent : tensor->shape)
    if (!extent.hasOpaque() && std::ranges::any_of(extent.terms(), [](const auto& term) { return term.second < 0; }))
      differences.push_back(&extent);
  if (inKernel(body) && differences.size() > 1)
    for (const DimExpr* difference : differences)
      addCheck(*body.function, {.kind = LaunchCheck::Kind::NotNegative, .expected = *difference, .range = range});
}

bool mayAgree(BodyState& body, const DimExpr& a, const DimExpr& b, SourceRange range) {
  return inKernel(body) ? agree(body, a, b, range) : dimEqual(body, a, b) != DimEqual::No;
}

bool shapesAgree(BodyState& body, Type a, Type b, SourceRange range) {
  if (a->rank() != b->rank())
    return false;
  for (uint32_t i = 0; i < a->rank(); ++i)
    if (!mayAgree(body, a->shape[i], b->shape[i], range))
      return false;
  return true;
}

bool isConstantShape(Type type) {
  return std::all_of(type->shape.begin(), type->shape.end(), [](const DimExpr& dim) { return dim.asConstant(); });
}

std::string shapeText(const BodyState& body, Type type) {
  std::string out = "[";
  for (size_t i = 0; i < type->shape.size(); ++i)
    out += (i ? ", " : "") + text(body, type->shape[i]);
  return out + "]";
}

Type valueOf(BodyState& body, Type type) {
  if (type->isTensor())
    return type->isValue ? type : body.types.tensorValue(type->elem, type->shape);
  if (type->kind == TypeKind::Tuple) {
    std::vector<Type> elems;
    for (Type elem : type->elems)
      elems.push_back(valueOf(body, elem));
    return body.types.tuple(std::move(elems));
  }
  return type;
}

Type withElem(BodyState& body, Type type, Type elem) {
  return type->isTensor() ? body.types.tensorValue(elem, type->shape) : elem;
}

DimExpr dimOf(BodyState& body, const Expr* expr) {
  switch (expr->kind) {
  case ExprKind::Int: return DimExpr::constant(static_cast<int64_t>(expr->intValue));
  case ExprKind::DimValue: return expr->dim;
  case ExprKind::Cast: {
    const Type from = expr->args[0]->type;
    const bool isInt = from->kind == TypeKind::Scalar && isInteger(from->scalar);
    const uint32_t kept = inKernel(body) ? std::min(bitWidth(from->scalar), 32u) : bitWidth(from->scalar);
    if (isInt && kept <= bitWidth(expr->type->scalar))  // kernels: extents are taken for less than 2^31
      return dimOf(body, expr->args[0]);
    break;
  }
  case ExprKind::Deref:
    if (expr->args[0]->kind == ExprKind::Var)
      return dimOf(body, expr->args[0]);
    break;
  case ExprKind::Var: {
    if (auto found = body.variableDims.find(expr->variable); found != body.variableDims.end())
      return found->second;
    return ownExtent(body, expr->variable);
  }
  case ExprKind::Binary: {
    // Narrow numbers may wrap, and so do constants.
    if (expr->binaryOp > BinaryOp::Rem || expr->type->kind != TypeKind::Scalar || bitWidth(expr->type->scalar) < 32)
      break;
    const DimExpr lhs = dimOf(body, expr->args[0]), rhs = dimOf(body, expr->args[1]);
    if (const auto a = lhs.asConstant(), b = rhs.asConstant(); a && b && isInteger(expr->type->scalar))
      return DimExpr::constant(static_cast<int64_t>(integerBinary(expr->binaryOp, expr->type->scalar, *a, *b).value));
    switch (expr->binaryOp) {
    case BinaryOp::Add: return DimExpr::add(lhs, rhs);
    case BinaryOp::Sub: return DimExpr::sub(lhs, rhs);
    case BinaryOp::Mul: return DimExpr::mul(lhs, rhs);
    case BinaryOp::Div: return DimExpr::apply(DimAtom::Kind::Div, lhs, rhs);
    default: return DimExpr::apply(DimAtom::Kind::Mod, lhs, rhs);
    }
  }
  case ExprKind::Builtin:
    if (expr->args.size() == 2 && expr->builtin == Builtin::CeilDiv)
      return DimExpr::apply(DimAtom::Kind::CeilDiv, dimOf(body, expr->args[0]), dimOf(body, expr->args[1]));
    if (expr->args.size() == 2 && expr->builtin == Builtin::Min)
      return DimExpr::apply(DimAtom::Kind::Min, dimOf(body, expr->args[0]), dimOf(body, expr->args[1]));
    if (expr->args.size() == 2 && expr->builtin == Builtin::Max)
      return DimExpr::apply(DimAtom::Kind::Max, dimOf(body, expr->args[0]), dimOf(body, expr->args[1]));
    if (expr->builtin == Builtin::Extent && expr->args[0]->type->isTensor())
      return expr->args[0]->type->shape[static_cast<size_t>(expr->ints[0])];
    break;
  default: break;
  }
  return DimExpr::opaque(body.session.newOpaque());
}

DimExpr ownExtent(BodyState& body, const Variable* variable) {
  const uint32_t id = body.session.newOpaque();
  if (variable->isVar)
    body.mutableOpaques.insert(id);
  if (variable->type->kind == TypeKind::Scalar && !(inKernel(body) && variable->isVar))
    body.function->extentVariables[id] = variable;
  return body.variableDims[variable] = DimExpr::opaque(id);
}

bool isCounted(const BodyState& body, const DimExpr& extent) {
  for (const auto& [monomial, coefficient] : extent.terms())
    for (const DimAtom& atom : monomial) {
      if (atom.kind == DimAtom::Kind::Opaque && !body.function->extentVariables.contains(atom.id))
        return false;
      for (const DimExpr& operand : atom.operands)
        if (!isCounted(body, operand))
          return false;
    }
  return true;
}

Type leaveScope(BodyState& body, Type type, size_t firstLocal) {
  if (inKernel(body) || !type || isError(type))
    return type;
  std::vector<std::optional<DimExpr>> values(body.function->dims.size());
  bool any = false;
  for (size_t i = firstLocal; i < body.locals.size(); ++i)
    if (auto id = body.locals[i].dim ? body.locals[i].dim->asVariable() : std::nullopt;
        id && *id >= body.signatureDims) {
      values[*id] = DimExpr::opaque(body.session.newOpaque());
      any = true;
    }
  return any ? substituteDims(type, body.types, values) : type;
}

bool broadcastShapes(BodyState& body, const std::vector<std::vector<DimExpr>>& shapes, std::vector<DimExpr>& out,
                     SourceRange range) {
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
      else if (!agree(body, extent, shape[i], range))
        return false;
    }
  return true;
}

Expr* broadcastTo(BodyState& body, Expr* expr, const std::vector<DimExpr>& shape) {
  const bool isTensor = expr->type->isTensor();
  if (isTensor && expr->type->shape == shape)
    return expr;
  Type elem = isTensor ? expr->type->elem : expr->type;
  Expr* out = make(body, ExprKind::Broadcast, body.types.tensorValue(elem, shape), expr->range, {expr});
  for (size_t i = 0; isTensor && i < expr->type->rank(); ++i)
    out->ints.push_back(static_cast<int64_t>(shape.size() - expr->type->rank() + i));
  return out;
}

/// Where `fewer`, one of two operands, would fit the other one with one more extent of 1.
static void helpKeep(BodyState& body, diag::DiagnosticBuilder& builder, const Expr& fewer,
                     const std::vector<std::vector<DimExpr>>& shapes) {
  const auto& [small, large] = std::minmax(shapes[0], shapes[1], [](auto& a, auto& b) { return a.size() < b.size(); });
  if (small.size() + 1 != large.size())
    return;
  for (size_t at = 1; at <= small.size(); ++at) {
    std::vector<DimExpr> kept = small;
    kept.insert(kept.begin() + static_cast<ptrdiff_t>(at), DimExpr::constant(1));
    if (!std::ranges::equal(kept, large, [](auto& own, auto& other) { return own == other || own.asConstant() == 1; }))
      continue;
    const std::string shape = shapeText(body, body.types.tensorValue(fewer.type->elem, kept));
    const bool isReduction =
        fewer.kind == ExprKind::Builtin && fewer.builtin >= Builtin::ReduceSum && fewer.builtin <= Builtin::ReduceMean;
    builder.help(isReduction
                     ? base::concat("`", shape, "` would fit: `keepdim = true` keeps the dimension that was reduced")
                     : base::concat("`.reshape(", shape, ")` would fit"));
    return;
  }
}

bool broadcast(BodyState& body, std::vector<Expr*>& operands, std::string_view what, SourceRange range) {
  std::vector<std::vector<DimExpr>> shapes;
  for (const Expr* operand : operands)
    shapes.push_back(operand->type->isTensor() ? operand->type->shape : std::vector<DimExpr>{});
  std::vector<DimExpr> shape;
  if (!broadcastShapes(body, shapes, shape, range)) {
    auto builder = error(body, "E0304", range, base::concat("the shapes of `", what, "` do not match"));
    for (const Expr* operand : operands)
      if (operand->type->isTensor())
        builder.label(operand->range, "`" + shapeText(body, operand->type) + "`");
    builder.note("extents are aligned at the last one; they must be equal or 1");
    if (operands.size() == 2)
      helpKeep(body, builder, *operands[shapes[0].size() < shapes[1].size() ? 0 : 1], shapes);
    return false;
  }
  for (Expr*& operand : operands)
    operand = broadcastTo(body, operand, shape);
  return true;
}

void learnDims(Type param, Type arg, std::vector<std::optional<DimExpr>>& values) {
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

bool checkDims(BodyState& body, Type param, Type arg, const std::vector<std::optional<DimExpr>>& values,
               const Function& callee, SourceRange argRange, std::string_view paramName) {
  if (param->kind == TypeKind::Ref)
    return checkDims(body, param->elem, arg->kind == TypeKind::Ref ? arg->elem : arg, values, callee, argRange,
                     paramName);
  bool ok = true;
  if (param->isTensor() && arg->isTensor())
    for (uint32_t i = 0; i < param->rank() && i < arg->rank() && ok; ++i) {
      const DimExpr expected = param->shape[i].substitute(values);
      if (mayAgree(body, expected, arg->shape[i], argRange))
        continue;
      ok = false;
      const std::string wanted = param->shape[i].text(callee.dimNames());
      const std::string meant =
          wanted == text(body, expected) ? wanted : base::concat(wanted, "` = `", text(body, expected));
      auto builder = error(body, "E0334", argRange,
                           base::concat("extent ", i, " of `", paramName, "` must be `", meant, "`, but it is `",
                                        text(body, arg->shape[i]), "`"));
      builder.primary("`" + shapeText(body, arg) + "`");
      if (const std::string numbers = text(body, expected) + text(body, arg->shape[i]);
          numbers.find('_') != std::string::npos)
        builder.note("`_` stands for a number that only the running program knows");
      for (const Variable* other : callee.params)
        if (other->name == paramName)
          builder.label(other->range, "declared here as `" + lang::text(other->type, callee.dimNames()) + "`");
    }
  for (size_t i = 0; i < param->elems.size() && i < arg->elems.size(); ++i)
    ok = checkDims(body, param->elems[i], arg->elems[i], values, callee, argRange, paramName) && ok;
  return ok;
}

}  // namespace vortex::lang
