// The packed product of one block. For each slice of K: pack the block's rows of A (they stay in L2), then for each
// column panel of B (it stays in L1) all row panels of A. Whole tiles of all slices but the last are added to the
// partial sums by the micro-kernel. The others go through a tile in scratch, from which one copy of the epilogue serves
// every position.
#include "target/cpu/gemm/packed.h"
#include "base/check.h"
#include "target/cpu/gemm/finish.h"
#include "target/cpu/gemm/micro_kernel.h"
#include "target/cpu/gemm/pack.h"
#include "target/cpu/gemm/scratch.h"

namespace vortex::target::cpu::gemm {

using llvm::Value;

namespace {

/// Panels of a row-major B that are filled together: 1 KiB of each row of f32 with AVX2.
constexpr uint64_t kPackedTogether = 16;

struct PackedBlock {
  llvm::IRBuilderBase& b;
  const Plan& plan;
  const Problem& problem;
  const BlockRange& range;
  llvm::Function* kernel;
  Value* tileMemory;
  const Slice& slice;
  const Finish& finish;

  /// C's lines are a page apart and come from memory: asked for before the micro-kernel, they are there after it.
  void prefetchPartialSums(Value* row, Value* rowCount, Value* column) const {
    if (!problem.partialAddress)
      return;
    emitLoop(b, b.getInt64(0), rowCount, b.getInt64(1), [&](Value* r) {
      Value* address = problem.partialAddress(b, b.CreateNUWAdd(row, r), column);
      b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()},
                        {address, b.getInt32(1), b.getInt32(3), b.getInt32(1)});
    });
  }

  /// The next panel of B comes from L3 or memory. The first row panels of this one ask for it, a piece each.
  std::pair<Value*, Value*> nextPieceOfB(Value* row, Value* nextPanelOfB, Value* depth) const {
    constexpr uint64_t kLine = 64;
    const uint64_t pieces = (uint64_t(plan.nr()) * plan.elementBytes * plan.unroll + kLine - 1) / kLine;
    Value* index = b.CreateUDiv(b.CreateNUWSub(row, range.rowBegin), b.getInt64(plan.mr));
    Value* offset =
        b.CreateNUWMul(b.CreateNUWMul(index, b.CreateUDiv(depth, b.getInt64(plan.unroll))), b.getInt64(kLine));
    Value* useful = b.CreateICmpULT(index, b.getInt64(pieces));
    return {b.CreateGEP(b.getInt8Ty(), nextPanelOfB, offset), b.CreateSelect(useful, b.getInt64(kLine), b.getInt64(0))};
  }

  void emitTile(Value* row, Value* column, Value* panelOfA, Value* panelOfB, Value* nextPanelOfB, Value* depth) const {
    const auto [ahead, aheadStride] = nextPieceOfB(row, nextPanelOfB, depth);
    Value* rowCount = emitMin(b, b.CreateNUWSub(range.rowEnd, row), b.getInt64(plan.mr));
    Value* columnCount = b.CreateNUWSub(range.columnEnd, column);
    prefetchPartialSums(row, rowCount, column);
    Value* whole =
        b.CreateAnd(b.CreateICmpEQ(rowCount, b.getInt64(plan.mr)), b.CreateICmpUGE(columnCount, b.getInt64(plan.nr())));
    Value* keepsSums = b.CreateNot(problem.initial ? b.CreateOr(slice.first, slice.last) : slice.last);
    emitIf(
        b, b.CreateAnd(keepsSums, whole),
        [&] {
          Value* address = finish.partialAddress(row, column);
          Value* stride = b.getInt64(finish.partial.stride);
          if (problem.partialAddress)  // rows are equally far apart; the next one exists
            stride = b.CreatePtrDiff(problem.type,
                                     problem.partialAddress(b, b.CreateNUWAdd(row, b.getInt64(1)), column), address);
          b.CreateCall(kernel,
                       {panelOfA, panelOfB, depth, address, stride, b.CreateNot(slice.first), ahead, aheadStride});
        },
        [&] {
          b.CreateCall(
              kernel, {panelOfA, panelOfB, depth, tileMemory, b.getInt64(plan.nr()), b.getFalse(), ahead, aheadStride});
          finish.emit({tileMemory, plan.nrVectors, plan.lanes}, row, rowCount, column, columnCount, /*unrolled=*/true);
        });
  }
};

