// Associated types: what `T.Item` is for a type, and what stands for it while `T` is a generic parameter.
#include "lang/sema/check/traits/associated.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/definitions.h"
#include "lang/sema/check/traits/impl_match.h"
#include "lang/sema/check/traits/implements.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/canonical.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::lang {

static Type associatedIn(BodyState& body, const TraitRef& trait, Type self, std::string_view name);

namespace {

const syn::TypeAliasItem* typeMember(syn::List<syn::Item*> members, std::string_view name) {
  for (const syn::Item* member : members)
    if (auto* alias = member->tryAs<syn::TypeAliasItem>(); alias && alias->name.text == name)
      return alias;
  return nullptr;
}

bool isStandIn(Type type) { return type->param && !type->isTensor(); }

}  // namespace

bool declaresType(BodyState& body, const TraitRef& trait, std::string_view name) {
  TraitSet builtins;
  std::vector<TraitRef> all;
  withSupertraits(body, trait, builtins, all, nullptr);
  return std::any_of(all.begin(), all.end(),
                     [&](const TraitRef& each) { return typeMember(each.item->members, name) != nullptr; });
}

Type aliasedType(BodyState& body, const syn::TypeAliasItem* alias, ItemScope* scope, const GenericEnv& env, Type self,
                 const syn::ImplItem* impl) {
  const std::pair question(self, alias);
  auto& asked = body.session.associatedQuestions;
  if (std::find(asked.begin(), asked.end(), question) != asked.end() || asked.size() > 100) {
    error(body, "E0335", alias->name.range, base::concat("`", alias->name.text, "` is defined through itself"));
    return body.types.error();
  }
  asked.push_back(question);
  BodyState there(body.session, nullptr, body.session.scratchFunction(), scope);
  there.generics = env;
  there.selfType = self;
  if (impl)
    there.boundLists.push_back(&impl->generics);
  Type out = resolveType(there, alias->aliased, DimPolicy::Fresh);
  asked.pop_back();
  return out;
}

/// Of a parameter (or of a type that only a `where` clause says to have the trait): a type of which the trait's bounds are known.
static Type associatedStandIn(BodyState& body, const TraitRef& trait, Type self, const syn::TypeAliasItem* declared) {
  for (const auto& [name, type] : trait.fixed)
    if (name == declared->name.text)
      return type;
  auto& known = body.session.associatedStandIns[{self, declared->name.text}];
  for (const Session::AssociatedStandIn& each : known)
    if (each.trait == trait)
      return each.type;
  BoundParam& param = *body.session.newBoundParam();
  param.name = base::concat(text(body, self), ".", declared->name.text);
  param.range = declared->name.range;
  param.isAssociated = true;
  addBuiltinBounds(body, param, declared->bounds, trait.scope);
  if (isStandIn(self))
    for (const PathBounds& each : static_cast<const BoundParam*>(self->param)->paths) {
      if (each.path.front() != declared->name.text)
        continue;
      if (each.path.size() == 1)
        addBuiltinBounds(body, param, each.bounds, each.scope);
      else
        param.paths.push_back({{each.path.begin() + 1, each.path.end()}, each.bounds, each.scope});
    }
  Type type = standIn(body, param);
  body.session.associatedStandIns[{self, declared->name.text}].push_back({trait, type});
  BodyState there(body.session, nullptr, body.session.scratchFunction(), trait.scope);
  there.generics = envOf(trait);
  there.selfType = self;
  addTraitBounds(there, type, declared->bounds, trait.scope);
  return type;
}

