#include "target/nvidia/wide_functions.h"

namespace vortex::target::nvidia {

llvm::Value* emitWideUnary(llvm::IRBuilder<>&, math::Unary, llvm::Value*) { return nullptr; }
llvm::Value* emitWideBinary(llvm::IRBuilder<>&, math::Binary, llvm::Value*, llvm::Value*) { return nullptr; }

}  // namespace vortex::target::nvidia
