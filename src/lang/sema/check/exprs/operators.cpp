// Unary and binary operators, matrix multiplication.
#include "lang/sema/check/exprs/operators.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/fields.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/tiles/fragments.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"

namespace vortex::lang {

static Expr* matmul(BodyState& body, Expr* lhs, Expr* rhs, SourceRange range, SourceRange opRange, Type expected);

BinaryOp scalarOperator(syn::BinaryOp op) {
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

namespace {

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

void hostTensorArithmetic(BodyState& body, SourceRange range) {
  error(body, "E0405", range, "tensors are computed in kernels, not in host code")
      .primary("this is host code")
      .help("move the expression into a `kernel`, or read the data back with `.to_host()`");
}

Expr* checkUnary(BodyState& body, const syn::UnaryExpr* expr, Type expected) {
  if (expr->op == syn::UnaryOp::Neg) {
    if (auto* literal = expr->operand->tryAs<syn::IntExpr>())
      if (Expr* out = checkInt(body, literal, expected, true)) {
        out->range = expr->range;
        return out;
      }
    if (auto* literal = expr->operand->tryAs<syn::FloatExpr>()) {
      Expr* out = checkFloat(body, literal, expected, true);
      out->range = expr->range;
      return out;
    }
  }
  if (expr->op == syn::UnaryOp::Deref) {
    Expr* operand = check(body, expr->operand);
    if (isError(operand))
      return operand;
    if (operand->type->kind != TypeKind::Ref) {
      error(body, "E0303", expr->range,
            "`" + text(body, operand->type) + "` is not a reference and cannot be dereferenced");
      return errorExpr(body, expr->range);
    }
    return make(body, ExprKind::Deref, operand->type->elem, expr->range, {operand});
  }
  Expr* operand = value(body, expr->operand, expected);
  if (isError(operand))
    return errorExpr(body, expr->range);
  Type elem = elementOf(operand->type);
  const bool isNeg = expr->op == syn::UnaryOp::Neg;
  if (isNeg && isField(body, operand->type))
    return fieldCall(body, operand->type, "neg", {operand}, expr->range);
  if (isNeg ? !grants(body, operand->type, {BuiltinTrait::Signed}, expr->range, "`-`")
            : !grants(body, operand->type, {BuiltinTrait::Integer}, expr->range, "`!`"))
    return errorExpr(body, expr->range);
  if (!elem || (isNeg ? elem->scalar == Scalar::Bool : isFloat(elem->scalar))) {
    error(body, "E0303", expr->range,
          base::concat("`", isNeg ? "-" : "!", "` does not apply to `", text(body, operand->type), "`"));
    return errorExpr(body, expr->range);
  }
  if (isNeg && isUnsigned(elem->scalar)) {
    error(body, "E0303", expr->range, base::concat("`-` does not apply to the unsigned type `", text(body, elem), "`"))
        .help(base::concat("convert it first: `-(",
                           castText(body, operand, withElem(body, operand->type, body.types.scalar(Scalar::I64)), ""),
                           ")`"));
    return errorExpr(body, expr->range);
  }
  if (operand->type->isTensor() && !inKernel(body) && body.instance) {
    hostTensorArithmetic(body, expr->range);
    return errorExpr(body, expr->range);
  }
  Expr* out = make(body, ExprKind::Unary, valueOf(body, operand->type), expr->range, {operand});
  out->unaryOp = isNeg ? UnaryOp::Neg : UnaryOp::Not;
  return out;
}

Expr* checkBinary(BodyState& body, const syn::BinaryExpr* expr, Type expected) {
  const syn::BinaryOp op = expr->op;
  if (op == syn::BinaryOp::MatMul) {
    Expr* lhs = value(body, expr->lhs);
    Expr* rhs = value(body, expr->rhs);
    if (isError(lhs) || isError(rhs))
      return errorExpr(body, expr->range);
    return matmul(body, lhs, rhs, expr->range, expr->opRange, expected);
  }
  const BinaryOp lowered = scalarOperator(op);
  Type hint = isComparison(lowered) || isLogical(lowered) ? nullptr : expected;
  const bool leftFree = isUntyped(body, expr->lhs), rightFree = isUntyped(body, expr->rhs);
  Expr *lhs = nullptr, *rhs = nullptr;
  if (leftFree && !rightFree && !isShift(lowered)) {
    rhs = value(body, expr->rhs, hint);
    lhs = value(body, expr->lhs, isError(rhs) ? nullptr : rhs->type);
  } else {
    // Two plain numbers: one with a fraction makes both floats.
    const syn::Expr* const both[] = {expr->lhs, expr->rhs};
    if (leftFree && rightFree && !hint && !isShift(lowered))
      hint = defaultOf(body, both);
    lhs = value(body, expr->lhs, hint);
    rhs = value(body, expr->rhs,
                isError(lhs)                        ? nullptr
                : rightFree                         ? lhs->type
                : lhs->type->kind == TypeKind::Enum ? lhs->type
                                                    : hint);
  }
  if (isError(lhs) || isError(rhs))
    return errorExpr(body, expr->range);
  return binary(body, lowered, lhs, rhs, expr->range, expr->opRange);
}

Expr* binary(BodyState& body, BinaryOp op, Expr* lhs, Expr* rhs, SourceRange range, SourceRange opRange) {
  const bool isEquality = op == BinaryOp::Eq || op == BinaryOp::Ne;
  if (lhs->type == rhs->type && isEquality &&
      (lhs->type->kind == TypeKind::Enum || lhs->type->kind == TypeKind::String)) {
    Expr* out = make(body, ExprKind::Binary, body.types.boolean(), range, {lhs, rhs});
    out->binaryOp = op;
    return out;
  }
  if (Expr* call = fieldBinary(body, op, lhs, rhs, range, opRange))
    return call;
  const std::string operation = base::concat("`", operatorText(op), "`");
  for (const Expr* operand : {lhs, rhs})
    if (!grants(body, operand->type, traitsOf(op), opRange, operation))
      return errorExpr(body, range);
  if (!elementOf(lhs->type) || !elementOf(rhs->type)) {
    badOperands(body, op, lhs, rhs, opRange);
    return errorExpr(body, range);
  }
  if (isShift(op)) {
    Type count = elementOf(rhs->type);
    if (isInteger(count->scalar) && count != elementOf(lhs->type))
      rhs = cast(body, rhs, withElem(body, rhs->type, elementOf(lhs->type)));
  } else if (!unify(body, lhs, rhs, operatorText(op), opRange)) {
    return errorExpr(body, range);
  }
  if (!applies(op, elementOf(lhs->type)->scalar) || (isShift(op) && !isInteger(elementOf(rhs->type)->scalar))) {
    badOperands(body, op, lhs, rhs, opRange);
    return errorExpr(body, range);
  }
  if (lhs->type->isTensor() || rhs->type->isTensor()) {
    if (!inKernel(body) && body.instance) {
      hostTensorArithmetic(body, range);
      return errorExpr(body, range);
    }
    if (adoptFragment(body, lhs, rhs) || adoptFragment(body, rhs, lhs))
      return errorExpr(body, range);
    std::vector<Expr*> operands{lhs, rhs};
    if (!broadcast(body, operands, operatorText(op), opRange))
      return errorExpr(body, range);
    lhs = operands[0];
    rhs = operands[1];
  }
  Type type = valueOf(body, lhs->type);
  if (isComparison(op))
    type = withElem(body, type, body.types.boolean());
  Expr* out = make(body, ExprKind::Binary, type, range, {lhs, rhs});
  out->binaryOp = op;
  return out;
}

void badOperands(BodyState& body, BinaryOp op, const Expr* lhs, const Expr* rhs, SourceRange opRange) {
  auto builder = error(body, "E0303", opRange,
                       base::concat("`", operatorText(op), "` does not apply to `", text(body, lhs->type), "` and `",
                                    text(body, rhs->type), "`"));
  builder.label(lhs->range, "`" + text(body, lhs->type) + "`").label(rhs->range, "`" + text(body, rhs->type) + "`");
  if (op == BinaryOp::Add && (lhs->type->kind == TypeKind::String || rhs->type->kind == TypeKind::String))
    builder.help("texts are joined by `format(\"{}{}\", a, b)`");
  const bool isOfLists = lhs->type->kind == TypeKind::Vec || rhs->type->kind == TypeKind::Vec;
  if (isOfLists && (op == BinaryOp::Eq || op == BinaryOp::Ne))
    builder.help("`assert_eq(a, b)` compares lists; else compare their elements");
  else if (isOfLists)
    builder.help("a `Vec` is host memory; use `.map(|x| …)`, or compute with tensors in a kernel");
}

static Expr* reshaped(BodyState& body, Expr* x, std::vector<DimExpr> shape) {
  return makeBuiltin(body, Builtin::Reshape, body.types.tensorValue(x->type->elem, std::move(shape)), x->range, {x});
}

/// A vector is a row on the left and a column on the right of `@`, and the result has no such dimension.
static Expr* productWithVector(BodyState& body, Expr* lhs, Expr* rhs, SourceRange range, SourceRange opRange,
                               Type expected) {
  const bool isRow = lhs->type->rank() == 1;
  Expr*& vector = isRow ? lhs : rhs;
  const DimExpr one = DimExpr::constant(1), length = vector->type->shape[0];
  vector = reshaped(body, vector, isRow ? std::vector<DimExpr>{one, length} : std::vector<DimExpr>{length, one});
  Expr* product = matmul(body, lhs, rhs, range, opRange, expected);
  if (isError(product))
    return product;
  std::vector<DimExpr> shape = product->type->shape;
  shape.erase(shape.end() - (isRow ? 2 : 1));
  return reshaped(body, product, std::move(shape));
}

static Expr* matmul(BodyState& body, Expr* lhs, Expr* rhs, SourceRange range, SourceRange opRange, Type expected) {
  auto isVector = [](const Expr* side) { return side->type->isTensor() && side->type->rank() == 1; };
  auto isMatrix = [](const Expr* side) { return side->type->isTensor() && side->type->rank() >= 2; };
  if (!(isMatrix(lhs) && (isMatrix(rhs) || isVector(rhs))) && !(isVector(lhs) && isMatrix(rhs))) {
    const Expr* culprit = isMatrix(lhs) ? rhs : lhs;
    error(body, "E0303", opRange,
          "`@` multiplies matrices with matrices and vectors, not `" + text(body, culprit->type) + "`")
        .label(culprit->range, "`" + text(body, culprit->type) + "`")
        .help(isVector(lhs) && isVector(rhs) ? "the inner product of two vectors is `sum(a * b)`"
                                             : "use `*` for elementwise products");
    return errorExpr(body, range);
  }
  if (!inKernel(body) && body.instance) {
    hostTensorArithmetic(body, range);
    return errorExpr(body, range);
  }
  for (const Expr* operand : {lhs, rhs})
    if (!grants(body, operand->type, {BuiltinTrait::Numeric}, opRange, "`@`"))
      return errorExpr(body, range);
  if (isVector(lhs) || isVector(rhs))
    return productWithVector(body, lhs, rhs, range, opRange, expected);
  if (!unify(body, lhs, rhs, "@", opRange))
    return errorExpr(body, range);
  const std::vector<DimExpr>&a = lhs->type->shape, &b = rhs->type->shape;
  const DimExpr inner = a.back(), other = b[b.size() - 2];
  if (!mayAgree(body, inner, other, opRange)) {
    auto builder =
        error(body, "E0305", opRange,
              base::concat("the inner extents of `@` differ: `", text(body, inner), "` and `", text(body, other), "`"));
    auto labelled = [&](Expr* side, const DimExpr& extent, std::string_view which) {
      const Expr* written = beforeReshape(side);
      builder.label(written->range, base::concat("`", shapeText(body, written->type), "`: its ",
                                                 written == side ? which : "", "extent is `", text(body, extent), "`"));
    };
    labelled(lhs, inner, "last ");
    labelled(rhs, other, "second to last ");
    if (dimEqual(body, inner, b.back()) == DimEqual::Yes)
      builder.help(base::concat("`@ ", body.session.sources.text(rhs->range), ".transpose()` would fit"));
    else if (dimEqual(body, a[a.size() - 2], other) == DimEqual::Yes)
      builder.help(base::concat("`", body.session.sources.text(lhs->range), ".transpose() @` would fit"));
    return errorExpr(body, range);
  }
  const DimExpr rows = a[a.size() - 2], columns = b.back();
  std::vector<DimExpr> batchA(a.begin(), a.end() - 2), batchB(b.begin(), b.end() - 2), batch;
  if (!broadcastShapes(body, {batchA, batchB}, batch, opRange)) {
    error(body, "E0304", opRange, "the leading extents of `@` do not match")
        .label(lhs->range, "`" + shapeText(body, lhs->type) + "`")
        .label(rhs->range, "`" + shapeText(body, rhs->type) + "`");
    return errorExpr(body, range);
  }
  std::vector<DimExpr> shapeA = batch, shapeB = batch, result = batch;
  shapeA.insert(shapeA.end(), {rows, inner});
  shapeB.insert(shapeB.end(), {other, columns});
  result.insert(result.end(), {rows, columns});
  Type elem = lhs->type->elem;
  Type wanted = expected && expected->isTensor() ? expected->elem : nullptr;
  if (wanted && mayAccumulateIn(elem, wanted))
    elem = wanted;  // accumulate in the destination's type
  return make(body, ExprKind::Dot, body.types.tensorValue(elem, std::move(result)), range,
              {broadcastTo(body, lhs, shapeA), broadcastTo(body, rhs, shapeB)});
}

}  // namespace vortex::lang
