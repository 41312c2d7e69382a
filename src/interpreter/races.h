// Race detection: who touched which element since the last barrier (threads of a block) or since the phase began (blocks of a grid).
//
// Two accesses conflict when they come from different threads, one writes, and not both are atomic of a scope that covers both threads. They are in order when they belong to
// one warp with a sync_warp() between them, or when the first's thread released after it and the second's acquired after it.
// Block-level accesses are one more thread (kBlockThread): they happen in program order among themselves, not with thread regions. A read is
// one by every warp: in a block of one warp sync_warp() orders it.
// A staged copy reads its source and writes its destination until the barrier that completes it.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include "mlir/IR/Operation.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace vortex::interpreter {

inline constexpr int32_t kBlockThread = -1;

/// Whom an access is one indivisible step for.
enum class Atomicity : uint8_t { None, Block, Device };

struct Access {
  int32_t thread = kBlockThread;  ///< linear id in the block
  uint32_t block = 0;             ///< linear id
  uint32_t time = 0;
  mlir::Operation* op = nullptr;
  bool isWrite = false;
  Atomicity atomicity = Atomicity::None;
  bool isGlobal = false;  ///< other blocks can see the element
};

/// The access that the reported one races with.
struct Conflict {
  Access earlier;
  bool acrossBlocks = false;
};

/// Of every kind (write or not, atomicity) the last accesses by two different threads (blocks, iterations): if any earlier one conflicts
/// with a new access, one of these does. Nearly all elements have one.
using AccessRecord = llvm::SmallVector<Access, 1>;

class RaceDetector {
public:
  /// What is known of one block.
  struct InBlock {
    struct SyncTimes {
      uint32_t released = 0, acquired = 0;
    };
    uint32_t number = 0;
    /// Since the last barrier, by address as a number: as pointers, neighbouring elements would hash to few buckets.
    llvm::DenseMap<uint64_t, AccessRecord> interval;
    std::vector<uint32_t> warpSynced;  ///< by warp: the time of its last sync_warp()
    std::vector<SyncTimes> threads;    ///< entry 0 is the block thread
  };
  /// The block at hand becomes `other`, which becomes it.
  void exchange(InBlock& other) { std::swap(block_, other); }
  /// All blocks have met.
  void gridBarrier() { phase_.clear(); }

  void startPhase();
  void startBlock(uint32_t block, int64_t threads);
  /// Of the block: what it orders.
  void barrier(bool shared, bool global);
  void warpBarrier(int32_t warp) { block_.warpSynced[size_t(warp)] = ++time_; }
  void release(int32_t thread, bool acrossBlocks);
  void acquire(int32_t thread, bool acrossBlocks);

  /// `address`: of the element in host memory. `isGlobal`: other blocks can see it.
  std::optional<Conflict> access(const void* address, int32_t thread, mlir::Operation* op, bool isWrite,
                                 Atomicity atomicity, bool isGlobal);

private:
  bool isOrderedInBlock(const Access& earlier, const Access& later) const;

  llvm::DenseMap<uint64_t, AccessRecord> phase_;
  llvm::DenseMap<uint32_t, InBlock::SyncTimes> blocks_;
  InBlock block_;
  uint32_t time_ = 0;
};

/// Staged copies between their start and the barrier that completes them.
class CopiesInFlight {
public:
  struct Use {
    mlir::Operation* op = nullptr;
    bool isWrite = false;  ///< an element of the destination
    uint32_t group = 0;
  };
  void startBlock();
  void add(const void* address, mlir::Operation* op, bool isWrite);
  void commit() { ++group_; }
  void wait(uint32_t pending);
  void barrier();
  /// The copy that an access of this element races with; null: none.
  const Use* find(const void* address, bool isWrite) const;

private:
  llvm::DenseMap<uint64_t, Use> uses_;
  uint32_t group_ = 0;   ///< the open one
  uint32_t waited_ = 0;  ///< groups before this one are complete at the next barrier
};

/// Accesses of a loop that the program says to be parallel: its iterations are unordered.
class IterationRaces {
public:
  void next() { ++iteration_; }
  std::optional<Access> access(const void* address, mlir::Operation* op, bool isWrite, Atomicity atomicity);
  int32_t iteration() const { return iteration_; }

private:
  llvm::DenseMap<uint64_t, AccessRecord> records_;
  int32_t iteration_ = -1;
  uint32_t time_ = 0;
};

}  // namespace vortex::interpreter
