#include "lang/flow/check/surplus_reads.h"

#include <algorithm>
#include <map>

#include "lang/flow/check/surplus.h"
#include "lang/flow/check/surplus_thread.h"
#include "lang/flow/graph/structure.h"

namespace vortex::lang::flow {
namespace {

class SurplusReads {
public:
  SurplusReads(const Function& kernel, const Graph& graph, const std::set<const Expr*>& own, diag::DiagnosticSink& sink)
      : kernel_(kernel), graph_(graph), structure_(graph), thread_(graph, own), sink_(sink) {}

  void run() {
    for (uint32_t i = 0; i < graph_.stepCount(); ++i)
      if (const BlockId block = graph_.blockOf(StepId{i}); thread_.reaches(block))
        visit(StepId{i}, block);
  }

private:
  void visit(StepId id, BlockId block) {
    const Step& step = graph_[id];
    const bool isExchange = step.kind == StepKind::Warp;
    if ((!isExchange && !isSharedWrite(step)) || step.useCount == 0 || !step.origin ||
        reported_.contains(step.origin) || isNeutral(step) || isBounded(block))
      return;
    std::vector<ValueId> pending = controlsOf(block);
    const auto given = isExchange ? graph_.uses(step).first(1) : graph_.uses(step);
    pending.insert(pending.end(), given.rbegin(), given.rend());
    if (!isExchange)
      addSubscripts(step.place, pending);
    if (const Expr* load = surplusLoad(std::move(pending)))
      warn(*step.origin, *load, isExchange ? "exchanged between threads" : "stored to shared memory");
  }

  bool isSharedWrite(const Step& step) const {
    return (step.kind == StepKind::Store || step.kind == StepKind::Atomic) && step.place != kNoPlace &&
           graph_[step.place].storage == Storage::Shared;
  }

  void warn(const Expr& use, const Expr& load, const char* how) {
    reported_.insert(&use);
    sink_.warning("W0450", use.range, "surplus threads of the last block take part here, with 0 for their elements")
        .primary(std::string(how) + " without a test of the bound")
        .label(load.range, "threads outside the tensor read 0")
        .help("select the value that should stand for missing elements: `if thread.global_id < N { … } else { … }`");
  }

  //===-- what changes nothing ------------------------------------------------------------------------------------===//

  bool isNeutral(const Step& step) const {
    using State = SurplusThread::Known::State;
    const auto uses = graph_.uses(step);
    const auto value = thread_.of(uses[0]);
    const bool isZero = std::all_of(uses.begin(), step.kind == StepKind::Store ? uses.end() : uses.begin() + 1,
                                    [&](ValueId use) { return thread_.of(use).isZero(); });
    const bool isOne = value.state == State::Constant && value.integer != 0;
    if (step.kind == StepKind::Store)
      return isZero && zerosChangeNoResult();
    const Type type = step.origin->type;
    const bool isUnsigned = type && type->kind == TypeKind::Scalar && lang::isUnsigned(type->scalar);
    switch (step.origin->builtin) {
    case Builtin::AtomicLoad: return true;
    case Builtin::AtomicAdd:
    case Builtin::AtomicOr:
    case Builtin::AtomicXor:
    case Builtin::WarpSum:
    case Builtin::BlockSum:
    case Builtin::WarpBallot:
    case Builtin::WarpAny:
    case Builtin::BlockAny: return isZero;
    case Builtin::WarpAll:
    case Builtin::BlockAll: return isOne;
    case Builtin::AtomicMax:
    case Builtin::WarpMax:
    case Builtin::BlockMax: return isZero && isUnsigned;
    default: return isZero && step.kind == StepKind::Warp && zerosChangeNoResult();
    }
  }

  /// With `reduce(add)`, `or`.
  bool zerosChangeNoResult() const {
    const ReduceKind kind = kernel_.kernel->reduce;
    return kind == ReduceKind::Add || kind == ReduceKind::Or;
  }

  //===-- tests of the bound --------------------------------------------------------------------------------------===//

