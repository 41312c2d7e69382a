// Axes: dimensions of tiles that must have equal extents because operations tie them together.
#pragma once

#include "passes/plan/size_expression.h"

#include "ir/tile_sizes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace vortex::passes {

/// On a reshape that changes nothing: its result has axes of its own. It reads what an earlier phase left in memory.
inline constexpr llvm::StringLiteral kApartAttribute = "vx.apart";

/// On a reshape that only a store reads: blocks store pieces of what it regroups, which have one element along the dimensions that it regroups, or the
/// whole innermost one.
inline constexpr llvm::StringLiteral kByPieceAttribute = "vx.by_piece";

/// On a store in a phase: the last dimension of its view holds the columns of several pieces, each at a multiple of their number.
inline constexpr llvm::StringLiteral kBesideAttribute = "vx.beside";

/// On a store: its dimensions are those of the store before it, in one phase with it (joinStatements).
inline constexpr llvm::StringLiteral kJoinedAttribute = "vx.joined";

using Axis = unsigned;
using AxisSet = llvm::DenseSet<Axis>;

inline bool isTile(mlir::Value value) { return llvm::isa<mlir::RankedTensorType>(value.getType()); }

/// Computed once for a whole-tensor kernel, through its loops and branches.
class Axes {
public:
  /// `splitReshapes`: a piece of a regrouped tensor is cheap to compute (element by element), so its new axes can be split.
  explicit Axes(ir::KernelOp kernel, bool splitReshapes = false);

  /// The first operation that makes two dimensions of one tile the same axis (`x + transpose(x)`): no block can have a piece of it. Null: none.
  static mlir::Operation* firstRepetition(ir::KernelOp kernel);

  /// One axis per dimension of a tile; equal numbers are tied.
  llvm::SmallVector<Axis> of(mlir::Value tile) const;
  /// Null if not an expression over the entry's arguments.
  ir::SizeAttr extent(Axis axis) const;
  /// A reshape of several dimensions into several others, none of which is the same.
  bool regroups(ir::ReshapeOp op) const;
  /// A reshape of all dimensions into one, outside of loops. Without splitReshapes, its result is written to memory from pieces of its source that
  /// lie together there; nothing is computed through it.
  bool flattens(mlir::Operation* op) const;
  /// The tile that is written for `tile`: what a reshape regroups that flattens or is by pieces, else `tile`.
  mlir::Value beforeFlattening(mlir::Value tile) const;
  /// Axes of its operands that the operation needs whole: reduced, scanned, contracted, sliced, reshaped. Through regions.
  AxisSet wholeAxes(mlir::Operation* op) const;

private:
  Axes() = default;
  void numberAll(ir::KernelOp kernel);
  bool hasRepetition() const;
  void number(mlir::Value value, ir::TileSizes& sizes);
  void tie(mlir::Value a, unsigned dimA, mlir::Value b, unsigned dimB);
  void tieAll(mlir::Value a, mlir::Value b);
  void tieOperation(mlir::Operation* op);
  void tieJoined(ir::KernelOp kernel);
  void tieRegions(mlir::Operation* op);
  void addWhole(mlir::Operation* op, AxisSet& whole) const;
  bool keepsDim(ir::SliceOp slice, unsigned dim) const;
  unsigned reshapePrefix(ir::ReshapeOp reshape) const;
  unsigned reshapeSuffix(ir::ReshapeOp reshape, unsigned prefix) const;
  Axis find(Axis axis) const;

  llvm::DenseMap<mlir::Value, llvm::SmallVector<Axis>> axes_;
  bool splitReshapes_ = false;
  mutable std::vector<Axis> parent_;
  std::vector<ir::SizeAttr> extents_;
};

}  // namespace vortex::passes
