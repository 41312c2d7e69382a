// Associated types: what `T.Item` is for a type, and what stands for it while `T` is a generic parameter.
#include "lang/sema/check/checker.h"
#include "lang/sema/check/names.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

const syn::TypeAliasItem* typeMember(syn::List<syn::Item*> members, std::string_view name) {
  for (const syn::Item* member : members)
    if (auto* alias = member->tryAs<syn::TypeAliasItem>(); alias && alias->name.text == name)
      return alias;
  return nullptr;
}

bool isStandIn(Type type) { return type->param && !type->isTensor(); }

}  // namespace

bool Checker::declaresType(const TraitRef& trait, std::string_view name) {
  TraitSet builtins;
  std::vector<TraitRef> all;
  withSupertraits(trait, builtins, all, nullptr);
  return std::any_of(all.begin(), all.end(),
                     [&](const TraitRef& each) { return typeMember(each.item->members, name) != nullptr; });
}

Type Checker::aliasedType(const syn::TypeAliasItem* alias, ItemScope* scope, const GenericEnv& env, Type self,
                          const syn::ImplItem* impl) {
  const std::pair question(self, alias);
  auto& asked = session.associatedQuestions;
  if (std::find(asked.begin(), asked.end(), question) != asked.end() || asked.size() > 100) {
    error("E0335", alias->name.range, base::concat("`", alias->name.text, "` is defined through itself"));
    return types.error();
  }
  asked.push_back(question);
  Checker there(session, nullptr, session.scratchFunction(), scope);
  there.generics = env;
  there.selfType = self;
  if (impl)
    there.boundLists.push_back(&impl->generics);
  Type out = there.resolveType(alias->aliased, DimPolicy::Fresh);
  asked.pop_back();
  return out;
}

/// Of a parameter (or of a type that only a `where` clause says to have the trait): a type of which the trait's bounds are known.
Type Checker::associatedStandIn(const TraitRef& trait, Type self, const syn::TypeAliasItem* declared) {
  for (const auto& [name, type] : trait.fixed)
    if (name == declared->name.text)
      return type;
  auto& known = session.associatedStandIns[{self, declared->name.text}];
  for (const Session::AssociatedStandIn& each : known)
    if (each.trait == trait)
      return each.type;
  BoundParam& param = *session.newBoundParam();
  param.name = base::concat(text(self), ".", declared->name.text);
  param.range = declared->name.range;
  param.isAssociated = true;
  addBuiltinBounds(param, declared->bounds, trait.scope);
  if (isStandIn(self))
    for (const PathBounds& each : static_cast<const BoundParam*>(self->param)->paths) {
      if (each.path.front() != declared->name.text)
        continue;
      if (each.path.size() == 1)
        addBuiltinBounds(param, each.bounds, each.scope);
      else
        param.paths.push_back({{each.path.begin() + 1, each.path.end()}, each.bounds, each.scope});
    }
  Type type = standIn(param);
  session.associatedStandIns[{self, declared->name.text}].push_back({trait, type});
  Checker there(session, nullptr, session.scratchFunction(), trait.scope);
  there.generics = envOf(trait);
  there.selfType = self;
  there.addTraitBounds(type, declared->bounds, trait.scope);
  return type;
}

void Checker::addAssociatedOfImpls(Type self, std::string_view name, std::vector<AssociatedCandidate>& out) {
  for (size_t i = 0; i < session.impls().size(); ++i) {
    const ImplBlock impl = session.impls()[i];
    const syn::TypeAliasItem* alias = impl.item->trait ? nullptr : typeMember(impl.item->members, name);
    GenericEnv env = genericEnv(impl.item->generics);
    if (alias && matchesImpl(impl, self, nullptr, env))
      out.push_back({{}, alias, aliasedType(alias, impl.scope, env, self, impl.item)});
  }
  std::set<const syn::TraitItem*> seen;
  const bool isOwn = !out.empty();
  for (size_t i = 0; i < session.traits().size() && !isOwn; ++i) {
    const Session::DeclaredTrait declared = session.traits()[i];
    const syn::TypeAliasItem* alias = typeMember(declared.item->members, name);
    if (!alias || !seen.insert(declared.item).second)
      continue;
    std::vector<AssociatedCandidate> found;
    for (const FoundImpl& impl : findImpls(self, {declared.item, declared.scope, std::nullopt})) {
      if (impl.trait.isOpen())
        continue;
      if (const auto* own = typeMember(impl.impl->item->members, name))
        found.push_back({impl.trait, alias, aliasedType(own, impl.impl->scope, impl.env, self, impl.impl->item)});
      else  // missing where it must be given: reported at the impl
        found.push_back({impl.trait, alias,
                         alias->aliased ? aliasedType(alias, declared.scope, envOf(impl.trait), self) : types.error()});
    }
    for (const TraitRef& listed : listedTraits(self, declared.item))
      if (alias->aliased)
        found.push_back({listed, alias, aliasedType(alias, declared.scope, envOf(listed), self)});
    for (AssociatedCandidate& each : found)
      out.push_back(std::move(each));
  }
}

