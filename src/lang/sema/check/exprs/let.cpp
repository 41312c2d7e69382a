// `let` and `var`.
#include "lang/sema/check/exprs/let.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/exprs/open.h"
#include "lang/sema/check/exprs/statements.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/names.h"
#include "lang/sema/check/tiles/fragments.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/check/types/shapes.h"
#include "lang/sema/check/types/spaces.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::lang {

static void checkDeclared(BodyState& body, const syn::LetStmt* stmt, std::vector<Expr*>& out);
static void letOfList(BodyState& body, const syn::LetStmt* stmt, Type declared, std::vector<Expr*>& out);
static bool listElements(BodyState& body, const syn::Expr* list, const std::vector<DimExpr>& shape, size_t depth,
                         Type elem, std::vector<Expr*>& values);
static Type bindLetDims(BodyState& body, Type declared, Type actual);
static bool isStorage(const BodyState& body, Type type);
static void finishLet(BodyState& body, const syn::LetStmt* stmt, Type type, Expr* init, bool isResult,
                      std::vector<Expr*>& out);
static void noteLiterals(BodyState& body, const syn::Pattern* pattern, const Expr& value);
static void markDeclared(const BodyState& body, Expr& let);

static bool namesResult(BodyState& body, Type type, const syn::Name& name) {
  const auto matches = [&](Type result) {
    return result->isTensor() && result->elem == type->elem && sameShape(body, result, type);
  };
  const Type result = body.function->resultType;
  return body.returnedNames.count(name.text) != 0 && body.notReturned.count(name.range.begin) == 0 &&
         (matches(result) ||
          (result->kind == TypeKind::Tuple && std::any_of(result->elems.begin(), result->elems.end(), matches)));
}

/// A computed tensor that is written by element lies in global memory: the result's if it is returned, else a temporary of the launch.
static Type storedType(BodyState& body, const syn::LetStmt* stmt, Type type, const syn::Name& name) {
  const bool isStored = inKernel(body) && stmt->isVar && type->isTensor() && type->isValue &&
                        body.storedNames.count(name.text) && !body.notStored.count(name.range.begin);
  const bool isAllocated = isStored && std::ranges::none_of(type->shape, &DimExpr::hasOpaque);
  const bool isResult = isStored && body.function->isKernel && namesResult(body, type, name);
  return isAllocated || isResult ? body.types.tensor(type->elem, type->shape, Space::Global) : type;
}

/// `let t: T` in a kernel without a memory space: a value, or the storage of the result when it is what the kernel returns.
static Type letType(BodyState& body, const syn::LetStmt* stmt, Type declared, const syn::Name* name, bool& isResult) {
  isResult = false;
  if (!inKernel(body) || !declared->isTensor())
    return declared;
  const bool written = writesSpace(stmt->type);
  if (written && declared->space != Space::Global)
    return declared;
  isResult = body.function->isKernel && stmt->isVar && name && namesResult(body, declared, *name);
  if (isResult)
    return declared;
  if (written) {
    error(body, "E0339", stmt->type->range, "a kernel cannot allocate global memory")
        .help("make it a result (`var out: <result type>` … `return out`), a parameter, @shared or @local");
    return body.types.error();
  }
  return valueOf(body, declared);
}

/// Shared and local memory is laid out when the kernel is compiled, for given values of its dimension variables.
static void checkOnChipShape(BodyState& body, const syn::LetStmt* stmt, Type declared) {
  Type tensor = declared->kind == TypeKind::Array ? declared->elem : declared;
  if (!inKernel(body) || !tensor->isTensor() || (tensor->space != Space::Shared && tensor->space != Space::Local) ||
      std::none_of(tensor->shape.begin(), tensor->shape.end(), [](const DimExpr& dim) { return dim.hasOpaque(); }))
    return;
  error(body, "E0310", stmt->type->range,
        base::concat("the shape of ", tensor->space == Space::Shared ? "shared" : "local",
                     " memory must be known when the kernel is compiled"))
      .primary("an extent is known only while the kernel runs")
      .help("use constants, const generics and dimension variables; take the largest shape and use a part of it");
}

