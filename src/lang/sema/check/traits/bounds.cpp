// Bounds as they are written: what satisfies them, what a generic definition may rely on, what it lacks.
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/associated.h"
#include "lang/sema/check/traits/implements.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/resolve_type.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::lang {

static std::string onlyText(const BoundParam& param);

namespace {

/// A bound as written: on a parameter of the list by its name, or (`where Pair<T, U>: Area`) on a type made from them.
struct WrittenBound {
  std::string_view name;
  const syn::Type* subject = nullptr;  ///< null: the parameter `name`
  const syn::Type* bound = nullptr;
};

std::vector<WrittenBound> boundsOf(const syn::Generics& params) {
  std::vector<WrittenBound> out;
  for (const syn::GenericParam& param : params.params)
    for (const syn::Type* bound : param.bounds)
      out.push_back({param.name.text, nullptr, bound});
  for (const syn::WherePredicate& predicate : params.where) {
    const bool isType = isTypeCondition(predicate);
    const std::string_view name = isType ? "" : predicate.subject->as<syn::NamedType>()->path[0].text;
    for (const syn::Type* bound : predicate.bounds)
      out.push_back({name, isType ? predicate.subject : nullptr, bound});
  }
  return out;
}

}  // namespace

bool isTypeCondition(const syn::WherePredicate& predicate) {
  auto* named = predicate.subject->tryAs<syn::NamedType>();
  return !named || named->path.size() != 1 || named->hasGenericArgs || named->path[0].text == "Self";
}

/// A type in a `where` clause with the arguments of one use; nothing while they are not all known.
static std::optional<GenericValue> conditionSubject(BodyState& body, const syn::Type* subject,
                                                    const syn::Generics& params, const GenericEnv& env,
                                                    ItemScope* scope, Type self) {
  for (const GenericBinding& binding : env)
    if (!binding.value.isBound())
      return std::nullopt;
  BodyState there(body.session, nullptr, body.session.scratchFunction(), scope);
  there.generics = env;
  there.selfType = self;
  there.boundLists.push_back(&params);
  GenericValue value;
  value.kind = GenericValue::Kind::Type;
  value.type = resolveType(there, subject, DimPolicy::Fresh);
  return isError(value.type) ? std::nullopt : std::optional(value);
}

/// The conditions of a generic definition hold while it is checked by itself.
void assume(BodyState& body, const syn::Generics& params) {
  for (const syn::WherePredicate& predicate : params.where) {
    if (!isTypeCondition(predicate))
      continue;
    Type type = resolveType(body, predicate.subject, DimPolicy::Fresh);
    for (const syn::Type* bound : predicate.bounds)
      if (auto trait = findTrait(body, bound, body.items, true); trait && !isError(type))
        body.assumed.emplace_back(type, *trait);
  }
}

std::vector<TraitRef> writtenTraits(BodyState& body, Type type, const syn::TraitItem* trait) {
  TraitSet builtins;
  std::vector<TraitRef> out;
  for (const syn::Generics* list : std::vector(body.boundLists))
    for (const WrittenBound& each : boundsOf(*list)) {
      const GenericValue* value = each.subject ? nullptr : findGeneric(body.generics, each.name);
      const auto made = each.subject
                            ? conditionSubject(body, each.subject, *list, body.generics, body.items, body.selfType)
                            : std::nullopt;
      value = made ? &*made : value;
      if (!value || value->kind != GenericValue::Kind::Type || !agree(value->type, type))
        continue;
      if (auto bound = boundTrait(body, each.bound, body.generics, body.items, body.selfType, type, false))
        withSupertraits(body, *bound, builtins, out, type);
    }
  std::erase_if(out, [&](const TraitRef& each) { return each.item != trait || each.isOpen(); });
  return out;
}

bool assumes(BodyState& body, Type type, const TraitRef& trait) {
  for (const auto& [known, has] : body.assumed) {
    if (!agree(known, type))
      continue;
    TraitSet builtins;
    std::vector<TraitRef> traits;
    withSupertraits(body, has, builtins, traits, type);
    if (trait.builtin ? builtins.has(*trait.builtin) : std::find(traits.begin(), traits.end(), trait) != traits.end())
      return true;
  }
  return false;
}

/// The trait of a bound whose generic parameters have these arguments. `of` is what it bounds: what `Self` means in the defaults of the
/// trait's parameters.
std::optional<TraitRef> boundTrait(BodyState& body, const syn::Type* bound, const GenericEnv& env, ItemScope* scope,
                                   Type self, Type of, bool report) {
  auto head = traitNamed(body, bound, scope, false);
  if (!head || !head->item || head->item->generics.params.empty())
    return findTrait(body, bound, scope, report);
  BodyState there(body.session, nullptr, body.session.scratchFunction(), scope);
  there.generics = env;
  there.selfType = self;
  there.boundedType = of;
  there.assumed = body.assumed;
  return findTrait(there, bound, scope, report);
}

