// Which values of a thread's function are the same in all threads of its threadgroup that get there, and which operations hold a barrier.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <llvm/ADT/DenseSet.h>

namespace vortex::msl::lift {

class Uniformity {
public:
  /// `perThread`: arguments that differ; `readOnly`: views that nobody writes.
  Uniformity(mlir::func::FuncOp function, llvm::ArrayRef<mlir::Value> perThread, llvm::ArrayRef<mlir::Value> readOnly);
  bool isPerThread(mlir::Value value) const { return perThread_.contains(value); }
  /// The operation is a barrier or has one inside.
  bool hasBarrier(mlir::Operation* op) const { return withBarrier_.contains(op); }
  bool isReadOnly(mlir::Value view) const { return readOnly_.contains(view); }
  /// A condition that all threads decide alike around what all compute alike, without effects.
  bool isUniformChoice(mlir::Operation& op) const;
  /// A result of a condition that all threads decide alike, between values that are the same in all and come from before it.
  bool isUniformlyChosen(mlir::OpResult result) const;

private:
  void mark(mlir::Value value) { changed_ |= perThread_.insert(value).second; }
  void visit(mlir::Block& block, bool isBlockLevel);
  bool isUniformLeaf(mlir::Operation& op) const;
  void visitLeaf(mlir::Operation& op, bool isBlockLevel);
  void visitWhile(mlir::Operation& op);
  void visitBranches(mlir::Operation& op);

  llvm::DenseSet<mlir::Value> perThread_;
  llvm::DenseSet<mlir::Value> readOnly_;
  llvm::DenseSet<mlir::Operation*> withBarrier_;
  bool changed_ = false;
};

}  // namespace vortex::msl::lift
