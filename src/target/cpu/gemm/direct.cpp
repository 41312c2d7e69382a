// Products that do not pay for a global copy of B. By shape:
//   narrow  n ≤ directColumns: columns of B are copied to scratch; dot products along k;
//   low     m < packedRows: rows of A are copied to scratch (a fused producer runs once per element); B is read once
//   from where it is, as
//           vectors along columns times broadcast elements of A, or as dot products when B is contiguous along k;
//   else    both operands are packed by the block (packed.cpp).
// Sums go through a tile in scratch, so that there is one copy of the epilogue per loop.
#include "target/cpu/gemm/finish.h"
#include "target/cpu/gemm/pack.h"
#include "target/cpu/gemm/packed.h"
#include "target/cpu/gemm/scratch.h"

namespace vortex::target::cpu::gemm {
namespace {

using llvm::Value;

constexpr uint32_t kOuterVectors = 8;  // of a one-row tile: enough independent sums to hide the latency of FMA

struct DirectBlock {
  llvm::IRBuilderBase& b;
  const Plan& plan;
  const Problem& problem;
  const BlockRange& range;
  Value* tileMemory;
  Value* rowsOfA;     ///< scratch [row − rowBegin][directKc]
  Value* columnsOfB;  ///< scratch [column − columnBegin][directKc], narrow products only
  llvm::FixedVectorType* vector;
  // Current slice.
  Value *kBegin, *kEnd;
  const Finish& finish;

  Value* i64(uint64_t value) const { return b.getInt64(value); }
  llvm::Align elementAlign() const { return llvm::Align(plan.elementBytes); }

  /// scratch row `index` of `memory` at k
  Value* scratchElement(Value* memory, Value* index, Value* k) const {
    Value* offset = b.CreateNUWAdd(b.CreateNUWMul(index, i64(plan.directKc)), b.CreateNUWSub(k, kBegin));
    return b.CreateInBoundsGEP(problem.type, memory, offset);
  }

  /// `lanes` elements of row k of B; a strided B is read element by element, the last column standing in for those that
  /// do not exist.
  Value* rowOfB(Value* k, Value* column, Value* valid) const {
    if (problem.b.contiguous == Contiguous::Column)
      return problem.b.load(b, k, column, plan.lanes, valid);
    Value* result = llvm::PoisonValue::get(vector);
    Value* lastColumn = b.CreateNUWSub(problem.n, i64(1));
    for (uint32_t lane = 0; lane < plan.lanes; lane++) {
      Value* index = b.CreateNUWAdd(column, i64(lane));
      Value* element = problem.b.load(b, k, valid ? emitMin(b, index, lastColumn) : index, 1, nullptr);
      result = b.CreateInsertElement(result, element, lane);
    }
    return result;
  }

  /// Sums of `vectors` vectors of one row at column + offset, stored at `offset` of the tile.
  void emitOuterPiece(Value* row, Value* column, uint32_t vectors, Value* offset, Value* valid) const {
    Values sums(vectors, llvm::Constant::getNullValue(vector));
    Value* first = b.CreateNUWAdd(column, offset);
    sums = emitLoop(b, kBegin, kEnd, i64(1), sums, [&](Value* k, const Values& carried) {
      Value* left = b.CreateAlignedLoad(problem.type, scratchElement(rowsOfA, b.CreateNUWSub(row, range.rowBegin), k),
                                        elementAlign());
      left = b.CreateVectorSplat(plan.lanes, left);
      Values next;
      for (uint32_t v = 0; v < vectors; v++) {
        Value* right = rowOfB(k, b.CreateNUWAdd(first, i64(v * plan.lanes)), valid);
        next.push_back(b.CreateIntrinsic(llvm::Intrinsic::fmuladd, {vector}, {left, right, carried[v]}));
      }
      return next;
    });
    Value* out = b.CreateInBoundsGEP(problem.type, tileMemory, offset);
    for (uint32_t v = 0; v < vectors; v++)
      b.CreateAlignedStore(sums[v], b.CreateConstInBoundsGEP1_64(problem.type, out, uint64_t(v) * plan.lanes),
                           llvm::Align(plan.lanes * plan.elementBytes));
  }

  void emitOuter() const {
    const uint64_t width = uint64_t(kOuterVectors) * plan.lanes;
    emitLoop(b, range.columnBegin, range.columnEnd, i64(width), [&](Value* column) {
      Value* count = emitMin(b, b.CreateNUWSub(range.columnEnd, column), i64(width));
      emitLoop(b, range.rowBegin, range.rowEnd, i64(1), [&](Value* row) {
        Value* wholeEnd = emitWholeEnd(b, i64(0), count, width);
        emitLoop(b, i64(0), wholeEnd, i64(width),
                 [&](Value* offset) { emitOuterPiece(row, column, kOuterVectors, offset, nullptr); });
        emitLoop(b, wholeEnd, count, i64(plan.lanes), [&](Value* offset) {
          emitOuterPiece(row, column, 1, offset, emitMin(b, b.CreateNUWSub(count, offset), i64(plan.lanes)));
        });
        finish.emit({tileMemory, kOuterVectors, plan.lanes}, row, i64(1), column, count, /*unrolled=*/false);
      });
    });
  }

