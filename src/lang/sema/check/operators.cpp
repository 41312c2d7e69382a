// Unary and binary operators, matrix multiplication.
#include "lang/sema/check/checker.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

BinaryOp lower(syn::BinaryOp op) {
  switch (op) {
  case syn::BinaryOp::Add: return BinaryOp::Add;
  case syn::BinaryOp::Sub: return BinaryOp::Sub;
  case syn::BinaryOp::Mul: return BinaryOp::Mul;
  case syn::BinaryOp::Div: return BinaryOp::Div;
  case syn::BinaryOp::Rem: return BinaryOp::Rem;
  case syn::BinaryOp::Pow: return BinaryOp::Pow;
  case syn::BinaryOp::Shl: return BinaryOp::Shl;
  case syn::BinaryOp::Shr: return BinaryOp::Shr;
  case syn::BinaryOp::BitAnd: return BinaryOp::BitAnd;
  case syn::BinaryOp::BitOr: return BinaryOp::BitOr;
  case syn::BinaryOp::BitXor: return BinaryOp::BitXor;
  case syn::BinaryOp::And: return BinaryOp::And;
  case syn::BinaryOp::Or: return BinaryOp::Or;
  case syn::BinaryOp::Eq: return BinaryOp::Eq;
  case syn::BinaryOp::Ne: return BinaryOp::Ne;
  case syn::BinaryOp::Lt: return BinaryOp::Lt;
  case syn::BinaryOp::Le: return BinaryOp::Le;
  case syn::BinaryOp::Gt: return BinaryOp::Gt;
  case syn::BinaryOp::Ge:
  case syn::BinaryOp::MatMul: return BinaryOp::Ge;
  }
  return BinaryOp::Add;
}

bool isComparison(BinaryOp op) { return op >= BinaryOp::Eq; }
bool isLogical(BinaryOp op) { return op == BinaryOp::And || op == BinaryOp::Or; }
bool isShift(BinaryOp op) { return op == BinaryOp::Shl || op == BinaryOp::Shr; }
bool isBitwise(BinaryOp op) { return op == BinaryOp::BitAnd || op == BinaryOp::BitOr || op == BinaryOp::BitXor; }

// The scalar a value computes with, or null.
Type elementOf(Type type) {
  Type elem = type->isTensor() ? type->elem : type;
  return elem->kind == TypeKind::Scalar ? elem : nullptr;
}

bool applies(BinaryOp op, Scalar scalar) {
  if (isLogical(op))
    return scalar == Scalar::Bool;
  if (op == BinaryOp::Eq || op == BinaryOp::Ne)
    return true;
  if (isBitwise(op))
    return !isFloat(scalar);
  if (isShift(op))
    return isInteger(scalar);
  return scalar != Scalar::Bool;
}

/// The traits that give a generic parameter the operator, the one to suggest first.
std::initializer_list<BuiltinTrait> traitsOf(BinaryOp op) {
  using enum BuiltinTrait;
  static constexpr std::initializer_list<BuiltinTrait> kInteger{Integer}, kNumeric{Numeric};
  if (isLogical(op))
    return {};
  if (isBitwise(op) || isShift(op))
    return kInteger;
  return kNumeric;
}

}  // namespace

std::string_view operatorText(BinaryOp op) {
  constexpr std::string_view kTexts[] = {"+", "-",  "*",  "/",  "%",  "**", "<<", ">>", "&", "|",
                                         "^", "&&", "||", "==", "!=", "<",  "<=", ">",  ">="};
  return kTexts[static_cast<size_t>(op)];
}

void Checker::hostTensorArithmetic(SourceRange range) {
  error("E0405", range, "tensors are computed in kernels, not in host code")
      .primary("this is host code")
      .help("move the expression into a `kernel`, or read the data back with `.to_host()`");
}

