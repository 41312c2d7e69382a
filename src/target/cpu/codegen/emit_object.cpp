#include "target/cpu/codegen/emit_object.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>

#include "base/check.h"

namespace vortex::target::cpu::codegen {
namespace {

/// Sets an option that LLVM has on its command line and not in its API, for as long as this lives.
template <class T> class TemporaryOption {
public:
  TemporaryOption(const char* name, T value) {
    auto& options = llvm::cl::getRegisteredOptions();
    auto found = options.find(name);
    option_ = found == options.end() ? nullptr : static_cast<llvm::cl::opt<T>*>(found->second);
    if (option_) {
      before_ = option_->getValue();
      option_->setValue(value);
    }
  }
  ~TemporaryOption() {
    if (option_)
      option_->setValue(before_);
  }
  TemporaryOption(const TemporaryOption&) = delete;
  TemporaryOption& operator=(const TemporaryOption&) = delete;

private:
  llvm::cl::opt<T>* option_;
  T before_{};
};

/// Held by one thread that changes options, or by all that compile with them as they are.
std::shared_mutex& optionsMutex() {
  static std::shared_mutex instance;
  return instance;
}

/// Loop strength reduction (with its freeze canonicalisation) takes a quarter of the code generator's time on our
/// kernels and gains nothing: addresses are base + index · element size, which x86 computes for free. The flag is read
/// while the pass list is built; it is set for just as long.
void addPasses(llvm::legacy::PassManager& passes, const Target& target, llvm::raw_pwrite_stream& stream,
               llvm::CodeGenFileType fileType) {
  const std::unique_lock lock(optionsMutex());
  const TemporaryOption<bool> withoutStrengthReduction("disable-lsr", true);
  const bool unsupported =
      target.machine->addPassesToEmitFile(passes, stream, nullptr, fileType, /*DisableVerify=*/true);
  VORTEX_CHECK(!unsupported, "the x86-64 back end cannot emit this file type");
}

/// The register allocator looks at a region of up to 10,000 blocks for each value that it splits and each register, which takes most of the time of
/// compiling code of thousands of branches. Where a function has more blocks than this, as many are looked at in all as it would have taken
/// for so many; other code comes out as ever. A switch of 475 cases, 4479 blocks: 2.5 s instead of 12.4 of 17.9.
constexpr uint64_t kBlocksLookedAt = 670, kLeastRegion = 100;

uint64_t largestFunction(const llvm::Module& module) {
  uint64_t blocks = 0;
  for (const llvm::Function& function : module)
    blocks = std::max<uint64_t>(blocks, function.size());
  return blocks;
}

void emit(llvm::Module& module, const Target& target, llvm::CodeGenFileType fileType,
          llvm::SmallVectorImpl<char>& output) {
  llvm::raw_svector_ostream stream(output);
  llvm::legacy::PassManager passes;
  addPasses(passes, target, stream, fileType);
  const uint64_t blocks = largestFunction(module);
  if (blocks <= kBlocksLookedAt) {
    const std::shared_lock lock(optionsMutex());
    passes.run(module);
    return;
  }
  const uint64_t region = std::max(kLeastRegion, kBlocksLookedAt * kBlocksLookedAt / blocks);
  const std::unique_lock lock(optionsMutex());
  const TemporaryOption<unsigned> limit("grow-region-complexity-budget", static_cast<unsigned>(region));
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