static void addAssociatedOfImpls(BodyState& body, Type self, std::string_view name,
                                 std::vector<AssociatedCandidate>& out) {
  for (size_t i = 0; i < body.session.modules.impls().size(); ++i) {
    const ImplBlock impl = body.session.modules.impls()[i];
    const syn::TypeAliasItem* alias = impl.item->trait ? nullptr : typeMember(impl.item->members, name);
    GenericEnv env = genericEnv(impl.item->generics);
    if (alias && matchesImpl(body, impl, self, nullptr, env))
      out.push_back({{}, alias, aliasedType(body, alias, impl.scope, env, self, impl.item)});
  }
  std::set<const syn::TraitItem*> seen;
  const bool isOwn = !out.empty();
  for (size_t i = 0; i < body.session.modules.traits().size() && !isOwn; ++i) {
    const DeclaredTrait declared = body.session.modules.traits()[i];
    const syn::TypeAliasItem* alias = typeMember(declared.item->members, name);
    if (!alias || !seen.insert(declared.item).second)
      continue;
    std::vector<AssociatedCandidate> found;
    for (const FoundImpl& impl : findImpls(body, self, {declared.item, declared.scope, std::nullopt})) {
      if (impl.trait.isOpen())
        continue;
      if (const auto* own = typeMember(impl.impl->item->members, name))
        found.push_back({impl.trait, alias, aliasedType(body, own, impl.impl->scope, impl.env, self, impl.impl->item)});
      else  // missing where it must be given: reported at the impl
        found.push_back(
            {impl.trait, alias,
             alias->aliased ? aliasedType(body, alias, declared.scope, envOf(impl.trait), self) : body.types.error()});
    }
    for (const TraitRef& listed : listedTraits(body, self, declared.item))
      if (alias->aliased)
        found.push_back({listed, alias, aliasedType(body, alias, declared.scope, envOf(listed), self)});
    for (AssociatedCandidate& each : found)
      out.push_back(std::move(each));
  }
}

std::vector<AssociatedCandidate> associatedCandidates(BodyState& body, Type self, std::string_view name) {
  std::vector<AssociatedCandidate> out;
  const auto addPromised = [&](const std::vector<TraitRef>& traits) {
    for (const TraitRef& trait : traits)
      if (const auto* declared = trait.item ? typeMember(trait.item->members, name) : nullptr)
        out.push_back({trait, declared, associatedStandIn(body, trait, self, declared)});
  };
  if (isStandIn(self)) {
    const std::vector<TraitRef> traits = static_cast<const BoundParam*>(self->param)->traits;
    addPromised(traits);
  }
  for (const auto& [known, has] : std::vector(body.assumed)) {
    if (!out.empty() || !agree(known, self))
      continue;
    TraitSet builtins;
    std::vector<TraitRef> traits;
    withSupertraits(body, has, builtins, traits, self);
    addPromised(traits);
  }
  if (out.empty())
    addAssociatedOfImpls(body, self, name, out);
  return out;
}

Type associatedType(BodyState& body, Type self, const syn::Name& name, SourceRange use) {
  if (isError(self))
    return self;
  self = canonicalSelf(body, self);
  // In a trait and in its impls `Self.Item` is the one of that trait.
  if (const TraitRef* own = body.selfType && canonicalSelf(body, body.selfType) == self ? ownTrait(body) : nullptr)
    if (Type type = associatedIn(body, *own, self, name.text))
      return type;
  const std::vector<AssociatedCandidate> found = associatedCandidates(body, self, name.text);
  if (found.empty()) {
    if (const BoundParam* param = isStandIn(self) ? static_cast<const BoundParam*>(self->param) : nullptr)
      for (const DeclaredTrait& declared : body.session.modules.traits())
        if (typeMember(declared.item->members, name.text)) {
          missingBound(body, *param, declared.item->name.text, name.range, base::concat("`", name.text, "`"));
          return body.types.error();
        }
    error(body, "E0321", name.range, base::concat("`", text(body, self), "` has no type `", name.text, "`"))
        .primary("not a type of any of its traits");
    return body.types.error();
  }
  for (const AssociatedCandidate& other : found)
    if (!isError(other.type) && !isError(found[0].type) && !agree(other.type, found[0].type)) {
      error(body, "E0357", use,
            base::concat("`", name.text, "` of `", text(body, self), "` may come from `", found[0].trait.text(),
                         "` or from `", other.trait.text(), "`"))
          .primary("two traits have it")
          .label(found[0].declared->name.range, "one")
          .label(other.declared->name.range, "the other")
          .help("rename one of them, or make it a generic parameter: `<U, T: Trait<Item = U>>`");
      return body.types.error();
    }
  return found[0].type;
}

