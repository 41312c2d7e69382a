// Forward: what staged tensors may hold, which groups of copies may be in flight into them, and whether threads have touched them since the last
// barrier. Iterations are told apart modulo the number of buffers (solve/contexts), so that `buf[s % 2]` and `buf[(s + 1) % 2]` are two tensors.
//
// A `sync_block()` closes the group of copies before it and waits until at most so many groups are in flight that what is used up to the next one is there:
// the least number of a group, over all ways, that such a use needs. A copy into what threads have touched since the last barrier gets one before
// it. A loop that synchronizes closes the group of the prologue, so that its first iteration can leave its own copies in flight.
#include "lang/flow/check/staging.h"

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "lang/flow/check/iterations.h"
#include "lang/flow/check/staged.h"
#include "lang/flow/check/surroundings.h"
#include "lang/flow/value/walk.h"

namespace vortex::lang::flow {
namespace {

constexpr uint32_t kMostPeriod = 16;
constexpr uint32_t kMostVisits = 1024;

/// Places of staged tensors repeat after so many iterations: slots, times the divisors in their indices.
uint32_t periodOf(const Graph& graph, const StagedTensors& tensors) {
  uint32_t period = tensors.mostSlots();
  std::vector<ValueId> pending;
  for (const Place& place : graph.places)
    if (!place.path.empty() && place.path.front().kind == ProjectionKind::Slot && tensors.of(place.root).count > 1)
      pending.push_back(place.path.front().index);
  walkOperands(graph.values, std::move(pending), [&](ValueId value, const Node& node) {
    if (node.kind != NodeKind::Op || node.op != Op::Div)
      return false;
    const ValueId divisor = graph.values.operand(value, 1);
    if (!graph.values.isConstant(divisor))
      return false;
    // A quotient of the counter itself stays longer; one of counter · step does not.
    const __int128 by = graph.values[divisor].constant();
    const Node& dividend = graph.values[graph.values.operand(value, 0)];
    const bool isMultiple = dividend.kind == NodeKind::Op && (dividend.op == Op::Mul || dividend.op == Op::Add);
    if (!isMultiple && by > 1 && by * period <= kMostPeriod)
      period *= static_cast<uint32_t>(by);
    return false;
  });
  return period <= kMostPeriod ? period : 1;
}

Contexts contextsFor(Graph& graph, const Structure& structure, const StagedTensors& tensors) {
  const uint32_t period = periodOf(graph, tensors);
  const LoopFacts facts = loopFacts(graph, structure);
  for (uint32_t prologue : {std::max(period, 2u), 1u}) {
    Contexts contexts = Contexts::ring(graph, period, prologue, facts);
    uint32_t visits = 0;
    for (uint32_t i = 0; i < graph.blocks.size(); ++i)
      visits = std::max(visits, contexts.count(BlockId{i}));
    if (visits <= kMostVisits)
      return contexts;
  }
  return Contexts::plain(graph);
}

class Checker {
public:
  Checker(Graph& graph, const Structure& structure, const StagedTensors& tensors, diag::DiagnosticSink& sink)
      : graph_(graph), contexts_(contextsFor(graph, structure, tensors)), flow_(graph, tensors, contexts_, plan_),
        values_(graph.values, surroundingsOf(graph, structure, graph.values)), sink_(sink) {}

  std::map<const Expr*, std::vector<int64_t>> run() {
    std::optional<Solution<StagingFlow>> solution;
    do
      solution.emplace(solve(graph_, flow_, contexts_));
    while (extendPlan(*solution));
    solution->forEach([&](StepId id, const StagedState& state, Context context) { collect(id, state, context); });
    findFirstReads();
    findMixedReads();
    report();
    return annotations();
  }

private:
  /// What is found out about reads of one expression.
  struct Read {
    StepId step = kNoStep;
    StagedUnits units;
    bool isNothing = false, isMixed = false, isFirst = false;
  };
  /// A touch of what is being filled.
  struct Conflict {
    StepId step = kNoStep, stager = kNoStep;
    StagedUnits units;
    bool isRead = false;
  };