Expr* Checker::checkUnary(const syn::UnaryExpr* expr, Type expected) {
  if (expr->op == syn::UnaryOp::Neg) {
    if (auto* literal = expr->operand->tryAs<syn::IntExpr>())
      if (Expr* out = checkInt(literal, expected, true)) {
        out->range = expr->range;
        return out;
      }
    if (auto* literal = expr->operand->tryAs<syn::FloatExpr>()) {
      Expr* out = checkFloat(literal, expected, true);
      out->range = expr->range;
      return out;
    }
  }
  if (expr->op == syn::UnaryOp::Deref) {
    Expr* operand = check(expr->operand);
    if (isError(operand))
      return operand;
    if (operand->type->kind != TypeKind::Ref) {
      error("E0303", expr->range, "`" + text(operand->type) + "` is not a reference and cannot be dereferenced");
      return errorExpr(expr->range);
    }
    return make(ExprKind::Deref, operand->type->elem, expr->range, {operand});
  }
  Expr* operand = value(expr->operand, expected);
  if (isError(operand))
    return errorExpr(expr->range);
  Type elem = elementOf(operand->type);
  const bool isNeg = expr->op == syn::UnaryOp::Neg;
  if (isNeg && isField(operand->type))
    return fieldCall(operand->type, "neg", {operand}, expr->range);
  if (isNeg ? !grants(operand->type, {BuiltinTrait::Signed}, expr->range, "`-`")
            : !grants(operand->type, {BuiltinTrait::Integer}, expr->range, "`!`"))
    return errorExpr(expr->range);
  if (!elem || (isNeg ? elem->scalar == Scalar::Bool : isFloat(elem->scalar))) {
    error("E0303", expr->range,
          base::concat("`", isNeg ? "-" : "!", "` does not apply to `", text(operand->type), "`"));
    return errorExpr(expr->range);
  }
  if (isNeg && isUnsigned(elem->scalar)) {
    error("E0303", expr->range, base::concat("`-` does not apply to the unsigned type `", text(elem), "`"))
        .help("convert it first: `-(x as i64)`");
    return errorExpr(expr->range);
  }
  if (operand->type->isTensor() && !inKernel() && instance) {
    hostTensorArithmetic(expr->range);
    return errorExpr(expr->range);
  }
  Expr* out = make(ExprKind::Unary, valueOf(operand->type), expr->range, {operand});
  out->unaryOp = isNeg ? UnaryOp::Neg : UnaryOp::Not;
  return out;
}

Expr* Checker::checkBinary(const syn::BinaryExpr* expr, Type expected) {
  const syn::BinaryOp op = expr->op;
  if (op == syn::BinaryOp::MatMul) {
    Expr* lhs = value(expr->lhs);
    Expr* rhs = value(expr->rhs);
    if (isError(lhs) || isError(rhs))
      return errorExpr(expr->range);
    return matmul(lhs, rhs, expr->range, expr->opRange, expected);
  }
  const BinaryOp lowered = lower(op);
  Type hint = isComparison(lowered) || isLogical(lowered) ? nullptr : expected;
  const bool leftFree = isUntyped(expr->lhs), rightFree = isUntyped(expr->rhs);
  Expr *lhs = nullptr, *rhs = nullptr;
  if (leftFree && !rightFree && !isShift(lowered)) {
    rhs = value(expr->rhs, hint);
    lhs = value(expr->lhs, isError(rhs) ? nullptr : rhs->type);
  } else {
    // Two plain numbers: one with a fraction makes both floats.
    if (leftFree && rightFree && !hint && (isUntypedFloat(expr->lhs) || isUntypedFloat(expr->rhs)))
      hint = types.scalar(Scalar::F32);
    lhs = value(expr->lhs, hint);
    rhs = value(expr->rhs, isError(lhs)                        ? nullptr
                           : rightFree                         ? lhs->type
                           : lhs->type->kind == TypeKind::Enum ? lhs->type
                                                               : hint);
  }
  if (isError(lhs) || isError(rhs))
    return errorExpr(expr->range);
  return binary(lowered, lhs, rhs, expr->range, expr->opRange);
}

Expr* Checker::binary(BinaryOp op, Expr* lhs, Expr* rhs, SourceRange range, SourceRange opRange) {
  const bool isEquality = op == BinaryOp::Eq || op == BinaryOp::Ne;
  if (lhs->type == rhs->type && isEquality &&
      (lhs->type->kind == TypeKind::Enum || lhs->type->kind == TypeKind::String)) {
    Expr* out = make(ExprKind::Binary, types.boolean(), range, {lhs, rhs});
    out->binaryOp = op;
    return out;
  }
  if (Expr* call = fieldBinary(op, lhs, rhs, range, opRange))
    return call;
  const std::string operation = base::concat("`", operatorText(op), "`");
  for (const Expr* operand : {lhs, rhs})
    if (!grants(operand->type, traitsOf(op), opRange, operation))
      return errorExpr(range);
  if (!elementOf(lhs->type) || !elementOf(rhs->type)) {
    badOperands(op, lhs, rhs, opRange);
    return errorExpr(range);
  }
  if (isShift(op)) {
    Type count = elementOf(rhs->type);
    if (isInteger(count->scalar) && count != elementOf(lhs->type))
      rhs = cast(rhs, withElem(rhs->type, elementOf(lhs->type)));
  } else if (!unify(lhs, rhs, operatorText(op), opRange)) {
    return errorExpr(range);
  }
  if (!applies(op, elementOf(lhs->type)->scalar) || (isShift(op) && !isInteger(elementOf(rhs->type)->scalar))) {
    badOperands(op, lhs, rhs, opRange);
    return errorExpr(range);
  }
  if (lhs->type->isTensor() || rhs->type->isTensor()) {
    if (!inKernel() && instance) {
      hostTensorArithmetic(range);
      return errorExpr(range);
    }
    if (adoptFragment(lhs, rhs) || adoptFragment(rhs, lhs))
      return errorExpr(range);
    std::vector<Expr*> operands{lhs, rhs};
    if (!broadcast(operands, operatorText(op), opRange))
      return errorExpr(range);
    lhs = operands[0];
    rhs = operands[1];
  }
  Type type = valueOf(lhs->type);
  if (isComparison(op))
    type = withElem(type, types.boolean());
  Expr* out = make(ExprKind::Binary, type, range, {lhs, rhs});
  out->binaryOp = op;
  return out;
}

