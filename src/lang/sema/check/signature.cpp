// Parameters, result, dimension bindings and body of one function instance.
#include "lang/sema/check/checker.h"
#include "lang/sema/check/names.h"
#include "lang/sema/element.h"

#include "base/text.h"

namespace vortex::lang {
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

void collectReturned(const syn::Expr* expr, std::set<std::string_view>& names);

void returnedNamesOf(const syn::Expr* value, std::set<std::string_view>& names) {
  if (!value)
    return;
  if (auto* name = value->tryAs<syn::NameExpr>())
    names.insert(name->name.text);
  if (auto* tuple = value->tryAs<syn::TupleExpr>())
    for (const syn::Expr* elem : tuple->elems)
      returnedNamesOf(elem, names);
}

void collectBlock(const syn::BlockExpr* block, std::set<std::string_view>& names) {
  if (block)
    for (const syn::Stmt* stmt : block->stmts)
      if (auto* expr = stmt->tryAs<syn::ExprStmt>())
        collectReturned(expr->expr, names);
}

// Names in `return x`, at statement level.
void collectReturned(const syn::Expr* expr, std::set<std::string_view>& names) {
  switch (expr->kind) {
  case syn::ExprKind::Return: return returnedNamesOf(expr->as<syn::ReturnExpr>()->value, names);
  case syn::ExprKind::Block: return collectBlock(expr->as<syn::BlockExpr>(), names);
  case syn::ExprKind::While: return collectBlock(expr->as<syn::WhileExpr>()->body, names);
  case syn::ExprKind::Loop: return collectBlock(expr->as<syn::LoopExpr>()->body, names);
  case syn::ExprKind::For: return collectBlock(expr->as<syn::ForExpr>()->body, names);
  case syn::ExprKind::If:
    for (const syn::IfBranch& branch : expr->as<syn::IfExpr>()->branches)
      collectBlock(branch.body, names);
    return collectBlock(expr->as<syn::IfExpr>()->elseBody, names);
  case syn::ExprKind::Match:
    for (const syn::MatchArm& arm : expr->as<syn::MatchExpr>()->arms)
      collectReturned(arm.body, names);
    return;
  default: return;
  }
}

}  // namespace

/// The type of `self`, whose extents are dimensions of this function: named as in the impl, if they have names there.
Type Checker::selfParameter() {
  const StructInstance* own = selfType->kind == TypeKind::Struct ? session.findStruct(selfType->decl) : nullptr;
  if (own)
    return structType(own, DimPolicy::Parameter);
  if (!bringsExtents(selfType))
    return selfType;
  Type named = instance->impl ? resolveType(instance->impl->selfType, DimPolicy::Parameter) : selfType;
  if (isError(named))
    return named;
  if (named->isTensor() && selfType->isTensor())
    named = types.tensor(named->elem, named->shape, selfType->space, selfType->layout, selfType->param);
  return selfType = withOwnDims(named);
}

/// Extents that have no name get one.
Type Checker::withOwnDims(Type type) {
  switch (type->kind) {
  case TypeKind::Tensor: {
    std::vector<DimExpr> shape;
    for (const DimExpr& extent : type->shape) {
      if (!extent.hasOpaque()) {
        shape.push_back(extent);
        continue;
      }
      DimBinding binding;
      binding.name = base::concat("N", function->dims.size());
      binding.range = instance->item->name.range;
      shape.push_back(DimExpr::variable(static_cast<DimVarId>(function->dims.size())));
      function->dims.push_back(std::move(binding));
    }
    return types.tensor(type->elem, std::move(shape), type->space, type->layout, type->param);
  }
  case TypeKind::Vec: return types.vec(withOwnDims(type->elem));
  case TypeKind::Array: return types.array(withOwnDims(type->elem), type->count);
  case TypeKind::Ref: return types.ref(withOwnDims(type->elem), type->isMutable);
  case TypeKind::Struct: {
    const StructInstance* own = type->param ? nullptr : session.findStruct(type->decl);
    return own && bringsExtents(type) ? structType(own, DimPolicy::Parameter) : type;
  }
  case TypeKind::Tuple: {
    std::vector<Type> elems;
    for (Type elem : type->elems)
      elems.push_back(withOwnDims(elem));
    return types.tuple(std::move(elems));
  }
  default: return type;
  }
}

