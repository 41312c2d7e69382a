#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/lookup.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/associated.h"
#include "lang/sema/check/types/canonical.h"
#include "lang/sema/check/types/resolve_dim.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/check/types/spaces.h"

#include "base/counted.h"

#include <algorithm>
#include <optional>

namespace vortex::lang {

namespace {

// Names in a type are looked up where it was written.
class Elsewhere {
public:
  Elsewhere(BodyState& body, ItemScope* items, GenericEnv generics, Type selfType)
      : body_(body), items_(body.items), generics_(std::move(body.generics)), selfType_(body.selfType) {
    body.items = items;
    body.generics = std::move(generics);
    body.selfType = selfType;
  }
  ~Elsewhere() {
    body_.items = items_;
    body_.generics = std::move(generics_);
    body_.selfType = selfType_;
  }

private:
  BodyState& body_;
  ItemScope* items_;
  GenericEnv generics_;
  Type selfType_;
};

}  // namespace

/// The definition of `name` is entered; false if it is being resolved already.
static bool enterDefinition(BodyState& body, const void* definition, const syn::Name& name, SourceRange range) {
  constexpr size_t kMaxDepth = 100;
  const bool isCycle = std::find(body.resolving.begin(), body.resolving.end(), definition) != body.resolving.end();
  if (!isCycle && body.resolving.size() < kMaxDepth) {
    body.resolving.push_back(definition);
    return true;
  }
  if (isCycle)
    error(body, "E0335", range, base::concat("`", name.text, "` is defined through itself"))
        .help("keep the values in one `Vec` and let them name each other by index");
  else
    error(body, "E0335", range,
          base::concat("the definition of `", name.text, "` is more than ", kMaxDepth, " types deep"));
  return false;
}

Type aliasType(BodyState& body, const syn::TypeAliasItem* item, ItemScope* scope, syn::List<syn::GenericArg> args,
               SourceRange range, DimPolicy policy) {
  GenericEnv env = genericEnv(item->generics);
  if (!item->aliased || !bindExplicitGenerics(body, env, 0, args, range, policy))
    return body.types.error();
  if (!enterDefinition(body, item, item->name, range))
    return body.types.error();
  Elsewhere there(body, scope, std::move(env), nullptr);
  Type out = resolveType(body, item->aliased, policy);
  body.resolving.pop_back();
  return out;
}

static bool holdsReference(Type type) {
  switch (type->kind) {
  case TypeKind::Ref: return true;
  case TypeKind::Vec:
  case TypeKind::Array: return holdsReference(type->elem);
  case TypeKind::Tuple: return std::any_of(type->elems.begin(), type->elems.end(), holdsReference);
  default: return false;
  }
}

Type structType(BodyState& body, const StructInstance* instance, DimPolicy policy) {
  if (instance->decl->isEnum)
    return body.types.enumeration(instance->decl);
  auto* item = instance->item->as<syn::StructItem>();
  if (!enterDefinition(body, instance, item->name, item->name.range))
    return body.types.error();
  Elsewhere there(body, instance->scope, instance->generics, nullptr);
  std::optional<LocalScope> hidden;  // the launch allocates what a kernel returns: it must know all extents
  if (policy == DimPolicy::Result && !body.function->isKernel) {
    hidden.emplace(body);
    policy = DimPolicy::Field;
  }
  std::vector<Type> fields;
  bool ok = true;
  for (size_t i = 0; i < item->fields.size() && ok; ++i) {
    fields.push_back(resolveType(body, item->fields[i].type, policy == DimPolicy::Known ? DimPolicy::Fresh : policy));
    ok = !isError(fields.back()) && checkFieldSpace(body, fields.back(), item->fields[i], item->name);
    if (ok && holdsReference(fields.back()))
      error(body, "E0524", item->fields[i].type->range,
            base::concat("the field `", item->fields[i].name.text, "` holds a reference: structs own what they hold"))
          .primary("a reference")
          .label(item->name.range, "in this struct")
          .help("hold the value itself, or an index into a list");
  }
  body.resolving.pop_back();
  Type type = ok ? body.types.structure(instance->decl, std::move(fields)) : body.types.error();
  return ok && checkSize(body, type, item->name.range) ? type : body.types.error();
}

GenericEnv genericEnv(const syn::Generics& params, GenericEnv outer) {
  for (const syn::GenericParam& param : params.params)
    outer.push_back({param.name.text, &param, {}});
  return outer;
}

std::optional<GenericValue> genericArg(BodyState& body, const syn::GenericArg& arg, const syn::GenericParam& param,
                                       DimPolicy policy) {
  GenericValue value;
  if (param.isConst) {
    Type type = param.constType ? resolveType(body, param.constType, DimPolicy::Known) : usize(body);
    if (isError(type))
      return std::nullopt;
    value.kind = GenericValue::Kind::Const;
    value.type = type;
    if (arg.expr) {
      Expr* literal = constant(body, arg.expr, type, "a generic argument");
      if (!literal)
        return std::nullopt;
      value.value = literal->intValue;
      return value;
    }
    // A lone name is parsed as a type.
    auto* named = arg.type->tryAs<syn::NamedType>();
    if (named && named->path.size() == 1)
      if (auto dim = dimNamed(body, named->path[0], DimPolicy::Known)) {
        if (auto constant = dim->asConstant()) {
          value.value = *constant;
          return value;
        }
        error(body, "E0310", arg.range, "a generic argument must be known at compile time");
      }
    return std::nullopt;
  }
  if (arg.expr) {
    bool ok = true;
    value.shape = resolveShape(body, arg, policy, ok);
    value.kind = GenericValue::Kind::Shape;
    return ok ? std::optional(value) : std::nullopt;
  }
  if (auto* named = arg.type->tryAs<syn::NamedType>(); named && named->path.size() == 1) {
    if (const GenericValue* outer = findGeneric(body.generics, named->path[0].text);
        outer && outer->kind != GenericValue::Kind::Type)
      return *outer;
    if (!body.items->find(named->path[0].text) && std::isupper(static_cast<unsigned char>(named->path[0].text[0])))
      if (auto space = spaceNamed(body, named->path[0])) {
        value.kind = GenericValue::Kind::Space;
        value.space = *space;
        return value;
      }
  }
  value.kind = GenericValue::Kind::Type;
  value.type = resolveType(body, arg.type, policy);
  return isError(value.type) ? std::nullopt : std::optional(value);
}

bool bindExplicitGenerics(BodyState& body, GenericEnv& env, size_t first, syn::List<syn::GenericArg> args,
                          SourceRange range, DimPolicy policy) {
  const size_t count = env.size() - first;
  if (args.size() > count) {
    error(body, "E0329", range,
          base::concat("expected at most ", base::counted(count, "generic argument"), ", found ", args.size()));
    return false;
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].name.isPresent()) {
      error(body, "E0329", args[i].range,
            base::concat("only the bound of a trait says what `", args[i].name.text, "` is"))
          .primary("not a generic argument");
      return false;
    }
    if (args[i].type && args[i].type->is<syn::InferType>())
      continue;
    auto value = genericArg(body, args[i], *env[first + i].param, policy);
    if (!value)
      return false;
    env[first + i].value = *value;
  }
  return true;
}

