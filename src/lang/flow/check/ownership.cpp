#include "lang/flow/check/ownership.h"

#include <algorithm>
#include <map>

#include "lang/flow/check/written.h"
#include "lang/flow/graph/owned_types.h"

namespace vortex::lang::flow {

bool touchesPlace(const Graph& graph, const Step& step) {
  switch (step.kind) {
  case StepKind::Use:
  case StepKind::Copy:
  case StepKind::Move:
  case StepKind::MoveOut:
  case StepKind::Store:
  case StepKind::Mutate: return true;
  case StepKind::Borrow: return !graph.loans[step.index].param;
  default: return false;
  }
}

source::SourceRange rangeOf(const Step& step) {
  if (!step.origin)
    return {};
  const source::SourceRange range = step.origin->range;
  const ExprKind kind = step.origin->kind;
  const bool isBraced = kind == ExprKind::Block || kind == ExprKind::For || kind == ExprKind::Closure;
  if (step.kind != StepKind::End || !isBraced || range.end == range.begin)
    return range;
  return {range.file, range.end - 1, range.end};
}

namespace {

class Ownership {
public:
  Ownership(diag::DiagnosticSink& sink, bool lendsUnknown) : sink_(sink), lendsUnknown_(lendsUnknown) {}

  const Summary& check(const Function& function) {
    // While a function is being checked, and for what has no body, the result may hold anything that was lent.
    auto [found, isNew] =
        summaries_.try_emplace(&function, lendsUnknown_ ? Summary(function.params.size(), true) : onlyLender(function));
    if (!isNew || !function.body)
      return found->second;
    Graph graph = lowerWritten(function, [this](const Function& callee) { return check(callee); });
    noteTransfers(graph);
    checkViews(graph, sink_);
    checkAssigned(graph, sink_);
    checkMoves(graph, sink_);
    return summaries_[&function] = checkBorrows(graph, sink_);
  }

private:
  /// What holds whatever the body is: borrows in a result come from the only parameter that can lend.
  static Summary onlyLender(const Function& function) {
    Summary lends;
    for (const Variable* param : function.params)
      lends.push_back(mayHoldBorrows(param->type));
    return std::count(lends.begin(), lends.end(), true) == 1 ? lends : Summary(lends.size(), false);
  }

  static void noteTransfers(const Graph& graph) {
    for (uint32_t i = 0; i < graph.stepCount(); ++i) {
      const Step& step = graph[StepId{i}];
      if (step.kind == StepKind::Copy || step.kind == StepKind::Move)
        const_cast<Expr*>(step.origin)->transfer = step.kind == StepKind::Copy ? Transfer::Copy : Transfer::Move;
    }
  }

  diag::DiagnosticSink& sink_;
  bool lendsUnknown_;
  std::map<const Function*, Summary> summaries_;
};

}  // namespace

void checkOwnership(Program& program, diag::DiagnosticSink& sink) {
  Ownership ownership(sink, true);
  for (const auto& function : program.functions)
    if (function->body)
      ownership.check(*function);
}

void checkDefinitionOwnership(Function& definition, diag::DiagnosticSink& sink) {
  if (definition.body)
    Ownership(sink, false).check(definition);
}

}  // namespace vortex::lang::flow
