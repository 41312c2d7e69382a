// Which impl makes a type have a trait, and with which generic arguments.
#include "lang/sema/check/traits/impl_match.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/generics.h"
#include "lang/sema/check/traits/implements.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"

#include "base/text.h"

#include <algorithm>
#include <cctype>

namespace vortex::lang {

static bool mentionsUnbound(const BodyState& body, const syn::Type* type, const GenericEnv& env);
static bool mayMatch(const BodyState& body, const ImplBlock& impl, Type type);

bool bringsExtents(Type type) {
  return type->isTensor() || (type->elem && bringsExtents(type->elem)) ||
         (!type->param && std::any_of(type->elems.begin(), type->elems.end(), bringsExtents));
}

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
  if (a->isTensor()) {
    if (a->rank() != b->rank() || a->space != b->space)
      return false;
    for (uint32_t i = 0; i < a->rank(); ++i)
      if (auto x = a->shape[i].asConstant(), y = b->shape[i].asConstant(); x && y && *x != *y)
        return false;
  }
  for (size_t i = 0; i < a->elems.size(); ++i)
    if (!agree(a->elems[i], b->elems[i]))
      return false;
  return !a->elem || agree(a->elem, b->elem);
}

bool agree(const GenericValue& a, const GenericValue& b) {
  if (a.kind != b.kind)
    return false;
  switch (a.kind) {
  case GenericValue::Kind::Type: return agree(a.type, b.type);
  case GenericValue::Kind::Const: return a.value == b.value;
  case GenericValue::Kind::Space: return a.space == b.space && a.param == b.param;
  case GenericValue::Kind::Shape: return a.shape.size() == b.shape.size();
  case GenericValue::Kind::None: return true;
  }
  return true;
}

/// The impl of the trait for the type, with its generic arguments.
std::optional<FoundImpl> findImpl(BodyState& body, Type type, const TraitRef& trait) {
  // An impl whose bounds lead back to the question does not answer it.
  const std::pair question(type, trait);
  if (std::find(body.session.traitQuestions.begin(), body.session.traitQuestions.end(), question) !=
          body.session.traitQuestions.end() ||
      body.session.traitQuestions.size() > body.session.options.maxInstanceDepth)
    return std::nullopt;
  body.session.traitQuestions.push_back(question);
  std::optional<FoundImpl> out;
  for (size_t i = 0; i < body.session.modules.impls().size(); ++i) {
    const ImplBlock& impl = body.session.modules.impls()[i];
    if (!impl.item->trait)
      continue;
    auto head = traitNamed(body, impl.item->trait, impl.scope, false);
    GenericEnv env = genericEnv(impl.item->generics);
    if (!head || head->item != trait.item || (out && out->impl->item == impl.item) ||
        !matchesImpl(body, impl, type, &trait, env))
      continue;
    if (!out) {
      out = FoundImpl{&impl, std::move(env), trait};
      continue;
    }
    // Impls of which neither covers the other may still meet in one type.
    error(body, "E0355", impl.item->selfType->range,
          base::concat("`", trait.text(), "` is implemented twice for `", text(body, type), "`"))
        .primary("second impl")
        .label(out->impl->item->selfType->range, "first impl");
    break;
  }
  body.session.traitQuestions.pop_back();
  return out;
}

/// The impls of the trait for the type whatever its arguments; those that the type does not determine are left open.
std::vector<FoundImpl> findImpls(BodyState& body, Type type, const TraitRef& trait) {
  std::vector<FoundImpl> out;
  if (trait.item->generics.params.empty()) {
    if (auto found = findImpl(body, type, trait))
      out.push_back(std::move(*found));
    return out;
  }
  for (size_t i = 0; i < body.session.modules.impls().size(); ++i) {
    const ImplBlock& impl = body.session.modules.impls()[i];
    auto head = impl.item->trait ? traitNamed(body, impl.item->trait, impl.scope, false) : std::nullopt;
    if (!head || head->item != trait.item ||
        std::any_of(out.begin(), out.end(), [&](const FoundImpl& other) { return other.impl->item == impl.item; }))
      continue;
    GenericEnv env = genericEnv(impl.item->generics);
    if (!matchesImpl(body, impl, type, nullptr, env, true))
      continue;
    BodyState there(body.session, nullptr, body.session.scratchFunction(), impl.scope);
    there.generics = env;
    there.selfType = type;
    TraitRef found = *head;
    const bool isOpen = std::any_of(env.begin(), env.end(), [](const GenericBinding& b) { return !b.value.isBound(); });
    if (auto known = isOpen ? std::nullopt : findTrait(there, impl.item->trait, impl.scope, false))
      found = *known;
    else
      found.args.resize(trait.item->generics.params.size());
    out.push_back(FoundImpl{&impl, std::move(env), std::move(found)});
  }
  return out;
}

