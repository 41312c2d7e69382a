#include "runtime/cuda/testdata/fake_state.h"

#include "artifact/artifact.h"
#include "artifact/device_report.h"
#include "runtime/cuda/testdata/fake_cuda.h"
#include "runtime/cuda/testdata/fake_maps.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using vortex::artifact::CpuBlock;
using vortex::artifact::CpuEntry;
using vortex::artifact::DeviceReport;

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's and the kernels'.
extern "C" {
#define VORTEX_FAKE_KERNELS(X)                                                                                         \
  X(scale)                                                                                                             \
  X(update)                                                                                                            \
  X(total_partial)                                                                                                     \
  X(total_final)                                                                                                       \
  X(check)                                                                                                             \
  X(until_asks)                                                                                                        \
  X(until_doubles) X(coordinates) X(transpose) X(talk) X(sparse) X(vx_metal_saxpy_main) X(vx_metal_saxpy_main_general)
#define VORTEX_DECLARE(name) uint32_t name(const uint64_t* slots, const CpuBlock* block);
VORTEX_FAKE_KERNELS(VORTEX_DECLARE)
}

namespace fake_cuda {

State& state() {
  static auto* instance = new State;  // outlives every thread
  return *instance;
}

int64_t setting(const std::string& key) {
  static const std::map<std::string, int64_t> defaults = {
      {"devices", 1}, {"capability", 90}, {"version", 12040}, {"memory", int64_t{1} << 30}, {"pools", 1}, {"cores", 4}};
  const std::lock_guard lock(state().mutex);
  if (const auto found = state().settings.find(key); found != state().settings.end())
    return found->second;
  if (const char* given = std::getenv(("FAKE_CUDA_" + key).c_str()))
    return std::atoll(given);
  const auto found = defaults.find(key);
  return found == defaults.end() ? 0 : found->second;
}

std::vector<Context*>& contextStack() {
  thread_local auto* stack =
      new std::vector<Context*>;  // a process may close its devices after its threads' objects are gone
  return *stack;
}

int enter(const char* symbol, bool needsContext) {
  if (::getpid() != state().process)
    return kNotInitialized;
  {
    const std::lock_guard lock(state().mutex);
    ++state().counts[symbol];
    if (const auto failing = state().settings.extract(std::string("fail:") + symbol))
      return static_cast<int>(failing.mapped());
  }
  if (!needsContext)
    return kSuccess;
  if (contextStack().empty() || contextStack().back()->generation != state().generation)
    return kInvalidContext;
  return state().sticky;
}

Stream::Stream() : device_(contextStack().back()->device), worker_([this] { work(); }) {}

int Stream::check() const { return contextStack().back()->device == device_ ? kSuccess : kInvalidHandle; }

void Stream::add(std::function<void()> operation, bool always) {
  const std::lock_guard lock(mutex_);
  if (capturing_) {
    captured_.push_back(std::move(operation));
    return;
  }
  queue_.push_back({std::move(operation), always});
  changed_.notify_all();
}

void Stream::beginCapture() {
  const std::lock_guard lock(mutex_);
  capturing_ = true;
}

std::vector<std::function<void()>> Stream::endCapture() {
  const std::lock_guard lock(mutex_);
  capturing_ = false;
  return std::exchange(captured_, {});
}

bool Stream::isCapturing() {
  const std::lock_guard lock(mutex_);
  return capturing_;
}

void Stream::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
}

void Stream::finish() {
  ++state().ending;
  worker_.detach();
  const std::lock_guard lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !queue_.empty() || ending_; });
    if (queue_.empty())
      break;
    const Operation operation = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    if (const int64_t delay = setting("delay"))
      ::usleep(static_cast<unsigned>(delay));
    if (operation.always || state().sticky == 0)
      operation.run();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
  --state().ending;  // the object stays: another thread may be waiting in it
}

Stream* named(Stream* stream) {
  constexpr uintptr_t kLegacy = 1, kPerThread = 2;
  if (const auto handle = reinterpret_cast<uintptr_t>(stream); handle != 0 && handle != kLegacy && handle != kPerThread)
    return stream;
  const std::lock_guard lock(state().mutex);
  static auto& defaults = *new std::map<int, Stream*>;  // they live as long as the process, as do their threads
  Stream*& found = defaults[contextStack().back()->device];
  if (!found)
    state().streams.insert(found = new Stream);
  return found;
}

void synchronizeAll() {
  std::set<Stream*> all;
  {
    const std::lock_guard lock(state().mutex);
    all = state().streams;
  }
  for (Stream* stream : all)
    stream->synchronize();
  while (state().ending > 0)
    ::usleep(100);
}

void Event::waitFor(uint64_t number) {
  std::unique_lock lock(mutex);
  while (pending.contains(number) && state().sticky == 0)
    changed.wait_for(lock, std::chrono::milliseconds(1));
}

// The size lies before the storage that is handed out.
constexpr size_t kAlignment = 512;