/// The block's rows of A for one slice, packed here unless they are already; panel of `row` at packed + (row − rowBegin)·depth.
struct PackedRows {
  llvm::IRBuilderBase& b;
  const Plan& plan;
  const Problem& problem;
  const BlockRange& range;
  Value* packed;
  Value* kBegin;
  Value* depth;

  Value* panel(Value* row) const {
    if (problem.packedRows) {
      Value* steps = b.CreateNUWAdd(b.CreateNUWMul(row, problem.k), b.CreateNUWMul(kBegin, b.getInt64(plan.mr)));
      return b.CreateInBoundsGEP(problem.type, problem.packedRows, steps);
    }
    return b.CreateInBoundsGEP(problem.type, packed, b.CreateNUWMul(b.CreateNUWSub(row, range.rowBegin), depth));
  }
  void emit(Value* kEnd) const {
    if (problem.packedRows)
      return;
    const PackSource source{problem.a, true, problem.type, plan.lanes};
    emitLoop(b, range.rowBegin, range.rowEnd, b.getInt64(plan.mr),
             [&](Value* row) { emitPackPanel(b, source, plan.mr, panel(row), row, range.rowEnd, kBegin, kEnd); });
  }
};

/// Panels of columns [columnBegin, columnEnd) × k [kBegin, kEnd); address(column, k) of a panel's step.
void emitPackColumns(llvm::IRBuilderBase& b, const Plan& plan, llvm::Type* type, const Operand& operand,
                     Value* columnBegin, Value* columnEnd, Value* kBegin, Value* kEnd,
                     llvm::function_ref<Value*(Value* column, Value* k)> address) {
  const PackSource source{operand, false, type, plan.lanes};
  Value* nr = b.getInt64(plan.nr());
  Value* panelsBegin = columnBegin;
  if (source.contiguousAcross()) {
    // Row by row over many panels: rows may be pages apart, and only within one does the processor prefetch.
    Value* wholeEnd = emitWholeEnd(b, columnBegin, columnEnd, plan.nr());
    emitLoop(b, columnBegin, wholeEnd, b.getInt64(kPackedTogether * plan.nr()), [&](Value* group) {
      Value* groupEnd = emitMin(b, b.CreateNUWAdd(group, b.getInt64(kPackedTogether * plan.nr())), wholeEnd);
      emitLoop(b, kBegin, kEnd, b.getInt64(1), [&](Value* k) {
        emitLoop(b, group, groupEnd, nr,
                 [&](Value* column) { emitPackStep(b, source, plan.nr(), address(column, k), column, k); });
      });
    });
    panelsBegin = wholeEnd;
  }
  emitLoop(b, panelsBegin, columnEnd, nr, [&](Value* column) {
    emitPackPanel(b, source, plan.nr(), address(column, kBegin), column, columnEnd, kBegin, kEnd,
                  source.contiguousAcross());
  });
}

Value* scratchAt(llvm::IRBuilderBase& b, Value* scratch, uint64_t offset) {
  return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), scratch, offset);
}

}  // namespace

void emitPackB(llvm::IRBuilderBase& b, const VectorFeatures&, const Plan& plan, const Problem& problem, Value* packed,
               Value* panelBegin, Value* panelEnd, Value* kBegin, Value* kEnd) {
  Value* nr = b.getInt64(plan.nr());
  Value* columnEnd = emitMin(b, b.CreateNUWMul(panelEnd, nr), problem.n);
  emitPackColumns(b, plan, problem.type, problem.b, b.CreateNUWMul(panelBegin, nr), columnEnd, kBegin, kEnd,
                  [&](Value* column, Value* k) {
                    return b.CreateInBoundsGEP(
                        problem.type, packed, b.CreateNUWAdd(b.CreateNUWMul(column, problem.k), b.CreateNUWMul(k, nr)));
                  });
}

void emitPackTile(llvm::IRBuilderBase& b, const Plan& plan, llvm::Type* type, const Operand& operand, bool isA,
                  Value* packed, Value* depth, Value* begin, Value* end, Value* kBegin, Value* kEnd) {
  Value* width = b.getInt64(isA ? plan.mr : plan.nr());
  auto address = [&](Value* across, Value* k) {
    Value* steps = b.CreateNUWAdd(b.CreateNUWMul(b.CreateNUWSub(across, begin), depth), b.CreateNUWMul(k, width));
    return b.CreateInBoundsGEP(type, packed, steps);
  };
  if (!isA)
    return emitPackColumns(b, plan, type, operand, begin, end, kBegin, kEnd, address);
  const PackSource source{operand, true, type, plan.lanes};
  emitLoop(b, begin, end, width,
           [&](Value* row) { emitPackPanel(b, source, plan.mr, address(row, kBegin), row, end, kBegin, kEnd); });
}

