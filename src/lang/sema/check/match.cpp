// `match` as a chain of ifs, with the check that some arm always matches.
#include "lang/sema/check/checker.h"

#include "base/text.h"

namespace vortex::lang {

namespace {

// What the arms seen so far cover, for subjects whose values can be counted.
struct Coverage {
  std::set<long long> values;
  bool everything = false;
};

}  // namespace

Expr* Checker::literalTest(const syn::Expr* literal, Expr* subject) {
  Expr* value = check(literal, subject->type);
  if (isError(value))
    return value;
  if (value->type != subject->type) {
    error("E0301", literal->range, "expected `" + text(subject->type) + "`, found `" + text(value->type) + "`");
    return errorExpr(literal->range);
  }
  return binary(BinaryOp::Eq, subject, value, literal->range, literal->range);
}

Expr* Checker::conjunction(Expr* a, Expr* b) {
  if (!a || !b)
    return a ? a : b;
  if (isError(a) || isError(b))
    return isError(a) ? a : b;
  Expr* out = make(ExprKind::Binary, types.boolean(), b->range, {a, b});
  out->binaryOp = BinaryOp::And;
  return out;
}

Expr* Checker::patternTest(const syn::Pattern* pattern, Expr* subject, std::vector<Expr*>& bindings) {
  switch (pattern->kind) {
  case syn::PatternKind::Error: return errorExpr(pattern->range);
  case syn::PatternKind::Wildcard: return nullptr;
  case syn::PatternKind::Name: {
    const syn::Name& name = pattern->as<syn::NamePattern>()->name;
    const Symbol* symbol = findLocal(name.text) ? nullptr : items->find(name.text);
    if (symbol && symbol->kind == SymbolKind::Const) {
      Expr* value = constUse(*symbol, pattern->range, subject->type);
      return isError(value) ? value : binary(BinaryOp::Eq, subject, value, pattern->range, pattern->range);
    }
    bindPattern(pattern, subject, false, bindings);
    return nullptr;
  }
  case syn::PatternKind::Path: {
    auto* path = pattern->as<syn::PathPattern>();
    const syn::Name& variant = path->path.back();
    Type type = subject->type;
    if (!path->isDot && path->path.size() >= 2) {
      const Symbol* symbol = items->find(path->path[0].text);
      for (size_t i = 1; symbol && symbol->kind == SymbolKind::Module && i + 1 < path->path.size(); ++i) {
        auto found = symbol->scope->symbols.find(path->path[i].text);
        symbol = found == symbol->scope->symbols.end() ? nullptr : &found->second;
      }
      if (!symbol || symbol->kind != SymbolKind::Enum) {
        error("E0201", pattern->range,
              base::concat("`", session.sources.text(pattern->range), "` is not an enum value"));
        return errorExpr(pattern->range);
      }
      type = types.enumeration(session.structInstance(symbol->item, symbol->scope, {})->decl);
    }
    if (type->kind != TypeKind::Enum || type != subject->type) {
      error("E0301", pattern->range, "expected `" + text(subject->type) + "`, found `" + text(type) + "`");
      return errorExpr(pattern->range);
    }
    Expr* value = enumVariant(type, variant, pattern->range);
    return isError(value) ? value : binary(BinaryOp::Eq, subject, value, pattern->range, pattern->range);
  }
  case syn::PatternKind::Literal: return literalTest(pattern->as<syn::LiteralPattern>()->value, subject);
  case syn::PatternKind::Range: {
    auto* range = pattern->as<syn::RangePattern>();
    Expr *low = nullptr, *high = nullptr;
    if (range->begin) {
      Expr* begin = check(range->begin, subject->type);
      low = isError(begin) ? begin : binary(BinaryOp::Ge, subject, begin, pattern->range, pattern->range);
    }
    if (range->end) {
      Expr* end = check(range->end, subject->type);
      high = isError(end) ? end : binary(BinaryOp::Lt, subject, end, pattern->range, pattern->range);
    }
    return conjunction(low, high);
  }
  case syn::PatternKind::Tuple: {
    auto* tuple = pattern->as<syn::TuplePattern>();
    if (subject->type->kind != TypeKind::Tuple || subject->type->elems.size() != tuple->elems.size()) {
      error("E0331", pattern->range,
            base::concat("a pattern of ", tuple->elems.size(), " elements cannot take `", text(subject->type), "`"));
      return errorExpr(pattern->range);
    }
    Expr* test = nullptr;
    for (size_t i = 0; i < tuple->elems.size(); ++i) {
      Expr* field = make(ExprKind::Field, subject->type->elems[i], subject->range, {subject});
      field->ints = {static_cast<int64_t>(i)};
      test = conjunction(test, patternTest(tuple->elems[i], field, bindings));
    }
    return test;
  }
  case syn::PatternKind::Struct: {
    Expr* test = nullptr;
    for (const syn::FieldPattern& field : pattern->as<syn::StructPattern>()->fields) {
      Expr* part = checkMemberOfValue(subject, field.name, field.name.range);
      if (isError(part))
        return part;
      test = conjunction(test, patternTest(field.pattern, part, bindings));
    }
    return test;
  }
  case syn::PatternKind::Or: {
    Expr* test = nullptr;
    for (const syn::Pattern* alternative : pattern->as<syn::OrPattern>()->alternatives) {
      const size_t before = bindings.size();
      Expr* one = patternTest(alternative, subject, bindings);
      if (bindings.size() != before) {
        error("E0331", alternative->range, "a pattern with `|` cannot bind names");
        return errorExpr(pattern->range);
      }
      if (!one)
        return nullptr;
      if (isError(one))
        return one;
      if (test) {
        Expr* both = make(ExprKind::Binary, types.boolean(), pattern->range, {test, one});
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

namespace {
// Values of an enum or bool that a test of the form `subject == v (|| …)` accepts.
void collectValues(const Expr* test, Coverage& coverage) {
  if (test->kind == ExprKind::Binary && test->binaryOp == BinaryOp::Or) {
    collectValues(test->args[0], coverage);
    collectValues(test->args[1], coverage);
  } else if (test->kind == ExprKind::Binary && test->binaryOp == BinaryOp::Eq && test->args[1]->kind == ExprKind::Int &&
             test->args[0]->kind == ExprKind::Var) {
    coverage.values.insert(static_cast<long long>(test->args[1]->intValue));
  }
}
}  // namespace

Expr* Checker::checkMatch(const syn::MatchExpr* expr, Type expected) {
  if (!checkBranchCount(expr->arms.size(), expr->range))
    return errorExpr(expr->range);
  Expr* subject = value(expr->subject);
  std::vector<Expr*> outer;
  const bool failedSubject = isError(subject);
  if (!failedSubject && subject->kind != ExprKind::Var)
    subject = temporary(subject, outer);
  struct Arm {
    Expr* test;
    Expr* body;
    std::vector<Expr*> bindings;
    SourceRange range;
  };
  std::vector<Arm> arms;
  Coverage coverage;
  bool failed = failedSubject;
  for (const syn::MatchArm& arm : expr->arms) {
    LocalScope scope(*this);
    Arm made{nullptr, nullptr, {}, arm.range};
    if (failedSubject)
      bindNothing(arm.pattern);
    else
      made.test = patternTest(arm.pattern, subject, made.bindings);
    if (coverage.everything && !failedSubject && !failed)
      session.sink()
          .warning("W0301", arm.range, "this arm is never reached")
          .primary("an earlier arm matches everything");
    Expr* guard = arm.guard ? condition(arm.guard) : nullptr;
    made.body = check(arm.body, expected);
    failed = failed || (made.test && isError(made.test)) || (guard && isError(guard));
    if (!failed && !guard) {
      coverage.everything = coverage.everything || !made.test;
      if (made.test)
        collectValues(made.test, coverage);
    }
    if (guard && !failed)
      made.test = guardedTest(made.test, made.bindings, guard);
    arms.push_back(std::move(made));
  }
  std::vector<Expr**> bodies;
  for (Arm& arm : arms)
    bodies.push_back(&arm.body);
  Type type = joinBranches(bodies, expected, expr->range);
  if (failed || isError(type))
    return errorExpr(expr->range);
  if (!coverage.everything && !coversAll(subject->type, coverage.values)) {
    reportUncovered(expr, subject->type, coverage.values);
    return errorExpr(expr->range);
  }
  Expr* out = nullptr;
  for (size_t i = arms.size(); i-- > 0;) {
    Expr* body = arms[i].body;
    if (!arms[i].bindings.empty()) {
      arms[i].bindings.push_back(body);
      body = make(ExprKind::Block, type, arms[i].range, std::move(arms[i].bindings));
    }
    if (!out || !arms[i].test)  // the last arm matches whatever is left
      out = body;
    else
      out = make(ExprKind::If, type, arms[i].range, {arms[i].test, body, out});
  }
  outer.push_back(out);
  return make(ExprKind::Block, type, expr->range, std::move(outer));
}

/// The guard sees the pattern's names: `{ bindings; guard }` under the test.
Expr* Checker::guardedTest(Expr* test, const std::vector<Expr*>& bindings, Expr* guard) {
  if (!bindings.empty()) {
    std::vector<Expr*> inner = bindings;
    inner.push_back(guard);
    guard = make(ExprKind::Block, types.boolean(), guard->range, std::move(inner));
  }
  return conjunction(test, guard);
}

bool Checker::coversAll(Type type, const std::set<long long>& values) const {
  if (type->isScalar(Scalar::Bool))
    return values.size() == 2;
  if (type->kind != TypeKind::Enum)
    return false;
  for (int64_t value : type->decl->enumValues)
    if (!values.count(value))
      return false;
  return true;
}

void Checker::reportUncovered(const syn::MatchExpr* expr, Type type, const std::set<long long>& values) {
  std::string missing;
  if (type->kind == TypeKind::Enum) {
    for (size_t i = 0; i < type->decl->enumValues.size(); ++i)
      if (!values.count(type->decl->enumValues[i]))
        missing += (missing.empty() ? "`" : ", `") + type->decl->name + "." + type->decl->fields[i] + "`";
  } else if (type->isScalar(Scalar::Bool)) {
    missing = values.count(1) ? "`false`" : "`true`";
  }
  auto builder =
      error("E0320", expr->subject->range,
            "this `match` does not cover every value" + (missing.empty() ? "" : ": " + missing + " is missing"));
  builder.help("add an arm `_ => …`");
}

}  // namespace vortex::lang
