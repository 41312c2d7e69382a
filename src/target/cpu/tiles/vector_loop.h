// The innermost loop: whole vectors, then the masked rest.
#pragma once

#include "target/cpu/emit/emitter.h"

namespace vortex::target::cpu::tiles {

using emit::Emitter;
using emit::Values;

struct LoopShape {
  unsigned lanes = 1;   ///< power of two
  unsigned unroll = 1;  ///< vectors per iteration of the main loop, power of two
};

/// body(index, mask, copy, carried): `lanes` elements from index on; mask null: all exist. `copy` < unroll numbers the vector within an
/// iteration of the main loop (0 in the rest). Updates carried.
using VectorBody = llvm::function_ref<void(llvm::Value* index, llvm::Value* mask, unsigned copy, Values& carried)>;
Values emitVectorLoop(Emitter& e, llvm::Value* count, LoopShape shape, Values carried, VectorBody body);

/// A loop whose main part can be emitted twice: body(…, streaming). `streaming` (i1) chooses; then `head` elements (i64, ≤ count) come before
/// the main part, masked, so that it starts aligned.
using StreamBody = llvm::function_ref<void(llvm::Value* index, llvm::Value* mask, bool streaming)>;
void emitStreamingLoop(Emitter& e, llvm::Value* count, LoopShape shape, llvm::Value* streaming, llvm::Value* head,
                       StreamBody body);

/// for (i = 0; i < count; ++i); straight-line code when count is the constant 1.
Values emitCounted(Emitter& e, llvm::Value* count, Values carried,
                   llvm::function_ref<Values(llvm::Value* i, llvm::ArrayRef<llvm::Value*> carried)> body);

}  // namespace vortex::target::cpu::tiles
