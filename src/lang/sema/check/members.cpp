// Functions and constants of types: which impl or trait a name comes from.
#include "lang/sema/builtin/table.h"
#include "lang/sema/check/checker.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

const syn::Item* memberNamed(syn::List<syn::Item*> members, std::string_view name, syn::ItemKind kind) {
  for (const syn::Item* member : members)
    if (member->kind == kind && member->name.text == name)
      return member;
  return nullptr;
}

}  // namespace

/// The trait's member as the type has it; null if it does not have the trait or the trait no such member.
std::optional<Checker::Member> Checker::traitMember(Type type, const TraitRef& trait, std::string_view name,
                                                    syn::ItemKind kind) {
  const syn::Item* declared = trait.item ? memberNamed(trait.item->members, name, kind) : nullptr;
  if (!declared)
    return std::nullopt;
  const Member fallback{declared, trait.scope, {}, trait.item};
  if (const BoundParam* param = type->isTensor() ? nullptr : static_cast<const BoundParam*>(type->param);
      param && std::find(param->traits.begin(), param->traits.end(), trait) != param->traits.end())
    return fallback;
  if (auto found = findImpl(type, trait)) {
    if (const syn::Item* own = memberNamed(found->impl->item->members, name, kind))
      return Member{own, found->impl->scope, std::move(found->env), trait.item};
    return fallback;
  }
  return implements(type, trait) ? std::optional(fallback) : std::nullopt;
}

void Checker::collectTraitMembers(Type type, std::string_view name, syn::ItemKind kind, std::vector<Member>& found) {
  for (const Session::DeclaredTrait& declared : session.traits()) {
    if (!memberNamed(declared.item->members, name, kind))
      continue;
    bool isKnown = false;  // a block's items are declared at every attempt
    for (const Member& other : found)
      isKnown = isKnown || other.trait == declared.item;
    if (isKnown)
      continue;
    if (auto member = traitMember(type, {declared.item, declared.scope, std::nullopt}, name, kind))
      found.push_back(std::move(*member));
  }
}

std::optional<Checker::Member> Checker::findMember(Type type, std::string_view name, syn::ItemKind kind,
                                                   SourceRange use, bool& isAmbiguous) {
  isAmbiguous = false;
  for (const ImplBlock& impl : session.impls()) {
    const syn::Item* member = impl.item->trait ? nullptr : memberNamed(impl.item->members, name, kind);
    if (!member || !mayMatch(impl, type))
      continue;
    GenericEnv env = genericEnv(impl.item->generics);
    if (matchesSelf(impl, type, env))
      return Member{member, impl.scope, std::move(env), nullptr};
  }
  std::vector<Member> found;
  collectTraitMembers(type, name, kind, found);
  if (found.empty())
    return std::nullopt;
  if (found.size() > 1) {
    isAmbiguous = true;
    error("E0357", use,
          base::concat("`", name, "` of `", text(type), "` may come from `", found[0].trait->name.text, "` or from `",
                       found[1].trait->name.text, "`"))
        .primary("two traits have it")
        .label(memberNamed(found[0].trait->members, name, kind)->name.range, "one")
        .label(memberNamed(found[1].trait->members, name, kind)->name.range, "the other")
        .help(kind == syn::ItemKind::Function
                  ? base::concat("name the trait: `", found[0].trait->name.text, ".", name, "(…)`")
                  : std::string("rename one of them, or return it from a function of its trait"));
    return std::nullopt;
  }
  return std::move(found.front());
}

/// "`T` has no method `area`", with the bound that would bring it.
void Checker::unknownMember(Type type, const syn::Name& name, std::string_view what) {
  if (const BoundParam* param = type->isTensor() ? nullptr : static_cast<const BoundParam*>(type->param)) {
    for (const Session::DeclaredTrait& declared : session.traits())
      for (const syn::Item* member : declared.item->members)
        if (member->name.text == name.text)
          return missingBound(*param, declared.item->name.text, name.range, base::concat("`", name.text, "`"));
    if (const BuiltinRow* row = findBuiltinMethod(name.text, types.scalar(Scalar::F32)))
      return missingBound(*param, row->check == checkFloatMath || row->check == checkFloatTest ? "Float" : "Numeric",
                          name.range, base::concat("`", name.text, "`"));
  }
  error("E0321", name.range, base::concat("`", text(type), "` has no ", what, " `", name.text, "`"));
}

