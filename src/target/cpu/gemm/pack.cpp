// Three ways, by what is contiguous in memory: along k: blocks of lanes × lanes elements are loaded and transposed in
// registers; across: straight vector copies; neither: element by element. Rows of A (columns of B) past the edge repeat
// the last one or are zero: their sums are never looked at.
#include "target/cpu/gemm/pack.h"

namespace vortex::target::cpu::gemm {
namespace {

using llvm::Value;

/// In place, n × n with n a power of two: log2 n rounds, each swapping off-diagonal blocks of half the previous size.
void transpose(llvm::IRBuilderBase& b, Values& rows) {
  const int n = static_cast<int>(rows.size());
  for (int half = n / 2; half >= 1; half /= 2) {
    llvm::SmallVector<int, 64> low, high;
    for (int lane = 0; lane < n; lane++) {
      low.push_back((lane & half) == 0 ? lane : n + lane - half);
      high.push_back((lane & half) == 0 ? lane + half : n + lane);
    }
    for (int i = 0; i < n; i++) {
      if (i & half)
        continue;
      Value *first = rows[i], *second = rows[i + half];
      rows[i] = b.CreateShuffleVector(first, second, low);
      rows[i + half] = b.CreateShuffleVector(first, second, high);
    }
  }
}

Value* at(llvm::IRBuilderBase& b, llvm::Type* type, Value* base, Value* index) {
  return b.CreateInBoundsGEP(type, base, index);
}

struct Panel {
  const PackSource& source;
  uint32_t width;
  Value* memory;
  Value *first, *last;  ///< across; `last` exists
  Value* kOrigin;

  Value* step(llvm::IRBuilderBase& b, Value* k) const {
    return at(b, source.type, memory, b.CreateNUWMul(b.CreateNUWSub(k, kOrigin), b.getInt64(width)));
  }
  Value* across(llvm::IRBuilderBase& b, Value* i) const { return emitMin(b, b.CreateNUWAdd(first, i), last); }
};

/// Whole vectors along k, groups of `lanes` across are transposed.
void packAlongK(llvm::IRBuilderBase& b, const Panel& p, Value* kBegin, Value* kEnd) {
  const PackSource& s = p.source;
  const llvm::Align alignment(s.type->getScalarSizeInBits() / 8);
  Values across;
  for (uint32_t i = 0; i < p.width; i++)
    across.push_back(p.across(b, b.getInt64(i)));
  emitLoop(b, kBegin, kEnd, b.getInt64(s.lanes), [&](Value* k) {
    Value* target = p.step(b, k);
    for (uint32_t group = 0; group < p.width; group += s.lanes) {
      const uint32_t used = std::min(s.lanes, p.width - group);
      Values rows;
      for (uint32_t r = 0; r < used; r++)
        rows.push_back(s.load(b, across[group + r], k, s.lanes));
      rows.resize(s.lanes, llvm::PoisonValue::get(rows[0]->getType()));
      transpose(b, rows);
      for (uint32_t step = 0; step < s.lanes; step++) {
        Value* row = rows[step];
        if (used < s.lanes) {
          llvm::SmallVector<int, 16> kept;
          for (uint32_t lane = 0; lane < used; lane++)
            kept.push_back(static_cast<int>(lane));
          row = b.CreateShuffleVector(row, kept);
        }
        b.CreateAlignedStore(row, b.CreateConstInBoundsGEP1_64(s.type, target, uint64_t(step) * p.width + group),
                             alignment);
      }
    }
  });
}

void packElements(llvm::IRBuilderBase& b, const Panel& p, Value* kBegin, Value* kEnd) {
  emitLoop(b, kBegin, kEnd, b.getInt64(1), [&](Value* k) {
    Value* target = p.step(b, k);
    emitLoop(b, b.getInt64(0), b.getInt64(p.width), b.getInt64(1),
             [&](Value* i) { b.CreateStore(p.source.load(b, p.across(b, i), k, 1), at(b, p.source.type, target, i)); });
  });
}

/// `existing` null: all of the panel exists.
void packAcross(llvm::IRBuilderBase& b, const Panel& p, Value* existing, Value* kBegin, Value* kEnd) {
  const PackSource& s = p.source;
  const llvm::Align alignment(s.type->getScalarSizeInBits() / 8);
  emitLoop(b, kBegin, kEnd, b.getInt64(1), [&](Value* k) {
    Value* target = p.step(b, k);
    if (!existing)
      return emitPackStep(b, s, p.width, target, p.first, k);
    for (uint32_t group = 0; group < p.width; group += s.lanes) {
      const uint32_t count = std::min(s.lanes, p.width - group);
      Value* valid = b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, existing, b.getInt64(group));
      Value* row = s.load(b, p.across(b, b.getInt64(group)), k, count, emitMin(b, valid, b.getInt64(count)));
      b.CreateAlignedStore(row, b.CreateConstInBoundsGEP1_64(s.type, target, group), alignment);
    }
  });
}

}  // namespace

