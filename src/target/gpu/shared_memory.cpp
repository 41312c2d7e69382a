#include "target/gpu/shared_memory.h"

namespace vortex::target::gpu {

SharedMemory::Piece SharedMemory::allocate(int64_t bytes, int64_t alignment, Hazards::Root root) {
  int64_t offset = ranges_.allocate(bytes, alignment);
  for (const Piece& old : pieces_)
    if (old.offset < offset + bytes && offset < old.offset + old.bytes && hazards_.isPending(old.root)) {
      hazards_.barrier();
      break;
    }
  pieces_.push_back({offset, bytes, root});
  Piece& piece = pieces_.back();
  if (!piece.root)
    piece.root = &piece;  // a deque keeps its elements where they are
  return piece;
}

void SharedMemory::free(Hazards::Root root) {
  for (Piece& piece : pieces_)
    if (piece.root == root && piece.isLive) {
      piece.isLive = false;
      ranges_.free(piece.offset);
      return;
    }
}

void SharedMemory::release(size_t mark) {
  for (size_t i = mark; i < pieces_.size(); ++i)
    if (pieces_[i].isLive) {
      pieces_[i].isLive = false;
      ranges_.free(pieces_[i].offset);
    }
}

}  // namespace vortex::target::gpu
