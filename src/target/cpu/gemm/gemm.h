// Matrix product C = epilogue(initial + A·B) as LLVM IR. A is m × k, B is k × n; both, and what happens to C, are
// callbacks, so that element types, strides, transposition, fused producers and consumers are the caller's.
//
// Two ways, chosen per problem by Plan::usesDirect:
//   packed  phase 0: emitPackB over all column panels (any partition, in parallel) into a global temporary;
//           phase 1: emitPackedBlock for every block of the grid rowBlocks × columnBlocks.
//   direct  one phase: emitDirectBlock for every block; no temporary.
// With known extents emit only the way taken; otherwise both, behind emitUsesDirect, in functions of their own if compile
// time matters (the code generator's cost grows faster than a function's size).
// All of them add basic blocks: the builder must stand at the end of an unterminated block and ends at the continuation. Callbacks may add basic blocks too, and may be
// called several times (each call emits a copy of the code). Rows and columns given to callbacks are i64 and inside the
// matrix. Results do not depend on how rows and columns are split into blocks, so they are equal for every grid.
#pragma once

#include <functional>

#include "target/cpu/gemm/plan.h"

namespace llvm {
class IRBuilderBase;
class Type;
class Value;
}  // namespace llvm

namespace vortex::target::cpu::gemm {

/// The index that moves by one between neighbouring elements in memory. None: neither does (strided), loads are element
/// by element.
enum class Contiguous { None, Row, Column };

/// lanes == 1: the element (row, column) as a scalar of the compute type. lanes > 1: a vector of elements starting
/// there and going along the operand's contiguous index. `valid` null: all lanes exist; else an i64 in [0, lanes]: only
/// that many first lanes may be read, the others must be zero in the result.
using Load = std::function<llvm::Value*(llvm::IRBuilderBase&, llvm::Value* row, llvm::Value* column, uint32_t lanes,
                                        llvm::Value* valid)>;

struct Operand {
  Load load;
  /// Row: element (row+1, column) is next to (row, column); Column: (row, column+1) is (row-major storage).
  Contiguous contiguous = Contiguous::Column;
};

struct Problem {
  llvm::Type* type = nullptr;  ///< compute type: float or double
  llvm::Value* m = nullptr;    ///< i64; constants are exploited
  llvm::Value* n = nullptr;
  llvm::Value* k = nullptr;  ///< 0 gives the initial values, or zeros
  /// Steps that the packed B has where this product takes a part of them; null: k.
  llvm::Value* packedSteps = nullptr;
  /// Panels of plan.mr rows of A, `k` steps each, made before; null: blocks of the packed way pack their own. Theirs start at whole panels.
  llvm::Value* packedRows = nullptr;
  Operand a;
  Operand b;
  /// Value C starts from, along columns; empty: zero.
  Load initial;
  /// Consumes finished sums of `row`, columns column … column + lanes: `sums` is a vector (or a scalar when lanes == 1)
  /// of the compute type. `valid` as in Load: lanes from `valid` on must not be stored.
  std::function<void(llvm::IRBuilderBase&, llvm::Value* row, llvm::Value* column, uint32_t lanes, llvm::Value* sums,
                     llvm::Value* valid)>
      store;
  /// Address of C(row, column) when C itself can hold partial sums of the compute type: unit stride along columns, read
  /// by no operand, initial or epilogue. Empty: partial sums live in block scratch.
  std::function<llvm::Value*(llvm::IRBuilderBase&, llvm::Value* row, llvm::Value* column)> partialAddress;
};

/// Rows and columns of C one block computes, i64 half-open ranges.
struct BlockRange {
  llvm::Value* rowBegin;
  llvm::Value* rowEnd;
  llvm::Value* columnBegin;
  llvm::Value* columnEnd;
};

/// Spreads m rows and n columns evenly, in whole register tiles, over gridRows × gridColumns blocks (i64 values);
/// blockRow and blockColumn number this block. Grid sizes: Plan::rowBlocks/columnBlocks, or ceil(m / directMc), ceil(n
/// / directNc) for the direct path.
BlockRange emitBlockRange(llvm::IRBuilderBase& builder, const Plan& plan, const Problem& problem, llvm::Value* blockRow,
                          llvm::Value* gridRows, llvm::Value* blockColumn, llvm::Value* gridColumns);

/// i1: Plan::usesDirect on the problem's extents.
llvm::Value* emitUsesDirect(llvm::IRBuilderBase& builder, const Plan& plan, const Problem& problem);

/// Packs rows [kBegin, kEnd) of panels [panelBegin, panelEnd) of B, each plan.nr() columns, into `packed` (Plan::packedElements elements of
/// the compute type, 64-byte aligned, the start of this B's copy; several batch matrices follow each other). Zero-pads
/// the last panel.
void emitPackB(llvm::IRBuilderBase& builder, const VectorFeatures& features, const Plan& plan, const Problem& problem,
               llvm::Value* packed, llvm::Value* panelBegin, llvm::Value* panelEnd, llvm::Value* kBegin,
               llvm::Value* kEnd);

/// Packs rows (`isA`) or columns [begin, end) × steps [kBegin, kEnd) of an operand into panels at `packed`, each `depth` steps long.
void emitPackTile(llvm::IRBuilderBase& builder, const Plan& plan, llvm::Type* type, const Operand& operand, bool isA,
                  llvm::Value* packed, llvm::Value* depth, llvm::Value* begin, llvm::Value* end, llvm::Value* kBegin,
                  llvm::Value* kEnd);

/// Computes one block from the packed copy of B. `range` from emitBlockRange with a grid of at least rowBlocks ×
/// columnBlocks.
void emitPackedBlock(llvm::IRBuilderBase& builder, const VectorFeatures& features, const Plan& plan,
                     const Problem& problem, llvm::Value* packed, llvm::Value* scratch, const BlockRange& range);

/// Computes one block straight from the operands. Any range is allowed.
void emitDirectBlock(llvm::IRBuilderBase& builder, const VectorFeatures& features, const Plan& plan,
                     const Problem& problem, llvm::Value* scratch, const BlockRange& range);

}  // namespace vortex::target::cpu::gemm
