#include "hvm/eval/heap.h"

#include "base/text.h"
#include "hvm/eval/lifted.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace vortex::hvm {

// Allocated between two collections, at least.
static constexpr uint64_t kNurseryWords = uint64_t(1) << 17;        // 1 MiB: stays in the second-level cache
static constexpr uint64_t kMostFutileWords = uint64_t(1) << 26;     // after one that freed hardly anything
static constexpr uint64_t kSharedNurseryWords = uint64_t(1) << 18;  // for each of several threads, which must meet

void* reserveMemory(uint64_t bytes) {
  static constexpr uint64_t kSmall = uint64_t(1) << 21;  // clearing a large page takes longer than many programs do
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  if (bytes > kSmall)
    madvise(static_cast<char*>(memory) + kSmall, bytes - kSmall, MADV_HUGEPAGE);
  return memory;
}

Result<std::unique_ptr<Heap>> Heap::create(uint64_t limitBytes, uint64_t reserveWords) {
  std::unique_ptr<Heap> heap(new Heap);
  heap->limitWords_ = std::clamp(limitBytes, kLeastBytes, kMostBytes) / sizeof(Term);
  heap->reservedWords_ = (heap->limitWords_ + reserveWords) / kBlockWords * kBlockWords;
  uint64_t lineBytes = heap->reservedWords_ / kLineWords, bitBytes = heap->reservedWords_ / 8;
  heap->words_ = static_cast<Term*>(reserveMemory(heap->reservedWords_ * sizeof(Term)));
  void* maps = reserveMemory(lineBytes + bitBytes);
  if (!heap->words_ || !maps)
    return Error{base::concat("Error: cannot reserve ", heap->reservedWords_ * sizeof(Term),
                              " bytes of address space (--memory, ulimit -v)")};
  madvise(heap->words_, heap->reservedWords_ * sizeof(Term), MADV_HUGEPAGE);
  heap->visited_ = static_cast<uint64_t*>(maps);
  heap->lines_ = {static_cast<uint8_t*>(maps) + bitBytes, [](uint8_t*) {}};
  heap->lines_[0] = 1;  // location 0 is unused
  heap->budget_ = std::min(kNurseryWords, heap->limitWords_ / 4);
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
    wantsEverybody_.store(true, std::memory_order_relaxed);
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
    taken_.store(budget_, std::memory_order_relaxed), wantsEverybody_.store(true, std::memory_order_relaxed);
}

void Heap::beginMarking() {
  ++collections_;
  uint64_t used = blocks_.load() * kBlockWords;
  std::memset(lines_.get(), 0, used / kLineWords);
  std::memset(visited_, 0, used / 8);
  lines_[0] = 1;
}

// What marking follows: so many words of a node, what a closure captured, or a cell.
static constexpr uint8_t kVariable = 65, kSharedCell = 66, kTwoVariables = 67, kCellInside = 68, kLifted = 69;
static constexpr std::array<uint8_t, 128> kShapes = [] {
  std::array<uint8_t, 128> shapes = kNodeWords;
  shapes[Stk] = 1, shapes[Var] = kVariable, shapes[Svr] = kTwoVariables;
  shapes[Lm0] = shapes[Lm1] = kCellInside;
  shapes[Lf0] = shapes[Lf1] = kLifted;
  shapes[Dp0] = shapes[Dp1] = shapes[Fut] = kSharedCell;
  return shapes;
}();

/// False: somebody was here before.
inline bool Heap::enterCell(Loc loc) {
  const uint64_t bit = uint64_t(1) << (loc & 63);
  if (visited_[loc / 64] & bit)
    return false;
  visited_[loc / 64] |= bit;
  lines_[loc / kLineWords] = 1;
  return true;
}

