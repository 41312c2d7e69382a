#include "target/cpu/codegen/emit_object.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <mutex>

#include "base/check.h"

namespace vortex::target::cpu::codegen {
namespace {

/// Loop strength reduction (with its freeze canonicalisation) takes a quarter of the code generator's time on our
/// kernels and gains nothing: addresses are base + index · element size, which x86 computes for free. LLVM has no
/// option in the API, only a command-line flag, read while the pass list is built; it is set for just as long.
class WithoutLoopStrengthReduction {
public:
  WithoutLoopStrengthReduction() : lock_(mutex()), flag_(find()), before_(flag_ && flag_->getValue()) {
    if (flag_)
      flag_->setValue(true);
  }
  ~WithoutLoopStrengthReduction() {
    if (flag_)
      flag_->setValue(before_);
  }

private:
  static std::mutex& mutex() {
    static std::mutex instance;
    return instance;
  }
  static llvm::cl::opt<bool>* find() {
    auto& options = llvm::cl::getRegisteredOptions();
    auto found = options.find("disable-lsr");
    return found == options.end() ? nullptr : static_cast<llvm::cl::opt<bool>*>(found->second);
  }
  std::lock_guard<std::mutex> lock_;
  llvm::cl::opt<bool>* flag_;
  bool before_;
};

void emit(llvm::Module& module, const Target& target, llvm::CodeGenFileType fileType,
          llvm::SmallVectorImpl<char>& output) {
  llvm::raw_svector_ostream stream(output);
  llvm::legacy::PassManager passes;
  {
    const WithoutLoopStrengthReduction guard;
    const bool unsupported =
        target.machine->addPassesToEmitFile(passes, stream, nullptr, fileType, /*DisableVerify=*/true);
    VORTEX_CHECK(!unsupported, "the x86-64 back end cannot emit this file type");
  }
  passes.run(module);
}

}  // namespace

void markEntryPoint(llvm::Function& function) {
  function.setLinkage(llvm::GlobalValue::ExternalLinkage);
  function.setDSOLocal(true);
  function.setCallingConv(llvm::CallingConv::C);
  function.addFnAttr(llvm::Attribute::NoUnwind);
}

std::vector<uint8_t> emitObject(llvm::Module& module, const Target& target) {
  llvm::SmallVector<char, 0> bytes;
  emit(module, target, llvm::CodeGenFileType::ObjectFile, bytes);
  std::vector<uint8_t> object(bytes.begin(), bytes.end());
  const std::vector<std::string>& allowed = allowedExternalSymbols();
  for (const std::string& symbol : undefinedSymbols(object))
    VORTEX_CHECK(std::find(allowed.begin(), allowed.end(), symbol) != allowed.end(),
                 "the object needs the symbol '%s', which the loader does not provide", symbol.c_str());
  return object;
}

std::string emitAssembly(const llvm::Module& module, const Target& target) {
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
  llvm::SmallVector<char, 0> text;
  emit(*copy, target, llvm::CodeGenFileType::AssemblyFile, text);
  return std::string(text.begin(), text.end());
}

}  // namespace vortex::target::cpu::codegen