  /// Threads get there by where they stand in the grid.
  bool isBounded(BlockId block) {
    const std::vector<ValueId> conditions = controlsOf(block);
    return std::any_of(conditions.begin(), conditions.end(), [&](ValueId value) { return isTest(value); });
  }

  /// Computed from where the thread stands in the grid: from its number there, or from that in the block and what may be compared with it.
  bool isTest(ValueId value) {
    const ValueId id = graph_.values.resolved(value);
    const auto [known, isNew] = tests_.try_emplace(id, false);
    if (!isNew)
      return known->second;
    bool isOfBlock = false, isOfLaunch = false, isOfGrid = false;
    std::vector<ValueId> pending{id};
    std::set<ValueId> seen;
    while (!pending.empty() && !isOfGrid) {
      const ValueId at = graph_.values.resolved(pending.back());
      pending.pop_back();
      if (!seen.insert(at).second)
        continue;
      const Node& node = graph_.values[at];
      switch (node.kind) {
      case NodeKind::Position: {
        const PositionKind kind = node.position();
        isOfGrid |= kind == PositionKind::ThreadGlobalId || kind == PositionKind::BlockId;
        isOfBlock |= kind == PositionKind::ThreadId || kind == PositionKind::ThreadLocalId ||
                     kind == PositionKind::WarpId || kind == PositionKind::LaneId;
        break;
      }
      case NodeKind::Extent:
      case NodeKind::Argument: isOfLaunch = true; break;
      case NodeKind::Load:
      case NodeKind::Ticket: isOfLaunch |= !thread_.ownLoad(graph_.definition(at)); break;
      case NodeKind::Phi: {
        const std::vector<ValueId> choices = choicesAt(graph_.values.phiBlock(at));
        pending.insert(pending.end(), choices.begin(), choices.end());
        [[fallthrough]];
      }
      default: addOperands(at, pending);
      }
    }
    return tests_[id] = isOfGrid || (isOfBlock && isOfLaunch);
  }

  /// `v * (i < n) as f32`, `i < n & v > 0`: a choice by the test of the operand.
  bool isMasked(ValueId value) {
    const auto uses = operandsOf(value);
    return std::any_of(uses.begin(), uses.end(), [&](ValueId use) {
      use = graph_.values.resolved(use);
      for (auto below = operandsOf(use); below.size() == 1 && graph_.values.type(use) != kBool; below = operandsOf(use))
        use = graph_.values.resolved(below.front());
      return graph_.values.type(use) == kBool && isTest(use);
    });
  }

  //===-- where values come from ----------------------------------------------------------------------------------===//

  /// The element of the thread that one of the values is computed from or chosen by, up to tests of the bound and what threads exchanged.
  const Expr* surplusLoad(std::vector<ValueId> pending) {
    std::set<ValueId> seen;
    while (!pending.empty()) {
      const ValueId value = graph_.values.resolved(pending.back());
      pending.pop_back();
      if (!seen.insert(value).second)
        continue;
      const StepId step = graph_.definition(value);
      if (const Expr* own = thread_.ownLoad(step))
        return own;
      if (step != kNoStep && graph_[step].kind == StepKind::Warp)
        continue;
      if (graph_.values[value].kind == NodeKind::Phi ? !addChoice(value, pending) : isMasked(value))
        continue;
      addOperands(value, pending);
      if (step != kNoStep && graph_[step].kind == StepKind::Load)
        addStored(graph_[step], pending);
    }
    return nullptr;
  }

  /// What decides which of its operands a phi is; false where that is a test of the bound.
  bool addChoice(ValueId phi, std::vector<ValueId>& out) {
    const BlockId block = graph_.values.phiBlock(phi);
    for (ValueId condition : choicesAt(block)) {
      if (isTest(condition))
        return false;
      out.push_back(condition);
    }
    return true;
  }

