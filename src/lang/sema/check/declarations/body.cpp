// The body of one function instance.
#include "lang/sema/check/declarations/body.h"
#include "lang/sema/check/exprs/statements.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/tiles/tiles.h"

#include "base/text.h"
#include "lang/syntax/ast_walk.h"

namespace vortex::lang {
namespace {

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

class StoredNames : public syn::AstWalker {
public:
  explicit StoredNames(std::set<std::string_view>& names) : names_(names) {}

protected:
  bool onExpr(const syn::Expr* expr) override {
    if (auto* assign = expr->tryAs<syn::AssignExpr>(); assign && !assign->target->is<syn::NameExpr>())
      note(assign->target);
    if (auto* ref = expr->tryAs<syn::RefExpr>(); ref && ref->isMutable)
      note(ref->operand);
    return true;
  }

private:
  void note(const syn::Expr* place) {
    while (true)
      if (auto* index = place->tryAs<syn::IndexExpr>())
        place = index->base;
      else if (auto* member = place->tryAs<syn::MemberExpr>())
        place = member->base;
      else if (auto* part = place->tryAs<syn::TupleMemberExpr>())
        place = part->base;
      else
        break;
    if (auto* name = place->tryAs<syn::NameExpr>())
      names_.insert(name->name.text);
  }

  std::set<std::string_view>& names_;
};

}  // namespace

static bool tryBody(BodyState& body);

void checkBody(BodyState& body) {
  if (!body.instance->item->body)
    return;
  body.signatureLocals = body.locals.size();
  body.signatureDims = body.function->dims.size();
  body.signatureVariables = body.function->variables.size();
  body.session.instances.retry([&body] { return tryBody(body); }, body.instance->item->range);
}

/// Back to the state after the signature.
static void resetBody(BodyState& body) {
  body.locals.resize(body.signatureLocals);
  body.function->dims.resize(body.signatureDims);
  body.function->variables.resize(body.signatureVariables);
  body.loops.clear();
  body.returns.clear();
  body.variableDims.clear();
  body.mutableOpaques.clear();
  body.flexible.clear();
  body.defaulted.clear();
  body.walked.clear();
  body.totals.clear();
  body.plainParts.clear();
  body.listedNames.clear();
  body.pendingDims.clear();
  body.beforeLet = nullptr;
  body.function->extentVariables.clear();
  body.items = body.instance->scope;
  body.restart = false;
}

/// False: a use decided the type of a variable, check again with it. Every attempt decides one more.
static bool tryBody(BodyState& body) {
  resetBody(body);
  const syn::FunctionItem* item = body.instance->item;
  for (DimVarId id = 0; id < body.function->dims.size(); ++id)
    if (body.function->dims[id].isScalarValue)
      body.variableDims[body.function->params[*body.function->dims[id].param]] = DimExpr::variable(id);
  if (body.function->isKernel) {
    collectBlock(item->body, body.returnedNames);
    returnedNamesOf(item->body->tail, body.returnedNames);
    StoredNames(body.storedNames).walk(static_cast<const syn::Expr*>(item->body));
  }
  body.returns.push_back({body.function->resultType, body.function->resultRange, false, 0});
  std::vector<Expr*> offsets = tileOffsets(body);
  Expr* inner = checkBlock(body, item->body, body.function->resultType);
  const bool wantsValue =
      body.function->resultType->kind != TypeKind::Unit && body.function->resultType->kind != TypeKind::Never;
  if (inner->type->kind != TypeKind::Unit && inner->type->kind != TypeKind::Never && !isError(inner) && wantsValue) {
    Expr* last = inner->args.back();
    Expr* value = convertReturn(body, last, body.function->resultType, last->range);
    Expr* leave = make(body, ExprKind::Return, body.types.never(), last->range, {value});
    inner->args.back() = leave;
    inner->type = body.types.never();
  } else if (inner->type->kind == TypeKind::Unit && wantsValue) {
    const SourceRange close{item->body->range.file, item->body->range.end > 0 ? item->body->range.end - 1 : 0,
                            item->body->range.end};
    error(body, "E0324", close, base::concat("`", item->name.text, "` can end without returning a value"))
        .primary("reached without `return`")
        .label(body.function->resultRange, "a `" + text(body, body.function->resultType) + "` is promised here");
  }
  inner->args.insert(inner->args.begin(), offsets.begin(), offsets.end());
  body.function->body = inner;
  for (const Variable* variable : body.defaulted)
    if (!body.restart && variable->type->kind == TypeKind::Vec && isError(variable->type->elem))
      error(body, "E0306", variable->range, "the element type of an empty list cannot be inferred")
          .help("declare it: `let v: Vec<f32> = vec![]`");
  return !body.restart;
}

}  // namespace vortex::lang
