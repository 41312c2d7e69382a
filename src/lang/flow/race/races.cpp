#include "lang/flow/race/races.h"

#include <algorithm>

#include "lang/flow/race/thread_code.h"
#include "lang/flow/value/walk.h"

namespace vortex::lang::flow {
namespace {

/// Of groups of accesses.
constexpr size_t kMostPairs = 4096;
/// Behind these a group stands for its members.
constexpr size_t kMostRecorded = 1 << 16;
constexpr uint64_t kMostWalkedSteps = 1u << 19;
constexpr size_t kMostLaunches = 24;
constexpr size_t kMostLimits = 4;
/// Proofs that hold for launches of fewer threads than this are none.
constexpr __int128 kFewThreads = 1 << 20;

/// Of blocks that are as large as an argument says, too.
LaunchFacts factsOf(Graph& graph, const LaunchShapes& shapes, const BlockShape& shape) {
  const std::vector<Expr*>& block = graph.function->kernel->block;
  LaunchFacts facts =
      launchFacts(*graph.function, {shape, shapes.grid, shapes.usesOwnBlock, shapes.usesOwnGrid}, graph.values);
  for (uint32_t i = 0; shapes.usesOwnBlock && i < graph.arguments.size(); ++i)
    for (size_t axis = 0; axis < block.size(); ++axis)
      if (block[axis]->kind == ExprKind::Var && block[axis]->variable == graph.arguments[i].variable)
        facts.blockDim[axis] = graph.values.convert(kUsize, graph.values.argument(i, machineType(block[axis]->type)));
  return facts;
}

class RaceFinder {
public:
  RaceFinder(Graph& graph, const Structure& structure, const LaunchShapes& shapes)
      : graph_(graph), structure_(structure), shapes_(shapes), shape_(shapes.blocks.empty() ? BlockShape{} : common()),
        uniformity_(graph, structure, {&shape_, 1}), launch_(factsOf(graph, shapes, shape_)),
        values_(graph.values, surroundingsOf(graph, structure, graph.values), launch_),
        cells_(graph, structure, uniformity_, shape_, intervals_),
        tickets_(graph, structure, values_, intervals_, cells_) {
    written_.resize(graph.locals.size());
    for (const Access& access : graph.accesses)
      if (access.mode != AccessMode::Read)
        for (LocalId root : graph[access.place].roots())
          written_[indexOf(root)] = true;
    const std::unordered_set<const Expr*> ofThreads = threadCode(*graph.function);
    for (uint32_t s = 0; s < graph.stepCount(); ++s)
      graph_[StepId{s}].level =
          ofThreads.contains(graph[StepId{s}].origin) ? Level::Lane : uniformity_.ofStep(StepId{s});
  }

  RaceReport run() {
    ask();
    addGridLimits();
    walkUndecided();
    for (const auto& [steps, verdict] : report_.pairs)
      ++report_.counts[verdict.decider];
    return std::move(report_);
  }

private:
  /// Of all pairs.
  void ask() {
    const bool hasWarpBarriers = hasStep([](const Step& step) { return step.kind == StepKind::WarpBarrier; });
    intervals_ = intervals(BarrierKind::OfBlocks);
    if (hasStep(isGridBarrier)) {  // the grid first: what is open there needs more than a barrier of the block
      differences_.emplace(graph_, structure_);
      askIntervals(intervals(BarrierKind::OfGrids), Scope::Grid);
    } else {
      askGrid();
    }
    if (hasWarpBarriers)
      askIntervals(intervals(BarrierKind::OfBlocksAndWarps), Scope::SameWarp);
    askIntervals(intervals_, hasWarpBarriers ? Scope::OtherWarps : Scope::Block);
    askCopies();
  }

  size_t openPairs() const {
    return static_cast<size_t>(std::count_if(report_.pairs.begin(), report_.pairs.end(),
                                             [](const auto& each) { return each.second.decider == Decider::None; }));
  }

  /// Numbers of blocks that a launch may change, and without which less is proven.
  void addGridLimits() {
    LaunchShapes others = shapes_;
    for (uint32_t axis = 0; axis < 3; ++axis) {
      if (!shapes_.isGridGiven || !shapes_.grid[axis])
        continue;
      others.grid[axis] = std::nullopt;
      const bool isAsked = shapes_.asksBlocks[axis] || shapes_.asksGrid[axis];
      if (isAsked) {
        RaceFinder finder(graph_, structure_, others);
        finder.ask();
        if (!finder.report_.isCut && finder.openPairs() <= openPairs())
          continue;
      }
      others.grid[axis] = shapes_.grid[axis];
      LaunchLimit limit;
      limit.blocksAlong = axis;
      limit.isExact = shapes_.asksGrid[axis];
      limit.most = *shapes_.grid[axis];
      report_.gridLimits.push_back({std::move(limit), !isAsked});
    }
  }

