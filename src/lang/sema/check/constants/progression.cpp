// Progression literals `[a, b, ..., z]`: they continue arithmetically or geometrically, whichever the first elements and z fit.
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/make.h"

#include "base/text.h"

#include <cmath>

namespace vortex::lang {
namespace {

constexpr size_t kMaxElements = size_t{1} << 16;  // a literal longer than this is a mistake

std::optional<std::vector<__int128>> arithmetic(const std::vector<__int128>& first, __int128 last) {
  const __int128 step = first[1] - first[0];
  for (size_t i = 2; i < first.size(); ++i)
    if (first[i] - first[i - 1] != step)
      return std::nullopt;
  if (step == 0)
    return last == first[0] ? std::optional(first) : std::nullopt;
  const __int128 distance = last - first[0];
  if (distance % step != 0 || distance / step < static_cast<__int128>(first.size()) - 1 ||
      distance / step >= static_cast<__int128>(kMaxElements))
    return std::nullopt;
  std::vector<__int128> out;
  for (__int128 value = first[0];; value += step) {
    out.push_back(value);
    if (value == last)
      return out;
  }
}

std::optional<std::vector<__int128>> geometric(const std::vector<__int128>& first, __int128 last) {
  const __int128 a = first[0], b = first[1];
  if (a == 0 || b == 0 || last == 0)
    return std::nullopt;
  const bool grows = b % a == 0;
  if (!grows && a % b != 0)
    return std::nullopt;
  const __int128 ratio = grows ? b / a : a / b;
  const auto next = [&](__int128 value) -> std::optional<__int128> {
    if (grows)
      return value * ratio;
    return value % ratio == 0 ? std::optional(value / ratio) : std::nullopt;
  };
  for (size_t i = 2; i < first.size(); ++i)
    if (next(first[i - 1]) != first[i])
      return std::nullopt;
  if (ratio == 1)
    return last == a ? std::optional(first) : std::nullopt;
  std::vector<__int128> out = first;
  while (out.back() != last) {
    const auto value = next(out.back());
    const __int128 limit = static_cast<__int128>(1) << 64;
    if (!value || *value > limit || *value < -limit || out.size() > 200)
      return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

std::optional<std::vector<double>> floatSteps(const std::vector<double>& first, double last) {
  const double step = first[1] - first[0];
  for (size_t i = 2; i < first.size(); ++i)
    if (std::fabs(first[i] - first[i - 1] - step) > 1e-6 * std::fabs(step))
      return std::nullopt;
  if (step == 0)
    return std::nullopt;
  const double count = std::round((last - first[0]) / step);
  if (count < static_cast<double>(first.size()) - 1 || count >= static_cast<double>(kMaxElements) ||
      std::fabs(first[0] + count * step - last) > 1e-6 * std::fabs(step))
    return std::nullopt;
  std::vector<double> out;
  for (double i = 0; i < count; ++i)
    out.push_back(first[0] + i * step);
  out.push_back(last);
  return out;
}

}  // namespace

static Expr* checkFloatProgression(BodyState& body, const syn::ArrayExpr* expr, Type elemType,
                                   const std::vector<Expr*>& literals) {
  std::vector<double> first;
  for (size_t i = 0; i + 1 < literals.size(); ++i)
    first.push_back(literals[i]->floatValue);
  auto values = floatSteps(first, literals.back()->floatValue);
  if (!values) {
    error(body, "E0312", expr->range, "these elements do not continue to the last one in equal steps")
        .label(expr->ellipsis, "continued here");
    return errorExpr(body, expr->range);
  }
  std::vector<Expr*> elems;
  for (double value : *values) {
    Expr* elem = make(body, ExprKind::Float, elemType, expr->range);
    elem->floatValue = elemType->isScalar(Scalar::F64) ? value : static_cast<double>(static_cast<float>(value));
    elems.push_back(elem);
  }
  Type type = expr->isVec ? body.types.vec(elemType) : body.types.array(elemType, elems.size());
  return make(body, expr->isVec ? ExprKind::MakeVec : ExprKind::MakeArray, type, expr->range, std::move(elems));
}

Expr* checkProgression(BodyState& body, const syn::ArrayExpr* expr, Type expected) {
  Type elemType =
      expected && (expected->kind == TypeKind::Array || expected->kind == TypeKind::Vec) ? expected->elem : nullptr;
  std::vector<const syn::Expr*> written(expr->elems.begin(), expr->elems.end());
  written.push_back(expr->last);
  if (!elemType)
    for (const syn::Expr* elem : written)
      if (!isUntyped(body, elem) && !elemType) {
        Expr* typed = value(body, elem);
        if (isError(typed))
          return errorExpr(body, expr->range);
        elemType = typed->type;
      }
  bool hasFloat = false;
  for (const syn::Expr* elem : written)
    hasFloat = hasFloat || isUntypedFloat(body, elem);
  if (!elemType)
    elemType = body.types.scalar(hasFloat ? Scalar::F32 : Scalar::I32);
  std::vector<Expr*> literals;
  for (const syn::Expr* elem : written) {
    Expr* literal = constant(body, elem, elemType, kProgressionElement);
    if (!literal)
      return errorExpr(body, expr->range);
    if (literal->type->kind != TypeKind::Scalar || literal->type->scalar == Scalar::Bool) {
      error(body, "E0312", elem->range, "a progression is made of numbers, not of `" + text(body, literal->type) + "`");
      return errorExpr(body, expr->range);
    }
    literals.push_back(literal);
  }
  if (literals[0]->kind == ExprKind::Float)
    return checkFloatProgression(body, expr, elemType, literals);
  std::vector<__int128> first;
  for (size_t i = 0; i + 1 < literals.size(); ++i)
    first.push_back(literals[i]->intValue);
  const __int128 last = literals.back()->intValue;
  auto steps = arithmetic(first, last), powers = geometric(first, last);
  if ((!steps && !powers) || (steps && powers && *steps != *powers)) {
    const auto shown = [](__int128 value) { return std::to_string(static_cast<long long>(value)); };
    std::string values;
    for (__int128 value : first)
      values += shown(value) + ", ";
    auto builder = error(
        body, "E0312", expr->range,
        steps ? base::concat("`", values, "..., ", shown(last), "` continues both in equal steps and by a factor")
              : base::concat("`", values, "..., ", shown(last), "` continues neither in equal steps nor by a factor"));
    builder.label(expr->ellipsis, "continued here");
    const auto with = [&](const std::vector<__int128>& all) {
      const bool isWhole = all.size() <= first.size() + 1;
      return base::concat("`[", values, isWhole ? "" : shown(all[first.size()]) + ", ..., ", shown(last), "]`");
    };
    if (steps)
      builder.help("write one element more: " + with(*steps) + " or " + with(*powers));
    return errorExpr(body, expr->range);
  }
  std::vector<Expr*> elems;
  for (__int128 value : steps ? *steps : *powers)
    elems.push_back(makeInt(body, value, elemType, expr->range));
  Type type = expr->isVec ? body.types.vec(elemType) : body.types.array(elemType, elems.size());
  return make(body, expr->isVec ? ExprKind::MakeVec : ExprKind::MakeArray, type, expr->range, std::move(elems));
}

}  // namespace vortex::lang
