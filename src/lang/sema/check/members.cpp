// Functions and constants of types: which impl or trait a name comes from.
#include "lang/sema/builtin/table.h"
#include "lang/sema/check/checker.h"
#include "lang/sema/check/names.h"

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

/// The trait's member as the type has it: one, or one for each of the trait's arguments that the type has it with.
std::vector<Checker::Member> Checker::traitMembers(Type type, const TraitRef& trait, std::string_view name,
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
  for (size_t i = 0; i < assumed.size() && out.empty(); ++i)
    if (agree(assumed[i].first, type)) {
      TraitSet builtins;
      std::vector<TraitRef> traits;
      withSupertraits(assumed[i].second, builtins, traits, type);
      addPromised(traits);
    }
  if (!out.empty())
    return out;
  for (FoundImpl& found : findImpls(type, trait)) {
    if (!trait.args.empty() && !found.trait.isOpen() && !(found.trait == trait))
      continue;
    if (const syn::Item* own = memberNamed(found.impl->item->members, name, kind))
      out.push_back({own, found.impl->scope, std::move(found.env), found.trait, found.impl->item});
    else
      add(found.trait);
  }
  for (const TraitRef& listed : listedTraits(type, trait.item))
    if (trait.args.empty() || listed == trait)
      add(listed);
  return out;
}

std::vector<Checker::Member> Checker::findMembers(Type type, std::string_view name, syn::ItemKind kind) {
  for (size_t i = 0; i < session.impls().size(); ++i) {
    const ImplBlock impl = session.impls()[i];
    const syn::Item* member = impl.item->trait ? nullptr : memberNamed(impl.item->members, name, kind);
    GenericEnv env = genericEnv(impl.item->generics);
    if (member && matchesImpl(impl, type, nullptr, env))
      return {Member{member, impl.scope, std::move(env), std::nullopt, impl.item}};
  }
  std::vector<Member> found;
  std::set<const syn::TraitItem*> seen;  // a block's items are declared at every attempt
  for (size_t i = 0; i < session.traits().size(); ++i) {
    const Session::DeclaredTrait declared = session.traits()[i];
    if (!memberNamed(declared.item->members, name, kind) || !seen.insert(declared.item).second)
      continue;
    for (Member& member : traitMembers(type, {declared.item, declared.scope, std::nullopt}, name, kind))
      found.push_back(std::move(member));
  }
  return found;
}

std::optional<Checker::Member> Checker::findMember(Type type, std::string_view name, syn::ItemKind kind,
                                                   SourceRange use, bool& isAmbiguous) {
  std::vector<Member> found = findMembers(type, name, kind);
  if (const TraitRef* own = found.size() > 1 && selfType && canonicalSelf(selfType) == type ? ownTrait() : nullptr)
    if (std::any_of(found.begin(), found.end(), [&](const Member& each) { return each.trait && *each.trait == *own; }))
      std::erase_if(found, [&](const Member& each) { return !each.trait || !(*each.trait == *own); });
  isAmbiguous = found.size() > 1;
  if (isAmbiguous)
    reportAmbiguous(type, found, name, kind, use);
  return found.size() == 1 ? std::optional(std::move(found.front())) : std::nullopt;
}

void Checker::reportAmbiguous(Type type, const std::vector<Member>& found, std::string_view name, syn::ItemKind kind,
                              SourceRange use) {
  const Member &first = found[0], &second = found[1];
  const bool isOneTrait = first.trait->item == second.trait->item;
  auto builder = error("E0357", use,
                       base::concat("`", name, "` of `", text(type), "` may come from `", first.trait->text(),
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
  TraitRef trait{symbol.item->as<syn::TraitItem>(), symbol.scope, std::nullopt};
  if (auto* named = callee->base->tryAs<syn::NameExpr>(); named && named->hasGenericArgs) {
    syn::NamedType written;
    written.kind = syn::TypeKind::Named;
    written.range = callee->base->range;
    written.hasGenericArgs = true;
    written.genericArgs = named->genericArgs;
    if (!resolveTraitArgs(trait, &written))
      return failedCall(call);
  }
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
  std::vector<Member> found = traitMembers(type, trait, callee->name.text, syn::ItemKind::Function);
  if (found.empty() && receiver->type->kind == TypeKind::Ref)  // an impl for references
    found = traitMembers(type = canonicalSelf(receiver->type), trait, callee->name.text, syn::ItemKind::Function);
  if (found.empty()) {
    type = canonicalSelf(stripRef(receiver->type));
    if (const BoundParam* param = type->isTensor() ? nullptr : static_cast<const BoundParam*>(type->param))
      missingBound(*param, trait.text(), call->args[0].value->range, base::concat("`", callee->name.text, "`"));
    else
      error("E0307", call->args[0].value->range, base::concat("`", text(type), "` is not `", trait.text(), "`"))
          .label(trait.item->name.range, "declared here");
    return failedCall(call);
  }
  auto member = selectMember(std::move(found), type, call, false, callee->name, expected);
  return member ? callMemberFound(std::move(*member), type, call, callee, nullptr, expected) : failedCall(call);
}

/// The type methods see as `Self`: a struct of tensors with extents of its own, not those of one value.
Type Checker::canonicalSelf(Type type) {
  if (type->kind != TypeKind::Struct) {
    size_t next = 0;
    return bringsExtents(type) ? withCanonicalExtents(type, next) : type;
  }
  if (type->param)
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

/// Tensors of one rank are one type to impls; extents that are constants stay.
Type Checker::withCanonicalExtents(Type type, size_t& next) {
  switch (type->kind) {
  case TypeKind::Tensor: {
    std::vector<DimExpr> shape;
    for (const DimExpr& extent : type->shape) {
      const DimExpr canonical = session.canonicalExtent(next++);
      shape.push_back(extent.asConstant() ? extent : canonical);
    }
    return types.tensor(type->elem, std::move(shape), type->space, type->layout, type->param);
  }
  case TypeKind::Vec: return types.vec(withCanonicalExtents(type->elem, next));
  case TypeKind::Array: return types.array(withCanonicalExtents(type->elem, next), type->count);
  case TypeKind::Ref: return types.ref(withCanonicalExtents(type->elem, next), type->isMutable);
  case TypeKind::Struct: return canonicalSelf(type);
  case TypeKind::Tuple: {
    std::vector<Type> elems;
    for (Type elem : type->elems)
      elems.push_back(withCanonicalExtents(elem, next));
    return types.tuple(std::move(elems));
  }
  default: return type;
  }
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
    there.generics = found->env;
    there.selfType = type;
    Type declared = item->type ? there.resolveType(item->type, DimPolicy::Known) : types.error();
    return isError(declared) ? errorExpr(range) : standInConst(declared, range);
  }
  const ConstItemValue* value = session.constValue(item, found->scope, type, found->env);
  return value ? clone(value->expr, range) : errorExpr(range);
}

}  // namespace vortex::lang
