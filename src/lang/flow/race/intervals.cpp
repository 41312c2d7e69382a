#include "lang/flow/race/intervals.h"

#include <algorithm>
#include <map>

namespace vortex::lang::flow {
namespace {

class IntervalFinder {
public:
  IntervalFinder(const Graph& graph, const Structure& structure, BarrierKind barriers,
                 const std::function<bool(LoopId)>& certainlyRuns)
      : graph_(graph), structure_(structure), barriers_(barriers), certainlyRuns_(certainlyRuns) {}

  AccessInterval from(BlockId block, uint32_t step, StepId start) {
    AccessInterval interval;
    interval.start = start;
    interval.block = block;
    origin_ = block;
    seen_.clear();
    found_.clear();
    walk(block, step, {});
    while (!pending_.empty()) {
      const auto [at, reach] = *pending_.begin();
      pending_.erase(pending_.begin());
      walk(at, indexOf(graph_[at].begin), reach);
    }
    interval.steps.assign(found_.begin(), found_.end());
    return interval;
  }

  bool isBarrier(const Step& step) const {
    if (barriers_ == BarrierKind::OfGrids)
      return isGridBarrier(step);
    return endsAtBarrier(step) || (barriers_ == BarrierKind::OfBlocksAndWarps && step.kind == StepKind::WarpBarrier);
  }

private:
  void walk(BlockId at, uint32_t step, const Reach& reach) {
    for (; step < indexOf(graph_[at].end); ++step) {
      const Step& here = graph_[StepId{step}];
      if (here.accessCount > 0)
        found_.insert({StepId{step}, reach});
      if (isBarrier(here))
        return;
    }
    for (size_t side = 0; side < graph_[at].successors.size(); ++side) {
      const BlockId to = graph_[at].successors[side];
      const LoopId skipped = skippedLoop(at, to, reach);
      if (skipped != kNoLoop && certainlyRuns_(skipped))
        continue;
      Reach next = after(at, to, reach);
      addSide(at, side, skipped != kNoLoop, reach, next);
      if (auto way = std::pair(to, std::move(next)); seen_.insert(way).second)
        pending_.insert(std::move(way));
    }
  }

  /// The loop that is left here before its first iteration.
  LoopId skippedLoop(BlockId from, BlockId to, const Reach& reach) const {
    const LoopId loop = graph_[from].loop;
    const bool isLeft = loop != kNoLoop && graph_[loop].header == from && !graph_.isInside(to, loop);
    return isLeft && isAnew(loop, reach) && std::find(reach.later.begin(), reach.later.end(), loop) == reach.later.end()
               ? loop
               : kNoLoop;
  }

  bool isInside(BlockId block, LoopId loop) const { return loop == kNoLoop || graph_.isInside(block, loop); }

  /// Both sides are in the iteration of the branch.
  bool staysInside(BlockId branch) const {
    const auto& sides = graph_[branch].successors;
    return sides.size() == 2 && isInside(sides[0], graph_[branch].loop) && isInside(sides[1], graph_[branch].loop);
  }

  /// The loop of whose iterations what the branch decides is told.
  LoopId loopAround(BlockId branch, BlockId to) const {
    const LoopId loop = graph_[branch].loop;
    return isInside(to, loop) ? loop : graph_[loop].parent;
  }

  /// In which iterations the branch is must be known where it is asked.
  void addSide(BlockId at, size_t side, bool isSkipped, const Reach& before, Reach& next) {
    const BlockId to = graph_[at].successors[side];
    const LoopId loop = graph_[at].loop, around = loopAround(at, to);
    const bool isLeft = loop != kNoLoop && before.passed == loop && !before.isRepeated && graph_[loop].header == at &&
                        !graph_.isInside(to, loop);
    if (seen_.size() > kMostWays)
      next.sides.clear();
    else if (next.sides.size() < kMostSides && isInside(to, around) &&
             (isLeft || ((isSkipped || staysInside(at)) && isAroundBarrier(at)))) {
      const bool isOfStart = !before.isRepeated && (around == kNoLoop || !isAnew(around, before));
      next.sides.push_back({at, side == 0, isOfStart, isOfStart ? before.passed : kNoLoop});
    }
  }

