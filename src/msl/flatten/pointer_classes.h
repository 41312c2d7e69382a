#pragma once

#include "msl/flatten/low_zeros.h"
#include "msl/flatten/pointers.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Instructions.h>

namespace vortex::msl::flatten {

/// Pointers that may meet in a phi or select, with the memories they may stand for and the unit that they count in.
struct PointerClass {
  llvm::SmallVector<unsigned> memories;  ///< indices into the result of lowerPointers
  uint64_t unitBytes = 0;                ///< greatest common divisor of accesses and steps; 0: none seen
  llvm::Type* elem = nullptr;
  llvm::DenseMap<llvm::Type*, unsigned> uses;  ///< scalar types that are accessed
  llvm::Type* atomic = nullptr;                ///< type of atomic arithmetic, else of other atomics
  bool computes = false;                       ///< `atomic` is of arithmetic
  bool isWritten = false;
};

class PointerClasses {
public:
  PointerClasses(front::Unit& unit, const Kernel& kernel);
  /// False after adding a problem.
  bool build();
  /// Atomic arithmetic on floats of memory that holds integers, which goes by way of comparisons and exchanges.
  std::vector<llvm::AtomicRMWInst*> mixedUpdates();

  PointerClass& of(const llvm::Value* pointer) {
    return classes_[static_cast<unsigned>(classIndex_.lookup(root(pointer)))];
  }
  /// The memory that this argument, global or alloca is, else -1.
  int memoryOf(const llvm::Value* value) const {
    auto found = memoryIndex_.find(value);
    return found == memoryIndex_.end() ? -1 : static_cast<int>(found->second);
  }
  std::vector<Memory> memories;
  std::vector<const llvm::Value*> values;  ///< of memories

private:
  bool refuse(const llvm::Instruction* at, const std::string& message);
  bool refusePointerInMemory(const llvm::Instruction& at, const llvm::Value* place);
  const llvm::Value* root(const llvm::Value* pointer) const;
  void join(const llvm::Value* a, const llvm::Value* b);
  void addMemories();
  bool visit(llvm::Instruction& at);
  void addStep(llvm::GetElementPtrInst& step);
  enum class Access { Plain, Atomic, Arithmetic };
  void addAccess(const llvm::Value* pointer, llvm::Type* type, bool writes, Access kind);
  void addNull(PointerClass& of);
  void chooseElements();

  front::Unit& unit_;
  const Kernel& kernel_;
  LowZeros zeros_;
  llvm::DenseMap<const llvm::Value*, const llvm::Value*> parent_;
  llvm::DenseMap<const llvm::Value*, int> classIndex_;
  llvm::DenseMap<const llvm::Value*, unsigned> memoryIndex_;
  std::vector<PointerClass> classes_;
};

/// Scalar type of a vector or scalar.
inline llvm::Type* scalarOf(llvm::Type* type) { return type->getScalarType(); }

/// Comparisons of pointers with numbers, which LLVM makes of those of numbers, compare numbers.
void compareNumbers(llvm::Function& function);

}  // namespace vortex::msl::flatten
