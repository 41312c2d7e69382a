// Implicit conversions (language.md §3) and the errors when there is none.
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/open.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/implements.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/shapes.h"
#include "lang/sema/check/types/spaces.h"

#include "base/text.h"
#include "lang/sema/integers.h"

#include <algorithm>

namespace vortex::lang {

static Expr* convertTensor(BodyState& body, Expr* expr, Type from, Type to, Site site, SourceRange because = {},
                           std::string_view becauseText = {});

namespace {

// Unsigned integers widen up to usize.
bool widens(Type from, Type to) {
  if (!isInt(from) || !isInt(to) || !isUnsigned(from->scalar) || !isUnsigned(to->scalar) || from == to)
    return false;
  return bitWidth(from->scalar) < bitWidth(to->scalar) || (from->scalar == Scalar::U64 && to->scalar == Scalar::Usize);
}

std::string article(const std::string& type) { return "`" + type + "`"; }

}  // namespace

bool mayAccumulateIn(Type elem, Type sum) {
  if (elem->kind != TypeKind::Scalar || sum->kind != TypeKind::Scalar)
    return false;
  if (elem->param || sum->param)  // of a generic definition: instances know how wide it is
    return elem != sum && elem->scalar != Scalar::Bool && sum->scalar != Scalar::Bool;
  if (bitWidth(sum->scalar) <= bitWidth(elem->scalar))
    return false;
  if (isFloat(elem->scalar) || isFloat(sum->scalar))
    return isFloat(elem->scalar) && isFloat(sum->scalar);
  const bool holdsSign = !isUnsigned(sum->scalar) || isUnsigned(elem->scalar);
  return isInteger(elem->scalar) && isInteger(sum->scalar) && holdsSign;
}

Expr* beforeReshape(Expr* expr) {
  const bool isMade =
      expr->kind == ExprKind::Builtin && expr->builtin == Builtin::Reshape && expr->args[0]->range == expr->range;
  return isMade ? expr->args[0] : expr;
}

bool accumulateIn(BodyState& body, Expr* expr, Type to) {
  Expr* product = beforeReshape(expr);
  if (product->kind != ExprKind::Dot || !to->isTensor() || !mayAccumulateIn(expr->type->elem, to->elem))
    return false;
  product->type = withElem(body, product->type, to->elem);
  expr->type = to;
  return true;
}

Expr* cast(BodyState& body, Expr* expr, Type to) {
  if (expr->type == to || accumulateIn(body, expr, to))
    return expr;
  return make(body, ExprKind::Cast, to, expr->range, {expr});
}

/// `(a + b)`, but not `(a) + (b)`.
static bool isInParentheses(std::string_view source) {
  int depth = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    depth += source[i] == '(' ? 1 : source[i] == ')' ? -1 : 0;
    if (depth == 0 && i + 1 < source.size())
      return false;
  }
  return !source.empty();
}

std::string operandText(const BodyState& body, const Expr* expr) {
  const std::string_view source = body.session.sources.text(expr->range);
  const bool isOne = isInParentheses(source) ||
                     (expr->kind != ExprKind::Binary && expr->kind != ExprKind::Unary && expr->kind != ExprKind::Cast &&
                      expr->kind != ExprKind::If && expr->kind != ExprKind::Broadcast && expr->kind != ExprKind::Dot);
  return source.size() > 80 ? "(…)" : isOne ? std::string(source) : base::concat("(", source, ")");
}

/// `x as f32`, in parentheses where the operator around it would be read first.
std::string castText(const BodyState& body, const Expr* expr, Type to, std::string_view within) {
  const std::string cast = base::concat(operandText(body, expr), " as ", text(body, to));
  return within == "**" || within == "@" ? "(" + cast + ")" : cast;
}