void emitPackedBlock(llvm::IRBuilderBase& b, const VectorFeatures&, const Plan& plan, const Problem& problem,
                     Value* packed, Value* scratch, const BlockRange& range) {
  llvm::Function* kernel = microKernel(*b.GetInsertBlock()->getModule(), problem.type, plan);
  Value *mr = b.getInt64(plan.mr), *nr = b.getInt64(plan.nr());
  const ScratchLayout layout = packedLayout(plan);
  const PartialSums partial{scratchAt(b, scratch, layout.partialSums), plan.nc, range.rowBegin, range.columnBegin};
  Value* packedSteps = problem.packedSteps ? problem.packedSteps : problem.k;
  emitSlices(b, problem.k, plan.kc, [&](Value* kBegin, Value* kEnd, const Slice& slice) {
    Value* depth = b.CreateNUWSub(kEnd, kBegin);
    const PackedRows rows{b, plan, problem, range, scratchAt(b, scratch, layout.operands), kBegin, depth};
    rows.emit(kEnd);
    const Finish finish{b, problem, partial, slice};
    const PackedBlock block{b, plan, problem, range, kernel, scratch, slice, finish};
    emitLoop(b, range.columnBegin, range.columnEnd, nr, [&](Value* column) {
      Value* offset = b.CreateNUWAdd(b.CreateNUWMul(column, packedSteps), b.CreateNUWMul(kBegin, nr));
      Value* panelOfB = b.CreateInBoundsGEP(problem.type, packed, offset);
      Value* nextPanelOfB = b.CreateGEP(problem.type, panelOfB, b.CreateNUWMul(packedSteps, nr));
      emitLoop(b, range.rowBegin, range.rowEnd, mr,
               [&](Value* row) { block.emitTile(row, column, rows.panel(row), panelOfB, nextPanelOfB, depth); });
    });
  });
}

void emitLocalBlock(llvm::IRBuilderBase& b, const Plan& plan, const Problem& problem, Value* scratch,
                    const BlockRange& range) {
  llvm::Function* kernel = microKernel(*b.GetInsertBlock()->getModule(), problem.type, plan);
  Value *mr = b.getInt64(plan.mr), *nr = b.getInt64(plan.nr());
  const ScratchLayout layout = localLayout(plan);
  Value* columnsOfB = scratchAt(b, scratch, layout.columns);
  const PartialSums partial{scratchAt(b, scratch, layout.partialSums), plan.directNc, range.rowBegin,
                            range.columnBegin};
  emitSlices(b, problem.k, plan.kc, [&](Value* kBegin, Value* kEnd, const Slice& slice) {
    Value* depth = b.CreateNUWSub(kEnd, kBegin);
    const PackedRows rows{b, plan, problem, range, scratchAt(b, scratch, layout.operands), kBegin, depth};
    rows.emit(kEnd);
    const Finish finish{b, problem, partial, slice};
    const PackedBlock block{b, plan, problem, range, kernel, scratch, slice, finish};
    emitLoop(b, range.columnBegin, range.columnEnd, b.getInt64(kLocalPanels * plan.nr()), [&](Value* group) {
      Value* groupEnd = emitMin(b, b.CreateNUWAdd(group, b.getInt64(kLocalPanels * plan.nr())), range.columnEnd);
      auto panelOfB = [&](Value* column, Value* k) {
        Value* offset = b.CreateNUWAdd(b.CreateNUWMul(b.CreateNUWSub(column, group), depth),
                                       b.CreateNUWMul(b.CreateNUWSub(k, kBegin), nr));
        return b.CreateInBoundsGEP(problem.type, columnsOfB, offset);
      };
      emitPackColumns(b, plan, problem.type, problem.b, group, groupEnd, kBegin, kEnd, panelOfB);
      emitLoop(b, group, groupEnd, nr, [&](Value* column) {
        Value *panel = panelOfB(column, kBegin), *next = panelOfB(b.CreateNUWAdd(column, nr), kBegin);
        emitLoop(b, range.rowBegin, range.rowEnd, mr,
                 [&](Value* row) { block.emitTile(row, column, rows.panel(row), panel, next, depth); });
      });
    });
  });
}

}  // namespace vortex::target::cpu::gemm
