#include "lang/sema/kernel/bounds.h"

#include "lang/sema/index_values.h"

namespace vortex::lang {
namespace {

class Prover {
public:
  Prover(const Function& kernel, const Roots& roots) : indices_(kernel, roots) {}

  void visit(Expr* expr) {
    if (!expr)
      return;
    for (Expr* arg : expr->args)
      visit(arg);
    for (SliceDim& slice : expr->slices) {
      visit(slice.begin);
      visit(slice.end);
    }
    if (expr->guard != Guard::Guarded)
      return;
    if ((expr->kind == ExprKind::Element && isInside(*expr)) ||
        (expr->kind == ExprKind::Slice && isWindowInside(*expr)))
      expr->guard = Guard::Proven;
  }

private:
  bool isInside(const Expr& element) {
    Type base = stripRef(element.args[0]->type);
    if (!base || !base->isTensor() || base->shape.size() + 1 != element.args.size())
      return false;
    for (size_t dim = 0; dim < base->shape.size(); ++dim)
      if (!fits(element, element.args[dim + 1], DimExpr::constant(1), base->shape[dim]))
        return false;
    return true;
  }

  bool isWindowInside(const Expr& slice) {
    Type base = stripRef(slice.args[0]->type), type = stripRef(slice.type);
    if (!base->isTensor() || base->shape.size() != slice.slices.size())
      return false;
    size_t kept = 0;
    for (size_t dim = 0; dim < base->shape.size(); ++dim) {
      const SliceDim& part = slice.slices[dim];
      const DimExpr length = part.kind == SliceDim::Kind::Index ? DimExpr::constant(1) : type->shape[kept++];
      if (part.kind == SliceDim::Kind::Full)
        continue;
      if (length.hasOpaque() || !fits(slice, part.begin, length, base->shape[dim]))
        return false;
    }
    return true;
  }

  /// begin + length <= extent, as integers.
  bool fits(const Expr& access, const Expr* begin, const DimExpr& length, const DimExpr& extent) {
    flow::Values& values = indices_.values();
    const flow::PointId point = indices_.pointOf(access);
    const auto integer = [&](flow::ValueId value) { return values.integer(value, point); };
    const auto end = flow::Polynomial::sum(begin ? integer(indices_.index(*begin)) : flow::Polynomial(),
                                           integer(indices_.of(length)));
    const auto room = end ? flow::Polynomial::sum(integer(indices_.of(extent)), *end, -1) : std::nullopt;
    return room && values.isAtLeastZero(*room, point);
  }

  IndexValues indices_;
};

}  // namespace

void proveBounds(Function& kernel, const Roots& roots) { Prover(kernel, roots).visit(kernel.body); }

}  // namespace vortex::lang
