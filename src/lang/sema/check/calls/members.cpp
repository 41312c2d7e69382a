// Functions and constants of types: which impl or trait a name comes from.
#include "lang/sema/check/calls/members.h"
#include "lang/sema/builtin/math.h"
#include "lang/sema/builtin/table.h"
#include "lang/sema/check/calls/calls.h"
#include "lang/sema/check/calls/methods.h"
#include "lang/sema/check/calls/select.h"
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/constants/limits.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/associated.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/impl_match.h"
#include "lang/sema/check/traits/implements.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/canonical.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"

#include "base/text.h"
#include "diag/names_elsewhere.h"

#include <algorithm>

namespace vortex::lang {

namespace {

const syn::Item* memberNamed(syn::List<syn::Item*> members, std::string_view name, syn::ItemKind kind) {
  for (const syn::Item* member : members)
    if (member->kind == kind && member->name.text == name)
      return member;
  return nullptr;
}

}  // namespace

/// The trait's member as the type has it: one, or one for each of the trait's arguments that the type has it with.
std::vector<Member> traitMembers(BodyState& body, Type type, const TraitRef& trait, std::string_view name,
                                 syn::ItemKind kind) {
  const syn::Item* declared = trait.item ? memberNamed(trait.item->members, name, kind) : nullptr;
  std::vector<Member> out;
  if (!declared)
    return out;
  const auto add = [&](const TraitRef& found) { out.push_back({declared, trait.scope, envOf(found), found, nullptr}); };
  const auto addPromised = [&](const std::vector<TraitRef>& traits) {
    for (const TraitRef& each : traits)
      if (each.item == trait.item && (trait.args.empty() || each == trait))
        add(each);
  };
  if (const BoundParam* param = type->isTensor() ? nullptr : static_cast<const BoundParam*>(type->param))
    addPromised(param->traits);
  for (size_t i = 0; i < body.assumed.size() && out.empty(); ++i)
    if (agree(body.assumed[i].first, type)) {
      TraitSet builtins;
      std::vector<TraitRef> traits;
      withSupertraits(body, body.assumed[i].second, builtins, traits, type);
      addPromised(traits);
    }
  if (!out.empty())
    return out;
  const auto addFound = [&](FoundImpl& found) {
    if (const syn::Item* own = memberNamed(found.impl->item->members, name, kind))
      out.push_back({own, found.impl->scope, std::move(found.env), found.trait, found.impl->item});
    else
      add(found.trait);
  };
  const std::vector<TraitRef> written =
      trait.item->generics.params.empty() ? std::vector<TraitRef>() : writtenTraits(body, type, trait.item);
  for (FoundImpl& found : findImpls(body, type, trait)) {
    if (!trait.args.empty() && !found.trait.isOpen() && !(found.trait == trait))
      continue;
    const bool isOpen = found.trait.isOpen();
    const bool isWritten = std::find(written.begin(), written.end(), found.trait) != written.end();
    addFound(found);
    out.back().isWritten = isWritten;
    for (const TraitRef& each : written)
      if (auto closed = isOpen ? findImpl(body, type, each) : std::nullopt; closed && closed->impl == found.impl) {
        addFound(*closed);
        out.back().isWritten = true;
      }
  }
  for (const TraitRef& listed : listedTraits(body, type, trait.item))
    if (trait.args.empty() || listed == trait)
      add(listed);
  return out;
}

std::vector<Member> findMembers(BodyState& body, Type type, std::string_view name, syn::ItemKind kind) {
  for (size_t i = 0; i < body.session.modules.impls().size(); ++i) {
    const ImplBlock impl = body.session.modules.impls()[i];
    const syn::Item* member = impl.item->trait ? nullptr : memberNamed(impl.item->members, name, kind);
    GenericEnv env = genericEnv(impl.item->generics);
    if (member && matchesImpl(body, impl, type, nullptr, env))
      return {Member{member, impl.scope, std::move(env), std::nullopt, impl.item}};
  }
  std::vector<Member> found;
  std::set<const syn::TraitItem*> seen;  // a block's items are declared at every attempt
  for (size_t i = 0; i < body.session.modules.traits().size(); ++i) {
    const DeclaredTrait declared = body.session.modules.traits()[i];
    if (!memberNamed(declared.item->members, name, kind) || !seen.insert(declared.item).second)
      continue;
    for (Member& member : traitMembers(body, type, {declared.item, declared.scope, std::nullopt}, name, kind))
      found.push_back(std::move(member));
  }
  return found;
}

/// The one that is meant; none if there is none, or after an error (`isAmbiguous`: reported as E0357 at `use`).
static std::optional<Member> findMember(BodyState& body, Type type, std::string_view name, syn::ItemKind kind,
                                        SourceRange use, bool& isAmbiguous) {
  std::vector<Member> found = findMembers(body, type, name, kind);
  if (const TraitRef* own =
          found.size() > 1 && body.selfType && canonicalSelf(body, body.selfType) == type ? ownTrait(body) : nullptr)
    if (std::any_of(found.begin(), found.end(), [&](const Member& each) { return each.trait && *each.trait == *own; }))
      std::erase_if(found, [&](const Member& each) { return !each.trait || !(*each.trait == *own); });
  if (std::any_of(found.begin(), found.end(), [](const Member& each) { return each.isWritten; }))
    std::erase_if(found, [](const Member& each) { return !each.isWritten; });
  isAmbiguous = found.size() > 1;
  if (isAmbiguous)
    reportAmbiguous(body, type, found, name, kind, use);
  return found.size() == 1 ? std::optional(std::move(found.front())) : std::nullopt;
}

void reportAmbiguous(BodyState& body, Type type, const std::vector<Member>& found, std::string_view name,
                     syn::ItemKind kind, SourceRange use) {
  const Member &first = found[0], &second = found[1];
  const bool isOneTrait = first.trait->item == second.trait->item;
  auto builder = error(body, "E0357", use,
                       base::concat("`", name, "` of `", text(body, type), "` may come from `", first.trait->text(),
                                    "` or from `", second.trait->text(), "`"));
  builder.primary(isOneTrait ? "the arguments do not say which" : "two traits have it");
  const syn::Item* one = isOneTrait ? first.item : memberNamed(first.trait->item->members, name, kind);
  const syn::Item* other = isOneTrait ? second.item : memberNamed(second.trait->item->members, name, kind);
  builder.label(one->name.range, "one");
  if (one != other)
    builder.label(other->name.range, "the other");
  if (kind != syn::ItemKind::Function)
    builder.help("rename one of them, or return it from a function of its trait");
  else if (isOneTrait)
    builder.help(base::concat("name it: `", first.trait->item->name.text, "::<…>.", name,
                              "(…)`, or convert an argument with `as`"));
  else
    builder.help(base::concat("name the trait: `", first.trait->item->name.text, ".", name, "(…)`"));
}

std::vector<std::string> memberNames(BodyState& body, Type type, syn::ItemKind kind) {
  std::set<std::string_view> known;
  const auto collect = [&](const auto& blocks) {
    for (const auto& block : blocks)
      for (const syn::Item* member : block.item->members)
        if (member->kind == kind && !known.contains(member->name.text))
          known.insert(member->name.text);
  };
  collect(body.session.modules.impls());
  collect(body.session.modules.traits());
  std::erase_if(known, [&](std::string_view name) { return findMembers(body, type, name, kind).empty(); });
  return {known.begin(), known.end()};
}

/// "`T` has no method `area`", with the bound that would bring it.
void unknownMember(BodyState& body, Type type, const syn::Name& name, std::string_view what) {
  if (const BoundParam* param = type->isTensor() ? nullptr : static_cast<const BoundParam*>(type->param)) {
    for (const DeclaredTrait& declared : body.session.modules.traits())
      for (const syn::Item* member : declared.item->members)
        if (member->name.text == name.text)
          return missingBound(body, *param, declared.item->name.text, name.range, base::concat("`", name.text, "`"));
    if (const BuiltinRow* row = findBuiltinMethod(name.text, body.types.scalar(Scalar::F32)))
      return missingBound(body, *param,
                          row->check == checkFloatMath || row->check == checkFloatTest ? "Float" : "Numeric",
                          name.range, base::concat("`", name.text, "`"));
  }
  auto builder =
      error(body, "E0321", name.range, base::concat("`", text(body, type), "` has no ", what, " `", name.text, "`"));
  const auto kind = what == "constant" ? syn::ItemKind::Const : syn::ItemKind::Function;
  diag::suggest(builder, nullptr, name.text, memberNames(body, type, kind));
}

/// `Area.area(&s)`: the function of this trait for the type of its first argument.
Expr* callOfTrait(BodyState& body, const syn::CallExpr* call, const syn::MemberExpr* callee, const Symbol& symbol,
                  Type expected) {
  TraitRef trait{symbol.item->as<syn::TraitItem>(), symbol.scope, std::nullopt};
  if (auto* named = callee->base->tryAs<syn::NameExpr>(); named && named->hasGenericArgs) {
    syn::NamedType written;
    written.kind = syn::TypeKind::Named;
    written.range = callee->base->range;
    written.hasGenericArgs = true;
    written.genericArgs = named->genericArgs;
    if (!resolveTraitArgs(body, trait, &written))
      return failedCall(body, call);
  }
  const syn::Item* declared = memberNamed(trait.item->members, callee->name.text, syn::ItemKind::Function);
  if (!declared) {
    error(body, "E0321", callee->name.range,
          base::concat("the trait `", trait.item->name.text, "` has no function `", callee->name.text, "`"))
        .label(trait.item->name.range, "declared here");
    return failedCall(body, call);
  }
  auto* function = declared->as<syn::FunctionItem>();
  const bool takesSelf = !function->params.empty() && function->params[0].self != syn::SelfKind::None;
  if (!takesSelf || call->args.empty() || !call->args[0].value) {
    error(body, "E0306", callee->range, base::concat("nothing here says whose `", callee->name.text, "` is meant"))
        .help(base::concat("name the type: `MyType.", callee->name.text, "(…)`"));
    return failedCall(body, call);
  }
  Expr* receiver = check(body, call->args[0].value);
  if (isError(receiver))
    return failedCall(body, call);
  Type type = canonicalSelf(body, stripRef(receiver->type));
  std::vector<Member> found = traitMembers(body, type, trait, callee->name.text, syn::ItemKind::Function);
  if (found.empty() && receiver->type->kind == TypeKind::Ref)  // an impl for references
    found = traitMembers(body, type = canonicalSelf(body, receiver->type), trait, callee->name.text,
                         syn::ItemKind::Function);
  if (found.empty()) {
    type = canonicalSelf(body, stripRef(receiver->type));
    if (const BoundParam* param = type->isTensor() ? nullptr : static_cast<const BoundParam*>(type->param))
      missingBound(body, *param, trait.text(), call->args[0].value->range, base::concat("`", callee->name.text, "`"));
    else
      error(body, "E0307", call->args[0].value->range,
            base::concat("`", text(body, type), "` is not `", trait.text(), "`"))
          .label(trait.item->name.range, "declared here");
    return failedCall(body, call);
  }
  auto member = selectMember(body, std::move(found), type, call, false, callee->name, expected);
  return member ? callMemberFound(body, std::move(*member), type, call, callee, nullptr, expected)
                : failedCall(body, call);
}

/// The value of a trait's constant while only its type is known: any number will do, the impl's is used in instances.
static Expr* standInConst(BodyState& body, Type type, SourceRange range) {
  if (type->kind == TypeKind::Scalar && isFloat(type->scalar)) {
    Expr* out = make(body, ExprKind::Float, type, range);
    out->floatValue = 1;
    return out;
  }
  if (type->kind == TypeKind::Scalar)
    return makeInt(body, type->scalar == Scalar::Bool ? 1 : 16, type, range);
  return makeVar(body, newVariable(body, "", type, range, false), range);
}

Expr* associatedConst(BodyState& body, Type type, const syn::Name& name, SourceRange range) {
  bool isAmbiguous = false;
  auto found = findMember(body, type, name.text, syn::ItemKind::Const, name.range, isAmbiguous);
  if (!found)
    return isAmbiguous ? errorExpr(body, range) : numberLimit(body, type, name.text, range);
  auto* item = found->item->as<syn::ConstItem>();
  if (!item->value || (found->trait && type->param)) {
    BodyState there(body.session, nullptr, body.session.scratchFunction(), found->scope);
    there.generics = found->env;
    there.selfType = type;
    Type declared = item->type ? resolveType(there, item->type, DimPolicy::Known) : body.types.error();
    return isError(declared) ? errorExpr(body, range) : standInConst(body, declared, range);
  }
  const ConstItemValue* value = body.session.constValue(item, found->scope, type, found->env);
  return value ? clone(body, value->expr, range) : errorExpr(body, range);
}

}  // namespace vortex::lang
