// The body of one function instance.
#include "lang/sema/check/declarations/body.h"
#include "lang/sema/check/exprs/statements.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/tiles/tiles.h"

#include "base/text.h"
#include "lang/sema/children.h"
#include "lang/syntax/ast_walk.h"

#include <algorithm>

namespace vortex::lang {
namespace {

void returnedNamesOf(const syn::Expr* value, std::set<std::string_view>& names) {
  if (!value)
    return;
  if (auto* name = value->tryAs<syn::NameExpr>())
    names.insert(name->name.text);
  if (auto* tuple = value->tryAs<syn::TupleExpr>())
    for (const syn::Expr* elem : tuple->elems)
      returnedNamesOf(elem, names);
}

/// Names that are returned, and those that are written by element or lent by `&mut`.
class ResultNames : public syn::AstWalker {
public:
  explicit ResultNames(BodyState& body) : body_(body) {}

protected:
  bool onExpr(const syn::Expr* expr) override {
    if (auto* assign = expr->tryAs<syn::AssignExpr>(); assign && !assign->target->is<syn::NameExpr>())
      note(assign->target);
    if (auto* ref = expr->tryAs<syn::RefExpr>(); ref && ref->isMutable)
      note(ref->operand);
    if (auto* leave = expr->tryAs<syn::ReturnExpr>())
      returnedNamesOf(leave->value, body_.returnedNames);
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
      body_.storedNames.insert(name->name.text);
  }

  BodyState& body_;
};

void collectReturned(const Expr& expr, std::set<const Variable*>& out) {
  if (expr.kind == ExprKind::Return)
    forEachChild(expr, [&](const Expr& value) {
      const bool isTuple = value.kind == ExprKind::MakeTuple;
      for (size_t i = 0; i < (isTuple ? value.args.size() : 1); ++i)
        out.insert((isTuple ? *value.args[i] : value).variable);
    });
  forEachChild(expr, [&](const Expr& child) { collectReturned(child, out); });
}

/// Variables that are written by element or lent by `&mut`.
void collectStored(const Expr& expr, std::set<const Variable*>& out) {
  const bool lends = expr.kind == ExprKind::Ref && expr.type->kind == TypeKind::Ref && expr.type->isMutable;
  const Expr* place = expr.kind == ExprKind::Assign || lends ? expr.args[0] : nullptr;
  bool isPart = lends;
  for (; place && !place->args.empty() && place->kind != ExprKind::Var; place = place->args[0])
    isPart |= place->kind == ExprKind::Element || place->kind == ExprKind::Slice;
  if (isPart && place->kind == ExprKind::Var)
    out.insert(place->variable);
  forEachChild(expr, [&](const Expr& child) { collectStored(child, out); });
}

/// Results, and what is written by element, are found by name before there are variables. False: a variable is none, another one of
/// its name is.
bool checkStorage(BodyState& body) {
  std::set<const Variable*> returned, stored;
  collectReturned(*body.function->body, returned);
  collectStored(*body.function->body, stored);
  const size_t before = body.notReturned.size() + body.notStored.size();
  for (const auto& variable : body.function->variables) {
    const auto isAnother = [&](const std::set<const Variable*>& found) {
      return !found.count(variable.get()) &&
             std::ranges::any_of(found, [&](auto* other) { return other && other->name == variable->name; });
    };
    if ((variable->isResultStorage || variable->isStoredValue) && isAnother(returned))
      body.notReturned.insert(variable->range.begin);
    if (variable->isStoredValue && isAnother(stored))
      body.notStored.insert(variable->range.begin);
  }
  return body.notReturned.size() + body.notStored.size() == before;
}

}  // namespace

static bool tryBody(BodyState& body);

void checkBody(BodyState& body) {
  if (!body.instance->item->body)
    return;
  body.signatureLocals = body.locals.size();
  body.signatureDims = body.function->dims.size();
  body.signatureChecks = body.function->checks.size();
  body.signatureVariables = body.function->variables.size();
  body.session.instances.retry([&body] { return tryBody(body); }, body.instance->item->range);
}

/// Back to the state after the signature.
static void resetBody(BodyState& body) {
  body.locals.resize(body.signatureLocals);
  body.function->dims.resize(body.signatureDims);
  body.function->checks.resize(body.signatureChecks);
  body.function->variables.resize(body.signatureVariables);
  body.loops.clear();
  body.returns.clear();
  body.variableDims.clear();
  body.mutableOpaques.clear();
  body.flexible.clear();
  body.madeOf.clear();
  body.open.clear();
  body.slots.clear();
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
  if (inKernel(body)) {
    returnedNamesOf(item->body->tail, body.returnedNames);
    ResultNames(body).walk(static_cast<const syn::Expr*>(item->body));
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
  for (const auto& [position, open] : body.open)
    if (!body.restart && open.type->kind == TypeKind::Vec && isError(open.type->elem))
      error(body, "E0306", open.range, "the element type of an empty list cannot be inferred")
          .help("declare it: `let v: Vec<f32> = vec![]`");
  return !body.restart && (!inKernel(body) || checkStorage(body));
}

}  // namespace vortex::lang
