// How scalars of vx look as LLVM values and in memory.
//
// Values: i1 as i1, index as i64, integers as themselves, f32/f64 as float/double, f16 and bf16 as i16 bits, f8 as i8 bits (math/convert.h
// computes on them through f32). A vector of n lanes is <n x that>; lanes == 1 means the plain scalar.
// Memory: the same, except that bool is one byte, 0 or 1.
#pragma once

#include "target/interface/math/convert.h"

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <mlir/IR/BuiltinTypes.h>
#include <optional>

namespace vortex::target::cpu::emit {

/// `type`: a scalar type (for tensors their element type is taken).
llvm::Type* valueType(llvm::LLVMContext& context, mlir::Type type, unsigned lanes = 1);
llvm::Type* memoryType(llvm::LLVMContext& context, mlir::Type type, unsigned lanes = 1);
/// Bytes of one element in memory.
uint64_t elementBytes(mlir::Type type);
/// f16, bf16 and the f8 types; nothing for every other type.
std::optional<math::Narrow> narrowFormat(mlir::Type type);

/// Value ↔ what is stored, for scalars and vectors.
llvm::Value* toMemory(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value);
llvm::Value* fromMemory(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* stored);

/// Bits of the scalar constant `attribute` in its value type.
llvm::Constant* constantValue(llvm::LLVMContext& context, mlir::Attribute attribute, unsigned lanes = 1);

/// Scalar → vector of `lanes`; lanes == 1 and vectors are returned unchanged.
llvm::Value* splat(llvm::IRBuilder<>& ir, llvm::Value* value, unsigned lanes);

/// Contiguous access of `lanes` elements at `pointer` with element alignment, in value form. `mask` null: all lanes; else <lanes x i1>
/// (i1 when lanes == 1), masked-off lanes touch no memory and read as zero. Masked accesses may add basic blocks.
llvm::Value* emitLoad(llvm::IRBuilder<>& ir, const VectorFeatures& features, mlir::Type type, llvm::Value* pointer,
                      unsigned lanes, llvm::Value* mask = nullptr);
void emitStore(llvm::IRBuilder<>& ir, const VectorFeatures& features, mlir::Type type, llvm::Value* value,
               llvm::Value* pointer, unsigned lanes, llvm::Value* mask = nullptr);

/// Stores whole cache lines, or pieces that `alignment` bytes align, around the caches.
void emitStreamingStore(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value, llvm::Value* pointer,
                        uint64_t alignment);
/// Asks for the cache lines of `bytes` bytes; the memory need not exist.
void emitPrefetch(llvm::IRBuilder<>& ir, llvm::Value* pointer, uint64_t bytes);

/// Calls body(lane as i64) for every set lane of a <n x i1> mask, in ascending order.
void emitForActiveLanes(llvm::IRBuilder<>& ir, llvm::Value* mask, llvm::function_ref<void(llvm::Value* lane)> body);
/// i1: some lane is set; every lane is set. For lanes == 1 the mask itself.
llvm::Value* anyLane(llvm::IRBuilder<>& ir, llvm::Value* mask);
llvm::Value* allLanes(llvm::IRBuilder<>& ir, llvm::Value* mask);
/// <n x i1> as an integer of n bits.
llvm::Value* maskBits(llvm::IRBuilder<>& ir, llvm::Value* mask);

/// pointer + index elements of `type`, index an i64.
llvm::Value* elementPointer(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* pointer, llvm::Value* index);

}  // namespace vortex::target::cpu::emit
