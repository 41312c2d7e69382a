#include "base/text.h"
#include "lang/flow/check/written.h"

namespace vortex::lang::flow {

/// The variable that forbids writing to the place, if one does.
static const Local* readOnlyOwner(const Graph& graph, const Place& place) {
  const Local& root = graph[place.root];
  if (root.isView || !root.variable)
    return nullptr;
  Type type = root.type;
  bool isReached = false;
  for (const Projection& each : place.path) {
    if (each.kind == ProjectionKind::Deref && type && type->kind == TypeKind::Ref) {
      if (!type->isMutable)
        return &root;
      isReached = true;
      type = type->elem;
    } else if (each.kind == ProjectionKind::Field) {
      type = type && type->isTensor() ? type->elem : type;
      type = type && each.field < type->elems.size() ? type->elems[each.field] : nullptr;
    } else if (type && (each.kind == ProjectionKind::At || each.kind == ProjectionKind::Slot)) {
      type = type->elem;
    }
  }
  const bool isValue = root.variable->isParam && !root.variable->isVar;
  return isValue && !isReached ? &root : nullptr;
}

void checkViews(const Graph& graph, diag::DiagnosticSink& sink) {
  for (const Loan& loan : graph.loans) {
    if (!loan.writer)
      continue;
    const Local* owner = readOnlyOwner(graph, graph[loan.place]);
    if (!owner)
      continue;
    const bool isRef = owner->type->kind == TypeKind::Ref;
    auto builder = sink.error("E0521", loan.writer->range,
                              base::concat("this writes through a view of `", owner->variable->name, "`, which is ",
                                           isRef ? "behind a `&` reference" : "passed by value and read-only"));
    builder.primary("written here");
    builder.label(loan.range, "the view is made here");
    builder.label(owner->range, isRef ? "lent with `&` here" : "taken by value here");
    builder.help("a tensor of its own is a copy: `.copy()` where the view is made");
  }
}

}  // namespace vortex::lang::flow
