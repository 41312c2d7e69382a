// The block's shared buffer, laid out while the kernel is lowered: pieces that are not needed at the same time share bytes.
#pragma once

#include "layout/byte_ranges.h"
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
    bool isLive = true;
  };
  /// `bytes` bytes that live until they are freed or the enclosing scope is released. Emits a barrier when they were in use before and some thread may still
  /// be at it. `root`: names the memory; null for scratch, which gets a name of its own.
  Piece allocate(int64_t bytes, int64_t alignment = 16, Hazards::Root root = nullptr);

  /// Nothing needs the piece with this root any more.
  void free(Hazards::Root root);

  size_t mark() const { return pieces_.size(); }
  /// Frees what was allocated since the mark.
  void release(size_t mark);
  /// Where a piece of this size would end if it were allocated now.
  int64_t endOf(int64_t bytes) const { return ranges_.find(bytes, 16) + bytes; }
  /// Bytes that the block needs for all pieces.
  int64_t peak() const { return ranges_.peak(); }
  /// All pieces handed out so far.
  const std::deque<Piece>& pieces() const { return pieces_; }

private:
  Hazards& hazards_;
  std::deque<Piece> pieces_;
  layout::ByteRanges ranges_;
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
  size_t mark_;
};

}  // namespace vortex::target::gpu