void Checker::badOperands(BinaryOp op, const Expr* lhs, const Expr* rhs, SourceRange opRange) {
  auto builder = error(
      "E0303", opRange,
      base::concat("`", operatorText(op), "` does not apply to `", text(lhs->type), "` and `", text(rhs->type), "`"));
  builder.label(lhs->range, "`" + text(lhs->type) + "`").label(rhs->range, "`" + text(rhs->type) + "`");
  if (op == BinaryOp::Add && (lhs->type->kind == TypeKind::String || rhs->type->kind == TypeKind::String))
    builder.help("texts are joined by `format(\"{}{}\", a, b)`");
  if (lhs->type->kind == TypeKind::Vec || rhs->type->kind == TypeKind::Vec)
    builder.help("a `Vec` is host memory; use `.map(|x| …)`, or compute with tensors in a kernel");
}

Expr* Checker::matmul(Expr* lhs, Expr* rhs, SourceRange range, SourceRange opRange, Type expected) {
  if (!lhs->type->isTensor() || !rhs->type->isTensor() || lhs->type->rank() < 2 || rhs->type->rank() < 2) {
    const Expr* culprit = lhs->type->isTensor() && lhs->type->rank() >= 2 ? rhs : lhs;
    error("E0303", opRange, "`@` multiplies tensors of rank 2 or more, not `" + text(culprit->type) + "`")
        .label(culprit->range, "`" + text(culprit->type) + "`")
        .help(culprit->type->isTensor() ? "make it a matrix: `x.reshape([N, 1])`" : "use `*` for elementwise products");
    return errorExpr(range);
  }
  if (!inKernel() && instance) {
    hostTensorArithmetic(range);
    return errorExpr(range);
  }
  for (const Expr* operand : {lhs, rhs})
    if (!grants(operand->type, {BuiltinTrait::Numeric}, opRange, "`@`"))
      return errorExpr(range);
  if (!unify(lhs, rhs, "@", opRange))
    return errorExpr(range);
  const std::vector<DimExpr>&a = lhs->type->shape, &b = rhs->type->shape;
  const DimExpr inner = a.back(), other = b[b.size() - 2];
  if (dimEqual(inner, other) == DimEqual::No || (inKernel() && dimEqual(inner, other) != DimEqual::Yes)) {
    auto builder = error("E0305", opRange,
                         base::concat("the inner extents of `@` differ: `", text(inner), "` and `", text(other), "`"));
    builder.label(lhs->range, base::concat("`", shapeText(lhs->type), "`: its last extent is `", text(inner), "`"));
    builder.label(rhs->range,
                  base::concat("`", shapeText(rhs->type), "`: its second to last extent is `", text(other), "`"));
    if (dimEqual(inner, b.back()) == DimEqual::Yes)
      builder.help(base::concat("`@ ", session.sources.text(rhs->range), ".transpose()` would fit"));
    else if (dimEqual(a[a.size() - 2], other) == DimEqual::Yes)
      builder.help(base::concat("`", session.sources.text(lhs->range), ".transpose() @` would fit"));
    return errorExpr(range);
  }
  const DimExpr rows = a[a.size() - 2], columns = b.back();
  std::vector<DimExpr> batchA(a.begin(), a.end() - 2), batchB(b.begin(), b.end() - 2), batch;
  if (!broadcastShapes({batchA, batchB}, batch)) {
    error("E0304", opRange, "the leading extents of `@` do not match")
        .label(lhs->range, "`" + shapeText(lhs->type) + "`")
        .label(rhs->range, "`" + shapeText(rhs->type) + "`");
    return errorExpr(range);
  }
  std::vector<DimExpr> shapeA = batch, shapeB = batch, result = batch;
  shapeA.insert(shapeA.end(), {rows, inner});
  shapeB.insert(shapeB.end(), {other, columns});
  result.insert(result.end(), {rows, columns});
  Type elem = lhs->type->elem;
  Type wanted = expected && expected->isTensor() ? expected->elem : nullptr;
  if (wanted && mayAccumulateIn(elem, wanted))
    elem = wanted;  // accumulate in the destination's type
  return make(ExprKind::Dot, types.tensorValue(elem, std::move(result)), range,
              {broadcastTo(lhs, shapeA), broadcastTo(rhs, shapeB)});
}

}  // namespace vortex::lang
