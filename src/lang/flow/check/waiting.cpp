// Which loops wait for another thread? Threads and blocks of a launch may run one after another, so such a loop may never end.
//
// A loop waits if a thread may go round in it for ever by branches on values that only others can change: loads of one place that the loop does not
// write, and atomic operations that change nothing when they are repeated (exchange, compare_exchange, min, max, and, or with operands that stay the same). What the
// loop itself moves on, a counter or an expected value that was reloaded, is progress: lock-free retries and loops that take tickets end by themselves.
#include "lang/flow/check/waiting.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace vortex::lang::flow {
namespace {

/// Of a value in a loop: who can change it from one iteration to the next.
enum class Change : uint8_t { None, Others, Itself };

class LoopValues {
public:
  /// `isOfSurplus`: of a thread that neither stores to global memory nor changes it by atomics.
  LoopValues(const Graph& graph, const Structure& structure, LoopId loop, bool isOfSurplus)
      : graph_(graph), structure_(structure), loop_(loop), isOfSurplus_(isOfSurplus) {
    for (uint32_t i = 0; i < graph.stepCount(); ++i)
      if (graph.isInside(graph.blockOf(StepId{i}), loop))
        for (const Access& access : graph.accessesOf(graph[StepId{i}]))
          if (access.mode == AccessMode::Write && !isDropped(access.place))
            written_.push_back(access.place);
  }

  /// At least this: grows from None, which is what leads back to itself, in rounds until `isSettled`.
  Change of(ValueId value) {
    const ValueId id = graph_.values.resolved(value);
    if (!asked_.insert(id).second)
      return known_[id];
    const Change change = std::max(compute(id), known_[id]);
    isSettled_ = isSettled_ && change == known_[id];
    return known_[id] = change;
  }
  void startRound() {
    asked_.clear();
    isSettled_ = true;
  }
  bool isSettled() const { return isSettled_; }

  /// What is waited for: steps that read the places.
  const std::set<StepId>& waits() const { return waits_; }

private:
  bool isDropped(PlaceId place) const {
    const Storage storage = graph_[place].storage;
    return isOfSurplus_ && (storage == Storage::Global || storage == Storage::Result);
  }

  Change compute(ValueId id) {
    const Node& node = graph_.values[id];
    switch (node.kind) {
    case NodeKind::Phi: return ofPhi(id);
    case NodeKind::Convert: return of(graph_.values.operand(id, 0));
    case NodeKind::Op: {
      const Operands operands = graph_.values.operands(id);
      return ofComputed({operands.begin(), operands.end()});
    }
    case NodeKind::Load:
    case NodeKind::Ticket:
    case NodeKind::Unknown: {
      const StepId step = graph_.definition(id);
      return step == kNoStep || !graph_.isInside(graph_.blockOf(step), loop_) ? Change::None : ofStep(step);
    }
    default: return Change::None;
    }
  }

  Change most(std::span<const ValueId> values) {
    Change change = Change::None;
    for (ValueId value : values)
      change = std::max(change, of(value));
    return change;
  }

  /// Arithmetic on what the last iteration left moves on.
  Change ofComputed(std::span<const ValueId> operands) {
    for (ValueId operand : operands)
      if (isCarried(operand))
        return Change::Itself;
    return most(operands);
  }

  bool isCarried(ValueId value) const {
    const ValueId id = graph_.values.resolved(value);
    if (graph_.values[id].kind == NodeKind::Convert)
      return isCarried(graph_.values.operand(id, 0));
    if (graph_.values[id].kind != NodeKind::Phi)
      return false;
    const BlockId block = graph_.values.phiBlock(id);
    const LoopId loop = graph_[block].loop;
    if (!graph_.isInside(block, loop_) || graph_[loop].header != block)
      return false;
    const auto operands = graph_.values.phiOperands(id);
    for (size_t i = 0; i < operands.size(); ++i)  // `seen = load(…)` hands on what was read, not what was made of it
      if (graph_.isInside(graph_[block].predecessors[i], loop) && isMadeOf(operands[i], id))
        return true;
    return false;
  }

  /// An operation reads the phi on the way to the value.
  bool isMadeOf(ValueId value, ValueId phi) const {
    std::set<ValueId> seen;
    std::vector<std::pair<ValueId, bool>> pending{{value, false}};
    while (!pending.empty()) {
      const auto [raw, isComputed] = pending.back();
      pending.pop_back();
      const ValueId id = graph_.values.resolved(raw);
      if (id == phi && isComputed)
        return true;
      if (id == phi || !seen.insert(id).second)
        continue;
      const Node& node = graph_.values[id];
      for (ValueId operand : graph_.values.operands(id))
        pending.emplace_back(operand, isComputed || node.kind == NodeKind::Op);
      if (node.kind == NodeKind::Phi && graph_.isInside(graph_.values.phiBlock(id), loop_))
        for (ValueId operand : graph_.values.phiOperands(id))
          pending.emplace_back(operand, isComputed);
      else if (const StepId step = graph_.definition(id);
               step != kNoStep && node.kind != NodeKind::Phi && !isDropped(step))
        for (ValueId use : graph_.inputsOf(step))
          pending.emplace_back(use, true);
    }
    return false;
  }

