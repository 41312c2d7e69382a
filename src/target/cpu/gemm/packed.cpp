// The packed product of one block. For each slice of K: pack the block's rows of A (they stay in L2), then for each column panel
// of B (it stays in L1) all row panels of A. The tile of sums goes through 64 bytes · mr of scratch instead of from registers to C: one
// epilogue serves every position, for about 1 % of the time at full depth.
#include "base/check.h"
#include "target/cpu/gemm/finish.h"
#include "target/cpu/gemm/micro_kernel.h"
#include "target/cpu/gemm/pack.h"
#include "target/cpu/gemm/scratch.h"

namespace vortex::target::cpu::gemm {

using llvm::Value;

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
  Value *tileMemory = scratch;
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
    emitLoop(b, range.columnBegin, range.columnEnd, nr, [&](Value *column) {
      Value *offset = b.CreateNUWAdd(b.CreateNUWMul(column, problem.k), b.CreateNUWMul(kBegin, nr));
      Value *panelOfB = b.CreateInBoundsGEP(problem.type, packed, offset);
      emitLoop(b, range.rowBegin, range.rowEnd, mr, [&](Value *row) {
        b.CreateCall(kernel, {panelOfA(row), panelOfB, depth, tileMemory});
        finish.emit({tileMemory, plan.nrVectors, plan.lanes}, row, emitMin(b, b.CreateNUWSub(range.rowEnd, row), mr), column,
                    b.CreateNUWSub(range.columnEnd, column), /*unrolled=*/true);
      });
    });
  });
}

} // namespace vortex::target::cpu::gemm
