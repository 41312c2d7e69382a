#include "msl/flatten/overflows.h"

#include "msl/flatten/preserved.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

namespace vortex::msl::flatten {

namespace {

using llvm::Value;

struct Checked {
  Value *result, *overflows;
};

/// An integer or a vector of integers of another width.
llvm::Type* withBits(llvm::Type* type, unsigned bits) { return type->getWithNewBitWidth(bits); }

Value* isNegative(llvm::IRBuilder<>& b, Value* number) {
  return b.CreateICmpSLT(number, llvm::Constant::getNullValue(number->getType()));
}

/// Of 64 bits, by their halves: where both upper ones are there it overflows, else the products of halves that are not of the same rank are.
Checked unsignedProduct(llvm::IRBuilder<>& b, Value* x, Value* y) {
  constexpr unsigned kHalf = 32;
  auto low = [&](Value* of) { return b.CreateZExt(b.CreateTrunc(of, withBits(of->getType(), kHalf)), of->getType()); };
  Value *xHigh = b.CreateLShr(x, kHalf), *yHigh = b.CreateLShr(y, kHalf), *lowest = b.CreateMul(low(x), low(y));
  Value* middle = b.CreateAdd(b.CreateMul(xHigh, low(y)), b.CreateMul(low(x), yHigh));
  Value* result = b.CreateAdd(b.CreateShl(middle, kHalf), lowest);
  Value* both = b.CreateAnd(b.CreateIsNotNull(xHigh), b.CreateIsNotNull(yHigh));
  Value* above = b.CreateOr(b.CreateIsNotNull(b.CreateLShr(middle, kHalf)), b.CreateICmpULT(result, lowest));
  return {result, b.CreateOr(both, above)};
}

/// Of 64 bits, by their magnitudes: that of a negative product may be larger by one.
Checked signedProduct(llvm::IRBuilder<>& b, Value* x, Value* y) {
  Value* isMinus = b.CreateXor(isNegative(b, x), isNegative(b, y));
  auto magnitude = [&](Value* of) { return b.CreateSelect(isNegative(b, of), b.CreateNeg(of), of); };
  Checked product = unsignedProduct(b, magnitude(x), magnitude(y));
  Value* most = llvm::ConstantInt::get(x->getType(), (uint64_t{1} << 63) - 1);
  Value* isLarger = b.CreateICmpUGT(product.result, b.CreateAdd(most, b.CreateZExt(isMinus, x->getType())));
  return {b.CreateSelect(isMinus, b.CreateNeg(product.result), product.result),
          b.CreateOr(product.overflows, isLarger)};
}

Checked product(llvm::IRBuilder<>& b, Value* x, Value* y, bool isSigned) {
  llvm::Type *type = x->getType(), *wide = withBits(type, 64);
  const unsigned bits = type->getScalarSizeInBits();
  auto extend = [&](Value* of) { return b.CreateIntCast(of, wide, isSigned); };
  Checked made{nullptr, llvm::Constant::getNullValue(withBits(type, 1))};
  if (bits <= 32)
    made.result = b.CreateMul(extend(x), extend(y));
  else
    made = isSigned ? signedProduct(b, extend(x), extend(y)) : unsignedProduct(b, extend(x), extend(y));
  if (bits == 64)
    return made;
  Value* narrow = b.CreateTrunc(made.result, type);
  return {narrow, b.CreateOr(made.overflows, b.CreateICmpNE(extend(narrow), made.result))};
}

Checked expand(llvm::WithOverflowInst& at) {
  llvm::IRBuilder<> b(&at);
  Value *x = at.getLHS(), *y = at.getRHS();
  if (at.getBinaryOp() == llvm::Instruction::Mul)
    return product(b, x, y, at.isSigned());
  const bool isSum = at.getBinaryOp() == llvm::Instruction::Add;
  Value* result = b.CreateBinOp(at.getBinaryOp(), x, y);
  if (!at.isSigned())
    return {result, isSum ? b.CreateICmpULT(result, x) : b.CreateICmpULT(x, y)};
  // The result's sign is not that of both terms; or the terms' signs differ and the result has not the first one's.
  Value* ofFirst = b.CreateXor(x, result);
  return {result, isNegative(b, b.CreateAnd(ofFirst, isSum ? b.CreateXor(y, result) : b.CreateXor(x, y)))};
}

}  // namespace

llvm::PreservedAnalyses ExpandOverflows::run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
  bool isChanged = false;
  for (llvm::Instruction& each : llvm::make_early_inc_range(llvm::instructions(function))) {
    auto* part = llvm::dyn_cast<llvm::ExtractValueInst>(&each);
    auto* checked = part ? llvm::dyn_cast<llvm::WithOverflowInst>(part->getAggregateOperand()) : nullptr;
    if (!checked || checked->getLHS()->getType()->getScalarSizeInBits() > 64)
      continue;
    const Checked made = expand(*checked);
    part->replaceAllUsesWith(part->getIndices()[0] == 0 ? made.result : made.overflows);
    part->eraseFromParent();
    isChanged = true;
  }
  return preservedWhere(isChanged);
}

}  // namespace vortex::msl::flatten