/// Of a duplicated lambda: its two variables, or the cell of its body. Nothing else refers to a cell that is bound.
[[gnu::noinline]] Term* Heap::visitPart(Loc loc, uint64_t count) {
  if (count == 1 && !isSub(words_[loc]))
    return enterCell(loc) ? words_ + loc : nullptr;
  for (Loc cell = loc; cell < loc + count; ++cell) {
    lines_[cell / kLineWords] = 1;
    if (isSub(words_[cell]))
      pending_.push_back({cell, 1});
  }
  return nullptr;
}

/// Of a lifted superposition: one side, and the cells of the frames that it still waits for.
[[gnu::noinline]] Term* Heap::visitLifted(Term lifted) {
  const Loc at = locOf(lifted), operands = at + kLiftedOperands;
  lines_[at / kLineWords] = lines_[(operands - 1) / kLineWords] = 1;
  const Loc end = operands + liftedCount(words_[at]);
  for (Loc cell = operands + liftedStart(lifted); cell < end; ++cell) {
    lines_[cell / kLineWords] = 1;
    if (isSub(words_[cell]) || enterCell(cell))  // nothing else refers to a cell that is bound
      pending_.push_back({cell, 1});
  }
  return words_ + liftedSide(lifted);
}

/// Marks what *word refers to. The word that it goes on with: the first of a node, whose others are pending, or a cell's; null: none.
inline Term* Heap::visit(Term* word, const Code& code) {
  for (;;) {
    const Term term = *word;
    const Loc loc = locOf(term);
    uint64_t count = kShapes[tagOf(term)];
    if (count >= kVariable) {
      if (count == kLifted)
        return visitLifted(term);
      if (count >= kTwoVariables)
        return visitPart(loc, count == kTwoVariables ? 2 : 1);
      const Term cell = words_[loc];
      if (isSub(cell)) {
        *word = (cell & ~kSub) | (term & kSub);
        continue;
      }
      if (count == kSharedCell)
        return enterCell(loc) ? words_ + loc : nullptr;
      lines_[loc / kLineWords] = 1;
      return nullptr;
    }
    if (count == kCaptured)
      count = code.entries[extOf(term)].count;
    if (count == 0)
      return nullptr;
    for (uint64_t line = loc / kLineWords; line <= (loc + count - 1) / kLineWords; ++line)
      lines_[line] = 1;
    if (count > 1)
      pending_.push_back({loc + 1, count - 1});
    return words_ + loc;
  }
}

void Heap::mark(Term* word, const Code& code) {
  for (;;) {
    while (word)
      word = visit(word, code);
    if (pending_.empty())
      return;
    Range& range = pending_.back();
    word = words_ + range.loc++;
    if (--range.count == 0)
      pending_.pop_back();
  }
}

void Heap::markCell(Loc loc, const Code& code) {
  if (enterCell(loc))
    mark(words_ + loc, code);
}

bool Heap::endMarking(uint64_t otherBytes, unsigned threads) {
  uint64_t lines = blocks_.load() * kBlockLines, marked = 0;
  for (uint64_t line = 0; line < lines; ++line)
    marked += lines_[line];
  const uint64_t taken = taken_.load(), before = std::exchange(markedWords_, marked * kLineWords) + taken;
  uint64_t live = markedWords_ + (otherBytes + pending_.capacity() * sizeof(Range)) / sizeof(Term);
  // Where hardly anything was garbage, the next collection would find hardly more.
  const bool isFutile = before < markedWords_ + taken / 8;
  const uint64_t growth = std::max(live + live / 2, isFutile ? std::min(16 * live, kMostFutileWords) : 0);
  // A quarter of the heap at least: clearing and reading its maps must not dominate.
  const uint64_t nurseryWords = threads > 1 ? threads * kSharedNurseryWords : kNurseryWords;
  budget_ = std::max({nurseryWords, growth, blocks_.load() * kBlockWords / 4});
  uint64_t room = limitWords_ > live ? limitWords_ - live : 0;
  budget_ = std::min(budget_, room);
  taken_ = 0;
  sweepBlock_ = 0;
  sweepEnd_ = blocks_.load();
  return room >= limitWords_ / 20;
}

}  // namespace vortex::hvm
