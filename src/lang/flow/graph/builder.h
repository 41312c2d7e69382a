// Puts a graph together while the tree is walked, and the variables of the tree into SSA form on the way.
//
// The tree is structured, so phis are placed as joins are reached, without dominance frontiers: a slot (one scalar or one alias of a
// variable) has a current value; a join looks only at slots that changed on some edge since the join's label was made (`trail_` remembers
// what to undo); a loop header gets a phi for each slot assigned in the loop, which the caller knows. `finish` removes phis that turn out
// to be one value.
#pragma once

#include <unordered_map>

#include "lang/flow/graph/graph.h"

namespace vortex::lang::flow {

using SlotId = uint32_t;

/// A block to come. Its edges know what the slots that existed when it was made held then.
struct Label {
  struct Edge {
    BlockId from = kNoBlock;
    uint32_t successor = 0;
    std::vector<std::pair<SlotId, uint32_t>> changes;
  };
  size_t mark = 0;
  SlotId slots = 0;
  LoopId loop = kNoLoop;
  LoopId exitOf = kNoLoop;  ///< all edges leave this loop
  std::vector<Edge> edges;
};

/// A loop whose body is being lowered.
struct OpenLoop {
  LoopId loop = kNoLoop;
  std::vector<SlotId> slots;
  std::vector<ValueId> phis;
  std::vector<std::vector<ValueId>> operands;  ///< of each phi, by predecessor
};

class GraphBuilder {
public:
  explicit GraphBuilder(Graph& graph);

  // slots
  SlotId newSlot(MachineType type);
  SlotId newAliasSlot();
  ValueId value(SlotId slot) const { return ValueId{slots_[slot].now}; }
  PlaceId alias(SlotId slot) const { return PlaceId{slots_[slot].now}; }
  void write(SlotId slot, ValueId value) { write(slot, indexOf(value)); }
  void writeAlias(SlotId slot, PlaceId place) { write(slot, indexOf(place)); }
  bool isAlias(SlotId slot) const { return slots_[slot].isAlias; }
  MachineType type(SlotId slot) const { return slots_[slot].type; }

  // blocks
  bool isReachable() const { return at_ != kNoBlock; }
  BlockId block() const { return at_; }
  LoopId loop() const { return loop_; }
  void startEntry();
  /// A block that the current loop contains, or, of `exitOf`, the loop around that one.
  Label label(LoopId exitOf = kNoLoop);
  /// Leaves loops until the label's, each by a block of its own.
  void jump(Label& to, const Expr* origin);
  void branch(ValueId condition, Label& then, Label& otherwise, const Expr* origin);
  /// Goes on at the label; false if nothing leads there.
  bool start(Label& label);
  /// Ends the function.
  Step& leave(const Expr* origin);
  /// Starts a loop's header. `assigned`: slots that the loop writes; aliases among them have been widened by the caller.
  OpenLoop openLoop(const Expr* origin, const std::vector<SlotId>& assigned);
  void repeat(OpenLoop& loop, const Expr* origin);
  void closeLoop(const OpenLoop& loop);
  Loop& loopOf(const OpenLoop& loop) { return graph_.loops[indexOf(loop.loop)]; }

  // steps
  FrameId frame = FrameId{0};
  StepId nextStep() const { return StepId{static_cast<uint32_t>(graph_.steps_.size())}; }
  Step& emit(StepKind kind, const Expr* origin);
  void addUses(Step& step, std::span<const ValueId> uses);
  void addAccess(Step& step, PlaceId place, AccessMode mode, const Expr* origin);
  /// The result of the step: a Load, a Ticket, or an Unknown that remembers it.
  ValueId loaded(Step& step, MachineType type);
  ValueId ticket(Step& step, MachineType type);
  ValueId computed(Step& step, MachineType type);
  ValueId undefined(MachineType type) { return graph_.values.unknown(nullptr, type); }

  // places
  PlaceId root(LocalId local);
  PlaceId extend(PlaceId parent, Projection projection, Type type);
  PlaceId unknown(std::vector<LocalId> candidates, Type type, bool isWhole = false);
  PlaceId merge(PlaceId a, PlaceId b);
  PlaceId outside(PlaceId place, LoopId loop);

  void finish();

private:
  struct Slot {
    uint32_t now = UINT32_MAX;
    uint32_t loggedAt = 0;  ///< 1 + position in the trail of its last entry; 0: none
    bool isAlias = false;
    MachineType type;
  };
  struct Undo {
    SlotId slot = 0;
    uint32_t before = 0, loggedBefore = 0;
  };
  void write(SlotId slot, uint32_t now);
  void rewind(size_t mark);
  void note();
  Label::Edge edge(const Label& to, uint32_t successor);
  BlockId newBlock(LoopId loop);
  void endBlock(uint32_t successors);
  void join(Label& label, BlockId block);
  ValueId joinValues(BlockId block, std::span<const uint32_t> operands, LoopId exitOf, MachineType type);
  void landOutside(Label& to, const Expr* origin);
  LoopId loopOf(ValueId value);
  std::vector<DimRange> inRootCoordinates(const Place& parent, const std::vector<DimRange>& dims);
  PlaceId intern(Place place);
  bool simplifyPhis();
  ValueId soleOperand(ValueId phi) const;
  void resolveAll();

  Graph& graph_;
  std::vector<Slot> slots_;
  std::vector<Undo> trail_;
  size_t lastMark_ = 0;
  SlotId slotsAtMark_ = 0;
  BlockId at_ = kNoBlock;
  LoopId loop_ = kNoLoop;
  std::vector<LoopId> valueLoops_;  ///< by value; memo of loopOf, kUnasked where not known
  std::vector<uint32_t> seen_;      ///< by slot: stamp
  std::vector<uint32_t> column_;
  uint32_t stamp_ = 0;
  std::unordered_multimap<size_t, PlaceId> placesByHash_;
  std::vector<PlaceId> roots_;  ///< by local; kNoPlace where not asked
};

}  // namespace vortex::lang::flow
