// Generic parameters: inference from argument types, bounds, stand-ins for `vortex check`.
#include "lang/sema/check/checker.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

GenericValue typeValue(Type type) {
  GenericValue value;
  value.kind = GenericValue::Kind::Type;
  value.type = type;
  return value;
}

GenericValue* lone(const syn::Type* type, GenericEnv& env) {
  auto* named = type ? type->tryAs<syn::NamedType>() : nullptr;
  return named && named->path.size() == 1 && !named->hasGenericArgs ? findGeneric(env, named->path[0].text) : nullptr;
}

bool isConstParam(const GenericEnv& env, const GenericValue* value) {
  for (const GenericBinding& binding : env)
    if (&binding.value == value)
      return binding.param->isConst;
  return false;
}

void inferDim(const syn::Expr* pattern, const DimExpr& extent, GenericEnv& env, TypeContext& types) {
  auto* name = pattern->tryAs<syn::NameExpr>();
  GenericValue* generic = name ? findGeneric(env, name->name.text) : nullptr;
  auto constant = extent.asConstant();
  if (!generic || generic->isBound() || !constant || !isConstParam(env, generic))
    return;
  generic->kind = GenericValue::Kind::Const;
  generic->type = types.scalar(Scalar::Usize);
  generic->value = *constant;
}

void inferTensor(const syn::NamedType* pattern, Type type, GenericEnv& env, TypeContext& types) {
  if (pattern->genericArgs.size() < 2)
    return;
  const syn::GenericArg& shape = pattern->genericArgs[1];
  if (GenericValue* generic = lone(shape.type, env); generic && !generic->isBound()) {
    generic->kind = GenericValue::Kind::Shape;
    generic->shape = type->shape;
  }
  if (auto* list = shape.expr ? shape.expr->tryAs<syn::ArrayExpr>() : nullptr)
    for (size_t i = 0; i < list->elems.size() && i < type->shape.size(); ++i)
      inferDim(list->elems[i], type->shape[i], env, types);
  if (pattern->genericArgs.size() > 2)
    if (GenericValue* generic = lone(pattern->genericArgs[2].type, env); generic && !generic->isBound()) {
      generic->kind = GenericValue::Kind::Space;
      generic->space = type->space;
    }
}

}  // namespace

void Checker::infer(const syn::Type* pattern, Type type, GenericEnv& env, ItemScope* scope) {
  if (type->kind == TypeKind::Ref && !pattern->is<syn::RefType>() && !lone(pattern, env))
    type = type->elem;
  if (GenericValue* generic = lone(pattern, env)) {
    if (!generic->isBound() && !isConstParam(env, generic) && type->kind != TypeKind::Error)
      *generic = typeValue(type);
    return;
  }
  switch (pattern->kind) {
  case syn::TypeKind::Named: {
    auto* named = pattern->as<syn::NamedType>();
    const std::string_view last = named->path.back().text;
    if (type->isTensor() && last == "Tensor" && !named->genericArgs.empty() && named->genericArgs[0].type) {
      infer(named->genericArgs[0].type, type->elem, env, scope);
      inferTensor(named, type, env, types);
    } else if (type->kind == TypeKind::Vec && last == "Vec" && named->genericArgs.size() == 1 &&
               named->genericArgs[0].type) {
      infer(named->genericArgs[0].type, type->elem, env, scope);
    } else if (type->kind == TypeKind::Struct) {
      const StructInstance* instance = session.findStruct(type->decl);
      for (size_t i = 0; instance && i < named->genericArgs.size() && i < instance->generics.size(); ++i) {
        const GenericValue& actual = instance->generics[i].value;
        if (actual.kind == GenericValue::Kind::Type && named->genericArgs[i].type)
          infer(named->genericArgs[i].type, actual.type, env, scope);
        else if (GenericValue* generic = lone(named->genericArgs[i].type, env); generic && !generic->isBound())
          *generic = actual;
      }
    }
    return;
  }
  case syn::TypeKind::Array: {
    auto* array = pattern->as<syn::ArrayType>();
    if (type->kind != TypeKind::Array)
      return;
    infer(array->elem, type->elem, env, scope);
    inferDim(array->count, DimExpr::constant(static_cast<int64_t>(type->count)), env, types);
    return;
  }
  case syn::TypeKind::Tuple: {
    auto* tuple = pattern->as<syn::TupleType>();
    for (size_t i = 0; type->kind == TypeKind::Tuple && i < tuple->elems.size() && i < type->elems.size(); ++i)
      infer(tuple->elems[i], type->elems[i], env, scope);
    return;
  }
  case syn::TypeKind::Ref:
    return infer(pattern->as<syn::RefType>()->inner, type->kind == TypeKind::Ref ? type->elem : type, env, scope);
  case syn::TypeKind::Spaced: {
    auto* spaced = pattern->as<syn::SpacedType>();
    if (GenericValue* generic = findGeneric(env, spaced->space.name.text);
        generic && !generic->isBound() && type->isTensor()) {
      generic->kind = GenericValue::Kind::Space;
      generic->space = type->space;
    }
    return infer(spaced->inner, type, env, scope);
  }
  case syn::TypeKind::Function: {
    auto* closure = pattern->as<syn::FunctionType>();
    if (type->kind != TypeKind::Closure)
      return;
    for (size_t i = 0; i < closure->params.size() && i < type->elems.size(); ++i)
      infer(closure->params[i], type->elems[i], env, scope);
    if (closure->result)
      infer(closure->result, type->elem, env, scope);
    return;
  }
  default: return;
  }
}