/// Is it made of names only?
static bool mayNameType(const syn::Expr* expr) {
  while (auto* member = expr->tryAs<syn::MemberExpr>())
    expr = member->base;
  return expr->is<syn::NameExpr>();
}

Type typeNamed(BodyState& body, const syn::Expr* expr) {
  auto* name = expr->tryAs<syn::NameExpr>();
  if (name && !findLocal(body, name->name.text)) {
    if (const GenericValue* generic = findGeneric(body.generics, name->name.text))
      return generic->kind == GenericValue::Kind::Type ? generic->type : nullptr;
    if (name->name.text == "Self" && body.selfType)
      return body.selfType;
  }
  const Symbol* symbol = findSymbol(body, expr);
  if (!symbol) {
    if (auto scalar = name && !findLocal(body, name->name.text) ? scalarNamed(name->name.text) : std::nullopt)
      return body.types.scalar(*scalar);
    // `T.Item` in `T.Item.zero()`.
    auto* member = expr->tryAs<syn::MemberExpr>();
    Type base = member && mayNameType(member->base) ? typeNamed(body, member->base) : nullptr;
    if (!base || isError(base) || associatedCandidates(body, canonicalSelf(body, base), member->name.text).empty())
      return nullptr;
    return associatedType(body, base, member->name, expr->range);
  }
  if (symbol->kind == SymbolKind::Alias) {
    auto* alias = symbol->item->tryAs<syn::TypeAliasItem>();
    syn::List<syn::GenericArg> args = name ? name->genericArgs : expr->as<syn::MemberExpr>()->genericArgs;
    return alias && alias->aliased && alias->generics.params.size() == args.size()
               ? aliasType(body, alias, symbol->scope, args, expr->range, DimPolicy::Fresh)
               : nullptr;
  }
  if (symbol->kind == SymbolKind::Enum)
    return body.types.enumeration(body.session.structInstance(symbol->item, symbol->scope, {})->decl);
  if (symbol->kind != SymbolKind::Struct)
    return nullptr;
  auto* item = symbol->item->as<syn::StructItem>();
  syn::List<syn::GenericArg> args = name ? name->genericArgs : expr->as<syn::MemberExpr>()->genericArgs;
  GenericEnv env = genericEnv(item->generics);
  if (!bindExplicitGenerics(body, env, 0, args, expr->range))
    return body.types.error();
  for (const GenericBinding& binding : env)
    if (!binding.value.isBound())
      return nullptr;
  return structType(body, body.session.structInstance(item, symbol->scope, std::move(env)), DimPolicy::Fresh);
}

}  // namespace vortex::lang