/// Learns an impl's parameters from the arguments of its trait.
void inferTraitArgs(BodyState& body, const ImplBlock& impl, const TraitRef& trait, GenericEnv& env) {
  auto* named = impl.item->trait ? impl.item->trait->tryAs<syn::NamedType>() : nullptr;
  size_t next = 0;
  for (size_t i = 0; named && i < named->genericArgs.size(); ++i) {
    const syn::GenericArg& arg = named->genericArgs[i];
    if (arg.name.isPresent() || next == trait.args.size())
      continue;
    const GenericValue& value = trait.args[next++];
    if (!arg.type || !value.isBound())
      continue;
    auto* lone = arg.type->tryAs<syn::NamedType>();
    if (value.kind == GenericValue::Kind::Type)
      infer(body, arg.type, value.type, env, impl.scope);
    else if (GenericValue* generic = lone && lone->path.size() == 1 && !lone->hasGenericArgs
                                         ? findGeneric(env, lone->path[0].text)
                                         : nullptr;
             generic && !generic->isBound())
      *generic = value;
  }
}

/// Does `impl … for selfType` apply to the type, as an impl of `wanted` if that is given? Binds the impl's generic parameters;
/// with `mayBeOpen` those that only the trait's arguments determine may stay unbound.
bool matchesImpl(BodyState& body, const ImplBlock& impl, Type type, const TraitRef* wanted, GenericEnv& env,
                 bool mayBeOpen) {
  if (!mayMatch(body, impl, type))
    return false;
  const Session::Quiet quiet(body.session);
  infer(body, impl.item->selfType, type, env, impl.scope);
  if (wanted)
    inferTraitArgs(body, impl, *wanted, env);
  bool isOpen = false;
  for (const GenericBinding& binding : env)
    isOpen = isOpen || !binding.value.isBound();
  if (isOpen && (!mayBeOpen || mentionsUnbound(body, impl.item->selfType, env)))
    return false;
  BodyState there(body.session, nullptr, body.session.scratchFunction(), impl.scope);
  there.generics = env;
  Type self = resolveType(there, impl.item->selfType, DimPolicy::Fresh);
  if (isError(self))
    return false;
  // Without a space an impl is for tensors wherever they are, as parameters of functions are.
  if (self->isTensor() && type->isTensor() && !writesSpace(impl.item->selfType))
    self = body.types.tensor(self->elem, self->shape, type->space, type->layout, type->param);
  if (!agree(self, type))
    return false;
  there.selfType = type;
  if (wanted && !wanted->args.empty()) {
    auto mine = findTrait(there, impl.item->trait, impl.scope, false);
    if (!mine || !(*mine == *wanted))
      return false;
  }
  return checkBoundsQuietly(body, impl.item->generics, env, impl.scope);
}

/// Names the written type a parameter that has no value?
static bool mentionsUnbound(const BodyState& body, const syn::Type* type, const GenericEnv& env) {
  const std::string_view written = body.session.sources.text(type->range);
  const auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (const GenericBinding& binding : env) {
    if (binding.value.isBound())
      continue;
    for (size_t at = written.find(binding.name); at != std::string_view::npos;
         at = written.find(binding.name, at + 1)) {
      const size_t end = at + binding.name.size();
      if ((at == 0 || !isWord(written[at - 1])) && (end == written.size() || !isWord(written[end])))
        return true;
    }
  }
  return false;
}

/// A cheap look at the head of the impl's type, before anything is resolved.
static bool mayMatch(const BodyState& body, const ImplBlock& impl, Type type) {
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
      type->kind == TypeKind::Struct || type->kind == TypeKind::Enum ? body.session.findStruct(type->decl) : nullptr;
  return instance && instance->item == symbol->item;
}

}  // namespace vortex::lang
