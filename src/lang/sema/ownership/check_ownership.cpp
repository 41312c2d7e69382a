#include "lang/sema/ownership/ownership.h"

#include "base/text.h"
#include "lang/sema/ownership/analysis.h"

#include <algorithm>
#include <map>

namespace vortex::lang {
namespace ownership {
namespace {

class Checker {
public:
  explicit Checker(diag::DiagnosticSink& sink, bool lendsUnknown = true) : sink_(sink), lendsUnknown_(lendsUnknown) {}

  const Summary& check(Function& function) {
    // While a function is being checked, and for what has no body, the result may hold anything that was lent.
    auto [found, isNew] =
        summaries_.try_emplace(&function, lendsUnknown_ ? Summary(function.params.size(), true) : onlyLender(function));
    if (!isNew || !function.body)
      return found->second;
    Lowering lowering(function, sink_, [this](const Function& callee) { return check(const_cast<Function&>(callee)); });
    const Graph graph = lowering.run();
    checkViews(graph);
    checkValues(graph, sink_);
    checkMoves(graph, sink_);
    Summary summary = checkBorrows(graph, sink_);
    for (const Local& local : graph.locals)
      if (local.variable && local.isView)
        const_cast<Variable*>(local.variable)->isView = true;
    return summaries_[&function] = std::move(summary);
  }

private:
  /// What holds whatever the body is: borrows in a result come from the only parameter that can lend.
  static Summary onlyLender(const Function& function) {
    Summary lends;
    for (const Variable* param : function.params)
      lends.push_back(mayHoldBorrows(param->type));
    return std::count(lends.begin(), lends.end(), true) == 1 ? lends : Summary(lends.size(), false);
  }

  /// A view that is written must be of something that may be.
  void checkViews(const Graph& graph);

  diag::DiagnosticSink& sink_;
  bool lendsUnknown_;
  std::map<const Function*, Summary> summaries_;
};

/// The variable that forbids writing to the place, if one does.
const Local* readOnlyOwner(const Graph& graph, const Place& place) {
  const Local& root = graph.locals[place.root];
  if (root.isView || !root.variable)
    return nullptr;
  Type type = root.type;
  bool isReached = false;
  for (const Projection& each : place.path) {
    if (each.kind == Projection::Kind::Deref && type && type->kind == TypeKind::Ref) {
      if (!type->isMutable)
        return &root;
      isReached = true;
      type = type->elem;
    } else if (each.kind == Projection::Kind::Field) {
      type = type && type->isTensor() ? type->elem : type;
      type = type && each.field < type->elems.size() ? type->elems[each.field] : nullptr;
    } else if (each.kind == Projection::Kind::Index && type && each.expr->kind == ExprKind::Element) {
      type = type->elem;
    }
  }
  const bool isValue = root.variable->isParam && !root.variable->isVar;
  return isValue && !isReached ? &root : nullptr;
}

void Checker::checkViews(const Graph& graph) {
  for (const Loan& loan : graph.loans) {
    if (!loan.writer)
      continue;
    const Local* owner = readOnlyOwner(graph, loan.place);
    if (!owner)
      continue;
    const bool isRef = owner->type->kind == TypeKind::Ref;
    auto builder = sink_.error("E0521", loan.writer->range,
                               base::concat("this writes through a view of `", owner->variable->name, "`, which is ",
                                            isRef ? "behind a `&` reference" : "passed by value and read-only"));
    builder.primary("written here");
    builder.label(loan.range, "the view is made here");
    builder.label(owner->range, isRef ? "lent with `&` here" : "taken by value here");
  }
}

}  // namespace
}  // namespace ownership

void checkOwnership(Program& program, diag::DiagnosticSink& sink) {
  ownership::Checker checker(sink);
  for (const auto& function : program.functions)
    if (function->body)
      checker.check(*function);
}

void checkDefinitionOwnership(Function& definition, diag::DiagnosticSink& sink) {
  if (definition.body)
    ownership::Checker(sink, false).check(definition);
}

}  // namespace vortex::lang
