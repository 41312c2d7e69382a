#include "lang/flow/check/apart.h"

#include <algorithm>
#include <set>

#include "lang/flow/check/surroundings.h"
#include "lang/flow/value/walk.h"

namespace vortex::lang::flow {

/// Made when the first two places of one root are indexed.
void Apart::prepare() {
  if (values_)
    return;
  const Function& function = *graph_.function;
  NodeTable& nodes = graph_.values;
  structure_ = std::make_unique<Structure>(graph_);
  LaunchSizes sizes;
  if (function.kernel)
    for (size_t axis = 0; axis < 3 && !function.kernel->block.empty(); ++axis) {
      const bool isGiven = axis < function.kernel->block.size();
      const Expr* size = isGiven ? function.kernel->block[axis] : nullptr;
      if (!isGiven || size->kind == ExprKind::Int)
        sizes.block[axis] = isGiven ? static_cast<int64_t>(size->intValue) : 1;
    }
  values_ =
      std::make_unique<Values>(nodes, surroundingsOf(graph_, *structure_, nodes), launchFacts(function, sizes, nodes));
  for (const LaunchCheck& check : function.checks) {
    if (const ValueId size = check.isOfValue() ? dimensionValue(check.expected, function, nodes) : kNoValue;
        size != kNoValue)
      always_.push_back({nodes.op(Op::Le, kBool, nodes.constant(kUsize, 1), size), true});
  }
}

std::vector<Apart::Extent> Apart::extentsOf(const Projection& projection, uint64_t slots) {
  NodeTable& nodes = graph_.values;
  const auto one = [&](ValueId index) {
    return Extent{index, nodes.op(Op::Add, kUsize, index, nodes.constant(kUsize, 1)), true};
  };
  if (projection.kind == ProjectionKind::Slot && slots > 0)
    return {one(nodes.op(Op::Min, kUsize, projection.index, nodes.constant(kUsize, static_cast<__int128>(slots - 1))))};
  if (projection.kind == ProjectionKind::Slot)
    return {one(projection.index)};
  std::vector<Extent> out;
  for (const DimRange& dim : projection.dims)
    out.push_back(dim.isIndex() ? one(dim.begin) : Extent{dim.begin, dim.end, false});
  return out;
}

bool Apart::mayOverlap(const Projection& access, StepId step, const Projection& lent, uint64_t slots) {
  prepare();
  NodeTable& nodes = graph_.values;
  const std::vector<Extent> first = extentsOf(access, slots), second = extentsOf(lent, slots);
  // An access that happens lies inside, and nothing has more elements than this.
  std::vector<Condition> inside = always_;
  const ValueId most = nodes.constant(kUsize, kMostElements);
  for (const auto* extents : {&first, &second})
    for (const Extent& extent : *extents)
      for (ValueId bound : {extent.begin, extent.end})
        inside.push_back({nodes.op(Op::Le, kBool, bound, most), true});
  const PointId point = values_->assume(pointOf(step), std::move(inside));
  const auto endsBefore = [&](const Extent& a, const Extent& b) {
    return values_->less(b.begin, a.end, point) == Truth::No;
  };
  for (size_t dim = 0; dim < std::min(first.size(), second.size()); ++dim) {
    const Extent &a = first[dim], &b = second[dim];
    if (endsBefore(a, b) || endsBefore(b, a))
      return false;
    if (a.isIndex && b.isIndex && values_->differ(a.begin, b.begin, point) == Truth::Yes)
      return false;
  }
  return true;
}

bool Apart::isFixed(const Projection& lent, LocalId holder) const {
  std::vector<ValueId> pending{lent.index};
  for (const DimRange& dim : lent.dims)
    pending.insert(pending.end(), {dim.begin, dim.end});
  std::erase(pending, kNoValue);
  bool isFixed = true;
  walkOperands(graph_.values, std::move(pending), [&](ValueId value, const Node& node) {
    LoopId loop = kNoLoop;
    if (node.kind == NodeKind::Phi)
      loop = graph_[graph_.values.phiBlock(value)].loop;
    else if (const StepId step = graph_.definition(value); step != kNoStep)
      loop = graph_[graph_.blockOf(step)].loop;
    else if (node.kind == NodeKind::Unknown)
      isFixed = false;
    isFixed = isFixed && graph_.isInside(graph_[holder].loop, loop);
    return false;
  });
  return isFixed;
}

}  // namespace vortex::lang::flow