bool unify(BodyState& body, Expr*& lhs, Expr*& rhs, std::string_view what, SourceRange range) {
  const auto elem = [](const Expr* expr) { return expr->type->isTensor() ? expr->type->elem : expr->type; };
  Type a = elem(lhs), b = elem(rhs);
  if (a == b)
    return true;
  const auto castTo = [&](Expr*& expr, Type to) { expr = cast(body, expr, withElem(body, expr->type, to)); };
  if (isInt(a) && isInt(b)) {
    if (auto interval = literalInterval(body, lhs); interval && holds(b, *interval))
      return castTo(lhs, b), true;
    if (auto interval = literalInterval(body, rhs); interval && holds(a, *interval))
      return castTo(rhs, a), true;
    if (widens(a, b))
      return castTo(lhs, b), true;
    if (widens(b, a))
      return castTo(rhs, a), true;
  }
  if (isFlt(a) && isFlt(b) && lhs->type->isTensor() != rhs->type->isTensor()) {
    castTo(lhs->type->isTensor() ? rhs : lhs, lhs->type->isTensor() ? a : b);
    return true;
  }
  if (learnType(body, lhs, b) || learnType(body, rhs, a))
    return false;
  if ((lhs->kind == ExprKind::Float &&
       !grants(body, b, {BuiltinTrait::Float}, lhs->range, "a number with a fraction")) ||
      (rhs->kind == ExprKind::Float && !grants(body, a, {BuiltinTrait::Float}, rhs->range, "a number with a fraction")))
    return false;
  auto builder = error(body, "E0303", range,
                       base::concat("`", what, "` needs operands of one type, not ", article(text(body, lhs->type)),
                                    " and ", article(text(body, rhs->type))));
  builder.label(lhs->range, article(text(body, lhs->type))).label(rhs->range, article(text(body, rhs->type)));
  if (a->kind == TypeKind::Scalar && b->kind == TypeKind::Scalar && a->scalar != Scalar::Bool &&
      b->scalar != Scalar::Bool) {
    const bool isWider = isFlt(b) && (!isFlt(a) || bitWidth(b->scalar) > bitWidth(a->scalar));
    // What is written as a conversion already was meant to be of that type.
    const bool convertLeft =
        (lhs->kind == ExprKind::Cast) == (rhs->kind == ExprKind::Cast) ? isWider : rhs->kind == ExprKind::Cast;
    builder.help(
        base::concat("convert one: `", castText(body, convertLeft ? lhs : rhs, convertLeft ? b : a, what), "`"));
  }
  return false;
}

Expr* convert(BodyState& body, Expr* expr, Type to, Site site, SourceRange because, std::string_view becauseText) {
  Type from = expr->type;
  if (from == to || isError(from) || from->kind == TypeKind::Never)
    return expr;
  if (isError(to))
    return errorExpr(body, expr->range);
  if (to->kind == TypeKind::Ref) {
    if (from->kind == TypeKind::Ref && !(to->isMutable && !from->isMutable) && from->elem->kind == to->elem->kind) {
      if (Expr* inner = from->elem->isTensor()
                            ? convertTensor(body, expr, from->elem, to->elem, Site::Argument, because, becauseText)
                            : nullptr)
        return inner;
      if (from->elem == to->elem)  // reborrow
        return make(body, ExprKind::Ref, to, expr->range,
                    {make(body, ExprKind::Deref, from->elem, expr->range, {expr})});
      if (from->elem->kind == TypeKind::Struct && from->elem->decl == to->elem->decl)
        return expr;
    }
    return mismatch(body, expr, to, because, becauseText);
  }
  if (from->kind == TypeKind::Ref) {
    Expr* inner = deref(body, expr);
    if (isCopy(inner->type) || inner->type->isTensor())
      return convert(body, inner, to, site, because, becauseText);
    return mismatch(body, expr, to, because, becauseText);
  }
  if (to->isTensor() && from->isTensor())
    if (Expr* out = convertTensor(body, expr, from, to, site, because, becauseText))
      return out;
  if (to->isTensor() && from->kind == TypeKind::Scalar && site == Site::Assign && to->elem->kind == TypeKind::Scalar) {
    Expr* scalar = isFlt(from) && isFlt(to->elem) ? cast(body, expr, to->elem)
                                                  : convert(body, expr, to->elem, Site::Operand, because, becauseText);
    return isError(scalar) ? scalar : broadcastTo(body, scalar, to->shape);
  }
  if (isInt(from) && isInt(to)) {
    if (widens(from, to))
      return cast(body, expr, to);
    if (auto interval = literalInterval(body, expr); interval && holds(to, *interval))
      return cast(body, expr, to);
  }
  // A store to memory rounds to the destination's float type.
  if (isFlt(from) && isFlt(to) && (site == Site::Assign && body.storesToTensor))
    return cast(body, expr, to);
  if (from->kind == TypeKind::Struct && to->kind == TypeKind::Struct && from->decl == to->decl)
    return expr;  // extents are part of the value
  if (from->kind == TypeKind::Tuple && to->kind == TypeKind::Tuple && from->elems.size() == to->elems.size()) {
    if (expr->kind == ExprKind::MakeTuple) {
      for (size_t i = 0; i < expr->args.size(); ++i) {
        expr->args[i] = convert(body, expr->args[i], to->elems[i], site, because, becauseText);
        if (isError(expr->args[i]))
          return errorExpr(body, expr->range);
      }
      expr->type = to;
      return expr;
    }
    bool same = true;
    for (size_t i = 0; i < from->elems.size(); ++i)
      same = same && from->elems[i]->isTensor() && to->elems[i]->isTensor() &&
             from->elems[i]->elem == to->elems[i]->elem && sameShape(body, from->elems[i], to->elems[i]);
    if (same)
      return expr;
  }
  if ((from->kind == TypeKind::Array || from->kind == TypeKind::Vec) && from->kind == to->kind &&
      from->elem->isTensor() && to->elem->isTensor() && sameShape(body, from->elem, to->elem) &&
      from->elem->elem == to->elem->elem && from->count == to->count)
    return expr;
  return mismatch(body, expr, to, because, becauseText);
}

