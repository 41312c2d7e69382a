// The innermost loop: whole vectors, then the masked rest.
#pragma once

#include "target/cpu/emit/emitter.h"

namespace vortex::target::cpu::tiles {

using emit::Emitter;
using emit::Values;

struct LoopShape {
  unsigned lanes = 1;   ///< power of two
  unsigned copies = 1;  ///< vectors per iteration of the main loop, power of two
};
/// Vectors of one iteration for bodies of this cost (closure.h): side by side they hide each other's latencies; too many spill.
unsigned copiesFor(unsigned cost);

/// body(index, mask, lanes, carried): `lanes` elements from index on, lanes · copies without a mask in the main loop, lanes with one in the
/// rest. One wide vector, not several narrow ones in turn: its instructions come out interleaved. Updates carried.
using VectorBody = llvm::function_ref<void(llvm::Value* index, llvm::Value* mask, unsigned lanes, Values& carried)>;
Values emitVectorLoop(Emitter& e, llvm::Value* count, LoopShape shape, Values carried, VectorBody body);

/// A loop whose main part can be emitted twice: body(…, streaming). `streaming` (i1) chooses; then `head` elements (i64, ≤ count) come before
/// the main part, masked, so that it starts aligned.
using StreamBody = llvm::function_ref<void(llvm::Value* index, llvm::Value* mask, unsigned lanes, bool streaming)>;
void emitStreamingLoop(Emitter& e, llvm::Value* count, LoopShape shape, llvm::Value* streaming, llvm::Value* head,
                       StreamBody body);

/// `value` in pieces of `lanes`.
Values splitLanes(Emitter& e, llvm::Value* value, unsigned lanes);

/// for (i = 0; i < count; ++i); straight-line code when count is the constant 1.
Values emitCounted(Emitter& e, llvm::Value* count, Values carried,
                   llvm::function_ref<Values(llvm::Value* i, llvm::ArrayRef<llvm::Value*> carried)> body);

}  // namespace vortex::target::cpu::tiles