std::vector<Checker::AssociatedCandidate> Checker::associatedCandidates(Type self, std::string_view name) {
  std::vector<AssociatedCandidate> out;
  const auto addPromised = [&](const std::vector<TraitRef>& traits) {
    for (const TraitRef& trait : traits)
      if (const auto* declared = trait.item ? typeMember(trait.item->members, name) : nullptr)
        out.push_back({trait, declared, associatedStandIn(trait, self, declared)});
  };
  if (isStandIn(self)) {
    const std::vector<TraitRef> traits = static_cast<const BoundParam*>(self->param)->traits;
    addPromised(traits);
  }
  for (const auto& [known, has] : std::vector(assumed)) {
    if (!out.empty() || !agree(known, self))
      continue;
    TraitSet builtins;
    std::vector<TraitRef> traits;
    withSupertraits(has, builtins, traits, self);
    addPromised(traits);
  }
  if (out.empty())
    addAssociatedOfImpls(self, name, out);
  return out;
}

Type Checker::associatedType(Type self, const syn::Name& name, SourceRange use) {
  if (isError(self))
    return self;
  self = canonicalSelf(self);
  // In a trait and in its impls `Self.Item` is the one of that trait.
  if (const TraitRef* own = selfType && canonicalSelf(selfType) == self ? ownTrait() : nullptr)
    if (Type type = associatedIn(*own, self, name.text))
      return type;
  const std::vector<AssociatedCandidate> found = associatedCandidates(self, name.text);
  if (found.empty()) {
    if (const BoundParam* param = isStandIn(self) ? static_cast<const BoundParam*>(self->param) : nullptr)
      for (const Session::DeclaredTrait& declared : session.traits())
        if (typeMember(declared.item->members, name.text)) {
          missingBound(*param, declared.item->name.text, name.range, base::concat("`", name.text, "`"));
          return types.error();
        }
    error("E0321", name.range, base::concat("`", text(self), "` has no type `", name.text, "`"))
        .primary("not a type of any of its traits");
    return types.error();
  }
  for (const AssociatedCandidate& other : found)
    if (!isError(other.type) && !isError(found[0].type) && !agree(other.type, found[0].type)) {
      error("E0357", use,
            base::concat("`", name.text, "` of `", text(self), "` may come from `", found[0].trait.text(),
                         "` or from `", other.trait.text(), "`"))
          .primary("two traits have it")
          .label(found[0].declared->name.range, "one")
          .label(other.declared->name.range, "the other")
          .help("rename one of them, or make it a generic parameter: `<U, T: Trait<Item = U>>`");
      return types.error();
    }
  return found[0].type;
}

/// The trait that the function being checked belongs to, as a default or in an impl.
const TraitRef* Checker::ownTrait() {
  if (!knowsOwnTrait_ && instance) {
    knowsOwnTrait_ = true;
    if (instance->impl) {
      if (instance->impl->trait)
        ownTrait_ = findTrait(instance->impl->trait, instance->scope, false);
    } else {
      for (const Session::DeclaredTrait& declared : session.traits())
        if (std::find(declared.item->members.begin(), declared.item->members.end(), instance->item) !=
            declared.item->members.end()) {
          TraitRef trait{declared.item, declared.scope, std::nullopt};
          for (const syn::GenericParam& param : declared.item->generics.params)
            if (const GenericValue* value = findGeneric(generics, param.name.text))
              trait.args.push_back(*value);
          ownTrait_ = std::move(trait);
          break;
        }
    }
  }
  return ownTrait_ ? &*ownTrait_ : nullptr;
}

/// The type's associated type in this trait or one that it requires; null if it is not known.
Type Checker::associatedIn(const TraitRef& trait, Type self, std::string_view name) {
  TraitSet builtins;
  std::vector<TraitRef> all;
  withSupertraits(trait, builtins, all, self);
  for (const AssociatedCandidate& each : associatedCandidates(self, name))
    if (each.trait.item && std::find(all.begin(), all.end(), each.trait) != all.end())
      return each.type;
  for (const TraitRef& each : all) {  // impls that are for this trait only with these arguments
    const auto* alias = typeMember(each.item->members, name);
    auto found = alias && !isStandIn(self) && !each.isOpen() ? findImpl(self, each) : std::nullopt;
    if (!found)
      continue;
    if (const auto* own = typeMember(found->impl->item->members, name))
      return aliasedType(own, found->impl->scope, found->env, self, found->impl->item);
    return alias->aliased ? aliasedType(alias, each.scope, envOf(each), self) : types.error();
  }
  return nullptr;
}