bool Checker::implements(Type type, const syn::Item* trait) {
  const StructInstance* instance =
      type->kind == TypeKind::Struct || type->kind == TypeKind::Enum ? session.findStruct(type->decl) : nullptr;
  if (auto* item = instance ? instance->item->tryAs<syn::StructItem>() : nullptr)
    for (const syn::Type* named : item->traits) {
      const Symbol* symbol =
          named->is<syn::NamedType>() ? instance->scope->find(named->as<syn::NamedType>()->path.back().text) : nullptr;
      if (symbol && symbol->item == trait)
        return true;
    }
  for (const ImplBlock& impl : session.impls()) {
    auto* named = impl.item->trait ? impl.item->trait->tryAs<syn::NamedType>() : nullptr;
    const Symbol* symbol = named ? impl.scope->find(named->path.back().text) : nullptr;
    if (!symbol || symbol->item != trait)
      continue;
    GenericEnv env = genericEnv(impl.item->generics);
    if (matchesSelf(impl, type, env))
      return true;
  }
  return false;
}

/// Does `impl … for selfType` apply to the type? Binds the impl's generic parameters.
bool Checker::matchesSelf(const ImplBlock& impl, Type type, GenericEnv& env) {
  infer(impl.item->selfType, type, env, impl.scope);
  auto* named = impl.item->selfType->tryAs<syn::NamedType>();
  if (!named)
    return false;
  if (named->path.size() == 1)
    if (const GenericValue* generic = findGeneric(env, named->path[0].text))
      return generic->kind == GenericValue::Kind::Type && generic->type == type &&
             checkBoundsQuietly(impl.item->generics, env, impl.scope);
  if (type->kind == TypeKind::Struct || type->kind == TypeKind::Enum) {
    const Symbol* symbol = impl.scope->find(named->path.back().text);
    const StructInstance* instance = session.findStruct(type->decl);
    if (!symbol || !instance || symbol->item != instance->item)
      return false;
    for (const GenericBinding& binding : env)
      if (!binding.value.isBound())
        return false;
    // `impl S<f32>` applies to that instance only.
    for (size_t i = 0; i < named->genericArgs.size() && i < instance->generics.size(); ++i) {
      auto* arg = named->genericArgs[i].type ? named->genericArgs[i].type->tryAs<syn::NamedType>() : nullptr;
      if (!arg || findGeneric(env, arg->path.back().text))
        continue;
      const GenericValue& actual = instance->generics[i].value;
      if (actual.kind == GenericValue::Kind::Type && lang::text(actual.type, {}) != arg->path.back().text)
        return false;
    }
    return checkBoundsQuietly(impl.item->generics, env, impl.scope);
  }
  return named->path.size() == 1 && !named->hasGenericArgs && lang::text(type, {}) == named->path[0].text;
}

bool Checker::satisfies(const GenericValue& value, const syn::Type* bound, ItemScope* scope) {
  auto* named = bound->tryAs<syn::NamedType>();
  if (!named)
    return true;
  const std::string_view name = named->path.back().text;
  const Symbol* symbol = scope->find(named->path.front().text);
  if (symbol && symbol->kind == SymbolKind::Trait)
    return value.kind != GenericValue::Kind::Type || implements(value.type, symbol->item);
  const bool isScalar = value.kind == GenericValue::Kind::Type && value.type->kind == TypeKind::Scalar;
  const Scalar scalar = isScalar ? value.type->scalar : Scalar::Bool;
  if (name == "Numeric")
    return isScalar && scalar != Scalar::Bool;
  if (name == "Float")
    return isScalar && isFloat(scalar);
  if (name == "Integer")
    return isScalar && isInteger(scalar);
  if (name == "Unsigned")
    return isScalar && isUnsigned(scalar);
  if (name == "Signed")
    return isScalar && scalar != Scalar::Bool && !isUnsigned(scalar);
  if (name == "Copy")
    return value.kind == GenericValue::Kind::Type && isCopy(value.type);
  if (name == "MemorySpace" || name == "Readable")
    return value.kind == GenericValue::Kind::Space;
  if (name == "Writable")
    return value.kind == GenericValue::Kind::Space && value.space != Space::Constant;
  if (name == "Shape")
    return value.kind == GenericValue::Kind::Shape;
  if (name == "PowerOfTwo")
    return value.kind == GenericValue::Kind::Const && value.value > 0 && (value.value & (value.value - 1)) == 0;
  if (name == "NonZero")
    return value.kind == GenericValue::Kind::Const && value.value != 0;
  auto builder = error("E0201", bound->range, base::concat("there is no trait `", name, "`"));
  if (std::string close = nearest(name, {"Numeric", "Float", "Integer", "Signed", "Unsigned", "Copy", "MemorySpace",
                                         "Readable", "Writable", "Shape", "PowerOfTwo", "NonZero"});
      !close.empty())
    builder.help("did you mean `" + close + "`?");
  return true;
}

