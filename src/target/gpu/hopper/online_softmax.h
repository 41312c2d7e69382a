// One chunk of online softmax on the sums of a product in registers: maximum, exponentials, their sums, and weights as operand of the next product.
#pragma once

#include "passes/plan/stream_loop.h"
#include "target/gpu/tiles/evaluator.h"

namespace vortex::target::gpu::hopper {

/// What a thread carries from chunk to chunk for its rows: the upper and lower half's (PTX ISA, register fragments of wgmma).
struct RowState {
  static constexpr size_t kHalves = 2;
  Values maxima;  ///< of its scores, times the exponent's factor
  Values sums;    ///< of its own columns only: two of each sum

  Values all() const;
  void set(mlir::ValueRange values);
};

class OnlineSoftmax {
public:
  /// `columns`: of a chunk.
  OnlineSoftmax(Lowering& lowering, passes::StreamLoop stream, int64_t columns);

  RowState initial() const;
  struct Result {
    RowState state;
    Values rescales;  ///< of what was summed before, per half
    Values weights;   ///< pairs, not rounded yet
  };
  /// `scores`: this thread's sums of the first product. `row`: of the tile, where the warp's 16 rows begin. `count`: columns that exist.
  /// Scalars of the loop's body are those of the chunk.
  Result emit(mlir::ValueRange scores, Value row, Value count, const RowState& before);

  /// Weights as vxnv.dot_start_registers takes them. Not while such a product runs: the assembler lets nothing write registers that products read.
  Values pack(mlir::ValueRange weights);

  /// Of all columns: after the last chunk.
  void finish(RowState& state);
  /// As the program has it.
  Value maximum(Value scaled);

private:
  struct Chunk {
    Values rows;
    Value laneColumn, count;
    Values extents;
    llvm::SmallVector<tiles::At> places;
  };
  /// Pairs of scores, column group after column group, the upper half of each first.
  Values scorePairs(Chunk& chunk, mlir::ValueRange scores);
  Value growMaximum(llvm::ArrayRef<Value> pairs, size_t half, Result& result);
  void weigh(const Chunk& chunk, llvm::ArrayRef<Value> pairs, llvm::ArrayRef<Value> shifts, Result& result);
  tiles::At position(const Chunk& chunk, int64_t half, int64_t column);
  Value rawScores(mlir::Value scores, const tiles::At& at);
  Values scoresOf(mlir::Value scores, const Chunk& chunk);
  Values mask(const Chunk& chunk, Values plain);
  Value maximumOf(llvm::ArrayRef<Value> pairs);
  Value acrossQuad(Value value, bool isMaximum);
  Value exp2(Value value);
  Value constant(double value);

  Lowering& l_;
  tiles::Evaluator v_;
  passes::StreamLoop stream_;
  mlir::Value plain_, masked_;  ///< the scores of chunks that a mask leaves whole, and of all; the same where none does
  mlir::Value isPlain_;         ///< scalar
  int64_t columns_;
  double factor_ = 1;      ///< scores as computed here times this are exponents of 2
  bool isFolded_ = false;  ///< a factor of the scores is in there
  bool reads_ = false;     ///< other tensors
};

}  // namespace vortex::target::gpu::hopper
