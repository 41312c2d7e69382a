// LLVM module → PTX text.
#pragma once

#include "base/result.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>
#include <vector>

namespace vortex::target::nvidia {

/// `chip`: "sm_80", "sm_90" (compiled as sm_90a: wgmma and friends exist only there).
struct Target {
  std::string chip;
  std::string architecture;  ///< what .target says
  std::string features;      ///< LLVM's, fixes the PTX version
  unsigned number;           ///< compute capability times ten
  std::unique_ptr<llvm::TargetMachine> machine;
};
Result<Target> createTarget(const std::string& chip);
/// Names createTarget takes.
std::vector<std::string> targetNames();

std::unique_ptr<llvm::Module> createModule(llvm::LLVMContext& context, llvm::StringRef name, const Target& target);
void optimize(llvm::Module& module, const Target& target);
/// Attribute of functions whose branches compute cheap things again that earlier ones have computed: the back end would keep those in registers.
inline constexpr llvm::StringLiteral kKeepsRegisters = "vortex-keeps-registers";
std::string emitPtx(llvm::Module& module, const Target& target);

}  // namespace vortex::target::nvidia
