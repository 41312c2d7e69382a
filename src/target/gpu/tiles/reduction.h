// Combining elements. Floats narrower than f32 are combined in f32 and rounded once at the end.
#pragma once

#include "target/gpu/lowering.h"

namespace vortex::target::gpu::tiles {

class Reduction {
public:
  Reduction(Lowering& l, ir::Combine kind, mlir::Type elementType) : l_(l), kind_(kind), type_(elementType) {}

  /// Accumulator of `lanes` neutral elements.
  Value neutral(unsigned lanes);
  /// Element values → what accumulates, and back.
  Value widen(Value value);
  Value narrow(Value accumulated);
  /// As narrow, of all elements along these extents: a float sum of none is 0.0, not the neutral -0.0.
  Value result(Value accumulated, llvm::ArrayRef<Value> extents);
  Value combine(Value a, Value b);
  /// Accumulators (scalars or vectors) and all their lanes as one scalar accumulator: vectors one after another (their lanes are independent,
  /// and products fuse with the sum), scalars pairwise, then halves of the lanes.
  Value fold(llvm::ArrayRef<Value> accumulators);
  mlir::Type accumulatorType() const;

private:
  bool isNarrow() const;

  Lowering& l_;
  ir::Combine kind_;
  mlir::Type type_;
};

/// The threads that work on a row together: `width` consecutive threads, a power of two up to 32 or a multiple of 32; `rows` teams a block.
struct Team {
  Value width;               ///< index
  Value rows;                ///< index
  Value lane;                ///< of this thread, below width
  Value row;                 ///< which team this thread belongs to
  int64_t least = 1;         ///< width is at least this
  int64_t most = INT64_MAX;  ///< and at most this
};

/// As few threads as rows of `elements` need at `perThread` each, a power of two; at least `least`, and up to a warp as many as they need at
/// `inWarp` each.
Team makeTeam(Lowering& l, Value elements, int64_t perThread, int64_t least, int64_t inWarp);
/// All threads of the block.
Team wholeBlock(Lowering& l);

struct TeamValue {
  Reduction* reduction;
  Value value;  ///< scalar accumulator
};
/// Combines the accumulators of a team's threads; every thread of it gets the same. Shuffles inside warps, then shared memory; fixed order.
/// Reached by all threads of the block. Its shared memory lives as long as the enclosing scope; `isFirst`: in that scope, which may be in a loop.
Values teamReduce(Lowering& l, const Team& team, llvm::ArrayRef<TeamValue> values, bool isFirst);

/// Of the lanes of a warp, in a fixed order; every lane gets it.
Value warpReduce(Lowering& l, Reduction& reduction, Value value);

struct TeamPrefix {
  Value before;  ///< combination of the lower lanes' values (neutral for the first)
  Value total;   ///< of all lanes
};
/// Prefixes over a team's threads in lane order, of each value for itself; all of them take the same two barriers. Reached by all threads of the
/// block.
llvm::SmallVector<TeamPrefix> teamScan(Lowering& l, const Team& team, Reduction& reduction,
                                       llvm::ArrayRef<Value> values);

}  // namespace vortex::target::gpu::tiles
