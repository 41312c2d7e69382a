// The pass list. The stock O2 pipeline takes 4–6 times longer on our kernels and gains nothing: what it would find
// (vectorisation, unrolling, inlining by cost) the emitters have already decided. Measured in codegen_test with
// VORTEX_PRINT_TIMES=1.
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
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

/// InstCombine makes minimum and maximum of halves of those that were emitted in f32. Without instructions for halves
/// LLVM 19 expands them so that a NaN against a zero is lost, and calls fminf and fmaxf for minnum and maxnum.
void widenHalves(llvm::Function& function) {
  llvm::SmallVector<llvm::IntrinsicInst*> halves;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (!call || call->getType()->getScalarSizeInBits() != 16)
      continue;
    switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::minimum:
    case llvm::Intrinsic::maximum:
    case llvm::Intrinsic::minnum:
    case llvm::Intrinsic::maxnum: halves.push_back(call); break;
    default: break;
    }
  }
  for (llvm::IntrinsicInst* call : halves) {
    llvm::IRBuilder<> b(call);
    llvm::Type* type = call->getType()->getWithNewType(b.getFloatTy());
    llvm::Value *x = b.CreateFPExt(call->getArgOperand(0), type), *y = b.CreateFPExt(call->getArgOperand(1), type);
    llvm::Value* wide = b.CreateBinaryIntrinsic(call->getIntrinsicID(), x, y, call);
    for (llvm::User* user : llvm::make_early_inc_range(call->users()))
      if (auto* extended = llvm::dyn_cast<llvm::FPExtInst>(user); extended && extended->getType() == type) {
        extended->replaceAllUsesWith(wide);
        extended->eraseFromParent();
      }
    call->replaceAllUsesWith(b.CreateFPTrunc(wide, call->getType()));
    call->eraseFromParent();
  }
}

}  // namespace

void optimize(llvm::Module& module, const Target& target) {
  runPasses(module, *target.machine, functionPasses());
  for (llvm::Function& function : module)
    widenHalves(function);
}

}  // namespace vortex::target::cpu::codegen
