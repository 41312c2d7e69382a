// The block's shared buffer, laid out while the kernel is lowered: pieces that are not needed at the same time share bytes.
//
// Bytes that are used again cost barriers. Pieces of a scope that ends are used again at once; pieces that are retired earlier, when their last
// use is over, only where the block would need more than the chip has.
#pragma once

#include "layout/byte_ranges.h"
#include "target/gpu/hazards.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <llvm/ADT/ArrayRef.h>
#include <string>

namespace vortex::target::gpu {

class SharedMemory {
public:
  /// Tiles leave so many bytes to what operations on them need for a moment.
  static constexpr int64_t kScratch = 2048;

  /// `capacity`: bytes that a block may have. `line`: of the code that is being lowered.
  SharedMemory(Hazards& hazards, int64_t capacity, std::function<uint32_t()> line)
      : hazards_(hazards), capacity_(capacity), line_(std::move(line)) {}

  enum class Use : uint8_t { Live, Retired, Free };
  struct Piece {
    int64_t offset;
    int64_t bytes;
    Hazards::Root root;                    ///< to be named in every access, see Hazards
    std::string what;                      ///< for the report; empty: a tensor of the program
    uint32_t firstLine = 0, lastLine = 0;  ///< of the code that needs it; 0: unknown
    Use use = Use::Live;
  };
  /// `bytes` bytes that live until they are freed or the enclosing scope is released. Emits a barrier when they were in use before and some
  /// thread may still be at it. `root`: names the memory.
  Piece allocate(int64_t bytes, int64_t alignment, Hazards::Root root) { return allocate(bytes, alignment, root, {}); }
  /// The same for what the compiler needs for itself, `what`: it has a root of its own.
  Piece take(int64_t bytes, int64_t alignment, std::string what) {
    return allocate(bytes, alignment, nullptr, std::move(what));
  }

  /// Nothing needs the piece with this root any more. `retire`: nothing happens where no piece has it.
  void free(Hazards::Root root);
  void retire(Hazards::Root root);

  size_t mark() const { return pieces_.size(); }
  /// Frees what was allocated since the mark.
  void release(size_t mark);
  /// A tile of so many bytes can be allocated now.
  bool hasRoomForTile(int64_t bytes) const { return fits(bytes, 16, capacity_ - kScratch); }
  /// Pieces of these sizes can be allocated now, one after the other; frees what is retired where that takes it.
  bool makeRoom(llvm::ArrayRef<int64_t> bytes, int64_t alignment);
  /// Bytes that the block needs for all pieces.
  int64_t peak() const { return ranges_.peak(); }
  /// All pieces handed out so far.
  const std::deque<Piece>& pieces() const { return pieces_; }

private:
  Piece allocate(int64_t bytes, int64_t alignment, Hazards::Root root, std::string what);
  void end(Piece& piece, Use use);
  bool fits(llvm::ArrayRef<int64_t> bytes, int64_t alignment, int64_t limit) const;
  layout::ByteRanges withoutRetired() const;
  void reclaim();

  Hazards& hazards_;
  int64_t capacity_;
  std::function<uint32_t()> line_;
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
