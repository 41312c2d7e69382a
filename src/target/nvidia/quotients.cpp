// Correctly rounded quotients of several f32 at once.
//
// div.rn asks for each quotient whether its operands are of ordinary size, branches to a slow path where they are not, and makes the warp meet
// again: the lanes of a vector run one after the other, at the latency of each. Asked once per vector, the ordinary path is straight code whose
// lanes overlap, and the reciprocal of a divisor that they share, and that loops do not change, is computed once. Its steps are those of div.rn:
// two residuals, each exact.
#include "target/interface/math/float_code.h"
#include "target/nvidia/functions.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

namespace vortex::target::nvidia {

using llvm::Value;
using math::FloatCode;

// Dividends are 0 or of a size between these; divisors are positive, as the steps would make 0 of 0 / −2. So quotients are between 2^-122 and 2^126,
// and residuals multiples of 2^-149.
static constexpr double kLeastDividend = 0x1p-98, kMostDividend = 0x1p+78;
static constexpr double kLeastDivisor = 0x1p-48, kMostDivisor = 0x1p+24;

static Value* all(llvm::IRBuilder<>& ir, Value* a, Value* b) { return a ? ir.CreateAnd(a, b) : b; }

/// NaN passes: the steps give NaN.
static Value* areOrdinaryDividends(llvm::IRBuilder<>& ir, llvm::ArrayRef<Value*> lanes) {
  const FloatCode code(ir, ir.getFloatTy());
  Value *largest = nullptr, *least = nullptr;
  for (Value* x : lanes) {
    Value* magnitude = code.abs(x);
    Value* nonZero = ir.CreateSub(code.bits(magnitude), code.ci(1));  // 0 becomes the largest number
    largest = largest ? ir.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, largest, magnitude) : magnitude;
    least = least ? ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, least, nonZero) : nonZero;
  }
  Value* lowest = ir.CreateSub(code.bits(code.c(kLeastDividend)), code.ci(1));
  return ir.CreateAnd(ir.CreateFCmpULE(largest, code.c(kMostDividend)), ir.CreateICmpUGE(least, lowest));
}

static Value* areOrdinaryDivisors(llvm::IRBuilder<>& ir, llvm::ArrayRef<Value*> lanes) {
  const FloatCode code(ir, ir.getFloatTy());
  Value* result = nullptr;
  for (Value* y : lanes) {
    result = all(ir, result, ir.CreateFCmpOGE(y, code.c(kLeastDivisor)));
    result = all(ir, result, ir.CreateFCmpOLE(y, code.c(kMostDivisor)));
  }
  return result;
}

static Value* exactFma(const FloatCode& code, Value* x, Value* y, Value* z) {
  return code.b.CreateIntrinsic(llvm::Intrinsic::fma, {code.type}, {x, y, z});
}

static Value* reciprocal(const FloatCode& code, Value* y) {
  Value* near = code.b.CreateIntrinsic(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, {}, {y});
  return exactFma(code, near, exactFma(code, code.neg(y), near, code.c(1)), near);
}

/// Residuals are q · y − x rather than x − q · y, so that a quotient of −0 stays one.
static Value* ordinaryQuotient(const FloatCode& code, Value* x, Value* y, Value* inverse) {
  Value *q = code.mul(x, inverse), *negated = code.neg(inverse), *minusX = code.neg(x);
  for (int step = 0; step < 2; ++step)
    q = exactFma(code, negated, exactFma(code, q, y, minusX), q);
  return q;
}

Value* emitQuotients(llvm::IRBuilder<>& ir, Value* x, Value* y) {
  const FloatCode code(ir, ir.getFloatTy());
  auto* vector = llvm::cast<llvm::FixedVectorType>(x->getType());
  const unsigned lanes = vector->getNumElements();
  llvm::SmallVector<Value*> dividends, divisors;
  for (unsigned lane = 0; lane < lanes; ++lane)
    dividends.push_back(ir.CreateExtractElement(x, lane));
  if (Value* shared = llvm::getSplatValue(y))
    divisors.push_back(shared);
  else
    for (unsigned lane = 0; lane < lanes; ++lane)
      divisors.push_back(ir.CreateExtractElement(y, lane));
  Value* areOrdinary = ir.CreateAnd(areOrdinaryDivisors(ir, divisors), areOrdinaryDividends(ir, dividends));
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(ir.getContext(), name, function); };
  llvm::BasicBlock *ordinary = block("ordinary"), *other = block("other"), *after = block("quotients");
  ir.CreateCondBr(areOrdinary, ordinary, other);
  auto emit = [&](llvm::BasicBlock* here, llvm::function_ref<Value*(unsigned lane, Value* divisor)> quotient) {
    ir.SetInsertPoint(here);
    Value* result = llvm::PoisonValue::get(vector);
    for (unsigned lane = 0; lane < lanes; ++lane)
      result = ir.CreateInsertElement(result, quotient(lane, divisors[divisors.size() == 1 ? 0 : lane]), lane);
    ir.CreateBr(after);
    return result;
  };
  Value* inverse = nullptr;
  Value* fast = emit(ordinary, [&](unsigned lane, Value* divisor) {
    if (!inverse || divisors.size() > 1)
      inverse = reciprocal(code, divisor);
    return ordinaryQuotient(code, dividends[lane], divisor, inverse);
  });
  Value* slow = emit(other, [&](unsigned lane, Value* divisor) { return ir.CreateFDiv(dividends[lane], divisor); });
  ir.SetInsertPoint(after);
  llvm::PHINode* result = ir.CreatePHI(vector, 2);
  result->addIncoming(fast, ordinary);
  result->addIncoming(slow, other);
  return result;
}

}  // namespace vortex::target::nvidia
