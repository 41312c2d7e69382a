// What every back end does with a module of LLVM IR.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Target/TargetMachine.h>

#include <string>

namespace vortex::target {

/// Inlines what must be, drops what nobody calls, and runs the passes on each function that is left.
void runPasses(llvm::Module& module, llvm::TargetMachine& machine, llvm::FunctionPassManager passes);

/// The module as text.
std::string printModule(const llvm::Module& module);

/// What the verifier complains about; empty if nothing.
std::string verify(const llvm::Module& module);

}  // namespace vortex::target