  /// What all blocks that the kernel is launched with have in common.
  BlockShape common() const {
    BlockShape shape = shapes_.blocks.front();
    for (const BlockShape& other : shapes_.blocks)
      for (size_t axis = 0; axis < 3; ++axis)
        if (shape[axis] != other[axis])
          shape[axis] = std::nullopt;
    return shape;
  }

  template <typename Predicate> bool hasStep(Predicate holds) const {
    for (uint32_t s = 0; s < graph_.stepCount(); ++s)
      if (holds(graph_[StepId{s}]))
        return true;
    return false;
  }

  std::vector<AccessInterval> intervals(BarrierKind barriers) {
    return findIntervals(graph_, structure_, barriers, [&](LoopId loop) { return certainlyRuns(loop); });
  }

  /// The header's condition holds for what the loop is entered with.
  bool certainlyRuns(LoopId id) {
    const Loop& loop = graph_[id];
    const Step& branch = graph_.terminator(loop.header);
    if (branch.kind != StepKind::Branch || !graph_.isInside(graph_[loop.header].successors[0], id))
      return false;
    const PointId entry = pointOf(StepId{indexOf(graph_[loop.before].end) - 1});
    const ValueId condition = graph_.values.resolved(branch.value);
    const Node node = graph_.values[condition];
    if (node.kind != NodeKind::Op || (node.op != Op::Lt && node.op != Op::Le))
      return false;
    const ValueId a = entered(loop, graph_.values.operand(condition, 0)),
                  b = entered(loop, graph_.values.operand(condition, 1));
    return node.op == Op::Lt ? values_.less(a, b, entry) == Truth::Yes : values_.less(b, a, entry) == Truth::No;
  }

  /// A phi of the header as the loop is entered; other values are their own.
  ValueId entered(const Loop& loop, ValueId value) const {
    if (graph_.values[value].kind == NodeKind::Phi && graph_.values.phiBlock(value) == loop.header)
      for (size_t i = 0; i < graph_[loop.header].predecessors.size(); ++i)
        if (graph_[loop.header].predecessors[i] == loop.before)
          return graph_.values.phiOperands(value)[i];
    return value;
  }

  //===-- pairs ---------------------------------------------------------------------------------------------------===//
  struct Candidate {
    Access access;
    Reach reach;
    bool writes = false, isAtomic = false, isBlockCode = false;
  };

  void add(StepId id, const Reach& reach, std::map<uint32_t, std::vector<Candidate>>& byRoot) const {
    const Step& step = graph_[id];
    for (const Access& access : graph_.accessesOf(step)) {
      const Place& place = graph_[access.place];
      const Storage storage = place.storage;
      if (!isSharedStorage(storage) || storage == Storage::Constant)
        continue;
      // The compiler gives each block its tile of the output.
      if (step.kind == StepKind::Output && graph_.function->kernel->tile)
        continue;
      // Copies wait for earlier accesses of their destination; early reads of it are told by the check of copies.
      if (step.kind == StepKind::Stage && access.mode == AccessMode::Write)
        continue;
      Candidate made{access, reach, access.mode != AccessMode::Read && !isAtomicLoad(step),
                     step.kind == StepKind::Atomic, false};
      made.isBlockCode = step.kind == StepKind::Stage || step.kind == StepKind::Tile || step.kind == StepKind::Output ||
                         step.level == Level::Block;
      for (LocalId root : place.roots())
        if (written_[indexOf(root)])
          byRoot[indexOf(root)].push_back(made);
    }
  }

  KernelView viewed() {
    return {graph_,      launch_, graph_.values, values_,      structure_,
            uniformity_, shape_,  written_,      shapes_.grid, differences_ ? &*differences_ : nullptr,
            &cells_};
  }

  void askIntervals(const std::vector<AccessInterval>& intervals, Scope scope) {
    KernelView view = viewed();
    for (const AccessInterval& interval : intervals) {
      std::map<uint32_t, std::vector<Candidate>> byRoot;
      for (const auto& [step, reach] : interval.steps)
        add(step, reach, byRoot);
      Pair pair(view, scope, &interval);
      askRoots(pair, byRoot);
    }
  }

