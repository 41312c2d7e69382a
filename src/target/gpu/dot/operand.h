// One operand of a product on its way from where it is to the stages in shared memory.
#pragma once

#include "target/gpu/dot/numbers.h"
#include "target/gpu/dot/plan.h"
#include "target/gpu/tiles/evaluator.h"

namespace vortex::target::gpu::dot {

/// A tile that is a window of memory: where each of its dimensions goes there.
struct Window {
  View view;
  Value start;                       ///< index, in elements: element (0, 0, …) of the tile
  llvm::SmallVector<Value> strides;  ///< index per tile dimension, in elements; 0 where the tile repeats
  llvm::SmallVector<Value>
      limits;      ///< index per tile dimension: elements that exist in memory, the others are 0; null: all
  int inner = -1;  ///< the tile dimension along the view's last dimension; -1: none
};
/// The memory behind loads, transposes, broadcasts and slices; none when a tile is computed, or read with another default than 0.
/// `swizzled`: also in swizzled memory, where `start` and `strides` count in the layout before the swizzle.
std::optional<Window> findWindow(tiles::Evaluator& evaluator, mlir::Value tile, bool swizzled = false);

/// Element offset of a coordinate in a tile in shared memory (i32), as SharedTile::offset.
Value placeIn(const SharedTile& tile, Numbers& n, Value x, Value k);

class Operand {
public:
  /// `tile`: A (… × rows × depth) or B (… × depth × columns). `elementType`: as staged, the tile's own.
  Operand(tiles::Evaluator& evaluator, mlir::Value tile, bool isA, const Plan& plan);

  const SharedTile& shared() const { return shared_; }
  /// The tile where it lies in shared memory, if matrix instructions can read it there as it is.
  const std::optional<SharedTile>& inPlace() const { return inPlace_; }
  /// Of a tile in place: its depth, and the pointer to (x0, 0) of a batch.
  int64_t knownDepth() const;
  Value placePointer(llvm::ArrayRef<Value> batch, Value x0);
  mlir::Type elementType() const { return type_; }
  /// Reads of this operand, told to the hazards.
  void announceReads();
  /// Prepares the copies of one block tile: batch indices, first row (column), how many exist from there, and the whole depth (index). `stages`:
  /// !vxt.ptr<shared> of stage 0.
  void begin(llvm::ArrayRef<Value> batch, Value x0, Value extent, Value depth, Value stages);
  /// Emits the copies of the `plan.depth` steps from `k0` (index) into stage `stage` (i32). Elements outside are 0.
  void copy(Value stage, Value k0);
  /// Copies are asynchronous straight code that may lie wholly outside: then they write zeros.
  bool isStraight() const;
  /// Pointer to stage `stage`.
  Value stagePointer(Value stage);

private:
  struct Mapping {
    unsigned perRow = 1, rows = 1;    ///< pieces along a row, rows of the tile
    unsigned rowStep = 1, count = 1;  ///< rows a thread skips, pieces per thread
    bool partial = false;             ///< fewer pieces than threads
  };
  /// Threads to runs of `run` elements along the tile's inner (or, with `alongDepth` unlike the tile, outer) dimension.
  Mapping mapping(unsigned run, bool alongDepth) const;
  /// Where a thread's pieces of a step start, and how they follow one another.
  struct Walk {
    Mapping mapping;
    Value inner, outer;          ///< i32, of the thread's first piece in the tile
    Value innerLeft, outerLeft;  ///< i32, how much exists
    Value from;                  ///< pointer to the first piece's source
    Value outerStride;           ///< index, elements from one row to the next
    bool alongDepth;
  };
  Walk startWalk(unsigned run, bool alongDepth, Value k0);
  void copyRuns(Value stage, Value k0, unsigned run, bool alongDepth);
  Value wideCondition();
  Value contiguousCondition();
  Value staysInside(Value k0);
  std::optional<SharedTile> findInPlace();
  void copyWide(Value stage, Value k0);
  void copyElements(Value stage, Value k0);
  void copyNarrow(Value stage, Value k0);
  void copyShifted(Value stage, Value k0);
  Value shifted(Value low, Value high, Value shift, Value count);
  void copyEvaluated(Value stage, Value k0);
  Value sharedOffset(Value x, Value k);
  Value depthLeft(Value k0);
  unsigned xDim() const { return rank_ - (isA_ ? 2 : 1); }
  unsigned kDim() const { return rank_ - (isA_ ? 1 : 2); }

  tiles::Evaluator& e_;
  Lowering& l;
  Numbers n;
  mlir::Value tile_;
  bool isA_;
  const Plan& plan_;
  mlir::Type type_;
  unsigned rank_;
  std::optional<Window> window_;
  bool globalDepthInner_;
  SharedTile shared_;
  std::optional<Window> place_;  ///< of inPlace_
  std::optional<SharedTile> inPlace_;

  Values batch_;
  Value x0_, depth_, stages_;
  Value extentLeft_;  ///< i32, rows (columns) that exist from x0, at most the tile's
  Value start_, strideX_, strideK_;
  Value wide_;        ///< i1; null: never
  Value contiguous_;  ///< i1, elements of at most 2 bytes lie side by side as in the stages; null: never
};

}  // namespace vortex::target::gpu::dot
