// The heap: bump allocation into free runs of lines, and a collector that marks lines.
//
// Nodes have one reference each, so consumed nodes could be put on free lists at once. That needs an eraser that chases every dropped term and
// still misses cycles. Marking finds all garbage; it costs nothing per interaction, and after it the allocator starts again at the lowest
// addresses, so that a program with little live data stays in the cache. Nothing moves: the positions that normalization works on stay valid.
#pragma once

#include "hvm/eval/code.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace vortex::hvm {

inline constexpr uint64_t kLineWords = 16, kBlockLines = 256, kBlockWords = kLineWords * kBlockLines;

/// A piece of the heap that one thread allocates from.
struct Region {
  Loc next = 0, end = 0;            // words that can be taken
  uint64_t line = 0, lastLine = 0;  // of the block that is being swept
  uint64_t reused = 0;              // words of swept runs so far
};

/// Address space whose memory is taken as it is used, in small pages at the beginning and then in large ones; null: there is none.
void* reserveMemory(uint64_t bytes);

class Heap {
public:
  /// What may be used beyond the limit until all threads have come to a safe point.
  static constexpr uint64_t kReserveWords = uint64_t(1) << 27;
  /// Other limits are brought into this range. Locations have 36 bits, one of which is left for the reserve.
  static constexpr uint64_t kLeastBytes = 8 * kBlockWords * sizeof(Term), kMostBytes = sizeof(Term) << 35;
  /// Reserves address space for `limitBytes` of heap and stacks; memory is taken as it is used.
  static Result<std::unique_ptr<Heap>> create(uint64_t limitBytes, uint64_t reserveWords);
  ~Heap();

  Term* words() const { return words_; }
  /// Gives the region a free run of at least `count` words. Never fails: beyond the limit it uses a reserve and requests a collection.
  void refill(Region& region, uint64_t count);
  /// Should all threads come to a safe point? A collection is due, or someone stops the run.
  bool wantsEverybody() const { return wantsEverybody_.load(std::memory_order_relaxed); }
  void setWantsEverybody(bool value) { wantsEverybody_ = value; }
  void requestCollection() {
    taken_ = budget_;
    wantsEverybody_.store(true, std::memory_order_relaxed);
  }
  bool wantsCollection() const { return taken_.load(std::memory_order_relaxed) >= budget_; }

  /// Marks what the roots reach: begin(), mark() for each root, end(). All threads stand still, and their regions are empty afterwards.
  void beginMarking();
  /// Marks what *term reaches and replaces variables and projections whose cell holds a substitution.
  void mark(Term* term, const Code& code);
  void markCell(Loc loc, const Code& code);
  /// The term is about to be marked.
  void announce(Term term) const {
    __builtin_prefetch(words_ + locOf(term));
    __builtin_prefetch(&lines_[locOf(term) / kLineWords], 1);
  }
  bool isMarkedCell(Loc loc) const { return visited_[loc / 64] >> (loc & 63) & 1; }
  /// `threads`: how many had work. False: less than a twentieth of the limit is free, counting `otherBytes` of stacks and lists and what marking took
  /// itself.
  bool endMarking(uint64_t otherBytes, unsigned threads);

  /// A number that no other name made by EQL-LAM has.
  uint64_t freshName() { return freshNames_.fetch_add(1, std::memory_order_relaxed) & kValueMask; }

  /// Words the heap holds; a word that was reused counts once.
  uint64_t highWater() const { return blocks_.load() * kBlockWords; }
  uint64_t limitBytes() const { return limitWords_ * sizeof(Term); }
  uint64_t collections() const { return collections_; }

private:
  Heap() = default;
  bool sweep(Region& region, uint64_t count);
  void takeFresh(Region& region, uint64_t count);
  bool enterCell(Loc loc);
  Term* visitPart(Loc loc, uint64_t count);
  Term* visitLifted(Term lifted);
  Term* visit(Term* word, const Code& code);

  Term* words_ = nullptr;
  uint64_t reservedWords_ = 0, limitWords_ = 0;
  std::unique_ptr<uint8_t[], void (*)(uint8_t*)> lines_{nullptr, nullptr};  // by line: 1 if something on it is alive
  uint64_t* visited_ = nullptr;                                             // by word: dup cells that are marked
  // Every safe point reads this, so what is written often lies on other cache lines.
  alignas(64) std::atomic<bool> wantsEverybody_{false};
  alignas(64) std::atomic<uint64_t> blocks_{0};  // in use: [0, blocks_)
  std::atomic<uint64_t> sweepBlock_{0};
  uint64_t sweepEnd_ = 0;
  std::atomic<uint64_t> taken_{0};  // words given out since the last collection
  uint64_t budget_;
  uint64_t collections_ = 0;
  uint64_t markedWords_ = 0;  // by the last collection
  std::atomic<uint64_t> freshNames_{0};
  struct Range {
    Loc loc;
    uint64_t count;
  };
  std::vector<Range> pending_;
};

}  // namespace vortex::hvm
