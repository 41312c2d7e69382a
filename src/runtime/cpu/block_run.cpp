// Small launches: waking threads costs more (5 to 20 µs) than a few short blocks. How long blocks take is not known before
// the first launch of a kernel, so it is measured; a phase expected to end within kInlineNs runs on the caller. If it
// turns out longer (other sizes, other data), the rest goes to the pool after kInlineLimitNs.
#include "runtime/cpu/block_run.h"

#include "artifact/print_text.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace vortex::cpu {

namespace {

constexpr uint64_t kInlineNs = 8000;
constexpr uint64_t kInlineLimitNs = 20000;
constexpr uint64_t kClockNs = 1000;  ///< the clock is read about this often while running inline
constexpr uint64_t kGrainNs = 4000;  ///< parts of the pool's work are not split below this
constexpr uint64_t kBandRows = 16;   ///< of blocks; what they read beside each other should fit the second-level cache

uint64_t nowNs() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

/// Kernels run with IEEE defaults whatever the caller (or a library compiled with fast-math) has set for its thread.
class FloatingPointDefaults {
public:
#if defined(__x86_64__)
  FloatingPointDefaults() : saved_(_mm_getcsr()) {
    if (saved_ != kDefault)
      _mm_setcsr(kDefault);
  }
  ~FloatingPointDefaults() {
    if (saved_ != kDefault)
      _mm_setcsr(saved_);
  }

private:
  static constexpr unsigned kDefault = 0x1f80;  ///< all exceptions masked, round to nearest, subnormals kept
  unsigned saved_;
#endif
};

}  // namespace

BlockRun::BlockRun(const hal::Launch& launch, const hal::LaunchPhase& phase, artifact::CpuEntry entry, Scratch scratch,
                   Order order)
    : launch_(launch), phase_(phase), entry_(entry), scratch_(scratch), order_(order) {}

uint32_t BlockRun::run(Workers& workers, PhaseHistory& history) {
  const uint64_t blocks = phase_.blocks, expected = history.blockPicoseconds.load(std::memory_order_relaxed);
  uint64_t next = 0;
  if (expected != 0 && blocks <= kInlineNs * 1000 / expected)
    runInline(next, blocks, expected);
  if (next < blocks) {
    const uint64_t remaining = blocks - next;
    const uint64_t worthwhile = expected == 0 ? 1 : std::max<uint64_t>(1, kGrainNs * 1000 / expected);
    const uint64_t grain = std::min(worthwhile, std::max<uint64_t>(1, remaining / (uint64_t{workers.count()} * 4)));
    workers.forEach(next, blocks, grain,
                    [this](uint64_t begin, uint64_t end, uint32_t worker) { runPart(begin, end, worker); });
  }
  history.blockPicoseconds.store(std::max<uint64_t>(1, busyNanoseconds_.load() * 1000 / blocks),
                                 std::memory_order_relaxed);
  return faultCode_;
}

Result<uint32_t> BlockRun::runTogether() {
  const auto blocks = static_cast<uint32_t>(phase_.blocks);
  meeting_ = std::make_unique<Meeting>(blocks);
  Result<void> done = onThreads(blocks, [this](uint32_t block) {
    runPart(block, uint64_t{block} + 1, block);
    meeting_->leave(firstFault_.load(std::memory_order_relaxed) != UINT64_MAX);
  });
  if (!done)
    return done.takeError();
  return faultCode_;
}

void BlockRun::runInline(uint64_t& next, uint64_t end, uint64_t picosecondsPerBlock) {
  const uint64_t step = std::max<uint64_t>(1, kClockNs * 1000 / picosecondsPerBlock);
  while (next < end && busyNanoseconds_.load(std::memory_order_relaxed) < kInlineLimitNs) {
    const uint64_t stop = std::min(end, next + step);
    runPart(next, stop, 0);
    next = stop;
  }
}

