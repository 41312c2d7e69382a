// Bounds: which trait a name means, whether a value satisfies it, which impl makes it so.
#include "lang/sema/check/traits.h"

#include "base/text.h"
#include "lang/sema/check/checker.h"
#include "lang/sema/check/names.h"

#include <array>

namespace vortex::lang {
namespace {

struct TraitRow {
  std::string_view name;
  std::array<BuiltinTrait, 3> implies;  ///< itself where there are fewer
};
using enum BuiltinTrait;
constexpr TraitRow kTraits[] = {
    {"Copy", {Copy, Copy, Copy}},
    {"Numeric", {Copy, Copy, Copy}},
    {"Integer", {Numeric, Copy, Copy}},
    {"Unsigned", {Integer, Numeric, Copy}},
    {"Signed", {Numeric, Copy, Copy}},
    {"Float", {Signed, Numeric, Copy}},
    {"PrimeField", {Copy, Copy, Copy}},
    {"MemorySpace", {MemorySpace, MemorySpace, MemorySpace}},
    {"Readable", {MemorySpace, MemorySpace, MemorySpace}},
    {"Writable", {MemorySpace, MemorySpace, MemorySpace}},
    {"Shape", {Shape, Shape, Shape}},
    {"PowerOfTwo", {NonZero, NonZero, NonZero}},
    {"NonZero", {NonZero, NonZero, NonZero}},
};
static_assert(std::size(kTraits) == kBuiltinTraitCount);

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

/// One type up to extents, which the impl of a struct does not fix.
bool agree(Type a, Type b) {
  if (a == b)
    return true;
  if (a->kind != b->kind || a->param != b->param || a->decl != b->decl || a->count != b->count ||
      a->isMutable != b->isMutable || a->elems.size() != b->elems.size() ||
      (a->elem == nullptr) != (b->elem == nullptr))
    return false;
  if (a->kind == TypeKind::Struct)
    return true;
  if (a->kind == TypeKind::Scalar)
    return a->scalar == b->scalar;
  if (a->isTensor() && (a->rank() != b->rank() || a->space != b->space))
    return false;
  for (size_t i = 0; i < a->elems.size(); ++i)
    if (!agree(a->elems[i], b->elems[i]))
      return false;
  return !a->elem || agree(a->elem, b->elem);
}

}  // namespace

std::optional<BuiltinTrait> builtinTraitNamed(std::string_view name) {
  for (uint32_t i = 0; i < kBuiltinTraitCount; ++i)
    if (kTraits[i].name == name)
      return static_cast<BuiltinTrait>(i);
  return std::nullopt;
}
std::string_view name(BuiltinTrait trait) { return kTraits[static_cast<size_t>(trait)].name; }
std::vector<std::string> builtinTraitNames() {
  std::vector<std::string> names;
  for (const TraitRow& row : kTraits)
    names.emplace_back(row.name);
  return names;
}

void TraitSet::add(BuiltinTrait trait) {
  bits_ |= 1U << static_cast<uint32_t>(trait);
  for (BuiltinTrait implied : kTraits[static_cast<size_t>(trait)].implies)
    bits_ |= 1U << static_cast<uint32_t>(implied);
}
bool TraitSet::isNumber() const { return has(Numeric) || has(PrimeField); }

std::optional<TraitRef> Checker::findTrait(const syn::Type* bound, ItemScope* scope, bool report) {
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
  if (symbol && symbol->kind == SymbolKind::Trait)
    return TraitRef{symbol->item->as<syn::TraitItem>(), symbol->scope, std::nullopt};
  const std::string_view last = named->path.back().text;
  if (auto builtin = named->path.size() == 1 && !symbol ? builtinTraitNamed(last) : std::nullopt)
    return TraitRef{nullptr, nullptr, builtin};
  if (!report || (symbol && symbol->kind == SymbolKind::Missing))
    return std::nullopt;
  if (symbol || scalarNamed(last) || last == "Tensor" || last == "Vec" || findGeneric(generics, last)) {
    auto builder =
        error("E0351", bound->range, base::concat("`", session.sources.text(bound->range), "` is not a trait"));
    if (symbol)
      builder.label(symbol->nameRange, "defined here");
    return std::nullopt;
  }
  std::vector<std::string> names = builtinTraitNames();
  for (const ItemScope* at = scope; at; at = at->parent)
    for (const auto& [known, other] : at->symbols)
      if (other.kind == SymbolKind::Trait)
        names.emplace_back(known);
  auto builder =
      error("E0201", bound->range, base::concat("there is no trait `", session.sources.text(bound->range), "`"));
  if (std::string close = nearest(last, names); !close.empty())
    builder.help("did you mean `" + close + "`?");
  return std::nullopt;
}

/// The trait and those it requires, each once; a trait that requires itself ends here (reported where it is declared).
void Checker::withSupertraits(const TraitRef& trait, TraitSet& builtins, std::vector<TraitRef>& traits) {
  if (trait.builtin)
    return builtins.add(*trait.builtin);
  if (std::find(traits.begin(), traits.end(), trait) != traits.end())
    return;
  traits.push_back(trait);
  for (const syn::Type* super : trait.item->supertraits)
    if (auto found = findTrait(super, trait.scope, false))
      withSupertraits(*found, builtins, traits);
}

/// A trait of the user's own that the spaces have: `trait MemorySpace {}` with `struct Global : MemorySpace {}`.
bool Checker::isMarkerOf(const TraitRef& trait, const GenericValue& space) {
  if (space.param)
    return std::find(space.param->traits.begin(), space.param->traits.end(), trait) != space.param->traits.end();
  const std::string spaceName = lang::text(space);
  const Symbol* symbol = trait.scope->find(spaceName);
  auto* item = symbol && symbol->kind == SymbolKind::Struct ? symbol->item->as<syn::StructItem>() : nullptr;
  for (size_t i = 0; item && i < item->traits.size(); ++i)
    if (auto found = findTrait(item->traits[i], symbol->scope, false); found && *found == trait)
      return true;
  return false;
}

bool Checker::hasTrait(const GenericValue& value, const TraitRef& trait) {
  if (value.kind == GenericValue::Kind::Space) {
    if (!trait.builtin)
      return isMarkerOf(trait, value);
    return value.param ? value.param->builtins.has(*trait.builtin) : spaceHas(value.space, *trait.builtin);
  }
  if (value.kind == GenericValue::Kind::Shape)
    return trait.builtin == Shape;
  if (value.kind == GenericValue::Kind::Const) {
    const bool isPower = value.value > 0 && (value.value & (value.value - 1)) == 0;
    return trait.builtin == PowerOfTwo ? isPower : trait.builtin == NonZero && value.value != 0;
  }
  if (value.kind != GenericValue::Kind::Type || isError(value.type) || assumes(value.type, trait))
    return true;
  if (value.type->param && !value.type->isTensor()) {
    const BoundParam& param = *static_cast<const BoundParam*>(value.type->param);
    if (trait.builtin ? param.builtins.has(*trait.builtin)
                      : std::find(param.traits.begin(), param.traits.end(), trait) != param.traits.end())
      return true;
  } else if (trait.builtin) {
    return trait.builtin == Copy
               ? isCopy(value.type)
               : value.type->kind == TypeKind::Scalar && scalarHas(value.type->scalar, *trait.builtin);
  }
  return trait.item && implements(value.type, trait);
}

bool Checker::satisfies(const GenericValue& value, const syn::Type* bound, ItemScope* scope) {
  auto trait = findTrait(bound, scope, true);
  return !trait || hasTrait(value, *trait);
}

bool Checker::implements(Type type, const TraitRef& trait) {
  if (assumes(type, trait))
    return true;
  const StructInstance* instance =
      type->kind == TypeKind::Struct || type->kind == TypeKind::Enum ? session.findStruct(type->decl) : nullptr;
  if (auto* item = instance ? instance->item->tryAs<syn::StructItem>() : nullptr)
    for (const syn::Type* named : item->traits)
      if (auto found = findTrait(named, instance->scope, false); found && *found == trait)
        return true;
  return findImpl(type, trait).has_value();
}

/// The impl of the trait for the type, with its generic arguments.
std::optional<Checker::FoundImpl> Checker::findImpl(Type type, const TraitRef& trait) {
  // An impl whose bounds lead back to the question does not answer it.
  const std::pair question(type, trait.item);
  if (std::find(session.traitQuestions.begin(), session.traitQuestions.end(), question) !=
          session.traitQuestions.end() ||
      session.traitQuestions.size() > session.options.maxInstanceDepth)
    return std::nullopt;
  session.traitQuestions.push_back(question);
  std::optional<FoundImpl> out;
  for (const ImplBlock& impl : session.impls()) {
    if (!impl.item->trait)
      continue;
    auto found = findTrait(impl.item->trait, impl.scope, false);
    GenericEnv env = genericEnv(impl.item->generics);
    if (!found || !(*found == trait) || (out && out->impl->item == impl.item) || !matchesSelf(impl, type, env))
      continue;
    if (!out) {
      out = FoundImpl{&impl, std::move(env)};
      continue;
    }
    // Impls of which neither covers the other may still meet in one type.
    error("E0355", impl.item->selfType->range,
          base::concat("`", trait.item->name.text, "` is implemented twice for `", text(type), "`"))
        .primary("second impl")
        .label(out->impl->item->selfType->range, "first impl");
    break;
  }
  session.traitQuestions.pop_back();
  return out;
}

/// Does `impl … for selfType` apply to the type? Binds the impl's generic parameters.
bool Checker::matchesSelf(const ImplBlock& impl, Type type, GenericEnv& env) {
  if (!mayMatch(impl, type))
    return false;
  infer(impl.item->selfType, type, env, impl.scope);
  for (const GenericBinding& binding : env)
    if (!binding.value.isBound())
      return false;
  Checker there(session, nullptr, session.scratchFunction(), impl.scope);
  there.generics = env;
  Type self = there.resolveType(impl.item->selfType, DimPolicy::Fresh);
  return !isError(self) && agree(self, type) && checkBoundsQuietly(impl.item->generics, env, impl.scope);
}

/// A cheap look at the head of the impl's type, before anything is resolved.
bool Checker::mayMatch(const ImplBlock& impl, Type type) const {
  auto* named = impl.item->selfType->tryAs<syn::NamedType>();
  if (!named)
    return true;
  const std::string_view head = named->path.back().text;
  for (const syn::GenericParam& param : impl.item->generics.params)
    if (param.name.text == head)
      return true;
  const Symbol* symbol = impl.scope->find(named->path.front().text);
  if (!symbol)
    return type->kind == TypeKind::Scalar ? !type->param && lang::name(type->scalar) == head
                                          : type->kind != TypeKind::Struct && type->kind != TypeKind::Enum;
  if (symbol->kind != SymbolKind::Struct && symbol->kind != SymbolKind::Enum)
    return true;
  const StructInstance* instance =
      type->kind == TypeKind::Struct || type->kind == TypeKind::Enum ? session.findStruct(type->decl) : nullptr;
  return instance && instance->item == symbol->item;
}

bool Checker::isCopy(Type type) const {
  if (type->param && !type->isTensor())
    return static_cast<const BoundParam*>(type->param)->builtins.has(Copy);
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
std::optional<GenericValue> Checker::conditionSubject(const syn::Type* subject, const GenericEnv& env, ItemScope* scope,
                                                      Type self) {
  for (const GenericBinding& binding : env)
    if (!binding.value.isBound())
      return std::nullopt;
  Checker there(session, nullptr, session.scratchFunction(), scope);
  there.generics = env;
  there.selfType = self;
  GenericValue value;
  value.kind = GenericValue::Kind::Type;
  value.type = there.resolveType(subject, DimPolicy::Fresh);
  return isError(value.type) ? std::nullopt : std::optional(value);
}

/// The conditions of a generic definition hold while it is checked by itself.
void Checker::assume(const syn::Generics& params) {
  for (const syn::WherePredicate& predicate : params.where) {
    if (!isTypeCondition(predicate))
      continue;
    Type type = resolveType(predicate.subject, DimPolicy::Fresh);
    for (const syn::Type* bound : predicate.bounds)
      if (auto trait = findTrait(bound, items, true); trait && !isError(type))
        assumed.emplace_back(type, *trait);
  }
}

bool Checker::assumes(Type type, const TraitRef& trait) {
  for (const auto& [known, has] : assumed) {
    if (!agree(known, type))
      continue;
    TraitSet builtins;
    std::vector<TraitRef> traits;
    withSupertraits(has, builtins, traits);
    if (trait.builtin ? builtins.has(*trait.builtin) : std::find(traits.begin(), traits.end(), trait) != traits.end())
      return true;
  }
  return false;
}

bool Checker::checkBoundsQuietly(const syn::Generics& params, const GenericEnv& env, ItemScope* scope) {
  for (const WrittenBound& each : boundsOf(params)) {
    const GenericValue* value = each.subject ? nullptr : findGeneric(env, each.name);
    const auto made = each.subject ? conditionSubject(each.subject, env, scope, nullptr) : std::nullopt;
    value = made ? &*made : value;
    if (!value || !value->isBound())
      continue;
    if (auto trait = findTrait(each.bound, scope, false); trait && !hasTrait(*value, *trait))
      return false;
  }
  return true;
}

bool Checker::checkBounds(const syn::Generics& params, const GenericEnv& env, SourceRange use, ItemScope* scope,
                          Type self) {
  ItemScope* where = scope ? scope : items;
  bool ok = true;
  for (const WrittenBound& each : boundsOf(params)) {
    const GenericValue* value = each.subject ? nullptr : findGeneric(env, each.name);
    const auto made = each.subject ? conditionSubject(each.subject, env, where, self) : std::nullopt;
    value = made ? &*made : value;
    if (!value || !value->isBound() || satisfies(*value, each.bound, where))
      continue;
    ok = false;
    const std::string_view boundText = session.sources.text(each.bound->range);
    auto builder = error("E0307", use, base::concat("`", lang::text(*value), "` is not `", boundText, "`"));
    const BoundParam* param = paramOf(*value);
    const std::string_view written = each.subject ? session.sources.text(each.subject->range) : each.name;
    const bool isCondition = each.subject && lang::text(*value) == written;  // of a generic definition's own parameters
    builder
        .primary(param         ? onlyText(*param)
                 : isCondition ? std::string("nothing here says that it is")
                               : base::concat("here `", written, "` is `", lang::text(*value), "`"))
        .label(each.bound->range, "required here");
    if (isCondition)
      builder.help(base::concat("add the condition: `where ", written, ": ", boundText, "`"));
    if (param)
      builder.help(
          base::concat("add the bound where `", param->name, "` is declared: `", boundWith(*param, boundText), "`"));
  }
  return ok;
}

std::string Checker::onlyText(const BoundParam& param) {
  return param.boundsText.empty() ? base::concat("`", param.name, "` may be anything here")
                                  : base::concat("`", param.name, "` is only `", param.boundsText, "` here");
}

/// `T: Area + Numeric`: the parameter's declaration with one more bound.
std::string Checker::boundWith(const BoundParam& param, std::string_view bound) {
  if (param.name == "Self")
    return base::concat("trait ", param.boundsText, ": ", bound);
  return base::concat(param.name, ": ", param.boundsText, param.boundsText.empty() ? "" : " + ", bound);
}

const BoundParam* Checker::paramOf(const GenericValue& value) {
  if (value.kind == GenericValue::Kind::Space)
    return value.param;
  return value.kind == GenericValue::Kind::Type && !value.type->isTensor()
             ? static_cast<const BoundParam*>(value.type->param)
             : nullptr;
}

const BoundParam* Checker::paramOf(Type type) {
  type = stripRef(type);
  if (type->isTensor())
    type = type->elem;
  return static_cast<const BoundParam*>(type->param);
}

bool Checker::grants(Type type, std::initializer_list<BuiltinTrait> anyOf, SourceRange use,
                     std::string_view operation) {
  const BoundParam* param = paramOf(type);
  if (!param || anyOf.size() == 0)
    return true;
  for (BuiltinTrait trait : anyOf)
    if (param->builtins.has(trait))
      return true;
  missingBound(*param, name(*anyOf.begin()), use, operation);
  return false;
}

bool Checker::spaceGrants(Type type, BuiltinTrait trait, SourceRange use, std::string_view operation) {
  type = stripRef(type);
  const auto* param = type->isTensor() ? static_cast<const BoundParam*>(type->param) : nullptr;
  if (!param || param->builtins.has(trait))
    return true;
  missingBound(*param, name(trait), use, operation);
  return false;
}

void Checker::missingBound(const BoundParam& param, std::string_view bound, SourceRange use,
                           std::string_view operation) {
  error("E0350", use, base::concat(operation, " needs `", param.name, ": ", bound, "`"))
      .primary(onlyText(param))
      .label(param.range, base::concat("declared without `", bound, "`"))
      .help(base::concat("write `", boundWith(param, bound), "`"));
}

}  // namespace vortex::lang
