// Numbers, arrays and progressions.
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/constants/limits.h"
#include "lang/sema/check/exprs/branches.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/index.h"
#include "lang/sema/check/exprs/open.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"

#include "base/text.h"
#include "lang/sema/integers.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

namespace vortex::lang {

static void literalTooLarge(BodyState& body, SourceRange range, Type type, bool negative = false);
static Expr* checkRepeat(BodyState& body, const syn::ArrayExpr* expr, Type expected);

namespace {

/// The values of an `if` or `match` whose branches are nothing but values; nothing for other expressions.
std::vector<const syn::Expr*> branchValues(const syn::Expr* expr) {
  std::vector<const syn::Expr*> values;
  if (auto* choice = expr->tryAs<syn::IfExpr>()) {
    for (const syn::IfBranch& branch : choice->branches)
      values.push_back(branch.body);
    values.push_back(choice->elseBody);
  } else if (auto* match = expr->tryAs<syn::MatchExpr>()) {
    for (const syn::MatchArm& arm : match->arms)
      values.push_back(arm.body);
  }
  for (const syn::Expr*& value : values)
    if (auto* block = value ? value->tryAs<syn::BlockExpr>() : nullptr)
      value = block->stmts.size() == 1 ? block->tail : nullptr;
  return values;
}

/// What the value of a built-in function that chooses among values is chosen from: `select(c, 1.0, 0.0)`, `max(a, 1)`; nothing for other expressions.
std::vector<const syn::Expr*> choices(BodyState& body, const syn::CallExpr* call) {
  auto* name = call->callee->tryAs<syn::NameExpr>();
  if (!name || findLocal(body, name->name.text) || body.items->find(name->name.text))
    return {};
  const std::string_view function = name->name.text;
  const bool isSelect = function == "select";
  if (!isSelect && function != "min" && function != "max" && function != "clamp" && function != "abs")
    return {};
  std::vector<const syn::Expr*> values;
  for (size_t i = isSelect ? 1 : 0; i < call->args.size(); ++i)
    values.push_back(call->args[i].name.isPresent() ? nullptr : call->args[i].value);
  return values;
}

bool fits(__int128 value, Scalar scalar) { return value >= lowest(scalar) && value <= highest(scalar); }

}  // namespace

std::vector<const syn::Expr*> sources(BodyState& body, const syn::Expr* expr) {
  return expr->is<syn::CallExpr>() ? choices(body, expr->as<syn::CallExpr>()) : branchValues(expr);
}

Type scalarIn(Type expected) {
  if (!expected)
    return nullptr;
  if (expected->kind == TypeKind::Ref || expected->isTensor())
    return scalarIn(expected->elem);
  return expected->kind == TypeKind::Scalar && expected->scalar != Scalar::Bool ? expected : nullptr;
}

Expr* checkInt(BodyState& body, const syn::IntExpr* expr, Type expected, bool negative) {
  Type type = nullptr;
  if (expr->suffix.isPresent()) {
    if (const auto scalar = scalarNamed(expr->suffix.text))
      type = body.types.scalar(*scalar);
    if (!type)
      return errorExpr(body, expr->range);
  } else {
    type = scalarIn(expected);
  }
  if (!type)
    type = body.types.scalar(Scalar::I32);
  if (isFloat(type->scalar)) {
    Expr* out = make(body, ExprKind::Float, type, expr->range);
    out->floatValue =
        expr->fits128 ? static_cast<double>(expr->value) : std::strtod(std::string(expr->digits).c_str(), nullptr);
    if (expr->fits128 && expr->value >> 127 == 0 && type->isScalar(Scalar::F32))
      out->floatValue = toFloat(Scalar::F32, static_cast<__int128>(expr->value));
    if (negative)
      out->floatValue = -out->floatValue;
    if (std::fabs(out->floatValue) > largest(type->scalar))
      literalTooLarge(body, expr->range, type);
    return out;
  }
  const bool inRange = expr->fits128 && expr->value < (static_cast<unsigned __int128>(1) << 100);
  const __int128 value =
      inRange ? (negative ? -static_cast<__int128>(expr->value) : static_cast<__int128>(expr->value)) : 0;
  if (!inRange || !fits(value, type->scalar)) {
    literalTooLarge(body, expr->range, type, negative);
    return errorExpr(body, expr->range);
  }
  return makeInt(body, value, type, expr->range);
}

static void literalTooLarge(BodyState& body, SourceRange range, Type type, bool negative) {
  if (isFloat(type->scalar)) {
    error(body, "E0302", range, base::concat("this number is too large for `", name(type->scalar), "`"));
    return;
  }
  const Scalar scalar = type->scalar;
  auto builder = error(body, "E0302", range, base::concat("this number does not fit `", name(scalar), "`"));
  builder.primary(
      base::concat("`", name(scalar), "` holds ", decimal(lowest(scalar)), " to ", decimal(highest(scalar))));
  if (negative && isUnsigned(scalar))
    builder.help("what it meets must be signed, too: `n as i64`; to count down, `range(n as i64 - 1, -1, -1)`");
  if (scalar == Scalar::I32 && !negative)
    builder.help("give it a wider type, for example `i64` or `u64`, by a suffix or a declared type");
}

Expr* checkFloat(BodyState& body, const syn::FloatExpr* expr, Type expected, bool negative) {
  Type type = nullptr;
  if (expr->suffix.isPresent()) {
    if (const auto scalar = scalarNamed(expr->suffix.text))
      type = body.types.scalar(*scalar);
  } else {
    type = scalarIn(expected);
  }
  if (!type || !isFloat(type->scalar))
    type = body.types.scalar(Scalar::F32);
  Expr* out = make(body, ExprKind::Float, type, expr->range);
  out->floatValue = expr->value;
  if (std::isfinite(expr->value)) {
    if (type->scalar == Scalar::F32)  // from the digits: rounding through double would round twice
      out->floatValue = static_cast<double>(std::strtof(std::string(expr->digits).c_str(), nullptr));
    if (std::fabs(out->floatValue) > largest(type->scalar))
      literalTooLarge(body, expr->range, type);
  } else if (expr->digits != "inf") {
    literalTooLarge(body, expr->range, type);
  }
  if (negative)
    out->floatValue = -out->floatValue;
  return out;
}

std::optional<double> writtenInF64(BodyState& body, const Expr* literal) {
  std::string_view written = body.session.sources.text(literal->range);
  double sign = 1;
  while (!written.empty() && std::string_view("(- )").find(written.front()) != std::string_view::npos) {
    sign = written.front() == '-' ? -sign : sign;
    written.remove_prefix(1);
  }
  written = written.substr(0, written.find_last_not_of(" )") + 1);
  if (written == "inf")
    return sign * HUGE_VAL;
  if (!written.empty() && std::isdigit(static_cast<unsigned char>(written.front()))) {
    std::string digits(written);
    std::erase(digits, '_');
    char* end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    return *end == 0 ? std::optional(sign * value) : std::nullopt;
  }
  const Symbol* symbol = body.items->find(written);
  const ConstItemValue* value = symbol && symbol->kind == SymbolKind::Const
                                    ? body.session.constValue(symbol->item->as<syn::ConstItem>(), symbol->scope)
                                    : nullptr;
  return value && value->inF64 ? std::optional(sign * value->inF64->floatValue) : std::nullopt;
}

Expr* adaptLiteral(BodyState& body, Expr* literal, Type expected) {
  Type type = scalarIn(expected);
  if (!type || literal->type == type || literal->type->kind != TypeKind::Scalar)
    return literal;
  if (literal->kind == ExprKind::Int && isInteger(type->scalar)) {
    if (!fits(literal->intValue, type->scalar)) {
      literalTooLarge(body, literal->range, type, literal->intValue < 0);
      return errorExpr(body, literal->range);
    }
    literal->type = type;
  } else if (isFloat(type->scalar) && (literal->kind == ExprKind::Int || literal->kind == ExprKind::Float)) {
    if (literal->kind == ExprKind::Int)
      literal->floatValue = toFloat(type->scalar, literal->intValue);
    else if (!type->isScalar(Scalar::F32))
      literal->floatValue = writtenInF64(body, literal).value_or(literal->floatValue);
    literal->kind = ExprKind::Float;
    literal->type = type;
    if (type->scalar == Scalar::F32)
      literal->floatValue = static_cast<double>(static_cast<float>(literal->floatValue));
    if (std::isfinite(literal->floatValue) && std::fabs(literal->floatValue) > largest(type->scalar))
      literalTooLarge(body, literal->range, type);
  }
  return literal;
}

bool isUntyped(BodyState& body, const syn::Expr* expr) {
  switch (expr->kind) {
  case syn::ExprKind::Int: return !expr->as<syn::IntExpr>()->suffix.isPresent();
  case syn::ExprKind::Float: return !expr->as<syn::FloatExpr>()->suffix.isPresent();
  case syn::ExprKind::Unary:
    return expr->as<syn::UnaryExpr>()->op == syn::UnaryOp::Neg && isUntyped(body, expr->as<syn::UnaryExpr>()->operand);
  case syn::ExprKind::Binary: {
    // Along the left spine only: a long chain stays cheap because the right side is looked at first.
    auto* binary = expr->as<syn::BinaryExpr>();
    if (binary->op == syn::BinaryOp::Shl || binary->op == syn::BinaryOp::Shr)
      return isUntyped(body, binary->lhs);  // the count has a type of its own
    const bool isNumber = binary->op <= syn::BinaryOp::Pow || binary->op == syn::BinaryOp::BitAnd ||
                          binary->op == syn::BinaryOp::BitOr || binary->op == syn::BinaryOp::BitXor;
    return isNumber && isUntyped(body, binary->rhs) && isUntyped(body, binary->lhs);
  }
  case syn::ExprKind::Name: {
    const std::string_view name = expr->as<syn::NameExpr>()->name.text;
    if (findLocal(body, name) || findGeneric(body.generics, name))
      return false;
    const Symbol* symbol = body.items->find(name);
    if (!symbol || symbol->kind != SymbolKind::Const)
      return false;
    const ConstItemValue* value = body.session.constValue(symbol->item->as<syn::ConstItem>(), symbol->scope);
    return value && value->isUntyped;
  }
  case syn::ExprKind::Call:
  case syn::ExprKind::If:
  case syn::ExprKind::Match: {
    const std::vector<const syn::Expr*> values = sources(body, expr);
    return !values.empty() && std::all_of(values.begin(), values.end(),
                                          [&](const syn::Expr* each) { return each && isUntyped(body, each); });
  }
  default: return false;
  }
}

bool isUntypedFloat(BodyState& body, const syn::Expr* expr) {
  switch (expr->kind) {
  case syn::ExprKind::Float: return true;
  case syn::ExprKind::Unary: return isUntypedFloat(body, expr->as<syn::UnaryExpr>()->operand);
  case syn::ExprKind::Binary:
    return isUntypedFloat(body, expr->as<syn::BinaryExpr>()->rhs) ||
           isUntypedFloat(body, expr->as<syn::BinaryExpr>()->lhs);
  case syn::ExprKind::Name: {
    const Symbol* symbol = body.items->find(expr->as<syn::NameExpr>()->name.text);
    const ConstItemValue* value = symbol && symbol->kind == SymbolKind::Const
                                      ? body.session.constValue(symbol->item->as<syn::ConstItem>(), symbol->scope)
                                      : nullptr;
    return value && value->expr && value->expr->kind == ExprKind::Float;
  }
  case syn::ExprKind::Call:
  case syn::ExprKind::If:
  case syn::ExprKind::Match: {
    const std::vector<const syn::Expr*> values = sources(body, expr);
    return std::any_of(values.begin(), values.end(),
                       [&](const syn::Expr* each) { return each && isUntypedFloat(body, each); });
  }
  default: return false;
  }
}

Type defaultOf(BodyState& body, std::span<const syn::Expr* const> numbers) {
  bool hasFraction = false;
  for (const syn::Expr* each : numbers) {
    if (!each || !isUntyped(body, each))
      return nullptr;
    hasFraction = hasFraction || isUntypedFloat(body, each);
  }
  return numbers.empty() ? nullptr : body.types.scalar(hasFraction ? Scalar::F32 : Scalar::I32);
}

Expr* checkArray(BodyState& body, const syn::ArrayExpr* expr, Type expected) {
  if (expr->isVec && inKernel(body)) {
    error(body, "E0407", expr->range, "a `Vec` lives in host memory and cannot be made in a kernel")
        .help("use an array: `[a, b]`");
    return errorExpr(body, expr->range);
  }
  if (expr->form == syn::ArrayForm::Progression)
    return checkProgression(body, expr, expected);
  if (expr->form == syn::ArrayForm::Repeat)
    return checkRepeat(body, expr, expected);
  Type elemType =
      expected && (expected->kind == TypeKind::Array || expected->kind == TypeKind::Vec) ? expected->elem : nullptr;
  const bool isFree = !elemType;
  std::vector<Expr*> elems(expr->elems.size());
  // Elements with a type of their own decide for the numbers around them.
  for (size_t i = 0; i < elems.size() && isFree; ++i)
    if (!isUntyped(body, expr->elems[i])) {
      elems[i] = check(body, expr->elems[i], elemType);
      if (isError(elems[i]))
        return errorExpr(body, expr->range);
      elemType = elemType || isOpen(body, elems[i]) ? elemType : elems[i]->type;
    }
  if (!elemType)
    elemType = defaultOf(body, expr->elems);
  for (size_t i = 0; i < elems.size(); ++i)
    if (!elems[i])
      elems[i] = check(body, expr->elems[i], elemType);
  if (const Type common = isFree ? commonType(body, elems, nullptr) : nullptr)
    elemType = common;
  else if (!elemType && !elems.empty())
    elemType = elems[0]->type;
  for (Expr*& elem : elems) {
    if (isError(elemType))
      break;
    if (isFree && canTake(body, elem, elemType))
      adapt(body, elem, elemType);
    elem = convert(body, elem, elemType, Site::Element);
    if (isError(elem))
      elemType = body.types.error();
  }
  if (!elemType) {
    error(body, "E0306", expr->range, "the element type of an empty list cannot be inferred")
        .help("declare it: `let v: Vec<f32> = vec![]`");
    return errorExpr(body, expr->range);
  }
  if (isError(elemType))
    return errorExpr(body, expr->range);
  Type type = expr->isVec ? body.types.vec(elemType) : body.types.array(elemType, elems.size());
  return make(body, expr->isVec ? ExprKind::MakeVec : ExprKind::MakeArray, type, expr->range, std::move(elems));
}

static Expr* checkRepeat(BodyState& body, const syn::ArrayExpr* expr, Type expected) {
  Type hint =
      expected && (expected->kind == TypeKind::Array || expected->kind == TypeKind::Vec) ? expected->elem : nullptr;
  Expr* elem = check(body, expr->elems[0], hint);
  if (hint && !isError(elem))
    elem = convert(body, elem, hint, Site::Element);
  if (expr->isVec) {
    Expr* count = index(body, expr->count, nullptr);
    if (isError(elem) || isError(count))
      return errorExpr(body, expr->range);
    return make(body, ExprKind::RepeatVec, body.types.vec(elem->type), expr->range, {elem, count});
  }
  auto count = constantInt(body, expr->count, usize(body), "an array's length");
  if (isError(elem) || !count)
    return errorExpr(body, expr->range);
  return make(body, ExprKind::RepeatArray, body.types.array(elem->type, static_cast<uint64_t>(*count)), expr->range,
              {elem, makeInt(body, *count, usize(body), expr->count->range)});
}

}  // namespace vortex::lang
