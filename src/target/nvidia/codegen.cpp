// A short pass list as on the CPU (target/cpu/codegen/optimize.cpp), plus full unrolling of short loops: an array that is then indexed by
// constants only becomes registers instead of local memory. ptxas optimises again.
#include "target/nvidia/codegen.h"

#include "base/check.h"
#include "target/interface/llvm_module.h"
#include "target/nvidia/exact_integers.h"
#include "target/nvidia/narrow_lanes.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/CorrelatedValuePropagation.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <mutex>

namespace vortex::target::nvidia {

static const char* const kTriple = "nvptx64-nvidia-cuda";

static void initializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

namespace {
struct Chip {
  const char *name, *architecture, *features;
  unsigned number;
};
/// PTX 8.0 is read by drivers from CUDA 12.0 on, and the oldest with sm_90a; sm_80 code keeps to 7.4 (CUDA 11.4).
constexpr Chip kChips[] = {{"sm_90", "sm_90a", "+ptx80", 90}, {"sm_80", "sm_80", "+ptx74", 80}};
}  // namespace

std::vector<std::string> targetNames() {
  std::vector<std::string> names;
  for (const Chip& chip : kChips)
    names.push_back(chip.name);
  return names;
}

Result<Target> createTarget(const std::string& name) {
  initializeLlvm();
  // PTX for an older chip runs on every later one; "a" features do not.
  unsigned number = 0;
  bool isKnown = llvm::any_of(kChips, [&](const Chip& chip) { return name == chip.name; });
  bool isLater = !isKnown && llvm::StringRef(name).starts_with("sm_") &&
                 !llvm::StringRef(name).drop_front(3).getAsInteger(10, number) && number > 80;
  for (const Chip& chip : kChips) {
    if (isLater ? llvm::StringRef(chip.name) != "sm_80" : name != chip.name)
      continue;
    std::string error;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, error);
    if (!target)
      return base::Error{"LLVM has no NVPTX back end: " + error};
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // only where the program allows contraction
    Target result{chip.name, chip.architecture, chip.features, chip.number, nullptr};
    result.machine.reset(target->createTargetMachine(kTriple, chip.architecture, chip.features, options,
                                                     llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
    return result;
  }
  std::string known;
  for (const std::string& each : targetNames())
    known += (known.empty() ? "" : ", ") + each;
  return base::Error{"there is no target `" + name + "`; NVIDIA targets are " + known};
}

std::unique_ptr<llvm::Module> createModule(llvm::LLVMContext& context, llvm::StringRef name, const Target& target) {
  auto module = std::make_unique<llvm::Module>(name, context);
  module->setTargetTriple(kTriple);
  module->setDataLayout(target.machine->createDataLayout());
  return module;
}

namespace {
/// Full unrolling where it pays: in small functions, and where an array is left that constant indices would turn into registers. Elsewhere (tile
/// code, which is unrolled as far as it should be) it only makes work for the assembler.
struct UnrollSmallOrIndexed : llvm::PassInfoMixin<UnrollSmallOrIndexed> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    constexpr unsigned kSmall = 1000;  // instructions
    bool hasArrays =
        llvm::any_of(function.getEntryBlock(), [](auto& each) { return llvm::isa<llvm::AllocaInst>(each); });
    if (!hasArrays && function.getInstructionCount() > kSmall)
      return llvm::PreservedAnalyses::all();
    llvm::LoopPassManager unrolling;
    unrolling.addPass(llvm::IndVarSimplifyPass());
    unrolling.addPass(llvm::LoopFullUnrollPass());
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(unrolling)));
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    return passes.run(function, analyses);
  }
};
}  // namespace

static llvm::FunctionPassManager functionPasses() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager loops;
  loops.addPass(llvm::LoopRotatePass(/*EnableHeaderDuplication=*/true));
  loops.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), /*UseMemorySSA=*/true));
  passes.addPass(UnrollSmallOrIndexed());
  passes.addPass(llvm::CorrelatedValuePropagationPass());  // divisions and extensions of thread ids narrow
  passes.addPass(llvm::GVNPass(llvm::GVNOptions().setPRE(false)));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::ADCEPass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(SplitNarrowLanes());
  return passes;
}

void optimize(llvm::Module& module, const Target& target) { runPasses(module, *target.machine, functionPasses()); }

/// The back end's own passes, as addPassesToEmitFile has them, but for those of `without`.
static void addBackEnd(llvm::legacy::PassManager& passes, llvm::LLVMTargetMachine& machine,
                       llvm::raw_pwrite_stream& stream, llvm::ArrayRef<llvm::AnalysisID> without) {
  auto* info = new llvm::MachineModuleInfoWrapperPass(&machine);
  llvm::TargetPassConfig* config = machine.createPassConfig(passes);
  config->setDisableVerify(true);
  for (llvm::AnalysisID pass : without)
    config->disablePass(pass);
  passes.add(config);
  passes.add(info);
  bool unsupported = config->addISelPasses();
  config->addMachinePasses();
  config->setInitialized();
  unsupported |=
      machine.addAsmPrinter(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile, info->getMMI().getContext());
  VORTEX_CHECK(!unsupported, "the NVPTX back end cannot emit PTX");
  passes.add(llvm::createFreeMachineFunctionPass());
}

std::string emitPtx(llvm::Module& module, const Target& target) {
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  llvm::SmallVector<llvm::AnalysisID, 1> without;
  if (llvm::any_of(module, [](const llvm::Function& each) { return each.hasFnAttribute(kKeepsRegisters); }))
    without.push_back(&llvm::MachineCSEID);
  addBackEnd(passes, static_cast<llvm::LLVMTargetMachine&>(*target.machine), stream, without);
  passes.run(module);
  return withExactIntegers(std::string(text.begin(), text.end()));
}

}  // namespace vortex::target::nvidia
