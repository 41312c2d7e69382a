// Dataflow problems on a graph. A domain is a class with
//   using State = …;                                         copied, compared by ==
//   static constexpr Direction kDirection = …;
//   State start() const;                                     at the entry; backward: at the ends (an endless loop ends at its header)
//   void step(StepId, const Step&, State&) const;            phis are read on edges; a further parameter is the Context
//   bool edge(BlockId from, uint32_t successor, State&) const;   false: nothing takes this edge
//   void join(State& into, const State& other, bool isDivergent) const;
// A join is computed anew from all its edges, so it need not be a union. It is divergent where the sides of a branch meet whose condition
// differs between the threads of a block (Block::joinsDivergent): then both sides were executed.
#pragma once

#include <algorithm>

#include "lang/flow/solve/contexts.h"

namespace vortex::lang::flow {

enum class Direction : uint8_t { Forward, Backward };

template <typename Domain> class Solution;
template <typename Domain> Solution<Domain> solve(const Graph& graph, const Domain& domain, const Contexts& contexts);

template <typename Domain> class Solution {
public:
  using State = typename Domain::State;

  bool isReached(BlockId block, Context context) const { return states_[nodeOf(block, context)].has_value(); }
  /// Forward: where the block begins; backward: behind its last step. Null where the visit does not happen.
  const State* at(BlockId block, Context context) const {
    const auto& state = states_[nodeOf(block, context)];
    return state ? &*state : nullptr;
  }
  /// What holds just before the step (forward and backward alike), in all visits; nothing where none happens.
  std::optional<State> before(PointId point) const;
  /// Calls visit(step, state, context) for every step of every visit: the state that `Domain::step` is about to change. Forward that is
  /// what holds before the step, backward what holds behind it.
  template <typename Visit> void forEach(Visit&& visit) const;

private:
  template <typename D> friend Solution<D> solve(const Graph&, const D&, const Contexts&);
  Solution(const Graph& graph, Domain domain, Contexts contexts);
  size_t nodeOf(BlockId block, Context context) const {
    return first_[indexOf(block)] + static_cast<uint32_t>(context);
  }
  void run();
  bool visit(BlockId block, Context context);
  void findEdges();
  template <typename Each> void walk(BlockId block, Context context, State& state, Each&& each) const;
  State leaving(BlockId block, Context context, State state) const {
    walk(block, context, state, [](StepId, const State&) { return true; });
    return state;
  }

  static constexpr bool kIsForward = Domain::kDirection == Direction::Forward;
  struct Edge {
    BlockId from;  ///< in the direction of the problem
    Context context;
    BlockId branch;  ///< in the direction of the program
    uint32_t successor;
  };

  const Graph& graph_;
  Domain domain_;
  Contexts contexts_;
  std::vector<size_t> first_;                ///< by block: its first node
  std::vector<std::vector<Edge>> incoming_;  ///< by node
  std::vector<bool> begins_, isDirty_;
  std::vector<std::optional<State>> states_;
};

template <typename Domain>
Solution<Domain>::Solution(const Graph& graph, Domain domain, Contexts contexts)
    : graph_(graph), domain_(std::move(domain)), contexts_(std::move(contexts)) {
  size_t count = 0;
  for (uint32_t i = 0; i < graph.blocks.size(); ++i) {
    first_.push_back(count);
    count += contexts_.count(BlockId{i});
  }
  incoming_.resize(count);
  begins_.resize(count);
  isDirty_.resize(count);
  states_.resize(count);
  findEdges();
}

/// Of the visits that happen at all: from the entry on.
template <typename Domain> void Solution<Domain>::findEdges() {
  std::vector<bool> seen(states_.size());
  std::vector<std::pair<BlockId, Context>> pending{{BlockId{0}, Context{0}}};
  seen[0] = true;
  if (kIsForward)
    begins_[0] = true;
  while (!pending.empty()) {
    const auto [block, context] = pending.back();
    pending.pop_back();
    const size_t node = nodeOf(block, context);
    const size_t successors = graph_[block].successors.size();
    if (!kIsForward && successors == 0)
      begins_[node] = true;
    for (uint32_t i = 0; i < successors; ++i) {
      const BlockId to = graph_[block].successors[i];
      for (const Context next : contexts_.follow(block, context, i)) {
        const size_t target = nodeOf(to, next);
        if (kIsForward)
          incoming_[target].push_back({block, context, block, i});
        else
          incoming_[node].push_back({to, next, block, i});
        if (!seen[target]) {
          seen[target] = true;
          pending.emplace_back(to, next);
        }
      }
    }
  }
  if (!kIsForward)
    for (const Loop& loop : graph_.loops)
      if (loop.exits.empty())
        for (uint32_t i = 0; i < contexts_.count(loop.header); ++i)
          begins_[nodeOf(loop.header, Context{i})] = seen[nodeOf(loop.header, Context{i})];
}

template <typename Domain>
template <typename Each>
void Solution<Domain>::walk(BlockId block, Context context, State& state, Each&& each) const {
  const uint32_t begin = indexOf(graph_[block].begin), end = indexOf(graph_[block].end);
  for (uint32_t i = 0; i < end - begin; ++i) {
    const StepId step{kIsForward ? begin + i : end - 1 - i};
    if (!each(step, std::as_const(state)))
      return;
    if constexpr (requires { domain_.step(step, graph_[step], state, context); })
      domain_.step(step, graph_[step], state, context);
    else
      domain_.step(step, graph_[step], state);
  }
}

/// True if the state has changed.
template <typename Domain> bool Solution<Domain>::visit(BlockId block, Context context) {
  const size_t node = nodeOf(block, context);
  std::optional<State> state;
  if (begins_[node])
    state = domain_.start();
  // The visits of one edge first, as any of them may have happened; then the edges, which at a divergent join all have.
  std::vector<std::pair<std::pair<BlockId, uint32_t>, State>> edges;
  edges.reserve(incoming_[node].size());
  for (const Edge& edge : incoming_[node]) {
    const auto& before = states_[nodeOf(edge.from, edge.context)];
    if (!before)
      continue;
    State leaving = this->leaving(edge.from, edge.context, *before);
    if (!domain_.edge(edge.branch, edge.successor, leaving))
      continue;
    const std::pair key(edge.branch, edge.successor);
    auto same = std::find_if(edges.begin(), edges.end(), [&](const auto& each) { return each.first == key; });
    if (same == edges.end())
      edges.emplace_back(key, std::move(leaving));
    else
      domain_.join(same->second, leaving, false);
  }
  for (auto& [key, leaving] : edges) {
    if (state)
      domain_.join(*state, leaving, kIsForward && graph_[block].joinsDivergent);
    else
      state = std::move(leaving);
  }
  if (!state || (states_[node] && *states_[node] == *state))
    return false;
  states_[node] = std::move(state);
  return true;
}

template <typename Domain> void Solution<Domain>::run() {
  // Blocks stand in reverse post-order: a round over them, forwards or backwards, suffices but for loops.
  const auto count = static_cast<uint32_t>(graph_.blocks.size());
  std::vector<std::vector<std::pair<BlockId, Context>>> outgoing(states_.size());
  for (uint32_t i = 0; i < count; ++i)
    for (uint32_t c = 0; c < contexts_.count(BlockId{i}); ++c)
      for (const Edge& edge : incoming_[nodeOf(BlockId{i}, Context{c})])
        outgoing[nodeOf(edge.from, edge.context)].emplace_back(BlockId{i}, Context{c});
  for (size_t i = 0; i < isDirty_.size(); ++i)
    isDirty_[i] = begins_[i];
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < count; ++i) {
      const BlockId block{kIsForward ? i : count - 1 - i};
      for (uint32_t c = 0; c < contexts_.count(block); ++c) {
        const size_t node = nodeOf(block, Context{c});
        if (!isDirty_[node])
          continue;
        isDirty_[node] = false;
        if (!visit(block, Context{c}))
          continue;
        again = true;
        for (const auto& [to, context] : outgoing[node])
          isDirty_[nodeOf(to, context)] = true;
      }
    }
  }
}

