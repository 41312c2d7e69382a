// Runs a kernel by its graph: every thread walks the blocks with integers of its machine types. What it cannot compute (floats, whole-tensor
// work, tickets) is poison, and so is what depends on it. It judges lowering and analyses, and shares no arithmetic with them.
//
// The threads of a block go in lockstep: always those that stand at the lowest step, so that they meet again where their ways join.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>

#include "lang/flow/graph/graph.h"

namespace vortex::lang::flow::testing {

/// No number: poison.
using Number = std::optional<__int128>;

struct Launch {
  std::array<int64_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  std::map<DimVarId, int64_t> dims;
  std::map<const Variable*, __int128> scalars;  ///< parameters
  uint64_t maxSteps = 1'000'000;
  bool givesTickets = false;  ///< what `atomic_add` gives back is known, in the machine's own order of threads
};

enum class Outcome : uint8_t {
  Done,
  Undecided,  ///< a branch on poison
  TooLong,
  Stuck,  ///< a barrier or warp operation that only some threads get to
};

class ThreadMachine {
public:
  using Key = std::vector<int64_t>;

  ThreadMachine(const Graph& graph, Launch launch) : graph_(graph), launch_(std::move(launch)) {}

  void setElement(LocalId tensor, const Key& index, Number value) { regions_[{tensor, 0}].cells[index] = value; }
  Number element(LocalId tensor, const Key& index) const;
  /// The local of result `number`: a named one or an expression's.
  std::optional<LocalId> result(uint32_t number) const;
  std::optional<std::vector<int64_t>> extents(Type tensor) const;
  Outcome run();

  struct Known {
    Number number;
    uint64_t epoch =
        0;  ///< in which it was computed; kDefined: a phi or a step's result, which stands until it is defined anew
  };
  struct Thread {
    std::array<int64_t, 3> id = {};
    int64_t linear = 0;
    StepId at{0};
    BlockId block{0};
    bool isDone = false;
    std::vector<Known> known;  ///< by value
    uint64_t epoch = 1;
  };
  /// Is called before each step with the threads that do it together.
  using Watch = std::function<void(StepId, const std::vector<Thread*>&)>;
  void watch(Watch watch) { watch_ = std::move(watch); }
  size_t threadCount() const { return threads_.size(); }
  /// What the value is for the thread now.
  Number value(Thread& thread, ValueId value);

private:
  struct Region {
    std::vector<std::pair<Key, Number>> fills;  ///< everything below the prefix, the latest last
    std::map<Key, Number> cells;
  };
  static constexpr uint64_t kDefined = UINT64_MAX;
  struct Cell {
    Region* region = nullptr;  ///< null: outside
    Key key;
  };

  Outcome runBlock();
  Outcome step(const std::vector<Thread*>& group, StepId id);
  void access(Thread& thread, StepId id, const Step& step);
  void atomic(Thread& thread, StepId id, const Step& step);
  Number warp(Thread& self, const std::vector<Thread*>& group, const Step& step);
  Number compute(Thread& thread, const Step& step);
  void spoil(Thread& thread, PlaceId place);
  void follow(Thread& thread, uint32_t successor);
  void define(Thread& thread, ValueId value, Number number);

  Number evaluate(Thread& thread, const Node& node);
  Number position(const Thread& thread, const Node& node) const;
  std::optional<int64_t> dimension(const DimExpr& expr) const;

  Region& region(const Thread& thread, const Place& place);
  std::optional<Cell> cell(Thread& thread, PlaceId place);
  bool clampWindow(Thread& thread, const Projection& window, std::vector<int64_t>& sizes);
  bool isOfAllElements(const Place& place) const;
  Type storageType(const Place& place) const;
  static Number read(const Region& region, const Key& key);

  const Graph& graph_;
  Launch launch_;
  std::map<std::pair<LocalId, int64_t>, Region> regions_;
  std::array<int64_t, 3> block_ = {};
  std::vector<Thread> threads_;
  uint64_t steps_ = 0;
  Watch watch_;
};

/// Integer operations as the language defines them.
Number applyNode(Op op, MachineType type, __int128 a, __int128 b);
/// The value's low bits, read as the type.
__int128 wrapped(MachineType type, __int128 value);

}  // namespace vortex::lang::flow::testing
