// What is known of staged tensors at a point, and how steps change it: for check/staging.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "lang/flow/solve/solve.h"

namespace vortex::lang::flow {

/// What a tensor may hold: one bit per possibility.
enum StagedContent : uint8_t { kNothing = 1, kPending = 2, kReady = 4 };
/// Groups of copies that may stay in flight after a `sync_block()`.
inline constexpr uint32_t kMostInFlight = 4;

/// And the number of groups that were closed since: it cannot wait for those.
struct LastSync {
  StepId step = kNoStep;  ///< kNoStep: none
  uint32_t closed = 0;
  auto operator<=>(const LastSync&) const = default;
};

/// One tensor, or one of an array of tensors.
struct Staged {
  uint8_t content = 0;
  bool isTouched = false;  ///< since the last barrier
  /// As ways here differ in the last `sync_block()`: bit 0, a copy into it has started since a group was closed; bit i, one is in the i-th group closed before
  /// that.
  std::map<LastSync, uint16_t> groups = {};
  std::set<StepId> stagers = {};   ///< of copies since the last `sync_block()`
  std::set<LocalId> sources = {};  ///< what copies into it read; kNoLocal: anything
  bool operator==(const Staged&) const = default;

  bool isCurrent() const;
};

/// Consecutive entries of StagedState::tensors, of one variable.
struct StagedUnits {
  LocalId local = kNoLocal;
  uint32_t first = 0, count = 0;
  bool isCertain = false;  ///< it is exactly these
  std::optional<uint32_t> slot = {};
};

struct StagedState {
  std::vector<Staged> tensors;
  std::set<LastSync> lastSyncs;
  bool operator==(const StagedState&) const = default;
  static auto of(auto& state, const StagedUnits& units) {
    return std::span(state.tensors).subspan(units.first, units.count);
  }
};

/// The tensors that copies are staged into.
class StagedTensors {
public:
  explicit StagedTensors(const Graph& graph);

  uint32_t count() const { return count_; }
  uint32_t mostSlots() const { return mostSlots_; }
  StagedUnits of(LocalId local) const;
  /// What an access of the place may touch in a visit.
  std::vector<StagedUnits> touched(PlaceId place, const Contexts& contexts, BlockId at, Context context) const;

private:
  const Graph& graph_;
  std::map<LocalId, StagedUnits> units_;
  uint32_t count_ = 0, mostSlots_ = 1;
};

/// What code generation adds to the program.
struct StagingPlan {
  std::set<StepId> barriers;  ///< before these copies, as threads may still use the old contents
  std::set<LoopId> closing;   ///< before these loops a group of copies ends
};

class StagingFlow {
public:
  using State = StagedState;
  static constexpr Direction kDirection = Direction::Forward;

  StagingFlow(const Graph& graph, const StagedTensors& tensors, const Contexts& contexts, const StagingPlan& plan)
      : graph_(graph), tensors_(tensors), contexts_(contexts), plan_(plan) {}

  State start() const { return {std::vector<Staged>(tensors_.count()), {LastSync()}}; }
  void step(StepId id, const Step& step, State& state, Context context) const;
  bool edge(BlockId from, uint32_t successor, State& state) const;
  void join(State& into, const State& other, bool isDivergent) const;
  /// Like StagedTensors::touched, remembered.
  const std::vector<StagedUnits>& touched(PlaceId place, BlockId at, Context context) const;

  LoopId firstOf = kNoLoop;                            ///< only the first iteration of this loop and of those around it
  std::set<std::pair<BlockId, uint32_t>> closed = {};  ///< successors that are not taken

private:
  void synchronize(StepId id, State& state) const;
  void stage(StepId id, const Step& step, State& state, Context context) const;
  static void closeGroup(State& state);

  const Graph& graph_;
  const StagedTensors& tensors_;
  const Contexts& contexts_;
  const StagingPlan& plan_;
  using Touched = std::map<std::tuple<PlaceId, BlockId, Context>, std::vector<StagedUnits>>;
  std::shared_ptr<Touched> touched_ = std::make_shared<Touched>();
};

}  // namespace vortex::lang::flow