/// The trait that the function being checked belongs to, as a default or in an impl.
const TraitRef* ownTrait(BodyState& body) {
  if (!body.knowsOwnTrait && body.instance) {
    body.knowsOwnTrait = true;
    if (body.instance->impl) {
      if (body.instance->impl->trait)
        body.ownTrait = findTrait(body, body.instance->impl->trait, body.instance->scope, false);
    } else {
      for (const DeclaredTrait& declared : body.session.modules.traits())
        if (std::find(declared.item->members.begin(), declared.item->members.end(), body.instance->item) !=
            declared.item->members.end()) {
          TraitRef trait{declared.item, declared.scope, std::nullopt};
          for (const syn::GenericParam& param : declared.item->generics.params)
            if (const GenericValue* value = findGeneric(body.generics, param.name.text))
              trait.args.push_back(*value);
          body.ownTrait = std::move(trait);
          break;
        }
    }
  }
  return body.ownTrait ? &*body.ownTrait : nullptr;
}

/// The type's associated type in this trait or one that it requires; null if it is not known.
static Type associatedIn(BodyState& body, const TraitRef& trait, Type self, std::string_view name) {
  TraitSet builtins;
  std::vector<TraitRef> all;
  withSupertraits(body, trait, builtins, all, self);
  for (const AssociatedCandidate& each : associatedCandidates(body, self, name))
    if (each.trait.item && std::find(all.begin(), all.end(), each.trait) != all.end())
      return each.type;
  for (const TraitRef& each : all) {  // impls that are for this trait only with these arguments
    const auto* alias = typeMember(each.item->members, name);
    auto found = alias && !isStandIn(self) && !each.isOpen() ? findImpl(body, self, each) : std::nullopt;
    if (!found)
      continue;
    if (const auto* own = typeMember(found->impl->item->members, name))
      return aliasedType(body, own, found->impl->scope, found->env, self, found->impl->item);
    return alias->aliased ? aliasedType(body, alias, each.scope, envOf(each), self) : body.types.error();
  }
  return nullptr;
}

/// What the bounds of a parameter say which trait is meant by `T.Item`, now that `T` is a type.
static Type associatedByBounds(BodyState& body, std::string_view param, Type self, std::string_view name) {
  const auto find = [&](syn::List<syn::Type*> bounds) -> Type {
    for (const syn::Type* bound : bounds)
      if (auto trait = boundTrait(body, bound, body.generics, body.items, body.selfType, self, false);
          trait && trait->item && !trait->args.empty())
        if (Type type = associatedIn(body, *trait, canonicalSelf(body, self), name))
          return type;
    return nullptr;
  };
  for (const syn::Generics* list : body.boundLists) {
    for (const syn::GenericParam& each : list->params)
      if (Type type = each.name.text == param ? find(each.bounds) : nullptr)
        return type;
    for (const syn::WherePredicate& each : list->where) {
      auto* named = each.subject->tryAs<syn::NamedType>();
      const bool isParam = named && named->path.size() == 1 && named->path[0].text == param;
      if (Type type = isParam ? find(each.bounds) : nullptr)
        return type;
    }
  }
  return nullptr;
}

Type fixedMismatch(BodyState& body, Type self, const TraitRef& trait) {
  for (const auto& [name, wanted] : trait.fixed) {
    Type have = associatedIn(body, trait, canonicalSelf(body, self), name);
    if (have && !isError(have) && !agree(have, wanted))
      return have;
  }
  return nullptr;
}