bool checkBoundsQuietly(BodyState& body, const syn::Generics& params, const GenericEnv& env, ItemScope* scope) {
  for (const WrittenBound& each : boundsOf(params)) {
    const GenericValue* value = each.subject ? nullptr : findGeneric(env, each.name);
    const auto made = each.subject ? conditionSubject(body, each.subject, params, env, scope, nullptr) : std::nullopt;
    value = made ? &*made : value;
    if (!value || !value->isBound())
      continue;
    auto trait = boundTrait(body, each.bound, env, scope, nullptr, value->type, false);
    const bool isUnknown = !trait && traitNamed(body, each.bound, scope, false);  // of its arguments
    if (isUnknown || (trait && !hasTrait(body, *value, *trait)))
      return false;
  }
  return true;
}

bool checkBounds(BodyState& body, const syn::Generics& params, const GenericEnv& env, SourceRange use, ItemScope* scope,
                 Type self) {
  ItemScope* where = scope ? scope : body.items;
  bool ok = true;
  for (const WrittenBound& each : boundsOf(params)) {
    const GenericValue* value = each.subject ? nullptr : findGeneric(env, each.name);
    const auto made = each.subject ? conditionSubject(body, each.subject, params, env, where, self) : std::nullopt;
    value = made ? &*made : value;
    if (!value || !value->isBound())
      continue;
    const auto trait = boundTrait(body, each.bound, env, where, self ? self : body.selfType, value->type, true);
    if (!trait || hasTrait(body, *value, *trait))
      continue;
    ok = false;
    const std::string boundText = describeBound(body, each.bound, *trait);
    auto builder = error(body, "E0307", use, base::concat("`", lang::text(*value), "` is not `", boundText, "`"));
    if (const Type differs =
            value->kind == GenericValue::Kind::Type ? fixedMismatch(body, value->type, *trait) : nullptr)
      builder.note(
          base::concat("it has the trait, but there `", trait->fixed[0].first, "` is `", text(body, differs), "`"));
    const BoundParam* param = paramOf(*value);
    const std::string_view written = each.subject ? body.session.sources.text(each.subject->range) : each.name;
    const bool isCondition = each.subject && lang::text(*value) == written;  // of a generic definition's own parameters
    builder
        .primary(param         ? onlyText(*param)
                 : isCondition ? std::string("nothing here says that it is")
                               : base::concat("here `", written, "` is `", lang::text(*value), "`"))
        .label(each.bound->range, "required here");
    if (isCondition)
      builder.help(base::concat("add the condition: `where ", written, ": ", boundText, "`"));
    if (param && param->isAssociated)
      builder.help(
          base::concat("add the bound in the trait, or the condition `where ", param->name, ": ", boundText, "`"));
    else if (param)
      builder.help(
          base::concat("add the bound where `", param->name, "` is declared: `", boundWith(*param, boundText), "`"));
  }
  return ok;
}

/// The bound as written, or with what its parameters are at this use: "From<f32>".
std::string describeBound(const BodyState& body, const syn::Type* bound, const TraitRef& trait) {
  return trait.args.empty() ? std::string(body.session.sources.text(bound->range)) : trait.text();
}

static std::string onlyText(const BoundParam& param) {
  return param.boundsText.empty() ? base::concat("`", param.name, "` may be anything here")
                                  : base::concat("`", param.name, "` is only `", param.boundsText, "` here");
}

/// `T: Area + Numeric`: the parameter's declaration with one more bound.
std::string boundWith(const BoundParam& param, std::string_view bound) {
  if (param.name == "Self")
    return base::concat("trait ", param.boundsText, ": ", bound);
  return base::concat(param.name, ": ", param.boundsText, param.boundsText.empty() ? "" : " + ", bound);
}

const BoundParam* paramOf(const GenericValue& value) {
  if (value.kind == GenericValue::Kind::Space)
    return value.param;
  return value.kind == GenericValue::Kind::Type && !value.type->isTensor()
             ? static_cast<const BoundParam*>(value.type->param)
             : nullptr;
}

const BoundParam* paramOf(Type type) {
  type = stripRef(type);
  if (type->isTensor())
    type = type->elem;
  return static_cast<const BoundParam*>(type->param);
}

bool grants(BodyState& body, Type type, std::initializer_list<BuiltinTrait> anyOf, SourceRange use,
            std::string_view operation) {
  const BoundParam* param = paramOf(type);
  if (!param || anyOf.size() == 0)
    return true;
  for (BuiltinTrait trait : anyOf)
    if (param->builtins.has(trait))
      return true;
  missingBound(body, *param, name(*anyOf.begin()), use, operation);
  return false;
}

bool spaceGrants(BodyState& body, Type type, BuiltinTrait trait, SourceRange use, std::string_view operation) {
  type = stripRef(type);
  const auto* param = type->isTensor() ? static_cast<const BoundParam*>(type->param) : nullptr;
  if (!param || param->builtins.has(trait))
    return true;
  missingBound(body, *param, name(trait), use, operation);
  return false;
}

void missingBound(BodyState& body, const BoundParam& param, std::string_view bound, SourceRange use,
                  std::string_view operation) {
  error(body, "E0350", use, base::concat(operation, " needs `", param.name, ": ", bound, "`"))
      .primary(onlyText(param))
      .label(param.range, base::concat("declared without `", bound, "`"))
      .help(param.isAssociated
                ? base::concat("add the bound in the trait, or the condition `where ", param.name, ": ", bound, "`")
                : base::concat("write `", boundWith(param, bound), "`"));
}

}  // namespace vortex::lang