  /// body(row, rowCount) with rowCount `rows` while that many are left, then 1.
  void emitRowGroups(uint32_t rows, llvm::function_ref<void(Value* row, Value* rowCount)> body) const {
    llvm::BasicBlock *entry = b.GetInsertBlock(), *header = newBlock(b, "rows"), *inside = newBlock(b, "group"),
                     *exit = newBlock(b, "after");
    b.CreateBr(header);
    b.SetInsertPoint(header);
    llvm::PHINode* row = b.CreatePHI(b.getInt64Ty(), 2);
    row->addIncoming(range.rowBegin, entry);
    b.CreateCondBr(b.CreateICmpULT(row, range.rowEnd), inside, exit);
    b.SetInsertPoint(inside);
    Value* single = b.CreateICmpULT(b.CreateNUWSub(range.rowEnd, row), i64(rows));
    auto* m = llvm::dyn_cast<llvm::ConstantInt>(problem.m);
    if (m && m->getZExtValue() < rows)
      single = b.getTrue();
    Value* rowCount = b.CreateSelect(single, i64(1), i64(rows));
    body(row, rowCount);
    row->addIncoming(b.CreateNUWAdd(row, rowCount), b.GetInsertBlock());
    b.CreateBr(header);
    b.SetInsertPoint(exit);
  }

  using AlongK = llvm::function_ref<Value*(Value* index, Value* k, Value* valid)>;

  Value* sumOfLanes(Value* lanes) const {
    for (uint32_t half = plan.lanes / 2; half >= 1; half /= 2) {
      llvm::SmallVector<int, 16> low, high;
      for (uint32_t i = 0; i < half; i++)
        low.push_back(static_cast<int>(i)), high.push_back(static_cast<int>(half + i));
      lanes = b.CreateFAdd(b.CreateShuffleVector(lanes, low), b.CreateShuffleVector(lanes, high));
    }
    return b.CreateExtractElement(lanes, uint64_t(0));
  }

  /// Sums of rows × columns dot products, stored at `offset` of a tile with `tileColumns` columns.
  void emitDotTile(Value* row, uint32_t rows, Value* column, uint32_t columns, Value* offset, uint32_t tileColumns,
                   AlongK loadA, AlongK loadB) const {
    auto step = [&](Value* k, const Values& carried, Value* valid) {
      Values left, right, next;
      for (uint32_t r = 0; r < rows; r++)
        left.push_back(loadA(b.CreateNUWAdd(row, i64(r)), k, valid));
      for (uint32_t c = 0; c < columns; c++)
        right.push_back(loadB(b.CreateNUWAdd(column, i64(c)), k, valid));
      for (uint32_t i = 0; i < rows * columns; i++)
        next.push_back(
            b.CreateIntrinsic(llvm::Intrinsic::fmuladd, {vector}, {left[i / columns], right[i % columns], carried[i]}));
      return next;
    };
    Values sums(rows * columns, llvm::Constant::getNullValue(vector));
    Value* wholeEnd = emitWholeEnd(b, kBegin, kEnd, plan.lanes);
    sums = emitLoop(b, kBegin, wholeEnd, i64(plan.lanes), sums,
                    [&](Value* k, const Values& carried) { return step(k, carried, nullptr); });
    sums = emitLoop(b, wholeEnd, kEnd, i64(plan.lanes), sums,
                    [&](Value* k, const Values& carried) { return step(k, carried, b.CreateNUWSub(kEnd, k)); });
    for (uint32_t i = 0; i < rows * columns; i++) {
      const uint64_t at = uint64_t(i / columns) * tileColumns + i % columns;
      Value* out =
          b.CreateConstInBoundsGEP1_64(problem.type, b.CreateInBoundsGEP(problem.type, tileMemory, offset), at);
      b.CreateAlignedStore(sumOfLanes(sums[i]), out, elementAlign());
    }
  }

  /// Fills `rows` rows of a tile of `tileColumns` columns, `count` of which exist.
  void emitDotRows(Value* row, uint32_t rows, Value* column, Value* count, uint32_t tileColumns, AlongK loadA,
                   AlongK loadB) const {
    auto singles = [&] {
      emitLoop(b, i64(0), count, i64(1), [&](Value* offset) {
        emitDotTile(row, rows, b.CreateNUWAdd(column, offset), 1, offset, tileColumns, loadA, loadB);
      });
    };
    if (tileColumns == 1)
      return emitDotTile(row, rows, column, 1, i64(0), 1, loadA, loadB);
    emitIf(
        b, b.CreateICmpEQ(count, i64(tileColumns)),
        [&] { emitDotTile(row, rows, column, tileColumns, i64(0), tileColumns, loadA, loadB); }, singles);
  }

