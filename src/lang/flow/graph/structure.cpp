// Dominators by iteration over the intersection of ways in reverse post-order (Cooper, Harvey, Kennedy 2001): our graphs are reducible, so
// two rounds do.
#include "lang/flow/graph/structure.h"

#include <algorithm>

namespace vortex::lang::flow {

constexpr uint32_t kNone = UINT32_MAX;

Structure::Structure(const Graph& graph) : graph_(graph) {
  const auto count = static_cast<uint32_t>(graph.blocks.size());
  Edges forward(count);
  for (uint32_t i = 0; i < count; ++i)
    for (BlockId next : graph.blocks[i].successors)
      forward[i].push_back(indexOf(next));
  dominators_ = treeOf(forward, 0, count);
  postDominators_ = treeOf(reversedEdges(graph), count, count);
  findControls();
}

/// From the end (node number `blocks.size()`) backwards. Where no way leads to the end, one does from the outermost loop's header.
Structure::Edges Structure::reversedEdges(const Graph& graph) const {
  const auto count = static_cast<uint32_t>(graph.blocks.size());
  Edges out(count + 1);
  std::vector<bool> ends(count);
  const auto endAt = [&](uint32_t block) {
    out[count].push_back(block);
    std::vector<uint32_t> pending{block};
    ends[block] = true;
    while (!pending.empty()) {
      const uint32_t at = pending.back();
      pending.pop_back();
      for (BlockId before : graph.blocks[at].predecessors)
        if (!ends[indexOf(before)]) {
          ends[indexOf(before)] = true;
          pending.push_back(indexOf(before));
        }
    }
  };
  for (uint32_t i = 0; i < count; ++i) {
    for (BlockId before : graph.blocks[i].predecessors)
      out[i].push_back(indexOf(before));
    if (graph.blocks[i].successors.empty())
      endAt(i);
  }
  for (const Loop& loop : graph.loops)
    if (!ends[indexOf(loop.header)])
      endAt(indexOf(loop.header));
  return out;
}

Structure::Tree Structure::treeOf(const Edges& successors, uint32_t root, uint32_t blocks) {
  const auto count = static_cast<uint32_t>(successors.size());
  std::vector<uint32_t> order, position(count, kNone);  // post-order
  std::vector<std::pair<uint32_t, size_t>> stack{{root, 0}};
  std::vector<bool> seen(count);
  seen[root] = true;
  while (!stack.empty()) {
    auto& [at, next] = stack.back();
    if (next < successors[at].size()) {
      const uint32_t to = successors[at][next++];
      if (!seen[to]) {
        seen[to] = true;
        stack.emplace_back(to, 0);
      }
      continue;
    }
    position[at] = static_cast<uint32_t>(order.size());
    order.push_back(at);
    stack.pop_back();
  }
  Edges predecessors(count);
  for (uint32_t at : order)
    for (uint32_t to : successors[at])
      predecessors[to].push_back(at);
  std::vector<uint32_t> parent(count, kNone);
  parent[root] = root;
  const auto meet = [&](uint32_t a, uint32_t b) {
    while (a != b) {
      while (position[a] < position[b])
        a = parent[a];
      while (position[b] < position[a])
        b = parent[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = order.size() - 1; i-- > 0;) {
      uint32_t found = kNone;
      for (uint32_t before : predecessors[order[i]])
        if (parent[before] != kNone)
          found = found == kNone ? before : meet(found, before);
      if (found != parent[order[i]]) {
        parent[order[i]] = found;
        changed = true;
      }
    }
  }
  Tree tree;
  tree.parent.assign(blocks, kNoBlock);
  for (uint32_t i = 0; i < blocks; ++i)
    if (i != root && parent[i] != kNone && parent[i] < blocks)
      tree.parent[i] = BlockId{parent[i]};
  number(tree, blocks);
  return tree;
}

void Structure::number(Tree& tree, uint32_t nodes) {
  Edges children(nodes);
  std::vector<std::pair<uint32_t, size_t>> stack;
  tree.enter.assign(nodes, 0);
  tree.leave.assign(nodes, 0);
  uint32_t clock = 0;
  for (uint32_t i = 0; i < nodes; ++i)
    if (tree.parent[i] != kNoBlock)
      children[indexOf(tree.parent[i])].push_back(i);
  for (uint32_t i = 0; i < nodes; ++i) {
    if (tree.parent[i] != kNoBlock)
      continue;
    stack.emplace_back(i, 0);
    tree.enter[i] = clock++;
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      if (next < children[at].size()) {
        const uint32_t child = children[at][next++];
        tree.enter[child] = clock++;
        stack.emplace_back(child, 0);
        continue;
      }
      tree.leave[at] = clock++;
      stack.pop_back();
    }
  }
}

/// A block is controlled by the edges of branches that it post-dominates from but not the branch itself.
void Structure::findControls() {
  controls_.resize(graph_.blocks.size());
  for (uint32_t i = 0; i < graph_.blocks.size(); ++i) {
    const std::vector<BlockId>& successors = graph_.blocks[i].successors;
    for (uint32_t edge = 0; successors.size() > 1 && edge < successors.size(); ++edge)
      for (BlockId at = successors[edge]; at != kNoBlock && at != postDominator(BlockId{i}); at = postDominator(at))
        controls_[indexOf(at)].push_back({BlockId{i}, edge});
  }
}

bool Structure::dominates(StepId a, StepId b) const {
  const BlockId first = graph_.blockOf(a), second = graph_.blockOf(b);
  return first == second ? indexOf(a) < indexOf(b) : dominates(first, second);
}

}  // namespace vortex::lang::flow