  void askGrid() {
    std::map<uint32_t, std::vector<Candidate>> byRoot;
    for (uint32_t s = 0; s < graph_.stepCount(); ++s)
      if (graph_[StepId{s}].accessCount > 0)
        add(StepId{s}, {}, byRoot);
    KernelView view = viewed();
    Pair pair(view, Scope::Grid, nullptr);
    askRoots(pair, byRoot);
  }

  void askRoots(Pair& pair, const std::map<uint32_t, std::vector<Candidate>>& byRoot) {
    const bool acrossBlocks = pair.scope() == Scope::Grid;
    for (const auto& [root, candidates] : byRoot)
      if (!acrossBlocks || graph_[candidates.front().access.place].storage != Storage::Shared)
        askRoot(pair, candidates, acrossBlocks);
  }

  /// What the block stores before the `sync_block()` that completes a copy may be what the copy still reads.
  void askCopies() {
    KernelView view = viewed();
    for (uint32_t s = 0; s < graph_.stepCount(); ++s) {
      if (graph_[StepId{s}].kind != StepKind::Stage)
        continue;
      const AccessInterval interval = intervalBehind(graph_, structure_, StepId{s}, BarrierKind::OfBlocks,
                                                     [&](LoopId loop) { return certainlyRuns(loop); });
      std::map<uint32_t, std::vector<Candidate>> copied, stored;
      add(StepId{s}, {}, copied);
      for (const auto& [step, reach] : interval.steps)
        add(step, reach, stored);
      Pair pair(view, Scope::Block, &interval);
      for (const auto& [root, reads] : copied)
        for (const Group& read : grouped(reads))
          for (const Group& store : grouped(stored[root]))
            if (store.like.isBlockCode && store.like.writes && !isKnownOpen(read, store))
              record(read, store, ask(pair, read.like, store.like, false));
    }
  }

  /// Accesses that a pair sees as one: `x[i] += …` written twice in a row is two loads and two stores.
  struct Group {
    Candidate like;
    std::vector<StepId> steps;
  };

  bool isLike(const Candidate& a, const Candidate& b) const {
    return a.access.mode == b.access.mode && a.writes == b.writes && a.isAtomic == b.isAtomic &&
           a.isBlockCode == b.isBlockCode && graph_.blockOf(a.access.step) == graph_.blockOf(b.access.step) &&
           isOfBlockScope(graph_[a.access.step]) == isOfBlockScope(graph_[b.access.step]) && a.reach == b.reach &&
           graph_[a.access.place] == graph_[b.access.place];
  }

  std::vector<Group> grouped(const std::vector<Candidate>& candidates) const {
    std::vector<Group> groups;
    for (const Candidate& candidate : candidates) {
      auto group =
          std::find_if(groups.begin(), groups.end(), [&](const Group& each) { return isLike(each.like, candidate); });
      if (group == groups.end())
        group = groups.insert(groups.end(), Group{candidate, {}});
      group->steps.push_back(candidate.access.step);
    }
    return groups;
  }

  void askRoot(Pair& pair, const std::vector<Candidate>& candidates, bool acrossBlocks) {
    const std::vector<Group> groups = grouped(candidates);
    for (size_t i = 0; i < groups.size(); ++i)
      for (size_t j = i; j < groups.size(); ++j) {
        const Candidate &a = groups[i].like, &b = groups[j].like;
        // Code of the block runs in order.
        const bool isOrdered = !acrossBlocks && a.isBlockCode && b.isBlockCode;
        if ((a.writes || b.writes) && !isOrdered && !isKnownOpen(groups[i], groups[j]))
          record(groups[i], groups[j], ask(pair, a, b, acrossBlocks));
      }
  }

  static std::pair<StepId, StepId> inOrder(StepId a, StepId b) {
    return indexOf(a) > indexOf(b) ? std::pair(b, a) : std::pair(a, b);
  }

  /// Another interval has left it undecided.
  bool isKnownOpen(const Group& a, const Group& b) const {
    if (a.steps.size() > 1 || b.steps.size() > 1)
      return false;
    auto found = report_.pairs.find(inOrder(a.steps.front(), b.steps.front()));
    return found != report_.pairs.end() && found->second.decider == Decider::None;
  }

