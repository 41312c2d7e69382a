// Work of the block on whole tensors and tiles: one step for each expression.
#include "lang/flow/graph/lower.h"
#include "lang/sema/children.h"

namespace vortex::lang::flow {

/// What the expression, an operand of tensor work, reads.
void Lowering::gather(const Expr& expr, TileParts& out) {
  if (!isReachable() || !expr.type)
    return;
  enter(expr);
  const Type type = stripRef(expr.type);
  const bool isTensor = type->isTensor() || (type->kind == TypeKind::Array && type->elem->isTensor());
  switch (expr.kind) {
  case ExprKind::Unary:
  case ExprKind::Binary:
  case ExprKind::Cast:
  case ExprKind::Broadcast:
  case ExprKind::Dot:
  case ExprKind::Builtin:
    if (isTensor)
      return gatherParts(expr, out);
    break;
  case ExprKind::MakeArray:
  case ExprKind::MakeTuple: return gatherParts(expr, out);
  default: break;
  }
  const Operand operand = value(expr);
  if (operand.place != kNoPlace)
    out.reads.emplace_back(operand.place, &expr);
  else
    flatten(operand, out.uses);
}

void Lowering::gatherParts(const Expr& expr, TileParts& out) {
  if (expr.kind == ExprKind::Builtin && (expr.builtin == Builtin::Stage || expr.builtin == Builtin::AsyncStage)) {
    const Operand operand = value(expr);
    if (operand.place != kNoPlace)
      out.reads.emplace_back(operand.place, &expr);
    return;
  }
  forEachChild(expr, [&](const Expr& child) { gather(child, out); });
}

Step& Lowering::emitTile(StepKind kind, const Expr& origin, const TileParts& parts) {
  Step& step = b_.emit(kind, &origin);
  b_.addUses(step, parts.uses);
  for (const auto& [place, written] : parts.reads)
    b_.addAccess(step, place, AccessMode::Read, written);
  return step;
}

void Lowering::tileInto(const Expr& expr, PlaceId destination, const Expr& origin, const Expr* written) {
  if (expr.kind == ExprKind::Builtin && expr.builtin == Builtin::Stage)
    return stageInto(expr, destination, written);
  TileParts parts;
  gather(expr, parts);
  if (!isReachable())
    return;
  Step& step = emitTile(StepKind::Tile, origin, parts);
  step.place = destination;
  b_.addAccess(step, destination, AccessMode::Write, written);
}

void Lowering::assignTile(const Expr& expr) {
  const auto [target, source] = asAssign(expr);
  const bool isStaged = source.kind == ExprKind::Builtin && source.builtin == Builtin::Stage && !expr.hasOp;
  TileParts parts;
  if (!isStaged)
    gather(source, parts);
  if (!isReachable())
    return;
  const bool isRebound = target.kind == ExprKind::Var && target.variable->type->kind == TypeKind::Ref;
  if (isRebound) {
    const Holder& holder = holderOf(*target.variable);
    const Operand operand = value(source);
    return holder.slot ? writeSlots(*holder.slot, holder.type, operand) : void();
  }
  const PlaceId to = materialised(target, placeOfBase(target));
  if (!isReachable())
    return;
  if (isStaged)
    return stageInto(source, to, &target);
  if (expr.hasOp)
    parts.reads.emplace_back(to, &target);
  Step& step = emitTile(StepKind::Tile, expr, parts);
  step.place = to;
  b_.addAccess(step, to, AccessMode::Write, &target);
}

}  // namespace vortex::lang::flow
