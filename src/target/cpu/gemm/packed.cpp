// The packed product of one block. For each slice of K: pack the block's rows of A (they stay in L2), then for each column panel
// of B (it stays in L1) all row panels of A. Whole tiles of all slices but the last are added to the partial sums by the micro-kernel. The
// others go through a tile in scratch, from which one copy of the epilogue serves every position.
#include "base/check.h"
#include "target/cpu/gemm/finish.h"
#include "target/cpu/gemm/micro_kernel.h"
#include "target/cpu/gemm/pack.h"
#include "target/cpu/gemm/scratch.h"

namespace vortex::target::cpu::gemm {

using llvm::Value;

namespace {

struct PackedBlock {
  llvm::IRBuilderBase &b;
  const Plan &plan;
  const Problem &problem;
  const BlockRange &range;
  llvm::Function *kernel;
  Value *tileMemory;
  const Slice &slice;
  const Finish &finish;

  /// C's lines are a page apart and come from memory: asked for before the micro-kernel, they are there after it.
  void prefetchPartialSums(Value *row, Value *rowCount, Value *column) const {
    if (!problem.partialAddress)
      return;
    emitLoop(b, b.getInt64(0), rowCount, b.getInt64(1), [&](Value *r) {
      Value *address = problem.partialAddress(b, b.CreateNUWAdd(row, r), column);
      b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()}, {address, b.getInt32(1), b.getInt32(3), b.getInt32(1)});
    });
  }

  void emitTile(Value *row, Value *column, Value *panelOfA, Value *panelOfB, Value *depth) const {
    Value *rowCount = emitMin(b, b.CreateNUWSub(range.rowEnd, row), b.getInt64(plan.mr));
    Value *columnCount = b.CreateNUWSub(range.columnEnd, column);
    prefetchPartialSums(row, rowCount, column);
    Value *whole = b.CreateAnd(b.CreateICmpEQ(rowCount, b.getInt64(plan.mr)), b.CreateICmpUGE(columnCount, b.getInt64(plan.nr())));
    Value *keepsSums = b.CreateNot(problem.initial ? b.CreateOr(slice.first, slice.last) : slice.last);
    emitIf(
        b, b.CreateAnd(keepsSums, whole),
        [&] {
          Value *address = finish.partialAddress(row, column);
          Value *stride = b.getInt64(plan.nc);
          if (problem.partialAddress) // rows are equally far apart; the next one exists
            stride = b.CreatePtrDiff(problem.type, problem.partialAddress(b, b.CreateNUWAdd(row, b.getInt64(1)), column), address);
          b.CreateCall(kernel, {panelOfA, panelOfB, depth, address, stride, b.CreateNot(slice.first)});
        },
        [&] {
          b.CreateCall(kernel, {panelOfA, panelOfB, depth, tileMemory, b.getInt64(plan.nr()), b.getFalse()});
          finish.emit({tileMemory, plan.nrVectors, plan.lanes}, row, rowCount, column, columnCount, /*unrolled=*/true);
        });
  }
};

} // namespace

void emitPackB(llvm::IRBuilderBase &b, const VectorFeatures &, const Plan &plan, const Problem &problem, Value *packed,
               Value *panelBegin, Value *panelEnd) {
  const PackSource source{problem.b, false, problem.type, plan.lanes};
  // A few steps of k across all panels before the next few: the pages of a row-major B stay in the TLB.
  constexpr uint64_t kSteps = 64;
  Value *one = b.getInt64(1), *nr = b.getInt64(plan.nr());
  emitLoop(b, b.getInt64(0), problem.k, b.getInt64(kSteps), [&](Value *k) {
    Value *kEnd = emitMin(b, b.CreateNUWAdd(k, b.getInt64(kSteps)), problem.k);
    emitLoop(b, panelBegin, panelEnd, one, [&](Value *panel) {
      Value *column = b.CreateNUWMul(panel, nr);
      Value *offset = b.CreateNUWAdd(b.CreateNUWMul(column, problem.k), b.CreateNUWMul(k, nr));
      emitPackPanel(b, source, plan.nr(), b.CreateInBoundsGEP(problem.type, packed, offset), column, problem.n, k, kEnd);
    });
  });
}

void emitPackedBlock(llvm::IRBuilderBase &b, const VectorFeatures &, const Plan &plan, const Problem &problem, Value *packed,
                     Value *scratch, const BlockRange &range) {
  llvm::Function *kernel = microKernel(*b.GetInsertBlock()->getModule(), problem.type, plan);
  const PackSource source{problem.a, true, problem.type, plan.lanes};
  Value *mr = b.getInt64(plan.mr), *nr = b.getInt64(plan.nr());
  const ScratchLayout layout = packedLayout(plan);
  Value *packedA = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), scratch, layout.operands);
  const PartialSums partial{b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), scratch, layout.partialSums), plan.nc, range.rowBegin, range.columnBegin};
  emitSlices(b, problem.k, plan.kc, [&](Value *kBegin, Value *kEnd, const Slice &slice) {
    Value *depth = b.CreateNUWSub(kEnd, kBegin);
    auto panelOfA = [&](Value *row) {
      return b.CreateInBoundsGEP(problem.type, packedA, b.CreateNUWMul(b.CreateNUWSub(row, range.rowBegin), depth));
    };
    emitLoop(b, range.rowBegin, range.rowEnd, mr, [&](Value *row) {
      emitPackPanel(b, source, plan.mr, panelOfA(row), row, range.rowEnd, kBegin, kEnd);
    });
    const Finish finish{b, problem, partial, slice};
    const PackedBlock block{b, plan, problem, range, kernel, scratch, slice, finish};
    emitLoop(b, range.columnBegin, range.columnEnd, nr, [&](Value *column) {
      Value *offset = b.CreateNUWAdd(b.CreateNUWMul(column, problem.k), b.CreateNUWMul(kBegin, nr));
      Value *panelOfB = b.CreateInBoundsGEP(problem.type, packed, offset);
      emitLoop(b, range.rowBegin, range.rowEnd, mr, [&](Value *row) {
        block.emitTile(row, column, panelOfA(row), panelOfB, depth);
      });
    });
  });
}

} // namespace vortex::target::cpu::gemm