  void record(const Group& a, const Group& b, const RaceVerdict& found) {
    const bool isSame = &a == &b;
    for (size_t i = 0; i < a.steps.size(); ++i)
      for (size_t j = isSame ? i : 0; j < b.steps.size(); ++j) {
        if (report_.pairs.size() >= kMostRecorded && i > 0 && j > 0)
          break;
        if (report_.pairs.size() >= kMostRecorded && report_.isCut)
          return;
        RaceVerdict& verdict =
            report_.pairs.try_emplace(inOrder(a.steps[i], b.steps[j]), RaceVerdict{Decider::Field, nullptr, {}})
                .first->second;
        if (verdict.decider == Decider::None)
          continue;
        verdict.isOpenAcrossBlocks = found.isOpenAcrossBlocks;
        verdict.areBlocksApart |= found.areBlocksApart;
        if (found.decider == Decider::Tickets)
          verdict.counter = found.counter;
        verdict.limits |= found.limits;
        verdict.decider = found.decider == Decider::None ? found.decider : std::max(verdict.decider, found.decider);
        verdict.cause = found.cause;
      }
  }

  RaceVerdict ask(Pair& pair, const Candidate& a, const Candidate& b, bool acrossBlocks) {
    if (a.isAtomic && b.isAtomic &&
        !(acrossBlocks && (isOfBlockScope(graph_[a.access.step]) || isOfBlockScope(graph_[b.access.step]))))
      return {Decider::Atomic, nullptr, {}};
    if (++asked_ > kMostPairs) {
      report_.isCut = true;
      return {};
    }
    // A read by the block is a read by every thread; a store by the block is one more thread.
    pair.set({a.access, a.reach, a.isBlockCode && a.writes}, {b.access, b.reach, b.isBlockCode && b.writes});
    const auto [known, isNew] = decided_.try_emplace(pair.key());
    if (isNew)
      known->second = withoutTooMany(decide(pair, tickets_, knowledge_, shape_, budget_));
    RaceVerdict verdict{known->second.decider, nullptr, {}};
    if (verdict.decider == Decider::Launch && !addLimits(known->second.limits, verdict.limits))
      verdict.decider = Decider::None;
    if (verdict.decider == Decider::Tickets) {
      verdict.counter = known->second.counter;
      if (!addLimits(tickets_.limits(verdict.counter), verdict.limits))
        verdict.decider = Decider::None;
    }
    if (verdict.decider == Decider::None)
      verdict.cause = causeOf(pair);
    verdict.isOpenAcrossBlocks = acrossBlocks && verdict.decider == Decider::None;
    verdict.areBlocksApart = acrossBlocks && verdict.decider > Decider::Field;
    return verdict;
  }

  /// False: a launch would have too much to ask for.
  bool addLimits(const std::vector<LaunchLimit>& limits, uint32_t& bits) {
    for (const LaunchLimit& limit : limits) {
      const auto known = std::find(report_.limits.begin(), report_.limits.end(), limit);
      const auto number = static_cast<size_t>(known - report_.limits.begin());
      if (number >= kMostLimits)
        return false;
      if (known == report_.limits.end())
        report_.limits.push_back(limit);
      bits |= 1u << number;
    }
    return true;
  }

  /// A counter that comes round is none where it must, or remembered for the launch.
  Decision withoutTooMany(Decision decision) {
    const auto most = decision.decider == Decider::Tickets ? tickets_.mostThreads(decision.counter) : std::nullopt;
    if (!most)
      return decision;
    const bool isOfBlocks = graph_[decision.counter].storage == Storage::Shared;
    __int128 threads = 1;
    bool isKnown = true;
    for (size_t axis = 0; axis < 3; ++axis) {
      isKnown = isKnown && shape_[axis] && (isOfBlocks || (shapes_.usesOwnGrid && shapes_.grid[axis]));
      threads *= shape_[axis].value_or(1) * (isOfBlocks ? 1 : shapes_.grid[axis].value_or(1));
    }
    if (isKnown ? threads <= *most : isOfBlocks && *most >= kMostThreadsOfBlock)
      return decision;
    // Where the launch is written down, or must be absurdly small, that is no proof.
    if (isKnown || isOfBlocks || *most < kFewThreads)
      return {};
    report_.mostThreads[decision.counter] = static_cast<int64_t>(*most);
    return decision;
  }

