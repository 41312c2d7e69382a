#include "lang/flow/check/tile_code.h"

#include <algorithm>

#include "lang/sema/children.h"

namespace vortex::lang::flow {

static bool isBlockMemory(Type type) {
  while (type && (type->kind == TypeKind::Array || type->kind == TypeKind::Ref))
    type = type->elem;
  return type && type->isTensor() && !type->isValue && (type->space == Space::Shared || type->space == Space::Local);
}

bool isReturnedTile(const KernelSpec& kernel, const Expr& value) {
  Type type = stripRef(value.type);
  const TileSpec& tile = *kernel.tile;
  if (!type || !type->isTensor() || type->shape.size() != tile.extents.size())
    return false;
  for (size_t i = 0; i < tile.extents.size(); ++i)
    if (!(type->shape[i] == DimExpr::constant(tile.extents[i])))
      return false;
  return true;
}

bool isTileCode(const KernelSpec& kernel, const Expr& expr) {
  const std::vector<Variable*>& offsets = kernel.tile->offsets;
  bool isOffset = expr.variable && std::find(offsets.begin(), offsets.end(), expr.variable) != offsets.end();
  if (expr.kind == ExprKind::Let && isOffset)
    return false;
  if (expr.kind == ExprKind::Var && isOffset)
    return true;
  if (expr.kind == ExprKind::Builtin && ((expr.builtin >= Builtin::ThreadId && expr.builtin <= Builtin::AtomicStore &&
                                          expr.builtin != Builtin::WarpSize)))
    return true;
  if (expr.kind == ExprKind::Let && isBlockMemory(expr.variable->type))
    return true;
  if (expr.kind == ExprKind::Return && !expr.args.empty() && isReturnedTile(kernel, *expr.args.front()))
    return true;
  bool found = false;
  forEachChild(expr, [&](const Expr& child) { found = found || isTileCode(kernel, child); });
  return found;
}

}  // namespace vortex::lang::flow
