// Blocks, `return`, patterns that always match.
#include "lang/sema/check/exprs/statements.h"
#include "lang/sema/check/declarations/attributes.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/let.h"
#include "lang/sema/check/exprs/name_expr.h"
#include "lang/sema/check/exprs/open.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/scope.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/tiles/tiles.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"

#include <algorithm>
#include <utility>

namespace vortex::lang {

static void checkTail(BodyState& body, const syn::ExprStmt* stmt, Type expected, std::vector<Expr*>& out);
static void checkStmt(BodyState& body, const syn::Stmt* stmt, std::vector<Expr*>& out);
static void markAccesses(BodyState& body, std::vector<Expr*>& statement, size_t first);

Expr* checkBlock(BodyState& body, const syn::BlockExpr* block, Type expected) {
  const size_t firstLocal = body.locals.size();
  LocalScope scope(body);
  std::vector<const syn::Item*> local;
  for (const syn::Stmt* stmt : block->stmts)
    if (auto* item = stmt->tryAs<syn::ItemStmt>())
      local.push_back(item->item);
  if (ItemScope* inner = body.session.modules.declareLocalItems(local, body.items))
    body.items = inner;
  std::vector<Expr*> out;
  bool diverges = false, failed = false;
  const bool wantsTail = block->tail && !(expected && expected->kind == TypeKind::Unit);
  for (size_t i = 0; i < block->stmts.size(); ++i) {
    const syn::Stmt* stmt = block->stmts[i];
    const bool isTail = wantsTail && i + 1 == block->stmts.size();
    const size_t before = out.size();
    if (isTail)
      checkTail(body, stmt->as<syn::ExprStmt>(), expected, out);
    else
      checkStmt(body, stmt, out);
    for (size_t at = before; at < out.size(); ++at) {
      diverges = diverges || out[at]->type->kind == TypeKind::Never;
      failed = failed || (isTail && isError(out[at]));
    }
  }
  Type type = diverges ? body.types.never() : body.types.unit();
  if (wantsTail && !diverges && !out.empty())
    type = leaveScope(body, out.back()->type, firstLocal);
  return make(body, ExprKind::Block, failed ? body.types.error() : type, block->range, std::move(out));
}

namespace {

/// The attributes of a statement while it is checked; what it adds to `out` is marked in the end.
class Attributed {
public:
  Attributed(BodyState& body, const syn::Stmt* stmt, std::vector<Expr*>& out)
      : body_(body), out_(out), first_(out.size()), bounds_(body.uncheckedBounds), overflow_(body.uncheckedOverflow) {
    statementAttributes(body, stmt);
    // Statements inside have attributes of their own.
    coalescing_ = std::exchange(body.uncheckedCoalescing, false);
    races_ = std::exchange(body.uncheckedRaces, false);
    banks_ = std::exchange(body.verifyBanks, {});
  }
  ~Attributed() {
    body_.uncheckedCoalescing = coalescing_;
    body_.uncheckedRaces = races_;
    body_.verifyBanks = banks_;
    markAccesses(body_, out_, first_);
    body_.uncheckedBounds = bounds_;
    body_.uncheckedOverflow = overflow_;
  }
  Attributed(const Attributed&) = delete;
  Attributed& operator=(const Attributed&) = delete;

private:
  BodyState& body_;
  std::vector<Expr*>& out_;
  const size_t first_;
  const bool bounds_, overflow_;
  bool coalescing_ = false, races_ = false;
  SourceRange banks_;
};

}  // namespace

static void checkTail(BodyState& body, const syn::ExprStmt* stmt, Type expected, std::vector<Expr*>& out) {
  const Attributed attributed(body, stmt, out);
  out.push_back(check(body, stmt->expr, expected));
}

static void checkStmt(BodyState& body, const syn::Stmt* stmt, std::vector<Expr*>& out) {
  const size_t first = out.size();
  const Attributed attributed(body, stmt, out);
  if (auto* let = stmt->tryAs<syn::LetStmt>())
    checkLet(body, let, out);
  else if (auto* expr = stmt->tryAs<syn::ExprStmt>())
    out.push_back(check(body, expr->expr, body.types.unit()));
  for (const syn::Attribute& attribute : stmt->attributes)
    if (out.size() > first && out.back()->kind == ExprKind::For) {
      out.back()->isClaimedParallel |= attribute.name.text == "parallel";
      out.back()->isSequential |= attribute.name.text == "sequential";
      out.back()->isUnrolled |= attribute.name.text == "unroll";
      if (attribute.name.text == "pipeline")
        out.back()->pipelineStages = pipelineStages(body, attribute);
    }
}

static void markAccesses(BodyState& body, std::vector<Expr*>& statement, size_t first) {
  for (size_t i = first; i < statement.size(); ++i) {
    statement[i]->uncheckedCoalescing |= body.uncheckedCoalescing;
    statement[i]->uncheckedRaces |= body.uncheckedRaces;
    if (body.verifyBanks.isValid())
      statement[i]->verifyBanks = body.verifyBanks;
  }
  body.uncheckedCoalescing = body.uncheckedRaces = false;
  body.verifyBanks = {};
}

void bindNothing(BodyState& body, const syn::Pattern* pattern) {
  if (auto* name = pattern->tryAs<syn::NamePattern>()) {
    declareLocal(body, newVariable(body, name->name.text, body.types.error(), name->range, false));
  } else if (auto* tuple = pattern->tryAs<syn::TuplePattern>()) {
    for (const syn::Pattern* elem : tuple->elems)
      bindNothing(body, elem);
  } else if (auto* structure = pattern->tryAs<syn::StructPattern>()) {
    for (const syn::FieldPattern& field : structure->fields)
      bindNothing(body, field.pattern);
  }
}

void bindPattern(BodyState& body, const syn::Pattern* pattern, Expr* value, bool isVar, std::vector<Expr*>& out) {
  if (auto* name = pattern->tryAs<syn::NamePattern>()) {
    Variable* variable = newVariable(body, name->name.text, value->type, name->range, isVar);
    declareLocal(body, variable);
    aliasSlot(body, variable, value);
    Expr* let = make(body, ExprKind::Let, body.types.unit(), pattern->range, {value});
    let->variable = variable;
    out.push_back(let);
    return;
  }
  if (pattern->is<syn::WildcardPattern>()) {
    out.push_back(value);
    return;
  }
  if (auto* tuple = pattern->tryAs<syn::TuplePattern>()) {
    Expr* plain = deref(body, value);
    if (plain->type->kind != TypeKind::Tuple || plain->type->elems.size() != tuple->elems.size()) {
      error(
          body, "E0331", pattern->range,
          base::concat("a pattern of ", tuple->elems.size(), " elements cannot take `", text(body, value->type), "`"));
      return bindNothing(body, pattern);
    }
    if (plain->kind != ExprKind::Var) {
      plain = temporary(body, plain, out);
      aliasSlot(body, plain->variable, out.back()->args[0]);
    }
    for (size_t i = 0; i < tuple->elems.size(); ++i) {
      Expr* field = make(body, ExprKind::Field, plain->type->elems[i], tuple->elems[i]->range, {plain});
      field->ints = {static_cast<int64_t>(i)};
      if (!tuple->elems[i]->is<syn::WildcardPattern>())
        bindPattern(body, tuple->elems[i], field, isVar, out);
    }
    return;
  }
  if (auto* structure = pattern->tryAs<syn::StructPattern>()) {
    Expr* plain = deref(body, value);
    if (plain->type->kind != TypeKind::Struct) {
      error(body, "E0331", pattern->range, "a struct pattern cannot take `" + text(body, value->type) + "`");
      return bindNothing(body, pattern);
    }
    if (plain->kind != ExprKind::Var)
      plain = temporary(body, plain, out);
    for (const syn::FieldPattern& field : structure->fields) {
      Expr* part = checkMemberOfValue(body, plain, field.name, field.name.range);
      if (isError(part))
        bindNothing(body, field.pattern);
      else if (!field.pattern->is<syn::WildcardPattern>())
        bindPattern(body, field.pattern, part, isVar, out);
    }
    return;
  }
  if (!pattern->is<syn::ErrorPattern>())
    error(body, "E0331", pattern->range, "this pattern does not match every value").help("use `match` or `if`");
  bindNothing(body, pattern);
}

Expr* convertReturn(BodyState& body, Expr* value, Type result, SourceRange range) {
  const SourceRange declared = body.returns.back().declared;
  const std::string_view because = "the result's type";
  if (isError(value) || isError(result))
    return isError(result) ? errorExpr(body, range) : value;
  if (body.function->isKernel && result->isTensor() && !body.returns.back().isClosure) {
    Expr* plain = deref(body, value);
    if (plain->type->kind == TypeKind::Scalar || plain->type->kind == TypeKind::Struct ||
        plain->type == result->elem)  // this thread's element
      return storeConvert(body, plain, result->elem, declared, because);
  }
  if (body.function->isKernel && result->kind == TypeKind::Tuple && value->kind == ExprKind::MakeTuple &&
      value->args.size() == result->elems.size()) {
    for (size_t i = 0; i < value->args.size(); ++i) {
      value->args[i] = convertReturn(body, value->args[i], result->elems[i], value->args[i]->range);
      if (isError(value->args[i]))
        return errorExpr(body, range);
    }
    return value;
  }
  if (!body.returns.back().isClosure)
    if (Expr* tile = returnedTile(body, value, result, declared))
      return tile;
  return convert(body, value, result, Site::Return, declared, because);
}

/// A scalar stored to memory is rounded to the destination's float type.
Expr* storeConvert(BodyState& body, Expr* value, Type to, SourceRange because, std::string_view becauseText) {
  const bool before = body.storesToTensor;
  body.storesToTensor = true;
  Expr* out = convert(body, value, to, Site::Assign, because, becauseText);
  body.storesToTensor = before;
  return out;
}

Expr* checkReturn(BodyState& body, const syn::ReturnExpr* expr) {
  if (body.returns.empty()) {
    error(body, "E0323", expr->range, "`return` is only possible inside a function");
    return errorExpr(body, expr->range);
  }
  const BodyState::ReturnTarget target = body.returns.back();
  Expr* out = make(body, ExprKind::Return, body.types.never(), expr->range);
  if (!target.result) {  // a closure without a declared result
    Expr* value = expr->value ? check(body, expr->value) : nullptr;
    if (value && isError(value))
      return errorExpr(body, expr->range);
    body.returns.back().result = value ? leaveScope(body, value->type, target.firstLocal) : body.types.unit();
    if (value)
      out->args = {value};
    return out;
  }
  Type result = target.result;
  if (result->kind == TypeKind::Unit) {
    if (expr->value) {
      Expr* value = check(body, expr->value);
      if (!isError(value) && value->type->kind != TypeKind::Unit)
        error(body, "E0301", expr->value->range,
              "this function returns nothing, but a `" + text(body, value->type) + "` is returned")
            .label(target.declared, "declare the result here: `-> " + text(body, value->type) + "`");
    }
    return out;
  }
  if (!expr->value) {
    if (!isError(result))
      error(body, "E0324", expr->range, "`return` needs a value")
          .label(target.declared, "a `" + text(body, result) + "` is promised here");
    return out;
  }
  Expr* value = check(body, expr->value, result);
  value = convertReturn(body, value, result, expr->value->range);
  if (isError(value))
    return errorExpr(body, expr->range);
  out->args = {value};
  return out;
}

}  // namespace vortex::lang
