// Parameters, result and dimension bindings of one function instance.
#include "lang/sema/check/declarations/signature.h"
#include "lang/sema/check/declarations/attributes.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/generics.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/canonical.h"
#include "lang/sema/check/types/generic_args.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/check/types/shapes.h"
#include "lang/sema/check/types/spaces.h"
#include "lang/sema/element.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::lang {

static Type withOwnDims(BodyState& body, Type type);

namespace {

Type placed(TypeContext& types, Type type, const Placement& placement) {
  if (type->kind == TypeKind::Ref)
    return types.ref(placed(types, type->elem, placement), type->isMutable);
  if (!type->isTensor())
    return type;
  return placement.isValue ? types.tensorValue(type->elem, type->shape)
                           : types.tensor(type->elem, type->shape, placement.space, placement.layout);
}

constexpr uint64_t kMaxKernelArguments = 512;

bool isKernelParam(Type type) {
  switch (type->kind) {
  case TypeKind::Scalar:
  case TypeKind::Enum:
  case TypeKind::Tensor: return true;
  case TypeKind::Ref:
  case TypeKind::Array: return isKernelParam(type->elem);
  case TypeKind::Tuple:
  case TypeKind::Struct:
    for (Type elem : type->elems)
      if (!isKernelParam(elem))
        return false;
    return true;
  default: return false;
  }
}

/// What a kernel takes for a parameter: its tensors (their planes) and scalars, one by one. Saturates.
uint64_t argumentCount(Type type) {
  type = stripRef(type);
  if (type->isTensor())
    return type->elem->param ? 1 : scalarCount(type->elem);
  uint64_t count = 0;
  if (type->kind == TypeKind::Array)
    return __builtin_mul_overflow(argumentCount(type->elem), type->count, &count) ? UINT64_MAX : count;
  if (type->kind != TypeKind::Tuple && type->kind != TypeKind::Struct)
    return 1;
  for (Type elem : type->elems)
    if (__builtin_add_overflow(count, argumentCount(elem), &count))
      return UINT64_MAX;
  return count;
}

bool isKernelResult(Type type) {
  if (type->kind == TypeKind::Tuple) {
    for (Type elem : type->elems)
      if (elem->kind == TypeKind::Tuple || !isKernelResult(elem))
        return false;
    return true;
  }
  return type->kind == TypeKind::Unit || type->kind == TypeKind::Scalar || type->isTensor();
}

bool holdsTensors(Type type) {
  if (type->isTensor())
    return true;
  if (type->kind == TypeKind::Ref || type->kind == TypeKind::Array)
    return holdsTensors(type->elem);
  const bool isAggregate = type->kind == TypeKind::Struct || type->kind == TypeKind::Tuple;
  return isAggregate && std::any_of(type->elems.begin(), type->elems.end(), holdsTensors);
}

// Binds each dimension variable to the first extent that is exactly it; every other extent becomes a launch check.
void bindDims(Function& function, uint32_t param, std::vector<uint32_t>& path, Type type,
              const std::vector<SourceRange>& ranges) {
  if (type->kind == TypeKind::Ref)
    return bindDims(function, param, path, type->elem, ranges);
  const bool isArray = type->kind == TypeKind::Array;
  if (isArray && !holdsTensors(type->elem))
    return;  // however long
  if (isArray || type->kind == TypeKind::Struct || type->kind == TypeKind::Tuple) {
    for (uint32_t i = 0; i < (isArray ? type->count : type->elems.size()); ++i) {
      path.push_back(i);
      bindDims(function, param, path, partOf(type, i), ranges);
      path.pop_back();
    }
    return;
  }
  if (!type->isTensor())
    return;
  for (uint32_t dim = 0; dim < type->shape.size(); ++dim) {
    if (auto variable = type->shape[dim].asVariable(); variable && !function.dims[*variable].param) {
      DimBinding& binding = function.dims[*variable];
      binding.param = param;
      binding.dim = dim;
      binding.fieldPath = path;
      continue;
    }
    LaunchCheck check;
    check.param = param;
    check.dim = dim;
    check.fieldPath = path;
    check.expected = type->shape[dim];
    check.range = ranges[param];
    function.checks.push_back(std::move(check));
  }
}

/// `[G * R]` binds R where G has its value without such a quotient. The launch check stays: it refuses what does not divide.
void bindQuotient(Function& function, const LaunchCheck& check) {
  if (check.expected.terms().size() != 1)
    return;
  const auto& [factors, coefficient] = *check.expected.terms().begin();
  std::optional<DimVarId> unknown;
  DimExpr known = DimExpr::constant(coefficient);
  for (const DimAtom& atom : factors) {
    if (atom.kind != DimAtom::Kind::Variable)
      return;
    const DimBinding& binding = function.dims[atom.id];
    const bool isKnown = binding.constant || (binding.param && !binding.factor);
    if (!isKnown && (unknown || binding.param))
      return;
    if (isKnown)
      known = DimExpr::mul(known, DimExpr::variable(atom.id));
    else
      unknown = atom.id;
  }
  if (!unknown || coefficient <= 0)
    return;
  DimBinding& binding = function.dims[*unknown];
  binding.param = check.param;
  binding.dim = check.dim;
  binding.fieldPath = check.fieldPath;
  binding.factor = std::move(known);
}

ReduceKind reduceNamed(std::string_view name) {
  if (name == "add")
    return ReduceKind::Add;
  if (name == "mul")
    return ReduceKind::Mul;
  if (name == "min")
    return ReduceKind::Min;
  if (name == "max")
    return ReduceKind::Max;
  if (name == "and")
    return ReduceKind::And;
  if (name == "or")
    return ReduceKind::Or;
  return ReduceKind::None;
}

}  // namespace

