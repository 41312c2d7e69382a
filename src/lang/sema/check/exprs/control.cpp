// if, while, loop, for, break, continue, closures.
#include "lang/sema/check/exprs/control.h"

#include "lang/sema/check/exprs/branches.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/exprs/open.h"
#include "lang/sema/check/exprs/statements.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/implements.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/check/types/shapes.h"

#include "base/counted.h"

#include <algorithm>

namespace vortex::lang {

static Expr* forByIndex(BodyState& body, Expr* loop);
static Variable* loopVariable(BodyState& body, const syn::Pattern* pattern, Type type, std::vector<Expr*>& bindings,
                              std::optional<BodyState::Slot> slot = {});

Expr* condition(BodyState& body, const syn::Expr* expr) {
  Expr* out = value(body, expr, body.types.boolean());
  if (isError(out) || out->type->isScalar(Scalar::Bool) || out->type->kind == TypeKind::Never)
    return out;
  auto builder = error(body, "E0319", expr->range, "a condition is a `bool`, not `" + text(body, out->type) + "`");
  if (out->type->kind == TypeKind::Scalar)
    builder.help(base::concat("compare it: `", operandText(body, out), " != 0`"));
  else if (out->type->isTensor())
    builder.help("to choose element by element, use `select(condition, a, b)`");
  return errorExpr(body, expr->range);
}

/// Branches nest in the typed program; passes over it recurse.
bool checkBranchCount(BodyState& body, size_t count, SourceRange range) {
  constexpr size_t kMaxBranches = 500;
  if (count <= kMaxBranches)
    return true;
  error(body, "E0341", range, base::concat("more than ", kMaxBranches, " branches: this has ", count))
      .help("look the value up in an array, or split the code into functions");
  return false;
}

Expr* checkIf(BodyState& body, const syn::IfExpr* expr, Type expected) {
  if (!checkBranchCount(body, expr->branches.size(), expr->range))
    return errorExpr(body, expr->range);
  const bool wantsValue = expr->elseBody && !(expected && expected->kind == TypeKind::Unit);
  Type hint = wantsValue ? expected : body.types.unit();
  std::vector<Expr*> conditions, bodies;
  bool failed = false;
  for (const syn::IfBranch& branch : expr->branches) {
    conditions.push_back(condition(body, branch.condition));
    bodies.push_back(checkBlock(body, branch.body, hint));
    const Type made = bodies.back()->type;
    const bool tells = (made->kind == TypeKind::Scalar && !isOpen(body, bodies.back())) ||
                       (made->kind == TypeKind::Vec && !isError(made->elem));
    if (wantsValue && !hint && tells)
      hint = made;
    failed = failed || isError(conditions.back());
  }
  Expr* otherwise = expr->elseBody ? checkBlock(body, expr->elseBody, hint) : nullptr;
  if (failed)
    return errorExpr(body, expr->range);
  Type type = body.types.unit();
  if (otherwise) {
    std::vector<Expr**> branches;
    for (Expr*& inner : bodies)
      branches.push_back(&inner);
    branches.push_back(&otherwise);
    type = joinBranches(body, branches, wantsValue ? expected : body.types.unit(), expr->range);
  }
  if (isError(type))
    return errorExpr(body, expr->range);
  Expr* out = otherwise;
  for (size_t i = expr->branches.size(); i-- > 0;) {
    std::vector<Expr*> args{conditions[i], bodies[i]};
    if (out)
      args.push_back(out);
    out = make(body, ExprKind::If, type, expr->branches[i].range, std::move(args));
  }
  out->range = expr->range;
  return out;
}

Expr* checkWhile(BodyState& body, const syn::WhileExpr* expr) {
  std::vector<BodyState::Loop> around = std::exchange(body.loops, {});  // a jump here would leave which loop?
  Expr* test = condition(body, expr->condition);
  body.loops = std::move(around);
  body.loops.push_back({});
  Expr* inner = checkBlock(body, expr->body, body.types.unit());
  body.loops.pop_back();
  return isError(test) ? errorExpr(body, expr->range)
                       : make(body, ExprKind::While, body.types.unit(), expr->range, {test, inner});
}

Expr* checkLoop(BodyState& body, const syn::LoopExpr* expr, Type expected) {
  BodyState::Loop loop;
  loop.hasValue = true;
  loop.expected = expected && expected->kind == TypeKind::Unit ? nullptr : expected;
  loop.firstLocal = body.locals.size();
  body.loops.push_back(loop);
  Expr* inner = checkBlock(body, expr->body, body.types.unit());
  loop = body.loops.back();
  body.loops.pop_back();
  Type type = loop.result ? loop.result : loop.broken ? body.types.unit() : body.types.never();
  if (isError(type))
    return errorExpr(body, expr->range);
  return make(body, ExprKind::Loop, type, expr->range, {inner});
}

/// `break 1` takes the type of a later `break 0.5`, as the branches of an `if` do.
static void adaptEarlierBreaks(BodyState& body, Expr* value) {
  BodyState::Loop& loop = body.loops.back();
  if (!loop.result || loop.result == loop.expected || loop.result == value->type)
    return;
  std::vector<Expr*> values{value};
  for (Expr* each : loop.breaks)
    values.push_back(each->args.front());
  const Type type = commonType(body, values, nullptr);
  if (!type || isError(type))
    return;
  for (Expr* each : loop.breaks)
    if (canTake(body, each->args.front(), type))
      adapt(body, each->args.front(), type);
  loop.result = type;
}

Expr* checkBreak(BodyState& body, const syn::BreakExpr* expr) {
  if (body.loops.size() <= (body.returns.empty() ? 0 : body.returns.back().loopDepth)) {
    error(body, "E0323", expr->range, "`break` is only possible inside a loop");
    return errorExpr(body, expr->range);
  }
  Expr* out = make(body, ExprKind::Break, body.types.never(), expr->range);
  BodyState::Loop& loop = body.loops.back();
  loop.broken = true;
  if (!expr->value) {
    if (loop.result && !isError(loop.result) && loop.result->kind != TypeKind::Unit)
      error(body, "E0323", expr->range, "this `break` needs a value: another one in the loop has one");
    return out;
  }
  if (!loop.hasValue) {
    error(body, "E0323", expr->range, "only a `loop` can give a value with `break`")
        .help("assign to a `var` declared before the loop");
    return errorExpr(body, expr->range);
  }
  Type hint = loop.result ? loop.result : loop.expected;
  Expr* value = check(body, expr->value, hint);
  adaptEarlierBreaks(body, value);
  if (body.loops.back().result && canTake(body, value, body.loops.back().result))
    adapt(body, value, body.loops.back().result);
  if (body.loops.back().result)
    value = convert(body, value, body.loops.back().result, Site::Return);
  body.loops.back().result =
      body.loops.back().result ? body.loops.back().result : leaveScope(body, value->type, body.loops.back().firstLocal);
  if (isError(value))
    return errorExpr(body, expr->range);
  out->args = {value};
  body.loops.back().breaks.push_back(out);
  return out;
}

Expr* checkContinue(BodyState& body, const syn::ContinueExpr* expr) {
  if (body.loops.size() <= (body.returns.empty() ? 0 : body.returns.back().loopDepth)) {
    error(body, "E0323", expr->range, "`continue` is only possible inside a loop");
    return errorExpr(body, expr->range);
  }
  return make(body, ExprKind::Continue, body.types.never(), expr->range);
}

/// The list of `list.enumerate()`; null for everything else.
static const syn::Expr* enumeratedList(const syn::Expr* expr) {
  auto* call = expr->tryAs<syn::CallExpr>();
  auto* member = call ? call->callee->tryAs<syn::MemberExpr>() : nullptr;
  return member && member->name.text == "enumerate" && call->args.empty() ? member->base : nullptr;
}

/// `elem`: what the elements of a list or range of plain numbers shall be, if a use has said so.
static Expr* iterable(BodyState& body, const syn::Expr* expr, Type elem) {
  const bool isList = expr->is<syn::ArrayExpr>();
  Expr* out = value(body, expr, !elem ? nullptr : isList ? body.types.array(elem, 0) : body.types.range(elem));
  if (elem && out->kind == ExprKind::Range && out->type->elem != elem) {
    for (Expr*& bound : out->args) {
      bound =
          bound->kind == ExprKind::Int ? adaptLiteral(body, bound, elem) : convert(body, bound, elem, Site::Operand);
      if (isError(bound))
        return errorExpr(body, expr->range);
    }
    out->type = body.types.range(elem);
  }
  if (isError(out))
    return out;
  if (out->kind == ExprKind::MakeArray && out->type->elem->kind == TypeKind::Scalar &&
      isInteger(out->type->elem->scalar)) {
    bool allLiteral = true;
    for (const Expr* elem : out->args)
      allLiteral = allLiteral && elem->kind == ExprKind::Int;
    if (allLiteral) {
      Expr* list = make(body, ExprKind::IntList, out->type, out->range);
      for (const Expr* elem : out->args)
        list->intList.push_back(elem->intValue);
      return list;
    }
  }
  switch (out->type->kind) {
  case TypeKind::Range:
  case TypeKind::Array: return out;
  case TypeKind::Vec:
    if (!inKernel(body))
      return out;
    break;
  default: break;
  }
  auto builder = error(body, "E0330", expr->range, "`for` cannot walk over `" + text(body, out->type) + "`");
  if (out->type->kind == TypeKind::Scalar && isInteger(out->type->scalar))
    builder.help(base::concat("write a range: `0..", body.session.sources.text(expr->range), "`"));
  else if (out->type->isTensor())
    builder.help("walk over its indices: `for i in 0..N`");
  else if (out->type->kind == TypeKind::String)
    builder.help("a text is one value; `read_file` gives the bytes of a file as a list");
  return errorExpr(body, expr->range);
}

static void noteInterval(BodyState& body, const Variable* variable, const Expr* over) {
  if (!variable->type->isScalar(Scalar::I32))
    return;
  if (over->kind == ExprKind::Range)
    if (const auto a = literalInterval(body, over->args[0], 1), b = literalInterval(body, over->args[1], 1); a && b)
      body.flexible[variable] = {std::min(a->low, b->low), std::max(a->high, b->high)};
  if (over->kind == ExprKind::IntList && !over->intList.empty())
    body.flexible[variable] = {*std::min_element(over->intList.begin(), over->intList.end()),
                               *std::max_element(over->intList.begin(), over->intList.end())};
}

Expr* checkFor(BodyState& body, const syn::ForExpr* expr) {
  const syn::Expr* counted = enumeratedList(expr->iterable);
  const bool enumerated = counted != nullptr;
  const syn::Expr* walkedOver = enumerated ? counted : expr->iterable;
  const syn::Pattern* pattern = expr->pattern;
  auto* pair = pattern->tryAs<syn::TuplePattern>();
  const bool isPair = pair && pair->elems.size() == 2;
  const syn::Pattern* valuePattern = enumerated && isPair ? pair->elems[0] : pattern;
  const auto known = body.inferred.find(valuePattern->range.begin);
  Expr* over = iterable(body, walkedOver, known == body.inferred.end() ? nullptr : known->second);
  LocalScope scope(body);
  Expr* out = make(body, ExprKind::For, body.types.unit(), expr->range);
  std::vector<Expr*> bindings;
  if (isError(over)) {
    bindNothing(body, expr->pattern);
  } else {
    Type elem = over->type->elem;
    if (enumerated && !isPair) {
      error(body, "E0331", pattern->range, "`.enumerate()` gives pairs").help("write `for (value, index) in …`");
      bindNothing(body, pattern);
    } else {
      out->variable =
          loopVariable(body, valuePattern, elem, bindings, openElements(body, valuePattern, over, walkedOver));
      noteInterval(body, out->variable, over);
      if (enumerated)
        out->indexVariable = loopVariable(body, pair->elems[1], usize(body), bindings);
    }
  }
  body.loops.push_back({});
  Expr* inner = checkBlock(body, expr->body, body.types.unit());
  body.loops.pop_back();
  if (isError(over) || !out->variable)
    return errorExpr(body, expr->range);
  if (!bindings.empty()) {
    bindings.push_back(inner);
    Type type = inner->type;
    inner = make(body, ExprKind::Block, type, inner->range, std::move(bindings));
  }
  out->args = {over, inner};
  const Type list = stripRef(over->type);
  const bool isAggregate = list->kind == TypeKind::Array && list->elem->kind != TypeKind::Scalar &&
                           list->elem->kind != TypeKind::Enum && isCopy(list->elem);
  return inKernel(body) && isAggregate ? forByIndex(body, out) : out;
}

/// `for x in a` of structs, tuples and arrays in a kernel walks over the positions: `for i in 0..N { let x = a[i] … }`.
static Expr* forByIndex(BodyState& body, Expr* loop) {
  Expr *over = deref(body, loop->args[0]), *inner = loop->args[1];
  std::vector<Expr*> all;
  if (over->kind != ExprKind::Var)
    over = temporary(body, over, all);
  Variable* position =
      loop->indexVariable ? loop->indexVariable : newVariable(body, "", usize(body), loop->range, false);
  Expr* element =
      make(body, ExprKind::Element, over->type->elem, over->range, {over, makeVar(body, position, over->range)});
  Expr* let = make(body, ExprKind::Let, body.types.unit(), over->range, {element});
  let->variable = loop->variable;
  const Type type = inner->type;
  inner = make(body, ExprKind::Block, type, inner->range, {let, inner});
  Expr* range = make(body, ExprKind::Range, body.types.range(usize(body)), over->range,
                     {makeInt(body, 0, usize(body), over->range),
                      makeInt(body, static_cast<__int128>(over->type->count), usize(body), over->range)});
  Expr* out = make(body, ExprKind::For, body.types.unit(), loop->range, {range, inner});
  out->variable = position;
  if (all.empty())
    return out;
  all.push_back(out);
  return make(body, ExprKind::Block, body.types.unit(), loop->range, std::move(all));
}

static Variable* loopVariable(BodyState& body, const syn::Pattern* pattern, Type type, std::vector<Expr*>& bindings,
                              std::optional<BodyState::Slot> slot) {
  auto* name = pattern->tryAs<syn::NamePattern>();
  Variable* variable = newVariable(body, name ? name->name.text : std::string_view(), type, pattern->range, false);
  if (slot)
    body.slots[variable] = std::move(*slot);
  if (name)
    declareLocal(body, variable);
  else if (!pattern->is<syn::WildcardPattern>())
    bindPattern(body, pattern, makeVar(body, variable, pattern->range), false, bindings);
  return variable;
}

Expr* checkClosure(BodyState& body, const syn::ClosureExpr* expr, Type expected) {
  const bool hasHint = expected && expected->kind == TypeKind::Closure;
  if (hasHint && expected->elems.size() != expr->params.size()) {
    error(body, "E0308", expr->range,
          base::concat("this closure must take ", base::counted(expected->elems.size(), "argument"), ", not ",
                       expr->params.size()));
    return errorExpr(body, expr->range);
  }
  LocalScope scope(body);
  Expr* out = make(body, ExprKind::Closure, body.types.error(), expr->range);
  std::vector<Type> params;
  std::vector<Expr*> bindings;
  for (size_t i = 0; i < expr->params.size(); ++i) {
    const syn::ClosureParam& param = expr->params[i];
    Type type = param.type ? resolveType(body, param.type, DimPolicy::Known) : hasHint ? expected->elems[i] : nullptr;
    if (!type) {
      error(body, "E0306", param.pattern->range, "the type of this parameter cannot be inferred")
          .help("declare it: `|x: f32| …`");
      type = body.types.error();
    }
    if (isError(type)) {
      for (const syn::ClosureParam& each : std::span(expr->params.begin() + i, expr->params.end()))
        bindNothing(body, each.pattern);
      check(body, expr->body);
      return errorExpr(body, expr->range);
    }
    params.push_back(type);
    const bool isTotal = body.open.contains(param.pattern->range.begin);
    out->variables.push_back(
        loopVariable(body, param.pattern, type, bindings,
                     isTotal ? std::optional(BodyState::Slot{param.pattern->range.begin, {}}) : std::nullopt));
  }
  Type result = expr->resultType ? resolveType(body, expr->resultType, DimPolicy::Known)
                : hasHint && expected->elem->kind != TypeKind::Error ? expected->elem
                                                                     : nullptr;
  body.returns.push_back(
      {result, expr->resultType ? expr->resultType->range : expr->range, true, body.loops.size(), body.locals.size()});
  Expr* inner = check(body, expr->body, result);
  if (!out->variables.empty() && body.slots.contains(out->variables[0]) && result && !isError(inner))
    learnFromStore(body, makeVar(body, out->variables[0], expr->range), inner);
  if (result && result->kind != TypeKind::Unit && !isError(inner))
    inner = convert(body, inner, result, Site::Return, expr->resultType ? expr->resultType->range : SourceRange{},
                    "the closure's result");
  if (!result)
    result = body.returns.back().result ? body.returns.back().result : inner->type;
  body.returns.pop_back();
  if (isError(inner) || isError(result))
    return errorExpr(body, expr->range);
  if (!bindings.empty()) {
    bindings.push_back(inner);
    Type type = inner->type;
    inner = make(body, ExprKind::Block, type, inner->range, std::move(bindings));
  }
  out->args = {inner};
  out->type = body.types.closure(std::move(params), result);
  return out;
}

}  // namespace vortex::lang