  /// A side has a barrier that the other may leave out.
  bool isAroundBarrier(BlockId branch) {
    const auto [known, isNew] = isAroundBarrier_.try_emplace(branch, false);
    std::set<BlockId> seen{structure_.postDominator(branch)};
    std::vector<BlockId> pending = graph_[branch].successors;
    while (isNew && !pending.empty()) {
      const BlockId block = pending.back();
      pending.pop_back();
      if (!seen.insert(block).second)
        continue;
      for (uint32_t s = indexOf(graph_[block].begin); s < indexOf(graph_[block].end); ++s)
        known->second |= isBarrier(graph_[StepId{s}]);
      pending.insert(pending.end(), graph_[block].successors.begin(), graph_[block].successors.end());
    }
    return known->second;
  }

  /// The loop was entered after the start.
  bool isAnew(LoopId loop, const Reach& reach) const {
    return !graph_.isInside(origin_, loop) ||
           (reach.passed != kNoLoop && reach.passed != loop && graph_.isInside(loop, reach.passed));
  }

  /// First and later iterations are told apart in so many loops around one another: each doubles the ways in which a step is reached. A later one
  /// may be any, the first too.
  bool isDeep(LoopId loop, const Reach& reach) const {
    constexpr int kMostTracked = 4;
    int tracked = 0;
    for (LoopId around = graph_[loop].parent; around != kNoLoop; around = graph_[around].parent)
      tracked += isAnew(around, reach);
    return tracked >= kMostTracked;
  }

  /// Passing a back edge of a loop around the start begins its next iteration, and loops inside it anew.
  Reach after(BlockId from, BlockId to, const Reach& reach) const {
    Reach next = reach;
    std::erase_if(next.later, [&](LoopId loop) { return !graph_.isInside(to, loop); });
    const LoopId loop = graph_[to].loop;
    // Only for the iterations around a loop that it was reached in.
    const bool isAnother = loop != kNoLoop && graph_[loop].header == to;
    std::erase_if(next.sides, [&](const Reach::Side& side) {
      const LoopId around = loopAround(side.branch, graph_[side.branch].successors[side.holds ? 0 : 1]);
      return !side.isOfStart &&
             (!isInside(to, around) || (isAnother && around != kNoLoop && graph_.isInside(around, loop)));
    });
    if (loop == kNoLoop || graph_[loop].header != to)
      return next;
    const bool isBack = graph_.isInside(from, loop);
    if (isAnew(loop, reach)) {
      const bool isLater = isBack || isDeep(loop, reach);
      const auto found = std::find(next.later.begin(), next.later.end(), loop);
      if (!isLater && found != next.later.end())
        next.later.erase(found);
      else if (isLater && found == next.later.end())
        next.later.insert(std::lower_bound(next.later.begin(), next.later.end(), loop), loop);
      return next;
    }
    if (!isBack)
      return next;
    next.isRepeated = reach.passed == loop;
    next.passed = loop;
    return next;
  }

  const Graph& graph_;
  const Structure& structure_;
  BarrierKind barriers_;
  const std::function<bool(LoopId)>& certainlyRuns_;
  static constexpr size_t kMostSides = 4, kMostWays = 4096;
  std::map<BlockId, bool> isAroundBarrier_;
  BlockId origin_{0};
  std::set<std::pair<BlockId, Reach>> seen_, pending_;
  std::set<std::pair<StepId, Reach>> found_;
};

}  // namespace

std::vector<AccessInterval> findIntervals(const Graph& graph, const Structure& structure, BarrierKind barriers,
                                          const std::function<bool(LoopId)>& certainlyRuns) {
  IntervalFinder finder(graph, structure, barriers, certainlyRuns);
  std::vector<AccessInterval> intervals;
  intervals.push_back(finder.from(BlockId{0}, indexOf(graph[BlockId{0}].begin), kNoStep));
  for (uint32_t b = 0; b < graph.blocks.size(); ++b)
    for (uint32_t s = indexOf(graph.blocks[b].begin); s < indexOf(graph.blocks[b].end); ++s)
      if (finder.isBarrier(graph[StepId{s}]))
        intervals.push_back(finder.from(BlockId{b}, s + 1, StepId{s}));
  return intervals;
}

AccessInterval intervalBehind(const Graph& graph, const Structure& structure, StepId step, BarrierKind barriers,
                              const std::function<bool(LoopId)>& certainlyRuns) {
  return IntervalFinder(graph, structure, barriers, certainlyRuns).from(graph.blockOf(step), indexOf(step) + 1, step);
}

}  // namespace vortex::lang::flow
