// Blocks of a cooperative phase in turns: each has a thread of its own, of which one runs at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace vortex::interpreter {

class Together {
public:
  /// So many threads a process gets everywhere; more blocks at the same time are refused.
  static constexpr size_t kMostBlocks = 1024;

  /// `work(i)` is what block number i does, false where the run is to end. `met`: all blocks that have not ended are at a barrier of the grid, that
  /// many of them; false ends the run. Both are called one at a time.
  Together(std::function<bool(size_t block)> work, std::function<bool(size_t blocks)> met)
      : work_(std::move(work)), met_(std::move(met)) {}

  /// In the order given, each until it waits; false if one of the functions said so, or the system gives too few threads (`lacksThreads`).
  bool run(const std::vector<uint32_t>& order);
  bool lacksThreads() const { return lacksThreads_; }

  /// For `work`: at a barrier of the grid, and when others are to go on in between. False: the run ends.
  bool meet() { return pause(State::Waiting); }
  bool pass() { return pause(State::Ready); }

private:
  enum class State : uint8_t { Ready, Waiting, Ended };
  static constexpr size_t kNobody = SIZE_MAX;

  static void* runThread(void* argument);
  bool takeTurns(const std::vector<uint32_t>& order);
  bool pause(State state);
  void giveTurn(size_t block);

  std::function<bool(size_t)> work_;
  std::function<bool(size_t)> met_;
  std::mutex mutex_;
  std::vector<std::condition_variable> turns_;
  std::condition_variable paused_;
  std::vector<State> states_;
  size_t current_ = kNobody;
  bool isEnding_ = false, lacksThreads_ = false;
};

}  // namespace vortex::interpreter
