// Values that two stretches of a kernel both compute.
#pragma once

#include "ir/vx.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>

namespace vortex::analysis {

/// Loops that the threads of a block run alike, each in a region of threads, over the same counters: whether what one of them computes in an
/// iteration is, in each thread, what another one computed there. Operations are compared one by one, down to the values that both see; loads
/// count where the kernel writes nothing that they read.
class SamePasses {
public:
  explicit SamePasses(ir::KernelOp kernel);

  /// Compares these loops from now on. False: they differ in their threads, bounds or step.
  bool compare(mlir::scf::ForOp earlier, mlir::scf::ForOp later);
  /// `b`, of the later loop, is what `a` was in the earlier one.
  bool isSame(mlir::Value a, mlir::Value b);
  /// Its memory is a parameter that the kernel does not write.
  bool isConstant(ir::LoadOp load);

private:
  bool isSameOp(mlir::Value a, mlir::Value b);
  bool isSame(mlir::Operation* a, mlir::Operation* b);
  bool isSameSum(mlir::arith::AddIOp a, mlir::arith::AddIOp b);

  ir::KernelOp kernel_;
  llvm::DenseSet<mlir::Value> written_;                             ///< memory
  llvm::DenseMap<std::pair<mlir::Value, mlir::Value>, bool> same_;  ///< of the earlier and of the later loop
};

/// Computing the value from what the block loads takes a function that costs more than a load and a store.
bool isCostlyIn(mlir::Value value, mlir::Block& block);

}  // namespace vortex::analysis