  //===-- the plan --------------------------------------------------------------------------------------------------===//

  bool hasBarrier(LoopId loop) const {
    for (uint32_t i = 0; i < graph_.stepCount(); ++i)
      if (graph_[StepId{i}].kind == StepKind::Barrier && graph_.isInside(graph_.blockOf(StepId{i}), loop))
        return true;
    return false;
  }

  /// The first place that needs something; what needs it behind that may not, then.
  bool extendPlan(const Solution<StagingFlow>& solution) {
    bool isExtended = false;
    solution.forEach([&](StepId id, const StagedState& state, Context context) {
      const Step& step = graph_[id];
      if (isExtended)
        return;
      if (step.kind == StepKind::Stage) {
        for (const StagedUnits& units : flow_.touched(step.place, graph_.blockOf(id), context))
          for (const Staged& tensor : StagedState::of(state, units))
            isExtended = isExtended || (tensor.isTouched && plan_.barriers.insert(id).second);
        return;
      }
      if (step.kind != StepKind::Jump)
        return;
      const BlockId to = graph_[graph_.blockOf(id)].successors[0];
      const LoopId loop = graph_[to].loop;
      if (loop == kNoLoop || graph_[loop].header != to || graph_[loop].before != graph_.blockOf(id))
        return;
      const bool isOpen =
          std::any_of(state.tensors.begin(), state.tensors.end(), [](const Staged& each) { return each.isCurrent(); });
      isExtended = isOpen && hasBarrier(loop) && plan_.closing.insert(loop).second;
    });
    return isExtended;
  }

  std::map<const Expr*, std::vector<int64_t>> annotations() const {
    std::map<const Expr*, std::vector<int64_t>> out;
    for (StepId step : plan_.barriers)
      out[graph_[step].origin] = {1};
    for (LoopId loop : plan_.closing)
      out[graph_[loop].origin] = {1};
    for (const auto& [sync, pending] : pending_)
      out[graph_[sync].origin] = {1, pending};
    return out;
  }

  //===-- steps -----------------------------------------------------------------------------------------------------===//

  void collect(StepId id, const StagedState& state, Context context) {
    const Step& step = graph_[id];
    if (step.kind == StepKind::Barrier)
      pending_.try_emplace(id, kMostInFlight);
    for (const Access& access : graph_.accessesOf(step)) {
      for (const StagedUnits& units : flow_.touched(access.place, graph_.blockOf(id), context)) {
        for (const Staged& tensor : StagedState::of(state, units))  // complete at the `sync_block()` before it
          waitFor(tensor);
        if (access.mode != AccessMode::Read)
          conflict(id, access, units, state, false);
        if (access.mode != AccessMode::Write)
          read(id, access, units, state, context);
      }
      if (access.mode != AccessMode::Read && graph_[access.place].storage == Storage::Global)
        storeTo(graph_[access.place], state);
    }
  }

  void waitFor(const Staged& tensor) {
    for (const auto& [last, groups] : tensor.groups) {
      const bool isCounted = last.closed < kMostInFlight;
      const uint32_t waited = static_cast<uint32_t>(groups) >> (isCounted ? last.closed + 1 : 1);
      if (last.step == kNoStep || waited == 0)
        continue;
      int64_t& pending = pending_.try_emplace(last.step, kMostInFlight).first->second;
      pending = std::min<int64_t>(pending, isCounted ? std::countr_zero(waited) : 0);
    }
  }

  /// A store to what a copy reads: the `sync_block()` before it waits for that copy. Without one between them it is a race.
  void storeTo(const Place& place, const StagedState& state) {
    const auto roots = place.roots();
    for (const Staged& tensor : state.tensors)
      if (tensor.sources.contains(kNoLocal) ||
          std::any_of(roots.begin(), roots.end(), [&](LocalId root) { return tensor.sources.contains(root); }))
        waitFor(tensor);
  }

