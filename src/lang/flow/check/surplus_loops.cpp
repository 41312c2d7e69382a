#include "lang/flow/check/surplus_loops.h"

#include <algorithm>
#include <map>

#include "lang/flow/check/surplus_thread.h"
#include "lang/flow/check/waiting.h"
#include "lang/kernel/test_bound.h"
#include "lang/sema/kernel/inline_calls.h"

namespace vortex::lang::flow {
namespace {

class SurplusLoops {
public:
  SurplusLoops(Program& program, Function& kernel, const std::set<const Expr*>& own, const Graph& graph,
               const Structure& structure, const Uniformity& uniformity, std::set<const Expr*>& tested,
               diag::DiagnosticSink& sink)
      : program_(program), kernel_(kernel), graph_(graph), structure_(structure), uniformity_(uniformity), sink_(sink),
        thread_(graph, own), tested_(tested) {}

  bool run() {
    collectCalls(*kernel_.body, nullptr);
    for (uint32_t i = 0; i < graph_.loops.size(); ++i)
      if (const LoopId loop{i}; !tested_.contains(graph_[loop].origin) && isLeftByThreads(loop)) {
        if (mayNeverEndForSurplus(graph_, structure_, loop) || goesRoundForever(loop))
          add(graph_[loop]);
        else if (mayGoRoundByOwnZeros(loop))
          loops_.insert(underTest(graph_[loop]));
      }
    testBound(program_, kernel_, loops_, tested_);
    return !loops_.empty();
  }

private:
  /// Not by all threads of the block together, which some thread of an element is among.
  bool isLeftByThreads(LoopId loop) const {
    for (uint32_t i = 0; i < graph_.blocks.size(); ++i)
      if (const BlockId block{i}; graph_.isInside(block, loop) && levelOf(block) != Level::Block)
        for (BlockId to : graph_[block].successors)
          if (!graph_.isInside(to, loop))
            return true;
    return false;
  }

  /// Of what decides how control goes on there.
  Level levelOf(BlockId block) const {
    const Level level = uniformity_.ofBlock(block);
    return graph_[block].successors.size() > 1 ? std::max(level, uniformity_.ofBranch(block)) : level;
  }

  static bool isOfWarp(const Step& step) { return step.kind == StepKind::Warp || step.kind == StepKind::WarpBarrier; }
  template <typename Test> bool hasStep(const Loop& loop, Test test) const {
    for (uint32_t i = indexOf(graph_[loop.header].begin); i < indexOf(graph_[loop.last].end); ++i)
      if (test(graph_[StepId{i}]))
        return true;
    return false;
  }

  /// With 0 for the thread's own elements: once begun it is not left.
  bool goesRoundForever(LoopId id) const {
    const Loop& loop = graph_[id];
    return isRepeated(loop) && !loop.exits.empty() &&
           std::none_of(loop.exits.begin(), loop.exits.end(), [&](BlockId to) {
             for (size_t i = 0; i < graph_[to].predecessors.size(); ++i)
               if (graph_.isInside(graph_[to].predecessors[i], id) && thread_.comesFrom(to, i))
                 return true;
             return false;
           });
  }

  /// Whether it ends is a matter of the thread's own elements, for which nobody has thought of 0, and the threads do nothing together in it.
  bool mayGoRoundByOwnZeros(LoopId id) const {
    const Loop& loop = graph_[id];
    return !loop.counter && isRepeated(loop) && underTest(loop) &&
           !hasStep(loop, [&](const Step& step) { return isOfAll(step); }) && isLeftByOwnData(id);
  }

  bool isRepeated(const Loop& loop) const {
    const auto& before = graph_[loop.header].predecessors;
    for (size_t i = 0; i < before.size(); ++i)
      if (before[i] != loop.before && thread_.comesFrom(loop.header, i))
        return true;
    return false;
  }

  /// The block and the branches of the loop that decide whether it is reached.
  void addWithControls(BlockId block, LoopId loop, std::set<BlockId>& out) const {
    if (!graph_.isInside(block, loop) || !out.insert(block).second)
      return;
    if (graph_[block].successors.size() < 2)  // every way out may lead through it, which controls nothing
      for (BlockId from : graph_[block].predecessors)
        addWithControls(from, loop, out);
    for (const ControlEdge& edge : structure_.controls(block))
      addWithControls(edge.branch, loop, out);
  }

