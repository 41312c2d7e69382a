// What happens to a tile of sums: added to what earlier slices of K left, then kept for the next slice or handed to the
// epilogue.
#pragma once

#include "target/cpu/gemm/control_flow.h"
#include "target/cpu/gemm/gemm.h"

namespace vortex::target::cpu::gemm {

/// Sums in memory, row after row, `vectors`·`lanes` per row; aligned to a vector when lanes > 1.
struct SumsTile {
  llvm::Value* memory;
  uint32_t vectors;
  uint32_t lanes;
};

/// Part of K being summed, i1 each: nothing was summed before; nothing will be afterwards.
struct Slice {
  llvm::Value* first;
  llvm::Value* last;
};

/// Block scratch for partial sums, used when C cannot hold them; rows of `stride` elements, room for whole vectors.
struct PartialSums {
  llvm::Value* memory;
  uint64_t stride;
  llvm::Value* rowBegin;
  llvm::Value* columnBegin;
};

/// rowCount ≤ the tile's rows (i64), columnCount ≥ 1 (i64; more than the tile's columns counts as all). `unrolled`:
/// straight-line code over the vectors of a row, one copy of the epilogue each.
struct Finish {
  llvm::IRBuilderBase& b;
  const Problem& problem;
  PartialSums partial;
  Slice slice;

  void emit(const SumsTile& tile, llvm::Value* row, llvm::Value* rowCount, llvm::Value* column,
            llvm::Value* columnCount, bool unrolled) const;

  /// Where partial sums of (row, column) are kept; further columns follow.
  llvm::Value* partialAddress(llvm::Value* row, llvm::Value* column) const;

private:
  void emitVector(const SumsTile& tile, llvm::Value* row, llvm::Value* column, llvm::Value* r, llvm::Value* offset,
                  llvm::Value* valid, bool last) const;
  void emitRows(const SumsTile& tile, llvm::Value* row, llvm::Value* rowCount, llvm::Value* column,
                llvm::Value* columnCount, bool last) const;
  void emitWholeRows(const SumsTile& tile, llvm::Value* row, llvm::Value* rowCount, llvm::Value* column) const;
  llvm::Value* emitPrior(llvm::Value* row, llvm::Value* column, uint32_t lanes, llvm::Value* valid) const;
};

/// Calls body(kBegin, kEnd, slice) for K in slices of `depth`, once with kBegin = kEnd = 0 when k is 0.
void emitSlices(llvm::IRBuilderBase& b, llvm::Value* k, uint64_t depth,
                llvm::function_ref<void(llvm::Value* kBegin, llvm::Value* kEnd, const Slice& slice)> body);

}  // namespace vortex::target::cpu::gemm
