// Const items and other expressions that must be known at compile time.
#include "lang/sema/check/checker.h"

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
    Checker checker(*this, nullptr, scratchFunction(), scope);
    checker.selfType = selfType;
    checker.generics = generics;
    Type type = item->type ? checker.resolveType(item->type, DimPolicy::Known) : nullptr;
    if (!type || !Checker::isError(type)) {
      value.isUntyped = !type && checker.isUntyped(item->value);
      value.expr = checker.constant(item->value, type, base::concat("the value of `", item->name.text, "`"));
    }
    --constDepth_;
    sink_ = outer;
  }
  value.state = ConstItemValue::State::Done;
  ConstItemValue& stored = consts_[key];  // the map may have grown meanwhile
  stored = value;
  return stored.expr ? &stored : nullptr;
}

Expr* Checker::constant(const syn::Expr* expr, Type expected, std::string_view what) {
  Expr* typed = check(expr, expected);
  if (isError(typed))
    return nullptr;
  if (expected) {
    typed = convert(typed, expected, Site::Let);
    if (isError(typed))
      return nullptr;
  }
  bool reported = false;
  Expr* folded = fold(typed, reported);
  if (!folded && !reported) {
    auto builder = error("E0310", expr->range, base::concat(what, " must be known at compile time"));
    builder.primary("this is known only at run time");
    if (what == kProgressionElement)
      builder.help("count in a variable: `var s = n / 2`, then `while s > 0 { …; s /= 2 }`");
  }
  return folded;
}

std::optional<__int128> Checker::constantInt(const syn::Expr* expr, Type expected, std::string_view what) {
  Expr* folded = constant(expr, expected, what);
  if (!folded)
    return std::nullopt;
  if (folded->kind != ExprKind::Int) {
    error("E0310", expr->range, base::concat(what, " is an integer, not `", text(folded->type), "`"));
    return std::nullopt;
  }
  if (expected && expected->isScalar(Scalar::Usize) && folded->intValue < 0) {
    error("E0302", expr->range, base::concat(what, " cannot be negative"));
    return std::nullopt;
  }
  return folded->intValue;
}

Expr* Checker::clone(const Expr* expr, SourceRange range) {
  Expr* copy = make(expr->kind, expr->type, range);
  copy->intValue = expr->intValue;
  copy->floatValue = expr->floatValue;
  copy->text = expr->text;
  copy->ints = expr->ints;
  copy->intList = expr->intList;
  for (const Expr* arg : expr->args)
    copy->args.push_back(clone(arg, range));
  return copy;
}

Expr* Checker::constUse(const Symbol& symbol, SourceRange range, Type expected) {
  const ConstItemValue* value = session.constValue(symbol.item->as<syn::ConstItem>(), symbol.scope);
  if (!value)
    return errorExpr(range);
  Expr* use = clone(value->expr, range);
  if (value->isUntyped)
    return adaptLiteral(use, expected);
  return use;
}

}  // namespace vortex::lang