  bool isLeftByOwnData(LoopId id) const {
    std::set<ValueId> seen;
    std::vector<ValueId> pending;
    const auto addBranch = [&](BlockId block) {
      if (graph_[block].successors.size() > 1)
        pending.push_back(graph_.terminator(block).value);
    };
    std::set<BlockId> leaving;
    for (BlockId to : graph_[id].exits)
      for (BlockId from : graph_[to].predecessors)
        if (graph_.isInside(from, id))
          addWithControls(from, id, leaving);
    std::ranges::for_each(leaving, addBranch);
    while (!pending.empty()) {
      const ValueId value = graph_.values.resolved(pending.back());
      pending.pop_back();
      if (!seen.insert(value).second)
        continue;
      const StepId step = graph_.definition(value);
      if (thread_.ownLoad(step))
        return true;
      for (ValueId operand : graph_.values.operands(value))
        pending.push_back(operand);
      if (graph_.values[value].kind == NodeKind::Phi) {
        const BlockId join = graph_.values.phiBlock(value);
        for (ValueId operand : graph_.values.phiOperands(value))
          pending.push_back(operand);
        for (BlockId from : graph_[join].predecessors)
          addBranch(from);
      } else if (step != kNoStep) {
        const std::vector<ValueId> inputs = graph_.inputsOf(step);
        pending.insert(pending.end(), inputs.begin(), inputs.end());
        for (StepId store : thread_.storesOf(graph_[step]))
          for (ValueId use : graph_.uses(graph_[store]))
            pending.push_back(use);
      }
    }
    return false;
  }

  static bool isKeptCall(const Expr& expr) {
    return expr.kind == ExprKind::Inline && expr.function && expr.function->staysFunction;
  }

  void collectCalls(const Expr& expr, const Expr* call) {
    if (call)
      calls_[&expr] = call;
    for (const Expr* arg : expr.args)
      if (arg)
        collectCalls(*arg, expr.kind == ExprKind::Inline && arg == expr.args.back() ? &expr : call);
  }
  const Expr* callOf(const Expr* expr) const {
    const auto found = calls_.find(expr);
    return found == calls_.end() ? nullptr : found->second;
  }

  /// In the call, or after the loop in it: all threads of a warp or the block are wanted.
  bool isOfAll(const Expr& call) const {
    for (uint32_t i = 0; i < graph_.stepCount(); ++i)
      if (const Step& step = graph_[StepId{i}]; isOfAll(step))
        for (const Expr* inside = callOf(step.origin); inside; inside = callOf(inside))
          if (inside == &call)
            return true;
    return false;
  }

  bool isOfAll(const Step& step) const {
    return isOfWarp(step) || step.kind == StepKind::Barrier ||
           std::ranges::any_of(graph_.accessesOf(step), [&](const Access& access) {
             return access.mode != AccessMode::Read && graph_[access.place].storage == Storage::Shared;
           });
  }

  /// The test stands around the loop, which gives zeros where it is not entered. All calls of a function that stays one have one body, and a loop
  /// that only `return` leaves has no value to give: around the call then. Null: nowhere.
  const Expr* underTest(const Loop& loop) const {
    if (hasStep(loop, isOfWarp))
      return nullptr;
    const Expr* call = callOf(loop.origin);
    const Expr* kept = nullptr;
    for (const Expr* each = call; each; each = callOf(each))
      kept = isKeptCall(*each) ? each : kept;
    if (kept)
      return kept;
    if (loop.origin->type->kind != TypeKind::Never)
      return isPlainValue(loop.origin->type) ? loop.origin : nullptr;
    return call && call->type->kind != TypeKind::Never && isPlainValue(call->type) && !isOfAll(*call) ? call : nullptr;
  }

  void add(const Loop& loop) {
    if (const Expr* tested = underTest(loop)) {
      loops_.insert(tested);
      return;
    }
    tested_.insert(loop.origin);
    const source::SourceRange at = loop.origin->range;
    sink_.error("E0455", {at.file, at.begin, at.begin}, "surplus threads never leave this loop")
        .primary("threads of the last block beyond the elements store nothing; their elements and the numbers that "
                 "they draw are 0")
        .help("write the grid, `@launch(grid = …, block = …)`, and test the bound around the loop");
  }

  Program& program_;
  Function& kernel_;
  const Graph& graph_;
  const Structure& structure_;
  const Uniformity& uniformity_;
  diag::DiagnosticSink& sink_;
  const SurplusThread thread_;
  std::set<const Expr*>& tested_;
  std::set<const Expr*> loops_;               ///< and calls that get a test
  std::map<const Expr*, const Expr*> calls_;  ///< in the body of a function: the innermost call
};

}  // namespace

bool keepSurplusOut(Program& program, Function& kernel, const std::set<const Expr*>& own, const Graph& graph,
                    const Structure& structure, const Uniformity& uniformity, std::set<const Expr*>& tested,
                    diag::DiagnosticSink& sink) {
  return kernel.kernel->gridKind == GridKind::Domain && !kernel.kernel->tile && !graph.loops.empty() &&
         SurplusLoops(program, kernel, own, graph, structure, uniformity, tested, sink).run();
}

}  // namespace vortex::lang::flow