/// `T.Item`, `Self.Item.Inner`, `mod.S.Item`: a path that leads from a type to associated types. `isPath` is false for other paths.
Type pathType(BodyState& body, const syn::NamedType* type, DimPolicy policy, bool& isPath) {
  isPath = false;
  const syn::Name& first = type->path.front();
  Type at = nullptr;
  size_t next = 1;
  const GenericValue* generic = findGeneric(body.generics, first.text);
  const Symbol* symbol = generic ? nullptr : body.items->find(first.text);
  while (symbol && symbol->kind == SymbolKind::Module && next + 1 < type->path.size()) {
    auto found = symbol->scope->symbols.find(type->path[next++].text);
    symbol = found == symbol->scope->symbols.end() ? nullptr : &found->second;
  }
  if (generic && generic->kind == GenericValue::Kind::Type)
    at = generic->type;
  else if (first.text == "Self" && body.selfType)
    at = body.selfType;
  else if (auto scalar = symbol ? std::nullopt : scalarNamed(first.text))
    at = body.types.scalar(*scalar);
  else if (!symbol || (symbol->kind != SymbolKind::Struct && symbol->kind != SymbolKind::Enum &&
                       symbol->kind != SymbolKind::Alias))
    return nullptr;
  isPath = true;
  if (!at) {
    syn::NamedType head;
    head.kind = syn::TypeKind::Named;
    head.path = type->path.subspan(0, next);
    head.range = source::join(first.range, type->path[next - 1].range);
    at = resolveNamed(body, &head, policy);
  }
  if (generic && !isStandIn(at))
    if (Type bounded = associatedByBounds(body, first.text, at, type->path[next].text)) {
      at = bounded;
      ++next;
    }
  for (; next < type->path.size() && !isError(at); ++next)
    at = associatedType(body, at, type->path[next], type->range);
  if (type->hasGenericArgs && !isError(at)) {
    error(body, "E0329", type->range, "an associated type takes no arguments");
    return body.types.error();
  }
  return at;
}

void checkAssociatedBounds(BodyState& body, const TraitRef& trait, const syn::TypeAliasItem* declared, Type type,
                           Type self, SourceRange use) {
  BodyState there(body.session, nullptr, body.session.scratchFunction(), trait.scope);
  there.generics = envOf(trait);
  there.selfType = self;
  there.assumed = body.assumed;
  GenericValue value;
  value.kind = GenericValue::Kind::Type;
  value.type = type;
  for (const syn::Type* bound : declared->bounds) {
    auto wanted = findTrait(there, bound, trait.scope, false);
    if (!wanted || hasTrait(there, value, *wanted))
      continue;
    auto builder = error(body, "E0307", use,
                         base::concat("`", text(body, value.type), "` is not `", describeBound(body, bound, *wanted),
                                      "`, which `", declared->name.text, "` of `", trait.text(), "` must be"));
    builder.primary(base::concat("`", declared->name.text, "` is `", text(body, value.type), "` here"))
        .label(bound->range, "required here");
    if (const BoundParam* param = paramOf(value); param && !param->isAssociated)
      builder.help(base::concat("add the bound where `", param->name, "` is declared: `",
                                boundWith(*param, describeBound(body, bound, *wanted)), "`"));
  }
}

/// The associated types of an impl are what the trait's bounds ask for.
void checkAssociatedTypes(BodyState& body, const ImplBlock& impl, const TraitRef& trait, Type self) {
  for (const syn::Item* member : trait.item->members) {
    auto* declared = member->tryAs<syn::TypeAliasItem>();
    if (!declared)
      continue;
    const auto* own = typeMember(impl.item->members, declared->name.text);
    const syn::TypeAliasItem* given = own ? own : declared;
    if (!given->aliased)
      continue;  // missing, reported
    Type type = own ? aliasedType(body, own, impl.scope, body.generics, self)
                    : aliasedType(body, declared, trait.scope, envOf(trait), self);
    if (isError(type))
      continue;
    checkAssociatedBounds(body, trait, declared, type, self, own ? own->aliased->range : impl.item->trait->range);
  }
}

}  // namespace vortex::lang
