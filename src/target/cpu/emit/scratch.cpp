#include "target/cpu/emit/scratch.h"

#include <algorithm>

namespace vortex::target::cpu::emit {

using artifact::SizeExpr;

static constexpr uint64_t kAlign = 64;

Scratch::Scratch(llvm::IRBuilder<>& ir, llvm::Value* base, std::function<llvm::Value*(const SizeExpr&)> emitSize)
    : ir_(ir), base_(base), emitSize_(std::move(emitSize)) {}

llvm::Value* Scratch::allocate(const SizeExpr& bytes) {
  SizeExpr start = top_.dynamic.steps.empty()
                       ? SizeExpr::constant(top_.constant)
                       : SizeExpr::binary(SizeExpr::Op::Add, top_.dynamic, SizeExpr::constant(top_.constant));
  llvm::Value* pointer = ir_.CreateGEP(ir_.getInt8Ty(), base_, emitSize_(start));
  if (bytes.steps.size() == 1 && bytes.steps[0].op == SizeExpr::Op::Constant) {
    uint64_t size = std::max<int64_t>(bytes.steps[0].value, 0);
    top_.constant += (size + kAlign - 1) / kAlign * kAlign;
  } else {
    SizeExpr align = SizeExpr::constant(kAlign);
    SizeExpr rounded =
        SizeExpr::binary(SizeExpr::Op::Mul, SizeExpr::binary(SizeExpr::Op::CeilDiv, bytes, align), align);
    top_.dynamic = top_.dynamic.steps.empty() ? rounded : SizeExpr::binary(SizeExpr::Op::Add, top_.dynamic, rounded);
  }
  notePeak();
  return pointer;
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
