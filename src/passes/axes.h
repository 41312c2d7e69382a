// Axes: dimensions of tiles that must have equal extents because operations tie them together.
#pragma once

#include "ir/size_attr.h"
#include "ir/vx.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace vortex::passes {

using Axis = unsigned;
using AxisSet = llvm::DenseSet<Axis>;

/// The extent as an expression over the entry's arguments; null when it is computed from anything else.
ir::SizeAttr sizeExpression(mlir::OpFoldResult size);

/// Computed once for a whole-tensor kernel, through its loops and branches.
class Axes {
public:
  /// `splitReshapes`: a piece of a regrouped tensor is cheap to compute (element by element), so its new axes can be split.
  explicit Axes(ir::KernelOp kernel, bool splitReshapes = false);

  /// One axis per dimension of a tile; equal numbers are tied.
  llvm::SmallVector<Axis> of(mlir::Value tile) const;
  /// Null if not an expression over the entry's arguments.
  ir::SizeAttr extent(Axis axis) const;
  /// Axes of its operands that the operation needs whole: reduced, scanned, contracted, sliced, reshaped. Through regions.
  AxisSet wholeAxes(mlir::Operation* op) const;

private:
  void number(mlir::Value value);
  void tie(mlir::Value a, unsigned dimA, mlir::Value b, unsigned dimB);
  void tieAll(mlir::Value a, mlir::Value b);
  void tieOperation(mlir::Operation* op);
  void tieRegions(mlir::Operation* op);
  void addWhole(mlir::Operation* op, AxisSet& whole) const;
  bool keepsDim(ir::SliceOp slice, unsigned dim) const;
  unsigned reshapePrefix(ir::ReshapeOp reshape) const;
  Axis find(Axis axis) const;

  llvm::DenseMap<mlir::Value, llvm::SmallVector<Axis>> axes_;
  bool splitReshapes_;
  mutable std::vector<Axis> parent_;
  std::vector<ir::SizeAttr> extents_;
};

}  // namespace vortex::passes
