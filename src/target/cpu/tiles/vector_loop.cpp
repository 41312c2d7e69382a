#include "target/cpu/tiles/vector_loop.h"

#include "target/cpu/tiles/place.h"

namespace vortex::target::cpu::tiles {

using llvm::Value;

static std::optional<uint64_t> constantOf(Value* value) {
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value))
    return constant->getZExtValue();
  return std::nullopt;
}

/// for (i = lower; i < upper; i += step), without a loop where it is known to run at most once.
static Values emitRange(Emitter& e, Value* lower, Value* upper, uint64_t step, Values carried,
                        llvm::function_ref<Values(Value* i, llvm::ArrayRef<Value*> carried)> body) {
  auto from = constantOf(lower), to = constantOf(upper);
  if (from && to && *from >= *to)
    return carried;
  if (from && to && *from + step >= *to)
    return body(lower, carried);
  return emit::emitFor(e.ir, lower, upper, e.i64(step), carried, body);
}

Values emitCounted(Emitter& e, Value* count, Values carried,
                   llvm::function_ref<Values(Value* i, llvm::ArrayRef<Value*> carried)> body) {
  return emitRange(e, e.i64(0), count, 1, std::move(carried), body);
}

unsigned copiesFor(unsigned cost) { return cost <= 40 ? 4 : cost <= 80 ? 2 : 1; }

Values splitLanes(Emitter& e, Value* value, unsigned lanes) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  if (!type || type->getNumElements() == lanes)
    return {value};
  Values pieces;
  for (unsigned first = 0; first < type->getNumElements(); first += lanes) {
    llvm::SmallVector<int> order;
    for (unsigned lane = 0; lane < lanes; ++lane)
      order.push_back(int(first + lane));
    pieces.push_back(e.ir.CreateShuffleVector(value, order));
  }
  return pieces;
}

/// count rounded down to whole iterations of the main loop.
static Value* mainCount(Emitter& e, Value* count, LoopShape shape) {
  return e.ir.CreateAnd(count, e.ir.getInt64(~uint64_t(shape.lanes * shape.copies - 1)));
}

static Values emitMain(Emitter& e, Value* begin, Value* end, LoopShape shape, Values carried, VectorBody body) {
  const unsigned lanes = shape.lanes * shape.copies;
  return emitRange(e, begin, end, lanes, std::move(carried), [&](Value* i, llvm::ArrayRef<Value*> inside) {
    Values next(inside.begin(), inside.end());
    body(i, nullptr, lanes, next);
    return next;
  });
}

static Values emitMasked(Emitter& e, Value* begin, Value* end, LoopShape shape, Values carried, VectorBody body) {
  return emitRange(e, begin, end, shape.lanes, std::move(carried), [&](Value* i, llvm::ArrayRef<Value*> inside) {
    Values next(inside.begin(), inside.end());
    Value* mask = shape.lanes == 1 ? nullptr : firstLanes(e.ir, shape.lanes, e.ir.CreateSub(end, i));
    body(i, mask, shape.lanes, next);
    return next;
  });
}

Values emitVectorLoop(Emitter& e, Value* count, LoopShape shape, Values carried, VectorBody body) {
  if (shape.lanes == 1 && shape.copies == 1)
    return emitMain(e, e.i64(0), count, shape, std::move(carried), body);
  Value* end = mainCount(e, count, shape);
  carried = emitMain(e, e.i64(0), end, shape, std::move(carried), body);
  return emitMasked(e, end, count, shape, std::move(carried), body);
}

void emitStreamingLoop(Emitter& e, Value* count, LoopShape shape, Value* streaming, Value* head, StreamBody body) {
  llvm::IRBuilder<>& ir = e.ir;
  Value* begin = ir.CreateSelect(streaming, head, e.i64(0));
  Value* end = ir.CreateAdd(begin, mainCount(e, ir.CreateSub(count, begin), shape));
  // Head and rest share one copy of the masked code: two rounds, the main part in between.
  emit::emitFor(ir, e.i64(0), e.i64(2), e.i64(1), [&](Value* round) {
    Value* isHead = ir.CreateICmpEQ(round, e.i64(0));
    emitMasked(e, ir.CreateSelect(isHead, e.i64(0), end), ir.CreateSelect(isHead, begin, count), shape, {},
               [&](Value* i, Value* mask, unsigned lanes, Values&) { body(i, mask, lanes, false); });
    auto main = [&](bool streams) {
      emitMain(e, begin, end, shape, {},
               [&](Value* i, Value* mask, unsigned lanes, Values&) { body(i, mask, lanes, streams); });
      return Values{};
    };
    emit::emitIf(ir, isHead,
                 [&] { emit::emitIf(ir, streaming, [&] { return main(true); }, [&] { return main(false); }); });
  });
}

}  // namespace vortex::target::cpu::tiles
