// Blocks, let, assignment, return, patterns that always match.
#include "lang/sema/check/checker.h"
#include "lang/sema/check/names.h"

#include "base/text.h"

#include <algorithm>
#include <utility>

namespace vortex::lang {

Expr* Checker::checkBlock(const syn::BlockExpr* block, Type expected) {
  const size_t firstLocal = locals.size();
  LocalScope scope(*this);
  std::vector<const syn::Item*> local;
  for (const syn::Stmt* stmt : block->stmts)
    if (auto* item = stmt->tryAs<syn::ItemStmt>())
      local.push_back(item->item);
  if (ItemScope* inner = session.declareLocalItems(local, items))
    items = inner;
  std::vector<Expr*> out;
  bool diverges = false, failed = false;
  const bool wantsTail = block->tail && !(expected && expected->kind == TypeKind::Unit);
  for (size_t i = 0; i < block->stmts.size(); ++i) {
    const syn::Stmt* stmt = block->stmts[i];
    const bool isTail = wantsTail && i + 1 == block->stmts.size();
    const size_t before = out.size();
    if (isTail)
      checkTail(stmt->as<syn::ExprStmt>(), expected, out);
    else
      checkStmt(stmt, out);
    for (size_t at = before; at < out.size(); ++at) {
      diverges = diverges || out[at]->type->kind == TypeKind::Never;
      failed = failed || (isTail && isError(out[at]));
    }
  }
  Type type = diverges ? types.never() : types.unit();
  if (wantsTail && !diverges && !out.empty())
    type = leaveScope(out.back()->type, firstLocal);
  return make(ExprKind::Block, failed ? types.error() : type, block->range, std::move(out));
}

void Checker::checkTail(const syn::ExprStmt* stmt, Type expected, std::vector<Expr*>& out) {
  const bool bounds = uncheckedBounds, overflow = uncheckedOverflow;
  const size_t first = out.size();
  statementAttributes(stmt);
  const bool coalescing = std::exchange(uncheckedCoalescing, false), races = std::exchange(uncheckedRaces, false);
  const SourceRange banks = std::exchange(verifyBanks, {});
  out.push_back(check(stmt->expr, expected));
  uncheckedCoalescing = coalescing;
  uncheckedRaces = races;
  verifyBanks = banks;
  markAccesses(out, first);
  uncheckedBounds = bounds;
  uncheckedOverflow = overflow;
}

void Checker::checkStmt(const syn::Stmt* stmt, std::vector<Expr*>& out) {
  const bool bounds = uncheckedBounds, overflow = uncheckedOverflow;
  const size_t first = out.size();
  statementAttributes(stmt);
  // Statements inside have attributes of their own.
  const bool coalescing = std::exchange(uncheckedCoalescing, false), races = std::exchange(uncheckedRaces, false);
  const SourceRange banks = std::exchange(verifyBanks, {});
  if (auto* let = stmt->tryAs<syn::LetStmt>())
    checkLet(let, out);
  else if (auto* expr = stmt->tryAs<syn::ExprStmt>())
    out.push_back(check(expr->expr, types.unit()));
  for (const syn::Attribute& attribute : stmt->attributes)
    if (attribute.name.text == "parallel" && out.size() > first && out.back()->kind == ExprKind::For)
      out.back()->isClaimedParallel = true;
  uncheckedCoalescing = coalescing;
  uncheckedRaces = races;
  verifyBanks = banks;
  markAccesses(out, first);
  uncheckedBounds = bounds;
  uncheckedOverflow = overflow;
}

void Checker::markAccesses(std::vector<Expr*>& statement, size_t first) {
  for (size_t i = first; i < statement.size(); ++i) {
    statement[i]->uncheckedCoalescing |= uncheckedCoalescing;
    statement[i]->uncheckedRaces |= uncheckedRaces;
    if (verifyBanks.isValid())
      statement[i]->verifyBanks = verifyBanks;
  }
  uncheckedCoalescing = uncheckedRaces = false;
  verifyBanks = {};
}

/// `let t: T` in a kernel without a memory space: a value, or the storage of the result when it is what the kernel returns.
Type Checker::letType(const syn::LetStmt* stmt, Type declared, std::string_view name, bool& isResult) {
  isResult = false;
  if (!inKernel() || !declared->isTensor())
    return declared;
  const bool written = writesSpace(stmt->type);
  if (written && declared->space != Space::Global)
    return declared;
  if (function->isKernel && stmt->isVar && returnedNames.count(name)) {
    const auto matches = [&](Type result) {
      return result->isTensor() && result->elem == declared->elem && sameShape(result, declared);
    };
    Type result = function->resultType;
    isResult = matches(result);
    if (result->kind == TypeKind::Tuple)
      for (Type elem : result->elems)
        isResult = isResult || matches(elem);
    if (isResult)
      return declared;
  }
  if (written) {
    error("E0339", stmt->type->range, "a kernel cannot allocate global memory")
        .help("make it a result (`var out: <result type>` … `return out`), a parameter, @shared or @local");
    return types.error();
  }
  return valueOf(declared);
}

/// Shared and local memory is laid out when the kernel is compiled, for given values of its dimension variables.
void Checker::checkOnChipShape(const syn::LetStmt* stmt, Type declared) {
  Type tensor = declared->kind == TypeKind::Array ? declared->elem : declared;
  if (!inKernel() || !tensor->isTensor() || (tensor->space != Space::Shared && tensor->space != Space::Local) ||
      std::none_of(tensor->shape.begin(), tensor->shape.end(), [](const DimExpr& dim) { return dim.hasOpaque(); }))
    return;
  error("E0310", stmt->type->range,
        base::concat("the shape of ", tensor->space == Space::Shared ? "shared" : "local",
                     " memory must be known when the kernel is compiled"))
      .primary("an extent is known only while the kernel runs")
      .help("use constants, const generics and dimension variables; take the largest shape and use a part of it");
}

void Checker::checkLet(const syn::LetStmt* stmt, std::vector<Expr*>& out) {
  const std::set<DimVarId> outerDims = std::exchange(pendingDims, {});
  std::vector<Expr*>* outer = std::exchange(beforeLet, &out);
  checkDeclared(stmt, out);
  beforeLet = outer;
  pendingDims = outerDims;
}

void Checker::checkDeclared(const syn::LetStmt* stmt, std::vector<Expr*>& out) {
  auto* namePattern = stmt->pattern->tryAs<syn::NamePattern>();
  Type declared = nullptr;
  bool isResult = false;
  const bool hasType = stmt->type && !stmt->type->is<syn::InferType>();
  if (hasType) {
    declared = resolveType(stmt->type, DimPolicy::Let);
    if (!isError(declared) && namePattern)
      declared = wholeOfFragment(declared, namePattern->name);
    if (!isError(declared) && !checkHostSpace(declared, stmt->type->range))
      declared = declared->isTensor() && stmt->init ? types.tensor(declared->elem, declared->shape, Space::Global)
                                                    : types.error();
    if (!isError(declared))
      declared = letType(stmt, declared, namePattern ? namePattern->name.text : "", isResult);
  }
  if (auto known = !hasType && namePattern ? inferred.find(namePattern->name.range.begin) : inferred.end();
      known != inferred.end())
    declared = known->second;
  auto* list = stmt->init && namePattern ? stmt->init->tryAs<syn::ArrayExpr>() : nullptr;
  if (list && declared && !isError(declared) && declared->isTensor() && isStorage(declared) && !isResult &&
      list->form == syn::ArrayForm::List)
    return letOfList(stmt, declared, out);
  list = declared ? nullptr : list;
  const bool isEmptyVec =
      list && list->isVec && list->form == syn::ArrayForm::List && list->elems.empty() && !inKernel();
  Expr* init = isEmptyVec   ? make(ExprKind::MakeVec, types.vec(types.error()), stmt->init->range)
               : stmt->init ? check(stmt->init, declared)
                            : nullptr;
  if (!init) {
    if (!declared) {
      error("E0306", stmt->range, "the type of this variable cannot be inferred")
          .help("declare its type or give it a value");
      declared = types.error();
    } else if (!isError(declared) && declared->kind == TypeKind::Ref) {
      error("E0340", stmt->range, "a reference needs a value where it is declared")
          .help("choose what it refers to there: `let r = if … { &a } else { &b }`");
      declared = types.error();
    } else if (!isError(declared) && !pendingDims.empty()) {
      const DimBinding& dim = function->dims[*pendingDims.begin()];
      error("E0326", dim.range, base::concat("nothing determines the extent `", dim.name, "`"))
          .primary("a value would bind it, but this variable is declared without one")
          .help("give the variable its value here, or use an extent that is known");
      declared = types.error();
    }
  }
  if (hasType && !isError(declared) && (!init || init->kind == ExprKind::Builtin))
    checkOnChipShape(stmt, declared);
  Type type = declared;
  if (init && !isError(init)) {
    if (!type) {
      if (init->type->kind == TypeKind::Never || init->type->kind == TypeKind::Unit) {
        if (init->type->kind == TypeKind::Unit)
          error("E0301", init->range, "this has no value");
        type = types.error();
      } else {
        type = init->type;
        // A copy of a slice or element is a value of its own; references and parameters keep their storage.
        if (inKernel() && type->isTensor() && init->kind != ExprKind::Slice && init->kind != ExprKind::Deref &&
            init->kind != ExprKind::Var)
          type = valueOf(type);
      }
    } else if (!isError(type)) {
      type = bindLetDims(type, init->type);
      init = convert(init, type, Site::Let, stmt->type ? stmt->type->range : stmt->pattern->range, "declared here");
    }
  }
  if (!type || (init && isError(init)))
    type = declared && !isError(declared) ? declared : types.error();
  finishLet(stmt, type, init, isResult, out);
}

/// `let w: Tensor<f32, [2, 2]> @local = [[a, b], [c, d]]`: each element is stored.
void Checker::letOfList(const syn::LetStmt* stmt, Type declared, std::vector<Expr*>& out) {
  std::vector<Expr*> values, stored;
  const bool ok = listElements(stmt->init, declared->shape, 0, declared->elem, values);
  for (Expr*& value : values)
    value = isError(value) ? value : temporary(value, stored);
  out.insert(out.end(), stored.begin(), stored.end());
  finishLet(stmt, declared, nullptr, false, out);
  if (!ok)
    return;
  Variable* variable = out.back()->variable;
  for (size_t i = 0; i < values.size(); ++i) {
    Expr* element = make(ExprKind::Element, declared->elem, values[i]->range, {makeVar(variable, values[i]->range)});
    auto rest = static_cast<int64_t>(i);
    for (size_t dim = declared->shape.size(); dim-- > 0;) {
      const int64_t extent = *declared->shape[dim].asConstant();
      element->args.insert(element->args.begin() + 1, makeInt(rest % extent, usize(), values[i]->range));
      rest /= extent;
    }
    out.push_back(make(ExprKind::Assign, types.unit(), values[i]->range, {element, values[i]}));
  }
}

bool Checker::listElements(const syn::Expr* list, const std::vector<DimExpr>& shape, size_t depth, Type elem,
                           std::vector<Expr*>& values) {
  if (depth == shape.size()) {
    Expr* value = storeConvert(check(list, elem), elem, {}, "");
    values.push_back(value);
    return !isError(value);
  }
  auto* array = list->tryAs<syn::ArrayExpr>();
  const auto extent = shape[depth].asConstant();
  if (!array || array->isVec || array->form != syn::ArrayForm::List || !extent ||
      array->elems.size() != static_cast<size_t>(*extent)) {
    error("E0304", list->range,
          base::concat("expected a list of ", text(shape[depth]), " elements",
                       array ? base::concat(", found ", array->elems.size()) : ""))
        .help("a tensor starts as a list of its rows, each as long as its extent says");
    return false;
  }
  bool ok = true;
  for (const syn::Expr* each : array->elems)
    ok = listElements(each, shape, depth + 1, elem, values) && ok;
  return ok;
}

/// A dimension that the `let` type introduces and whose extent the value already has by name is that extent.
Type Checker::bindLetDims(Type declared, Type actual) {
  if (pendingDims.empty())
    return declared;
  std::vector<std::optional<DimExpr>> values(function->dims.size());
  learnDims(declared, actual, values);
  for (size_t i = 0; i < values.size(); ++i)
    if (!pendingDims.count(static_cast<DimVarId>(i)) || !values[i] || values[i]->hasOpaque())
      values[i].reset();
  for (Local& local : locals)
    if (auto variable = local.dim ? local.dim->asVariable() : std::nullopt;
        variable && *variable < values.size() && values[*variable])
      local.dim = *values[*variable];
  return substitute(declared, values);
}

/// Memory of the block or thread, or of the result: there from its declaration on, whatever it holds.
bool Checker::isStorage(Type type) const {
  while (type->kind == TypeKind::Array)
    type = type->elem;
  return inKernel() && type->isTensor() && !type->isValue;
}

void Checker::finishLet(const syn::LetStmt* stmt, Type type, Expr* init, bool isResult, std::vector<Expr*>& out) {
  auto* namePattern = stmt->pattern->tryAs<syn::NamePattern>();
  if (!namePattern) {
    if (!init || isError(type)) {
      if (!init)
        error("E0340", stmt->pattern->range, "a pattern needs a value");
      return bindNothing(stmt->pattern);
    }
    if (stmt->type && !inKernel() && !init->type->param) {
      init = temporary(init, out);
      init->variable->type = init->type = type;
      markDeclared(*out.back());
    }
    const Expr* whole = init;
    bindPattern(stmt->pattern, init, stmt->isVar, out);
    return stmt->type || stmt->isVar ? void() : noteLiterals(stmt->pattern, stmt->init, *whole);
  }
  Variable* variable = newVariable(namePattern->name.text, type, namePattern->name.range, stmt->isVar);
  variable->isResultStorage = isResult;
  variable->isDeferred = !init && !isError(type) && !isStorage(type);
  if (auto found = fragments.find(namePattern->name.range.begin); found != fragments.end())
    variable->fragment = found->second.part;
  declareLocal(variable);
  if (isError(type))
    return;
  if (init && type->kind == TypeKind::Scalar && isInteger(type->scalar)) {
    const DimExpr extent = variable->isVar ? DimExpr() : dimOf(init);
    if (!variable->isVar && !inKernel() && !isCounted(extent))
      ownExtent(variable);
    else if (!variable->isVar)
      variableDims[variable] = extent;
    if (!variable->isVar && !stmt->type) {
      if (init->kind == ExprKind::Int && isUntyped(stmt->init) && type->isScalar(Scalar::I32))
        flexible[variable] = {init->intValue, init->intValue};
      else if (auto interval = literalInterval(init))
        flexible[variable] = *interval;
    }
  }
  const bool isDefault = init && !stmt->type && !inferred.count(variable->range.begin);
  if (isDefault && ((stmt->isVar && type->kind == TypeKind::Scalar && isUntyped(stmt->init)) ||
                    (type->kind == TypeKind::Vec && isError(type->elem)) || isUntypedList(stmt->init)))
    defaulted.insert(variable);
  Expr* let = make(ExprKind::Let, types.unit(), stmt->range);
  let->variable = variable;
  if (init)
    let->args = {init};
  if (stmt->type && !inKernel())
    markDeclared(*let);
  out.push_back(let);
}

/// `let (m, n) = (4, 200)`: plain numbers adapt to their uses as `let m = 4` does.
void Checker::noteLiterals(const syn::Pattern* pattern, const syn::Expr* written, const Expr& value) {
  auto* names = pattern->tryAs<syn::TuplePattern>();
  auto* parts = written ? written->tryAs<syn::TupleExpr>() : nullptr;
  if (!names || !parts || value.kind != ExprKind::MakeTuple || names->elems.size() != value.args.size() ||
      parts->elems.size() != value.args.size())
    return;
  for (size_t i = 0; i < value.args.size(); ++i) {
    const Expr& part = *value.args[i];
    noteLiterals(names->elems[i], parts->elems[i], part);
    auto* name = names->elems[i]->tryAs<syn::NamePattern>();
    const Local* local = name ? findLocal(name->name.text) : nullptr;
    if (local && local->variable && part.kind == ExprKind::Int && isUntyped(parts->elems[i]) &&
        part.type->isScalar(Scalar::I32))
      flexible[local->variable] = {part.intValue, part.intValue};
  }
}

/// The statement compares the value's extents with the written ones, and gives new dimension variables their values.
void Checker::markDeclared(Expr& let) const {
  let.hasOp = true;
  let.ints.assign(pendingDims.begin(), pendingDims.end());
}

void Checker::bindNothing(const syn::Pattern* pattern) {
  if (auto* name = pattern->tryAs<syn::NamePattern>()) {
    declareLocal(newVariable(name->name.text, types.error(), name->range, false));
  } else if (auto* tuple = pattern->tryAs<syn::TuplePattern>()) {
    for (const syn::Pattern* elem : tuple->elems)
      bindNothing(elem);
  } else if (auto* structure = pattern->tryAs<syn::StructPattern>()) {
    for (const syn::FieldPattern& field : structure->fields)
      bindNothing(field.pattern);
  }
}

void Checker::bindPattern(const syn::Pattern* pattern, Expr* value, bool isVar, std::vector<Expr*>& out) {
  if (auto* name = pattern->tryAs<syn::NamePattern>()) {
    Variable* variable = newVariable(name->name.text, value->type, name->range, isVar);
    declareLocal(variable);
    Expr* let = make(ExprKind::Let, types.unit(), pattern->range, {value});
    let->variable = variable;
    out.push_back(let);
    return;
  }
  if (pattern->is<syn::WildcardPattern>()) {
    out.push_back(value);
    return;
  }
  if (auto* tuple = pattern->tryAs<syn::TuplePattern>()) {
    Expr* plain = deref(value);
    if (plain->type->kind != TypeKind::Tuple || plain->type->elems.size() != tuple->elems.size()) {
      error("E0331", pattern->range,
            base::concat("a pattern of ", tuple->elems.size(), " elements cannot take `", text(value->type), "`"));
      return bindNothing(pattern);
    }
    if (plain->kind != ExprKind::Var)
      plain = temporary(plain, out);
    for (size_t i = 0; i < tuple->elems.size(); ++i) {
      Expr* field = make(ExprKind::Field, plain->type->elems[i], tuple->elems[i]->range, {plain});
      field->ints = {static_cast<int64_t>(i)};
      if (!tuple->elems[i]->is<syn::WildcardPattern>())
        bindPattern(tuple->elems[i], field, isVar, out);
    }
    return;
  }
  if (auto* structure = pattern->tryAs<syn::StructPattern>()) {
    Expr* plain = deref(value);
    if (plain->type->kind != TypeKind::Struct) {
      error("E0331", pattern->range, "a struct pattern cannot take `" + text(value->type) + "`");
      return bindNothing(pattern);
    }
    if (plain->kind != ExprKind::Var)
      plain = temporary(plain, out);
    for (const syn::FieldPattern& field : structure->fields) {
      Expr* part = checkMemberOfValue(plain, field.name, field.name.range);
      if (isError(part))
        bindNothing(field.pattern);
      else if (!field.pattern->is<syn::WildcardPattern>())
        bindPattern(field.pattern, part, isVar, out);
    }
    return;
  }
  if (!pattern->is<syn::ErrorPattern>())
    error("E0331", pattern->range, "this pattern does not match every value").help("use `match` or `if`");
  bindNothing(pattern);
}

Expr* Checker::convertReturn(Expr* value, Type result, SourceRange range) {
  const SourceRange declared = returns.back().declared;
  const std::string_view because = "the result's type";
  if (isError(value) || isError(result))
    return isError(result) ? errorExpr(range) : value;
  if (function->isKernel && result->isTensor() && !returns.back().isClosure) {
    Expr* plain = deref(value);
    if (plain->type->kind == TypeKind::Scalar || plain->type->kind == TypeKind::Struct ||
        plain->type == result->elem)  // this thread's element
      return storeConvert(plain, result->elem, declared, because);
  }
  if (function->isKernel && result->kind == TypeKind::Tuple && value->kind == ExprKind::MakeTuple &&
      value->args.size() == result->elems.size()) {
    for (size_t i = 0; i < value->args.size(); ++i) {
      value->args[i] = convertReturn(value->args[i], result->elems[i], value->args[i]->range);
      if (isError(value->args[i]))
        return errorExpr(range);
    }
    return value;
  }
  if (!returns.back().isClosure)
    if (Expr* tile = returnedTile(value, result, declared))
      return tile;
  return convert(value, result, Site::Return, declared, because);
}

/// A scalar stored to memory is rounded to the destination's float type.
Expr* Checker::storeConvert(Expr* value, Type to, SourceRange because, std::string_view becauseText) {
  const bool before = storesToTensor_;
  storesToTensor_ = true;
  Expr* out = convert(value, to, Site::Assign, because, becauseText);
  storesToTensor_ = before;
  return out;
}

Expr* Checker::checkReturn(const syn::ReturnExpr* expr) {
  if (returns.empty()) {
    error("E0323", expr->range, "`return` is only possible inside a function");
    return errorExpr(expr->range);
  }
  const ReturnTarget target = returns.back();
  Expr* out = make(ExprKind::Return, types.never(), expr->range);
  if (!target.result) {  // a closure without a declared result
    Expr* value = expr->value ? check(expr->value) : nullptr;
    if (value && isError(value))
      return errorExpr(expr->range);
    returns.back().result = value ? leaveScope(value->type, target.firstLocal) : types.unit();
    if (value)
      out->args = {value};
    return out;
  }
  Type result = target.result;
  if (result->kind == TypeKind::Unit) {
    if (expr->value) {
      Expr* value = check(expr->value);
      if (!isError(value) && value->type->kind != TypeKind::Unit)
        error("E0301", expr->value->range,
              "this function returns nothing, but a `" + text(value->type) + "` is returned")
            .label(target.declared, "declare the result here: `-> " + text(value->type) + "`");
    }
    return out;
  }
  if (!expr->value) {
    if (!isError(result))
      error("E0324", expr->range, "`return` needs a value")
          .label(target.declared, "a `" + text(result) + "` is promised here");
    return out;
  }
  Expr* value = check(expr->value, result);
  value = convertReturn(value, result, expr->value->range);
  if (isError(value))
    return errorExpr(expr->range);
  out->args = {value};
  return out;
}

}  // namespace vortex::lang
