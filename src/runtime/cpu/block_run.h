#pragma once

#include "runtime/cpu/meeting.h"
#include "runtime/cpu/workers.h"
#include "runtime/hal/launch.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace vortex::cpu {

/// What earlier launches of a phase showed; decides between the calling thread and the pool. Only speed depends on it.
struct PhaseHistory {
  std::atomic<uint64_t> blockPicoseconds{0};  ///< mean time of one block; 0: unknown
};

/// Runs the blocks of one phase.
class BlockRun {
public:
  struct Scratch {
    uint8_t* base = nullptr;
    uint64_t bytesPerWorker = 0;  ///< distance between workers' parts; a multiple of 64
    bool poison = false;          ///< fill a block's scratch with 0xff before it runs
  };
  /// Rows of the grid, x fastest; or bands of a few rows, y fastest within them: blocks of a column share what they read.
  enum class Order { Rows, Bands };
  BlockRun(const hal::Launch& launch, const hal::LaunchPhase& phase, artifact::CpuEntry entry, Scratch scratch,
           Order order);

  /// Returns when every block has run or was skipped. If blocks fault: the code of the first in block order (x fastest), so
  /// that a program reports the same fault every time; blocks after it may be skipped. 0: none.
  uint32_t run(Workers& workers, PhaseHistory& history);
  /// The same of a cooperative phase, each block on a thread of its own with scratch of its own.
  Result<uint32_t> runTogether();
  /// What the message of that fault says, with its values; empty: as it stands.
  const std::string& faultText() const { return faultText_; }

private:
  /// What the code of a block is handed as CpuBlock::context.
  struct Caller {
    BlockRun* run;
    std::string faultText;  ///< of the thread that ends the block
  };
  void runInline(uint64_t& next, uint64_t end, uint64_t picosecondsPerBlock);
  void place(uint64_t index, artifact::CpuBlock& block) const;
  void advance(uint64_t index, artifact::CpuBlock& block) const;
  void runPart(uint64_t begin, uint64_t end, uint32_t worker);
  void reportFault(uint64_t block, uint32_t code, std::string text);
  static void print(void* caller, uint32_t format, const uint64_t* values, uint32_t count);
  static uint32_t meet(void* caller);

  const hal::Launch& launch_;
  const hal::LaunchPhase& phase_;
  artifact::CpuEntry entry_;
  Scratch scratch_;
  Order order_;
  std::unique_ptr<Meeting> meeting_;  ///< of the blocks of a cooperative phase
  std::atomic<uint64_t> busyNanoseconds_{0};
  std::atomic<uint64_t> firstFault_{UINT64_MAX};  ///< the block's number, x fastest
  std::mutex mutex_;                              ///< faults and prints
  uint32_t faultCode_ = 0;
  std::string faultText_;
};

}  // namespace vortex::cpu
