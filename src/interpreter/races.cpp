#include "interpreter/races.h"

namespace vortex::interpreter {

void RaceDetector::startPhase() {
  phase_.clear();
  blocks_.clear();
}

void RaceDetector::startBlock(uint32_t block, int64_t threads) {
  block_ = block;
  interval_.clear();
  warpEpochs_.assign(size_t(threads + 31) / 32, 0);
  threads_.assign(size_t(threads) + 1, {});
}

void RaceDetector::barrier() { interval_.clear(); }

void RaceDetector::release(int32_t thread, bool acrossBlocks) {
  threads_[size_t(thread + 1)].released = ++time_;
  if (acrossBlocks)
    blocks_[block_].released = time_;
}

void RaceDetector::acquire(int32_t thread, bool acrossBlocks) {
  threads_[size_t(thread + 1)].acquired = ++time_;
  if (acrossBlocks)
    blocks_[block_].acquired = time_;
}

template <typename Same>
const Access* RaceDetector::findConflict(const Record& record, const Access& access, Same inOrder) {
  for (const Access& earlier : record) {
    bool touches = (earlier.isWrite || access.isWrite) && !(earlier.isAtomic && access.isAtomic);
    if (touches && !inOrder(earlier))
      return &earlier;
  }
  return nullptr;
}

template <typename Actor> void RaceDetector::remember(Record& record, const Access& access, Actor actor) {
  Access* oldest = nullptr;
  unsigned ofKind = 0;
  for (Access& entry : record) {
    if (entry.isWrite != access.isWrite || entry.isAtomic != access.isAtomic)
      continue;
    if (actor(entry) == actor(access)) {
      entry = access;
      return;
    }
    ++ofKind;
    if (!oldest || entry.time < oldest->time)
      oldest = &entry;
  }
  if (ofKind < 2)
    record.push_back(access);
  else
    *oldest = access;
}

std::optional<Conflict> RaceDetector::access(const void* address, int32_t thread, mlir::Operation* op, bool isWrite,
                                             bool isAtomic, bool isGlobal) {
  Access access{thread, block_, 0, ++time_, op, isWrite, isAtomic};
  int32_t warp = thread / 32;
  if (thread != kBlockThread)
    access.warpEpoch = warpEpochs_[size_t(warp)];
  auto key = uint64_t(reinterpret_cast<uintptr_t>(address));
  Record& here = interval_[key];
  const Access* earlier = findConflict(here, access, [&](const Access& other) {
    if (other.thread == thread)
      return true;
    bool sameWarp = thread != kBlockThread && other.thread != kBlockThread && other.thread / 32 == warp;
    if (sameWarp && other.warpEpoch != access.warpEpoch)
      return true;
    return threads_[size_t(other.thread + 1)].released > other.time &&
           threads_[size_t(thread + 1)].acquired > other.time;
  });
  if (earlier)
    return Conflict{*earlier, false};
  remember(here, access, [](const Access& entry) { return entry.thread; });
  if (!isGlobal)
    return {};
  Record& everywhere = phase_[key];
  earlier = findConflict(everywhere, access, [&](const Access& other) {
    return other.block == block_ ||
           (blocks_[other.block].released > other.time && blocks_[block_].acquired > other.time);
  });
  if (earlier)
    return Conflict{*earlier, true};
  remember(everywhere, access, [](const Access& entry) { return entry.block; });
  return {};
}

}  // namespace vortex::interpreter
