// Generic parameters: inference from argument types, representatives for `vortex check`.
#include "lang/sema/check/traits/generics.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/integers.h"

#include "base/text.h"

namespace vortex::lang {

static bool inferThroughAlias(BodyState& body, const syn::NamedType* named, Type type, GenericEnv& env,
                              ItemScope* scope);

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
      generic->param = static_cast<const BoundParam*>(type->param);
    }
}

}  // namespace

void infer(BodyState& body, const syn::Type* pattern, Type type, GenericEnv& env, ItemScope* scope) {
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
    if (named->path.size() > 1 && (named->path.front().text == "Self" || findGeneric(env, named->path.front().text)))
      return;  // `T.Item` says nothing of `T`
    if (inferThroughAlias(body, named, type, env, scope))
      return;
    if (type->isTensor() && last == "Tensor" && !named->genericArgs.empty() && named->genericArgs[0].type) {
      infer(body, named->genericArgs[0].type, type->elem, env, scope);
      inferTensor(named, type, env, body.types);
    } else if (type->kind == TypeKind::Vec && last == "Vec" && named->genericArgs.size() == 1 &&
               named->genericArgs[0].type) {
      infer(body, named->genericArgs[0].type, type->elem, env, scope);
    } else if (type->kind == TypeKind::Struct) {
      const StructInstance* instance = body.session.findStruct(type->decl);
      for (size_t i = 0; instance && i < named->genericArgs.size() && i < instance->generics.size(); ++i) {
        const GenericValue& actual = instance->generics[i].value;
        if (actual.kind == GenericValue::Kind::Type && named->genericArgs[i].type)
          infer(body, named->genericArgs[i].type, actual.type, env, scope);
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
    infer(body, array->elem, type->elem, env, scope);
    inferDim(array->count, DimExpr::constant(static_cast<int64_t>(type->count)), env, body.types);
    return;
  }
  case syn::TypeKind::Tuple: {
    auto* tuple = pattern->as<syn::TupleType>();
    for (size_t i = 0; type->kind == TypeKind::Tuple && i < tuple->elems.size() && i < type->elems.size(); ++i)
      infer(body, tuple->elems[i], type->elems[i], env, scope);
    return;
  }
  case syn::TypeKind::Ref:
    return infer(body, pattern->as<syn::RefType>()->inner, type->kind == TypeKind::Ref ? type->elem : type, env, scope);
  case syn::TypeKind::Spaced: {
    auto* spaced = pattern->as<syn::SpacedType>();
    if (GenericValue* generic = findGeneric(env, spaced->space.name.text);
        generic && !generic->isBound() && type->isTensor()) {
      generic->kind = GenericValue::Kind::Space;
      generic->space = type->space;
      generic->param = static_cast<const BoundParam*>(type->param);
    }
    return infer(body, spaced->inner, type, env, scope);
  }
  case syn::TypeKind::Function: {
    auto* closure = pattern->as<syn::FunctionType>();
    if (type->kind != TypeKind::Closure)
      return;
    for (size_t i = 0; i < closure->params.size() && i < type->elems.size(); ++i)
      infer(body, closure->params[i], type->elems[i], env, scope);
    if (closure->result)
      infer(body, closure->result, type->elem, env, scope);
    return;
  }
  default: return;
  }
}

/// `&SharedTensor<T, [N]>`: what the alias stands for is matched, then its arguments against what its parameters became.
static bool inferThroughAlias(BodyState& body, const syn::NamedType* named, Type type, GenericEnv& env,
                              ItemScope* scope) {
  const Symbol* symbol = scope ? scope->find(named->path.back().text) : nullptr;
  auto* alias = symbol && symbol->kind == SymbolKind::Alias ? symbol->item->tryAs<syn::TypeAliasItem>() : nullptr;
  if (!alias || !alias->aliased || body.aliasDepth > 100)
    return false;
  GenericEnv inner = genericEnv(alias->generics);
  ++body.aliasDepth;
  infer(body, alias->aliased, type, inner, symbol->scope);
  --body.aliasDepth;
  for (size_t i = 0; i < named->genericArgs.size() && i < inner.size(); ++i) {
    const GenericValue& actual = inner[i].value;
    const syn::GenericArg& arg = named->genericArgs[i];
    if (actual.kind == GenericValue::Kind::Type && arg.type)
      infer(body, arg.type, actual.type, env, scope);
    else if (GenericValue* generic = lone(arg.type, env); generic && !generic->isBound() && actual.isBound())
      *generic = actual;
    else if (auto* list =
                 arg.expr && actual.kind == GenericValue::Kind::Shape ? arg.expr->tryAs<syn::ArrayExpr>() : nullptr)
      for (size_t dim = 0; dim < list->elems.size() && dim < actual.shape.size(); ++dim)
        inferDim(list->elems[dim], actual.shape[dim], env, body.types);
  }
  return true;
}

