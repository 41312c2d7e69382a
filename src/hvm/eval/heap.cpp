#include "hvm/eval/heap.h"

#include "base/text.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace vortex::hvm {

static constexpr uint64_t kReserveWords = uint64_t(1) << 27;        // beyond the limit, until the next safe point
static constexpr uint64_t kNurseryWords = uint64_t(1) << 17;        // 1 MiB: stays in the second-level cache
static constexpr uint64_t kSharedNurseryWords = uint64_t(1) << 19;  // for each of several threads, which must meet
static constexpr uint64_t kMaxWords = uint64_t(1) << 35;            // locations have 36 bits

static void* reserve(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

Result<std::unique_ptr<Heap>> Heap::create(uint64_t limitBytes, unsigned threads) {
  std::unique_ptr<Heap> heap(new Heap);
  heap->limitWords_ = std::clamp<uint64_t>(limitBytes / sizeof(Term), 8 * kBlockWords, kMaxWords);
  heap->reservedWords_ = (heap->limitWords_ + kReserveWords) / kBlockWords * kBlockWords;
  uint64_t lineBytes = heap->reservedWords_ / kLineWords, bitBytes = heap->reservedWords_ / 8;
  heap->words_ = static_cast<Term*>(reserve(heap->reservedWords_ * sizeof(Term)));
  void* maps = reserve(lineBytes + bitBytes);
  if (!heap->words_ || !maps)
    return Error{
        base::concat("Error: cannot reserve ", heap->reservedWords_ * sizeof(Term), " bytes of address space")};
  madvise(heap->words_, heap->reservedWords_ * sizeof(Term), MADV_HUGEPAGE);
  heap->visited_ = static_cast<uint64_t*>(maps);
  heap->lines_ = {static_cast<uint8_t*>(maps) + bitBytes, [](uint8_t*) {}};
  heap->lines_[0] = 1;  // location 0 is unused
  heap->nurseryWords_ = threads == 1 ? kNurseryWords : threads * kSharedNurseryWords;
  heap->budget_ = std::min(heap->nurseryWords_, heap->limitWords_ / 4);
  return heap;
}

Heap::~Heap() {
  if (words_)
    munmap(words_, reservedWords_ * sizeof(Term));
  if (visited_)
    munmap(visited_, reservedWords_ / kLineWords + reservedWords_ / 8);
}

void Heap::refill(Region& region, uint64_t count) {
  if (!sweep(region, count))
    takeFresh(region, count);
  uint64_t taken = region.end - region.next;
  if (taken_.fetch_add(taken, std::memory_order_relaxed) + taken >= budget_)
    attention_.fetch_or(kEverybody, std::memory_order_relaxed);
}

/// The next run of unmarked lines in the blocks that existed at the last collection.
bool Heap::sweep(Region& region, uint64_t count) {
  for (;;) {
    while (region.line < region.lastLine) {
      const uint8_t* lines = lines_.get();
      uint64_t first = region.line;
      while (first < region.lastLine && lines[first])
        ++first;
      uint64_t last = first;
      while (last < region.lastLine && !lines[last])
        ++last;
      region.line = last;
      if ((last - first) * kLineWords >= count) {
        region.next = first * kLineWords, region.end = last * kLineWords;
        return true;
      }
    }
    if (sweepBlock_.load(std::memory_order_relaxed) >= sweepEnd_)
      return false;
    uint64_t block = sweepBlock_.fetch_add(1, std::memory_order_relaxed);
    if (block >= sweepEnd_)
      return false;
    region.line = block * kBlockLines, region.lastLine = region.line + kBlockLines;
  }
}

void Heap::takeFresh(Region& region, uint64_t count) {
  uint64_t wanted = (count + kBlockWords - 1) / kBlockWords;
  uint64_t block = blocks_.fetch_add(wanted, std::memory_order_relaxed);
  VORTEX_CHECK((block + wanted) * kBlockWords <= reservedWords_,
               "the reserve of the heap is used up before a safe point");
  bool isFirst = block == 0;
  region.next = block * kBlockWords + (isFirst ? kLineWords : 0), region.end = (block + wanted) * kBlockWords;
  if (isFirst && region.end - region.next < count)
    return takeFresh(region, count);
  if ((block + wanted) * kBlockWords > limitWords_)
    taken_.store(budget_, std::memory_order_relaxed), attention_.fetch_or(kEverybody, std::memory_order_relaxed);
}

void Heap::beginMarking() {
  ++collections_;
  uint64_t used = blocks_.load() * kBlockWords;
  std::memset(lines_.get(), 0, used / kLineWords);
  std::memset(visited_, 0, used / 8);
  lines_[0] = 1;
}

inline void Heap::markLines(Loc loc, uint64_t count) {
  for (uint64_t line = loc / kLineWords; line <= (loc + count - 1) / kLineWords; ++line)
    lines_[line] = 1;
}

inline void Heap::visitCell(Loc loc) {
  uint64_t bit = uint64_t(1) << (loc & 63);
  if (visited_[loc / 64] & bit)
    return;
  visited_[loc / 64] |= bit;
  markLines(loc, 1);
  pending_.push_back({loc, 1});
}

/// Marks the node that *word refers to and notes its fields.
inline void Heap::visit(Term* word, const Code& code) {
  Term term = *word & ~kSub;
  const Term sub = *word & kSub;
  for (;;) {
    Tag tag = tagOf(term);
    Loc loc = locOf(term);
    if (tag == Var || tag == Dp0 || tag == Dp1 || tag == Fut) {
      Term cell = words_[loc];
      if (isSub(cell)) {
        term = cell & ~kSub;
        *word = term | sub;
        continue;
      }
      if (tag == Var)
        return markLines(loc, 1);
      return visitCell(loc);
    }
    const uint64_t count = tag == Stk ? 1 : wordsOf(term, code);
    if (count == 0)
      return;
    markLines(loc, count);
    pending_.push_back({loc, count});
    return;
  }
}

void Heap::mark(Term* term, const Code& code) {
  visit(term, code);
  drain(code);
}

void Heap::markCell(Loc loc, const Code& code) {
  visitCell(loc);
  drain(code);
}

void Heap::drain(const Code& code) {
  while (!pending_.empty()) {
    Range& range = pending_.back();
    Loc loc = range.loc;
    ++range.loc;
    if (--range.count == 0)
      pending_.pop_back();
    visit(&words_[loc], code);
  }
}

bool Heap::endMarking(uint64_t otherBytes) {
  uint64_t lines = blocks_.load() * kBlockLines, marked = 0;
  for (uint64_t line = 0; line < lines; ++line)
    marked += lines_[line];
  uint64_t live = marked * kLineWords + otherBytes / sizeof(Term);
  // A quarter of the heap at least: clearing and reading its maps must not dominate.
  budget_ = std::max({nurseryWords_, live + live / 2, blocks_.load() * kBlockWords / 4});
  uint64_t room = limitWords_ > live ? limitWords_ - live : 0;
  budget_ = std::min(budget_, room);
  taken_ = 0;
  sweepBlock_ = 0;
  sweepEnd_ = blocks_.load();
  return room >= limitWords_ / 20;
}

}  // namespace vortex::hvm