  void conflict(StepId id, const Access& access, const StagedUnits& units, const StagedState& state, bool isRead) {
    for (const Staged& tensor : StagedState::of(state, units))
      if ((tensor.content & kPending) &&
          (isRead || graph_[id].kind != StepKind::Stage ||
           !std::all_of(tensor.stagers.begin(), tensor.stagers.end(), [&](StepId each) { return areApart(id, each); })))
        return void(conflicts_.try_emplace(originOf(id, access), Conflict{id, *tensor.stagers.begin(), units, isRead}));
  }

  /// Copies of two statements into parts of one tensor that never have an element in common.
  bool areApart(StepId id, StepId stager) {
    const auto &dims = graph_[graph_[id].place].dims, &others = graph_[graph_[stager].place].dims;
    const auto endsBefore = [&](const DimRange& a, StepId of, const DimRange& b, StepId other) {
      const __int128 last = values_.range(a.isIndex() ? a.begin : a.end, pointOf(of)).high - (a.isIndex() ? 0 : 1);
      return last < values_.range(b.begin, pointOf(other)).low;
    };
    for (size_t i = 0; i < std::min(dims.size(), others.size()); ++i)
      if (endsBefore(dims[i], id, others[i], stager) || endsBefore(others[i], stager, dims[i], id))
        return true;
    return false;
  }

  const Expr* originOf(StepId id, const Access& access) const {
    return access.origin && graph_[id].kind != StepKind::Stage ? access.origin : graph_[id].origin;
  }

  void read(StepId id, const Access& access, const StagedUnits& units, const StagedState& state, Context context) {
    uint8_t content = 0;
    for (const Staged& tensor : StagedState::of(state, units))
      content |= tensor.content;
    if (content & kPending)
      return conflict(id, access, units, state, true);
    if (!(content & kNothing))
      return;
    const BlockId at = graph_.blockOf(id);
    const LoopId loop = graph_[at].loop;
    const bool isFor = loop != kNoLoop && graph_[loop].origin && graph_[loop].origin->kind == ExprKind::For;
    Read& found = reads_.try_emplace(originOf(id, access), Read{id, units}).first->second;
    found.isMixed |= content != kNothing;
    if (content != kNothing)
      return;
    if (!found.isNothing)
      found.units = units;
    found.isNothing = true;
    found.isFirst |= isFor && (!contexts_.isFollowed(loop) || contexts_.iteration(loop, at, context) == 0);
  }

  /// In loops whose iterations are not told apart.
  void findFirstReads() {
    std::set<LoopId> loops;
    for (const auto& [expr, read] : reads_)
      if (const LoopId loop = graph_[graph_.blockOf(read.step)].loop; loop != kNoLoop && !read.isNothing)
        loops.insert(loop);
    for (LoopId loop : loops) {
      flow_.firstOf = loop;
      solve(graph_, flow_, contexts_).forEach([&](StepId id, const StagedState& state, Context context) {
        if (graph_[graph_.blockOf(id)].loop != loop)
          return;
        for (const Access& access : graph_.accessesOf(graph_[id]))
          if (access.mode != AccessMode::Write && reads_.contains(originOf(id, access)))
            for (const StagedUnits& units : flow_.touched(access.place, graph_.blockOf(id), context))
              read(id, access, units, state, context);
      });
    }
    flow_.firstOf = kNoLoop;
  }

  LoopId outermostLoop(StepId step) const {
    LoopId loop = graph_[graph_.blockOf(step)].loop;
    while (loop != kNoLoop && graph_[loop].parent != kNoLoop)
      loop = graph_[loop].parent;
    return loop;
  }

