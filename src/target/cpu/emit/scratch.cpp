#include "target/cpu/emit/scratch.h"

#include <algorithm>

namespace vortex::target::cpu::emit {

using artifact::SizeExpr;

static constexpr uint64_t kAlign = 64;

Scratch::Scratch(llvm::IRBuilder<>& ir, llvm::Value* base, std::function<llvm::Value*(const SizeExpr&)> emitSize)
    : ir_(ir), base_(base), emitSize_(std::move(emitSize)) {}

static SizeExpr startOf(const SizeExpr& dynamic, uint64_t constant) {
  return dynamic.steps.empty() ? SizeExpr::constant(constant)
                               : SizeExpr::binary(SizeExpr::Op::Add, dynamic, SizeExpr::constant(constant));
}

llvm::Value* Scratch::pointerTo(const SizeExpr& start) {
  return ir_.CreateGEP(ir_.getInt8Ty(), base_, emitSize_(start));
}

llvm::Value* Scratch::allocate(const SizeExpr& bytes) {
  if (bytes.steps.size() == 1 && bytes.steps[0].op == SizeExpr::Op::Constant)
    return reserve(std::max<int64_t>(bytes.steps[0].value, 0)).pointer;
  llvm::Value* pointer = pointerTo(startOf(top_.dynamic, top_.constant));
  SizeExpr align = SizeExpr::constant(kAlign);
  SizeExpr rounded = SizeExpr::binary(SizeExpr::Op::Mul, SizeExpr::binary(SizeExpr::Op::CeilDiv, bytes, align), align);
  top_.dynamic = top_.dynamic.steps.empty() ? rounded : SizeExpr::binary(SizeExpr::Op::Add, top_.dynamic, rounded);
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
    piece.pointer = pointerTo(startOf(piece.dynamic, piece.constant));
    gap.constant += bytes;
    gap.bytes -= bytes;
    if (gap.bytes == 0)
      top_.gaps.erase(top_.gaps.begin() + static_cast<ptrdiff_t>(i));
    return piece;
  }
  Piece piece{pointerTo(startOf(top_.dynamic, top_.constant)), top_.dynamic, top_.constant, bytes};
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
  if (top_.dynamic.steps.empty()) {
    constantPeak_ = std::max(constantPeak_, top_.constant);
    return;
  }
  SizeExpr total = SizeExpr::binary(SizeExpr::Op::Add, top_.dynamic, SizeExpr::constant(top_.constant));
  if (std::find(dynamicPeaks_.begin(), dynamicPeaks_.end(), total) == dynamicPeaks_.end())
    dynamicPeaks_.push_back(std::move(total));
}

SizeExpr Scratch::peak() const {
  SizeExpr result = SizeExpr::constant(constantPeak_);
  for (const SizeExpr& total : dynamicPeaks_)
    result = SizeExpr::binary(SizeExpr::Op::Max, result, total);
  return result;
}

}  // namespace vortex::target::cpu::emit
