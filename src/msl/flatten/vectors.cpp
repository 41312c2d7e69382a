#include "msl/flatten/vectors.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace vortex::msl::flatten {
namespace {

unsigned bitsOf(llvm::Type* type) { return type->getScalarSizeInBits(); }

/// The element of a vector that is the bits of a scalar.
llvm::Value* extracted(llvm::ExtractElementInst& at) {
  auto* cast = llvm::dyn_cast<llvm::BitCastInst>(at.getVectorOperand());
  auto* index = llvm::dyn_cast<llvm::ConstantInt>(at.getIndexOperand());
  if (!cast || !index || cast->getSrcTy()->isVectorTy() || bitsOf(cast->getSrcTy()) > 64)
    return nullptr;
  llvm::IRBuilder<> b(&at);
  llvm::Value* whole = b.CreateBitCast(cast->getOperand(0), b.getIntNTy(bitsOf(cast->getSrcTy())));
  llvm::Value* moved = b.CreateLShr(whole, index->getZExtValue() * bitsOf(at.getType()));
  return b.CreateBitCast(b.CreateTrunc(moved, b.getIntNTy(bitsOf(at.getType()))), at.getType());
}

/// The scalar with the bits of a vector.
llvm::Value* joined(llvm::BitCastInst& at) {
  auto* from = llvm::dyn_cast<llvm::FixedVectorType>(at.getSrcTy());
  if (!from || at.getType()->isVectorTy() || bitsOf(at.getType()) > 64)
    return nullptr;
  llvm::IRBuilder<> b(&at);
  const unsigned width = bitsOf(from);
  llvm::Type* whole = b.getIntNTy(bitsOf(at.getType()));
  llvm::Value* sum = llvm::ConstantInt::get(whole, 0);
  for (unsigned k = 0; k < from->getNumElements(); ++k) {
    llvm::Value* elem = b.CreateBitCast(b.CreateExtractElement(at.getOperand(0), k), b.getIntNTy(width));
    sum = b.CreateOr(sum, b.CreateShl(b.CreateZExt(elem, whole), k * width));
  }
  return b.CreateBitCast(sum, at.getType());
}

}  // namespace

void splitCasts(llvm::Function& function) {
  for (llvm::Instruction& each : llvm::make_early_inc_range(llvm::instructions(function))) {
    llvm::Value* made = nullptr;
    if (auto* extract = llvm::dyn_cast<llvm::ExtractElementInst>(&each))
      made = extracted(*extract);
    else if (auto* cast = llvm::dyn_cast<llvm::BitCastInst>(&each))
      made = joined(*cast);
    if (!made)
      continue;
    each.replaceAllUsesWith(made);
    each.eraseFromParent();
  }
}

}  // namespace vortex::msl::flatten
