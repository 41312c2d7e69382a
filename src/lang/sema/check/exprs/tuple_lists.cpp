#include "lang/sema/check/exprs/tuple_lists.h"

#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/expr_parts.h"

namespace vortex::lang {

using Listed = BodyState::Listed;
using Tuples = std::vector<const syn::TupleExpr*>;

static Tuples tuplesOf(const syn::ArrayExpr* expr) {
  Tuples tuples;
  for (const syn::Expr* each : expr->elems) {
    auto* tuple = each->tryAs<syn::TupleExpr>();
    if (!tuple || tuple->elems.empty() || (!tuples.empty() && tuple->elems.size() != tuples.front()->elems.size()))
      return {};
    tuples.push_back(tuple);
  }
  return tuples;
}

/// The numbers at one place of all tuples; null after an error.
static Type checkPart(BodyState& body, const Tuples& tuples, const Listed& at, std::vector<Expr*>& parts) {
  const auto written = [&](size_t i) { return tuples[i]->elems[*at.part]; };
  const auto known = body.inferredParts.find(at);
  Type type = known == body.inferredParts.end() ? nullptr : known->second;
  bool isPlain = true, hasFraction = false;
  for (size_t i = 0; i < tuples.size(); ++i) {
    isPlain = isPlain && isUntyped(body, written(i));
    hasFraction = hasFraction || isUntypedFloat(body, written(i));
    if (!type && !isPlain) {
      parts[i] = check(body, written(i));
      type = parts[i]->type;
    }
  }
  if (!type && hasFraction)
    type = body.types.scalar(Scalar::F32);
  for (size_t i = 0; i < tuples.size(); ++i) {
    if (!parts[i])
      parts[i] = check(body, written(i), type);
    type = type ? type : parts[i]->type;
    if (isError(type))
      return nullptr;
    parts[i] = convert(body, parts[i], type, Site::Element);
    if (isError(parts[i]))
      return nullptr;
  }
  if (isPlain)
    body.plainParts[at] = type;
  return type;
}

Expr* checkTupleList(BodyState& body, const syn::ArrayExpr* expr) {
  const Tuples tuples = tuplesOf(expr);
  if (tuples.empty())
    return nullptr;
  const auto width = static_cast<uint32_t>(tuples.front()->elems.size());
  std::vector<std::vector<Expr*>> columns(width, std::vector<Expr*>(tuples.size()));
  std::vector<Type> types;
  for (uint32_t part = 0; part < width; ++part) {
    Type type = checkPart(body, tuples, {expr->range.begin, part}, columns[part]);
    if (!type)
      return errorExpr(body, expr->range);
    types.push_back(type);
  }
  const Type tuple = body.types.tuple(std::move(types));
  if (!checkSize(body, tuple, expr->elems.front()->range))
    return errorExpr(body, expr->range);
  std::vector<Expr*> elems;
  for (size_t i = 0; i < tuples.size(); ++i) {
    std::vector<Expr*> parts;
    for (const std::vector<Expr*>& column : columns)
      parts.push_back(column[i]);
    elems.push_back(make(body, ExprKind::MakeTuple, tuple, tuples[i]->range, std::move(parts)));
  }
  Type type = expr->isVec ? body.types.vec(tuple) : body.types.array(tuple, elems.size());
  return make(body, expr->isVec ? ExprKind::MakeVec : ExprKind::MakeArray, type, expr->range, std::move(elems));
}

/// The list that the expression is of, or whose tuple or part of one it is.
static std::optional<Listed> listedAs(BodyState& body, const Expr* expr) {
  switch (expr->kind) {
  case ExprKind::Var: {
    const auto found = body.listedNames.find(expr->variable);
    return found == body.listedNames.end() ? std::nullopt : std::optional(found->second);
  }
  case ExprKind::Element:
  case ExprKind::Deref:
  case ExprKind::Ref: return listedAs(body, expr->args[0]);
  case ExprKind::Field: {
    const auto [base, number] = asField(*expr);
    const auto of = listedAs(body, &base);
    return of && !of->part ? std::optional(Listed{of->list, number}) : std::nullopt;
  }
  default: return std::nullopt;
  }
}

void noteTupleList(BodyState& body, const syn::Pattern* pattern, const syn::Expr* written, const Expr* value) {
  auto* list = written->tryAs<syn::ArrayExpr>();
  const auto of = list ? tuplesOf(list).empty() ? std::nullopt : std::optional(Listed{list->range.begin, std::nullopt})
                       : listedAs(body, value);
  if (!of)
    return;
  const auto note = [&](const syn::Pattern* named, std::optional<uint32_t> part) {
    auto* name = named->tryAs<syn::NamePattern>();
    const BodyState::Local* local = name ? findLocal(body, name->name.text) : nullptr;
    if (local && local->variable)
      body.listedNames[local->variable] = {of->list, part};
  };
  note(pattern, of->part);
  if (auto* tuple = pattern->tryAs<syn::TuplePattern>(); tuple && !of->part)
    for (uint32_t i = 0; i < tuple->elems.size(); ++i)
      note(tuple->elems[i], i);
}

bool learnPart(BodyState& body, const Expr* expr, Type to) {
  const auto of = listedAs(body, expr);
  const auto plain = of && of->part ? body.plainParts.find(*of) : body.plainParts.end();
  if (plain == body.plainParts.end() || plain->second == to || body.inferredParts.contains(*of) ||
      plain->second->kind != TypeKind::Scalar || (isFloat(plain->second->scalar) && !isFloat(to->scalar)))
    return false;
  body.inferredParts[*of] = to;
  return body.restart = true;
}

}  // namespace vortex::lang