int allocateBytes(uint64_t* pointer, size_t bytes) {
  if (state().liveBytes + static_cast<int64_t>(bytes) > setting("memory"))
    return kOutOfMemory;
  auto* storage =
      static_cast<uint8_t*>(std::aligned_alloc(kAlignment, (bytes + 2 * kAlignment - 1) / kAlignment * kAlignment));
  if (!storage)
    return kOutOfMemory;
  std::memcpy(storage, &bytes, sizeof bytes);
  std::memset(storage + kAlignment, 0xcd, bytes);
  state().liveBytes += static_cast<int64_t>(bytes);
  *pointer = reinterpret_cast<uint64_t>(storage + kAlignment);
  const std::lock_guard lock(state().mutex);
  state().allocations[*pointer] = {bytes, contextStack().back()->device};
  return kSuccess;
}

void freeBytes(uint64_t pointer) {
  size_t bytes;
  std::memcpy(&bytes, memory(pointer) - kAlignment, sizeof bytes);
  state().liveBytes -= static_cast<int64_t>(bytes);
  {
    const std::lock_guard lock(state().mutex);
    state().allocations.erase(pointer);
  }
  std::free(memory(pointer) - kAlignment);
}

/// The start of the page-locked range around it; null: none. Under the state's lock.
static const uint8_t* registeredRange(const void* pointer) {
  const auto* byte = static_cast<const uint8_t*>(pointer);
  auto after = state().registered.upper_bound(byte);
  if (after == state().registered.begin())
    return nullptr;
  --after;
  return byte < after->first + after->second ? after->first : nullptr;
}

bool isRegistered(const void* pointer) {
  const std::lock_guard lock(state().mutex);
  return registeredRange(pointer) != nullptr;
}

void addPinnedCopy(Stream& stream, const void* pinned, std::function<void()> copy) {
  const uint8_t* range;
  {
    const std::lock_guard lock(state().mutex);
    range = registeredRange(pinned);
    ++state().copying[range];
  }
  const auto run = [range, copy = std::move(copy)] {
    if (state().sticky == 0)
      copy();
    const std::lock_guard lock(state().mutex);
    --state().copying[range];
  };
  stream.add(run, true);
}

static CpuEntry entryNamed(const std::string& name) {
#define VORTEX_LIST(name) {#name, name},
  static const std::map<std::string, CpuEntry> entries = {VORTEX_FAKE_KERNELS(VORTEX_LIST)};
  const auto found = entries.find(name);
  return found == entries.end() ? nullptr : found->second;
}

static void printInto(void* context, uint32_t fault, const uint64_t* values, uint32_t count) {
  auto* report = static_cast<DeviceReport*>(context);
  auto* area = reinterpret_cast<uint64_t*>(report + 1);
  const uint64_t at = report->printWords;
  report->printWords += 1 + count;
  if (at + 1 + count > report->printCapacity)
    return;
  area[at] = (1 + uint64_t{fault}) | uint64_t{count} << 32;
  std::copy_n(values, count, area + at + 1);
}

void runBlocks(const std::string& name, const std::vector<uint64_t>& parameter, const unsigned (&grid)[3],
               unsigned sharedBytes) {
  const std::span<const TensorMap> maps = mapsIn(parameter);
  if (!std::ranges::all_of(maps, isAllocated))
    state().sticky = kIllegalAddress;
  else if (name == "copy_boxes")
    copyBoxes(maps, grid);
  if (name == "crash" || name.starts_with("vx_crash_"))
    state().sticky = kIllegalAddress;
  const CpuEntry entry = entryNamed(name);
  if (!entry)
    return;
  auto* report = reinterpret_cast<DeviceReport*>(parameter.back());
  std::vector<uint64_t> scratch(sharedBytes / 8 + 16);
  CpuBlock block = {};
  std::copy_n(grid, 3, block.grid);
  std::fill_n(block.block, 3, 1);
  block.scratch = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  block.print = printInto;
  block.context = report;
  for (block.id[2] = 0; block.id[2] < grid[2]; ++block.id[2])
    for (block.id[1] = 0; block.id[1] < grid[1]; ++block.id[1])
      for (block.id[0] = 0; block.id[0] < grid[0]; ++block.id[0])
        if (const uint32_t fault = entry(parameter.data(), &block); fault != 0 && report->fault == 0)
          report->fault = fault;
}

}  // namespace fake_cuda

using namespace fake_cuda;

void fakeCudaSet(const char* key, int64_t value) {
  const std::lock_guard lock(state().mutex);
  state().settings[key] = value;
}

int64_t fakeCudaCount(const char* symbol) {
  if (std::string(symbol) == "live") {
    synchronizeAll();
    return state().liveBytes;
  }
  const std::lock_guard lock(state().mutex);
  return state().counts[symbol];
}

void fakeCudaReset() {
  synchronizeAll();
  const std::lock_guard lock(state().mutex);
  state().settings.clear();
  state().counts.clear();
  state().registered.clear();
  state().copying.clear();
  state().sticky = 0;
  ++state().generation;
}
// NOLINTEND(readability-identifier-naming)
