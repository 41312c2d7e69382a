#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Function.h>

namespace vortex::msl::flatten {

/// How many low bits of integers are zero. Where values meet, the least of theirs holds, loops included; what LLVM knows counts, too.
class LowZeros {
public:
  explicit LowZeros(llvm::Function& function);
  /// Of every element, where `value` is a vector.
  unsigned of(const llvm::Value* value) const;

private:
  unsigned known(const llvm::Value* value) const;
  unsigned step(const llvm::Instruction& at) const;

  const llvm::DataLayout& layout_;
  llvm::DenseMap<const llvm::Value*, unsigned> zeros_;
};

}  // namespace vortex::msl::flatten
