// Race detection: who touched which element since the last barrier (threads of a block) or since the phase began (blocks of a grid).
//
// Two accesses conflict when they come from different threads, one writes, and not both are atomic. They are in order when they belong to
// one warp with a sync_warp() between them, or when the first's thread released after it and the second's acquired after it.
// Block-level accesses are one more thread (kBlockThread): they happen in program order among themselves, not with thread regions.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include "mlir/IR/Operation.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace vortex::interpreter {

inline constexpr int32_t kBlockThread = -1;

struct Access {
  int32_t thread = kBlockThread;  ///< linear id in the block
  uint32_t block = 0;             ///< linear id
  uint32_t warpEpoch = 0;         ///< sync_warp() calls of the warp so far
  uint32_t time = 0;
  mlir::Operation* op = nullptr;
  bool isWrite = false, isAtomic = false;
};

/// The access that the reported one races with.
struct Conflict {
  Access earlier;
  bool acrossBlocks = false;
};

class RaceDetector {
public:
  void startPhase();
  void startBlock(uint32_t block, int64_t threads);
  void barrier();
  void warpBarrier(int32_t warp) { ++warpEpochs_[size_t(warp)]; }
  void release(int32_t thread, bool acrossBlocks);
  void acquire(int32_t thread, bool acrossBlocks);

  /// `address`: of the element in host memory. `isGlobal`: other blocks can see it.
  std::optional<Conflict> access(const void* address, int32_t thread, mlir::Operation* op, bool isWrite, bool isAtomic,
                                 bool isGlobal);

private:
  /// Of every kind (write or not, atomic or not) the last accesses by two different threads (or blocks): if any earlier one conflicts
  /// with a new access, one of these does. Nearly all elements have one.
  using Record = llvm::SmallVector<Access, 1>;
  struct SyncTimes {
    uint32_t released = 0, acquired = 0;
  };

  template <typename Same> static const Access* findConflict(const Record& record, const Access& access, Same inOrder);
  template <typename Actor> static void remember(Record& record, const Access& access, Actor actor);

  /// By address as a number: as pointers, neighbouring elements would hash to few buckets.
  llvm::DenseMap<uint64_t, Record> interval_, phase_;
  std::vector<uint32_t> warpEpochs_;
  std::vector<SyncTimes> threads_;  ///< entry 0 is the block thread
  llvm::DenseMap<uint32_t, SyncTimes> blocks_;
  uint32_t block_ = 0;
  uint32_t time_ = 0;
};

}  // namespace vortex::interpreter
