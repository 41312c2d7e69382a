// Calls: what is called, arguments by position and name, instances, launches.
#include "lang/sema/check/calls/calls.h"
#include "lang/sema/builtin/call.h"
#include "lang/sema/builtin/host.h"
#include "lang/sema/builtin/table.h"
#include "lang/sema/check/calls/hints.h"
#include "lang/sema/check/calls/methods.h"
#include "lang/sema/check/exprs/assign.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/index.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/lookup.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/generics.h"
#include "lang/sema/check/traits/implements.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/canonical.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/check/types/shapes.h"

#include "base/counted.h"
#include "diag/names_elsewhere.h"

namespace vortex::lang {

static bool completeGenerics(BodyState& body, const FunctionCall& target, GenericEnv& env, const syn::CallExpr* call);
static bool checkOpenTrait(BodyState& body, const FunctionCall& target, const GenericEnv& env, SourceRange range);
static Expr* convertArgument(BodyState& body, Expr* arg, const Variable& param, Type type,
                             const std::vector<std::optional<DimExpr>>& dims, const Function& callee);
static Expr* adjustReceiver(BodyState& body, Expr* receiver, Type type, SourceRange range);
static Expr* callLaunched(BodyState& body, const syn::CallExpr* call, const syn::CallExpr* launch, const Symbol& symbol,
                          Type expected);

Expr* checkCall(BodyState& body, const syn::CallExpr* call, Type wanted) {
  const Type expected = wanted && isError(wanted) ? nullptr : wanted;
  if (auto* name = call->callee->tryAs<syn::NameExpr>()) {
    if (const BodyState::Local* local = findLocal(body, name->name.text)) {
      if (!local->variable) {
        error(body, "E0328", name->range, base::concat("`", name->name.text, "` is a number and cannot be called"));
        return failedCall(body, call);
      }
      return callClosure(body, call, check(body, name));
    }
    if (const Symbol* symbol = body.items->find(name->name.text))
      return callSymbol(body, *symbol, call, name->name, name->hasGenericArgs, name->genericArgs, expected);
    if (const BuiltinRow* row = findBuiltin(name->name.text))
      return callBuiltin(body, *row, call, name->name, nullptr, name->genericArgs, wanted);
    if (!findGeneric(body.generics, name->name.text))
      unknownName(body, name->name);
    else
      error(body, "E0328", name->range, base::concat("`", name->name.text, "` cannot be called"));
    return failedCall(body, call);
  }
  if (auto* member = call->callee->tryAs<syn::MemberExpr>())
    return callMember(body, call, member, wanted);
  if (auto* inner = call->callee->tryAs<syn::CallExpr>())
    if (auto* member = inner->callee->tryAs<syn::MemberExpr>(); member && member->name.text == "launch")
      if (const Symbol* symbol = findSymbol(body, member->base); symbol && symbol->kind == SymbolKind::Function)
        return callLaunched(body, call, inner, *symbol, expected);
  return callClosure(body, call, check(body, call->callee));
}

/// After an error about the callee the arguments are still checked, but for the type in `x.to(f32)`.
Expr* failedCall(BodyState& body, const syn::CallExpr* call) {
  for (const syn::Arg& arg : call->args)
    if (arg.value && !arg.value->is<syn::ClosureExpr>() && !arg.value->is<syn::DotNameExpr>() &&
        !scalarNamed(body.session.sources.text(arg.value->range)))
      check(body, arg.value);
  return errorExpr(body, call->range);
}

Expr* callClosure(BodyState& body, const syn::CallExpr* call, Expr* callee) {
  callee = deref(body, callee);
  if (isError(callee))
    return failedCall(body, call);
  if (callee->type->kind != TypeKind::Closure) {
    error(body, "E0328", call->callee->range, "`" + text(body, callee->type) + "` cannot be called");
    return failedCall(body, call);
  }
  const std::vector<Type>& params = callee->type->elems;
  if (params.size() != call->args.size()) {
    error(body, "E0308", call->range,
          base::concat("this closure takes ", base::counted(params.size(), "argument"), ", not ", call->args.size()));
    return failedCall(body, call);
  }
  std::vector<Expr*> args{callee};
  for (size_t i = 0; i < params.size(); ++i) {
    Expr* arg = convert(body, check(body, call->args[i].value, params[i]), params[i], Site::Argument);
    if (isError(arg))
      return errorExpr(body, call->range);
    args.push_back(arg);
  }
  return make(body, ExprKind::CallClosure, callee->type->elem, call->range, std::move(args));
}

Expr* callSymbol(BodyState& body, const Symbol& symbol, const syn::CallExpr* call, const syn::Name& name,
                 bool hasGenerics, syn::List<syn::GenericArg> args, Type expected, const LaunchSpec* launch) {
  if (symbol.kind == SymbolKind::Missing)
    return failedCall(body, call);
  if (symbol.kind != SymbolKind::Function) {
    auto builder = error(body, "E0328", name.range, base::concat("`", name.text, "` is not a function"));
    if (symbol.kind == SymbolKind::Struct)
      builder.help(base::concat("to make a value write `", name.text, " { … }`"));
    builder.emit();
    return failedCall(body, call);
  }
  FunctionCall target;
  target.item = symbol.item->as<syn::FunctionItem>();
  target.scope = symbol.scope;
  target.name = name;
  target.explicitGenerics = hasGenerics ? args : syn::List<syn::GenericArg>{};
  target.launch = launch;
  return callFunction(body, target, call, expected);
}

bool placeArgs(BodyState& body, const syn::CallExpr* call, const std::vector<std::string_view>& params, size_t first,
               size_t required, std::vector<const syn::Expr*>& placed, std::string_view callee, bool variadic,
               SourceRange declared) {
  const auto showCallee = [&](diag::DiagnosticBuilder& builder) {
    if (declared.isValid())
      builder.label(declared, base::concat("`", callee, "` is declared here"));
  };
  placed.assign(params.size(), nullptr);
  size_t next = first;
  for (const syn::Arg& arg : call->args) {
    if (!arg.value)
      continue;
    size_t at = next;
    if (arg.name.isPresent()) {
      for (at = first; at < params.size() && params[at] != arg.name.text; ++at) {
      }
      if (at == params.size()) {
        auto builder =
            error(body, "E0309", arg.name.range, base::concat("`", callee, "` has no parameter `", arg.name.text, "`"));
        showCallee(builder);
        std::vector<std::string> names(params.begin() + static_cast<ptrdiff_t>(first), params.end());
        if (!diag::suggest(builder, nullptr, arg.name.text, names) && !names.empty())
          builder.help("its parameters are " + base::join(names, ", "));
        return false;
      }
    } else {
      ++next;
    }
    if (at >= placed.size()) {
      if (variadic) {
        placed.push_back(arg.value);
        continue;
      }
      auto builder =
          error(body, "E0308", arg.range,
                base::concat("`", callee, "` takes ", base::counted(params.size() - first, "argument"), ", but ",
                             call->args.size(), call->args.size() == 1 ? " is given" : " are given"));
      showCallee(builder);
      if (const char* ours = declared.isValid() ? nullptr : diag::listElsewhere(callee))
        builder.help(ours);
      return false;
    }
    if (placed[at]) {
      error(body, "E0309", arg.range, base::concat("`", params[at], "` is given twice"))
          .label(placed[at]->range, "first given here");
      return false;
    }
    placed[at] = arg.value;
  }
  for (size_t i = first; i < required; ++i)
    if (!placed[i]) {
      const SourceRange close{call->range.file, call->range.end - 1, call->range.end};
      auto builder = error(body, "E0308", close, base::concat("`", callee, "` needs the argument `", params[i], "`"));
      showCallee(builder);
      return false;
    }
  return true;
}

bool mayCall(BodyState& body, const syn::FunctionItem* item, SourceRange range, bool hasLaunch) {
  if (item->isKernel && inKernel(body)) {
    error(body, "E0408", range, base::concat("a kernel cannot call the kernel `", item->name.text, "`"))
        .label(item->name.range, "declared as a kernel here")
        .help("move the shared part into a `fn` and call it from both");
    return false;
  }
  if (!item->isKernel && hasLaunch) {
    error(body, "E0410", range, base::concat("`", item->name.text, "` is not a kernel and cannot be launched"));
    return false;
  }
  if (!body.instance) {
    error(body, "E0310", range, "a constant cannot call a function");
    return false;
  }
  return true;
}

/// Checks the arguments, learning generic values from them; empty after an error.
static bool checkArgs(BodyState& body, FunctionCall& target, const std::vector<const syn::Expr*>& placed,
                      GenericEnv& env, Type expected, std::vector<Expr*>& args) {
  const syn::FunctionItem* item = target.item;
  args.assign(placed.size(), nullptr);
  bool ok = true;
  const auto checkOne = [&](size_t i, Type hint) {
    args[i] = check(body, placed[i], hint);
    ok = ok && !isError(args[i]);
    if (!isError(args[i]) && item->params[i].type)
      infer(body, item->params[i].type, args[i]->type, env, target.scope);
  };
  if (target.receiver)
    args[0] = target.receiver;
  // Values with types of their own first; plain numbers, closures and `.names` take theirs from the parameters.
  const auto waits = [&](const syn::Expr* expr) {
    if (auto* ref = expr->tryAs<syn::RefExpr>())
      expr = ref->operand;
    return isUntyped(body, expr) || expr->is<syn::ClosureExpr>() || expr->is<syn::DotNameExpr>() ||
           expr->is<syn::ArrayExpr>() || expr->is<syn::CallExpr>();
  };
  for (size_t i = 0; i < placed.size(); ++i)
    if (placed[i] && !waits(placed[i]))
      checkOne(i, placed[i]->is<syn::TupleExpr>() ? hintFor(body, item->params[i].type, env, target) : nullptr);
  if (expected && item->resultType && expected->kind != TypeKind::Unit)
    for (const GenericBinding& binding : env)
      if (!binding.value.isBound()) {
        infer(body, item->resultType, expected, env, target.scope);
        break;
      }
  for (size_t i = 0; i < placed.size(); ++i)
    if (placed[i] && !args[i]) {
      inferLengths(body, item->params[i].type, placed[i], env, target.scope);
      checkOne(i, hintFor(body, item->params[i].type, env, target));
    }
  return ok;
}

Expr* callFunction(BodyState& body, FunctionCall& target, const syn::CallExpr* call, Type expected) {
  const syn::FunctionItem* item = target.item;
  const syn::Name& name = target.name;
  if (!mayCall(body, item, name.range, target.launch != nullptr))
    return failedCall(body, call);
  std::vector<std::string_view> params;
  for (const syn::Param& param : item->params)
    params.push_back(param.self != syn::SelfKind::None ? "self" : param.name.text);
  const bool takesSelf = !item->params.empty() && item->params[0].self != syn::SelfKind::None;
  if (target.receiver && !takesSelf) {
    error(body, "E0328", name.range,
          base::concat("`", name.text, "` has no `self`; call it on the type: `", text(body, target.selfType), ".",
                       name.text, "(…)`"));
    return failedCall(body, call);
  }
  std::vector<const syn::Expr*> placed;
  if (!placeArgs(body, call, params, target.receiver ? 1 : 0, params.size(), placed, name.text, false,
                 item->name.range))
    return failedCall(body, call);
  const size_t outer = target.implEnv.size();
  GenericEnv env = genericEnv(item->generics, target.implEnv);
  if (!bindExplicitGenerics(body, env, outer, target.explicitGenerics, name.range))
    return failedCall(body, call);
  std::vector<Expr*> args;
  if (!checkArgs(body, target, placed, env, expected, args))
    return errorExpr(body, call->range);
  if (!completeGenerics(body, target, env, call))
    return errorExpr(body, call->range);
  InstanceRequest request = body.instance->request(item, target.scope, call->range);
  request.selfType = target.selfType;
  request.impl = target.impl;
  for (GenericBinding& binding : env)
    if (binding.value.kind == GenericValue::Kind::Type)
      binding.value.type = canonicalSelf(body, binding.value.type);
  request.generics = std::move(env);
  request.inKernel = item->isKernel || inKernel(body);
  if (!item->isKernel && inKernel(body))
    placeTensors(request, args);
  Instance* callee = body.session.instances.instantiate(std::move(request));
  return callee ? finishCall(body, *callee->function, target, args, call->range) : errorExpr(body, call->range);
}

static bool completeGenerics(BodyState& body, const FunctionCall& target, GenericEnv& env, const syn::CallExpr* call) {
  for (GenericBinding& binding : env) {
    if (binding.value.isBound())
      continue;
    if (binding.param->defaultValue.type || binding.param->defaultValue.expr)
      if (auto value = genericArg(body, binding.param->defaultValue, *binding.param)) {
        binding.value = *value;
        continue;
      }
    error(body, "E0306", target.name.range,
          base::concat("`", binding.name, "` of `", target.name.text, "` cannot be inferred"))
        .label(binding.param->name.range, "declared here")
        .help(base::concat("give it explicitly: `", target.name.text, "::<…>(…)`"));
    return false;
  }
  return checkOpenTrait(body, target, env, call->range) &&
         checkBounds(body, target.item->generics, env, call->range, target.scope, target.selfType);
}

/// `Q.from(x)` of `impl<T: Float> From<T> for Q`: what the call made of T must be what the impl is for.
static bool checkOpenTrait(BodyState& body, const FunctionCall& target, const GenericEnv& env, SourceRange range) {
  if (!target.trait)
    return true;
  if (target.impl)
    return checkBounds(body, target.impl->generics, env, range, target.scope, target.selfType);
  TraitRef trait = *target.trait;
  for (size_t i = 0; i < trait.args.size(); ++i)
    if (const GenericValue* value = findGeneric(env, trait.item->generics.params[i].name.text))
      trait.args[i] = *value;
  GenericValue self;
  self.kind = GenericValue::Kind::Type;
  self.type = target.selfType;
  if (hasTrait(body, self, trait))
    return true;
  error(body, "E0307", range, base::concat("`", text(body, self.type), "` is not `", trait.text(), "`"))
      .label(trait.item->name.range, "declared here");
  return false;
}

/// A `fn` called in a kernel takes tensors from where they are, unless its parameters say otherwise.
void placeTensors(InstanceRequest& request, const std::vector<Expr*>& args) {
  for (const Expr* arg : args) {
    Placement placement;
    Type type = stripRef(arg->type);
    if (type->isTensor()) {
      placement.isSet = true;
      placement.space = type->space;
      placement.layout = type->layout;
      placement.isValue = type->isValue;
    }
    request.placements.push_back(placement);
  }
}

/// R of `[G * R]`, where both are known numbers.
static void learnQuotients(const Function& callee, const std::vector<Expr*>& args,
                           std::vector<std::optional<DimExpr>>& dims) {
  for (size_t id = 0; id < callee.dims.size(); ++id) {
    const DimBinding& binding = callee.dims[id];
    if (!binding.factor || dims[id] || !binding.fieldPath.empty())
      continue;
    const Type tensor = stripRef(args[*binding.param]->type);
    const auto extent =
        tensor->isTensor() && binding.dim < tensor->rank() ? tensor->shape[binding.dim].asConstant() : std::nullopt;
    const auto factor = binding.factor->substitute(dims).asConstant();
    if (extent && factor && *factor > 0)
      dims[id] = DimExpr::constant(*extent / *factor);
  }
}

Expr* finishCall(BodyState& body, const Function& callee, const FunctionCall& target, std::vector<Expr*>& args,
                 SourceRange range) {
  std::vector<std::optional<DimExpr>> dims(callee.dims.size());
  for (size_t i = 0; i < args.size(); ++i) {
    learnDims(callee.params[i]->type, args[i]->type, dims);
    for (size_t id = 0; id < callee.dims.size(); ++id)
      if (callee.dims[id].isScalarValue && callee.dims[id].param == i)
        dims[id] = dimOf(body, args[i]);
  }
  learnQuotients(callee, args, dims);
  for (auto& dim : dims)
    if (!dim)
      dim = DimExpr::opaque(body.session.newOpaque());
  for (size_t i = 0; i < args.size(); ++i) {
    const Variable& param = *callee.params[i];
    Type type = substituteDims(param.type, body.types, dims);
    if (i == 0 && target.receiver)
      args[0] = adjustReceiver(body, args[0], type, target.name.range);
    else
      args[i] = convertArgument(body, args[i], param, type, dims, callee);
    if (isError(args[i]))
      return errorExpr(body, range);
  }
  Type result = substituteDims(callee.resultType, body.types, dims);
  Expr* out = make(body, callee.isKernel ? ExprKind::Launch : ExprKind::Call, result, range, std::move(args));
  out->function = const_cast<Function*>(&callee);
  if (target.launch)
    out->launch = *target.launch;
  return out;
}

static Expr* convertArgument(BodyState& body, Expr* arg, const Variable& param, Type type,
                             const std::vector<std::optional<DimExpr>>& dims, const Function& callee) {
  Type have = stripRef(arg->type), want = stripRef(type);
  // Memory of the block or thread is lent by its name too.
  const bool isOnChip = inKernel(body) && arg->type->isTensor() &&
                        (arg->type->space == Space::Shared || arg->type->space == Space::Local);
  if (isOnChip && type->kind == TypeKind::Ref && !type->isMutable)
    arg = make(body, ExprKind::Ref, body.types.ref(arg->type, false), arg->range, {arg});
  if (have->isTensor() && want->isTensor() && have->elem == want->elem && have->rank() == want->rank()) {
    if (!checkDims(body, param.type, have, dims, callee, arg->range, param.name))
      return errorExpr(body, arg->range);
    // Extents that only the launch can compare: the types differ only in how they are written.
    if (type->kind == TypeKind::Ref && arg->type->kind == TypeKind::Ref && (!type->isMutable || arg->type->isMutable) &&
        (have->isValue || want->isValue || have->space == want->space))
      return type->isMutable == arg->type->isMutable
                 ? arg
                 : make(body, ExprKind::Ref, body.types.ref(have, false), arg->range, {deref(body, arg)});
  } else if (have->isTensor() && want->isTensor() && have->elem == want->elem) {
    error(body, "E0304", arg->range,
          base::concat("`", param.name, "` has rank ", want->rank(), ", but this tensor has rank ", have->rank()))
        .primary("`" + text(body, have) + "`")
        .label(param.range, "declared here as `" + lang::text(param.type, callee.dimNames()) + "`");
    return errorExpr(body, arg->range);
  } else if (have->kind == TypeKind::Struct && have->decl == want->decl) {
    if (!checkDims(body, stripRef(param.type), have, dims, callee, arg->range, param.name))
      return errorExpr(body, arg->range);
  }
  return convert(body, arg, type, Site::Argument, param.range,
                 base::concat("`", param.name, "` is `", lang::text(param.type, callee.dimNames()), "`"));
}

/// `self`, `&self` and `&mut self` are taken from the value by themselves.
static Expr* adjustReceiver(BodyState& body, Expr* receiver, Type type, SourceRange range) {
  if (type->kind != TypeKind::Ref)
    return deref(body, receiver);
  if (receiver->type->kind == TypeKind::Ref && (receiver->type->isMutable || !type->isMutable))
    return receiver;
  Expr* place = deref(body, receiver);
  if (type->isMutable && !checkWritable(body, place, range, "changed"))
    return errorExpr(body, range);
  return make(body, ExprKind::Ref, body.types.ref(place->type, type->isMutable), receiver->range, {place});
}

static Expr* callLaunched(BodyState& body, const syn::CallExpr* call, const syn::CallExpr* launch, const Symbol& symbol,
                          Type expected) {
  LaunchSpec spec;
  for (const syn::Arg& arg : launch->args) {
    const bool isGrid = arg.name.text == "grid", isBlock = arg.name.text == "block";
    if (!isGrid && !isBlock) {
      error(body, "E0410", arg.range, "`.launch` takes `grid = …` and `block = …`");
      return failedCall(body, call);
    }
    std::vector<Expr*>& axes = isGrid ? spec.grid : spec.block;
    axes = extents(body, arg.value, true, isGrid ? "a grid" : "a block");
    if (axes.empty())
      return failedCall(body, call);
    if (axes.size() > 3) {
      error(body, "E0410", arg.value->range,
            base::concat("a ", isGrid ? "grid" : "block", " has at most 3 axes, this has ", axes.size()));
      return failedCall(body, call);
    }
  }
  auto* member = launch->callee->as<syn::MemberExpr>();
  syn::Name name;
  bool hasGenerics = false;
  syn::List<syn::GenericArg> args;
  if (auto* base = member->base->tryAs<syn::NameExpr>()) {
    name = base->name;
    hasGenerics = base->hasGenericArgs;
    args = base->genericArgs;
  } else if (auto* base = member->base->tryAs<syn::MemberExpr>()) {
    name = base->name;
    hasGenerics = base->hasGenericArgs;
    args = base->genericArgs;
  }
  return callSymbol(body, symbol, call, name, hasGenerics, args, expected, &spec);
}

}  // namespace vortex::lang
