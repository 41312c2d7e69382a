#include "target/cpu/emit/scratch.h"

#include <algorithm>

namespace vortex::target::cpu::emit {

static constexpr int64_t kAlign = 64;

Scratch::Scratch(llvm::IRBuilder<>& ir, size::Arena& arena, llvm::Value* base,
                 std::function<llvm::Value*(size::Expr)> emitSize)
    : ir_(ir), arena_(arena), base_(base), emitSize_(std::move(emitSize)) {}

llvm::Value* Scratch::pointerTo(size::Expr dynamic, uint64_t constant) {
  size::Expr start = arena_.constant(static_cast<int64_t>(constant));
  return ir_.CreateGEP(ir_.getInt8Ty(), base_, emitSize_(dynamic ? size::make(size::Op::Add, dynamic, start) : start));
}

llvm::Value* Scratch::allocate(size::Expr bytes) {
  if (auto known = bytes.constant())
    return reserve(static_cast<uint64_t>(std::max<int64_t>(*known, 0))).pointer;
  llvm::Value* pointer = pointerTo(top_.dynamic, top_.constant);
  size::Expr rounded = size::make(size::Op::Mul, size::make(size::Op::CeilDiv, bytes, kAlign), kAlign);
  top_.dynamic = top_.dynamic ? size::make(size::Op::Add, top_.dynamic, rounded) : rounded;
  notePeak();
  return pointer;
}

Scratch::Piece Scratch::reserve(uint64_t bytes) {
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  for (size_t i = 0; i < top_.gaps.size() && bytes != 0; ++i) {
    Piece& gap = top_.gaps[i];
    if (gap.bytes < bytes)
      continue;
    Piece piece = gap;
    piece.bytes = bytes;
    piece.pointer = pointerTo(piece.dynamic, piece.constant);
    gap.constant += bytes;
    gap.bytes -= bytes;
    if (gap.bytes == 0)
      top_.gaps.erase(top_.gaps.begin() + static_cast<ptrdiff_t>(i));
    return piece;
  }
  Piece piece{pointerTo(top_.dynamic, top_.constant), top_.dynamic, top_.constant, bytes};
  top_.constant += bytes;
  notePeak();
  return piece;
}

/// Gaps stay in order and apart; one at the end of the stack lowers it.
void Scratch::free(const Piece& piece) {
  if (piece.bytes == 0)
    return;
  std::vector<Piece>& gaps = top_.gaps;
  auto at = std::find_if(gaps.begin(), gaps.end(), [&](const Piece& gap) {
    return gap.dynamic == piece.dynamic && gap.constant > piece.constant;
  });
  at = gaps.insert(at, piece);
  auto touches = [](const Piece& low, const Piece& high) {
    return low.dynamic == high.dynamic && low.constant + low.bytes == high.constant;
  };
  if (auto next = at + 1; next != gaps.end() && touches(*at, *next)) {
    at->bytes += next->bytes;
    gaps.erase(next);
  }
  if (at != gaps.begin() && touches(*(at - 1), *at)) {
    (at - 1)->bytes += at->bytes;
    at = gaps.erase(at) - 1;
  }
  if (at->dynamic == top_.dynamic && at->constant + at->bytes == top_.constant) {
    top_.constant = at->constant;
    gaps.erase(at);
  }
}

void Scratch::notePeak() {
  if (!top_.dynamic) {
    constantPeak_ = std::max(constantPeak_, top_.constant);
    return;
  }
  size::Expr total = size::make(size::Op::Add, top_.dynamic, static_cast<int64_t>(top_.constant));
  if (std::find(dynamicPeaks_.begin(), dynamicPeaks_.end(), total) == dynamicPeaks_.end())
    dynamicPeaks_.push_back(total);
}

size::Expr Scratch::peak() const {
  size::Expr result = arena_.constant(static_cast<int64_t>(constantPeak_));
  for (size::Expr total : dynamicPeaks_)
    result = size::make(size::Op::Max, result, total);
  return result;
}

}  // namespace vortex::target::cpu::emit
