// A tile that is computed element by element, made again with one dimension longer.
#pragma once

#include "ir/vx.h"

#include <functional>

namespace vortex::passes {

/// A window of memory: what vx.tile_load reads.
struct TileWindow {
  mlir::Value view;
  llvm::SmallVector<mlir::Value> offsets;
  mlir::Value other;  ///< outside of the view; null: 0
  bool inbounds = false;
};

class TileStretch {
public:
  /// Each says no by an empty value.
  struct Rules {
    /// What a load reads.
    std::function<std::optional<TileWindow>(ir::TileLoadOp load)> window;
    /// Where dimension `dim` of a load starts, the stretched one.
    std::function<mlir::Value(ir::TileLoadOp load, int64_t dim)> start;
    /// A value that has no stretched dimension, at the builder's insertion point.
    std::function<mlir::Value(mlir::Value value)> keep;
  };

  /// New operations are made at the builder's insertion point. `extent`: of the stretched dimension, an index.
  TileStretch(mlir::OpBuilder& builder, mlir::Value extent, Rules rules)
      : builder_(builder), extent_(extent), rules_(std::move(rules)) {}

  /// The tile with dimension `dim` stretched; null, perhaps after some operations were made, when it is not a function of loads that start
  /// where the rules allow, element by element. Loads keep their guards.
  mlir::Value of(mlir::Value tile, int64_t dim);

private:
  mlir::Value make(mlir::Operation* op, int64_t dim);
  mlir::Value load(ir::TileLoadOp op, int64_t dim);
  mlir::Value broadcast(ir::BroadcastOp op, int64_t dim);
  mlir::Value constant(mlir::Operation* op, int64_t dim);
  mlir::Value reshape(ir::ReshapeOp op, int64_t dim);
  mlir::Value elementwise(mlir::Operation* op, int64_t dim);
  mlir::RankedTensorType stretched(mlir::Value tile, int64_t dim) const;
  /// The dynamic extents of a result whose old ones are `sizes`; nothing when one is not to be had.
  std::optional<llvm::SmallVector<mlir::Value>> sizes(mlir::Value tile, mlir::OperandRange sizes, int64_t dim);

  mlir::OpBuilder& builder_;
  mlir::Value extent_;
  Rules rules_;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> made_;
};

}  // namespace vortex::passes
