// Which positions on an axis a condition can keep, as scalar code.
#pragma once

#include "ir/vx.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

namespace vortex::passes {

/// [begin, end) of index values; null: unbounded.
struct Interval {
  mlir::Value begin, end;
};

struct Kept {
  Interval some;                ///< outside of it, no row keeps anything
  std::optional<Interval> all;  ///< inside of it, every row keeps everything; nothing: not known
  bool isEverywhere = false;    ///< `all` is all positions, or begins at their end and ends at 0
};

/// Of conditions in a streamed loop of a phase (stream_bounds.h); code is emitted before the loop.
class MaskBounds {
public:
  /// `dim`: of the streamed axis, in tiles like the scores.
  MaskBounds(mlir::scf::ForOp loop, unsigned dim);

  /// Positions where `condition`, a tile like the scores, is `when`.
  Kept kept(mlir::Value condition, bool when);
  Kept intersect(const Kept& a, const Kept& b);

private:
  /// The dimension of the scores that each dimension of a tile is; -1: none, it repeats.
  using Dims = llvm::SmallVector<int64_t, 4>;
  /// factor · (a number between low and high)
  struct Term {
    int64_t factor;
    mlir::Value low, high;
    bool isNonNegative;
  };
  /// What one side of a comparison is.
  struct Sum {
    int64_t position = 0, start = 0;  ///< factors of the position in the chunk, and of where the chunk begins
    llvm::SmallVector<Term, 4> terms;
  };

  Kept keptWhere(mlir::Value condition, const Dims& dims, bool when);
  Kept everywhere(mlir::Value condition, bool when);
  Kept compared(mlir::arith::CmpIOp compare, const Dims& dims, bool when);
  Kept unite(const Kept& a, const Kept& b);
  bool collect(mlir::Value value, const Dims& dims, int64_t factor, Sum& sum);
  bool collectOperation(mlir::Operation* op, const Dims& dims, int64_t factor, Sum& sum);
  bool addIota(ir::IotaOp iota, const Dims& dims, int64_t factor, Sum& sum);
  bool addPoint(mlir::Value value, int64_t factor, Sum& sum);
  static std::optional<std::pair<mlir::Value, Dims>> repeated(mlir::Operation* op, const Dims& dims);

  /// The one value that a tile has all over in this block, or a scalar, before the loop; null: it has several, or is computed from the loop's.
  mlir::Value point(mlir::Value value);
  mlir::Value emitPoint(mlir::Value value);
  mlir::Value emitLoad(ir::TileLoadOp load);
  bool isBefore(mlir::Value value);
  mlir::Value low(const Sum& sum);
  mlir::Value magnitude(const Sum& sum);
  void require(mlir::Value condition);

  mlir::Value constant(int64_t value);
  mlir::Value least(mlir::Value a, mlir::Value b);
  mlir::Value most(mlir::Value a, mlir::Value b);
  mlir::Value scaled(mlir::Value value, int64_t factor);
  mlir::Value plus(mlir::Value a, mlir::Value b);

  mlir::scf::ForOp loop_;
  unsigned dim_;
  mlir::OpBuilder b_;
  mlir::Location loc_;
  mlir::Value extent_;   ///< of the streamed axis
  unsigned width_ = 64;  ///< of the narrowest integers of a comparison
  mlir::Value isExact_;  ///< i1: no integer of a comparison wraps; null: none can
  llvm::DenseMap<mlir::Value, mlir::Value> points_;
};

}  // namespace vortex::passes