bool Checker::declareParams(std::vector<SourceRange>& ranges) {
  const syn::FunctionItem* item = instance->item;
  bool ok = true;
  for (size_t i = 0; i < item->params.size(); ++i) {
    const syn::Param& param = item->params[i];
    Type type = types.error();
    if (param.self != syn::SelfKind::None) {
      if (!selfType) {
        error("E0329", param.range, "`self` exists only in methods");
      } else {
        // The extents of its tensors are dimensions of this function.
        Type self = selfParameter();
        if (!isError(self) && i < instance->placements.size() && instance->placements[i].isSet && self->isTensor() &&
            (!instance->impl || !writesSpace(instance->impl->selfType)))
          self = placed(types, self, instance->placements[i]);
        // A reference to a reference is the reference.
        type = param.self == syn::SelfKind::Value || isError(self) || self->kind == TypeKind::Ref
                   ? self
                   : types.ref(self, param.self == syn::SelfKind::MutRef);
      }
    } else if (param.type) {
      type = resolveType(param.type, DimPolicy::Parameter);
      if (!isError(type) && i < instance->placements.size() && instance->placements[i].isSet &&
          !writesSpace(param.type))
        type = placed(types, type, instance->placements[i]);
    }
    if (!isError(type) && item->isKernel && !isKernelParam(type)) {
      error("E0403", param.type ? param.type->range : param.range, "a kernel cannot take a `" + text(type) + "`")
          .primary("kernels take tensors, scalars, and structs, tuples and arrays of these")
          .help(type->kind == TypeKind::Vec ? "copy it to the device first: `Tensor.from_host(v)`"
                                            : "compute it in host code");
      type = types.error();
    }
    if (!isError(type) && item->isKernel && argumentCount(type) > kMaxKernelArguments) {
      error("E0403", param.type ? param.type->range : param.range, "a kernel cannot take a `" + text(type) + "`")
          .primary(base::concat("it consists of ", argumentCount(type), " tensors and scalars; at most ",
                                kMaxKernelArguments, " are passed one by one"))
          .label(item->name.range, "this kernel")
          .help("pass the values in a tensor: `Tensor.from_host(v)`");
      type = types.error();
    }
    if (!isError(type) && item->isKernel && param.type && !checkKernelParamSpace(type, param.type->range))
      type = types.error();
    for (size_t j = 0; j < i; ++j)
      if (item->params[j].name.text == param.name.text && param.name.isPresent())
        error("E0202", param.name.range, base::concat("there are two parameters `", param.name.text, "`"))
            .primary("second one")
            .label(item->params[j].name.range, "first one");
    const std::string_view name = param.self != syn::SelfKind::None ? "self" : param.name.text;
    Variable* variable = newVariable(name, type, param.name.isPresent() ? param.name.range : param.range, false);
    variable->isVar = false;
    variable->isParam = true;
    function->params.push_back(variable);
    ranges.push_back(param.type ? param.type->range : param.range);
    ok = ok && !isError(type);
  }
  return ok;
}

void Checker::declareWhere() {
  for (const syn::WherePredicate& predicate : instance->item->generics.where) {
    auto* subject = predicate.subject->tryAs<syn::NamedType>();
    if (isTypeCondition(predicate) || findGeneric(generics, subject->path[0].text))
      continue;
    const Local* local = findLocal(subject->path[0].text);
    for (const syn::Type* bound : predicate.bounds) {
      auto* named = bound->tryAs<syn::NamedType>();
      const std::string_view name = named ? named->path.back().text : "";
      if (!local || !local->dim || (name != "PowerOfTwo" && name != "NonZero")) {
        error("E0307", predicate.range, base::concat("`", session.sources.text(predicate.range), "` cannot be checked"))
            .help("a dimension can be PowerOfTwo or NonZero");
        continue;
      }
      LaunchCheck check;
      check.kind = name == "PowerOfTwo" ? LaunchCheck::Kind::PowerOfTwo : LaunchCheck::Kind::NonZero;
      check.expected = *local->dim;
      check.range = predicate.range;
      function->checks.push_back(std::move(check));
    }
  }
}