  /// What an iteration of a loop reads is read where that runs: before `for s in 0..n` prologues under `if n > 0`, `if n > 1` came.
  void findMixedReads() {
    std::set<LoopId> loops;
    for (const auto& [expr, read] : reads_)
      if (read.isMixed && !read.isNothing)
        loops.insert(outermostLoop(read.step));
    for (LoopId loop : loops) {
      const uint32_t last = loop != kNoLoop && contexts_.isFollowed(loop) ? contexts_.prologue() : 0;
      if (loop == kNoLoop || closedWhereRuns(loop, last).empty())
        continue;
      std::set<const Expr*> still;
      for (uint32_t iteration = 0; iteration <= last; ++iteration) {
        flow_.closed = closedWhereRuns(loop, iteration);
        solve(graph_, flow_, contexts_).forEach([&](StepId id, const StagedState& state, Context context) {
          const BlockId at = graph_.blockOf(id);
          if (last > 0 &&
              (!graph_.isInside(at, loop) || std::min(contexts_.iteration(loop, at, context), last) != iteration))
            return;
          for (const Access& access : graph_.accessesOf(graph_[id]))
            for (const StagedUnits& units : flow_.touched(access.place, at, context))
              for (const Staged& tensor : StagedState::of(state, units))
                if (tensor.content & kNothing)
                  still.insert(originOf(id, access));
        });
      }
      for (auto& [expr, read] : reads_)
        if (outermostLoop(read.step) == loop)
          read.isMixed = read.isMixed && still.contains(expr);
    }
    flow_.closed.clear();
  }

  /// The ways that are not taken where the loop has the iteration, which nothing before it wraps.
  std::set<std::pair<BlockId, uint32_t>> closedWhereRuns(LoopId id, uint32_t iteration) {
    const auto& counter = graph_[id].counter;
    if (!counter)
      return {};
    NodeTable& nodes = graph_.values;
    const bool isRange = counter->kind == Counter::Kind::Range && nodes.isConstant(counter->step);
    const __int128 step = isRange ? nodes[counter->step].constant() : 1;
    const ValueId low = !isRange ? nodes.constant(kUsize, 0) : step > 0 ? counter->begin : counter->end;
    const ValueId high = !isRange ? counter->trips : step > 0 ? counter->end : counter->begin;
    if (high == kNoValue)
      return {};
    const ValueId gone = nodes.constant(nodes.type(low), iteration * (step > 0 ? step : -step));
    const ValueId runs = nodes.op(Op::Lt, kBool, nodes.op(Op::Add, nodes.type(low), low, gone), high);
    std::set<std::pair<BlockId, uint32_t>> closed;
    for (uint32_t b = 0; b < graph_.blocks.size(); ++b) {
      const Step& branch = graph_.terminator(BlockId{b});
      if (branch.kind != StepKind::Branch || graph_.blocks[b].loop != kNoLoop)
        continue;
      const PointId point = values_.assume(PointId{indexOf(graph_.blocks[b].end) - 1}, {{runs, true}});
      const Interval known = values_.range(branch.value, point);
      if (known.low == known.high)
        closed.insert({BlockId{b}, known.low != 0 ? 1u : 0u});
    }
    return closed;
  }

  //===-- reports ---------------------------------------------------------------------------------------------------===//

  std::string nameOf(const StagedUnits& units) const {
    const std::string& name = graph_[units.local].variable->name;
    return units.slot ? base::concat("`", name, "[", *units.slot, "]`") : base::concat("`", name, "`");
  }

  void report() {
    std::vector<std::pair<StepId, const Expr*>> order;
    for (const auto& [expr, conflict] : conflicts_)
      order.emplace_back(conflict.step, expr);
    for (const auto& [expr, read] : reads_)
      if (!conflicts_.contains(expr))
        order.emplace_back(read.step, expr);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return std::tuple(a.first, a.second->range.begin) < std::tuple(b.first, b.second->range.begin);
    });
    std::set<LocalId> warned;
    for (const auto& [step, expr] : order) {
      if (const auto found = conflicts_.find(expr); found != conflicts_.end())
        reportConflict(*expr, found->second);
      else if (const Read& read = reads_.at(expr); graph_.function->kernel->uncheckedInit)
        continue;
      else if (read.isNothing)
        reportNothing(*expr, read);
      else if (read.isMixed && warned.insert(read.units.local).second)
        warn(*expr, read);
    }
  }

