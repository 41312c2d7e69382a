// if, while, loop, for, break, continue, closures.
#include "lang/sema/check/checker.h"

#include "base/text.h"

namespace vortex::lang {

Expr* Checker::condition(const syn::Expr* expr) {
  Expr* out = value(expr, types.boolean());
  if (isError(out) || out->type->isScalar(Scalar::Bool) || out->type->kind == TypeKind::Never)
    return out;
  auto builder = error("E0319", expr->range, "a condition is a `bool`, not `" + text(out->type) + "`");
  if (out->type->kind == TypeKind::Scalar)
    builder.help(base::concat("compare it: `", session.sources.text(expr->range).substr(0, 40), " != 0`"));
  else if (out->type->isTensor())
    builder.help("to choose element by element, use `select(condition, a, b)`");
  return errorExpr(expr->range);
}

Type Checker::join(Type a, Type b) {
  if (a == b || b->kind == TypeKind::Never || isError(a))
    return a;
  if (a->kind == TypeKind::Never || isError(b))
    return b;
  if (!a->isTensor() || !b->isTensor() || a->elem != b->elem || a->rank() != b->rank() ||
      (inKernel() && !sameShape(a, b)))
    return nullptr;
  // In host code the extents of a tensor are part of its value: which one it is, is known when the branch is taken.
  std::vector<DimExpr> shape = a->shape;
  for (size_t i = 0; i < shape.size(); ++i)
    if (dimEqual(a->shape[i], b->shape[i]) != DimEqual::Yes)
      shape[i] = DimExpr::opaque(session.newOpaque());
  return types.tensorValue(a->elem, std::move(shape));
}

/// Gives the branches of an `if` or `match` one type. A value is wanted unless `expected` is unit.
Type Checker::joinBranches(std::vector<Expr**>& branches, Type expected, SourceRange range) {
  if (expected && expected->kind == TypeKind::Unit) {
    bool allNever = true;
    for (Expr** branch : branches)
      allNever = allNever && (*branch)->type->kind == TypeKind::Never;
    return allNever ? types.never() : types.unit();
  }
  Type type = nullptr;
  Expr* first = nullptr;
  for (Expr** branch : branches) {
    if (isError(*branch))
      return types.error();
    if ((*branch)->type->kind == TypeKind::Never)
      continue;
    if (!type) {
      type = (*branch)->type;
      first = *branch;
      continue;
    }
    Type joined = join(type, (*branch)->type);
    if (!joined && type->kind == TypeKind::Scalar && (*branch)->type->kind == TypeKind::Scalar) {
      Expr *a = tailOf(first), *b = tailOf(*branch);
      if (isAdaptable(b) && canAdapt(b, type)) {
        adaptTail(*branch, type);
        continue;
      }
      if (isAdaptable(a) && canAdapt(a, (*branch)->type)) {
        adaptTail(first, (*branch)->type);
        type = (*branch)->type;
        continue;
      }
    }
    if (!joined) {
      if (type->kind == TypeKind::Unit || (*branch)->type->kind == TypeKind::Unit)
        return types.unit();  // one branch has no value: the statement form
      auto builder =
          error("E0301", range,
                "the branches have different types: `" + text(type) + "` and `" + text((*branch)->type) + "`");
      builder.label(tailOf(first)->range, "`" + text(type) + "`")
          .label(tailOf(*branch)->range, "`" + text((*branch)->type) + "`");
      return types.error();
    }
    type = joined;
  }
  return type ? type : types.never();
}

Expr* Checker::tailOf(Expr* expr) const {
  while (expr->kind == ExprKind::Block && !expr->args.empty())
    expr = expr->args.back();
  return expr;
}
bool Checker::isAdaptable(const Expr* expr) const {
  return (expr->kind == ExprKind::Int && expr->type->isScalar(Scalar::I32)) ||
         (expr->kind == ExprKind::Float && expr->type->isScalar(Scalar::F32));
}
bool Checker::canAdapt(const Expr* expr, Type type) const {
  if (type->scalar == Scalar::Bool)
    return false;
  if (expr->kind == ExprKind::Float)
    return isFloat(type->scalar);
  return isFloat(type->scalar) || expr->intValue >= 0 || !isUnsigned(type->scalar);
}
void Checker::adaptTail(Expr* expr, Type type) {
  while (expr->kind == ExprKind::Block && !expr->args.empty()) {
    expr->type = type;
    expr = expr->args.back();
  }
  adaptLiteral(expr, type);
}

/// Branches nest in the typed program; passes over it recurse.
bool Checker::checkBranchCount(size_t count, SourceRange range) {
  constexpr size_t kMaxBranches = 500;
  if (count <= kMaxBranches)
    return true;
  error("E0341", range, base::concat("more than ", kMaxBranches, " branches: this has ", count))
      .help("look the value up in an array, or split the code into functions");
  return false;
}

Expr* Checker::checkIf(const syn::IfExpr* expr, Type expected) {
  if (!checkBranchCount(expr->branches.size(), expr->range))
    return errorExpr(expr->range);
  const bool wantsValue = expr->elseBody && !(expected && expected->kind == TypeKind::Unit);
  Type hint = wantsValue ? expected : types.unit();
  std::vector<Expr*> conditions, bodies;
  bool failed = false;
  for (const syn::IfBranch& branch : expr->branches) {
    conditions.push_back(condition(branch.condition));
    bodies.push_back(checkBlock(branch.body, hint));
    const Type made = bodies.back()->type;
    const bool tells = (made->kind == TypeKind::Scalar && !isAdaptable(tailOf(bodies.back()))) ||
                       (made->kind == TypeKind::Vec && !isError(made->elem));
    if (wantsValue && !hint && tells)
      hint = made;
    failed = failed || isError(conditions.back());
  }
  Expr* otherwise = expr->elseBody ? checkBlock(expr->elseBody, hint) : nullptr;
  Type type = types.unit();
  if (otherwise) {
    std::vector<Expr**> branches;
    for (Expr*& body : bodies)
      branches.push_back(&body);
    branches.push_back(&otherwise);
    type = joinBranches(branches, wantsValue ? expected : types.unit(), expr->range);
  }
  if (failed || isError(type))
    return errorExpr(expr->range);
  Expr* out = otherwise;
  for (size_t i = expr->branches.size(); i-- > 0;) {
    std::vector<Expr*> args{conditions[i], bodies[i]};
    if (out)
      args.push_back(out);
    out = make(ExprKind::If, type, expr->branches[i].range, std::move(args));
  }
  out->range = expr->range;
  return out;
}

Expr* Checker::checkWhile(const syn::WhileExpr* expr) {
  Expr* test = condition(expr->condition);
  loops.push_back({});
  Expr* body = checkBlock(expr->body, types.unit());
  loops.pop_back();
  return isError(test) ? errorExpr(expr->range) : make(ExprKind::While, types.unit(), expr->range, {test, body});
}

Expr* Checker::checkLoop(const syn::LoopExpr* expr, Type expected) {
  Loop loop;
  loop.hasValue = true;
  loop.expected = expected && expected->kind == TypeKind::Unit ? nullptr : expected;
  loop.firstLocal = locals.size();
  loops.push_back(loop);
  Expr* body = checkBlock(expr->body, types.unit());
  loop = loops.back();
  loops.pop_back();
  Type type = loop.result ? loop.result : loop.broken ? types.unit() : types.never();
  if (isError(type))
    return errorExpr(expr->range);
  return make(ExprKind::Loop, type, expr->range, {body});
}

Expr* Checker::checkBreak(const syn::BreakExpr* expr) {
  if (loops.size() <= (returns.empty() ? 0 : returns.back().loopDepth)) {
    error("E0323", expr->range, "`break` is only possible inside a loop");
    return errorExpr(expr->range);
  }
  Expr* out = make(ExprKind::Break, types.never(), expr->range);
  Loop& loop = loops.back();
  loop.broken = true;
  if (!expr->value) {
    if (loop.result && !isError(loop.result) && loop.result->kind != TypeKind::Unit)
      error("E0323", expr->range, "this `break` needs a value: another one in the loop has one");
    return out;
  }
  if (!loop.hasValue) {
    error("E0323", expr->range, "only a `loop` can give a value with `break`")
        .help("assign to a `var` declared before the loop");
    return errorExpr(expr->range);
  }
  Type hint = loop.result ? loop.result : loop.expected;
  Expr* value = check(expr->value, hint);
  if (loops.back().result)
    value = convert(value, loops.back().result, Site::Return);
  loops.back().result = loops.back().result ? loops.back().result : leaveScope(value->type, loops.back().firstLocal);
  if (isError(value))
    return errorExpr(expr->range);
  out->args = {value};
  return out;
}

Expr* Checker::checkContinue(const syn::ContinueExpr* expr) {
  if (loops.size() <= (returns.empty() ? 0 : returns.back().loopDepth)) {
    error("E0323", expr->range, "`continue` is only possible inside a loop");
    return errorExpr(expr->range);
  }
  return make(ExprKind::Continue, types.never(), expr->range);
}

/// What a `for` walks over; `enumerated` is set for `x.enumerate()`.
/// The list of `list.enumerate()`; null for everything else.
static const syn::Expr* enumeratedList(const syn::Expr* expr) {
  auto* call = expr->tryAs<syn::CallExpr>();
  auto* member = call ? call->callee->tryAs<syn::MemberExpr>() : nullptr;
  return member && member->name.text == "enumerate" && call->args.empty() ? member->base : nullptr;
}

/// `elem`: what the elements of a list or range of plain numbers shall be, if a use has said so.
Expr* Checker::iterable(const syn::Expr* expr, Type elem) {
  const bool isList = expr->is<syn::ArrayExpr>();
  Expr* out = value(expr, !elem ? nullptr : isList ? types.array(elem, 0) : types.range(elem));
  if (elem && out->kind == ExprKind::Range && out->type->elem != elem) {
    for (Expr*& bound : out->args) {
      bound = bound->kind == ExprKind::Int ? adaptLiteral(bound, elem) : convert(bound, elem, Site::Operand);
      if (isError(bound))
        return errorExpr(expr->range);
    }
    out->type = types.range(elem);
  }
  if (isError(out))
    return out;
  if (out->kind == ExprKind::MakeArray && out->type->elem->kind == TypeKind::Scalar &&
      isInteger(out->type->elem->scalar)) {
    bool allLiteral = true;
    for (const Expr* elem : out->args)
      allLiteral = allLiteral && elem->kind == ExprKind::Int;
    if (allLiteral) {
      Expr* list = make(ExprKind::IntList, out->type, out->range);
      for (const Expr* elem : out->args)
        list->intList.push_back(elem->intValue);
      return list;
    }
  }
  switch (out->type->kind) {
  case TypeKind::Range:
  case TypeKind::Array: return out;
  case TypeKind::Vec:
    if (!inKernel())
      return out;
    break;
  default: break;
  }
  auto builder = error("E0330", expr->range, "`for` cannot walk over `" + text(out->type) + "`");
  if (out->type->kind == TypeKind::Scalar && isInteger(out->type->scalar))
    builder.help(base::concat("write a range: `0..", session.sources.text(expr->range), "`"));
  else if (out->type->isTensor())
    builder.help("walk over its indices: `for i in 0..N`");
  return errorExpr(expr->range);
}

/// A bound of a range whose type may still change: a plain number, or a variable that had one.
bool Checker::isLearnable(const syn::Expr* written) {
  if (isUntyped(written))
    return true;
  auto* name = written->tryAs<syn::NameExpr>();
  const Local* local = name ? findLocal(name->name.text) : nullptr;
  return local && local->variable &&
         (flexible.contains(local->variable) || defaulted.contains(local->variable) ||
          walked.contains(local->variable));
}

void Checker::learnLoopVariable(Variable* variable, const Expr* over, const syn::Expr* written) {
  auto* range = written->tryAs<syn::RangeExpr>();
  const bool isNumbers = isUntypedList(written) || (range && isLearnable(range->begin) && isLearnable(range->end));
  const bool isKnown = inferred.contains(variable->range.begin);
  if (!isKnown && (isNumbers || (over->kind == ExprKind::Var && defaulted.contains(over->variable))))
    walked[variable] = over;
  const bool isI32 = variable->type->isScalar(Scalar::I32);
  if (over->kind == ExprKind::Range && isI32 && over->args[0]->kind == ExprKind::Int &&
      over->args[1]->kind == ExprKind::Int && over->args.size() == 2)
    flexible[variable] = {over->args[0]->intValue, over->args[1]->intValue};
  if (over->kind == ExprKind::IntList && isI32 && !over->intList.empty())
    flexible[variable] = {*std::min_element(over->intList.begin(), over->intList.end()),
                          *std::max_element(over->intList.begin(), over->intList.end())};
}

Expr* Checker::checkFor(const syn::ForExpr* expr) {
  const syn::Expr* counted = enumeratedList(expr->iterable);
  const bool enumerated = counted != nullptr;
  const syn::Expr* walkedOver = enumerated ? counted : expr->iterable;
  const syn::Pattern* pattern = expr->pattern;
  auto* pair = pattern->tryAs<syn::TuplePattern>();
  const bool isPair = pair && pair->elems.size() == 2;
  const syn::Pattern* valuePattern = enumerated && isPair ? pair->elems[0] : pattern;
  auto* valueName = valuePattern->tryAs<syn::NamePattern>();
  auto known = valueName ? inferred.find(valueName->name.range.begin) : inferred.end();
  Expr* over = iterable(walkedOver, known == inferred.end() ? nullptr : known->second);
  LocalScope scope(*this);
  Expr* out = make(ExprKind::For, types.unit(), expr->range);
  std::vector<Expr*> bindings;
  if (isError(over)) {
    bindNothing(expr->pattern);
  } else {
    Type elem = over->type->elem;
    if (enumerated && !isPair) {
      error("E0331", pattern->range, "`.enumerate()` gives pairs").help("write `for (value, index) in …`");
      bindNothing(pattern);
    } else {
      out->variable = loopVariable(valuePattern, elem, bindings);
      learnLoopVariable(out->variable, over, walkedOver);
      if (enumerated)
        out->indexVariable = loopVariable(pair->elems[1], usize(), bindings);
    }
  }
  loops.push_back({});
  Expr* body = checkBlock(expr->body, types.unit());
  loops.pop_back();
  if (isError(over) || !out->variable)
    return errorExpr(expr->range);
  if (!bindings.empty()) {
    bindings.push_back(body);
    Type type = body->type;
    body = make(ExprKind::Block, type, body->range, std::move(bindings));
  }
  out->args = {over, body};
  const Type list = stripRef(over->type);
  const bool isAggregate = list->kind == TypeKind::Array && list->elem->kind != TypeKind::Scalar &&
                           list->elem->kind != TypeKind::Enum && isCopy(list->elem);
  return inKernel() && isAggregate ? forByIndex(out) : out;
}

/// `for x in a` of structs, tuples and arrays in a kernel walks over the positions: `for i in 0..N { let x = a[i] … }`.
Expr* Checker::forByIndex(Expr* loop) {
  Expr *over = deref(loop->args[0]), *body = loop->args[1];
  std::vector<Expr*> all;
  if (over->kind != ExprKind::Var)
    over = temporary(over, all);
  Variable* position = loop->indexVariable ? loop->indexVariable : newVariable("", usize(), loop->range, false);
  Expr* element = make(ExprKind::Element, over->type->elem, over->range, {over, makeVar(position, over->range)});
  Expr* let = make(ExprKind::Let, types.unit(), over->range, {element});
  let->variable = loop->variable;
  const Type type = body->type;
  body = make(ExprKind::Block, type, body->range, {let, body});
  Expr* range =
      make(ExprKind::Range, types.range(usize()), over->range,
           {makeInt(0, usize(), over->range), makeInt(static_cast<__int128>(over->type->count), usize(), over->range)});
  Expr* out = make(ExprKind::For, types.unit(), loop->range, {range, body});
  out->variable = position;
  if (all.empty())
    return out;
  all.push_back(out);
  return make(ExprKind::Block, types.unit(), loop->range, std::move(all));
}

Variable* Checker::loopVariable(const syn::Pattern* pattern, Type type, std::vector<Expr*>& bindings) {
  auto* name = pattern->tryAs<syn::NamePattern>();
  Variable* variable = newVariable(name ? name->name.text : std::string_view(), type, pattern->range, false);
  if (name)
    declareLocal(variable);
  else if (!pattern->is<syn::WildcardPattern>())
    bindPattern(pattern, makeVar(variable, pattern->range), false, bindings);
  return variable;
}

Expr* Checker::checkClosure(const syn::ClosureExpr* expr, Type expected) {
  const bool hasHint = expected && expected->kind == TypeKind::Closure;
  if (hasHint && expected->elems.size() != expr->params.size()) {
    error("E0308", expr->range,
          base::concat("this closure must take ", expected->elems.size(), " argument",
                       expected->elems.size() == 1 ? "" : "s", ", not ", expr->params.size()));
    return errorExpr(expr->range);
  }
  LocalScope scope(*this);
  Expr* out = make(ExprKind::Closure, types.error(), expr->range);
  std::vector<Type> params;
  std::vector<Expr*> bindings;
  for (size_t i = 0; i < expr->params.size(); ++i) {
    const syn::ClosureParam& param = expr->params[i];
    Type type = param.type ? resolveType(param.type, DimPolicy::Known) : hasHint ? expected->elems[i] : nullptr;
    if (!type) {
      error("E0306", param.pattern->range, "the type of this parameter cannot be inferred")
          .help("declare it: `|x: f32| …`");
      type = types.error();
    }
    if (isError(type)) {
      bindNothing(param.pattern);
      check(expr->body);
      return errorExpr(expr->range);
    }
    params.push_back(type);
    out->variables.push_back(loopVariable(param.pattern, type, bindings));
    if (totals.contains(out->variables.back()->range.begin))
      defaulted.insert(out->variables.back());
  }
  Type result = expr->resultType                                     ? resolveType(expr->resultType, DimPolicy::Known)
                : hasHint && expected->elem->kind != TypeKind::Error ? expected->elem
                                                                     : nullptr;
  returns.push_back(
      {result, expr->resultType ? expr->resultType->range : expr->range, true, loops.size(), locals.size()});
  Expr* body = check(expr->body, result);
  const bool isTotal = !out->variables.empty() && defaulted.contains(out->variables[0]);
  if (isTotal && result && body->type != result && body->type->kind == TypeKind::Scalar)
    learnType(makeVar(out->variables[0], expr->range), body->type);
  if (result && result->kind != TypeKind::Unit && !isError(body))
    body = convert(body, result, Site::Return, expr->resultType ? expr->resultType->range : SourceRange{},
                   "the closure's result");
  if (!result)
    result = returns.back().result ? returns.back().result : body->type;
  returns.pop_back();
  if (isError(body) || isError(result))
    return errorExpr(expr->range);
  if (!bindings.empty()) {
    bindings.push_back(body);
    Type type = body->type;
    body = make(ExprKind::Block, type, body->range, std::move(bindings));
  }
  out->args = {body};
  out->type = types.closure(std::move(params), result);
  return out;
}

}  // namespace vortex::lang
