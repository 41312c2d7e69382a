// Calls written with a dot: module functions, associated functions, methods, built-in methods.
#include "lang/sema/check/calls/methods.h"
#include "lang/sema/builtin/call.h"
#include "lang/sema/builtin/table.h"
#include "lang/sema/check/calls/calls.h"
#include "lang/sema/check/calls/members.h"
#include "lang/sema/check/calls/select.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/name_expr.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/lookup.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/generics.h"
#include "lang/sema/check/types/canonical.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"

#include "base/text.h"
#include "diag/names_elsewhere.h"

namespace vortex::lang {

static Expr* callMethod(BodyState& body, const syn::CallExpr* call, const syn::MemberExpr* callee, Expr* receiver,
                        Type expected);
static Expr* callAssociated(BodyState& body, const syn::CallExpr* call, const syn::MemberExpr* callee, Type type,
                            Type expected);
static Expr* callOfGenericStruct(BodyState& body, const syn::CallExpr* call, const syn::MemberExpr* callee,
                                 const Symbol& symbol, Type expected);

Expr* callMember(BodyState& body, const syn::CallExpr* call, const syn::MemberExpr* callee, Type wanted) {
  const Type expected = wanted && isError(wanted) ? nullptr : wanted;
  if (const Symbol* symbol = findSymbol(body, callee)) {
    if (!checkPublic(body, *symbol, callee->name))
      return failedCall(body, call);
    return callSymbol(body, *symbol, call, callee->name, callee->hasGenericArgs, callee->genericArgs, expected);
  }
  if (const Symbol* base = findSymbol(body, callee->base)) {
    if (base->kind == SymbolKind::Missing)
      return failedCall(body, call);
    if (base->kind == SymbolKind::Module) {
      unknownInModule(body, *base, callee->name);
      return failedCall(body, call);
    }
    if (base->kind == SymbolKind::Function) {
      if (callee->name.text == "launch")
        error(body, "E0410", call->range, "this chooses a launch but does not start it")
            .help("call the result: `k.launch(grid = …)(x)`");
      else
        error(body, "E0321", callee->name.range, base::concat("a function has no `", callee->name.text, "`"));
      return failedCall(body, call);
    }
  }
  if (auto* name = callee->base->tryAs<syn::NameExpr>();
      name && !findLocal(body, name->name.text) && !body.items->find(name->name.text)) {
    // `Tensor.zeros()`, `random.normal(…)`, `warp.sum(v)`.
    const std::string full = std::string(name->name.text) + "." + std::string(callee->name.text);
    if (const BuiltinRow* row = findBuiltin(full)) {
      syn::List<syn::GenericArg> args = callee->hasGenericArgs ? callee->genericArgs : name->genericArgs;
      return callBuiltin(body, *row, call, callee->name, nullptr, args, wanted);
    }
    if (isBuiltinNamespace(name->name.text)) {
      auto builder = error(body, "E0321", callee->name.range,
                           base::concat("`", name->name.text, "` has no `", callee->name.text, "`"));
      diag::suggest(builder, nullptr, callee->name.text, builtinsIn(name->name.text));
      return failedCall(body, call);
    }
  }
  if (const Symbol* base = findSymbol(body, callee->base); base && base->kind == SymbolKind::Trait)
    return callOfTrait(body, call, callee, *base, expected);
  if (Type type = typeNamed(body, callee->base))
    return isError(type) ? failedCall(body, call) : callAssociated(body, call, callee, type, expected);
  if (const Symbol* base = findSymbol(body, callee->base); base && base->kind == SymbolKind::Struct)
    return callOfGenericStruct(body, call, callee, *base, expected);
  if (auto* name = callee->base->tryAs<syn::NameExpr>();
      name && diag::isModuleElsewhere(name->name.text) && !isKnownName(body, name->name.text)) {
    unknownName(body, name->name, nullptr, callee->name.text);
    return errorExpr(body, call->range);  // the arguments are of that module too
  }
  Expr* receiver = check(body, callee->base);
  return isError(receiver) ? failedCall(body, call) : callMethod(body, call, callee, receiver, expected);
}

namespace {
const syn::FunctionItem* memberFunction(syn::List<syn::Item*> members, std::string_view name) {
  for (const syn::Item* member : members)
    if (auto* function = member->tryAs<syn::FunctionItem>(); function && function->name.text == name)
      return function;
  return nullptr;
}
}  // namespace

static Expr* callMethod(BodyState& body, const syn::CallExpr* call, const syn::MemberExpr* callee, Expr* receiver,
                        Type expected) {
  Type type = stripRef(receiver->type);
  if (type->kind == TypeKind::Struct)
    for (size_t i = 0; i < type->decl->fields.size(); ++i)
      if (type->decl->fields[i] == callee->name.text && type->elems[i]->kind == TypeKind::Closure)
        return callClosure(body, call, checkMemberOfValue(body, deref(body, receiver), callee->name, callee->range));
  type = canonicalSelf(body, type);
  // The type itself; then references to it, as they are and as the call would make them.
  std::vector<Type> selves{type};
  if (receiver->type->kind == TypeKind::Ref)
    selves.push_back(canonicalSelf(body, receiver->type));
  else
    selves.insert(selves.end(), {body.types.ref(type, false), body.types.ref(type, true)});
  for (Type self : selves) {
    std::vector<Member> found = findMembers(body, self, callee->name.text, syn::ItemKind::Function);
    if (found.empty())
      continue;
    auto member = selectMember(body, std::move(found), self, call, true, callee->name, expected);
    return member ? callMemberFound(body, std::move(*member), self, call, callee, receiver, expected)
                  : failedCall(body, call);
  }
  const BuiltinRow* row = findBuiltinMethod(callee->name.text, type);
  if (row)
    return callBuiltin(body, *row, call, callee->name, receiver, callee->genericArgs, expected);
  if (type->param && !type->isTensor()) {
    unknownMember(body, type, callee->name, "method");
    return failedCall(body, call);
  }
  auto builder =
      error(body, "E0321", callee->name.range,
            base::concat("`", text(body, stripRef(receiver->type)), "` has no method `", callee->name.text, "`"));
  builder.label(receiver->range, "`" + text(body, receiver->type) + "`");
  std::vector<std::string> names = builtinMethodsOf(type);
  const bool isNumeric = type->isTensor() || type->kind == TypeKind::Scalar;
  const char* ours = names.empty() ? nullptr
                     : isNumeric   ? diag::nameElsewhere(callee->name.text)
                                   : diag::methodElsewhere(callee->name.text);
  for (std::string& name : memberNames(body, type, syn::ItemKind::Function))
    names.push_back(std::move(name));
  diag::suggest(builder, ours, callee->name.text, names);
  builder.emit();
  return failedCall(body, call);
}

static Expr* callAssociated(BodyState& body, const syn::CallExpr* call, const syn::MemberExpr* callee, Type type,
                            Type expected) {
  type = canonicalSelf(body, type);
  std::vector<Member> found = findMembers(body, type, callee->name.text, syn::ItemKind::Function);
  const bool isFloatType = type->kind == TypeKind::Scalar && isFloat(type->scalar);
  if (found.empty() && isFloatType && callee->name.text == "from_bits")
    return callBuiltin(body, *findBuiltin("from_bits"), call, callee->name, nullptr, {}, type);
  if (found.empty()) {
    unknownMember(body, type, callee->name, "function");
    return failedCall(body, call);
  }
  auto member = selectMember(body, std::move(found), type, call, false, callee->name, expected);
  return member ? callMemberFound(body, std::move(*member), type, call, callee, nullptr, expected)
                : failedCall(body, call);
}

Expr* callMemberFound(BodyState& body, Member member, Type self, const syn::CallExpr* call,
                      const syn::MemberExpr* callee, Expr* receiver, Type expected) {
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
  return callFunction(body, target, call, expected);
}

/// `S.new(1.0)` without the arguments of `S`: taken from the expected type, else inferred like the function's own.
static Expr* callOfGenericStruct(BodyState& body, const syn::CallExpr* call, const syn::MemberExpr* callee,
                                 const Symbol& symbol, Type expected) {
  if (expected && expected->kind == TypeKind::Struct)
    if (const StructInstance* instance = body.session.findStruct(expected->decl);
        instance && instance->item == symbol.item)
      return callAssociated(body, call, callee, expected, expected);
  for (const ImplBlock& impl : body.session.modules.impls()) {
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
    if (!placeArgs(body, call, params, 0, params.size(), placed, callee->name.text))
      return failedCall(body, call);
    GenericEnv env = genericEnv(impl.item->generics);
    for (size_t i = 0; i < placed.size(); ++i)
      if (function->params[i].type) {
        Expr* arg = check(body, placed[i]);
        if (isError(arg))
          return errorExpr(body, call->range);
        infer(body, function->params[i].type, arg->type, env, impl.scope);
      }
    for (const GenericBinding& binding : env)
      if (!binding.value.isBound()) {
        error(body, "E0306", callee->range,
              base::concat("`", binding.name, "` of `", symbol.item->name.text, "` cannot be inferred"))
            .help(base::concat("write `", symbol.item->name.text, "::<…>.", callee->name.text, "(…)`"));
        return errorExpr(body, call->range);
      }
    BodyState there(body.session, nullptr, body.session.scratchFunction(), impl.scope);
    there.generics = env;
    Type type = resolveType(there, impl.item->selfType, DimPolicy::Fresh);
    return isError(type) ? errorExpr(body, call->range) : callAssociated(body, call, callee, type, expected);
  }
  error(body, "E0321", callee->name.range,
        base::concat("`", symbol.item->name.text, "` has no function `", callee->name.text, "`"));
  return failedCall(body, call);
}

}  // namespace vortex::lang
