// How scalars and vectors of vxt look as LLVM values.
//
// Values: i1 as i1, index as i64, f16 as half, bf16 as bfloat, f8 as i8 bits. Memory: the same, except that bool is one byte.
#pragma once

#include "target/interface/math/convert.h"

#include <llvm/IR/IRBuilder.h>
#include <mlir/IR/BuiltinTypes.h>

namespace vortex::target::gpu {

llvm::Type* valueType(llvm::LLVMContext& context, mlir::Type type, unsigned lanes = 1);
llvm::Type* memoryType(llvm::LLVMContext& context, mlir::Type type, unsigned lanes = 1);
/// Lanes of a vector type, 1 for scalars.
unsigned lanesOf(mlir::Type type);
/// Bits of a constant, splat over `lanes`; dense vectors element by element.
llvm::Constant* constantValue(llvm::LLVMContext& context, mlir::Attribute attribute, unsigned lanes = 1);
/// Of f8 types; others: none.
std::optional<math::Narrow> float8Format(mlir::Type type);
llvm::Value* toMemory(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value);
llvm::Value* fromMemory(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* stored);

}  // namespace vortex::target::gpu
