#pragma once

#include "msl/front/kernels.h"

namespace clang::CodeGen {
class CodeGenModule;
}

namespace vortex::msl::front {

/// A function of the kernel's pointers alone. What else the kernel takes comes from hooks: `__vx_input_<name>(axis)`.
llvm::Function* makeEntry(clang::CodeGen::CodeGenModule& codegen, clang::ASTContext& context, const FoundKernel& kernel,
                          llvm::Function* function);

}  // namespace vortex::msl::front
