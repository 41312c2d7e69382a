#include "lang/flow/check/liveness.h"

#include <deque>

#include "lang/flow/check/written.h"
#include "lang/flow/solve/solve.h"

namespace vortex::lang::flow {
namespace {

/// The local that the step uses.
LocalId anyUsedBy(const Graph& graph, const Step& step) {
  switch (step.kind) {
  case StepKind::Flow:
  case StepKind::FlowMore: return LocalId{step.index};
  case StepKind::Keep:
  case StepKind::Result: return graph[step.place].root;
  case StepKind::Store: return graph[step.place].path.empty() ? kNoLocal : graph[step.place].root;
  default: return touchesPlace(graph, step) ? graph[step.place].root : kNoLocal;
  }
}

/// … if it may hold borrows.
LocalId usedBy(const Graph& graph, const Step& step) {
  const LocalId used = anyUsedBy(graph, step);
  return used != kNoLocal && graph[used].holdsBorrows ? used : kNoLocal;
}

/// The local that holds something else from here on.
LocalId definedBy(const Graph& graph, const Step& step) {
  switch (step.kind) {
  case StepKind::Declare:
  case StepKind::Empty:
  case StepKind::End:
  case StepKind::Flow: return graph[step.place].root;
  case StepKind::Store: return graph[step.place].path.empty() ? graph[step.place].root : kNoLocal;
  case StepKind::Borrow: return graph.loans[step.index].holder;
  default: return kNoLocal;
  }
}

struct LiveDomain {
  using State = Bits;
  static constexpr Direction kDirection = Direction::Backward;

  State start() const { return Bits(graph->locals.size()); }
  void step(StepId, const Step& step, State& live) const {
    if (const LocalId defined = definedBy(*graph, step); defined != kNoLocal)
      live.reset(indexOf(defined));
    if (const LocalId used = usedBy(*graph, step); used != kNoLocal)
      live.set(indexOf(used));
  }
  bool edge(BlockId, uint32_t, State&) const { return true; }
  void join(State& into, const State& other, bool) const { into.add(other); }

  const Graph* graph;
};

}  // namespace

Liveness::Liveness(const Graph& graph)
    : graph_(graph), entries_(graph.blocks.size(), Bits(graph.locals.size())), ends_(entries_) {
  for (uint32_t i = 0; i < graph.blocks.size() && !crossesBlocks_; ++i)
    crossesBlocks_ = usesBefore(BlockId{i});
  if (!crossesBlocks_)
    return;
  const auto solution = solve(graph, LiveDomain{&graph}, Contexts::plain(graph));
  for (uint32_t i = 0; i < graph.blocks.size(); ++i)
    if (const Bits* end = solution.at(BlockId{i}, Context{0}))
      ends_[i] = *end;
  for (uint32_t i = 0; i < graph.blocks.size(); ++i) {
    Bits live = ends_[i];
    for (uint32_t step = indexOf(graph.blocks[i].end); step-- > indexOf(graph.blocks[i].begin);)
      LiveDomain{&graph}.step(StepId{step}, graph[StepId{step}], live);
    entries_[i] = std::move(live);
  }
}

/// Does the block use what it has not defined?
bool Liveness::usesBefore(BlockId block) const {
  Bits defined(graph_.locals.size());
  for (uint32_t i = indexOf(graph_[block].begin); i < indexOf(graph_[block].end); ++i) {
    const Step& step = graph_[StepId{i}];
    if (const LocalId used = usedBy(graph_, step); used != kNoLocal && !defined.test(indexOf(used)))
      return true;
    if (const LocalId local = definedBy(graph_, step); local != kNoLocal)
      defined.set(indexOf(local));
  }
  return false;
}

std::vector<Bits> Liveness::afterEach(BlockId block) const {
  const uint32_t begin = indexOf(graph_[block].begin), end = indexOf(graph_[block].end);
  std::vector<Bits> out(end - begin);
  Bits live = ends_[indexOf(block)];
  for (uint32_t step = end; step-- > begin;) {
    out[step - begin] = live;
    LiveDomain{&graph_}.step(StepId{step}, graph_[StepId{step}], live);
  }
  return out;
}

source::SourceRange Liveness::nextUse(StepId after, LocalId local) const {
  std::vector<bool> seen(graph_.blocks.size());
  std::deque<StepId> work{StepId{indexOf(after) + 1}};
  while (!work.empty()) {
    const StepId first = work.front();
    work.pop_front();
    const Block& block = graph_[graph_.blockOf(first)];
    bool ends = false;
    for (uint32_t i = indexOf(first); i < indexOf(block.end) && !ends; ++i) {
      const Step& step = graph_[StepId{i}];
      if (usedBy(graph_, step) == local) {
        // A temporary that only hands its borrows on: what counts is where they end up.
        const bool handsOn = step.kind == StepKind::Flow || step.kind == StepKind::FlowMore;
        return handsOn ? nextUse(StepId{i}, graph_[step.place].root) : rangeOf(step);
      }
      ends = definedBy(graph_, step) == local;
    }
    if (ends)
      continue;
    for (BlockId next : block.successors)
      if (!seen[indexOf(next)]) {
        seen[indexOf(next)] = true;
        work.push_back(graph_[next].begin);
      }
  }
  return {};
}

}  // namespace vortex::lang::flow