void checkLet(BodyState& body, const syn::LetStmt* stmt, std::vector<Expr*>& out) {
  const std::set<DimVarId> outerDims = std::exchange(body.pendingDims, {});
  std::vector<Expr*>* outer = std::exchange(body.beforeLet, &out);
  checkDeclared(body, stmt, out);
  body.beforeLet = outer;
  body.pendingDims = outerDims;
}

static void checkDeclared(BodyState& body, const syn::LetStmt* stmt, std::vector<Expr*>& out) {
  auto* namePattern = stmt->pattern->tryAs<syn::NamePattern>();
  Type declared = nullptr;
  bool isResult = false;
  const bool hasType = stmt->type && !stmt->type->is<syn::InferType>();
  if (hasType) {
    declared = resolveType(body, stmt->type, DimPolicy::Let);
    if (!isError(declared) && namePattern)
      declared = wholeOfFragment(body, declared, namePattern->name);
    if (!isError(declared) && !checkHostSpace(body, declared, stmt->type->range))
      declared = declared->isTensor() && stmt->init ? body.types.tensor(declared->elem, declared->shape, Space::Global)
                                                    : body.types.error();
    if (!isError(declared))
      declared = letType(body, stmt, declared, namePattern ? &namePattern->name : nullptr, isResult);
  }
  const auto known = hasType ? body.inferred.end() : body.inferred.find(stmt->pattern->range.begin);
  const Type hint = known == body.inferred.end() ? declared : known->second;
  auto* list = stmt->init && namePattern ? stmt->init->tryAs<syn::ArrayExpr>() : nullptr;
  if (list && declared && !isError(declared) && declared->isTensor() && isStorage(body, declared) && !isResult &&
      list->form == syn::ArrayForm::List)
    return letOfList(body, stmt, declared, out);
  list = hint ? nullptr : list;
  const bool isEmptyVec =
      list && list->isVec && list->form == syn::ArrayForm::List && list->elems.empty() && !inKernel(body);
  Expr* init = isEmptyVec   ? make(body, ExprKind::MakeVec, body.types.vec(body.types.error()), stmt->init->range)
               : stmt->init ? check(body, stmt->init, hint)
                            : nullptr;
  if (!init) {
    if (!declared) {
      error(body, "E0306", stmt->range, "the type of this variable cannot be inferred")
          .help("declare its type or give it a value");
      declared = body.types.error();
    } else if (!isError(declared) && declared->kind == TypeKind::Ref) {
      error(body, "E0340", stmt->range, "a reference needs a value where it is declared")
          .help("choose what it refers to there: `let r = if … { &a } else { &b }`");
      declared = body.types.error();
    } else if (!isError(declared) && !body.pendingDims.empty()) {
      const DimBinding& dim = body.function->dims[*body.pendingDims.begin()];
      error(body, "E0326", dim.range, base::concat("nothing determines the extent `", dim.name, "`"))
          .primary("a value would bind it, but this variable is declared without one")
          .help("give the variable its value here, or use an extent that is known");
      declared = body.types.error();
    }
  }
  if (hasType && !isError(declared) && (!init || init->kind == ExprKind::Builtin))
    checkOnChipShape(body, stmt, declared);
  Type type = declared;
  if (init && !isError(init)) {
    if (!type) {
      if (init->type->kind == TypeKind::Never || init->type->kind == TypeKind::Unit) {
        if (init->type->kind == TypeKind::Unit)
          error(body, "E0301", init->range, "this has no value");
        type = body.types.error();
      } else {
        if (hint && canTake(body, init, hint))
          adapt(body, init, hint);
        type = init->type;
        // A copy of a slice or element is a value of its own; references and parameters keep their storage.
        if (inKernel(body) && type->isTensor() && init->kind != ExprKind::Slice && init->kind != ExprKind::Deref &&
            (init->kind != ExprKind::Var || init->variable->isStoredValue))
          type = valueOf(body, type);
      }
    } else if (!isError(type)) {
      type = bindLetDims(body, type, init->type);
      init =
          convert(body, init, type, Site::Let, stmt->type ? stmt->type->range : stmt->pattern->range, "declared here");
    }
  }
  if (!type || (init && isError(init)))
    type = declared && !isError(declared) ? declared : body.types.error();
  const Type before = type;
  if (!isError(type) && namePattern)
    type = storedType(body, stmt, type, namePattern->name);
  finishLet(body, stmt, type, init, isResult || type != before, out);
  if (type != before)
    out.back()->variable->isStoredValue = true;
}

