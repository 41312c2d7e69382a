// A phase that packs an operand of a product for all blocks of the launch.
#pragma once

#include "ir/launch.h"
#include "ir/size_attr.h"

#include <mlir/IR/BuiltinOps.h>
#include <mlir/IR/IRMapping.h>

namespace vortex::target::cpu {

class PackPhase {
public:
  /// An empty kernel in front of `dot`'s, which works in the compute type.
  PackPhase(mlir::ModuleOp module, ir::KernelOp kernel, ir::DotOp dot, mlir::Type compute, llvm::Twine name);

  ir::KernelOp kernel() const { return phase_; }
  void abandon() { phase_.erase(); }
  /// `made` stands for `value` in what is cloned.
  void assume(mlir::Value value, mlir::Value made) { mapping_.map(value, made); }
  /// The value in this phase; null when it is dear or not the same in every block.
  mlir::Value clone(mlir::Value value);
  /// The product's kernel writes to the view.
  bool isWritten(mlir::Value view);
  /// A temporary with these extents as the last argument of the entry and every phase, which the tile is packed into.
  unsigned store(ir::EntryOp entry, mlir::Value tile, llvm::ArrayRef<ir::SizeAttr> extents,
                 llvm::ArrayRef<mlir::NamedAttribute> layout);
  /// Blocks: `across`, `batch`, and as many pieces of the depth as it takes to employ all workers.
  void spread(ir::SizeAttr across, ir::SizeAttr batch, ir::SizeAttr depth);

  mlir::OpBuilder builder;

private:
  bool mayClone(mlir::Operation* op);

  mlir::ModuleOp module_;
  ir::KernelOp source_;
  ir::DotOp dot_;
  mlir::Type compute_;
  ir::KernelOp phase_;
  mlir::IRMapping mapping_;
};

/// The tile in the compute type.
mlir::Value widened(mlir::OpBuilder& builder, mlir::Value tile, mlir::Type compute);
/// The product reads `direct` where the launch's `isDirect` is not zero, else `packed`.
mlir::Value chooseOperand(mlir::OpBuilder& builder, ir::KernelOp kernel, ir::SizeAttr isDirect, mlir::Value direct,
                          mlir::Value packed);

}  // namespace vortex::target::cpu
