// Two threads at two accesses, as values: everything that may differ between them has a value of its own for each side, everything the launch, the
// block or the iteration fixes is one value. A question about the pair is then one about ordinary values under the conditions of both sides.
#pragma once

#include <map>
#include <unordered_map>

#include "lang/flow/check/block_differences.h"
#include "lang/flow/check/surroundings.h"
#include "lang/flow/check/uniform.h"
#include "lang/flow/race/cells.h"
#include "lang/flow/value/value.h"

namespace vortex::lang::flow {

/// What a pair is asked of.
struct KernelView {
  const Graph& graph;
  const LaunchFacts& launch;
  NodeTable& nodes;
  Values& values;  ///< of the graph: ranges of leaves
  const Structure& structure;
  const Uniformity& uniformity;
  BlockShape shape;
  const std::vector<bool>& writtenRoots;  ///< by local: some step writes it
  BlockShape grid;
  const BlockDifferences* differences = nullptr;  ///< in kernels with barriers of the grid
  const Cells* cells = nullptr;
};

enum class Scope : uint8_t { Block, SameWarp, OtherWarps, Grid };

class Pair {
public:
  /// `scope`: of one block (any threads, of one warp, of different warps), or of different blocks.
  Pair(KernelView& view, Scope scope, const AccessInterval* interval);

  /// One side of the pair. `isBlockCode`: done once by the block, as one more thread.
  struct Side {
    Access access;
    Reach reach = {};
    bool isBlockCode = false;
  };
  void set(const Side& first, const Side& second);
  /// The same two sides by positions in the grid, without blocks and threads in them; until `setParts`. False: the pair asks for those.
  bool setWhole();
  void setParts();
  /// The same two sides, with counters of loops as these values of the graph know them at the point.
  void suppose(Values& values, PointId point) { build(values, point); }
  /// Whether some counter wraps is not known.
  bool hasOpenCounters() const { return hasOpenCounters_; }

