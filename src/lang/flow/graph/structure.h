// What follows from the edges of a graph alone: dominators, post-dominators, control dependence.
#pragma once

#include "lang/flow/graph/graph.h"

namespace vortex::lang::flow {

/// An edge by which a branch decides whether a block is executed.
struct ControlEdge {
  BlockId branch = kNoBlock;
  uint32_t successor = 0;
};

class Structure {
public:
  explicit Structure(const Graph& graph);

  /// kNoBlock for the entry.
  BlockId dominator(BlockId block) const { return dominators_.parent[indexOf(block)]; }
  /// The first block that every way from here to the end passes; kNoBlock: none but the end itself. Of a branch: where its sides join.
  /// An endless loop is taken to end at its header.
  BlockId postDominator(BlockId block) const { return postDominators_.parent[indexOf(block)]; }
  /// Reflexive.
  bool dominates(BlockId a, BlockId b) const { return dominators_.contains(a, b); }
  bool postDominates(BlockId a, BlockId b) const { return postDominators_.contains(a, b); }
  /// The step comes before the other on every way to it; not reflexive.
  bool dominates(StepId a, StepId b) const;
  std::span<const ControlEdge> controls(BlockId block) const { return controls_[indexOf(block)]; }

private:
  struct Tree {
    std::vector<BlockId> parent;
    std::vector<uint32_t> enter, leave;  ///< of a walk in depth
    bool contains(BlockId root, BlockId block) const {
      return enter[indexOf(root)] <= enter[indexOf(block)] && leave[indexOf(block)] <= leave[indexOf(root)];
    }
  };
  using Edges = std::vector<std::vector<uint32_t>>;
  Edges reversedEdges(const Graph& graph) const;
  static Tree treeOf(const Edges& successors, uint32_t root, uint32_t blocks);
  static void number(Tree& tree, uint32_t nodes);
  void findControls();

  const Graph& graph_;
  Tree dominators_, postDominators_;
  std::vector<std::vector<ControlEdge>> controls_;
};

}  // namespace vortex::lang::flow
