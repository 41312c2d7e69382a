// Struct literals.
#include "lang/sema/check/exprs/structs.h"
#include "lang/sema/check/calls/hints.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/generics.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"
#include "diag/names_elsewhere.h"

#include <algorithm>

namespace vortex::lang {

static bool checkFieldDims(BodyState& body, const syn::StructItem& item, const std::vector<Type>& declared,
                           const std::vector<Expr*>& values);
static bool placeFields(BodyState& body, const syn::StructExpr* expr, const syn::StructItem* item,
                        std::vector<Expr*>& values, GenericEnv& env, ItemScope* scope);

Expr* checkStruct(BodyState& body, const syn::StructExpr* expr, Type expected) {
  auto* named = expr->type->tryAs<syn::NamedType>();
  const auto failed = [&]() -> Expr* {
    for (const syn::FieldInit& field : expr->fields)
      check(body, field.value);
    return errorExpr(body, expr->range);
  };
  if (!named)
    return failed();
  const syn::StructItem* item = nullptr;
  ItemScope* scope = nullptr;
  GenericEnv env;
  const bool isSelf = named->path.size() == 1 && named->path[0].text == "Self" && body.selfType &&
                      body.session.findStruct(body.selfType->decl);
  if (isSelf) {
    const StructInstance* instance = body.session.findStruct(body.selfType->decl);
    item = instance->item->as<syn::StructItem>();
    scope = instance->scope;
    env = instance->generics;
  } else {
    const Symbol* symbol = body.items->find(named->path.front().text);
    for (size_t i = 1; symbol && i < named->path.size(); ++i) {
      auto found = symbol->kind == SymbolKind::Module ? symbol->scope->symbols.find(named->path[i].text)
                                                      : body.items->symbols.end();
      symbol = symbol->kind == SymbolKind::Module && found != symbol->scope->symbols.end() ? &found->second : nullptr;
    }
    if (!symbol || symbol->kind != SymbolKind::Struct) {
      if (!isError(resolveType(body, named, DimPolicy::Fresh)))
        error(body, "E0328", named->range,
              base::concat("`", body.session.sources.text(named->range), "` is not a struct"));
      return failed();
    }
    item = symbol->item->as<syn::StructItem>();
    scope = symbol->scope;
    env = genericEnv(item->generics);
    if (!bindExplicitGenerics(body, env, 0, named->genericArgs, named->range))
      return failed();
    if (expected && expected->kind == TypeKind::Struct)
      if (const StructInstance* instance = body.session.findStruct(expected->decl);
          instance && instance->item == item && named->genericArgs.empty())
        env = instance->generics;
  }
  std::vector<Expr*> values(item->fields.size());
  if (!placeFields(body, expr, item, values, env, scope))
    return errorExpr(body, expr->range);
  for (const GenericBinding& binding : env)
    if (!binding.value.isBound()) {
      error(body, "E0306", named->range,
            base::concat("`", binding.name, "` of `", item->name.text, "` cannot be inferred"));
      return errorExpr(body, expr->range);
    }
  if (!checkBounds(body, item->generics, env, named->range, scope))
    return errorExpr(body, expr->range);
  StructInstance* instance = body.session.structInstance(item, scope, env);
  std::vector<Type> fieldTypes;
  {
    LocalScope hidden(body);  // the struct's dimension names
    Type declared = structType(body, instance, DimPolicy::Fresh);
    if (isError(declared))
      return errorExpr(body, expr->range);
    fieldTypes = declared->elems;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = convert(body, values[i], fieldTypes[i], Site::Argument, item->fields[i].range, "declared here");
    if (isError(values[i]))
      return errorExpr(body, expr->range);
  }
  if (!checkFieldDims(body, *item, fieldTypes, values))
    return errorExpr(body, expr->range);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i]->type->isTensor())
      fieldTypes[i] = values[i]->type;  // extents are part of the value
  return make(body, ExprKind::MakeStruct, body.types.structure(instance->decl, std::move(fieldTypes)), expr->range,
              std::move(values));
}