/// The block that runs as number `index`.
void BlockRun::place(uint64_t index, artifact::CpuBlock& block) const {
  const uint64_t columns = block.grid[0], plane = columns * block.grid[1], first = index % plane;
  const uint64_t height = order_ == Order::Bands ? kBandRows : 1, top = first / (columns * height) * height;
  const uint64_t rows = std::min(height, block.grid[1] - top), inBand = first - top * columns;
  block.id[0] = static_cast<uint32_t>(inBand / rows);
  block.id[1] = static_cast<uint32_t>(top + inBand % rows);
  block.id[2] = static_cast<uint32_t>(index / plane);
}

/// From block `index - 1` to the next one. Divisions would cost small blocks more than these steps.
void BlockRun::advance(uint64_t index, artifact::CpuBlock& block) const {
  if (order_ == Order::Bands)
    return place(index, block);
  if (++block.id[0] != block.grid[0])
    return;
  block.id[0] = 0;
  if (++block.id[1] == block.grid[1]) {
    block.id[1] = 0;
    ++block.id[2];
  }
}

void BlockRun::runPart(uint64_t begin, uint64_t end, uint32_t worker) {
  const FloatingPointDefaults defaults;
  const uint64_t start = nowNs();
  artifact::CpuBlock block{};
  std::copy_n(phase_.grid, 3, block.grid);
  std::copy_n(phase_.block, 3, block.block);
  place(begin, block);
  block.worker = worker;
  block.scratch = scratch_.base ? scratch_.base + worker * scratch_.bytesPerWorker : nullptr;
  Caller caller{this, {}};
  block.print = &BlockRun::print;
  block.meet = &BlockRun::meet;
  block.context = &caller;
  const uint64_t* slots = launch_.slotsOf(phase_).data();
  for (uint64_t index = begin; index < end; ++index) {
    const uint64_t number =
        block.id[0] + uint64_t{block.grid[0]} * (block.id[1] + uint64_t{block.grid[1]} * block.id[2]);
    const bool isSkipped = number > firstFault_.load(std::memory_order_relaxed);
    if (isSkipped && order_ == Order::Rows)
      break;
    if (scratch_.poison && scratch_.base)
      std::memset(block.scratch, 0xff, phase_.scratchBytes);
    if (const uint32_t code = isSkipped ? 0 : entry_(slots, &block); code != 0)
      reportFault(number, code, std::exchange(caller.faultText, {}));
    advance(index + 1, block);
  }
#if defined(__x86_64__)
  _mm_sfence();  // kernels may store around the caches, which releasing the part's completion does not order
#endif
  busyNanoseconds_.fetch_add(nowNs() - start, std::memory_order_relaxed);
}

void BlockRun::reportFault(uint64_t block, uint32_t code, std::string text) {
  const std::lock_guard lock(mutex_);
  if (block < firstFault_.load(std::memory_order_relaxed)) {
    firstFault_.store(block, std::memory_order_relaxed);
    faultCode_ = code;
    faultText_ = std::move(text);
  }
}

uint32_t BlockRun::meet(void* caller) { return static_cast<Caller*>(caller)->run->meeting_->meet() ? 0 : 1; }

void BlockRun::print(void* self, uint32_t format, const uint64_t* values, uint32_t count) {
  auto* caller = static_cast<Caller*>(self);
  BlockRun* run = caller->run;
  const std::vector<artifact::Fault>& formats = run->launch_.kernel->artifact().faults;
  if (format >= formats.size())
    return;  // compiled code is trusted with memory, not with crashing the host over a message
  if (artifact::isOfFault(formats[format])) {
    if (caller->faultText.empty())
      caller->faultText =
          artifact::printText(formats[format].message, artifact::printKinds(formats[format]), {values, count});
    return;
  }
  if (!run->launch_.print)
    return;
  const std::lock_guard lock(run->mutex_);
  run->launch_.print(formats[format], {values, count});
}

}  // namespace vortex::cpu