  /// What it joins, and what decides which.
  Change ofPhi(ValueId phi) {
    const BlockId block = graph_.values.phiBlock(phi);
    if (!graph_.isInside(block, loop_))
      return Change::None;
    if (isCarried(phi))
      return Change::Itself;
    Change change = most(graph_.values.phiOperands(phi));
    if (graph_[graph_[block].loop].header == block)
      return change;
    for (BlockId branch : branchesBefore(block))
      change = std::max(change, of(graph_.terminator(branch).value));
    return change;
  }

  /// Where the ways parted that meet in the block.
  std::vector<BlockId> branchesBefore(BlockId join) const {
    const BlockId first = structure_.dominator(join);
    std::set<BlockId> seen{join};
    std::vector<BlockId> pending{join}, out;
    while (!pending.empty()) {
      const BlockId at = pending.back();
      pending.pop_back();
      if (at != join && graph_[at].successors.size() > 1 && graph_.isInside(at, loop_))
        out.push_back(at);
      if (at == first)
        continue;
      for (BlockId from : graph_[at].predecessors)
        if (seen.insert(from).second)
          pending.push_back(from);
    }
    return out;
  }

  /// An atomic that gives back 0.
  bool isDropped(StepId step) const { return graph_[step].kind == StepKind::Atomic && isDropped(graph_[step].place); }

  Change ofStep(StepId id) {
    const Step& step = graph_[id];
    if (isDropped(id))
      return wait(id);
    const std::vector<ValueId> uses = graph_.inputsOf(id);
    const Change operands = ofComputed(uses);
    if (operands == Change::Itself)
      return operands;
    if (step.kind == StepKind::Atomic)
      return ofAtomic(id, uses);
    Change change = operands;
    for (const Access& access : graph_.accessesOf(step))
      change = std::max(change, ofLoad(id, access.place));
    return change;
  }

  Change ofLoad(StepId step, PlaceId place) {
    const Storage storage = graph_[place].storage;
    if (storage == Storage::Constant)
      return Change::None;
    if (std::any_of(written_.begin(), written_.end(), [&](PlaceId other) { return mayBeSame(place, other); }))
      return Change::Itself;
    if (storage != Storage::Global && storage != Storage::Shared && storage != Storage::Result)
      return Change::None;
    return wait(step);
  }

  Change wait(StepId step) {
    waits_.insert(step);
    return Change::Others;
  }

  Change ofAtomic(StepId id, std::span<const ValueId> uses) {
    const Step& step = graph_[id];
    switch (step.origin->builtin) {
    case Builtin::AtomicLoad: return ofLoad(id, step.place);
    case Builtin::AtomicAdd:
      if (!graph_.values.isConstant(graph_.uses(step)[0]) || graph_.values[graph_.uses(step)[0]].constant() != 0)
        return Change::Itself;
      break;
    case Builtin::AtomicMin:
    case Builtin::AtomicMax:
    case Builtin::AtomicAnd:
    case Builtin::AtomicOr:
    case Builtin::AtomicExchange:
    case Builtin::AtomicCompareExchange: break;
    default: return Change::Itself;
    }
    if (most(uses) != Change::None)
      return Change::Itself;
    return wait(id);
  }

  bool mayBeSame(PlaceId a, PlaceId b) const {
    const Place &first = graph_[a], &second = graph_[b];
    if (first.isUnknown() || second.isUnknown())
      return true;
    if (first.root != second.root)
      return false;
    for (size_t i = 0; i < std::min(first.dims.size(), second.dims.size()); ++i) {
      const DimRange &x = first.dims[i], &y = second.dims[i];
      const NodeTable& values = graph_.values;
      if (x.isIndex() && y.isIndex() && values.isConstant(x.begin) && values.isConstant(y.begin) &&
          values[x.begin].constant() != values[y.begin].constant())
        return false;
    }
    return true;
  }

  const Graph& graph_;
  const Structure& structure_;
  LoopId loop_;
  bool isOfSurplus_;
  std::vector<PlaceId> written_;
  std::map<ValueId, Change> known_;
  std::set<ValueId> asked_;
  bool isSettled_ = true;
  std::set<StepId> waits_;
};

class WaitingLoops {
public:
  WaitingLoops(const Graph& graph, const Structure& structure) : graph_(graph), structure_(structure) {}

  /// What a thread waits for in the loop.
  std::set<StepId> waits(LoopId id, bool isOfSurplus) const {
    const Loop& loop = graph_[id];
    if (loop.counter || loop.exits.empty())
      return {};
    LoopValues values(graph_, structure_, id, isOfSurplus);
    std::set<BlockId> stays;
    do {
      values.startRound();
      stays = blocksThatMayStay(id, values);
    } while (!values.isSettled());
    return stays.contains(loop.header) && endsByOthers(stays, values) ? values.waits() : std::set<StepId>();
  }