  /// Subscripts of both sides, outermost first; slots of arrays come before dimensions of tensors.
  struct Coordinate {
    ValueId first = kNoValue, second = kNoValue;
    ValueId divisor = kNoValue;  ///< made of a quotient and a remainder by this, which must not be 0
  };
  const std::vector<Coordinate>& coordinates() const { return coordinates_; }
  /// Different fields, or different parts of a struct of tensors.
  bool areApart() const { return areApart_; }
  /// Conditions of both sides, those that say nothing of the subscripts and positions left out.
  const std::vector<Condition>& conditions() const { return conditions_; }
  /// The conditions of both sides exclude each other.
  bool contradicts() const { return contradicts_; }
  /// Those of branches that were passed on the way.
  const std::vector<Condition>& passed() const { return passed_; }
  /// Everything that `decide` looks at: pairs with equal keys get equal answers.
  std::vector<__int128> key() const;
  /// The part of it that tells what leaves are as integers.
  void addDefinitions(std::vector<__int128>& key) const;
  /// The axes in which two threads differ at least once: blocks first.
  const std::vector<Coordinate>& axes() const { return axes_; }
  /// What leaves of the pair are as integers.
  const std::vector<std::pair<ValueId, Polynomial>>& definitions() const { return definitions_; }
  const KernelView& view() const { return view_; }
  /// Axes after these tell the pair apart no more: threads of different blocks may have equal thread ids.
  size_t decisiveAxes() const { return decisive_; }
  Scope scope() const { return scope_; }
  /// Both accesses may be one thread's: one side is code of the block.
  bool mayBeSame() const { return mayBeSame_; }
  /// What stands for a value of the program that is not known, for messages: the value.
  const std::unordered_map<uint32_t, ValueId>& leaves() const { return origins_; }
  /// Numbers that a leaf of the pair may have; empty: unbounded or too many.
  std::vector<__int128> domain(ValueId leaf, size_t limit) const;
  /// The leaves that `value` depends on.
  void leavesOf(ValueId value, std::vector<ValueId>& out) const;
  NodeTable& nodes() { return view_.nodes; }

private:
  void build(Values& counters, PointId point);
  struct Env {
    Reach reach = {};
    BlockId at{0};  ///< of the access
    /// Of a pair of whole positions: `thread` is where it stands in the grid.
    std::array<ValueId, 3> thread{kNoValue, kNoValue, kNoValue}, block{kNoValue, kNoValue, kNoValue};
    std::unordered_map<uint32_t, ValueId> known = {};
    LoopId skipped = kNoLoop;  ///< `at` its header, which it is left by before its first iteration
    // Of one iteration of a loop that is unrolled:
    Env* outer = nullptr;
    LoopId unrolled = kNoLoop;
    std::vector<ValueId>* lost = nullptr;  ///< leaves for what is not known
  };
  /// The same thread elsewhere, in the iterations of the start.
  static Env at(const Env& env, BlockId block) { return {.at = block, .thread = env.thread, .block = env.block}; }
  ValueId clone(Env& env, ValueId value, unsigned depth = 0);
  ValueId clonePosition(Env& env, const Node& node);
  ValueId cloneLeaf(Env& env, ValueId leaf, LoopId loop);
  ValueId cloneCarried(Env& env, ValueId phi, bool isNext, unsigned depth);
  ValueId clonePhi(Env& env, ValueId phi, unsigned depth);
  ValueId cloneBehind(Env& env, LoopId loop, ValueId phi, unsigned depth);
  ValueId cloneInIteration(Env& env, ValueId leaf, unsigned depth);
  void addExchanged(Env& env, ValueId phi, ValueId made, unsigned depth);
  ValueId ownInduction(Env& env, ValueId phi, unsigned depth);
  ValueId ownCounter(Env& env, ValueId phi, unsigned depth);
  void assumeInRange(Env& env, const Counter& counter, ValueId value, unsigned depth);
  ValueId fresh(MachineType type, ValueId origin);
  ValueId shared(ValueId leaf, Reach reach);
  /// Both sides agree on it in one iteration.
  bool isOne(ValueId value) const {
    return view_.uniformity.ofValue(value) == Level::Block &&
           (scope_ != Scope::Grid || (view_.differences && !view_.differences->isDifferent(value)));
  }
  ValueId blockDim(uint32_t axis);
  enum class Instance : uint8_t {
    Same,   ///< the iteration that the start of the interval is in
    Next,   ///< the one after it
    First,  ///< of a loop entered after the start
    Own,    ///< any
  };
  Instance iterationOf(const Env& env, LoopId loop) const;
  Instance instanceOf(const Env& env, LoopId loop) const;
  void addSides(const Env& env);
  void makeAxes();
  void makeWholeAxes();
  void addConditions(Env& env, StepId step);
  void addCoordinates(const Side& first, const Side& second);
  bool isInside(const Side& side, const Projection& slot, Type array);
  bool addStorage(const Side& first, const Side& second, size_t& at, Type& type);
  void addDims(const Place& place, Env& env, Type tensor, std::vector<ValueId>& out);
  void addCoordinate(ValueId first, ValueId second);
  void addWithoutCommon();
  void addCleared();
  void addUnmasked(size_t written);
  void joinDigits();
  void addElementPath(const Place& a, const Place& b);
  void dropUnrelated();
  void assume(ValueId condition, bool holds = true) { conditions_.push_back({condition, holds}); }

  KernelView& view_;
  std::array<Side, 2> sides_;
  Values* counters_ = nullptr;
  PointId counted_ = kNoPoint;
  bool hasOpenCounters_ = false, isWhole_ = false, asksForParts_ = false;
  Scope scope_;
  const AccessInterval* interval_;
  Env first_, second_;
  std::vector<Coordinate> coordinates_, axes_;
  size_t decisive_ = 0;
  bool areApart_ = false, mayBeSame_ = false, contradicts_ = false;
  std::vector<Condition> conditions_, passed_;
  std::unordered_map<uint32_t, ValueId> origins_;
  std::map<std::pair<uint32_t, Reach>, ValueId> shared_;
  std::unordered_map<uint32_t, std::vector<__int128>> lists_;
  std::vector<std::pair<ValueId, Polynomial>> definitions_;
  uint32_t next_ = 0;
};

}  // namespace vortex::lang::flow
