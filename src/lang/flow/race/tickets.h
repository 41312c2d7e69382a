// Tickets: results of `atomic_add` of positive amounts at one place that nothing else writes. Each starts a range of its own of as many numbers as were
// added, as long as the counter does not come round: its width, or the number of threads that a launch may have, sees to that.
#pragma once

#include <optional>

#include "lang/flow/race/pair.h"

namespace vortex::lang::flow {

/// A value that is a ticket, by the steps that may have drawn it.
struct Ticket {
  LocalId counter = kNoLocal;
  std::vector<StepId> drawn;
  __int128 least = 0;  ///< of the amounts added there
};

class Tickets {
public:
  Tickets(const Graph& graph, const Structure& structure, Values& values, const std::vector<AccessInterval>& intervals,
          const Cells& cells)
      : graph_(graph), structure_(structure), values_(values), intervals_(intervals), cells_(cells) {}

  /// Nothing: it is none, or threads may have drawn the same.
  std::optional<Ticket> ofValue(ValueId value, Scope scope);
  /// Of the counter: more threads may draw a number twice. Nothing: no launch has so many.
  std::optional<__int128> mostThreads(LocalId counter) { return counterOf(counter).mostThreads; }
  /// Of the counter: what loops that draw until a bound ask of it.
  const std::vector<LaunchLimit>& limits(LocalId counter) { return counterOf(counter).limits; }

private:
  struct Counter {
    bool isValid = false, isOfBlocks = false;  ///< each number is drawn once; … by the threads of a block
    std::optional<__int128> mostThreads;
    std::vector<LaunchLimit> limits;
    unsigned queues = 0;  ///< steps in loops that draw until a bound
    std::vector<StepId> steps;
  };
  const Counter& counterOf(LocalId root);
  Counter findCounter(LocalId root);
  bool addStep(StepId step, Counter& counter);
  bool isOfElements(StepId step);
  bool isInside(StepId step);
  bool addQueue(StepId step, __int128 most, Counter& counter);
  bool addBound(ValueId bound, __int128 most, Counter& counter);
  ValueId boundOf(LoopId loop, LocalId counter) const;
  bool isDrawnAnew(ValueId value, LoopId loop, LocalId counter) const;
  bool isFixed(const Place& place) const;
  bool isReset(StepId write, const std::vector<StepId>& draws) const;
  struct Rounds {
    __int128 each = 1;  ///< of every thread
    ValueId bound =
        kNoValue;  ///< … times those of a loop in which all threads together have at most so many and one more each
  };
  std::optional<Rounds> roundsOf(StepId step);
  std::optional<__int128> trips(LoopId loop) const;
  ValueId strideBound(LoopId loop);
  bool isStride(const std::optional<Polynomial>& step, PointId point);
  bool collect(ValueId value, Scope scope, Ticket& into, std::set<ValueId>& seen) const;
  ValueId handed(StepId store) const;

  const Graph& graph_;
  const Structure& structure_;
  Values& values_;
  const std::vector<AccessInterval>& intervals_;
  const Cells& cells_;
  std::map<LocalId, Counter> counters_;
};

}  // namespace vortex::lang::flow
