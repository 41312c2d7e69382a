// Const items and other expressions that must be known at compile time.
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/types/resolve_type.h"

#include "base/check.h"
#include "base/text.h"

namespace vortex::lang {

const ConstItemValue* Session::constValue(const syn::ConstItem* item, ItemScope* scope, Type selfType,
                                          const GenericEnv& generics) {
  const std::tuple key(item, selfType, lang::text(generics));
  auto [found, isNew] = consts_.try_emplace(key);
  if (!isNew) {
    if (found->second.state == ConstItemValue::State::Busy) {
      sink().error("E0335", item->name.range, base::concat("the value of `", item->name.text, "` depends on itself"));
      return nullptr;
    }
    return found->second.expr ? &found->second : nullptr;
  }
  ConstItemValue value;
  constexpr uint32_t kMaxDepth = 200;  // each step is a recursion of the checker
  if (constDepth_ >= kMaxDepth) {
    sink().error(
        "E0335", item->name.range,
        base::concat("the value of `", item->name.text, "` needs more than ", kMaxDepth, " other constants in a row"));
  } else if (item->value) {
    diag::DiagnosticSink* outer = sink_;
    sink_ = loud_ ? loud_ : sink_;
    ++constDepth_;
    BodyState body(*this, nullptr, scratchFunction(), scope);
    body.selfType = selfType;
    body.generics = generics;
    Type type = item->type ? resolveType(body, item->type, DimPolicy::Known) : nullptr;
    if (!type || !isError(type)) {
      value.isUntyped = !type && isUntyped(body, item->value);
      value.expr = constant(body, item->value, type, base::concat("the value of `", item->name.text, "`"));
      if (value.isUntyped && value.expr && value.expr->kind == ExprKind::Float) {
        Quiet quiet(*this);
        value.inF64 = constant(body, item->value, types.scalar(Scalar::F64), "");
      }
    }
    --constDepth_;
    sink_ = outer;
  }
  value.state = ConstItemValue::State::Done;
  ConstItemValue& stored = consts_[key];  // the map may have grown meanwhile
  stored = value;
  return stored.expr ? &stored : nullptr;
}

Expr* constant(BodyState& body, const syn::Expr* expr, Type expected, std::string_view what) {
  Expr* typed = check(body, expr, expected);
  if (isError(typed))
    return nullptr;
  if (expected) {
    typed = convert(body, typed, expected, Site::Let);
    if (isError(typed))
      return nullptr;
  }
  bool reported = false;
  Expr* folded = fold(body, typed, reported);
  if (!folded && !reported) {
    auto builder = error(body, "E0310", expr->range, base::concat(what, " must be known at compile time"));
    builder.primary("this is known only at run time");
    if (what == kProgressionElement)
      builder.help("count in a variable: `var s = n / 2`, then `while s > 0 { …; s /= 2 }`");
  }
  return folded;
}

std::optional<__int128> constantInt(BodyState& body, const syn::Expr* expr, Type expected, std::string_view what) {
  Expr* folded = constant(body, expr, expected, what);
  if (!folded)
    return std::nullopt;
  VORTEX_CHECK(folded->kind == ExprKind::Int && (!isUnsigned(expected->scalar) || folded->intValue >= 0));
  return folded->intValue;
}

Expr* clone(BodyState& body, const Expr* expr, SourceRange range) {
  Expr* copy = make(body, expr->kind, expr->type, range);
  copy->intValue = expr->intValue;
  copy->floatValue = expr->floatValue;
  copy->text = expr->text;
  copy->ints = expr->ints;
  copy->intList = expr->intList;
  for (const Expr* arg : expr->args)
    copy->args.push_back(clone(body, arg, range));
  return copy;
}

Expr* constUse(BodyState& body, const Symbol& symbol, SourceRange range, Type expected) {
  const ConstItemValue* value = body.session.constValue(symbol.item->as<syn::ConstItem>(), symbol.scope);
  if (!value)
    return errorExpr(body, range);
  if (Type type = scalarIn(expected); value->inF64 && type && type->isScalar(Scalar::F64))
    return clone(body, value->inF64, range);
  Expr* use = clone(body, value->expr, range);
  return value->isUntyped ? adaptLiteral(body, use, expected) : use;
}

}  // namespace vortex::lang