  void check(LoopId id, diag::DiagnosticSink& sink) const {
    const std::set<StepId> found = waits(id, false);
    for (StepId step : found)
      if (isWrittenByOthers(step))
        return report(step, graph_[id], sink);
    if (!found.empty())
      reportEndless(*found.begin(), graph_[id], sink);
  }

private:
  std::vector<BlockId> blocksOf(LoopId id) const {
    std::vector<BlockId> out;
    for (uint32_t i = indexOf(graph_[id].header); i <= indexOf(graph_[id].last); ++i)
      if (graph_.isInside(BlockId{i}, id))
        out.push_back(BlockId{i});
    return out;
  }

  /// From where a thread may go round for ever while no other writes: both sides of a branch that the loop's own work decides lie in the set, of
  /// other branches one does. The largest such set.
  std::set<BlockId> blocksThatMayStay(LoopId id, LoopValues& values) const {
    const std::vector<BlockId> all = blocksOf(id);
    std::set<BlockId> stays(all.begin(), all.end());
    const auto isIn = [&](BlockId block) { return stays.contains(block); };
    for (bool changed = true; changed;) {
      changed = false;
      for (BlockId block : all) {
        const auto& successors = graph_[block].successors;
        const bool needsAll = successors.size() < 2 || values.of(graph_.terminator(block).value) == Change::Itself;
        const bool mayStay =
            !successors.empty() && (needsAll ? std::all_of(successors.begin(), successors.end(), isIn)
                                             : std::any_of(successors.begin(), successors.end(), isIn));
        changed |= !mayStay && stays.erase(block) > 0;
      }
    }
    return stays;
  }

  bool endsByOthers(const std::set<BlockId>& stays, LoopValues& values) const {
    return std::any_of(stays.begin(), stays.end(), [&](BlockId block) {
      const auto& successors = graph_[block].successors;
      return successors.size() > 1 && values.of(graph_.terminator(block).value) == Change::Others &&
             !std::all_of(successors.begin(), successors.end(), [&](BlockId to) { return stays.contains(to); });
    });
  }

  /// Some step of the kernel writes there; if only in this loop, other threads do.
  bool isWrittenByOthers(StepId step) const {
    const Place& place = graph_[graph_.accessesOf(graph_[step]).front().place];
    if (graph_[step].kind == StepKind::Atomic && graph_[step].origin->builtin != Builtin::AtomicLoad)
      return true;
    for (const Access& access : graph_.accesses)
      if (access.mode != AccessMode::Read && graph_[access.place].root == place.root)
        return true;
    return false;
  }

  static void labelLoop(const Loop& loop, diag::DiagnosticBuilder& builder) {
    if (loop.origin)
      builder.label(source::SourceRange{loop.origin->range.file, loop.origin->range.begin, loop.origin->range.begin},
                    "the loop");
  }

  /// The host does not write while a kernel runs.
  void reportEndless(StepId step, const Loop& loop, diag::DiagnosticSink& sink) const {
    const Step& wait = graph_[step];
    const std::string name = graph_.describe(graph_.accessesOf(wait).front().place);
    auto builder = sink.error("E0455", wait.origin->range,
                              "this loop never ends once it goes round: nothing in the kernel writes " + name);
    builder.primary("it stays what it is while the kernel runs");
    labelLoop(loop, builder);
    builder.help("change in the loop what its condition depends on, or read it once by an `if`");
  }

  void report(StepId step, const Loop& loop, diag::DiagnosticSink& sink) const {
    const Step& wait = graph_[step];
    const std::string name = graph_.describe(graph_.accessesOf(wait).front().place);
    const bool isLock = wait.kind == StepKind::Atomic && wait.origin->builtin != Builtin::AtomicLoad;
    auto builder = sink.error("E0455", wait.origin->range, "this loop ends only when another thread writes " + name);
    builder.primary(isLock ? "repeated, it changes nothing" : "nothing in the loop changes what is read here");
    labelLoop(loop, builder);
    builder.help(
        "threads and blocks may run one after another, so the other thread may wait for this one: split the work "
        "into two kernels, or order the threads of a block by `sync_block()`");
    if (isLock)
      builder.help("change single numbers without a lock: `atomic_add` and its like, or `atomic_compare_exchange` with "
                   "what it gave back as the next expected value");
  }

  const Graph& graph_;
  const Structure& structure_;
};

}  // namespace

void checkWaiting(const Graph& graph, const Structure& structure, diag::DiagnosticSink& sink) {
  const WaitingLoops loops(graph, structure);
  for (uint32_t i = 0; i < graph.loops.size(); ++i)
    loops.check(LoopId{i}, sink);
}

bool mayNeverEndForSurplus(const Graph& graph, const Structure& structure, LoopId loop) {
  return !WaitingLoops(graph, structure).waits(loop, true).empty();
}

}  // namespace vortex::lang::flow