GenericEnv representative(BodyState& body, const syn::Generics& params, GenericEnv outer, ItemScope* scope) {
  GenericEnv env = genericEnv(params, std::move(outer));
  for (GenericBinding& binding : env) {
    if (binding.value.isBound())
      continue;
    binding.isExample = true;
    if (binding.param->isConst) {
      binding.value.kind = GenericValue::Kind::Const;
      binding.value.type =
          binding.param->constType ? resolveType(body, binding.param->constType, DimPolicy::Known) : usize(body);
      binding.value.value = binding.value.type->isScalar(Scalar::Bool)    ? 0
                            : binding.value.type->isScalar(Scalar::Usize) ? 256
                                                                          : 1;
      for (const auto& [fixed, number] : body.session.options.fixedDims)
        if (fixed == binding.name && binding.value.type->kind == TypeKind::Scalar &&
            wrapInteger(binding.value.type->scalar, number) == number) {
          body.session.program.fixedDims.insert(fixed);
          binding.value.value = number;
          binding.isExample = false;
        }
      continue;
    }
    std::vector<GenericValue> candidates;
    for (Scalar scalar : {Scalar::F32, Scalar::I32, Scalar::U32})
      candidates.push_back(typeValue(body.types.scalar(scalar)));
    GenericValue space, shape;
    space.kind = GenericValue::Kind::Space;
    shape.kind = GenericValue::Kind::Shape;
    shape.shape = {DimExpr::constant(0)};
    candidates.push_back(space);
    candidates.push_back(shape);
    for (const ImplBlock& impl : body.session.modules.impls())
      if (impl.item->generics.params.empty() && impl.item->trait)
        if (auto* self = impl.item->selfType->tryAs<syn::NamedType>(); self && !self->hasGenericArgs)
          if (const Symbol* symbol = impl.scope->find(self->path.back().text))
            if (symbol->kind == SymbolKind::Enum ||
                (symbol->kind == SymbolKind::Struct && symbol->item->as<syn::StructItem>()->generics.params.empty()))
              candidates.push_back(typeValue(
                  structType(body, body.session.structInstance(symbol->item, symbol->scope, {}), DimPolicy::Fresh)));
    for (const GenericValue& candidate : candidates) {
      binding.value = candidate;
      if (checkBoundsQuietly(body, params, env, scope))
        break;
      binding.value = {};
    }
  }
  return env;
}

/// What one tensor tells: its type is matched with extents by which a constant is recognised.
static void noteTold(BodyState& body, const syn::Type* pattern, Type tensor, uint32_t param, const GenericEnv& env,
                     ItemScope* scope, std::vector<GenericArgument>& out) {
  std::vector<DimExpr> shape;
  for (size_t dim = 0; dim < tensor->shape.size(); ++dim)
    shape.push_back(DimExpr::constant(static_cast<int64_t>(dim)));
  GenericEnv open = env;
  for (GenericBinding& binding : open)
    binding.value = {};
  infer(body, pattern, body.types.tensor(tensor->elem, shape, tensor->space), open, scope);
  for (size_t i = 0; i < open.size(); ++i) {
    const GenericValue& told = open[i].value;
    const bool isElement = told.kind == GenericValue::Kind::Type && told.type == tensor->elem;
    if (out[i].param || !(isElement || told.kind == GenericValue::Kind::Const))
      continue;
    out[i].param = param;
    if (!isElement)
      out[i].dim = static_cast<uint32_t>(told.value);
  }
}

std::vector<GenericArgument> genericArguments(BodyState& body, const syn::FunctionItem& kernel, const GenericEnv& env,
                                              ItemScope* scope) {
  std::vector<GenericArgument> out;
  for (const GenericBinding& binding : env)
    out.push_back({text(binding.value), std::nullopt, std::nullopt});
  for (size_t i = 0; !env.empty() && i < body.function->params.size() && i < kernel.params.size(); ++i)
    if (const Type type = stripRef(body.function->params[i]->type); type->isTensor() && kernel.params[i].type)
      noteTold(body, kernel.params[i].type, type, static_cast<uint32_t>(i), env, scope, out);
  return out;
}

}  // namespace vortex::lang