template <typename Domain> std::optional<typename Domain::State> Solution<Domain>::before(PointId point) const {
  const StepId wanted = stepAt(point);
  const BlockId block = graph_.blockOf(wanted);
  std::optional<State> out;
  for (uint32_t c = 0; c < contexts_.count(block); ++c) {
    const State* known = at(block, Context{c});
    if (!known)
      continue;
    State state = *known;
    walk(block, Context{c}, state,
         [&](StepId step, const State&) { return kIsForward ? step != wanted : step >= wanted; });
    if (out)
      domain_.join(*out, state, false);
    else
      out = std::move(state);
  }
  return out;
}

template <typename Domain> template <typename Visit> void Solution<Domain>::forEach(Visit&& visit) const {
  for (uint32_t i = 0; i < graph_.blocks.size(); ++i)
    for (uint32_t c = 0; c < contexts_.count(BlockId{i}); ++c)
      if (const State* known = at(BlockId{i}, Context{c})) {
        State state = *known;
        walk(BlockId{i}, Context{c}, state, [&](StepId step, const State& now) {
          visit(step, now, Context{c});
          return true;
        });
      }
}

/// The least solution, if `step`, `edge` and `join` are monotone.
template <typename Domain> Solution<Domain> solve(const Graph& graph, const Domain& domain, const Contexts& contexts) {
  Solution<Domain> out(graph, domain, contexts);
  out.run();
  return out;
}

}  // namespace vortex::lang::flow
