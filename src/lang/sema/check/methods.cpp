// Calls written with a dot: module functions, associated functions, methods, built-in methods.
#include "lang/sema/builtin/table.h"
#include "lang/sema/check/checker.h"
#include "lang/sema/check/names.h"

#include "base/text.h"

namespace vortex::lang {

Expr* Checker::callMember(const syn::CallExpr* call, const syn::MemberExpr* callee, Type expected) {
  if (const Symbol* symbol = findSymbol(callee)) {
    if (!checkPublic(*symbol, callee->name))
      return failedCall(call);
    return callSymbol(*symbol, call, callee->name, callee->hasGenericArgs, callee->genericArgs, expected);
  }
  if (const Symbol* base = findSymbol(callee->base)) {
    if (base->kind == SymbolKind::Missing)
      return failedCall(call);
    if (base->kind == SymbolKind::Module) {
      unknownInModule(*base, callee->name);
      return failedCall(call);
    }
    if (base->kind == SymbolKind::Function) {
      if (callee->name.text == "launch")
        error("E0410", call->range, "this chooses a launch but does not start it")
            .help("call the result: `k.launch(grid = …)(x)`");
      else
        error("E0321", callee->name.range, base::concat("a function has no `", callee->name.text, "`"));
      return failedCall(call);
    }
  }
  if (auto* name = callee->base->tryAs<syn::NameExpr>();
      name && !findLocal(name->name.text) && !items->find(name->name.text)) {
    // `Tensor.zeros()`, `random.normal(…)`, `warp.sum(v)`.
    const std::string full = std::string(name->name.text) + "." + std::string(callee->name.text);
    if (const BuiltinRow* row = findBuiltin(full)) {
      syn::List<syn::GenericArg> args = callee->hasGenericArgs ? callee->genericArgs : name->genericArgs;
      return callBuiltin(*row, call, callee->name, nullptr, args, expected);
    }
    if (isBuiltinNamespace(name->name.text)) {
      auto builder =
          error("E0321", callee->name.range, base::concat("`", name->name.text, "` has no `", callee->name.text, "`"));
      if (std::string close = nearest(callee->name.text, builtinsIn(name->name.text)); !close.empty())
        builder.help("did you mean `" + close + "`?");
      return failedCall(call);
    }
  }
  if (const Symbol* base = findSymbol(callee->base); base && base->kind == SymbolKind::Trait)
    return callOfTrait(call, callee, *base, expected);
  if (Type type = typeNamed(callee->base))
    return isError(type) ? failedCall(call) : callAssociated(call, callee, type, expected);
  if (const Symbol* base = findSymbol(callee->base); base && base->kind == SymbolKind::Struct)
    return callOfGenericStruct(call, callee, *base, expected);
  Expr* receiver = check(callee->base);
  return isError(receiver) ? failedCall(call) : callMethod(call, callee, receiver, expected);
}

namespace {
const syn::FunctionItem* memberFunction(syn::List<syn::Item*> members, std::string_view name) {
  for (const syn::Item* member : members)
    if (auto* function = member->tryAs<syn::FunctionItem>(); function && function->name.text == name)
      return function;
  return nullptr;
}
}  // namespace

Expr* Checker::callMethod(const syn::CallExpr* call, const syn::MemberExpr* callee, Expr* receiver, Type expected) {
  Type type = stripRef(receiver->type);
  if (type->kind == TypeKind::Struct)
    for (size_t i = 0; i < type->decl->fields.size(); ++i)
      if (type->decl->fields[i] == callee->name.text && type->elems[i]->kind == TypeKind::Closure)
        return callClosure(call, checkMemberOfValue(deref(receiver), callee->name, callee->range));
  type = canonicalSelf(type);
  // The type itself; then references to it, as they are and as the call would make them.
  std::vector<Type> selves{type};
  if (receiver->type->kind == TypeKind::Ref)
    selves.push_back(canonicalSelf(receiver->type));
  else
    selves.insert(selves.end(), {types.ref(type, false), types.ref(type, true)});
  for (Type self : selves) {
    std::vector<Member> found = findMembers(self, callee->name.text, syn::ItemKind::Function);
    if (found.empty())
      continue;
    auto member = selectMember(std::move(found), self, call, true, callee->name, expected);
    return member ? callMemberFound(std::move(*member), self, call, callee, receiver, expected) : failedCall(call);
  }
  const BuiltinRow* row = findBuiltinMethod(callee->name.text, type);
  if (row)
    return callBuiltin(*row, call, callee->name, receiver, callee->genericArgs, expected);
  if (type->param && !type->isTensor()) {
    unknownMember(type, callee->name, "method");
    return failedCall(call);
  }
  auto builder =
      error("E0321", callee->name.range, base::concat("`", text(type), "` has no method `", callee->name.text, "`"));
  builder.label(receiver->range, "`" + text(receiver->type) + "`");
  if (std::string close = nearest(callee->name.text, builtinMethodsOf(type)); !close.empty())
    builder.help("did you mean `" + close + "`?");
  builder.emit();
  return failedCall(call);
}

Expr* Checker::callAssociated(const syn::CallExpr* call, const syn::MemberExpr* callee, Type type, Type expected) {
  type = canonicalSelf(type);
  std::vector<Member> found = findMembers(type, callee->name.text, syn::ItemKind::Function);
  const bool isFloatType = type->kind == TypeKind::Scalar && isFloat(type->scalar);
  if (found.empty() && isFloatType && callee->name.text == "from_bits")
    return callBuiltin(*findBuiltin("from_bits"), call, callee->name, nullptr, {}, type);
  if (found.empty()) {
    unknownMember(type, callee->name, "function");
    return failedCall(call);
  }
  auto member = selectMember(std::move(found), type, call, false, callee->name, expected);
  return member ? callMemberFound(std::move(*member), type, call, callee, nullptr, expected) : failedCall(call);
}

Expr* Checker::callMemberFound(Member member, Type self, const syn::CallExpr* call, const syn::MemberExpr* callee,
                               Expr* receiver, Type expected) {
  FunctionCall target;
  target.item = member.item->as<syn::FunctionItem>();
  target.scope = member.scope;
  target.selfType = self;
  target.receiver = receiver;
  target.name = callee->name;
  target.explicitGenerics = callee->genericArgs;
  target.implEnv = std::move(member.env);
  target.impl = member.impl;
  if (member.trait && member.trait->isOpen())
    target.trait = member.trait;
  return callFunction(target, call, expected);
}

/// `S.new(1.0)` without the arguments of `S`: taken from the expected type, else inferred like the function's own.
Expr* Checker::callOfGenericStruct(const syn::CallExpr* call, const syn::MemberExpr* callee, const Symbol& symbol,
                                   Type expected) {
  if (expected && expected->kind == TypeKind::Struct)
    if (const StructInstance* instance = session.findStruct(expected->decl); instance && instance->item == symbol.item)
      return callAssociated(call, callee, expected, expected);
  for (const ImplBlock& impl : session.impls()) {
    auto* self = impl.item->selfType->tryAs<syn::NamedType>();
    const Symbol* named = self ? impl.scope->find(self->path.back().text) : nullptr;
    const syn::FunctionItem* function =
        named && named->item == symbol.item ? memberFunction(impl.item->members, callee->name.text) : nullptr;
    if (!function)
      continue;
    std::vector<std::string_view> params;
    for (const syn::Param& param : function->params)
      params.push_back(param.self != syn::SelfKind::None ? "self" : param.name.text);
    std::vector<const syn::Expr*> placed;
    if (!placeArgs(call, params, 0, params.size(), placed, callee->name.text))
      return failedCall(call);
    GenericEnv env = genericEnv(impl.item->generics);
    for (size_t i = 0; i < placed.size(); ++i)
      if (function->params[i].type) {
        Expr* arg = check(placed[i]);
        if (isError(arg))
          return errorExpr(call->range);
        infer(function->params[i].type, arg->type, env, impl.scope);
      }
    for (const GenericBinding& binding : env)
      if (!binding.value.isBound()) {
        error("E0306", callee->range,
              base::concat("`", binding.name, "` of `", symbol.item->name.text, "` cannot be inferred"))
            .help(base::concat("write `", symbol.item->name.text, "::<…>.", callee->name.text, "(…)`"));
        return errorExpr(call->range);
      }
    Checker there(session, nullptr, session.scratchFunction(), impl.scope);
    there.generics = env;
    Type type = there.resolveType(impl.item->selfType, DimPolicy::Fresh);
    return isError(type) ? errorExpr(call->range) : callAssociated(call, callee, type, expected);
  }
  error("E0321", callee->name.range,
        base::concat("`", symbol.item->name.text, "` has no function `", callee->name.text, "`"));
  return failedCall(call);
}

}  // namespace vortex::lang
