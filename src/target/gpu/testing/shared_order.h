// For tests: whether two accesses of shared memory are ordered by a barrier, whatever order the threads happened to run in.
//
// Vector clocks: a thread's clock says up to which of its own moments it has seen each other thread. Only barriers hand clocks on. Operations of
// whole warps (shuffles, matrix loads, matrix products) make lanes wait for one another but order no memory: PTX promises that of bar.warp.sync only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vortex::target::gpu::testing {

class SharedOrder {
public:
  using Clock = std::vector<uint32_t>;  ///< by thread

  /// A block begins.
  void reset(size_t bytes, unsigned threads);
  /// Empty, or the earlier access of another thread that this one of `thread` is not ordered behind.
  std::string access(unsigned thread, size_t begin, size_t bytes, bool isStore);
  /// Threads `first` to `first + count` leave a barrier.
  void meet(unsigned first, unsigned count);
  /// What `thread` has done so far comes before what threads do that acquire `clock` later.
  void release(unsigned thread, Clock& clock);
  void acquire(unsigned thread, const Clock& clock);
  static void include(Clock& clock, const Clock& other);

private:
  struct Moment {
    uint32_t thread = 0, time = 0;  ///< time 0: never
  };
  struct Byte {
    uint64_t block = 0;  ///< of which the rest tells
    Moment write;
    Moment read;                ///< if `reads` is empty
    std::vector<Moment> reads;  ///< of several threads since the last write
  };

  bool isSeen(unsigned thread, Moment moment) const {
    return moment.thread == thread || moment.time <= clocks_[thread][moment.thread];
  }
  void addRead(Byte& byte, Moment read) const;

  uint64_t block_ = 0;  ///< number of the one that runs
  std::vector<Byte> bytes_;
  std::vector<Clock> clocks_;
};

}  // namespace vortex::target::gpu::testing
