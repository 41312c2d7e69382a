// Syntax of shapes → symbolic extents.
#include "lang/sema/check/types/resolve_dim.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/index.h"
#include "lang/sema/check/exprs/operators.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/lookup.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/check/types/shapes.h"
#include "lang/sema/integers.h"

#include "base/text.h"

#include <cctype>

namespace vortex::lang {

static std::optional<DimExpr> resolveDim(BodyState& body, const syn::Expr* expr, DimPolicy policy);

std::vector<DimExpr> resolveShape(BodyState& body, const syn::GenericArg& arg, DimPolicy policy, bool& ok) {
  std::vector<DimExpr> shape;
  if (auto* named = arg.type ? arg.type->tryAs<syn::NamedType>() : nullptr; named && named->path.size() == 1) {
    if (const GenericValue* generic = findGeneric(body.generics, named->path[0].text);
        generic && generic->kind == GenericValue::Kind::Shape)
      return generic->shape;
  }
  auto* list = arg.expr ? arg.expr->tryAs<syn::ArrayExpr>() : nullptr;
  if (!list || list->isVec || list->form != syn::ArrayForm::List) {
    if (!arg.expr || !arg.expr->is<syn::ErrorExpr>())
      error(body, "E0332", arg.range, "expected a shape").help("a shape is a list of extents: `[M, N]`");
    ok = false;
    return shape;
  }
  for (const syn::Expr* elem : list->elems) {
    auto dim = resolveDim(body, elem, policy);
    if (!dim) {
      ok = false;
      continue;
    }
    if (auto constant = dim->asConstant(); constant && *constant < 0) {
      error(body, "E0332", elem->range, base::concat("an extent cannot be negative; this is ", *constant));
      ok = false;
    }
    shape.push_back(*dim);
  }
  return shape;
}

namespace {
std::optional<DimAtom::Kind> dimFunction(const syn::CallExpr* call) {
  auto* callee = call->callee->tryAs<syn::NameExpr>();
  if (!callee || call->args.size() != 2)
    return std::nullopt;
  if (callee->name.text == "ceil_div")
    return DimAtom::Kind::CeilDiv;
  if (callee->name.text == "min")
    return DimAtom::Kind::Min;
  if (callee->name.text == "max")
    return DimAtom::Kind::Max;
  return std::nullopt;
}
}  // namespace

/// `1 << LOG`, `2 ** LOG`, `N & 7` of constants; nothing where a side is known later only.
static std::optional<DimExpr> constantDim(const BodyState& body, syn::BinaryOp op, const DimExpr& lhs,
                                          const DimExpr& rhs) {
  const auto a = lhs.asConstant(), b = rhs.asConstant();
  const bool isRaised = op == syn::BinaryOp::Shl || op == syn::BinaryOp::Pow;
  const bool isBits = op == syn::BinaryOp::Shr || op == syn::BinaryOp::BitAnd || op == syn::BinaryOp::BitOr ||
                      op == syn::BinaryOp::BitXor;
  if (!a || !b || *a < 0 || *b < 0 || (!isRaised && !isBits))
    return std::nullopt;
  // What stands for a parameter is too large for an exponent; any extent that depends on it does.
  if (isRaised && *b >= 64 && body.instance && (body.instance->isDefinition || body.instance->isRepresentative))
    return DimExpr::mul(lhs, rhs);
  const IntegerResult result = integerBinary(scalarOperator(op), Scalar::Usize, *a, *b);
  if (!result.fits || result.value > INT64_MAX)
    return std::nullopt;
  return DimExpr::constant(static_cast<int64_t>(result.value));
}

static std::optional<DimExpr> resolveDim(BodyState& body, const syn::Expr* expr, DimPolicy policy) {
  switch (expr->kind) {
  case syn::ExprKind::Error: return std::nullopt;
  case syn::ExprKind::Int: {
    auto* literal = expr->as<syn::IntExpr>();
    if (literal->fits128 && literal->value <= static_cast<unsigned __int128>(INT64_MAX))
      return DimExpr::constant(static_cast<int64_t>(literal->value));
    error(body, "E0302", expr->range, "this extent is too large");
    return std::nullopt;
  }
  case syn::ExprKind::Name: return dimNamed(body, expr->as<syn::NameExpr>()->name, policy);
  case syn::ExprKind::Binary: {
    auto* binary = expr->as<syn::BinaryExpr>();
    auto lhs = resolveDim(body, binary->lhs, policy);
    auto rhs = resolveDim(body, binary->rhs, policy);
    if (!lhs || !rhs)
      return std::nullopt;
    switch (binary->op) {
    case syn::BinaryOp::Add: return DimExpr::add(*lhs, *rhs);
    case syn::BinaryOp::Sub: return DimExpr::sub(*lhs, *rhs);
    case syn::BinaryOp::Mul: return DimExpr::mul(*lhs, *rhs);
    case syn::BinaryOp::Div: return DimExpr::apply(DimAtom::Kind::Div, *lhs, *rhs);
    case syn::BinaryOp::Rem: return DimExpr::apply(DimAtom::Kind::Mod, *lhs, *rhs);
    default:
      if (auto constant = constantDim(body, binary->op, *lhs, *rhs))
        return constant;
      break;
    }
    break;
  }
  case syn::ExprKind::Call: {
    auto* call = expr->as<syn::CallExpr>();
    if (auto kind = dimFunction(call)) {
      auto lhs = resolveDim(body, call->args[0].value, policy);
      auto rhs = resolveDim(body, call->args[1].value, policy);
      if (!lhs || !rhs)
        return std::nullopt;
      return DimExpr::apply(*kind, *lhs, *rhs);
    }
    break;
  }
  default: break;
  }
  // `T.WIDTH`, `Self.WIDTH`: constants of types are known wherever the type is.
  if (auto* member = expr->tryAs<syn::MemberExpr>(); member && typeNamed(body, member->base)) {
    Expr* value = lang::value(body, expr, usize(body));
    if (isError(value))
      return std::nullopt;
    if (value->kind == ExprKind::Int)
      return DimExpr::constant(static_cast<int64_t>(value->intValue));
  }
  // Anything else that is an integer value, such as `s.PAGE_SIZE` or `x.shape[0]`.
  if (policy == DimPolicy::Parameter || policy == DimPolicy::Result || policy == DimPolicy::Field) {
    error(body, "E0332", expr->range,
          base::concat("this cannot stand in a ", policy == DimPolicy::Parameter ? "parameter" : "result", "'s shape"))
        .help("use dimension names, constants and + - * / %");
    return std::nullopt;
  }
  Expr* value = lang::value(body, expr, usize(body));
  if (isError(value))
    return std::nullopt;
  if (value->type->kind != TypeKind::Scalar || !isInteger(value->type->scalar)) {
    error(body, "E0332", expr->range, "an extent is an integer, not `" + text(body, value->type) + "`");
    return std::nullopt;
  }
  DimExpr extent = dimOf(body, value);
  if (policy == DimPolicy::Let && !inKernel(body) && body.beforeLet && !isCounted(body, extent))
    extent = dimOf(body, temporary(body, asIndex(body, value, nullptr), *body.beforeLet));
  return extent;
}

std::optional<DimExpr> dimNamed(BodyState& body, const syn::Name& name, DimPolicy policy) {
  if (const BodyState::Local* local = findLocal(body, name.text)) {
    if (local->dim)
      return *local->dim;
    Type type = stripRef(local->variable->type);
    if (isError(type))
      return std::nullopt;
    if (type->kind == TypeKind::Scalar && isInteger(type->scalar))
      return dimOf(body, makeVar(body, local->variable, name.range));
    error(body, "E0332", name.range,
          base::concat("an extent is an integer, but `", name.text, "` is `", text(body, type), "`"));
    return std::nullopt;
  }
  if (const GenericValue* generic = findGeneric(body.generics, name.text)) {
    if (generic->kind == GenericValue::Kind::Const)
      return DimExpr::constant(static_cast<int64_t>(generic->value));
    if (generic->isBound())
      error(body, "E0332", name.range, base::concat("`", name.text, "` is a type, not an extent"));
    return std::nullopt;
  }
  if (const Symbol* symbol = body.items->find(name.text); symbol && symbol->kind == SymbolKind::Const) {
    const ConstItemValue* value = body.session.constValue(symbol->item->as<syn::ConstItem>(), symbol->scope);
    if (!value || !value->expr)
      return std::nullopt;
    if (value->expr->kind == ExprKind::Int)
      return DimExpr::constant(static_cast<int64_t>(value->expr->intValue));
    error(body, "E0332", name.range,
          base::concat("an extent is an integer, but `", name.text, "` is `", text(body, value->expr->type), "`"));
    return std::nullopt;
  }
  // In a struct that a function takes: its names are those of the function's extents, a constant's too.
  if (policy == DimPolicy::Parameter && body.instance)
    if (const GenericValue* own = findGeneric(body.instance->generics, name.text);
        own && own->kind == GenericValue::Kind::Const && own->isBound())
      return DimExpr::constant(static_cast<int64_t>(own->value));
  const bool isUpper = std::isupper(static_cast<unsigned char>(name.text.empty() ? 'a' : name.text[0])) != 0;
  if (policy == DimPolicy::Fresh || policy == DimPolicy::Field || name.text == "_") {
    const DimExpr fresh = DimExpr::opaque(body.session.newOpaque());
    if (name.text != "_")
      body.locals.push_back({name.text, nullptr, fresh, name.range});
    return fresh;
  }
  DimBinding binding;
  binding.name = std::string(name.text);
  binding.range = name.range;
  const bool mayBeParam = policy == DimPolicy::Parameter || policy == DimPolicy::Result;
  if (mayBeParam && body.instance)
    for (size_t i = 0; i < body.instance->item->params.size(); ++i)
      if (body.instance->item->params[i].name.text == name.text) {
        binding.param = static_cast<uint32_t>(i);
        binding.isScalarValue = true;
      }
  if ((policy == DimPolicy::Known || policy == DimPolicy::Result || !isUpper) && !binding.param) {
    const std::string message = base::concat("the extent `", name.text, "` is not known here");
    if (isSaid(body, name, message))
      return std::nullopt;
    auto builder = error(body, "E0326", name.range, message);
    if (isUpper)
      builder.help(policy == DimPolicy::Result && !body.function->isKernel
                       ? "a parameter's shape binds it; for an extent that only the value has write `_`"
                       : "a dimension variable is bound by a parameter's shape or by the type of a `let`");
    else if (!isUpper)
      builder.help("dimension variables start with an upper-case letter");
    return std::nullopt;
  }
  if (policy == DimPolicy::Parameter && body.function->isKernel && !binding.param)
    for (const auto& [fixed, extent] : body.session.options.fixedDims)
      if (fixed == name.text) {
        body.session.program.fixedDims.insert(fixed);
        body.locals.push_back({name.text, nullptr, DimExpr::constant(extent), name.range});
        return DimExpr::constant(extent);
      }
  const DimVarId id = static_cast<DimVarId>(body.function->dims.size());
  body.function->dims.push_back(std::move(binding));
  if (policy == DimPolicy::Let)
    body.pendingDims.insert(id);
  const DimExpr variable = DimExpr::variable(id);
  body.locals.push_back({name.text, nullptr, variable, name.range});
  return variable;
}

}  // namespace vortex::lang
