// Generic definitions by themselves: the body may use what the bounds promise and nothing else.
//
// The parameters stand for themselves. A bounded parameter must compute somehow, so its stand-in is a scalar of the class that its
// bounds allow (f32 for Float, i32 for Numeric, …) which equals no other type; every operation asks the bounds (bounds.h).
// Without such a bound it is a struct without fields. Instances are still checked with their types: what depends on the width of a
// number or on an extent is found there.
#include "lang/sema/check/traits/definitions.h"
#include "lang/sema/check/declarations/body.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/implements.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::lang {

static void addSpaceBounds(BodyState& body, const GenericValue& value, syn::List<syn::Type*> bounds, ItemScope* scope);

namespace {

bool isLone(const syn::Type* type, std::string_view name) {
  auto* named = type ? type->tryAs<syn::NamedType>() : nullptr;
  return named && named->path.size() == 1 && !named->hasGenericArgs && named->path[0].text == name;
}

/// A parameter without bounds is a shape or a space if a tensor type uses it as one.
GenericValue::Kind kindByUse(const syn::Type* type, std::string_view name) {
  using Kind = GenericValue::Kind;
  if (!type)
    return Kind::None;
  if (auto* ref = type->tryAs<syn::RefType>())
    return kindByUse(ref->inner, name);
  if (auto* array = type->tryAs<syn::ArrayType>())
    return kindByUse(array->elem, name);
  if (auto* spaced = type->tryAs<syn::SpacedType>())
    return spaced->space.name.text == name ? Kind::Space : kindByUse(spaced->inner, name);
  auto* named = type->tryAs<syn::NamedType>();
  if (!named)
    return Kind::None;
  const bool isTensor = named->path.back().text == "Tensor";
  for (size_t i = 0; i < named->genericArgs.size(); ++i) {
    if (isTensor && i > 0 && isLone(named->genericArgs[i].type, name))
      return i == 1 ? Kind::Shape : Kind::Space;
    if (Kind found = kindByUse(named->genericArgs[i].type, name); found != Kind::None)
      return found;
  }
  return Kind::None;
}

GenericValue::Kind kindByUse(const syn::FunctionItem* function, std::string_view name) {
  GenericValue::Kind found = GenericValue::Kind::None;
  for (size_t i = 0; function && i < function->params.size() && found == GenericValue::Kind::None; ++i)
    found = kindByUse(function->params[i].type, name);
  return found != GenericValue::Kind::None || !function ? found : kindByUse(function->resultType, name);
}

/// Lists and texts exist in host code only.
bool isHostOnly(Type type) {
  return type->kind == TypeKind::Vec || type->kind == TypeKind::String || (type->elem && isHostOnly(type->elem)) ||
         std::any_of(type->elems.begin(), type->elems.end(), isHostOnly);
}

bool takesHostOnly(const Function& function) {
  return isHostOnly(function.resultType) || std::any_of(function.params.begin(), function.params.end(),
                                                        [](const Variable* param) { return isHostOnly(param->type); });
}

}  // namespace

/// What decides the kind of the stand-in. The traits of programs follow when all parameters stand for something: their arguments may
/// name them.
void addBuiltinBounds(BodyState& body, BoundParam& param, syn::List<syn::Type*> bounds, ItemScope* scope) {
  for (const syn::Type* bound : bounds) {
    std::vector<const syn::TraitItem*> seen;
    if (auto trait = traitNamed(body, bound, scope, true))
      addBuiltins(body, *trait, param.builtins, seen);
    param.boundsText += (param.boundsText.empty() ? "" : " + ") + std::string(body.session.sources.text(bound->range));
  }
}

void addTraitBounds(BodyState& body, Type type, syn::List<syn::Type*> bounds, ItemScope* scope) {
  auto* param = type->isTensor() ? nullptr : const_cast<BoundParam*>(static_cast<const BoundParam*>(type->param));
  for (const syn::Type* bound : bounds) {
    body.boundedType = type;
    auto trait = param ? findTrait(body, bound, scope, true) : std::nullopt;
    body.boundedType = nullptr;
    if (!trait && param)  // reported; what it brings is there all the same
      trait = traitNamed(body, bound, scope, false);
    if (trait)
      withSupertraits(body, *trait, param->builtins, param->traits, type);
  }
}

