#include "target/cpu/gemm/gemm.h"

#include "target/cpu/gemm/control_flow.h"

namespace vortex::target::cpu::gemm {

using llvm::Value;

namespace {

/// Tiles [first, last) of `count` items in tiles of `size` for part `index` of `parts`, in items.
std::pair<Value*, Value*> spread(llvm::IRBuilderBase& b, Value* count, uint64_t size, Value* index, Value* parts) {
  Value* tiles = b.CreateUDiv(b.CreateNUWAdd(count, b.getInt64(size - 1)), b.getInt64(size));
  auto boundary = [&](Value* part) {
    Value* tile = b.CreateUDiv(b.CreateNUWMul(part, tiles), parts);
    return emitMin(b, b.CreateNUWMul(tile, b.getInt64(size)), count);
  };
  return {boundary(index), boundary(b.CreateNUWAdd(index, b.getInt64(1)))};
}

}  // namespace

BlockRange emitBlockRange(llvm::IRBuilderBase& b, const Plan& plan, const Problem& problem, Value* blockRow,
                          Value* gridRows, Value* blockColumn, Value* gridColumns) {
  const auto [rowBegin, rowEnd] = spread(b, problem.m, plan.mr, blockRow, gridRows);
  const auto [columnBegin, columnEnd] = spread(b, problem.n, plan.nr(), blockColumn, gridColumns);
  return {rowBegin, rowEnd, columnBegin, columnEnd};
}

Value* emitUsesDirect(llvm::IRBuilderBase& b, const Plan& plan, const Problem& problem) {
  Value* fewRows = b.CreateICmpULE(problem.m, b.getInt64(plan.directRows));
  Value* fewColumns = b.CreateICmpULE(problem.n, b.getInt64(plan.directColumns));
  Value* work = b.CreateMul(b.CreateMul(problem.m, problem.n), problem.k);
  Value* littleWork = b.CreateICmpULE(work, b.getInt64(plan.directWork));
  return b.CreateOr(b.CreateOr(fewRows, fewColumns), littleWork);
}

}  // namespace vortex::target::cpu::gemm
