#include "target/gpu/testing/shared_order.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::target::gpu::testing {

void SharedOrder::include(Clock& clock, const Clock& other) {
  clock.resize(std::max(clock.size(), other.size()));
  for (size_t i = 0; i < other.size(); ++i)
    clock[i] = std::max(clock[i], other[i]);
}

void SharedOrder::reset(size_t bytes, unsigned threads) {
  bytes_.resize(bytes);
  ++block_;
  clocks_.resize(threads);
  for (unsigned thread = 0; thread < threads; ++thread) {
    clocks_[thread].assign(threads, 0);
    clocks_[thread][thread] = 1;
  }
}

std::string SharedOrder::access(unsigned thread, size_t begin, size_t bytes, bool isStore) {
  const Moment now{thread, clocks_[thread][thread]};
  for (size_t at = begin; at < begin + bytes; ++at) {
    Byte& byte = bytes_[at];
    if (byte.block != block_) {
      byte.block = block_;
      byte.write = byte.read = {};
      byte.reads.clear();
    }
    const auto found = [&](Moment other, const char* what) {
      return base::concat("thread ", thread, isStore ? " writes" : " reads", " byte ", at,
                          " of shared memory that thread ", other.thread, what, ", and no barrier orders the two");
    };
    if (!isSeen(thread, byte.write))
      return found(byte.write, " wrote");
    if (!isStore) {
      addRead(byte, now);
      continue;
    }
    if (!isSeen(thread, byte.read))
      return found(byte.read, " read");
    for (Moment read : byte.reads)
      if (!isSeen(thread, read))
        return found(read, " read");
    byte.write = now;
    byte.read = {};
    byte.reads.clear();
  }
  return {};
}

/// Reads that come before this one say nothing that it does not.
void SharedOrder::addRead(Byte& byte, Moment read) const {
  if (byte.reads.empty()) {
    if (isSeen(read.thread, byte.read)) {
      byte.read = read;
      return;
    }
    byte.reads.push_back(byte.read);
    byte.read = {};
  }
  std::erase_if(byte.reads, [&](Moment other) { return isSeen(read.thread, other); });
  byte.reads.push_back(read);
}

void SharedOrder::meet(unsigned first, unsigned count) {
  Clock all(clocks_.size());
  // Nobody knows a later moment of a thread than itself.
  for (unsigned thread = first; thread < first + count; ++thread)
    if (count == clocks_.size())
      all[thread] = clocks_[thread][thread];
    else
      include(all, clocks_[thread]);
  for (unsigned thread = first; thread < first + count; ++thread)
    acquire(thread, all);
}

void SharedOrder::release(unsigned thread, Clock& clock) {
  include(clock, clocks_[thread]);
  ++clocks_[thread][thread];
}

void SharedOrder::acquire(unsigned thread, const Clock& clock) {
  include(clocks_[thread], clock);
  ++clocks_[thread][thread];
}

}  // namespace vortex::target::gpu::testing