/// `where T.Item: Area`; that it may be computed with, the stand-in of `T` knows already.
static void addPathBounds(BodyState& body, syn::List<syn::WherePredicate> where, GenericEnv& env, ItemScope* scope) {
  for (const syn::WherePredicate& predicate : where) {
    auto* named = predicate.subject->tryAs<syn::NamedType>();
    if (!named || named->path.size() < 2 || !findGeneric(env, named->path.front().text))
      continue;
    Type type = resolveType(body, predicate.subject, DimPolicy::Fresh);
    if (!isError(type) && type->param)
      addTraitBounds(body, type, predicate.bounds, scope);
  }
}

Type standIn(BodyState& body, const BoundParam& param) {
  if (param.builtins.isNumber()) {
    const Scalar scalar = param.builtins.has(BuiltinTrait::Float)      ? Scalar::F32
                          : param.builtins.has(BuiltinTrait::Unsigned) ? Scalar::U32
                                                                       : Scalar::I32;
    return body.types.paramScalar(scalar, &param);
  }
  body.session.program.structs.push_back(std::make_unique<StructDecl>());
  StructDecl* decl = body.session.program.structs.back().get();
  decl->name = param.name;
  decl->range = param.range;
  return body.types.paramStruct(decl, &param);
}

/// Each parameter of the list standing for itself; constants are distinct powers of two. `more`: further conditions on them, of a
/// function in the impl whose parameters these are.
GenericEnv standIns(BodyState& body, const syn::Generics& params, GenericEnv outer, ItemScope* scope,
                    const syn::FunctionItem* function, syn::List<syn::WherePredicate> more) {
  GenericEnv env = genericEnv(params, std::move(outer));
  __int128 constant = 256;
  std::set<std::string_view> bound;  // by the outer definition
  for (GenericBinding& binding : env) {
    GenericValue& value = binding.value;
    if (value.isBound()) {
      bound.insert(binding.name);
      constant *= value.kind == GenericValue::Kind::Const ? 2 : 1;
      continue;
    }
    if (binding.param->isConst) {
      value.kind = GenericValue::Kind::Const;
      value.type =
          binding.param->constType ? resolveType(body, binding.param->constType, DimPolicy::Known) : usize(body);
      value.value = value.type->isScalar(Scalar::Bool) ? 0 : value.type->isScalar(Scalar::Usize) ? constant : 1;
      constant *= 2;
      continue;
    }
    BoundParam& param = *body.session.newBoundParam();
    param.name = std::string(binding.name);
    param.range = binding.param->name.range;
    addBuiltinBounds(body, param, binding.param->bounds, scope);
    for (syn::List<syn::WherePredicate> where : {params.where, more})
      for (const syn::WherePredicate& predicate : where) {
        auto* named = predicate.subject->tryAs<syn::NamedType>();
        if (isLone(predicate.subject, binding.name)) {
          addBuiltinBounds(body, param, predicate.bounds, scope);
        } else if (named && named->path.size() > 1 && named->path.front().text == binding.name) {
          std::vector<std::string_view> path;
          for (const syn::Name& name : named->path.subspan(1))
            path.push_back(name.text);
          param.paths.push_back({std::move(path), predicate.bounds, scope});
        }
      }
    const GenericValue::Kind use =
        param.builtins.isNumber() ? GenericValue::Kind::None : kindByUse(function, binding.name);
    if (param.builtins.isSpace() || use == GenericValue::Kind::Space) {
      value.kind = GenericValue::Kind::Space;
      value.param = &param;
    } else if (param.builtins.has(BuiltinTrait::Shape) || use == GenericValue::Kind::Shape) {
      value.kind = GenericValue::Kind::Shape;
      value.shape = {DimExpr::constant(0)};
    } else {
      value.kind = GenericValue::Kind::Type;
      value.type = standIn(body, param);
    }
  }
  // The bounds themselves, which may name any of the parameters.
  BodyState there(body.session, nullptr, body.session.scratchFunction(), scope);
  there.generics = env;
  there.selfType = body.selfType;
  for (const GenericBinding& binding : env) {
    if (!binding.param || bound.count(binding.name) != 0)
      continue;
    const GenericValue& value = binding.value;
    addSpaceBounds(there, value, binding.param->bounds, scope);
    for (syn::List<syn::WherePredicate> where : {params.where, more})
      for (const syn::WherePredicate& predicate : where)
        if (isLone(predicate.subject, binding.name))
          addSpaceBounds(there, value, predicate.bounds, scope);
  }
  addPathBounds(there, params.where, env, scope);
  addPathBounds(there, more, env, scope);
  return env;
}