  std::vector<ValueId> operandsOf(ValueId value) const {
    const Operands operands = graph_.values.operands(value);
    std::vector<ValueId> out(operands.begin(), operands.end());
    if (const StepId step = graph_.definition(value); step != kNoStep) {
      const auto uses = graph_.uses(graph_[step]);
      out.insert(out.end(), uses.begin(), uses.end());
    }
    return out;
  }

  void addOperands(ValueId value, std::vector<ValueId>& out) const {
    const std::vector<ValueId> operands = operandsOf(value);
    out.insert(out.end(), operands.rbegin(), operands.rend());
    if (graph_.values[value].kind == NodeKind::Phi) {
      const auto joined = graph_.values.phiOperands(value);
      for (size_t i = joined.size(); i-- > 0;)
        if (thread_.comesFrom(graph_.values.phiBlock(value), i))
          out.push_back(joined[i]);
    }
    if (const StepId step = graph_.definition(value); step != kNoStep && graph_[step].kind == StepKind::Load)
      addSubscripts(graph_[step].place, out);
  }

  void addSubscripts(PlaceId place, std::vector<ValueId>& out) const {
    const auto subscripts = place == kNoPlace ? std::vector<ValueId>() : graph_[place].subscripts();
    out.insert(out.end(), subscripts.begin(), subscripts.end());
  }

  /// What a variable of the thread that has a place was given.
  void addStored(const Step& load, std::vector<ValueId>& out) {
    for (StepId store : thread_.storesOf(load)) {
      const BlockId block = graph_.blockOf(store);
      if (!thread_.reaches(block) || isBounded(block))
        continue;
      const auto uses = graph_.uses(graph_[store]);
      out.insert(out.end(), uses.begin(), uses.end());
      const std::vector<ValueId> controls = controlsOf(block);
      out.insert(out.end(), controls.begin(), controls.end());
    }
  }

  //===-- control -------------------------------------------------------------------------------------------------===//

  /// The conditions that decide whether the block is executed.
  std::vector<ValueId> controlsOf(BlockId block) const {
    std::set<BlockId> branches;
    collect(block, BlockId{0}, branches);
    return conditionsOf(branches);
  }

  /// … by which edge it is entered.
  std::vector<ValueId> choicesAt(BlockId join) const {
    const BlockId first = structure_.dominator(join);
    std::set<BlockId> branches;
    for (BlockId from : graph_[join].predecessors) {
      if (first != kNoBlock && !structure_.dominates(first, from))
        continue;
      if (graph_[from].successors.size() > 1)
        branches.insert(from);
      if (from != first)
        collect(from, first == kNoBlock ? BlockId{0} : first, branches);
    }
    return conditionsOf(branches);
  }

  void collect(BlockId block, BlockId within, std::set<BlockId>& branches) const {
    for (const ControlEdge& edge : structure_.controls(block))
      if (structure_.dominates(within, edge.branch) && branches.insert(edge.branch).second && edge.branch != within)
        collect(edge.branch, within, branches);
  }

  std::vector<ValueId> conditionsOf(const std::set<BlockId>& branches) const {
    std::vector<ValueId> out;
    for (BlockId branch : branches)
      if (graph_.terminator(branch).kind == StepKind::Branch)
        out.push_back(graph_.terminator(branch).value);
    return out;
  }

  const Function& kernel_;
  const Graph& graph_;
  Structure structure_;
  SurplusThread thread_;
  diag::DiagnosticSink& sink_;
  std::map<ValueId, bool> tests_;
  std::set<const Expr*> reported_;
};

}  // namespace

void checkSurplusReads(const Function& kernel, const Graph& graph, const std::set<const Expr*>& own,
                       diag::DiagnosticSink& sink) {
  const KernelSpec& spec = *kernel.kernel;
  bool isAsked = false;
  for (uint32_t axis = 0; axis < std::min<size_t>(spec.domain.size(), kAxes); ++axis)
    isAsked |= mayHaveSurplus(spec, axis);
  if (kernel.body && isAsked && !own.empty())
    SurplusReads(kernel, graph, own, sink).run();
}

}  // namespace vortex::lang::flow