/// `let w: Tensor<f32, [2, 2]> @local = [[a, b], [c, d]]`: each element is stored.
static void letOfList(BodyState& body, const syn::LetStmt* stmt, Type declared, std::vector<Expr*>& out) {
  std::vector<Expr*> values, stored;
  const bool ok = listElements(body, stmt->init, declared->shape, 0, declared->elem, values);
  for (Expr*& value : values)
    value = isError(value) ? value : temporary(body, value, stored);
  out.insert(out.end(), stored.begin(), stored.end());
  finishLet(body, stmt, declared, nullptr, false, out);
  if (!ok)
    return;
  Variable* variable = out.back()->variable;
  for (size_t i = 0; i < values.size(); ++i) {
    Expr* element =
        make(body, ExprKind::Element, declared->elem, values[i]->range, {makeVar(body, variable, values[i]->range)});
    auto rest = static_cast<int64_t>(i);
    for (size_t dim = declared->shape.size(); dim-- > 0;) {
      const int64_t extent = *declared->shape[dim].asConstant();
      element->args.insert(element->args.begin() + 1, makeInt(body, rest % extent, usize(body), values[i]->range));
      rest /= extent;
    }
    out.push_back(make(body, ExprKind::Assign, body.types.unit(), values[i]->range, {element, values[i]}));
  }
}

static bool listElements(BodyState& body, const syn::Expr* list, const std::vector<DimExpr>& shape, size_t depth,
                         Type elem, std::vector<Expr*>& values) {
  if (depth == shape.size()) {
    Expr* value = storeConvert(body, check(body, list, elem), elem, {}, "");
    values.push_back(value);
    return !isError(value);
  }
  auto* array = list->tryAs<syn::ArrayExpr>();
  const auto extent = shape[depth].asConstant();
  if (!array || array->isVec || array->form != syn::ArrayForm::List || !extent ||
      array->elems.size() != static_cast<size_t>(*extent)) {
    error(body, "E0304", list->range,
          base::concat("expected a list of ", text(body, shape[depth]), " elements",
                       array ? base::concat(", found ", array->elems.size()) : ""))
        .help("a tensor starts as a list of its rows, each as long as its extent says");
    return false;
  }
  bool ok = true;
  for (const syn::Expr* each : array->elems)
    ok = listElements(body, each, shape, depth + 1, elem, values) && ok;
  return ok;
}

/// A dimension that the `let` type introduces and whose extent the value already has by name is that extent.
static Type bindLetDims(BodyState& body, Type declared, Type actual) {
  if (body.pendingDims.empty())
    return declared;
  std::vector<std::optional<DimExpr>> values(body.function->dims.size());
  learnDims(declared, actual, values);
  for (size_t i = 0; i < values.size(); ++i)
    if (!body.pendingDims.count(static_cast<DimVarId>(i)) || !values[i] || values[i]->hasOpaque())
      values[i].reset();
  for (BodyState::Local& local : body.locals)
    if (auto variable = local.dim ? local.dim->asVariable() : std::nullopt;
        variable && *variable < values.size() && values[*variable])
      local.dim = *values[*variable];
  return substituteDims(declared, body.types, values);
}

/// Memory of the block or thread, or of the result: there from its declaration on, whatever it holds.
static bool isStorage(const BodyState& body, Type type) {
  while (type->kind == TypeKind::Array)
    type = type->elem;
  return inKernel(body) && type->isTensor() && !type->isValue;
}

