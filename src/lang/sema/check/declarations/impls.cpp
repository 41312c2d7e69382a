// Traits and impls as they are declared: what is missing, superfluous, different, twice or in a foreign module.
#include "lang/sema/check/declarations/impls.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/associated.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/definitions.h"
#include "lang/sema/check/traits/generics.h"
#include "lang/sema/check/traits/impl_match.h"
#include "lang/sema/check/traits/implements.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/canonical.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"

#include "base/counted.h"
#include "diag/names_elsewhere.h"

#include <algorithm>

namespace vortex::lang {

static void checkSupertraits(BodyState& body, const TraitRef& trait, Type self, SourceRange range);
static void checkImplMembers(BodyState& body, const ImplBlock& impl, const TraitRef& trait, Type self);
static void compareConstants(BodyState& body, const syn::ConstItem* mine, const syn::ConstItem* declared,
                             const TraitRef& trait);
static void compareFunctions(BodyState& body, const ImplBlock& impl, const syn::FunctionItem* mine,
                             const TraitRef& trait, const syn::FunctionItem* declared, Type self);
static void checkOverlap(BodyState& body, const ImplBlock& impl, const TraitRef& trait, Type self);
static void checkInherentTwice(BodyState& body, const ImplBlock& impl, Type self);

namespace {

const ItemScope* moduleOf(const ItemScope* scope) {
  while (scope->parent)
    scope = scope->parent;
  return scope;
}

const syn::Item* memberNamed(syn::List<syn::Item*> members, std::string_view name) {
  for (const syn::Item* member : members)
    if (member->name.text == name)
      return member;
  return nullptr;
}

bool isRequired(const syn::Item* member) {
  if (auto* function = member->tryAs<syn::FunctionItem>())
    return !function->body;
  if (auto* alias = member->tryAs<syn::TypeAliasItem>())
    return !alias->aliased;
  auto* constant = member->tryAs<syn::ConstItem>();
  return constant && !constant->value;
}

std::string_view kindText(const syn::Item* member) {
  return member->is<syn::FunctionItem>() ? "function" : member->is<syn::ConstItem>() ? "constant" : "type";
}

}  // namespace

static void checkMemberNames(BodyState& body, syn::List<syn::Item*> members) {
  for (size_t i = 0; i < members.size(); ++i) {
    if (auto* alias = members[i]->tryAs<syn::TypeAliasItem>(); alias && !alias->generics.params.empty())
      notYet(body, alias->generics.params[0].range, "an associated type with parameters");
    for (size_t j = 0; j < i; ++j)
      if (members[i]->name.text == members[j]->name.text && members[i]->name.isPresent())
        error(body, "E0202", members[i]->name.range, base::concat("`", members[i]->name.text, "` is defined twice"))
            .primary("second definition")
            .label(members[j]->name.range, "first defined here");
  }
}

/// Of the traits of a cycle only the first one declared reports it.
static bool isFirstOf(const BodyState& body, const std::vector<TraitRef>& traits, const syn::TraitItem* item) {
  for (const DeclaredTrait& declared : body.session.modules.traits()) {
    if (declared.item == item)
      return true;
    for (const TraitRef& trait : traits)
      if (trait.item == declared.item)
        return false;
  }
  return true;
}

void checkTrait(BodyState& body, const syn::TraitItem* item, ItemScope* scope) {
  checkMemberNames(body, item->members);
  for (const syn::Item* member : item->members)
    if (auto* alias = member->tryAs<syn::TypeAliasItem>()) {
      for (const syn::Type* bound : alias->bounds)
        findTrait(body, bound, scope, true);
      if (alias->aliased)
        if (Type preset = aliasedType(body, alias, scope, body.generics, body.selfType); !isError(preset)) {
          TraitRef trait{item, scope, std::nullopt};
          for (const GenericBinding& binding : body.generics)
            trait.args.push_back(binding.value);
          checkAssociatedBounds(body, trait, alias, preset, body.selfType, alias->aliased->range);
        }
    }
  for (const syn::Type* super : item->supertraits) {
    auto found = findTrait(body, super, scope, true);
    if (!found || !found->item)
      continue;
    TraitSet builtins;
    std::vector<TraitRef> reached;
    withSupertraits(body, *found, builtins, reached, body.selfType);
    const bool isCycle =
        std::any_of(reached.begin(), reached.end(), [&](const TraitRef& each) { return each.item == item; });
    if (isCycle && isFirstOf(body, reached, item))
      error(body, "E0358", super->range, base::concat("the trait `", item->name.text, "` requires itself"))
          .primary(found->item == item
                       ? "required here"
                       : base::concat("`", found->item->name.text, "` requires `", item->name.text, "`"))
          .label(item->name.range, "declared here");
  }
}

/// The type an impl is for, with its generic parameters standing for themselves; null after an error.
static Type implSelf(BodyState& body, const ImplBlock& impl) {
  body.generics = standIns(body, impl.item->generics, {}, impl.scope, nullptr);
  assume(body, impl.item->generics);
  Type self = resolveType(body, impl.item->selfType, DimPolicy::Fresh);
  if (isError(self))
    return nullptr;
  self = canonicalSelf(body, self);
  body.selfType = self;
  GenericEnv env = genericEnv(impl.item->generics);
  infer(body, impl.item->selfType, self, env, impl.scope);
  if (auto trait = impl.item->trait ? findTrait(body, impl.item->trait, impl.scope, false) : std::nullopt)
    inferTraitArgs(body, impl, *trait, env);
  for (const GenericBinding& binding : body.generics) {
    if (findGeneric(env, binding.name)->isBound())
      continue;
    auto builder = error(body, "E0306", binding.param->name.range,
                         base::concat("nothing determines `", binding.name, "` of this impl"));
    builder.label(impl.item->selfType->range, base::concat("`", binding.name, "` is not a part of this type"));
    if (impl.item->trait)
      builder.label(impl.item->trait->range, "nor an argument of the trait");
    return nullptr;
  }
  return self;
}

namespace {

/// A type that this module defines stands in the arguments of the trait: nobody else can write this impl.
bool namesOwnType(Session& session, const TraitRef& trait, const ItemScope* module) {
  return std::any_of(trait.args.begin(), trait.args.end(), [&](const GenericValue& arg) {
    const Type type = arg.kind == GenericValue::Kind::Type ? stripRef(arg.type) : nullptr;
    const StructInstance* instance = type && type->decl && !type->param ? session.findStruct(type->decl) : nullptr;
    return instance && moduleOf(instance->scope) == module;
  });
}

}  // namespace

void checkImpl(BodyState& body, const ImplBlock& impl) {
  checkMemberNames(body, impl.item->members);
  Type self = implSelf(body, impl);
  if (!self)
    return;
  body.selfType = self;
  const StructInstance* instance = self->param || !self->decl ? nullptr : body.session.findStruct(self->decl);
  const bool ownsType = instance && moduleOf(instance->scope) == moduleOf(impl.scope);
  if (!impl.item->trait) {
    if (!ownsType)
      error(body, "E0356", impl.item->selfType->range,
            base::concat("`", text(body, self), "` is not defined in this module and cannot get functions of its own"))
          .primary(instance ? "defined in another module" : "a built-in type")
          .help("declare a trait and implement it: `impl MyTrait for …`");
    return checkInherentTwice(body, impl, self);
  }
  auto trait = findTrait(body, impl.item->trait, impl.scope, true);
  if (!trait)
    return;
  if (trait->builtin) {
    error(body, "E0356", impl.item->trait->range,
          base::concat("`", name(*trait->builtin), "` is built in and cannot be implemented"))
        .primary("the compiler knows which types have it");
    return;
  }
  if (!ownsType && moduleOf(trait->scope) != moduleOf(impl.scope) &&
      !namesOwnType(body.session, *trait, moduleOf(impl.scope))) {
    error(body, "E0356", impl.item->trait->range,
          "neither the trait nor the type of this impl is defined in this module")
        .primary("a trait of another module")
        .label(impl.item->selfType->range, instance ? "a type of another module" : "a built-in type")
        .help("two modules could do this in different ways; move the impl to one of the definitions");
    return;
  }
  if (!trait->fixed.empty())
    error(body, "E0329", impl.item->trait->range, "an impl says what its types are in its body")
        .help(base::concat("write `type ", trait->fixed[0].first, " = …` between the braces"));
  checkImplMembers(body, impl, *trait, self);
  checkAssociatedTypes(body, impl, *trait, self);
  checkBounds(body, trait->item->generics, envOf(*trait), impl.item->trait->range, trait->scope, self);
  checkSupertraits(body, *trait, self, impl.item->trait->range);
  checkOverlap(body, impl, *trait, self);
}

/// A type with the trait has those that the trait requires.
static void checkSupertraits(BodyState& body, const TraitRef& trait, Type self, SourceRange range) {
  GenericValue value;
  value.kind = GenericValue::Kind::Type;
  value.type = self;
  for (const syn::Type* super : trait.item->supertraits) {
    auto found = boundTrait(body, super, envOf(trait), trait.scope, self, self, false);
    if (found && !(*found == trait) && !hasTrait(body, value, *found))
      error(body, "E0307", range,
            base::concat("`", text(body, self), "` is not `", describeBound(body, super, *found), "`, which `",
                         trait.text(), "` requires"))
          .primary(base::concat("implemented for `", text(body, self), "`"))
          .label(super->range, "required here");
  }
}

static void checkImplMembers(BodyState& body, const ImplBlock& impl, const TraitRef& trait, Type self) {
  for (const syn::Item* member : trait.item->members)
    if (isRequired(member) && !memberNamed(impl.item->members, member->name.text))
      error(body, "E0352", impl.item->trait->range,
            base::concat("the ", kindText(member), " `", member->name.text, "` of `", trait.item->name.text,
                         "` is missing in this impl"))
          .primary(base::concat("implemented for `", text(body, self), "` without it"))
          .label(member->name.range, "required here");
  for (const syn::Item* member : impl.item->members) {
    const syn::Item* declared = memberNamed(trait.item->members, member->name.text);
    if (!declared || declared->kind != member->kind) {
      auto builder =
          error(body, "E0353", member->name.range,
                base::concat("`", trait.item->name.text, "` has no ", kindText(member), " `", member->name.text, "`"));
      builder.primary("not a part of the trait").label(trait.item->name.range, "declared here");
      if (!diag::suggest(builder, nullptr, member->name.text, syn::namesOf(trait.item->members)))
        builder.help(base::concat("put it into an `impl ", body.session.sources.text(impl.item->selfType->range),
                                  " { … }` of its own"));
      continue;
    }
    if (auto* function = member->tryAs<syn::FunctionItem>())
      compareFunctions(body, impl, function, trait, declared->as<syn::FunctionItem>(), self);
    else if (auto* constant = member->tryAs<syn::ConstItem>())
      compareConstants(body, constant, declared->as<syn::ConstItem>(), trait);
  }
}

static void compareConstants(BodyState& body, const syn::ConstItem* mine, const syn::ConstItem* declared,
                             const TraitRef& trait) {
  if (!declared->type)
    return;
  BodyState there(body.session, nullptr, body.session.scratchFunction(), trait.scope);
  there.generics = envOf(trait);
  there.selfType = body.selfType;
  Type wanted = resolveType(there, declared->type, DimPolicy::Known);
  Type have = mine->type ? resolveType(body, mine->type, DimPolicy::Known) : wanted;
  if (have != wanted && !isError(have) && !isError(wanted))
    error(body, "E0354", mine->type->range,
          base::concat("`", mine->name.text, "` is `", text(body, have), "` here, but `", text(body, wanted),
                       "` in the trait"))
        .primary("this type differs")
        .label(declared->type->range, "declared here");
}

/// Extents of their own, `_` among them, are different ones in every function.
static bool isSameButForOwnExtents(Type a, Type b) {
  if (a == b || !agree(a, b))
    return a == b;
  for (size_t i = 0; i < a->shape.size(); ++i)
    if (a->shape[i] != b->shape[i] && !(a->shape[i].hasOpaque() && b->shape[i].hasOpaque()))
      return false;
  return (!a->elem || isSameButForOwnExtents(a->elem, b->elem)) &&
         std::ranges::equal(a->elems, b->elems, isSameButForOwnExtents);
}

static void compareFunctions(BodyState& body, const ImplBlock& impl, const syn::FunctionItem* mine,
                             const TraitRef& trait, const syn::FunctionItem* declared, Type self) {
  const auto differs = [&](SourceRange range, SourceRange other, std::string message) {
    error(body, "E0354", range,
          base::concat("`", mine->name.text, "` differs from its declaration in `", trait.item->name.text,
                       "`: ", message))
        .primary("here")
        .label(other, "declared here");
  };
  if (mine->params.size() != declared->params.size())
    return differs(
        mine->name.range, declared->name.range,
        base::concat("it takes ", base::counted(mine->params.size(), "parameter"), ", not ", declared->params.size()));
  if (mine->generics.params.size() != declared->generics.params.size())
    return differs(mine->name.range, declared->name.range,
                   base::concat("it has ", mine->generics.params.size(), " generic parameters, not ",
                                declared->generics.params.size()));
  for (size_t i = 0; i < mine->params.size(); ++i)
    if (mine->params[i].self != declared->params[i].self)
      return differs(mine->params[i].range, declared->params[i].range,
                     base::concat("`", body.session.sources.text(mine->params[i].range), "` instead of `",
                                  body.session.sources.text(declared->params[i].range), "`"));
  // Both signatures with one stand-in for parameters at one position.
  const GenericEnv wantedEnv = standIns(body, declared->generics, envOf(trait), trait.scope, declared);
  GenericEnv mineEnv = genericEnv(mine->generics, body.generics);
  for (size_t i = 0; i < mine->generics.params.size(); ++i)
    mineEnv[body.generics.size() + i].value = wantedEnv[trait.args.size() + i].value;
  const auto signature = [&](const syn::FunctionItem* item, ItemScope* scope, const GenericEnv& env) {
    return body.session.instances.instantiate({.item = item,
                                               .scope = scope,
                                               .selfType = self,
                                               .generics = env,
                                               .isDefinition = true,
                                               .impl = item == mine ? impl.item : nullptr,
                                               .callSite = item->name.range});
  };
  const Instance *wanted = signature(declared, trait.scope, wantedEnv), *have = signature(mine, impl.scope, mineEnv);
  if (!wanted || !have)
    return;
  // Extents that only `Self` brings have names of their own on both sides.
  const bool hasExtents = bringsExtents(self);
  const auto isSame = [&](Type a, Type b) { return isSameButForOwnExtents(a, b) || (hasExtents && agree(a, b)); };
  for (size_t i = 0; i < mine->params.size(); ++i)
    if (Type a = have->function->params[i]->type, b = wanted->function->params[i]->type; !isSame(a, b))
      return differs(mine->params[i].range, declared->params[i].range,
                     base::concat("`", mine->params[i].name.text, "` is `", lang::text(a, have->function->dimNames()),
                                  "`, not `", lang::text(b, wanted->function->dimNames()), "`"));
  if (!isSame(have->function->resultType, wanted->function->resultType))
    differs(have->function->resultRange, wanted->function->resultRange,
            base::concat("the result is `", lang::text(have->function->resultType, have->function->dimNames()),
                         "`, not `", lang::text(wanted->function->resultType, wanted->function->dimNames()), "`"));
}

/// Two impls of one trait that a type could both mean.
static void checkOverlap(BodyState& body, const ImplBlock& impl, const TraitRef& trait, Type self) {
  for (const ImplBlock& other : body.session.modules.impls()) {
    if (other.item == impl.item)
      break;  // each pair once, at the later one
    if (!other.item->trait)
      continue;
    auto found = traitNamed(body, other.item->trait, other.scope, false);
    if (!found || found->item != trait.item)
      continue;
    GenericEnv env = genericEnv(other.item->generics), mine = genericEnv(impl.item->generics);
    BodyState there(body.session, nullptr, body.session.scratchFunction(), other.scope);
    {
      const Session::Quiet quiet(body.session);
      there.generics = standIns(there, other.item->generics, {}, other.scope, nullptr);
      there.selfType = resolveType(there, other.item->selfType, DimPolicy::Fresh);
      found = findTrait(there, other.item->trait, other.scope, false);
    }
    Type otherSelf = there.selfType;
    if (isError(otherSelf) || !found ||
        (!matchesImpl(body, other, self, &trait, env) && !matchesImpl(body, impl, otherSelf, &*found, mine)))
      continue;
    error(body, "E0355", impl.item->selfType->range,
          base::concat("`", trait.text(), "` is implemented twice for `", text(body, self->param ? otherSelf : self),
                       "`"))
        .primary("second impl")
        .label(other.item->selfType->range, "first impl");
    return;
  }
}

/// Two functions of one name in the impls of one type.
static void checkInherentTwice(BodyState& body, const ImplBlock& impl, Type self) {
  for (const ImplBlock& other : body.session.modules.impls()) {
    if (other.item == impl.item)
      break;
    GenericEnv env = genericEnv(other.item->generics);
    if (other.item->trait || !matchesImpl(body, other, self, nullptr, env))
      continue;
    for (const syn::Item* member : impl.item->members)
      if (const syn::Item* first = memberNamed(other.item->members, member->name.text))
        error(body, "E0355", member->name.range,
              base::concat("`", text(body, self), "` has two members `", member->name.text, "`"))
            .primary("second one")
            .label(first->name.range, "first one");
  }
}

/// `struct S : Trait {}` is an impl of each trait that adds nothing.
void checkStructTraits(BodyState& body, const syn::StructItem* item, ItemScope* scope) {
  if (item->traits.empty())
    return;
  LocalScope hidden(body);
  body.generics = standIns(body, item->generics, {}, scope, nullptr);
  Type self = structType(body, body.session.structInstance(item, scope, body.generics), DimPolicy::Fresh);
  body.selfType = isError(self) ? nullptr : self;
  for (const syn::Type* named : item->traits) {
    auto trait = findTrait(body, named, scope, true);
    if (!trait)
      continue;
    if (trait->builtin) {
      error(body, "E0356", named->range,
            base::concat("`", name(*trait->builtin), "` is built in and cannot be implemented"))
          .primary("the compiler knows which types have it");
      continue;
    }
    for (const syn::Item* member : trait->item->members) {
      if (isRequired(member))
        error(body, "E0352", named->range,
              base::concat("the ", kindText(member), " `", member->name.text, "` of `", trait->item->name.text,
                           "` is missing in this impl"))
            .primary(base::concat("`", item->name.text, "` adds nothing to the trait"))
            .label(member->name.range, "required here")
            .help(base::concat("write `impl ", trait->text(), " for ", item->name.text, " { … }`"));
      auto* alias = member->tryAs<syn::TypeAliasItem>();
      if (Type preset = alias && alias->aliased && body.selfType
                            ? aliasedType(body, alias, trait->scope, envOf(*trait), body.selfType)
                            : nullptr;
          preset && !isError(preset))
        checkAssociatedBounds(body, *trait, alias, preset, body.selfType, named->range);
    }
    if (body.selfType)
      checkSupertraits(body, *trait, body.selfType, named->range);
  }
}

}  // namespace vortex::lang
