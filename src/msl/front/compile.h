// Metal source to LLVM IR, by Clang.
#pragma once

#include "msl/front/files.h"
#include "msl/reader.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>

namespace vortex::msl::front {

struct FunctionConstant {
  std::string symbol;
  std::string name;
  uint32_t index = 0;
  Problem misfit;  ///< without a message: the place, for a value that the type has not
  bool isInteger = false;
  double least = 1, most = 0;  ///< of the type's values; none: values of the type cannot be given
};

/// LLVM IR for nvptx64, whose address spaces tell device memory (1) from threadgroup memory (3).
struct Unit {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  llvm::IntrusiveRefCntPtr<SourceFiles> files;
  std::vector<Kernel> kernels;
  std::vector<FunctionConstant> constants;
  std::vector<Problem> problems;
  /// void(pointer parameters of the requested kernel), which calls it with the rest from hooks. Null without a request.
  llvm::Function* entry = nullptr;
};

/// `precompiled`: the prelude as `precompilePrelude` wrote it with this version of Clang, which outlives the unit; empty: the prelude's text is read,
/// to the same effect.
std::unique_ptr<Unit> compile(const Request& request, llvm::StringRef precompiled);

}  // namespace vortex::msl::front