/// Of a type or of a memory space.
static void addSpaceBounds(BodyState& body, const GenericValue& value, syn::List<syn::Type*> bounds, ItemScope* scope) {
  if (value.kind == GenericValue::Kind::Type)
    return addTraitBounds(body, value.type, bounds, scope);
  auto* param = const_cast<BoundParam*>(value.param);
  for (const syn::Type* bound : bounds)
    if (auto trait = param ? findTrait(body, bound, scope, true) : std::nullopt)
      withSupertraits(body, *trait, param->builtins, param->traits, nullptr);
}

/// `Self` in a trait: whatever implements it.
Type standInSelf(BodyState& body, const TraitRef& trait) {
  BoundParam& param = *body.session.newBoundParam();
  param.name = "Self";
  param.range = trait.item->name.range;
  param.boundsText = trait.text();
  std::vector<const syn::TraitItem*> seen;
  addBuiltins(body, trait, param.builtins, seen);
  for (const syn::WherePredicate& predicate : trait.item->generics.where) {
    auto* named = predicate.subject->tryAs<syn::NamedType>();
    if (!named || named->path.size() < 2 || named->path.front().text != "Self")
      continue;
    std::vector<std::string_view> path;
    for (const syn::Name& name : named->path.subspan(1))
      path.push_back(name.text);
    param.paths.push_back({std::move(path), predicate.bounds, trait.scope});
  }
  Type self = standIn(body, param);
  withSupertraits(body, trait, param.builtins, param.traits, self);
  BodyState there(body.session, nullptr, body.session.scratchFunction(), trait.scope);
  there.generics = envOf(trait);
  there.selfType = self;
  for (const PathBounds& each : param.paths)
    for (const syn::WherePredicate& predicate : trait.item->generics.where)
      if (predicate.bounds.data() == each.bounds.data())
        if (Type type = resolveType(there, predicate.subject, DimPolicy::Fresh); !isError(type) && type->param)
          addTraitBounds(there, type, predicate.bounds, trait.scope);
  return self;
}

/// Attempts the body as one kind of code, then as the other. Nothing made for it stays; what is wrong is reported once (of the attempt
/// that got further), and instances of the item are not looked into any more.
void Instances::checkDefinition(InstanceRequest wanted, const std::vector<bool>& inKernel) {
  if (session_.sink().isCut())
    return;
  std::vector<diag::Diagnostic> found;
  bool isTyped = false;
  for (const bool kernel : inKernel) {
    Session::Capture captured(session_);
    const size_t before = instances_.size();
    wanted.inKernel = kernel;
    wanted.isDefinition = true;
    Instance* made = instantiate(wanted);
    if (made && kernel && !wanted.item->isKernel && takesHostOnly(*made->function)) {
      captured.end();
      dropFrom(before);
      continue;  // never kernel code
    }
    if (made)
      checkBody(*made->body);
    const bool typesFit = made && !captured.found.hasErrors();
    if (typesFit && session_.options.checkDefinition)
      session_.options.checkDefinition(*made->function, captured.found);
    captured.end();
    dropFrom(before);
    if (!captured.found.hasErrors())
      return;
    if (found.empty() || (typesFit && !isTyped))
      found.assign(captured.found.all().begin(), captured.found.all().end());
    isTyped = isTyped || typesFit;
  }
  broken_.insert(wanted.item);
  for (const diag::Diagnostic& diagnostic : found)
    session_.sink().report(diagnostic);
}

}  // namespace vortex::lang
