#include "lang/flow/check/surplus_reads.h"

#include <algorithm>
#include <unordered_map>

#include "lang/sema/expr_parts.h"
#include "lang/sema/kernel/roots.h"

namespace vortex::lang::flow {
namespace {

class SurplusReads {
public:
  SurplusReads(const Function& kernel, const Graph& graph, const std::set<const Expr*>& own, diag::DiagnosticSink& sink)
      : kernel_(kernel), graph_(graph), own_(own), sink_(sink) {
    for (uint32_t i = 0; i < graph.stepCount(); ++i)
      if (const Step& step = graph[StepId{i}]; step.kind == StepKind::Store || step.kind == StepKind::Warp)
        if (step.useCount > 0)
          operands_.try_emplace(step.origin, StepId{i});
  }

  void findShared(const Expr& expr, bool bounded) {
    if (expr.kind == ExprKind::If && mentionsGlobalId(asIf(expr).condition)) {
      findShared(asIf(expr).then, true);
      if (const Expr* otherwise = asIf(expr).otherwise)
        findShared(*otherwise, true);
      return;
    }
    if (expr.kind == ExprKind::Assign && !bounded && isSharedPlace(asAssign(expr).place))
      if (const Expr* load = surplusLoad(expr))
        warn(expr, *load, "stored to shared memory");
    const bool isExchange = (expr.builtin >= Builtin::ShuffleXor && expr.builtin <= Builtin::WarpMin) ||
                            (expr.builtin >= Builtin::BlockSum && expr.builtin <= Builtin::BlockMin);
    if (expr.kind == ExprKind::Builtin && !bounded && isExchange)
      if (const Expr* load = surplusLoad(expr))
        warn(expr, *load, "exchanged between threads");
    for (const Expr* arg : expr.args)
      if (arg)
        findShared(*arg, bounded);
  }

private:
  void warn(const Expr& use, const Expr& load, const char* how) {
    if (isNeutralZero())
      return;
    sink_.warning("W0450", use.range, "surplus threads of the last block contribute 0 here")
        .primary(std::string(how) + " without a test of the bound")
        .label(load.range, "threads outside the tensor read 0")
        .help("select the value that should stand for missing elements: `if thread.global_id < N { … } else { … }`");
  }

  /// With `reduce(add)`, `or` the zeros change nothing.
  bool isNeutralZero() const {
    ReduceKind kind = kernel_.kernel->reduce;
    return kind == ReduceKind::Add || kind == ReduceKind::Or;
  }

  static bool mentionsGlobalId(const Expr& expr) {
    if (expr.kind == ExprKind::Builtin && expr.builtin == Builtin::ThreadGlobalId)
      return true;
    if (expr.kind == ExprKind::Var)
      return true;  // a bound computed into a variable counts as tested
    return std::ranges::any_of(expr.args, [](const Expr* arg) { return arg && mentionsGlobalId(*arg); });
  }

  static bool isSharedPlace(const Expr& place) {
    const Expr* element = tensorElement(place);
    return element && stripRef(asElement(*element).base.type)->space == Space::Shared;
  }

  /// What the value that is stored or exchanged is computed from, up to choices.
  const Expr* surplusLoad(const Expr& use) const {
    const auto operand = operands_.find(&use);
    if (operand == operands_.end())
      return nullptr;
    const FrameId frame = graph_[operand->second].frame;
    std::vector<ValueId> pending{graph_.uses(graph_[operand->second])[0]};
    std::set<ValueId> seen;
    while (!pending.empty()) {
      const ValueId value = graph_.values.resolved(pending.back());
      pending.pop_back();
      if (!seen.insert(value).second)
        continue;
      const StepId step = graph_.definition(value);
      if (step != kNoStep && graph_.values[value].kind == NodeKind::Load)
        for (const Access& access : graph_.accessesOf(graph_[step]))  // none of a list of constants
          if (const Expr* own = ownElement(access.origin))
            return own;
      addOperands(value, frame, pending);
    }
    return nullptr;
  }

  /// A choice or a load of the kernel itself ends the search; what calls make of their arguments does not.
  void addOperands(ValueId value, FrameId frame, std::vector<ValueId>& out) const {
    const Node& node = graph_.values[value];
    const Operands operands = graph_.values.operands(value);
    out.insert(out.end(), std::reverse_iterator(operands.end()), std::reverse_iterator(operands.begin()));
    if (node.kind == NodeKind::Phi) {
      const BlockId from = graph_[graph_.values.phiBlock(value)].predecessors.front();
      if (graph_.terminator(from).frame != frame)
        out.insert(out.end(), graph_.values.phiOperands(value).begin(), graph_.values.phiOperands(value).end());
    }
    const StepId step = graph_.definition(value);
    if (step == kNoStep)
      return;
    const auto uses = graph_.uses(graph_[step]);
    out.insert(out.end(), uses.rbegin(), uses.rend());
    if (node.kind != NodeKind::Load || graph_[step].frame == frame || graph_[step].place == kNoPlace)
      return;
    const std::vector<ValueId> subscripts = graph_[graph_[step].place].subscripts();
    out.insert(out.end(), subscripts.begin(), subscripts.end());
  }

  const Expr* ownElement(const Expr* place) const {
    while (place && place->kind == ExprKind::Field)
      place = &asField(*place).base;
    return own_.contains(place) ? place : nullptr;
  }

  const Function& kernel_;
  const Graph& graph_;
  const std::set<const Expr*>& own_;
  diag::DiagnosticSink& sink_;
  std::unordered_map<const Expr*, StepId> operands_;  ///< what stores, warp operations and block reductions take
};

}  // namespace

void checkSurplusReads(const Function& kernel, const Graph& graph, const std::set<const Expr*>& own,
                       diag::DiagnosticSink& sink) {
  if (kernel.body)
    SurplusReads(kernel, graph, own, sink).findShared(*kernel.body, false);
}

}  // namespace vortex::lang::flow