  void reportConflict(const Expr& at, const Conflict& conflict) {
    const std::string name = nameOf(conflict.units);
    auto builder = conflict.isRead
                       ? sink_.error("E0474", at.range, name + " is read while it is still being filled")
                       : sink_.error("E0476", at.range, name + " is written while a copy into it is in flight");
    builder.primary(conflict.isRead ? "read before `sync_block()`" : "the copy may overwrite this, or this the copy");
    if (conflict.stager != kNoStep)
      builder.label(graph_[conflict.stager].origin->range,
                    conflict.isRead ? "the copy starts here"
                                    : "the copy starts here and borrows the buffer until `sync_block()`");
    if (conflict.isRead)
      builder.help("write `sync_block()` between the two");
  }

  void reportNothing(const Expr& at, const Read& read) {
    const Variable& variable = *graph_[read.units.local].variable;
    auto builder =
        sink_.error("E0475", at.range, nameOf(read.units) + " is read, but nothing has been staged or written to it");
    builder.primary(read.isFirst ? "read in the first iteration" : "read here");
    builder.label(variable.range, "declared here, without a value");
    if (variable.type->kind == TypeKind::Array)
      builder.help("fill the first buffer before the loop: `async_stage(…, &mut " + variable.name + "[0])`");
    else
      builder.help("stage it first: `" + variable.name + " = stage(…)` and `sync_block()`");
  }

  void warn(const Expr& at, const Read& read) {
    sink_.warning("W0451", at.range, nameOf(read.units) + " may be read before anything is in it")
        .primary("on some path nothing was staged or written")
        .label(graph_[read.units.local].variable->range, "declared here, without a value");
  }

  Graph& graph_;
  Contexts contexts_;
  StagingPlan plan_;
  StagingFlow flow_;
  Values values_;
  diag::DiagnosticSink& sink_;
  std::map<StepId, int64_t> pending_;  ///< by `sync_block()`
  std::map<const Expr*, Read> reads_;
  std::map<const Expr*, Conflict> conflicts_;
};

/// `stage` is a value only on its way to a shared tensor, which some step reads.
bool checkDestinations(const Graph& graph, diag::DiagnosticSink& sink) {
  bool isRight = true;
  std::set<LocalId> used;
  for (const Access& access : graph.accesses)
    if (access.mode != AccessMode::Write)
      for (LocalId root : graph[access.place].roots())
        used.insert(root);
  for (uint32_t i = 0; i < graph.stepCount(); ++i) {
    const Step& step = graph[StepId{i}];
    if (step.kind != StepKind::Stage)
      continue;
    const Place& place = graph[step.place];
    if (place.isUnknown())
      continue;
    const Variable* variable = graph[place.root].variable;
    if (place.storage == Storage::Shared && variable) {
      if (used.insert(place.root).second)
        sink.warning("W0453", step.origin->range,
                     base::concat("what is copied to `", variable->name, "` is never read"))
            .primary("this copy is of no use")
            .label(variable->range, "declared here");
      continue;
    }
    isRight = false;
    sink.error("E0470", step.origin->range, "`stage` fills a shared tensor")
        .primary("its value goes nowhere in shared memory")
        .help("assign it to one: `let tile: Tensor<…> @shared` … `tile = stage(…)`");
  }
  return isRight;
}

}  // namespace

std::map<const Expr*, std::vector<int64_t>> checkStaging(Graph& graph, const Structure& structure,
                                                         diag::DiagnosticSink& sink) {
  const StagedTensors tensors(graph);
  if (!checkDestinations(graph, sink) || tensors.count() == 0)
    return {};
  return Checker(graph, structure, tensors, sink).run();
}

}  // namespace vortex::lang::flow
