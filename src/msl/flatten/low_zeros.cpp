#include "msl/flatten/low_zeros.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace vortex::msl::flatten {

using llvm::Value;

namespace {

constexpr unsigned kAll = 64;  ///< of zero

/// The amount of a shift, else nothing.
std::optional<unsigned> amountOf(const llvm::Instruction& shift) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(shift.getOperand(1));
  const auto* amount = constant ? llvm::dyn_cast_or_null<llvm::ConstantInt>(
                                      constant->getType()->isVectorTy() ? constant->getSplatValue() : constant)
                                : nullptr;
  if (!amount || amount->getValue().uge(kAll))
    return std::nullopt;
  return static_cast<unsigned>(amount->getZExtValue());
}

}  // namespace

/// LLVM's analysis follows a phi one step back. This one takes every value for a multiple of all powers of two first
/// and repeats until no value has fewer zeros than its operands allow.
LowZeros::LowZeros(llvm::Function& function) : layout_(function.getDataLayout()) {
  const llvm::ReversePostOrderTraversal<llvm::Function*> order(&function);
  for (bool changes = true; changes;) {
    changes = false;
    for (const llvm::BasicBlock* block : order)
      for (const llvm::Instruction& each : *block) {
        if (!each.getType()->isIntOrIntVectorTy())
          continue;
        const auto [place, isNew] = zeros_.try_emplace(&each, kAll);
        const unsigned before = place->second, now = std::min(before, step(each));
        zeros_[&each] = now;
        changes |= isNew || now != before;
      }
  }
}

unsigned LowZeros::of(const Value* value) const {
  return std::max(known(value), llvm::computeKnownBits(value, layout_).countMinTrailingZeros());
}

/// What is not reached yet, and what has no value, is no multiple of less than anything.
unsigned LowZeros::known(const Value* value) const {
  if (llvm::isa<llvm::UndefValue>(value))
    return kAll;
  if (!llvm::isa<llvm::Instruction>(value))
    return llvm::computeKnownBits(value, layout_).countMinTrailingZeros();
  const auto found = zeros_.find(value);
  return found == zeros_.end() ? kAll : found->second;
}

unsigned LowZeros::step(const llvm::Instruction& at) const {
  const auto of = [&](unsigned i) { return known(at.getOperand(i)); };
  switch (at.getOpcode()) {
  case llvm::Instruction::PHI: {
    unsigned least = kAll;
    for (const Value* incoming : llvm::cast<llvm::PHINode>(at).incoming_values())
      least = std::min(least, known(incoming));
    return least;
  }
  case llvm::Instruction::Select: return std::min(of(1), of(2));
  case llvm::Instruction::Add:
  case llvm::Instruction::Sub:
  case llvm::Instruction::Or:
  case llvm::Instruction::Xor:
  case llvm::Instruction::URem:
  case llvm::Instruction::SRem:
  case llvm::Instruction::InsertElement:
  case llvm::Instruction::ShuffleVector: return std::min(of(0), of(1));
  case llvm::Instruction::And: return std::max(of(0), of(1));
  case llvm::Instruction::Mul: return std::min(kAll, of(0) + of(1));
  case llvm::Instruction::Shl: return std::min(kAll, of(0) + amountOf(at).value_or(0));
  case llvm::Instruction::LShr:
  case llvm::Instruction::AShr: {
    const auto amount = amountOf(at);
    return of(0) == kAll ? kAll : amount && *amount <= of(0) ? of(0) - *amount : 0;
  }
  case llvm::Instruction::Trunc:
  case llvm::Instruction::ZExt:
  case llvm::Instruction::SExt:
  case llvm::Instruction::Freeze:
  case llvm::Instruction::ExtractElement: return of(0);
  default: break;
  }
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&at))
    switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::smin:
    case llvm::Intrinsic::smax:
    case llvm::Intrinsic::umin:
    case llvm::Intrinsic::umax: return std::min(of(0), of(1));
    case llvm::Intrinsic::abs: return of(0);
    default: break;
    }
  return llvm::computeKnownBits(&at, layout_).countMinTrailingZeros();
}

}  // namespace vortex::msl::flatten
