// The block's shared buffer: a stack of byte ranges laid out while the kernel is lowered, so that disjoint scopes share bytes.
#pragma once

#include "target/gpu/hazards.h"

#include <cstdint>
#include <deque>

namespace vortex::target::gpu {

class SharedMemory {
public:
  explicit SharedMemory(Hazards& hazards) : hazards_(hazards) {}

  struct Piece {
    int64_t offset;
    int64_t bytes;
    Hazards::Root root;  ///< to be named in every access, see Hazards
  };
  /// `bytes` bytes that live until the enclosing scope is released. Emits a barrier when they were in use before and some thread may still
  /// be at it. `root`: names the memory; null for scratch, which gets a name of its own.
  Piece allocate(int64_t bytes, int64_t alignment = 16, Hazards::Root root = nullptr);

  int64_t mark() const { return top_; }
  void release(int64_t mark) { top_ = mark; }
  /// Largest number of bytes in use at once.
  int64_t peak() const { return peak_; }
  /// All pieces handed out so far.
  const std::deque<Piece>& pieces() const { return pieces_; }

private:
  Hazards& hazards_;
  std::deque<Piece> pieces_;
  int64_t top_ = 0, peak_ = 0;
};

/// Scope guard.
class SharedScope {
public:
  explicit SharedScope(SharedMemory& memory) : memory_(memory), mark_(memory.mark()) {}
  ~SharedScope() { memory_.release(mark_); }
  SharedScope(const SharedScope&) = delete;
  SharedScope& operator=(const SharedScope&) = delete;

private:
  SharedMemory& memory_;
  int64_t mark_;
};

}  // namespace vortex::target::gpu
