#include "interpreter/races.h"

#include <algorithm>

namespace vortex::interpreter {

void RaceDetector::startPhase() {
  phase_.clear();
  blocks_.clear();
}

void RaceDetector::startBlock(uint32_t block, int64_t threads) {
  block_.number = block;
  block_.interval.clear();
  block_.warpSynced.assign(size_t(threads + 31) / 32, 0);
  block_.threads.assign(size_t(threads) + 1, {});
}

void RaceDetector::barrier(bool shared, bool global) {
  if (shared && global)
    return block_.interval.clear();
  llvm::SmallVector<uint64_t> ordered;
  for (const auto& [address, record] : block_.interval)
    if (!record.empty() && (record.front().isGlobal ? global : shared))
      ordered.push_back(address);
  for (uint64_t address : ordered)
    block_.interval.erase(address);
}

void RaceDetector::release(int32_t thread, bool acrossBlocks) {
  block_.threads[size_t(thread + 1)].released = ++time_;
  if (acrossBlocks)
    blocks_[block_.number].released = time_;
}

void RaceDetector::acquire(int32_t thread, bool acrossBlocks) {
  block_.threads[size_t(thread + 1)].acquired = ++time_;
  if (acrossBlocks)
    blocks_[block_.number].acquired = time_;
}

/// `least`: the scope that covers both actors.
template <typename Same>
static const Access* findConflict(const AccessRecord& record, const Access& access, Atomicity least, Same inOrder) {
  for (const Access& earlier : record) {
    bool areAtomic = earlier.atomicity >= least && access.atomicity >= least;
    bool touches = (earlier.isWrite || access.isWrite) && !areAtomic;
    if (touches && !inOrder(earlier))
      return &earlier;
  }
  return nullptr;
}

template <typename Actor> static void remember(AccessRecord& record, const Access& access, Actor actor) {
  Access* oldest = nullptr;
  unsigned ofKind = 0;
  for (Access& entry : record) {
    if (entry.isWrite != access.isWrite || entry.atomicity != access.atomicity)
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

bool RaceDetector::isOrderedInBlock(const Access& earlier, const Access& later) const {
  if (earlier.thread == later.thread)
    return true;
  // In a block of one warp a read at block level belongs to that warp.
  auto warpOf = [&](const Access& access) {
    if (access.thread != kBlockThread)
      return access.thread / 32;
    return block_.warpSynced.size() == 1 && !access.isWrite ? 0 : -1;
  };
  int32_t warp = warpOf(earlier);
  if (warp >= 0 && warp == warpOf(later) && block_.warpSynced[size_t(warp)] > earlier.time)
    return true;
  return block_.threads[size_t(earlier.thread + 1)].released > earlier.time &&
         block_.threads[size_t(later.thread + 1)].acquired > earlier.time;
}

std::optional<Conflict> RaceDetector::access(const void* address, int32_t thread, mlir::Operation* op, bool isWrite,
                                             Atomicity atomicity, bool isGlobal) {
  Access access{thread, block_.number, ++time_, op, isWrite, atomicity, isGlobal};
  auto key = uint64_t(reinterpret_cast<uintptr_t>(address));
  AccessRecord& here = block_.interval[key];
  const Access* earlier = findConflict(here, access, Atomicity::Block,
                                       [&](const Access& other) { return isOrderedInBlock(other, access); });
  if (earlier)
    return Conflict{*earlier, false};
  remember(here, access, [](const Access& entry) { return entry.thread; });
  if (!isGlobal)
    return {};
  AccessRecord& everywhere = phase_[key];
  earlier = findConflict(everywhere, access, Atomicity::Device, [&](const Access& other) {
    return other.block == block_.number ||
           (blocks_[other.block].released > other.time && blocks_[block_.number].acquired > other.time);
  });
  if (earlier)
    return Conflict{*earlier, true};
  remember(everywhere, access, [](const Access& entry) { return entry.block; });
  return {};
}

//===-- copies in flight --------------------------------------------------------------------------------------===//

void CopiesInFlight::startBlock() {
  uses_.clear();
  group_ = waited_ = 0;
}

void CopiesInFlight::add(const void* address, mlir::Operation* op, bool isWrite) {
  uses_[uint64_t(reinterpret_cast<uintptr_t>(address))] = {op, isWrite, group_};
}

void CopiesInFlight::wait(uint32_t pending) { waited_ = std::max(waited_, group_ - std::min(group_, pending)); }

void CopiesInFlight::barrier() {
  if (uses_.empty())
    return;
  llvm::SmallVector<uint64_t> complete;
  for (const auto& [key, use] : uses_)
    if (use.group < waited_)
      complete.push_back(key);
  for (uint64_t key : complete)
    uses_.erase(key);
}

const CopiesInFlight::Use* CopiesInFlight::find(const void* address, bool isWrite) const {
  if (uses_.empty())
    return nullptr;
  auto found = uses_.find(uint64_t(reinterpret_cast<uintptr_t>(address)));
  return found != uses_.end() && (isWrite || found->second.isWrite) ? &found->second : nullptr;
}

//===-- iterations --------------------------------------------------------------------------------------------===//

std::optional<Access> IterationRaces::access(const void* address, mlir::Operation* op, bool isWrite,
                                             Atomicity atomicity) {
  Access access{iteration_, 0, ++time_, op, isWrite, atomicity};
  AccessRecord& record = records_[uint64_t(reinterpret_cast<uintptr_t>(address))];
  // Iterations may run in different blocks.
  const Access* earlier =
      findConflict(record, access, Atomicity::Device, [&](const Access& other) { return other.thread == iteration_; });
  if (earlier)
    return *earlier;
  remember(record, access, [](const Access& entry) { return entry.thread; });
  return {};
}

}  // namespace vortex::interpreter