  /// The first value that is not known, of the subscripts, then of the conditions.
  const Expr* causeOf(const Pair& pair) const {
    std::vector<ValueId> leaves;
    for (const Pair::Coordinate& coordinate : pair.coordinates())
      for (ValueId side : {coordinate.first, coordinate.second})
        pair.leavesOf(side, leaves);
    for (ValueId leaf : leaves) {
      auto origin = pair.leaves().find(indexOf(leaf));
      const ValueId value = origin == pair.leaves().end() ? leaf : origin->second;
      if (value == kNoValue)
        continue;
      if (const StepId step = graph_.definition(value); step != kNoStep && graph_[step].origin)
        return graph_[step].origin;
      if (graph_.values[value].kind == NodeKind::Unknown && graph_.values.cause(value))
        return graph_.values.cause(value);
    }
    return nullptr;
  }

  //===-- witnesses -----------------------------------------------------------------------------------------------===//
  /// Of pairs that no proof and no launch so far has decided, where both steps are told.
  std::vector<bool> undecidedSteps(const Meetings& meetings, const std::vector<bool>& told) const {
    std::vector<bool> steps(graph_.stepCount());
    for (const auto& [pair, verdict] : report_.pairs)
      if (verdict.decider == Decider::None && told[indexOf(pair.first)] && told[indexOf(pair.second)] &&
          !meetings.contains(pair))
        steps[indexOf(pair.first)] = steps[indexOf(pair.second)] = true;
    return steps;
  }

  void walkUndecided() {
    if (std::none_of(report_.pairs.begin(), report_.pairs.end(),
                     [](const auto& each) { return each.second.decider == Decider::None; }))
      return;
    Meetings meetings;
    const std::vector<SampleLaunch> launches =
        sampleLaunches(*graph_.function, shapes_.blocks, shapes_.grid, kMostLaunches);
    walk(launches, [](const SampleLaunch& launch) { return std::vector{launch}; }, meetings);
    walk(launches, [&](const SampleLaunch& launch) { return withScalars(*graph_.function, launch); }, meetings);
    for (const auto& [steps, meeting] : meetings) {
      auto found = report_.pairs.find(steps);
      if (found == report_.pairs.end() || found->second.decider != Decider::None)
        continue;
      if (meeting.launch.scalars.empty() || !(followsFromScalars(steps.first) || followsFromScalars(steps.second)))
        found->second.decider = Decider::Witness;
      found->second.meeting = meeting;
    }
  }

  /// Until there is no more to be found. All variants of all launches give the same arguments a number.
  template <typename Variants>
  void walk(const std::vector<SampleLaunch>& launches, const Variants& variants, Meetings& meetings) {
    uint64_t budget = kMostWalkedSteps;
    std::optional<std::vector<bool>> told;
    for (const SampleLaunch& launch : launches)
      for (const SampleLaunch& each : variants(launch)) {
        if (!told)
          told = toldSteps(graph_, each);
        const std::vector<bool> wanted = undecidedSteps(meetings, *told);
        if (budget == 0 || std::find(wanted.begin(), wanted.end(), true) == wanted.end())
          return;
        walkLaunch(graph_, each, wanted, budget, meetings);
      }
  }

  /// Subscripts are computed from a scalar argument, a stride or an offset: which numbers it may have is the caller's promise. Conditions and ends of
  /// loops are none.
  bool followsFromScalars(StepId step) const {
    const NodeTable& nodes = graph_.values;
    std::vector<ValueId> pending;
    for (const Access& access : graph_.accessesOf(graph_[step])) {
      const std::vector<ValueId> subscripts = graph_[access.place].subscripts();
      pending.insert(pending.end(), subscripts.begin(), subscripts.end());
    }
    bool found = false;
    walkOperands(nodes, std::move(pending), [&](ValueId, const Node& node) {
      found = found || node.kind == NodeKind::Argument;
      return true;
    });
    return found;
  }

  Graph& graph_;
  const Structure& structure_;
  const LaunchShapes& shapes_;
  BlockShape shape_;
  Uniformity uniformity_;
  std::optional<BlockDifferences> differences_;  ///< in kernels with barriers of the grid
  LaunchFacts launch_;
  Values values_;
  std::vector<bool> written_;
  RaceReport report_;
  Knowledge knowledge_;
  DecisionBudget budget_;
  std::map<std::vector<__int128>, Decision> decided_;
  std::vector<AccessInterval> intervals_;
  Cells cells_;
  Tickets tickets_;
  size_t asked_ = 0;
};

}  // namespace

RaceReport findRaces(Graph& graph, const Structure& structure, const LaunchShapes& shapes) {
  return RaceFinder(graph, structure, shapes).run();
}

}  // namespace vortex::lang::flow
