#include "lang/sema/check/traits/implements.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/associated.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/impl_match.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"

#include "base/text.h"
#include "diag/names_elsewhere.h"

#include <algorithm>

namespace vortex::lang {

static bool implements(BodyState& body, Type type, const TraitRef& trait);

namespace {

using enum BuiltinTrait;

bool scalarHas(Scalar scalar, BuiltinTrait trait) {
  switch (trait) {
  case Copy: return true;
  case Numeric: return scalar != Scalar::Bool;
  case Integer: return isInteger(scalar);
  case Unsigned: return isUnsigned(scalar);
  case Signed: return scalar != Scalar::Bool && !isUnsigned(scalar);
  case Float: return isFloat(scalar);
  default: return false;
  }
}

bool spaceHas(Space space, BuiltinTrait trait) {
  return trait == MemorySpace || trait == Readable || (trait == Writable && space != Space::Constant);
}

}  // namespace

/// The trait that a bound names, without its arguments.
std::optional<TraitRef> traitNamed(BodyState& body, const syn::Type* bound, ItemScope* scope, bool report) {
  auto* named = bound->tryAs<syn::NamedType>();
  if (!named)
    return std::nullopt;
  const Symbol* symbol = scope->find(named->path.front().text);
  for (size_t i = 1; symbol && i < named->path.size(); ++i) {
    if (symbol->kind != SymbolKind::Module)
      break;
    auto found = symbol->scope->symbols.find(named->path[i].text);
    symbol = found == symbol->scope->symbols.end() ? nullptr : &found->second;
  }
  const std::string_view last = named->path.back().text;
  if (named->path.size() == 1 && !symbol && last == "PrimeField")
    symbol = body.session.modules.primeField(true);
  if (symbol && symbol->kind == SymbolKind::Trait)
    return TraitRef{symbol->item->as<syn::TraitItem>(), symbol->scope, std::nullopt};
  if (auto builtin = named->path.size() == 1 && !symbol ? builtinTraitNamed(last) : std::nullopt)
    return TraitRef{nullptr, nullptr, builtin};
  if (!report || (symbol && symbol->kind == SymbolKind::Missing))
    return std::nullopt;
  if (symbol || scalarNamed(last) || last == "Tensor" || last == "Vec" || findGeneric(body.generics, last)) {
    auto builder = error(body, "E0351", bound->range,
                         base::concat("`", body.session.sources.text(bound->range), "` is not a trait"));
    if (symbol)
      builder.label(symbol->nameRange, "defined here");
    return std::nullopt;
  }
  std::vector<std::string> names = builtinTraitNames();
  for (const ItemScope* at = scope; at; at = at->parent)
    for (const auto& [known, other] : at->symbols)
      if (other.kind == SymbolKind::Trait)
        names.emplace_back(known);
  auto builder = error(body, "E0201", bound->range,
                       base::concat("there is no trait `", body.session.sources.text(bound->range), "`"));
  diag::suggest(builder, nullptr, last, names);
  return std::nullopt;
}

/// The trait that a bound names, with arguments as they are here: generic parameters and `Self` mean what they mean to this checker.
std::optional<TraitRef> findTrait(BodyState& body, const syn::Type* bound, ItemScope* scope, bool report) {
  auto found = traitNamed(body, bound, scope, report);
  if (!found)
    return std::nullopt;
  auto* named = bound->as<syn::NamedType>();
  if (!named->hasGenericArgs && (!found->item || found->item->generics.params.empty()))
    return found;
  std::optional<Session::Quiet> quiet;
  if (!report)
    quiet.emplace(body.session);
  if (!found->item) {
    error(body, "E0329", bound->range, base::concat("the trait `", name(*found->builtin), "` takes no arguments"));
    return std::nullopt;
  }
  ItemScope* here = body.items;
  body.items = scope;
  const bool ok = resolveTraitArgs(body, *found, named);
  body.items = here;
  return ok ? found : std::nullopt;
}

bool resolveTraitArgs(BodyState& body, TraitRef& trait, const syn::NamedType* named) {
  const syn::Generics& params = trait.item->generics;
  GenericEnv env = genericEnv(params);
  size_t next = 0;
  for (const syn::GenericArg& arg : named->genericArgs) {
    if (arg.name.isPresent()) {
      if (!declaresType(body, trait, arg.name.text)) {
        error(body, "E0353", arg.name.range,
              base::concat("`", trait.item->name.text, "` has no type `", arg.name.text, "`"))
            .primary("not a part of the trait")
            .label(trait.item->name.range, "declared here");
        return false;
      }
      Type type = arg.type ? resolveType(body, arg.type, DimPolicy::Fresh) : body.types.error();
      if (isError(type))
        return false;
      trait.fixed.emplace_back(arg.name.text, type);
      continue;
    }
    if (next == env.size()) {
      error(body, "E0329", arg.range,
            base::concat("the trait `", trait.item->name.text, "` takes ", env.empty() ? "no" : "at most ",
                         env.empty() ? "" : std::to_string(env.size()), env.size() == 1 ? " argument" : " arguments"))
          .label(trait.item->name.range, "declared here");
      return false;
    }
    auto value = genericArg(body, arg, *env[next].param, DimPolicy::Fresh);
    if (!value)
      return false;
    env[next++].value = *value;
  }
  for (GenericBinding& binding : env) {
    if (binding.value.isBound())
      continue;
    BodyState there(body.session, nullptr, body.session.scratchFunction(), trait.scope);
    there.generics = env;
    there.selfType = body.boundedType ? body.boundedType : body.selfType;
    const syn::GenericArg& preset = binding.param->defaultValue;
    auto value = preset.type || preset.expr ? genericArg(there, preset, *binding.param) : std::nullopt;
    if (!value) {
      error(body, "E0306", named->range,
            base::concat("`", trait.item->name.text, "` needs its argument `", binding.name, "`"))
          .label(binding.param->name.range, "declared here")
          .help(base::concat("write `", trait.item->name.text, "<…>`"));
      return false;
    }
    binding.value = *value;
  }
  if (!checkBounds(body, params, env, named->range, trait.scope))
    return false;
  for (GenericBinding& binding : env)
    trait.args.push_back(std::move(binding.value));
  return true;
}

/// The trait and those it requires, each once; a trait that requires itself ends here (reported where it is declared). `self` is the
/// type that has it, if known.
void withSupertraits(BodyState& body, const TraitRef& trait, TraitSet& builtins, std::vector<TraitRef>& traits,
                     Type self) {
  if (trait.builtin)
    return builtins.add(*trait.builtin);
  if (auto known = std::find(traits.begin(), traits.end(), trait); known != traits.end()) {
    known->fixed.insert(known->fixed.end(), trait.fixed.begin(), trait.fixed.end());
    return;
  }
  constexpr size_t kMaxTraits = 100;  // `trait A<T>: A<[T; 2]>` requires ever more
  if (traits.size() >= kMaxTraits)
    return;
  traits.push_back(trait);
  if (trait.item->supertraits.empty())
    return;
  BodyState there(body.session, nullptr, body.session.scratchFunction(), trait.scope);
  there.generics = envOf(trait);
  there.selfType = self;
  for (const syn::Type* super : trait.item->supertraits)
    if (auto found = findTrait(there, super, trait.scope, false))
      withSupertraits(body, *found, builtins, traits, self);
}

/// The built-in traits that come with a trait.
void addBuiltins(BodyState& body, const TraitRef& trait, TraitSet& builtins, std::vector<const syn::TraitItem*>& seen) {
  if (trait.builtin)
    return builtins.add(*trait.builtin);
  if (std::find(seen.begin(), seen.end(), trait.item) != seen.end())
    return;
  seen.push_back(trait.item);
  for (const syn::Type* super : trait.item->supertraits)
    if (auto found = traitNamed(body, super, trait.scope, false))
      addBuiltins(body, *found, builtins, seen);
}

/// A trait of the user's own that the spaces have: `trait MemorySpace {}` with `struct Global : MemorySpace {}`.
static bool isMarkerOf(BodyState& body, const TraitRef& trait, const GenericValue& space) {
  if (space.param)
    return std::find(space.param->traits.begin(), space.param->traits.end(), trait) != space.param->traits.end();
  const std::string spaceName = lang::text(space);
  const Symbol* symbol = trait.scope->find(spaceName);
  auto* item = symbol && symbol->kind == SymbolKind::Struct ? symbol->item->as<syn::StructItem>() : nullptr;
  for (size_t i = 0; item && i < item->traits.size(); ++i)
    if (auto found = findTrait(body, item->traits[i], symbol->scope, false); found && *found == trait)
      return true;
  return false;
}

bool hasTrait(BodyState& body, const GenericValue& value, const TraitRef& trait) {
  if (value.kind == GenericValue::Kind::Space) {
    if (!trait.builtin)
      return isMarkerOf(body, trait, value);
    return value.param ? value.param->builtins.has(*trait.builtin) : spaceHas(value.space, *trait.builtin);
  }
  if (value.kind == GenericValue::Kind::Shape)
    return trait.builtin == Shape;
  if (value.kind == GenericValue::Kind::Const) {
    const bool isPower = value.value > 0 && (value.value & (value.value - 1)) == 0;
    return trait.builtin == PowerOfTwo ? isPower : trait.builtin == NonZero && value.value != 0;
  }
  if (value.kind != GenericValue::Kind::Type || isError(value.type))
    return true;
  if (assumes(body, value.type, trait))
    return hasFixed(body, value.type, trait);
  if (value.type->param && !value.type->isTensor()) {
    const BoundParam& param = *static_cast<const BoundParam*>(value.type->param);
    if (trait.builtin ? param.builtins.has(*trait.builtin)
                      : std::find(param.traits.begin(), param.traits.end(), trait) != param.traits.end())
      return hasFixed(body, value.type, trait);
  } else if (trait.builtin) {
    return trait.builtin == Copy
               ? isCopy(value.type)
               : value.type->kind == TypeKind::Scalar && scalarHas(value.type->scalar, *trait.builtin);
  }
  return trait.item && implements(body, value.type, trait) && hasFixed(body, value.type, trait);
}

static bool implements(BodyState& body, Type type, const TraitRef& trait) {
  if (assumes(body, type, trait))
    return true;
  for (const TraitRef& listed : listedTraits(body, type, trait.item))
    if (listed == trait)
      return true;
  return findImpl(body, type, trait).has_value();
}

/// Of `struct S : A, B {}` those that are the trait.
std::vector<TraitRef> listedTraits(BodyState& body, Type type, const syn::TraitItem* trait) {
  std::vector<TraitRef> out;
  const StructInstance* instance =
      type->kind == TypeKind::Struct && !type->param ? body.session.findStruct(type->decl) : nullptr;
  auto* item = instance ? instance->item->tryAs<syn::StructItem>() : nullptr;
  for (size_t i = 0; item && i < item->traits.size(); ++i) {
    auto head = traitNamed(body, item->traits[i], instance->scope, false);
    if (!head || head->item != trait)
      continue;
    BodyState there(body.session, nullptr, body.session.scratchFunction(), instance->scope);
    there.generics = instance->generics;
    there.selfType = type;
    if (auto found = findTrait(there, item->traits[i], instance->scope, false))
      out.push_back(std::move(*found));
  }
  return out;
}

bool isCopy(Type type) {
  if (type->param && !type->isTensor())
    return static_cast<const BoundParam*>(type->param)->builtins.has(Copy);
  switch (type->kind) {
  case TypeKind::Scalar:
  case TypeKind::Unit:
  case TypeKind::Enum:
  case TypeKind::String:
  case TypeKind::Range:
  case TypeKind::Error:
  case TypeKind::Never: return true;
  case TypeKind::Ref: return !type->isMutable;
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

}  // namespace vortex::lang