/// `S: Shape` stands for as many dimension variables as the argument has extents.
void Checker::declareShapeGenerics() {
  for (GenericBinding& binding : generics) {
    if (binding.value.kind != GenericValue::Kind::Shape)
      continue;
    for (size_t i = 0; i < binding.value.shape.size(); ++i) {
      DimBinding dim;
      dim.name = base::concat(binding.name, i);
      dim.range = binding.param->name.range;
      binding.value.shape[i] = DimExpr::variable(static_cast<DimVarId>(function->dims.size()));
      function->dims.push_back(std::move(dim));
    }
  }
}

/// Tensors in what a type parameter stands for have extents of this function's own: `T` is one type everywhere in it.
void Checker::declareTypeExtents() {
  firstTypeExtent_ = static_cast<DimVarId>(function->dims.size());
  for (GenericBinding& binding : generics)
    if (binding.value.kind == GenericValue::Kind::Type && bringsExtents(binding.value.type))
      binding.value.type = withOwnDims(canonicalSelf(binding.value.type));
  endTypeExtents_ = static_cast<DimVarId>(function->dims.size());
}

bool Checker::declareSignature() {
  const syn::FunctionItem* item = instance->item;
  if (instance->isDefinition) {
    assume(item->generics);
    if (instance->impl)
      assume(instance->impl->generics);
  }
  declareShapeGenerics();
  declareTypeExtents();
  std::vector<SourceRange> ranges;
  const bool ok = declareParams(ranges);
  for (uint32_t i = 0; i < function->params.size(); ++i) {
    std::vector<uint32_t> path;
    if (!isError(function->params[i]->type))
      bindDims(*function, i, path, function->params[i]->type, ranges);
  }
  for (DimVarId id = 0; id < function->dims.size(); ++id)
    if (const DimBinding& dim = function->dims[id];
        ok && !dim.param && (id < firstTypeExtent_ || id >= endTypeExtents_))
      error("E0326", dim.range, base::concat("nothing determines the extent `", dim.name, "`"))
          .help("some parameter must have exactly `" + dim.name + "` as an extent");
  declareWhere();
  function->resultRange = item->resultType ? item->resultType->range : item->name.range;
  function->resultType = item->resultType ? resolveType(item->resultType, DimPolicy::Result) : types.unit();
  if (!isError(function->resultType) && !checkResultSpace(function->resultType, function->resultRange))
    function->resultType = types.error();
  if (item->isKernel) {
    function->kernel.emplace();
    if (!isError(function->resultType) && !isKernelResult(function->resultType)) {
      error("E0401", item->resultType->range, "a kernel cannot return `" + text(function->resultType) + "`")
          .primary("results are tensors, scalars with `reduce(…)`, or a tuple of these");
      function->resultType = types.error();
    }
  } else if (inKernel() && !isError(function->resultType)) {
    function->resultType = valueOf(function->resultType);
  }
  for (Variable* param : function->params)
    declareLocal(param);
  if (item->reduceOp)
    declareReduce(item->reduceOp);
  functionAttributes(item);
  return ok && !isError(function->resultType);
}