/// The type of `self`, whose extents are dimensions of this function: named as in the impl, if they have names there.
static Type selfParameter(BodyState& body) {
  const StructInstance* own =
      body.selfType->kind == TypeKind::Struct ? body.session.findStruct(body.selfType->decl) : nullptr;
  if (own)
    return structType(body, own, DimPolicy::Parameter);
  if (!bringsExtents(body.selfType))
    return body.selfType;
  Type named =
      body.instance->impl ? resolveType(body, body.instance->impl->selfType, DimPolicy::Parameter) : body.selfType;
  if (isError(named))
    return named;
  if (named->isTensor() && body.selfType->isTensor())
    named =
        body.types.tensor(named->elem, named->shape, body.selfType->space, body.selfType->layout, body.selfType->param);
  return body.selfType = withOwnDims(body, named);
}

/// Extents that have no name get one.
static Type withOwnDims(BodyState& body, Type type) {
  switch (type->kind) {
  case TypeKind::Tensor: {
    std::vector<DimExpr> shape;
    for (const DimExpr& extent : type->shape) {
      if (!extent.hasOpaque()) {
        shape.push_back(extent);
        continue;
      }
      DimBinding binding;
      binding.name = base::concat("N", body.function->dims.size());
      binding.range = body.instance->item->name.range;
      shape.push_back(DimExpr::variable(static_cast<DimVarId>(body.function->dims.size())));
      body.function->dims.push_back(std::move(binding));
    }
    return body.types.tensor(type->elem, std::move(shape), type->space, type->layout, type->param);
  }
  case TypeKind::Vec: return body.types.vec(withOwnDims(body, type->elem));
  case TypeKind::Array: return body.types.array(withOwnDims(body, type->elem), type->count);
  case TypeKind::Ref: return body.types.ref(withOwnDims(body, type->elem), type->isMutable);
  case TypeKind::Struct: {
    const StructInstance* own = type->param ? nullptr : body.session.findStruct(type->decl);
    return own && bringsExtents(type) ? structType(body, own, DimPolicy::Parameter) : type;
  }
  case TypeKind::Tuple: {
    std::vector<Type> elems;
    for (Type elem : type->elems)
      elems.push_back(withOwnDims(body, elem));
    return body.types.tuple(std::move(elems));
  }
  default: return type;
  }
}

