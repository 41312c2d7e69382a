#include "target/gpu/shared_memory.h"

namespace vortex::target::gpu {

/// Where the last of these pieces would end.
static int64_t endOf(layout::ByteRanges ranges, llvm::ArrayRef<int64_t> bytes, int64_t alignment) {
  int64_t end = 0;
  for (int64_t each : bytes)
    end = std::max(end, ranges.allocate(each, alignment) + each);
  return end;
}

layout::ByteRanges SharedMemory::withoutRetired() const {
  layout::ByteRanges ranges = ranges_;
  for (const Piece& piece : pieces_)
    if (piece.use == Use::Retired)
      ranges.free(piece.offset);
  return ranges;
}

void SharedMemory::reclaim() {
  ranges_ = withoutRetired();
  for (Piece& piece : pieces_)
    if (piece.use == Use::Retired)
      piece.use = Use::Free;
}

bool SharedMemory::fits(llvm::ArrayRef<int64_t> bytes, int64_t alignment, int64_t limit) const {
  return endOf(ranges_, bytes, alignment) <= limit || endOf(withoutRetired(), bytes, alignment) <= limit;
}

bool SharedMemory::makeRoom(llvm::ArrayRef<int64_t> bytes, int64_t alignment) {
  if (endOf(ranges_, bytes, alignment) <= capacity_)
    return true;
  reclaim();
  return endOf(ranges_, bytes, alignment) <= capacity_;
}

SharedMemory::Piece SharedMemory::allocate(int64_t bytes, int64_t alignment, Hazards::Root root, std::string what) {
  if (ranges_.find(bytes, alignment) + bytes > capacity_ - kScratch)
    reclaim();
  int64_t offset = ranges_.allocate(bytes, alignment);
  for (const Piece& old : pieces_)
    if (old.offset < offset + bytes && offset < old.offset + old.bytes && hazards_.isPending(old.root)) {
      hazards_.barrier();
      break;
    }
  pieces_.push_back({offset, bytes, root, std::move(what), line_(), line_()});
  Piece& piece = pieces_.back();
  if (!piece.root)
    piece.root = &piece;  // a deque keeps its elements where they are
  return piece;
}

void SharedMemory::end(Piece& piece, Use use) {
  if (piece.use == Use::Live)
    piece.lastLine = std::max(piece.lastLine, line_());
  piece.use = use;
  if (use == Use::Free)
    ranges_.free(piece.offset);
}

void SharedMemory::free(Hazards::Root root) {
  for (Piece& piece : pieces_)
    if (piece.root == root && piece.use == Use::Live)
      return end(piece, Use::Free);
}

void SharedMemory::retire(Hazards::Root root) {
  for (Piece& piece : pieces_)
    if (piece.root == root && piece.use == Use::Live)
      end(piece, Use::Retired);
}

void SharedMemory::release(size_t mark) {
  for (size_t i = mark; i < pieces_.size(); ++i)
    if (pieces_[i].use != Use::Free)
      end(pieces_[i], Use::Free);
}

}  // namespace vortex::target::gpu
