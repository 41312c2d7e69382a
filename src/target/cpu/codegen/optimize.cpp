// The pass list. The stock O2 pipeline takes 4–6 times longer on our kernels and gains nothing: what it would find
// (vectorisation, unrolling, inlining by cost) the emitters have already decided. Measured in codegen_test with
// VORTEX_PRINT_TIMES=1.
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "target/cpu/codegen/emit_object.h"
#include "target/interface/llvm_module.h"

namespace vortex::target::cpu::codegen {
namespace {

llvm::FunctionPassManager functionPasses() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));  // locals to registers
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));     // repeated index arithmetic and loads of slots
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager loops;
  loops.addPass(llvm::LoopRotatePass(/*EnableHeaderDuplication=*/true));
  loops.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), /*UseMemorySSA=*/true));
  passes.addPass(
      llvm::GVNPass(llvm::GVNOptions().setPRE(false)));  // loads made equal by rotation, partially redundant guards
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::ADCEPass());
  passes.addPass(llvm::SimplifyCFGPass());
  return passes;
}

}  // namespace

void optimize(llvm::Module& module, const Target& target) { runPasses(module, *target.machine, functionPasses()); }

}  // namespace vortex::target::cpu::codegen
