// --trace: what each pass does, told as the proposal of this engine tells its two examples.
#pragma once

#include "hvm/frontier/engine.h"

#include <span>

namespace vortex::hvm::frontier {

struct Message {
  uint64_t head, word;
};

/// What the outboxes of all blocks hold, in the order of senders.
struct Frontier {
  std::vector<std::vector<Message>> byBlock;  // received
  bool isEmpty() const;                       // of terms to reduce
};

Frontier collect(std::span<const uint64_t> words, std::span<const uint32_t> used, std::span<const uint32_t> counts,
                 const Sharding& sharding, uint32_t capacity);

class Trace {
public:
  Trace(const EngineOptions& options) : options_(options) {}

  void heap(const Net& net);
  /// After a pass: what it took, the heap, what happened to each entry by slot, and what was sent for the next.
  void pass(const Frontier& taken, std::span<const Term> heap, std::span<const uint64_t> notes, uint32_t capacity,
            std::span<const uint64_t> sent, std::span<const uint32_t> used, const Frontier& next);

private:
  bool isSharded() const { return options_.sharding.blocks > 1; }
  void say(std::string line) const { options_.trace(line); }
  Loc follow(std::span<const Term> heap, Loc loc) const;
  std::string name(Term term) const;
  std::string node(std::span<const Term> heap, Term term) const;
  std::string reduced(Term term) const;
  std::vector<Loc> children(std::span<const Term> heap, Loc loc) const;
  void single(const Frontier& taken, std::span<const Term> heap, std::span<const uint64_t> notes, const Frontier& next);
  void frontiers(const Frontier& taken) const;
  void entry(std::span<const Term> heap, uint32_t block, size_t thread, const Message& message, uint64_t note,
             std::span<const uint64_t> sent, uint32_t used) const;

  const EngineOptions& options_;
  uint64_t pass_ = 0;
};

}  // namespace vortex::hvm::frontier