  /// Tiles of `rows` × `columns` of dot products.
  void emitDotTiles(uint32_t rows, uint32_t columns, AlongK loadA, AlongK loadB) const {
    emitRowGroups(rows, [&](Value* row, Value* rowCount) {
      emitLoop(b, range.columnBegin, range.columnEnd, i64(columns), [&](Value* column) {
        Value* count = emitMin(b, b.CreateNUWSub(range.columnEnd, column), i64(columns));
        emitIf(
            b, rows == 1 ? b.getTrue() : b.CreateICmpEQ(rowCount, i64(1)),
            [&] { emitDotRows(row, 1, column, count, columns, loadA, loadB); },
            [&] { emitDotRows(row, rows, column, count, columns, loadA, loadB); });
        finish.emit({tileMemory, 1, columns}, row, rowCount, column, count, /*unrolled=*/false);
      });
    });
  }

  /// Vectors of scratch rows along k; emitPackRows has padded them with zeros.
  Value* scratchVector(Value* memory, Value* index, Value* k) const {
    return b.CreateAlignedLoad(vector, scratchElement(memory, index, k), elementAlign());
  }

  void emitDot() const {
    auto loadA = [&](Value* row, Value* k, Value*) {
      return scratchVector(rowsOfA, b.CreateNUWSub(row, range.rowBegin), k);
    };
    auto loadB = [&](Value* column, Value* k, Value* valid) { return problem.b.load(b, k, column, plan.lanes, valid); };
    emitDotTiles(1, 4, loadA, loadB);
  }

  /// A straight from memory when it can be: each element is used at most directColumns times.
  void emitNarrow(bool loadsA) const {
    auto loadA = [&](Value* row, Value* k, Value* valid) {
      return loadsA ? problem.a.load(b, row, k, plan.lanes, valid)
                    : scratchVector(rowsOfA, b.CreateNUWSub(row, range.rowBegin), k);
    };
    auto loadB = [&](Value* column, Value* k, Value*) {
      return scratchVector(columnsOfB, b.CreateNUWSub(column, range.columnBegin), k);
    };
    emitDotTiles(4, 1, loadA, loadB);
  }
};

}  // namespace

namespace {

void emitLowOrNarrow(llvm::IRBuilderBase& b, const Plan& plan, const Problem& problem, Value* scratch,
                     const BlockRange& range, Value* isNarrow) {
  const ScratchLayout layout = directLayout(plan);
  auto at = [&](uint64_t offset) { return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), scratch, offset); };
  const PartialSums partial{at(layout.partialSums), plan.directNc, range.rowBegin, range.columnBegin};
  const PackSource sourceA{problem.a, true, problem.type, plan.lanes},
      sourceB{problem.b, false, problem.type, plan.lanes};
  auto* vector = llvm::FixedVectorType::get(problem.type, plan.lanes);
  Value *rowsOfA = at(layout.operands), *columnsOfB = at(layout.columns);
  // With a handful of columns every element of A is used a few times only: copying it first would cost as much as the
  // product.
  const bool narrowLoadsA = problem.a.contiguous == Contiguous::Column;
  emitSlices(b, problem.k, plan.directKc, [&](Value* kBegin, Value* kEnd, const Slice& slice) {
    const Finish finish{b, problem, partial, slice};
    const DirectBlock block{b, plan, problem, range, scratch, rowsOfA, columnsOfB, vector, kBegin, kEnd, finish};
    auto packA = [&] { emitPackRows(b, sourceA, rowsOfA, plan.directKc, range.rowBegin, range.rowEnd, kBegin, kEnd); };
    auto narrow = [&] {
      emitPackRows(b, sourceB, columnsOfB, plan.directKc, range.columnBegin, range.columnEnd, kBegin, kEnd);
      if (!narrowLoadsA)
        packA();
      block.emitNarrow(narrowLoadsA);
    };
    auto low = [&] {
      packA();
      problem.b.contiguous == Contiguous::Row ? block.emitDot() : block.emitOuter();
    };
    emitIf(b, isNarrow, narrow, low);
  });
}

}  // namespace

void emitDirectBlock(llvm::IRBuilderBase& b, const VectorFeatures&, const Plan& plan, const Problem& problem,
                     Value* scratch, const BlockRange& range) {
  Value* isNarrow = b.CreateICmpULE(problem.n, b.getInt64(plan.directColumns));
  Value* isLow = b.CreateICmpULT(problem.m, b.getInt64(plan.packedRows));
  emitIf(
      b, b.CreateOr(isNarrow, isLow), [&] { emitLowOrNarrow(b, plan, problem, scratch, range, isNarrow); },
      [&] { emitLocalBlock(b, plan, problem, scratch, range); });
}

}  // namespace vortex::target::cpu::gemm