bool Checker::isCopy(Type type) const {
  switch (type->kind) {
  case TypeKind::Scalar:
  case TypeKind::Unit:
  case TypeKind::Enum:
  case TypeKind::Error:
  case TypeKind::Never: return true;
  case TypeKind::Array: return isCopy(type->elem);
  case TypeKind::Tuple:
  case TypeKind::Struct:
    for (Type elem : type->elems)
      if (!isCopy(elem))
        return false;
    return true;
  default: return false;
  }
}

bool Checker::checkBoundsQuietly(const syn::Generics& params, const GenericEnv& env, ItemScope* scope) {
  for (const syn::GenericParam& param : params.params)
    if (const GenericValue* value = findGeneric(env, param.name.text); value && value->isBound())
      for (const syn::Type* bound : param.bounds)
        if (!satisfies(*value, bound, scope))
          return false;
  return true;
}

bool Checker::checkBounds(const syn::Generics& params, const GenericEnv& env, SourceRange use, ItemScope* scope) {
  ItemScope* where = scope ? scope : items;
  bool ok = true;
  const auto check = [&](const syn::Name& name, const syn::Type* bound) {
    const GenericValue* value = findGeneric(env, name.text);
    if (!value || !value->isBound() || satisfies(*value, bound, where))
      return;
    ok = false;
    error("E0307", use, base::concat("`", lang::text(*value), "` is not `", session.sources.text(bound->range), "`"))
        .primary(base::concat("here `", name.text, "` is `", lang::text(*value), "`"))
        .label(bound->range, "required here");
  };
  for (const syn::GenericParam& param : params.params)
    for (const syn::Type* bound : param.bounds)
      check(param.name, bound);
  for (const syn::WherePredicate& predicate : params.where)
    if (auto* named = predicate.subject->tryAs<syn::NamedType>(); named && named->path.size() == 1)
      for (const syn::Type* bound : predicate.bounds)
        check(named->path[0], bound);
  return ok;
}

GenericEnv Checker::representative(const syn::Generics& params, GenericEnv outer, ItemScope* scope) {
  GenericEnv env = genericEnv(params, std::move(outer));
  for (GenericBinding& binding : env) {
    if (binding.value.isBound())
      continue;
    if (binding.param->isConst) {
      binding.value.kind = GenericValue::Kind::Const;
      binding.value.type = binding.param->constType ? resolveType(binding.param->constType, DimPolicy::Known) : usize();
      binding.value.value = binding.value.type->isScalar(Scalar::Bool)    ? 0
                            : binding.value.type->isScalar(Scalar::Usize) ? 256
                                                                          : 1;
      continue;
    }
    std::vector<GenericValue> candidates;
    for (Scalar scalar : {Scalar::F32, Scalar::I32, Scalar::U32})
      candidates.push_back(typeValue(types.scalar(scalar)));
    GenericValue space, shape;
    space.kind = GenericValue::Kind::Space;
    shape.kind = GenericValue::Kind::Shape;
    shape.shape = {DimExpr::constant(0)};
    candidates.push_back(space);
    candidates.push_back(shape);
    for (const ImplBlock& impl : session.impls())
      if (impl.item->generics.params.empty() && impl.item->trait)
        if (auto* self = impl.item->selfType->tryAs<syn::NamedType>(); self && !self->hasGenericArgs)
          if (const Symbol* symbol = impl.scope->find(self->path.back().text))
            if (symbol->kind == SymbolKind::Enum ||
                (symbol->kind == SymbolKind::Struct && symbol->item->as<syn::StructItem>()->generics.params.empty()))
              candidates.push_back(
                  typeValue(structType(session.structInstance(symbol->item, symbol->scope, {}), DimPolicy::Fresh)));
    for (const GenericValue& candidate : candidates) {
      bool fits = true;
      for (const syn::Type* bound : binding.param->bounds)
        fits = fits && satisfies(candidate, bound, scope);
      if (fits) {
        binding.value = candidate;
        break;
      }
    }
  }
  return env;
}

}  // namespace vortex::lang