/// What the bounds of a parameter say which trait is meant by `T.Item`, now that `T` is a type.
Type Checker::associatedByBounds(std::string_view param, Type self, std::string_view name) {
  const auto find = [&](syn::List<syn::Type*> bounds) -> Type {
    for (const syn::Type* bound : bounds)
      if (auto trait = boundTrait(bound, generics, items, selfType, self, false);
          trait && trait->item && !trait->args.empty())
        if (Type type = associatedIn(*trait, canonicalSelf(self), name))
          return type;
    return nullptr;
  };
  for (const syn::Generics* list : boundLists) {
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

Type Checker::fixedMismatch(Type self, const TraitRef& trait) {
  for (const auto& [name, wanted] : trait.fixed) {
    Type have = associatedIn(trait, canonicalSelf(self), name);
    if (have && !isError(have) && !agree(have, wanted))
      return have;
  }
  return nullptr;
}

/// `T.Item`, `Self.Item.Inner`, `mod.S.Item`: a path that leads from a type to associated types. `isPath` is false for other paths.
Type Checker::pathType(const syn::NamedType* type, DimPolicy policy, bool& isPath) {
  isPath = false;
  const syn::Name& first = type->path.front();
  Type at = nullptr;
  size_t next = 1;
  const GenericValue* generic = findGeneric(generics, first.text);
  const Symbol* symbol = generic ? nullptr : items->find(first.text);
  while (symbol && symbol->kind == SymbolKind::Module && next + 1 < type->path.size()) {
    auto found = symbol->scope->symbols.find(type->path[next++].text);
    symbol = found == symbol->scope->symbols.end() ? nullptr : &found->second;
  }
  if (generic && generic->kind == GenericValue::Kind::Type)
    at = generic->type;
  else if (first.text == "Self" && selfType)
    at = selfType;
  else if (auto scalar = symbol ? std::nullopt : scalarNamed(first.text))
    at = types.scalar(*scalar);
  else if (!symbol || (symbol->kind != SymbolKind::Struct && symbol->kind != SymbolKind::Enum &&
                       symbol->kind != SymbolKind::Alias))
    return nullptr;
  isPath = true;
  if (!at) {
    syn::NamedType head;
    head.kind = syn::TypeKind::Named;
    head.path = type->path.subspan(0, next);
    head.range = source::join(first.range, type->path[next - 1].range);
    at = resolveNamed(&head, policy);
  }
  if (generic && !isStandIn(at))
    if (Type bounded = associatedByBounds(first.text, at, type->path[next].text)) {
      at = bounded;
      ++next;
    }
  for (; next < type->path.size() && !isError(at); ++next)
    at = associatedType(at, type->path[next], type->range);
  if (type->hasGenericArgs && !isError(at)) {
    error("E0329", type->range, "an associated type takes no arguments");
    return types.error();
  }
  return at;
}

void Checker::checkAssociatedBounds(const TraitRef& trait, const syn::TypeAliasItem* declared, Type type, Type self,
                                    SourceRange use) {
  Checker there(session, nullptr, session.scratchFunction(), trait.scope);
  there.generics = envOf(trait);
  there.selfType = self;
  there.assumed = assumed;
  GenericValue value;
  value.kind = GenericValue::Kind::Type;
  value.type = type;
  for (const syn::Type* bound : declared->bounds) {
    auto wanted = there.findTrait(bound, trait.scope, false);
    if (!wanted || there.hasTrait(value, *wanted))
      continue;
    auto builder = error("E0307", use,
                         base::concat("`", text(value.type), "` is not `", describeBound(bound, *wanted), "`, which `",
                                      declared->name.text, "` of `", trait.text(), "` must be"));
    builder.primary(base::concat("`", declared->name.text, "` is `", text(value.type), "` here"))
        .label(bound->range, "required here");
    if (const BoundParam* param = paramOf(value); param && !param->isAssociated)
      builder.help(base::concat("add the bound where `", param->name, "` is declared: `",
                                boundWith(*param, describeBound(bound, *wanted)), "`"));
  }
}

/// The associated types of an impl are what the trait's bounds ask for.
void Checker::checkAssociatedTypes(const ImplBlock& impl, const TraitRef& trait, Type self) {
  for (const syn::Item* member : trait.item->members) {
    auto* declared = member->tryAs<syn::TypeAliasItem>();
    if (!declared)
      continue;
    const auto* own = typeMember(impl.item->members, declared->name.text);
    const syn::TypeAliasItem* given = own ? own : declared;
    if (!given->aliased)
      continue;  // missing, reported
    Type type =
        own ? aliasedType(own, impl.scope, generics, self) : aliasedType(declared, trait.scope, envOf(trait), self);
    if (isError(type))
      continue;
    checkAssociatedBounds(trait, declared, type, self, own ? own->aliased->range : impl.item->trait->range);
  }
}

}  // namespace vortex::lang
