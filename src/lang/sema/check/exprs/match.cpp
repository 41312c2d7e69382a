// `match` as a chain of ifs, with the check that some arm always matches.
#include "lang/sema/check/exprs/match.h"
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/exprs/branches.h"
#include "lang/sema/check/exprs/control.h"
#include "lang/sema/check/exprs/exhaustive.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/name_expr.h"
#include "lang/sema/check/exprs/operators.h"
#include "lang/sema/check/exprs/statements.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"

#include "base/text.h"

namespace vortex::lang {

static Expr* guardedTest(BodyState& body, Expr* test, const std::vector<Expr*>& bindings, Expr* guard);
static void reportUncovered(BodyState& body, const syn::MatchExpr* expr, const std::vector<std::string>& missing);

static Expr* literalTest(BodyState& body, const syn::Expr* literal, Expr* subject) {
  Expr* value = check(body, literal, subject->type);
  if (isError(value))
    return value;
  if (value->type != subject->type) {
    error(body, "E0301", literal->range,
          "expected `" + text(body, subject->type) + "`, found `" + text(body, value->type) + "`");
    return errorExpr(body, literal->range);
  }
  return binary(body, BinaryOp::Eq, subject, value, literal->range, literal->range);
}

Expr* conjunction(BodyState& body, Expr* a, Expr* b) {
  if (!a || !b)
    return a ? a : b;
  if (isError(a) || isError(b))
    return isError(a) ? a : b;
  Expr* out = make(body, ExprKind::Binary, body.types.boolean(), b->range, {a, b});
  out->binaryOp = BinaryOp::And;
  return out;
}

/// Condition under which the pattern matches (null: always) and the bindings it makes.
static Expr* patternTest(BodyState& body, const syn::Pattern* pattern, Expr* subject, std::vector<Expr*>& bindings) {
  switch (pattern->kind) {
  case syn::PatternKind::Error: return errorExpr(body, pattern->range);
  case syn::PatternKind::Wildcard: return nullptr;
  case syn::PatternKind::Name: {
    const syn::Name& name = pattern->as<syn::NamePattern>()->name;
    const Symbol* symbol = findLocal(body, name.text) ? nullptr : body.items->find(name.text);
    if (symbol && symbol->kind == SymbolKind::Const) {
      Expr* value = constUse(body, *symbol, pattern->range, subject->type);
      return isError(value) ? value : binary(body, BinaryOp::Eq, subject, value, pattern->range, pattern->range);
    }
    bindPattern(body, pattern, subject, false, bindings);
    return nullptr;
  }
  case syn::PatternKind::Path: {
    auto* path = pattern->as<syn::PathPattern>();
    const syn::Name& variant = path->path.back();
    Type type = subject->type;
    if (!path->isDot && path->path.size() >= 2) {
      const Symbol* symbol = body.items->find(path->path[0].text);
      for (size_t i = 1; symbol && symbol->kind == SymbolKind::Module && i + 1 < path->path.size(); ++i) {
        auto found = symbol->scope->symbols.find(path->path[i].text);
        symbol = found == symbol->scope->symbols.end() ? nullptr : &found->second;
      }
      if (!symbol || symbol->kind != SymbolKind::Enum) {
        error(body, "E0201", pattern->range,
              base::concat("`", body.session.sources.text(pattern->range), "` is not an enum value"));
        return errorExpr(body, pattern->range);
      }
      type = body.types.enumeration(body.session.structInstance(symbol->item, symbol->scope, {})->decl);
    }
    if (type->kind != TypeKind::Enum || type != subject->type) {
      error(body, "E0301", pattern->range,
            "expected `" + text(body, subject->type) + "`, found `" + text(body, type) + "`");
      return errorExpr(body, pattern->range);
    }
    Expr* value = enumVariant(body, type, variant, pattern->range);
    return isError(value) ? value : binary(body, BinaryOp::Eq, subject, value, pattern->range, pattern->range);
  }
  case syn::PatternKind::Literal: return literalTest(body, pattern->as<syn::LiteralPattern>()->value, subject);
  case syn::PatternKind::Range: {
    auto* range = pattern->as<syn::RangePattern>();
    Expr *low = nullptr, *high = nullptr;
    if (range->begin) {
      Expr* begin = check(body, range->begin, subject->type);
      low = isError(begin) ? begin : binary(body, BinaryOp::Ge, subject, begin, pattern->range, pattern->range);
    }
    if (range->end) {
      Expr* end = check(body, range->end, subject->type);
      high = isError(end) ? end : binary(body, BinaryOp::Lt, subject, end, pattern->range, pattern->range);
    }
    return conjunction(body, low, high);
  }
  case syn::PatternKind::Tuple: {
    auto* tuple = pattern->as<syn::TuplePattern>();
    if (subject->type->kind != TypeKind::Tuple || subject->type->elems.size() != tuple->elems.size()) {
      error(body, "E0331", pattern->range,
            base::concat("a pattern of ", tuple->elems.size(), " elements cannot take `", text(body, subject->type),
                         "`"));
      return errorExpr(body, pattern->range);
    }
    Expr* test = nullptr;
    for (size_t i = 0; i < tuple->elems.size(); ++i) {
      Expr* field = make(body, ExprKind::Field, subject->type->elems[i], subject->range, {subject});
      field->ints = {static_cast<int64_t>(i)};
      test = conjunction(body, test, patternTest(body, tuple->elems[i], field, bindings));
    }
    return test;
  }
  case syn::PatternKind::Struct: {
    Expr* test = nullptr;
    for (const syn::FieldPattern& field : pattern->as<syn::StructPattern>()->fields) {
      Expr* part = checkMemberOfValue(body, subject, field.name, field.name.range);
      if (isError(part))
        return part;
      test = conjunction(body, test, patternTest(body, field.pattern, part, bindings));
    }
    return test;
  }
  case syn::PatternKind::Or: {
    Expr* test = nullptr;
    for (const syn::Pattern* alternative : pattern->as<syn::OrPattern>()->alternatives) {
      const size_t before = bindings.size();
      Expr* one = patternTest(body, alternative, subject, bindings);
      if (bindings.size() != before) {
        error(body, "E0331", alternative->range, "a pattern with `|` cannot bind names");
        return errorExpr(body, pattern->range);
      }
      if (!one)
        return nullptr;
      if (isError(one))
        return one;
      if (test) {
        Expr* both = make(body, ExprKind::Binary, body.types.boolean(), pattern->range, {test, one});
        both->binaryOp = BinaryOp::Or;
        one = both;
      }
      test = one;
    }
    return test;
  }
  }
  return nullptr;
}

Expr* checkMatch(BodyState& body, const syn::MatchExpr* expr, Type expected) {
  if (!checkBranchCount(body, expr->arms.size(), expr->range))
    return errorExpr(body, expr->range);
  Expr* subject = value(body, expr->subject);
  std::vector<Expr*> outer;
  const bool failedSubject = isError(subject);
  if (!failedSubject && subject->kind != ExprKind::Var)
    subject = temporary(body, subject, outer);
  struct Arm {
    Expr* test;
    Expr* body;
    std::vector<Expr*> bindings;
    SourceRange range;
  };
  std::vector<Arm> arms;
  std::vector<const Expr*> tests;  // of the arms without a guard
  bool coversEverything = false;
  bool failed = failedSubject;
  for (const syn::MatchArm& arm : expr->arms) {
    LocalScope scope(body);
    Arm made{nullptr, nullptr, {}, arm.range};
    if (failedSubject)
      bindNothing(body, arm.pattern);
    else
      made.test = patternTest(body, arm.pattern, subject, made.bindings);
    if (coversEverything && !failedSubject && !failed)
      body.session.sink()
          .warning("W0301", arm.range, "this arm is never reached")
          .primary("an earlier arm matches everything");
    Expr* guard = arm.guard ? condition(body, arm.guard) : nullptr;
    made.body = check(body, arm.body, expected);
    failed = failed || (made.test && isError(made.test)) || (guard && isError(guard));
    if (!failed && !guard) {
      coversEverything = coversEverything || !made.test;
      if (made.test)
        tests.push_back(made.test);
    }
    if (guard && !failed)
      made.test = guardedTest(body, made.test, made.bindings, guard);
    arms.push_back(std::move(made));
  }
  std::vector<Expr**> bodies;
  for (Arm& arm : arms)
    bodies.push_back(&arm.body);
  Type type = joinBranches(body, bodies, expected, expr->range);
  if (failed || isError(type))
    return errorExpr(body, expr->range);
  if (!coversEverything)
    if (const auto missing = findUncovered(body, *subject, tests)) {
      reportUncovered(body, expr, *missing);
      return errorExpr(body, expr->range);
    }
  Expr* out = nullptr;
  for (size_t i = arms.size(); i-- > 0;) {
    Expr* inner = arms[i].body;
    if (!arms[i].bindings.empty()) {
      arms[i].bindings.push_back(inner);
      inner = make(body, ExprKind::Block, type, arms[i].range, std::move(arms[i].bindings));
    }
    if (!out || !arms[i].test)  // the last arm matches whatever is left
      out = inner;
    else
      out = make(body, ExprKind::If, type, arms[i].range, {arms[i].test, inner, out});
  }
  outer.push_back(out);
  return make(body, ExprKind::Block, type, expr->range, std::move(outer));
}

/// The guard sees the pattern's names: `{ bindings; guard }` under the test.
static Expr* guardedTest(BodyState& body, Expr* test, const std::vector<Expr*>& bindings, Expr* guard) {
  if (!bindings.empty()) {
    std::vector<Expr*> inner = bindings;
    inner.push_back(guard);
    guard = make(body, ExprKind::Block, body.types.boolean(), guard->range, std::move(inner));
  }
  return conjunction(body, test, guard);
}

static void reportUncovered(BodyState& body, const syn::MatchExpr* expr, const std::vector<std::string>& missing) {
  auto builder = error(body, "E0320", expr->subject->range,
                       "this `match` does not cover every value" +
                           (missing.empty() ? "" : ": `" + base::join(missing, "`, `") + "` is missing"));
  builder.help(missing.size() == 1 ? "add an arm `" + missing[0] + " => …`, or `_ => …` for all that is left"
                                   : "add an arm `_ => …`");
}

}  // namespace vortex::lang
