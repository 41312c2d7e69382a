#include "target/gpu/shared_memory.h"

#include <algorithm>

namespace vortex::target::gpu {

SharedMemory::Piece SharedMemory::allocate(int64_t bytes, int64_t alignment, Hazards::Root root) {
  int64_t offset = (top_ + alignment - 1) / alignment * alignment;
  for (const Piece& old : pieces_)
    if (old.offset < offset + bytes && offset < old.offset + old.bytes && hazards_.isPending(old.root)) {
      hazards_.barrier();
      break;
    }
  pieces_.push_back({offset, bytes, root});
  Piece& piece = pieces_.back();
  if (!piece.root)
    piece.root = &piece;  // a deque keeps its elements where they are
  top_ = offset + bytes;
  peak_ = std::max(peak_, top_);
  return piece;
}

}  // namespace vortex::target::gpu