/// `Area.area(&s)`: the function of this trait for the type of its first argument.
Expr* Checker::callOfTrait(const syn::CallExpr* call, const syn::MemberExpr* callee, const Symbol& symbol,
                           Type expected) {
  const TraitRef trait{symbol.item->as<syn::TraitItem>(), symbol.scope, std::nullopt};
  const syn::Item* declared = memberNamed(trait.item->members, callee->name.text, syn::ItemKind::Function);
  if (!declared) {
    error("E0321", callee->name.range,
          base::concat("the trait `", trait.item->name.text, "` has no function `", callee->name.text, "`"))
        .label(trait.item->name.range, "declared here");
    return failedCall(call);
  }
  auto* function = declared->as<syn::FunctionItem>();
  const bool takesSelf = !function->params.empty() && function->params[0].self != syn::SelfKind::None;
  if (!takesSelf || call->args.empty() || !call->args[0].value) {
    error("E0306", callee->range, base::concat("nothing here says whose `", callee->name.text, "` is meant"))
        .help(base::concat("name the type: `MyType.", callee->name.text, "(…)`"));
    return failedCall(call);
  }
  Expr* receiver = check(call->args[0].value);
  if (isError(receiver))
    return failedCall(call);
  Type type = canonicalSelf(stripRef(receiver->type));
  auto member = traitMember(type, trait, callee->name.text, syn::ItemKind::Function);
  if (!member) {
    if (const BoundParam* param = type->isTensor() ? nullptr : static_cast<const BoundParam*>(type->param))
      missingBound(*param, trait.item->name.text, call->args[0].value->range,
                   base::concat("`", callee->name.text, "`"));
    else
      error("E0307", call->args[0].value->range,
            base::concat("`", text(type), "` is not `", trait.item->name.text, "`"))
          .label(trait.item->name.range, "declared here");
    return failedCall(call);
  }
  FunctionCall target;
  target.item = member->item->as<syn::FunctionItem>();
  target.scope = member->scope;
  target.selfType = type;
  target.name = callee->name;
  target.explicitGenerics = callee->genericArgs;
  target.implEnv = std::move(member->env);
  return callFunction(target, call, expected);
}

/// The type methods see as `Self`: a struct of tensors with extents of its own, not those of one value.
Type Checker::canonicalSelf(Type type) {
  if (type->kind != TypeKind::Struct || type->param)
    return type;
  auto* instance = const_cast<StructInstance*>(session.findStruct(type->decl));
  if (!instance)
    return type;
  if (!instance->canonical) {
    LocalScope hidden(*this);
    instance->canonical = structType(instance, DimPolicy::Fresh);
  }
  return isError(instance->canonical) ? type : instance->canonical;
}

/// The value of a trait's constant while only its type is known: any number will do, the impl's is used in instances.
Expr* Checker::standInConst(Type type, SourceRange range) {
  if (type->kind == TypeKind::Scalar && isFloat(type->scalar)) {
    Expr* out = make(ExprKind::Float, type, range);
    out->floatValue = 1;
    return out;
  }
  if (type->kind == TypeKind::Scalar)
    return makeInt(type->scalar == Scalar::Bool ? 1 : 16, type, range);
  return makeVar(newVariable("", type, range, false), range);
}

Expr* Checker::associatedConst(Type type, const syn::Name& name, SourceRange range) {
  bool isAmbiguous = false;
  auto found = findMember(type, name.text, syn::ItemKind::Const, name.range, isAmbiguous);
  if (!found)
    return isAmbiguous ? errorExpr(range) : nullptr;
  auto* item = found->item->as<syn::ConstItem>();
  if (!item->value || (found->trait && type->param)) {
    Checker there(session, nullptr, session.scratchFunction(), found->scope);
    there.selfType = type;
    Type declared = item->type ? there.resolveType(item->type, DimPolicy::Known) : types.error();
    return isError(declared) ? errorExpr(range) : standInConst(declared, range);
  }
  const ConstItemValue* value = session.constValue(item, found->scope, type, found->env);
  return value ? clone(value->expr, range) : errorExpr(range);
}

}  // namespace vortex::lang
