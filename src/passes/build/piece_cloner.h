// Clones operations onto pieces of some of their axes.
#pragma once

#include "passes/plan/axes.h"

#include "mlir/IR/IRMapping.h"

namespace vortex::passes {

/// Values of an index expression at the builder's insertion point; `arguments` are the kernel's.
mlir::Value emitSize(mlir::OpBuilder& builder, mlir::Location loc, ir::SizeAttr size,
                     mlir::Block::BlockArgListType arguments);

class PieceCloner {
public:
  /// `kernel`: where the clones will be.
  PieceCloner(ir::KernelOp kernel, const Axes& axes);
  virtual ~PieceCloner() = default;

  /// The piece of a value, cloned with what it is computed from unless that is known.
  mlir::Value get(mlir::Value value);

  mlir::OpBuilder builder;

protected:
  /// A value that is at hand for `value`; null: it is to be cloned.
  virtual mlir::Value provide(mlir::Value value) = 0;
  virtual mlir::Operation* clone(mlir::Operation* op);
  mlir::Operation* cloneRegions(mlir::Operation* op);
  mlir::Operation* cloneGeneric(mlir::Operation* op);
  mlir::Operation* cloneReshape(ir::ReshapeOp op);
  mlir::RankedTensorType slicedType(mlir::Value value) const;
  mlir::Type typeOf(mlir::Value value) const;
  /// Where the piece of a tile starts.
  llvm::SmallVector<mlir::Value> offsets(mlir::Value tile);
  /// Offsets moved to the piece of `tile`.
  llvm::SmallVector<mlir::Value> shift(mlir::OperandRange offsets, mlir::Value tile);
  /// Dynamic extents of the piece of `tile`, in order.
  llvm::SmallVector<mlir::Value> sizes(mlir::Value tile);
  mlir::Value constant(mlir::Location loc, int64_t value);

  ir::KernelOp kernel_;
  const Axes& axes_;
  mlir::IRMapping mapping_;
  llvm::DenseMap<Axis, mlir::Value> offset_, size_;  ///< of the axes that are cut
};

}  // namespace vortex::passes