void Checker::declareReduce(const syn::Expr* op) {
  if (!function->isKernel) {
    error("E0402", op->range, "only kernels have `reduce(…)`");
    return;
  }
  if (function->resultType->kind != TypeKind::Scalar) {
    if (!isError(function->resultType))
      error("E0402", function->resultRange, "`reduce` combines scalars, not `" + text(function->resultType) + "`");
    return;
  }
  auto* name = op->tryAs<syn::NameExpr>();
  const ReduceKind kind = name ? reduceNamed(name->name.text) : ReduceKind::None;
  const Symbol* symbol = name ? items->find(name->name.text) : nullptr;
  if (kind == ReduceKind::None || symbol) {
    if (!symbol || symbol->kind != SymbolKind::Function || symbol->item->as<syn::FunctionItem>()->isKernel) {
      error("E0402", op->range, base::concat("`", session.sources.text(op->range), "` cannot combine block results"))
          .help("use add, mul, min, max, and, or, or a function of two values");
      return;
    }
    Instance request;
    request.item = symbol->item->as<syn::FunctionItem>();
    request.scope = symbol->scope;
    request.inKernel = true;
    request.parent = instance;
    request.isDefinition = instance->isDefinition;
    request.depth = instance->depth + 1;
    request.callSite = op->range;
    request.generics = genericEnv(request.item->generics);
    for (const syn::Param& param : request.item->params)
      if (param.type)
        infer(param.type, function->resultType, request.generics, symbol->scope);
    Instance* combine = session.instantiate(std::move(request));
    if (!combine)
      return;
    const Function& target = *combine->function;
    if (target.params.size() != 2 || target.params[0]->type != function->resultType ||
        target.params[1]->type != function->resultType || target.resultType != function->resultType) {
      error("E0402", op->range,
            "the combining function must take two `" + text(function->resultType) + "` and return one")
          .label(target.nameRange, "defined here");
      return;
    }
    function->kernel->reduce = ReduceKind::Function;
    function->kernel->reduceFunction = combine->function;
    return;
  }
  const bool isBool = function->resultType->isScalar(Scalar::Bool);
  if ((kind == ReduceKind::And || kind == ReduceKind::Or) ? isFloat(function->resultType->scalar) : isBool) {
    error("E0402", op->range,
          base::concat("`reduce(", name->name.text, ")` does not apply to `", text(function->resultType), "`"));
    return;
  }
  function->kernel->reduce = kind;
}

void Checker::checkBody() {
  if (!instance->item->body)
    return;
  signatureLocals_ = locals.size();
  signatureDims_ = function->dims.size();
  signatureVariables_ = function->variables.size();
  session.retry([this] { return tryBody(); }, instance->item->range);
}

/// Back to the state after the signature.
void Checker::resetBody() {
  locals.resize(signatureLocals_);
  function->dims.resize(signatureDims_);
  function->variables.resize(signatureVariables_);
  loops.clear();
  returns.clear();
  variableDims.clear();
  mutableOpaques.clear();
  flexible.clear();
  defaulted.clear();
  walked.clear();
  totals.clear();
  pendingDims.clear();
  beforeLet = nullptr;
  function->extentVariables.clear();
  items = instance->scope;
  restart = false;
}

/// False: a use decided the type of a variable, check again with it. Every attempt decides one more.
bool Checker::tryBody() {
  resetBody();
  const syn::FunctionItem* item = instance->item;
  for (DimVarId id = 0; id < function->dims.size(); ++id)
    if (function->dims[id].isScalarValue)
      variableDims[function->params[*function->dims[id].param]] = DimExpr::variable(id);
  if (function->isKernel) {
    collectBlock(item->body, returnedNames);
    returnedNamesOf(item->body->tail, returnedNames);
  }
  returns.push_back({function->resultType, function->resultRange, false, 0});
  std::vector<Expr*> offsets = tileOffsets();
  Expr* body = checkBlock(item->body, function->resultType);
  const bool wantsValue = function->resultType->kind != TypeKind::Unit && function->resultType->kind != TypeKind::Never;
  if (body->type->kind != TypeKind::Unit && body->type->kind != TypeKind::Never && !isError(body) && wantsValue) {
    Expr* last = body->args.back();
    Expr* value = convertReturn(last, function->resultType, last->range);
    Expr* leave = make(ExprKind::Return, types.never(), last->range, {value});
    body->args.back() = leave;
    body->type = types.never();
  } else if (body->type->kind == TypeKind::Unit && wantsValue) {
    const SourceRange close{item->body->range.file, item->body->range.end > 0 ? item->body->range.end - 1 : 0,
                            item->body->range.end};
    error("E0324", close, base::concat("`", item->name.text, "` can end without returning a value"))
        .primary("reached without `return`")
        .label(function->resultRange, "a `" + text(function->resultType) + "` is promised here");
  }
  body->args.insert(body->args.begin(), offsets.begin(), offsets.end());
  function->body = body;
  for (const Variable* variable : defaulted)
    if (!restart && variable->type->kind == TypeKind::Vec && isError(variable->type->elem))
      error("E0306", variable->range, "the element type of an empty list cannot be inferred")
          .help("declare it: `let v: Vec<f32> = vec![]`");
  return !restart;
}

}  // namespace vortex::lang
