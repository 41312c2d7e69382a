// Operands and results of a product as the copy engine sees them: a tensor map each, and the boxes of a block tile.
#pragma once

#include "ir/vxnv.h"
#include "target/gpu/lowering.h"

namespace vortex::target::gpu::hopper {

/// The maps of one phase.
class Maps {
public:
  explicit Maps(Lowering& lowering) : l_(lowering) {}
  /// The number of the map, which may be one that is there, of a kernel argument with boxes of so many elements, innermost first. `swizzle`: bytes.
  /// Of a tensor whose rows have room for more: what it holds.
  /// `columns`: the last dimension holds several times as many, which are a dimension of their own in the map, and in `box`; null: it does not.
  /// `isTf32`: copies round f32 to tf32.
  int64_t add(mlir::Value view, llvm::ArrayRef<int64_t> box, int64_t swizzle, ir::SizeAttr columns = {},
              bool isTf32 = false);
  mlir::ArrayAttr attribute() const;

private:
  Lowering& l_;
  llvm::SmallVector<mlir::Attribute> maps_;
};

/// Of a whole-tensor load in a phase, through transposes, repetition along a batch and the widening of 8-bit integers.
class Operand {
public:
  /// `extent`: rows of A, columns of B that a block tile has.
  Operand(Lowering& lowering, Maps& maps, ir::DotOp dot, bool isA, int64_t extent);

  /// The operand's rows (columns) are neighbours in memory instead of its steps of the depth.
  bool isAcross() const { return across_; }
  int64_t bytes() const { return bytes_; }
  /// As the unit multiplies it: tf32, si8 and ui8 among others.
  mlir::Type elementType() const { return element_; }
  /// Producer: starts copies of the steps from `depth` on to `offset` bytes of the slot.
  void copy(Value slot, Value depth, int64_t offset);

private:
  Lowering& l_;
  ir::TileLoadOp load_;
  mlir::Type element_;
  unsigned depthDim_, acrossDim_;  ///< of the load
  bool across_;
  int64_t copies_, bytes_, map_;
};

/// Rows of an operand that lie one after another in memory, all of one depth or width: of a whole-tensor load in a phase, through transposes,
/// repetitions, and other dimensions regrouped, along which the phase has one element.
class RowOperand {
public:
  /// `rowDim`: the other of the last two dimensions is the innermost in memory. `boxRows`: that a copy takes.
  RowOperand(Lowering& lowering, Maps& maps, mlir::Value tile, unsigned rowDim, int64_t boxRows);

  mlir::Type elementType() const { return element_; }
  int64_t boxBytes() const;
  /// Producer: starts copying a box of rows from `row` of the load on and 128 bytes from element `column` on.
  void copy(Value slot, int64_t row, int64_t column, int64_t offset);

private:
  /// Where the operand begins in the load, per dimension.
  Values starts() const;

  Lowering& l_;
  mlir::Value tile_;
  ir::TileLoadOp load_;
  mlir::Type element_;
  unsigned rowDim_;  ///< of the load
  int64_t boxRows_, map_;
};

}  // namespace vortex::target::gpu::hopper