static bool declareParams(BodyState& body, std::vector<SourceRange>& ranges) {
  const syn::FunctionItem* item = body.instance->item;
  bool ok = true;
  for (size_t i = 0; i < item->params.size(); ++i) {
    const syn::Param& param = item->params[i];
    Type type = body.types.error();
    if (param.self != syn::SelfKind::None) {
      if (body.selfType) {
        // The extents of its tensors are dimensions of this function.
        Type self = selfParameter(body);
        if (!isError(self) && i < body.instance->placements.size() && body.instance->placements[i].isSet &&
            self->isTensor() && (!body.instance->impl || !writesSpace(body.instance->impl->selfType)))
          self = placed(body.types, self, body.instance->placements[i]);
        // A reference to a reference is the reference.
        type = param.self == syn::SelfKind::Value || isError(self) || self->kind == TypeKind::Ref
                   ? self
                   : body.types.ref(self, param.self == syn::SelfKind::MutRef);
      }
    } else if (param.type) {
      type = resolveType(body, param.type, DimPolicy::Parameter);
      if (!isError(type) && i < body.instance->placements.size() && body.instance->placements[i].isSet &&
          !writesSpace(param.type))
        type = placed(body.types, type, body.instance->placements[i]);
    }
    if (!isError(type) && item->isKernel && !isKernelParam(type)) {
      error(body, "E0403", param.type ? param.type->range : param.range,
            "a kernel cannot take a `" + text(body, type) + "`")
          .primary("kernels take tensors, scalars, and structs, tuples and arrays of these")
          .help(type->kind == TypeKind::Vec ? "copy it to the device first: `Tensor.from_host(v)`"
                                            : "compute it in host code");
      type = body.types.error();
    }
    if (!isError(type) && item->isKernel && argumentCount(type) > kMaxKernelArguments) {
      error(body, "E0403", param.type ? param.type->range : param.range,
            "a kernel cannot take a `" + text(body, type) + "`")
          .primary(base::concat("it consists of ", argumentCount(type), " tensors and scalars; at most ",
                                kMaxKernelArguments, " are passed one by one"))
          .label(item->name.range, "this kernel")
          .help("pass the values in a tensor: `Tensor.from_host(v)`");
      type = body.types.error();
    }
    if (!isError(type) && item->isKernel && param.type && !checkKernelParamSpace(body, type, param.type->range))
      type = body.types.error();
    for (size_t j = 0; j < i; ++j)
      if (item->params[j].name.text == param.name.text && param.name.isPresent()) {
        error(body, "E0202", param.name.range, base::concat("there are two parameters `", param.name.text, "`"))
            .primary("second one")
            .label(item->params[j].name.range, "first one");
        type = body.types.error();  // which one a use means is not known
        break;
      }
    const std::string_view name = param.self != syn::SelfKind::None ? "self" : param.name.text;
    Variable* variable = newVariable(body, name, type, param.name.isPresent() ? param.name.range : param.range, false);
    variable->isVar = false;
    variable->isParam = true;
    body.function->params.push_back(variable);
    ranges.push_back(param.type ? param.type->range : param.range);
    ok = ok && !isError(type);
  }
  return ok;
}

static void declareWhere(BodyState& body) {
  for (const syn::WherePredicate& predicate : body.instance->item->generics.where) {
    auto* subject = predicate.subject->tryAs<syn::NamedType>();
    if (isTypeCondition(predicate) || findGeneric(body.generics, subject->path[0].text))
      continue;
    const BodyState::Local* local = findLocal(body, subject->path[0].text);
    for (const syn::Type* bound : predicate.bounds) {
      auto* named = bound->tryAs<syn::NamedType>();
      const std::string_view name = named ? named->path.back().text : "";
      if (!local || !local->dim || (name != "PowerOfTwo" && name != "NonZero")) {
        error(body, "E0307", predicate.range,
              base::concat("`", body.session.sources.text(predicate.range), "` cannot be checked"))
            .help("a dimension can be PowerOfTwo or NonZero");
        continue;
      }
      LaunchCheck check;
      check.kind = name == "PowerOfTwo" ? LaunchCheck::Kind::PowerOfTwo : LaunchCheck::Kind::NonZero;
      check.expected = *local->dim;
      check.range = predicate.range;
      body.function->checks.push_back(std::move(check));
    }
  }
}

/// `S: Shape` stands for as many dimension variables as the argument has extents.
static void declareShapeGenerics(BodyState& body) {
  for (GenericBinding& binding : body.generics) {
    if (binding.value.kind != GenericValue::Kind::Shape)
      continue;
    for (size_t i = 0; i < binding.value.shape.size(); ++i) {
      DimBinding dim;
      dim.name = base::concat(binding.name, i);
      dim.range = binding.param->name.range;
      binding.value.shape[i] = DimExpr::variable(static_cast<DimVarId>(body.function->dims.size()));
      body.function->dims.push_back(std::move(dim));
    }
  }
}

/// Tensors in what a type parameter stands for have extents of this function's own: `T` is one type everywhere in it.
static void declareTypeExtents(BodyState& body) {
  body.firstTypeExtent = static_cast<DimVarId>(body.function->dims.size());
  for (GenericBinding& binding : body.generics)
    if (binding.value.kind == GenericValue::Kind::Type && bringsExtents(binding.value.type))
      binding.value.type = withOwnDims(body, canonicalSelf(body, binding.value.type));
  body.endTypeExtents = static_cast<DimVarId>(body.function->dims.size());
}

