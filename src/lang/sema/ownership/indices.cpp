#include "lang/sema/ownership/indices.h"

#include <algorithm>

#include "lang/sema/children.h"

namespace vortex::lang::ownership {

using flow::Truth;

Indices::Indices(const Function& function)
    : values_(function, [](const Variable& variable) { return !variable.isVar; }) {}

std::vector<Indices::Extent> Indices::extentsOf(const Expr& access) {
  std::vector<Extent> out;
  const auto index = [&](const Expr& at) {
    const flow::ValueId begin = values_.index(at);
    out.push_back({begin, values_.op(flow::Op::Add, begin, values_.constant(1)), true});
  };
  if (access.kind == ExprKind::Element) {
    for (size_t i = 1; i < access.args.size(); ++i)
      index(*access.args[i]);
    return out;
  }
  for (const SliceDim& slice : access.slices) {
    if (slice.kind == SliceDim::Kind::Index) {
      index(*slice.begin);
      continue;
    }
    Extent extent{slice.begin ? values_.index(*slice.begin) : values_.constant(0), std::nullopt};
    if (slice.end)
      extent.end = values_.index(*slice.end);
    if (slice.end && slice.endIsLength)
      extent.end = values_.op(flow::Op::Add, extent.begin, *extent.end);
    out.push_back(extent);
  }
  return out;
}

/// An access that happens lies inside, and nothing has more elements than this.
void Indices::assumeInside(const std::vector<Extent>& extents, std::vector<flow::Condition>& out) {
  const flow::ValueId most = values_.constant(flow::kMostElements);
  for (const Extent& extent : extents) {
    out.push_back({values_.atMost(extent.begin, most), true});
    if (extent.end)
      out.push_back({values_.atMost(*extent.end, most), true});
  }
}

bool Indices::mayOverlap(const Expr& access, const Expr& lent) {
  const std::vector<Extent> first = extentsOf(access), second = extentsOf(lent);
  std::vector<flow::Condition> inside;
  assumeInside(first, inside);
  assumeInside(second, inside);
  flow::Values& values = values_.values();
  // Only conditions around `access`: those around `lent` may speak of variables that have new values by now.
  const flow::PointId point = values.assume(values_.pointOf(access), std::move(inside));
  const auto endsBefore = [&](const Extent& a, const Extent& b) {
    return a.end && values.less(b.begin, *a.end, point) == Truth::No;
  };
  for (size_t dim = 0; dim < std::min(first.size(), second.size()); ++dim) {
    const Extent &a = first[dim], &b = second[dim];
    if (endsBefore(a, b) || endsBefore(b, a))
      return false;
    if (a.isIndex && b.isIndex && values.differ(a.begin, b.begin, point) == Truth::Yes)
      return false;
  }
  return true;
}

void Indices::variablesOf(const Expr& access, std::set<const Variable*>& out) const {
  const auto visit = [&](const auto& self, const Expr& expr) -> void {
    if (expr.kind == ExprKind::Var && out.insert(expr.variable).second)
      if (const Expr* value = values_.initialiserOf(*expr.variable))
        self(self, *value);
    forEachChild(expr, [&](const Expr& child) { self(self, child); });
  };
  if (access.kind == ExprKind::Element)
    for (size_t i = 1; i < access.args.size(); ++i)
      visit(visit, *access.args[i]);
  for (const SliceDim& slice : access.slices)
    for (const Expr* part : {slice.begin, slice.end})
      if (part)
        visit(visit, *part);
}

}  // namespace vortex::lang::ownership
