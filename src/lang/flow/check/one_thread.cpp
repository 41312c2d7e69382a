#include "lang/flow/check/one_thread.h"

#include "base/text.h"
#include "lang/flow/check/independent.h"

namespace vortex::lang::flow {
namespace {

/// So few iterations take one thread no longer than a launch.
constexpr __int128 kFewIterations = 1024;

class OneThread {
public:
  OneThread(const Function& kernel, const Graph& graph, const std::vector<LoopVerdict>& verdicts,
            diag::DiagnosticSink& sink)
      : graph_(graph), verdicts_(verdicts), sink_(sink), ofBlock_(tensorOfBlock(kernel)) {}

  /// The loops directly inside; `isInThread`: one thread runs all of it, in order.
  void visit(LoopId parent, bool isInThread) {
    for (uint32_t i = 0; i < graph_.loops.size(); ++i)
      if (graph_.loops[i].parent == parent && graph_.loops[i].origin)
        visitLoop(LoopId{i}, isInThread);
  }

private:
  using Kind = LoopVerdict::Kind;

  /// Phases could not pass it on.
  static const Variable* tensorOfBlock(const Function& kernel) {
    for (const auto& variable : kernel.variables) {
      Type type = variable->type;
      while (type && type->kind == TypeKind::Array)
        type = type->elem;
      if (type && type->isTensor() && !type->isValue && !variable->isParam &&
          (type->space == Space::Shared || type->space == Space::Local))
        return variable.get();
    }
    return nullptr;
  }

  bool isClaimed(LoopId loop) const { return graph_[loop].origin->isClaimedParallel; }
  Kind kindOf(LoopId loop) const { return verdicts_[indexOf(loop)].kind; }
  /// It becomes a grid wherever the launch can run what is around it.
  bool isClaimedGrid(LoopId loop) const { return isClaimed(loop) && kindOf(loop) <= Kind::Unproven; }

  bool holdsClaimedGrid(LoopId loop) const {
    for (uint32_t i = 0; i < graph_.loops.size(); ++i)
      if (graph_.loops[i].parent == loop && (isClaimedGrid(LoopId{i}) || holdsClaimedGrid(LoopId{i})))
        return true;
    return false;
  }

  void visitLoop(LoopId loop, bool isInThread) {
    if (ofBlock_)
      return isClaimed(loop) || isLong(loop) ? report(loop, false) : visit(loop, true);
    if (isClaimedGrid(loop) || (kindOf(loop) == Kind::Independent && !isInThread))
      return;
    const bool isOfLaunch = holdsClaimedGrid(loop) || verdicts_[indexOf(loop)].kind == Kind::OfTiles;
    if (isClaimed(loop) || (!isOfLaunch && isLong(loop)))
      return report(loop, isOfLaunch);
    visit(loop, isInThread || !isOfLaunch);
  }

  bool isLong(LoopId id) const {
    const Loop& loop = graph_[id];
    if (loop.origin->kind != ExprKind::For || !verdicts_[indexOf(id)].touchesMemory || !loop.counter ||
        loop.counter->kind != Counter::Kind::Range)
      return false;
    for (LoopId at = id; at != kNoLoop; at = graph_[at].parent)
      if (graph_[at].origin && graph_[at].origin->isSequential)
        return false;
    const NodeTable& nodes = graph_.values;
    const Counter& counter = *loop.counter;
    if (!nodes.isConstant(counter.begin) || !nodes.isConstant(counter.end))
      return true;
    const __int128 length = nodes[counter.end].constant() - nodes[counter.begin].constant();
    return length > kFewIterations || length < -kFewIterations;
  }

  void report(LoopId id, bool isOfLaunch) {
    const Expr& origin = *graph_[id].origin;
    const LoopVerdict& verdict = verdicts_[indexOf(id)];
    const bool isIndependent = verdict.kind == Kind::Independent;
    auto builder = sink_.warning("W0627", origin.variable->range,
                                 isOfLaunch || verdict.kind == Kind::OfTiles
                                     ? "the iterations of this loop run one after the other"
                                     : "one thread runs all iterations of this loop");
    if (ofBlock_)
      builder.label(ofBlock_->range, "belongs to one block, which runs all of the kernel");
    else if (isIndependent)
      builder.primary("each round of the loop around it would be a launch");
    else if (verdict.at == origin.range)
      builder.primary(verdict.reason);
    else
      builder.label(verdict.at, verdict.reason);
    if (ofBlock_)
      builder.help("a tensor that is not `@shared` or `@local` may be filled by one grid and read by the next");
    else if (isClaimed(id))
      builder.help("let each iteration work on elements and variables of its own, or leave `@parallel` away");
    else if (holdsIndependent(id))
      builder.help("`@parallel` on the loop inside, whose iterations do not meet, makes each round a launch");
    else if (verdict.kind <= Kind::Unproven)
      builder.help("`@parallel` says that its iterations do not meet: then they are threads of a grid");
    if (!isClaimed(id))
      builder.help("`@sequential` says that one thread is meant");
  }

  bool holdsIndependent(LoopId loop) const {
    for (uint32_t i = 0; i < graph_.loops.size(); ++i)
      if (graph_.loops[i].parent == loop && (kindOf(LoopId{i}) == Kind::Independent || holdsIndependent(LoopId{i})))
        return true;
    return false;
  }

  const Graph& graph_;
  const std::vector<LoopVerdict>& verdicts_;
  diag::DiagnosticSink& sink_;
  const Variable* ofBlock_;
};

}  // namespace

std::set<const Expr*> checkLoops(Function& kernel, Graph& graph, const Structure& structure,
                                 diag::DiagnosticSink& sink) {
  const std::vector<LoopVerdict> verdicts = loopVerdicts(graph, structure);
  OneThread(kernel, graph, verdicts, sink).visit(kNoLoop, false);
  std::set<const Expr*> independent;
  for (size_t i = 0; i < verdicts.size(); ++i)
    if (const Expr* origin = graph.loops[i].origin; verdicts[i].kind == LoopVerdict::Kind::Independent)
      independent.insert(origin);
    else if (origin && origin->isClaimedParallel && verdicts[i].kind == LoopVerdict::Kind::Unproven)
      kernel.notes.push_back(
          {"parallel", origin->variable->range, base::concat("as `@parallel` says; ", verdicts[i].reason)});
  return independent;
}

}  // namespace vortex::lang::flow
