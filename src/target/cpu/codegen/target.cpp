#include "target/cpu/codegen/target.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <mutex>

#include "base/check.h"

namespace vortex::target::cpu::codegen {
namespace {

const char* const kTriple = "x86_64-unknown-linux-gnu";

void initializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
  });
}

/// Sorted, so that equal hosts give equal strings (they enter cache keys).
std::vector<std::pair<std::string, bool>> hostFeatures() {
  std::vector<std::pair<std::string, bool>> features;
  for (const auto& entry : llvm::sys::getHostCPUFeatures())
    features.emplace_back(entry.getKey().str(), entry.getValue());
  std::sort(features.begin(), features.end());
  return features;
}

std::string hostFeatureString() {
  std::string text;
  for (const auto& [name, present] : hostFeatures())
    text += (text.empty() ? "" : ",") + std::string(present ? "+" : "-") + name;
  return text;
}

VectorFeatures vectorFeatures(const llvm::MCSubtargetInfo& subtarget) {
  VectorFeatures result;
  auto has = [&](const char* feature) { return subtarget.checkFeatures(feature); };
  result.fma = has("+fma");
  result.f16Conversion = has("+f16c");
  result.avx2 = has("+avx2");
  result.avx512 = has("+avx512f,+avx512bw,+avx512dq,+avx512vl") && !has("-evex512");
  // Processors that LLVM tunes for 256 bits (a clock penalty of early AVX-512) still win with 512 in our kernels.
  result.vectorBytes = result.avx512 ? 64 : has("+avx") ? 32 : 16;
  result.vectorRegisters = result.avx512 ? 32 : 16;
  return result;
}

bool hostCanRun(const llvm::MCSubtargetInfo& subtarget) {
  for (const auto& [name, present] : hostFeatures())
    if (!present && subtarget.checkFeatures("+" + name))
      return false;
  return true;
}

Error unknownProcessor(const llvm::MCSubtargetInfo& subtarget, const std::string& cpu) {
  std::string close;
  for (const llvm::SubtargetSubTypeKV& known : subtarget.getAllProcessorDescriptions())
    if (llvm::StringRef(known.Key).edit_distance(cpu) <= 2 || llvm::StringRef(known.Key).starts_with(cpu))
      close += (close.empty() ? "" : ", ") + std::string(known.Key);
  return {"unknown processor '" + cpu + "' for x86-64" + (close.empty() ? "" : "; close names: " + close)};
}

}  // namespace

Target::Target() = default;
Target::Target(Target&&) noexcept = default;
Target& Target::operator=(Target&&) noexcept = default;
Target::~Target() = default;

Result<Target> createTarget(const TargetOptions& options) {
  initializeLlvm();
  std::string error;
  const llvm::Target* llvmTarget = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (!llvmTarget)
    return Error{"this LLVM has no x86-64 back end: " + error};
  Target target;
  const bool native = options.cpu == "native";
  if (native && llvm::Triple(llvm::sys::getProcessTriple()).getArch() != llvm::Triple::x86_64)
    return Error{"the CPU target 'native' needs an x86-64 host, this one is " + llvm::sys::getProcessTriple()};
  target.cpu = native ? llvm::sys::getHostCPUName().str() : options.cpu;
  std::unique_ptr<llvm::MCSubtargetInfo> plain(llvmTarget->createMCSubtargetInfo(kTriple, "", ""));
  if (!plain->isCPUStringValid(target.cpu)) {
    if (!native)
      return unknownProcessor(*plain, target.cpu);
    target.cpu = "x86-64-v2";  // newer than this LLVM: its features are still detected
  }
  target.features = native ? hostFeatureString() : "";
  if (!options.features.empty())
    target.features += (target.features.empty() ? "" : ",") + options.features;

  llvm::TargetOptions machineOptions;
  machineOptions.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // llvm.fmuladd and operations flagged `contract`
  target.machine.reset(llvmTarget->createTargetMachine(kTriple, target.cpu, target.features, machineOptions,
                                                       llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                       llvm::CodeGenOptLevel::Default));
  const llvm::MCSubtargetInfo& subtarget = *target.machine->getMCSubtargetInfo();
  if (!subtarget.checkFeatures("+sse4.1"))  // without it rounding would call the C library's f32 functions
    return Error{"the processor '" + target.cpu + "' lacks SSE4.1; the oldest supported one is 'x86-64-v2'"};
  target.vector = vectorFeatures(subtarget);
  target.runsOnHost = hostCanRun(subtarget);
  return target;
}

std::string identity(const TargetOptions& options) {
  const bool native = options.cpu == "native";
  return (native ? llvm::sys::getHostCPUName().str() + ";" + hostFeatureString() : options.cpu + ";") + ";" +
         options.features;
}

std::unique_ptr<llvm::Module> createModule(llvm::LLVMContext& context, const std::string& name, const Target& target) {
  auto module = std::make_unique<llvm::Module>(name, context);
  module->setTargetTriple(target.machine->getTargetTriple().str());
  module->setDataLayout(target.machine->createDataLayout());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  return module;
}

}  // namespace vortex::target::cpu::codegen
