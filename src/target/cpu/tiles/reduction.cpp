#include "target/cpu/tiles/reduction.h"

#include "target/cpu/emit/atomics.h"
#include "target/cpu/tiles/vector_loop.h"

namespace vortex::target::cpu::tiles {

using emit::Values;
using llvm::Value;

static unsigned lanesOf(Value* value) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector ? vector->getNumElements() : 1;
}

Value* Reduction::neutral(unsigned lanes) {
  mlir::TypedAttr attribute = ir::neutralElement(kind_, type_);
  if (!emit::narrowFormat(type_))
    return emit::constantValue(e_.context(), attribute, lanes);
  llvm::APFloat value = mlir::cast<mlir::FloatAttr>(attribute).getValue();
  bool lost = false;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &lost);
  return emit::splat(e_.ir, llvm::ConstantFP::get(e_.context(), value), lanes);
}

Value* Reduction::widen(Value* value) {
  auto format = emit::narrowFormat(type_);
  return format ? math::emitWiden(e_.ir, e_.features, *format, value) : value;
}

Value* Reduction::narrow(Value* accumulated) {
  auto format = emit::narrowFormat(type_);
  return format ? math::emitNarrow(e_.ir, e_.features, *format, accumulated) : accumulated;
}

Value* Reduction::combine(Value* a, Value* b) {
  bool isMax = kind_ == ir::Combine::MaxF;
  if (!isMax && kind_ != ir::Combine::MinF)
    return emit::emitCombine(e_.ir, kind_, a, b, false);
  // Three instructions, where llvm.maximum takes seven to order the two zeros. `a` is kept when it is NaN, `b` taken when it is.
  Value* better = isMax ? e_.ir.CreateFCmpOGT(b, a) : e_.ir.CreateFCmpOLT(b, a);
  Value* picked = e_.ir.CreateSelect(better, b, a);
  return e_.ir.CreateSelect(e_.ir.CreateFCmpUNO(b, b), b, picked);
}

Value* Reduction::combineMasked(Value* a, Value* b, Value* mask) {
  Value* combined = combine(a, b);
  return mask ? e_.ir.CreateSelect(mask, combined, a) : combined;
}

Value* Reduction::beyond(Value* a, Value* b) {
  Value* better = kind_ == ir::Combine::MaxF ? e_.ir.CreateFCmpOGT(b, a) : e_.ir.CreateFCmpOLT(b, a);
  return e_.ir.CreateSelect(better, b, a);
}

Values Reduction::start(unsigned lanes, unsigned count) {
  Values carried(count, neutral(lanes));
  if (notesNan(lanes))
    carried.push_back(llvm::Constant::getNullValue(
        llvm::VectorType::getInteger(llvm::cast<llvm::VectorType>(carried[0]->getType()))));
  return carried;
}

void Reduction::accumulate(llvm::MutableArrayRef<Value*> accumulators, Value* value, unsigned lanes, Value* mask) {
  Values pieces = splitLanes(e_, value, lanes);
  const bool notes = notesNan(lanes);
  if (notes && mask)
    pieces[0] = e_.ir.CreateSelect(mask, pieces[0], accumulators[0]);
  if (notes) {
    Value*& noted = accumulators.back();
    for (size_t i = 0; i < pieces.size(); i += 2) {  // one comparison finds a NaN in either of two vectors
      Value* unordered = e_.ir.CreateFCmpUNO(pieces[i], pieces[std::min(i + 1, pieces.size() - 1)]);
      noted = e_.ir.CreateOr(noted, e_.ir.CreateSExt(unordered, noted->getType()));
    }
    accumulators = accumulators.drop_back();
  }
  auto join = [&](Value* a, Value* b) { return notes ? beyond(a, b) : combine(a, b); };
  for (; pieces.size() > accumulators.size(); pieces.resize(pieces.size() / 2))
    for (size_t i = 0; i < pieces.size() / 2; ++i)
      pieces[i] = join(pieces[2 * i], pieces[2 * i + 1]);
  for (auto [i, piece] : llvm::enumerate(pieces))
    accumulators[i] = notes ? beyond(accumulators[i], piece) : combineMasked(accumulators[i], piece, mask);
}

Value* Reduction::finish(llvm::ArrayRef<Value*> accumulators) {
  Values left(accumulators.begin(), accumulators.end());
  Value* hasNan = nullptr;
  if (notesNan(lanesOf(left[0]))) {
    Value* noted = left.pop_back_val();
    hasNan = emit::anyLane(e_.ir, e_.ir.CreateICmpNE(noted, llvm::Constant::getNullValue(noted->getType())));
  }
  while (left.size() > 1) {
    Values next;
    for (size_t i = 0; i + 1 < left.size(); i += 2)
      next.push_back(combine(left[i], left[i + 1]));
    if (left.size() % 2)
      next.push_back(left.back());
    left = next;
  }
  Value* lanes = left[0];
  for (unsigned half = lanesOf(lanes) / 2; half >= 1; half /= 2) {
    llvm::SmallVector<int> low, high;
    for (unsigned i = 0; i < half; ++i)
      low.push_back(i), high.push_back(half + i);
    lanes = combine(e_.ir.CreateShuffleVector(lanes, low), e_.ir.CreateShuffleVector(lanes, high));
  }
  if (lanes->getType()->isVectorTy())
    lanes = e_.ir.CreateExtractElement(lanes, uint64_t(0));
  if (hasNan)
    lanes = e_.ir.CreateSelect(hasNan, llvm::ConstantFP::getQNaN(lanes->getType()), lanes);
  return narrow(lanes);
}

Value* Reduction::orEmpty(Value* result, llvm::ArrayRef<Value*> extents) {
  if (kind_ != ir::Combine::AddF)
    return result;
  Value* isEmpty = e_.ir.getFalse();
  for (Value* extent : extents)
    isEmpty = e_.ir.CreateOr(isEmpty, e_.ir.CreateICmpEQ(extent, e_.i64(0)));
  return e_.ir.CreateSelect(isEmpty, llvm::Constant::getNullValue(result->getType()), result);
}

Value* Reduction::prefix(Value* lanes) {
  unsigned count = lanesOf(lanes);
  if (count == 1)
    return lanes;
  Value* empty = neutral(count);
  for (unsigned step = 1; step < count; step *= 2) {
    llvm::SmallVector<int> order;
    for (unsigned i = 0; i < count; ++i)
      order.push_back(i < step ? int(count + i) : int(i - step));
    lanes = combine(e_.ir.CreateShuffleVector(lanes, empty, order), lanes);
  }
  return lanes;
}

}  // namespace vortex::target::cpu::tiles
