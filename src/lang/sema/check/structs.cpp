// Struct literals.
#include "lang/sema/check/checker.h"

#include "base/text.h"

namespace vortex::lang {

Expr* Checker::checkStruct(const syn::StructExpr* expr, Type expected) {
  auto* named = expr->type->tryAs<syn::NamedType>();
  const auto failed = [&]() -> Expr* {
    for (const syn::FieldInit& field : expr->fields)
      check(field.value);
    return errorExpr(expr->range);
  };
  if (!named)
    return failed();
  const syn::StructItem* item = nullptr;
  ItemScope* scope = nullptr;
  GenericEnv env;
  const bool isSelf =
      named->path.size() == 1 && named->path[0].text == "Self" && selfType && session.findStruct(selfType->decl);
  if (isSelf) {
    const StructInstance* instance = session.findStruct(selfType->decl);
    item = instance->item->as<syn::StructItem>();
    scope = instance->scope;
    env = instance->generics;
  } else {
    const Symbol* symbol = items->find(named->path.front().text);
    for (size_t i = 1; symbol && i < named->path.size(); ++i) {
      auto found =
          symbol->kind == SymbolKind::Module ? symbol->scope->symbols.find(named->path[i].text) : items->symbols.end();
      symbol = symbol->kind == SymbolKind::Module && found != symbol->scope->symbols.end() ? &found->second : nullptr;
    }
    if (!symbol || symbol->kind != SymbolKind::Struct) {
      if (!isError(resolveType(named, DimPolicy::Fresh)))
        error("E0328", named->range, base::concat("`", session.sources.text(named->range), "` is not a struct"));
      return failed();
    }
    item = symbol->item->as<syn::StructItem>();
    scope = symbol->scope;
    env = genericEnv(item->generics);
    if (!bindExplicitGenerics(env, 0, named->genericArgs, named->range))
      return failed();
    if (expected && expected->kind == TypeKind::Struct)
      if (const StructInstance* instance = session.findStruct(expected->decl);
          instance && instance->item == item && named->genericArgs.empty())
        env = instance->generics;
  }
  std::vector<Expr*> values(item->fields.size());
  if (!placeFields(expr, item, values, env, scope))
    return errorExpr(expr->range);
  for (const GenericBinding& binding : env)
    if (!binding.value.isBound()) {
      error("E0306", named->range, base::concat("`", binding.name, "` of `", item->name.text, "` cannot be inferred"));
      return errorExpr(expr->range);
    }
  if (!checkBounds(item->generics, env, named->range, scope))
    return errorExpr(expr->range);
  StructInstance* instance = session.structInstance(item, scope, env);
  std::vector<Type> fieldTypes;
  {
    LocalScope hidden(*this);  // the struct's dimension names
    Type declared = structType(instance, DimPolicy::Fresh);
    if (isError(declared))
      return errorExpr(expr->range);
    fieldTypes = declared->elems;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = convert(values[i], fieldTypes[i], Site::Argument, item->fields[i].range, "declared here");
    if (isError(values[i]))
      return errorExpr(expr->range);
  }
  if (!checkFieldDims(*item, fieldTypes, values))
    return errorExpr(expr->range);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i]->type->isTensor())
      fieldTypes[i] = values[i]->type;  // extents are part of the value
  return make(ExprKind::MakeStruct, types.structure(instance->decl, std::move(fieldTypes)), expr->range,
              std::move(values));
}

/// Extents that the struct calls by one name must not be known to differ; what is not known is compared before a launch.
bool Checker::checkFieldDims(const syn::StructItem& item, const std::vector<Type>& declared,
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
      } else if (dimEqual(first->extent, extent) == DimEqual::No) {
        error("E0334", values[i]->range,
              base::concat("extent ", dim, " of `", item.fields[i].name.text, "` must be `", text(first->extent),
                           "`, but it is `", text(extent), "`"))
            .primary(base::concat("`", shapeText(values[i]->type), "`"))
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
bool Checker::shareExtents(Expr* assign) {
  const Expr *target = assign->args[0], *value = assign->args[1];
  const Type type = target->kind == ExprKind::Field && target->type->isTensor() ? target->args[0]->type : nullptr;
  const StructInstance* instance = type && type->kind == TypeKind::Struct ? session.findStruct(type->decl) : nullptr;
  if (!instance || !value->type->isTensor())
    return true;
  LocalScope hidden(*this);
  const Type declared = structType(instance, DimPolicy::Fresh);
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
        if (dimEqual(value->type->shape[dim], extents[at]) == DimEqual::No) {
          error("E0334", value->range,
                base::concat("extent ", dim, " of `", fields[field].name.text, "` must be `", text(extents[at]),
                             "`, but it is `", text(value->type->shape[dim]), "`"))
              .primary(base::concat("`", shapeText(value->type), "`"))
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

bool Checker::placeFields(const syn::StructExpr* expr, const syn::StructItem* item, std::vector<Expr*>& values,
                          GenericEnv& env, ItemScope* scope) {
  bool ok = true;
  for (const syn::FieldInit& init : expr->fields) {
    size_t at = 0;
    while (at < item->fields.size() && item->fields[at].name.text != init.name.text)
      ++at;
    if (at == item->fields.size()) {
      std::vector<std::string> names;
      for (const syn::Field& field : item->fields)
        names.emplace_back(field.name.text);
      auto builder =
          error("E0322", init.name.range, base::concat("`", item->name.text, "` has no field `", init.name.text, "`"));
      builder.label(item->name.range, "declared here");
      if (std::string close = nearest(init.name.text, names); !close.empty())
        builder.help("did you mean `" + close + "`?");
      ok = false;
      continue;
    }
    if (values[at]) {
      error("E0322", init.name.range, base::concat("the field `", init.name.text, "` is given twice"));
      ok = false;
    }
    FunctionCall target;
    target.scope = scope;
    values[at] = check(init.value, hintFor(item->fields[at].type, env, target));
    if (isError(values[at]))
      ok = false;
    else
      infer(item->fields[at].type, values[at]->type, env, scope);
  }
  std::string missing;
  for (size_t i = 0; i < values.size(); ++i)
    if (!values[i])
      missing += (missing.empty() ? "`" : ", `") + std::string(item->fields[i].name.text) + "`";
  if (ok && !missing.empty()) {
    error("E0322", expr->type->range, base::concat("missing in `", item->name.text, "`: ", missing))
        .label(item->name.range, "declared here");
    ok = false;
  }
  return ok;
}

}  // namespace vortex::lang