/// Extents that the struct calls by one name must not be known to differ; what is not known is compared before a launch.
static bool checkFieldDims(BodyState& body, const syn::StructItem& item, const std::vector<Type>& declared,
                           const std::vector<Expr*>& values) {
  struct Bound {
    DimExpr name, extent;
    size_t field;
  };
  std::vector<Bound> known;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!declared[i]->isTensor() || !values[i]->type->isTensor() || declared[i]->rank() != values[i]->type->rank())
      continue;
    for (size_t dim = 0; dim < declared[i]->shape.size(); ++dim) {
      const DimExpr &name = declared[i]->shape[dim], &extent = values[i]->type->shape[dim];
      auto first = std::find_if(known.begin(), known.end(), [&](const Bound& each) { return each.name == name; });
      if (first == known.end()) {
        known.push_back({name, extent, i});
      } else if (dimEqual(body, first->extent, extent) == DimEqual::No) {
        error(body, "E0334", values[i]->range,
              base::concat("extent ", dim, " of `", item.fields[i].name.text, "` must be `", text(body, first->extent),
                           "`, but it is `", text(body, extent), "`"))
            .primary(base::concat("`", shapeText(body, values[i]->type), "`"))
            .label(item.fields[i].range, "declared here")
            .label(values[first->field]->range,
                   base::concat("`", item.fields[first->field].name.text, "` has the same extent by name"));
        return false;
      }
    }
  }
  return true;
}

/// A tensor assigned to a field has the extents that other fields have by the same names. What is known to differ is reported here;
/// the rest the running program compares (Expr::ints).
bool shareExtents(BodyState& body, Expr* assign) {
  const Expr *target = assign->args[0], *value = assign->args[1];
  const Type type = target->kind == ExprKind::Field && target->type->isTensor() ? target->args[0]->type : nullptr;
  const StructInstance* instance =
      type && type->kind == TypeKind::Struct ? body.session.findStruct(type->decl) : nullptr;
  if (!instance || !value->type->isTensor())
    return true;
  LocalScope hidden(body);
  const Type declared = structType(body, instance, DimPolicy::Fresh);
  if (isError(declared))
    return true;
  const auto& fields = instance->item->as<syn::StructItem>()->fields;
  const auto field = static_cast<size_t>(target->ints[0]);
  const std::vector<DimExpr>& names = declared->elems[field]->shape;
  for (size_t other = 0; other < declared->elems.size(); ++other) {
    if (other == field || !declared->elems[other]->isTensor())
      continue;
    const std::vector<DimExpr>&siblings = declared->elems[other]->shape, &extents = type->elems[other]->shape;
    for (size_t dim = 0; dim < names.size() && dim < value->type->shape.size(); ++dim)
      for (size_t at = 0; at < siblings.size(); ++at) {
        if (!(names[dim] == siblings[at]) || names[dim].asConstant())
          continue;
        if (dimEqual(body, value->type->shape[dim], extents[at]) == DimEqual::No) {
          error(body, "E0334", value->range,
                base::concat("extent ", dim, " of `", fields[field].name.text, "` must be `", text(body, extents[at]),
                             "`, but it is `", text(body, value->type->shape[dim]), "`"))
              .primary(base::concat("`", shapeText(body, value->type), "`"))
              .label(fields[field].range, "declared here")
              .label(fields[other].range, "has the same extent by name")
              .help(base::concat("to change the extents of all fields make a new `", instance->item->name.text, "`"));
          return false;
        }
        assign->ints.insert(assign->ints.end(),
                            {static_cast<int64_t>(dim), static_cast<int64_t>(other), static_cast<int64_t>(at)});
      }
  }
  return true;
}

static bool placeFields(BodyState& body, const syn::StructExpr* expr, const syn::StructItem* item,
                        std::vector<Expr*>& values, GenericEnv& env, ItemScope* scope) {
  bool ok = true;
  for (const syn::FieldInit& init : expr->fields) {
    size_t at = 0;
    while (at < item->fields.size() && item->fields[at].name.text != init.name.text)
      ++at;
    if (at == item->fields.size()) {
      auto builder = error(body, "E0322", init.name.range,
                           base::concat("`", item->name.text, "` has no field `", init.name.text, "`"));
      builder.label(item->name.range, "declared here");
      diag::suggest(builder, nullptr, init.name.text, syn::namesOf(item->fields));
      ok = false;
      continue;
    }
    FunctionCall target;
    target.scope = scope;
    values[at] = check(body, init.value, hintFor(body, item->fields[at].type, env, target));
    if (isError(values[at]))
      ok = false;
    else
      infer(body, item->fields[at].type, values[at]->type, env, scope);
  }
  std::string missing;
  for (size_t i = 0; i < values.size(); ++i)
    if (!values[i])
      missing += (missing.empty() ? "`" : ", `") + std::string(item->fields[i].name.text) + "`";
  if (ok && !missing.empty()) {
    error(body, "E0322", expr->type->range, base::concat("missing in `", item->name.text, "`: ", missing))
        .label(item->name.range, "declared here");
    ok = false;
  }
  return ok;
}

}  // namespace vortex::lang
