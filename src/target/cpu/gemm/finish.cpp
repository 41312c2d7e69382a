#include "target/cpu/gemm/finish.h"

namespace vortex::target::cpu::gemm {
namespace {

using llvm::Value;

llvm::Type* vectorType(llvm::Type* type, uint32_t lanes) {
  return lanes == 1 ? type : llvm::FixedVectorType::get(type, lanes);
}

Value* laneMask(llvm::IRBuilderBase& b, uint32_t lanes, Value* valid) {
  llvm::SmallVector<llvm::Constant*, 16> numbers;
  for (uint32_t lane = 0; lane < lanes; lane++)
    numbers.push_back(b.getInt32(lane));
  return b.CreateICmpULT(llvm::ConstantVector::get(numbers),
                         b.CreateVectorSplat(lanes, b.CreateTrunc(valid, b.getInt32Ty())));
}

llvm::Align elementAlign(llvm::Type* type) { return llvm::Align(type->getScalarSizeInBits() / 8); }

}  // namespace

Value* Finish::partialAddress(Value* row, Value* column) const {
  if (problem.partialAddress)
    return problem.partialAddress(b, row, column);
  Value* offset = b.CreateNUWAdd(b.CreateNUWMul(b.CreateNUWSub(row, partial.rowBegin), b.getInt64(partial.stride)),
                                 b.CreateNUWSub(column, partial.columnBegin));
  return b.CreateInBoundsGEP(problem.type, partial.memory, offset);
}

/// What the sums are added to: initial values in the first slice, partial sums later; null for nothing.
Value* Finish::emitPrior(Value* row, Value* column, uint32_t lanes, Value* valid) const {
  llvm::Type* type = vectorType(problem.type, lanes);
  auto initial = [&]() -> Value* {
    return problem.initial ? problem.initial(b, row, column, lanes, valid) : llvm::Constant::getNullValue(type);
  };
  auto load = [&]() -> Value* {
    Value* address = partialAddress(row, column);
    if (valid && problem.partialAddress && lanes > 1)
      return b.CreateMaskedLoad(type, address, elementAlign(problem.type), laneMask(b, lanes, valid),
                                llvm::Constant::getNullValue(type));
    return b.CreateAlignedLoad(type, address, elementAlign(problem.type));
  };
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(slice.first); known && known->isOne())
    return problem.initial ? initial() : nullptr;
  llvm::BasicBlock *start = newBlock(b, "initial"), *resume = newBlock(b, "resume"), *join = newBlock(b, "prior");
  b.CreateCondBr(slice.first, start, resume);
  b.SetInsertPoint(start);
  Value* fromInitial = initial();
  llvm::BasicBlock* startEnd = b.GetInsertBlock();
  b.CreateBr(join);
  b.SetInsertPoint(resume);
  Value* fromPartial = load();
  llvm::BasicBlock* resumeEnd = b.GetInsertBlock();
  b.CreateBr(join);
  b.SetInsertPoint(join);
  llvm::PHINode* prior = b.CreatePHI(type, 2);
  prior->addIncoming(fromInitial, startEnd);
  prior->addIncoming(fromPartial, resumeEnd);
  return prior;
}

void Finish::emitVector(const SumsTile& tile, Value* row, Value* column, Value* r, Value* offset, Value* valid,
                        bool last) const {
  llvm::Type* type = vectorType(problem.type, tile.lanes);
  Value* index = b.CreateNUWAdd(b.CreateNUWMul(r, b.getInt64(uint64_t(tile.vectors) * tile.lanes)), offset);
  const llvm::Align alignment = tile.vectors * tile.lanes == 1
                                    ? elementAlign(problem.type)
                                    : llvm::Align(tile.lanes * problem.type->getScalarSizeInBits() / 8);
  Value* sums = b.CreateAlignedLoad(type, b.CreateInBoundsGEP(problem.type, tile.memory, index), alignment);
  Value *i = b.CreateNUWAdd(row, r), *j = b.CreateNUWAdd(column, offset);
  if (Value* prior = emitPrior(i, j, tile.lanes, valid))
    sums = b.CreateFAdd(prior, sums);
  if (last) {
    problem.store(b, i, j, tile.lanes, sums, valid);
    return;
  }
  Value* address = partialAddress(i, j);
  if (valid && problem.partialAddress && tile.lanes > 1)
    b.CreateMaskedStore(sums, address, elementAlign(problem.type), laneMask(b, tile.lanes, valid));
  else
    b.CreateAlignedStore(sums, address, elementAlign(problem.type));
}

/// Row by row, vector by vector; masked code for a ragged last vector only.
void Finish::emitRows(const SumsTile& tile, Value* row, Value* rowCount, Value* column, Value* columnCount,
                      bool last) const {
  Value *zero = b.getInt64(0), *one = b.getInt64(1), *lanes = b.getInt64(tile.lanes);
  Value* count = emitMin(b, columnCount, b.getInt64(uint64_t(tile.vectors) * tile.lanes));
  emitLoop(b, zero, rowCount, one, [&](Value* r) {
    emitLoop(b, zero, count, lanes, [&](Value* offset) {
      Value* valid = b.CreateNUWSub(count, offset);
      Value* whole = tile.lanes == 1 ? b.getTrue() : b.CreateICmpUGE(valid, lanes);
      emitIf(
          b, whole, [&] { emitVector(tile, row, column, r, offset, nullptr, last); },
          [&] { emitVector(tile, row, column, r, offset, valid, last); });
    });
  });
}

/// All columns of the tile exist: straight-line code over the vectors of a row.
void Finish::emitWholeRows(const SumsTile& tile, Value* row, Value* rowCount, Value* column) const {
  emitLoop(b, b.getInt64(0), rowCount, b.getInt64(1), [&](Value* r) {
    for (uint32_t v = 0; v < tile.vectors; v++)
      emitVector(tile, row, column, r, b.getInt64(uint64_t(v) * tile.lanes), nullptr, true);
  });
}

void Finish::emit(const SumsTile& tile, Value* row, Value* rowCount, Value* column, Value* columnCount,
                  bool unrolled) const {
  Value* width = b.getInt64(uint64_t(tile.vectors) * tile.lanes);
  auto finished = [&] {
    if (!unrolled)
      return emitRows(tile, row, rowCount, column, columnCount, true);
    emitIf(
        b, b.CreateICmpUGE(columnCount, width), [&] { emitWholeRows(tile, row, rowCount, column); },
        [&] { emitRows(tile, row, rowCount, column, columnCount, true); });
  };
  emitIf(b, slice.last, finished, [&] { emitRows(tile, row, rowCount, column, columnCount, false); });
}

void emitSlices(llvm::IRBuilderBase& b, Value* k, uint64_t depth,
                llvm::function_ref<void(Value* kBegin, Value* kEnd, const Slice& slice)> body) {
  Value* zero = b.getInt64(0);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(k); known && known->getZExtValue() <= depth) {
    body(zero, k, {b.getTrue(), b.getTrue()});
    return;
  }
  Value* end = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, k, b.getInt64(1));
  emitLoop(b, zero, end, b.getInt64(depth), [&](Value* kBegin) {
    Value* after = b.CreateNUWAdd(kBegin, b.getInt64(depth));
    body(kBegin, emitMin(b, after, k), {b.CreateICmpEQ(kBegin, zero), b.CreateICmpUGE(after, k)});
  });
}

}  // namespace vortex::target::cpu::gemm