/// Null: no such conversion (nothing reported).
static Expr* convertTensor(BodyState& body, Expr* expr, Type from, Type to, Site site, SourceRange because,
                           std::string_view becauseText) {
  if (from->elem != to->elem) {
    const bool rounds = isFlt(from->elem) && isFlt(to->elem) && site != Site::Argument && site != Site::Operand &&
                        expr->type->isTensor();
    if (!rounds || !shapesAgree(body, from, to, expr->range))
      return nullptr;
    return cast(body, expr, body.types.tensorValue(to->elem, from->shape));
  }
  if (!shapesAgree(body, from, to, expr->range)) {
    auto builder =
        error(body, "E0304", expr->range,
              base::concat("expected the shape `", shapeText(body, to), "`, found `", shapeText(body, from), "`"));
    builder.primary("`" + shapeText(body, from) + "`");
    if (body.assignedTo)
      builder.label(body.assignedTo->range, base::concat("declared here as `", text(body, body.assignedTo->type), "`"));
    else if (because.isValid() && because.file == expr->range.file && !becauseText.empty())
      builder.label(because, std::string(becauseText));
    if (inKernel(body) && from->rank() == to->rank() &&
        (shapeText(body, from) + shapeText(body, to)).find('_') != std::string::npos)
      builder.help("an extent `_` is computed while the kernel runs: both sides need the same variable for it, as in "
                   "`y[0..n] = x[0..n]`");
    builder.emit();
    return errorExpr(body, expr->range);
  }
  const bool spacesAgree = from->isValue || to->isValue || (from->space == to->space && from->param == to->param) ||
                           site == Site::Assign || site == Site::Return;
  if (!spacesAgree && (site == Site::Argument || site == Site::Let)) {
    auto builder = error(body, "E0338", expr->range,
                         base::concat("expected a tensor in ", spaceText(to), ", found one in ", spaceText(from)));
    builder.primary("`" + text(body, from) + "`");
    if (because.isValid() && because.file == expr->range.file)
      builder.label(because, std::string(becauseText));
    if (to->space == Space::Constant)
      builder.help("make it there: `let c: Tensor<…> @constant = Tensor.from_host(v)`");
    else if (site == Site::Argument)
      builder.help("copy it into a tensor of that space, or make the function generic: `M: MemorySpace + Readable`");
    else if (inKernel(body))
      builder.help("copy it: `.copy()` behind it");
    return errorExpr(body, expr->range);
  }
  return expr;
}

Expr* mismatch(BodyState& body, Expr* expr, Type to, SourceRange because, std::string_view becauseText) {
  Type from = expr->type;
  if (learnType(body, expr, to))
    return errorExpr(body, expr->range);
  if (expr->kind == ExprKind::Float &&
      !grants(body, to, {BuiltinTrait::Float}, expr->range, "a number with a fraction"))
    return errorExpr(body, expr->range);
  if (expr->kind == ExprKind::Int && to->param && to->kind == TypeKind::Struct &&
      !grants(body, to, {BuiltinTrait::Numeric}, expr->range, "a number"))
    return errorExpr(body, expr->range);
  auto builder = error(body, "E0301", expr->range,
                       base::concat("expected `", text(body, to), "`, found `", text(body, from), "`"));
  if (because.isValid() && because.file == expr->range.file)
    builder.label(because, std::string(becauseText));
  const auto isNumber = [](Type type) { return type->kind == TypeKind::Scalar && type->scalar != Scalar::Bool; };
  if (isNumber(from) && isNumber(to))
    builder.help(base::concat("convert it: `", castText(body, expr, to, ""), "`"));
  else if (to->kind == TypeKind::Ref && from == to->elem)
    builder.help(base::concat("lend it: `", to->isMutable ? "&mut " : "&", operandText(body, expr), "`"));
  else if (expr->kind == ExprKind::Ref && to->kind == TypeKind::Ref && to->isMutable &&
           from->elem->kind == to->elem->kind)
    builder.help(base::concat("lend it to be written: `&mut ", operandText(body, expr->args[0]), "`"));
  else if (from->kind == TypeKind::Vec && (to->isTensor() || (to->kind == TypeKind::Ref && to->elem->isTensor())))
    builder.help(base::concat("copy it to the device: `Tensor.from_host(", operandText(body, expr), ")`"));
  else if (expr->kind == ExprKind::MakeArray && to->isTensor())
    builder.help(base::concat("copy it to the device: `Tensor.from_host(vec!", operandText(body, expr), ")`"));
  else if (from->isTensor() && to->kind == TypeKind::Vec)
    builder.help(base::concat("copy it to the host: `", operandText(body, expr), ".to_host()`"));
  return errorExpr(body, expr->range);
}

}  // namespace vortex::lang