bool declareSignature(BodyState& body) {
  const syn::FunctionItem* item = body.instance->item;
  if (body.instance->isDefinition) {
    assume(body, item->generics);
    if (body.instance->impl)
      assume(body, body.instance->impl->generics);
  }
  declareShapeGenerics(body);
  declareTypeExtents(body);
  std::vector<SourceRange> ranges;
  const bool ok = declareParams(body, ranges);
  for (uint32_t i = 0; i < body.function->params.size(); ++i) {
    std::vector<uint32_t> path;
    if (!isError(body.function->params[i]->type))
      bindDims(*body.function, i, path, body.function->params[i]->type, ranges);
  }
  for (const LaunchCheck& check : body.function->checks)
    if (item->isKernel)
      bindQuotient(*body.function, check);
  for (DimVarId id = 0; id < body.function->dims.size(); ++id)
    if (const DimBinding& dim = body.function->dims[id];
        ok && !dim.param && (id < body.firstTypeExtent || id >= body.endTypeExtents))
      error(body, "E0326", dim.range, base::concat("nothing determines the extent `", dim.name, "`"))
          .help("some parameter must have exactly `" + dim.name + "` as an extent" +
                (item->isKernel ? ", or `" + dim.name + "` times extents that others have" : ""));
  declareWhere(body);
  body.function->resultRange = item->resultType ? item->resultType->range : item->name.range;
  body.function->resultType =
      item->resultType ? resolveType(body, item->resultType, DimPolicy::Result) : body.types.unit();
  if (!isError(body.function->resultType) &&
      !checkResultSpace(body, body.function->resultType, body.function->resultRange))
    body.function->resultType = body.types.error();
  if (item->isKernel) {
    body.function->kernel.emplace();
    if (!isError(body.function->resultType) && !isKernelResult(body.function->resultType)) {
      error(body, "E0401", item->resultType->range,
            "a kernel cannot return `" + text(body, body.function->resultType) + "`")
          .primary("results are tensors, scalars with `reduce(…)`, or a tuple of these");
      body.function->resultType = body.types.error();
    }
  } else if (inKernel(body) && !isError(body.function->resultType)) {
    body.function->resultType = valueOf(body, body.function->resultType);
  }
  for (Variable* param : body.function->params)
    declareLocal(body, param);
  if (item->reduceOp)
    declareReduce(body, item->reduceOp);
  functionAttributes(body, item);
  return ok && !isError(body.function->resultType);
}

void declareReduce(BodyState& body, const syn::Expr* op) {
  if (!body.function->isKernel) {
    error(body, "E0402", op->range, "only kernels have `reduce(…)`");
    return;
  }
  if (body.function->resultType->kind != TypeKind::Scalar) {
    if (!isError(body.function->resultType))
      error(body, "E0402", body.function->resultRange,
            "`reduce` combines scalars, not `" + text(body, body.function->resultType) + "`");
    return;
  }
  auto* name = op->tryAs<syn::NameExpr>();
  const ReduceKind kind = name ? reduceNamed(name->name.text) : ReduceKind::None;
  const Symbol* symbol = name ? body.items->find(name->name.text) : nullptr;
  if (kind == ReduceKind::None || symbol) {
    if (!symbol || symbol->kind != SymbolKind::Function || symbol->item->as<syn::FunctionItem>()->isKernel) {
      error(body, "E0402", op->range,
            base::concat("`", body.session.sources.text(op->range), "` cannot combine block results"))
          .help("use add, mul, min, max, and, or, or a function of two values");
      return;
    }
    InstanceRequest request = body.instance->request(symbol->item->as<syn::FunctionItem>(), symbol->scope, op->range);
    request.inKernel = true;
    request.generics = genericEnv(request.item->generics);
    for (const syn::Param& param : request.item->params)
      if (param.type)
        infer(body, param.type, body.function->resultType, request.generics, symbol->scope);
    Instance* combine = body.session.instances.instantiate(std::move(request));
    if (!combine)
      return;
    const Function& target = *combine->function;
    if (target.params.size() != 2 || target.params[0]->type != body.function->resultType ||
        target.params[1]->type != body.function->resultType || target.resultType != body.function->resultType) {
      error(body, "E0402", op->range,
            "the combining function must take two `" + text(body, body.function->resultType) + "` and return one")
          .label(target.nameRange, "defined here");
      return;
    }
    body.function->kernel->reduce = ReduceKind::Function;
    body.function->kernel->reduceFunction = combine->function;
    return;
  }
  const bool isBool = body.function->resultType->isScalar(Scalar::Bool);
  if ((kind == ReduceKind::And || kind == ReduceKind::Or) ? isFloat(body.function->resultType->scalar) : isBool) {
    error(body, "E0402", op->range,
          base::concat("`reduce(", name->name.text, ")` does not apply to `", text(body, body.function->resultType),
                       "`"));
    return;
  }
  body.function->kernel->reduce = kind;
}

}  // namespace vortex::lang
