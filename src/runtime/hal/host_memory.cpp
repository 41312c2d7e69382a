#include "runtime/hal/host_memory.h"

#include "base/memory.h"
#include "base/text.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sys/mman.h>

namespace vortex::hal {

namespace {

constexpr uint64_t kAlignment = 64;  ///< a cache line, and the widest vector
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kPooledBytes = uint64_t{1} << 20;  ///< below, malloc's own reuse is as good
/// Allocations from this size on are checked against the memory that is free now; reading that costs 20 µs. Linux grants
/// smaller ones anyway and larger ones too, up to the whole memory, to kill the process when the pages are touched.
constexpr uint64_t kCheckedBytes = uint64_t{64} << 20;

uint64_t roundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Bytes of storage for a buffer: whole huge pages for large ones, so that sizes repeat and can be reused.
uint64_t storageFor(uint64_t bytes) {
  if (bytes >= kHugePage)
    return roundUp(bytes, kHugePage);
  return roundUp(std::max(bytes, kAlignment), bytes >= kPooledBytes ? uint64_t{1} << 16 : kAlignment);
}

void* mapAligned(uint64_t bytes) {
  const uint64_t reserve = bytes + kHugePage;
  void* mapping = ::mmap(nullptr, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(mapping), aligned = roundUp(start, kHugePage);
  if (aligned != start)
    ::munmap(mapping, aligned - start);
  if (const uint64_t tail = start + reserve - (aligned + bytes); tail != 0)
    ::munmap(reinterpret_cast<void*>(aligned + bytes), tail);
  ::madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);  // advice: kernels without it ignore us
  return reinterpret_cast<void*>(aligned);
}

void* obtain(uint64_t storageBytes) {
  return storageBytes >= kHugePage ? mapAligned(storageBytes) : std::aligned_alloc(kAlignment, storageBytes);
}

void release(void* storage, uint64_t storageBytes) {
  if (storageBytes >= kHugePage)
    ::munmap(storage, storageBytes);
  else
    std::free(storage);
}

class WrappedBuffer : public Buffer {
public:
  WrappedBuffer(const Device* device, void* memory, uint64_t bytes, bool readOnly)
      : Buffer(device, bytes, reinterpret_cast<uint64_t>(memory), memory, readOnly) {}
};

}  // namespace

struct HostMemory::State {
  std::mutex mutex;
  std::multimap<uint64_t, void*> kept;  ///< by storage size
  uint64_t keptBytes = 0;
  std::atomic<uint64_t> liveBytes{0};
};

class PooledBuffer : public Buffer {
public:
  PooledBuffer(const Device* device, uint64_t bytes, void* storage, uint64_t storageBytes,
               std::shared_ptr<HostMemory> memory)
      : Buffer(device, bytes, reinterpret_cast<uint64_t>(storage), storage), storageBytes_(storageBytes),
        memory_(std::move(memory)) {}
  ~PooledBuffer() override { memory_->give(host(), storageBytes_); }

private:
  uint64_t storageBytes_;
  std::shared_ptr<HostMemory> memory_;
};

std::shared_ptr<HostMemory> HostMemory::create(Options options) {
  return std::shared_ptr<HostMemory>(new HostMemory(options));
}

HostMemory::HostMemory(Options options)
    : limitBytes_(options.limitBytes ? options.limitBytes : base::physicalMemory()),
      keepBytes_(options.keepBytes ? options.keepBytes : base::physicalMemory() / 8), poison_(options.poison),
      state_(std::make_unique<State>()) {}

HostMemory::~HostMemory() { trim(); }

uint64_t HostMemory::availableBytes() const {
  const uint64_t live = state_->liveBytes.load(std::memory_order_relaxed);
  uint64_t kept;
  {
    const std::lock_guard lock(state_->mutex);
    kept = state_->keptBytes;
  }
  return std::min(limitBytes_ - std::min(limitBytes_, live), base::availableMemory() + kept);
}

Result<BufferRef> HostMemory::allocate(const Device* device, uint64_t bytes) {
  const auto outOfMemory = [&] {
    return Error{base::concat("out of memory: ", bytes, " bytes requested, ", availableBytes(), " available"),
                 ErrorKind::OutOfMemory};
  };
  const uint64_t live = state_->liveBytes.load(std::memory_order_relaxed);
  if (bytes > limitBytes_ || live > limitBytes_ - bytes)
    return outOfMemory();
  const uint64_t storageBytes = storageFor(bytes);
  void* storage = take(storageBytes);
  if (!storage && storageBytes >= kCheckedBytes && storageBytes > base::availableMemory()) {
    trim();
    if (storageBytes > base::availableMemory())
      return outOfMemory();
  }
  if (!storage)
    storage = obtain(storageBytes);
  if (!storage) {
    trim();
    storage = obtain(storageBytes);
  }
  if (!storage)
    return outOfMemory();
  state_->liveBytes.fetch_add(storageBytes, std::memory_order_relaxed);
  if (poison_)
    std::memset(storage, 0xff, bytes);
  return BufferRef(std::make_shared<PooledBuffer>(device, bytes, storage, storageBytes, shared_from_this()));
}

Result<BufferRef> HostMemory::wrap(const Device* device, void* memory, uint64_t bytes, bool readOnly) {
  if (!memory && bytes != 0)
    return Error{base::concat("cannot wrap ", bytes, " bytes at a null pointer")};
  if (bytes > UINT64_MAX - reinterpret_cast<uint64_t>(memory))
    return Error{base::concat("cannot wrap ", bytes, " bytes: the range exceeds the address space")};
  return BufferRef(std::make_shared<WrappedBuffer>(device, memory, bytes, readOnly));
}

void* HostMemory::take(uint64_t storageBytes) {
  if (storageBytes < kPooledBytes)
    return nullptr;
  const std::lock_guard lock(state_->mutex);
  // Exactly this size: sizes repeat from launch to launch, and a larger block would hide what a program uses.
  const auto found = state_->kept.find(storageBytes);
  if (found == state_->kept.end())
    return nullptr;
  void* storage = found->second;
  state_->kept.erase(found);
  state_->keptBytes -= storageBytes;
  return storage;
}

void HostMemory::give(void* storage, uint64_t storageBytes) {
  state_->liveBytes.fetch_sub(storageBytes, std::memory_order_relaxed);
  if (storageBytes >= kPooledBytes && storageBytes <= keepBytes_) {
    const std::lock_guard lock(state_->mutex);
    // Room is made by dropping the smallest blocks: they are the cheapest to map again.
    while (state_->keptBytes > keepBytes_ - storageBytes) {
      const auto victim = state_->kept.begin();
      release(victim->second, victim->first);
      state_->keptBytes -= victim->first;
      state_->kept.erase(victim);
    }
    state_->kept.emplace(storageBytes, storage);
    state_->keptBytes += storageBytes;
    return;
  }
  release(storage, storageBytes);
}

void HostMemory::trim() {
  const std::lock_guard lock(state_->mutex);
  for (const auto& [bytes, storage] : state_->kept)
    release(storage, bytes);
  state_->kept.clear();
  state_->keptBytes = 0;
}

}  // namespace vortex::hal