void emitPackStep(llvm::IRBuilderBase& b, const PackSource& s, uint32_t width, Value* target, Value* first, Value* k) {
  const llvm::Align alignment(s.type->getScalarSizeInBits() / 8);
  for (uint32_t group = 0; group < width; group += s.lanes) {
    const uint32_t count = std::min(s.lanes, width - group);
    Value* row = s.load(b, b.CreateNUWAdd(first, b.getInt64(group)), k, count);
    b.CreateAlignedStore(row, b.CreateConstInBoundsGEP1_64(s.type, target, group), alignment);
  }
}

void emitPackPanel(llvm::IRBuilderBase& b, const PackSource& s, uint32_t width, Value* memory, Value* first,
                   Value* acrossEnd, Value* kBegin, Value* kEnd, bool isRagged) {
  const Panel panel{s, width, memory, first, b.CreateNUWSub(acrossEnd, b.getInt64(1)), kBegin};
  if (s.contiguousAcross()) {
    Value* existing = emitMin(b, b.CreateNUWSub(acrossEnd, first), b.getInt64(width));
    Value* whole = isRagged ? b.getFalse() : b.CreateICmpEQ(existing, b.getInt64(width));
    emitIf(
        b, whole, [&] { packAcross(b, panel, nullptr, kBegin, kEnd); },
        [&] { packAcross(b, panel, existing, kBegin, kEnd); });
    return;
  }
  Value* from = kBegin;
  if (s.contiguousAlongK()) {
    from = emitWholeEnd(b, kBegin, kEnd, s.lanes);
    packAlongK(b, panel, kBegin, from);
  }
  packElements(b, panel, from, kEnd);
}

void emitPackRows(llvm::IRBuilderBase& b, const PackSource& s, Value* rows, uint64_t stride, Value* first,
                  Value* acrossEnd, Value* kBegin, Value* kEnd) {
  const llvm::Align alignment(s.type->getScalarSizeInBits() / 8);
  emitLoop(b, first, acrossEnd, b.getInt64(1), [&](Value* i) {
    Value* row = at(b, s.type, rows, b.CreateNUWMul(b.CreateNUWSub(i, first), b.getInt64(stride)));
    Value* from = kBegin;
    if (s.contiguousAlongK()) {
      from = emitWholeEnd(b, kBegin, kEnd, s.lanes);
      emitLoop(b, kBegin, from, b.getInt64(s.lanes), [&](Value* k) {
        b.CreateAlignedStore(s.load(b, i, k, s.lanes), at(b, s.type, row, b.CreateNUWSub(k, kBegin)), alignment);
      });
    }
    emitLoop(b, from, kEnd, b.getInt64(1),
             [&](Value* k) { b.CreateStore(s.load(b, i, k, 1), at(b, s.type, row, b.CreateNUWSub(k, kBegin))); });
    Value* depth = b.CreateNUWSub(kEnd, kBegin);
    Value* padded = b.CreateAnd(b.CreateNUWAdd(depth, b.getInt64(s.lanes - 1)), b.getInt64(~uint64_t(s.lanes - 1)));
    emitLoop(b, depth, padded, b.getInt64(1),
             [&](Value* k) { b.CreateStore(llvm::Constant::getNullValue(s.type), at(b, s.type, row, k)); });
  });
}

}  // namespace vortex::target::cpu::gemm