static void finishLet(BodyState& body, const syn::LetStmt* stmt, Type type, Expr* init, bool isResult,
                      std::vector<Expr*>& out) {
  auto* namePattern = stmt->pattern->tryAs<syn::NamePattern>();
  if (!namePattern) {
    if (!init || isError(type)) {
      if (!init)
        error(body, "E0340", stmt->pattern->range, "a pattern needs a value");
      return bindNothing(body, stmt->pattern);
    }
    if (stmt->type && !inKernel(body) && !init->type->param) {
      init = temporary(body, init, out);
      init->variable->type = init->type = type;
      markDeclared(body, *out.back());
    }
    const Expr* whole = init;
    if (!stmt->type && !slotOf(body, init) && init->kind == ExprKind::MakeTuple) {
      openNumbers(body, stmt->pattern->range, stmt->init, init->type);
      init = temporary(body, init, out);
      body.slots[init->variable] = {stmt->pattern->range.begin, {}};
    }
    bindPattern(body, stmt->pattern, init, stmt->isVar, out);
    if (!stmt->type && !stmt->isVar)
      noteLiterals(body, stmt->pattern, *whole);
    return;
  }
  Variable* variable = newVariable(body, namePattern->name.text, type, namePattern->name.range, stmt->isVar);
  variable->isResultStorage = isResult;
  variable->isDeferred = !init && !isError(type) && !isStorage(body, type);
  if (auto found = body.fragments.find(namePattern->name.range.begin); found != body.fragments.end())
    variable->fragment = found->second.part;
  declareLocal(body, variable);
  if (isError(type))
    return;
  if (init && type->kind == TypeKind::Scalar && isInteger(type->scalar)) {
    const DimExpr extent = variable->isVar ? DimExpr() : dimOf(body, init);
    if (!variable->isVar && !isCounted(body, extent))
      ownExtent(body, variable);
    else if (!variable->isVar)
      body.variableDims[variable] = extent;
    if (!variable->isVar && !stmt->type) {
      if (init->kind == ExprKind::Int && isUntyped(body, stmt->init) && type->isScalar(Scalar::I32))
        body.flexible[variable] = {init->intValue, init->intValue};
      else if (auto interval = literalInterval(body, init))
        body.flexible[variable] = *interval, body.madeOf[variable] = init;
    }
  }
  auto* filled = init && init->kind == ExprKind::Builtin && init->builtin == Builtin::VecFill
                     ? stmt->init->tryAs<syn::CallExpr>()
                     : nullptr;
  if (init && !stmt->type && !body.flexible.contains(variable)) {
    body.slots[variable] = slotOf(body, init).value_or(BodyState::Slot{variable->range.begin, {}});
    const syn::Expr* element = filled && !filled->args.back().name.isPresent() ? filled->args.back().value : nullptr;
    if (const Type number = element ? defaultOf(body, std::span(&element, 1)) : nullptr)
      openPart(body, variable->range, type, body.types.vec(number));
    else
      openNumbers(body, variable->range, stmt->init, type);
  }
  Expr* let = make(body, ExprKind::Let, body.types.unit(), stmt->range);
  let->variable = variable;
  if (init)
    let->args = {init};
  if (stmt->type && !inKernel(body))
    markDeclared(body, *let);
  out.push_back(let);
}

/// `let (m, n) = (4, 200)`: plain numbers adapt to their uses as `let m = 4` does.
static void noteLiterals(BodyState& body, const syn::Pattern* pattern, const Expr& value) {
  auto* names = pattern->tryAs<syn::TuplePattern>();
  for (size_t i = 0; names && value.kind == ExprKind::MakeTuple && i < std::min(value.args.size(), names->elems.size());
       ++i) {
    const Expr& part = *value.args[i];
    noteLiterals(body, names->elems[i], part);
    auto* name = names->elems[i]->tryAs<syn::NamePattern>();
    const BodyState::Local* local = name ? findLocal(body, name->name.text) : nullptr;
    const auto interval = local && local->variable ? literalInterval(body, &part, 1) : std::nullopt;
    if (interval && part.type->isScalar(Scalar::I32))
      body.flexible[local->variable] = *interval;
  }
}

/// The statement compares the value's extents with the written ones, and gives new dimension variables their values.
static void markDeclared(const BodyState& body, Expr& let) {
  let.hasOp = true;
  let.ints.assign(body.pendingDims.begin(), body.pendingDims.end());
}

}  // namespace vortex::lang
