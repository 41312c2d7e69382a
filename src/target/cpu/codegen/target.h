// The machine code is emitted for: LLVM's TargetMachine plus the few numbers the emitters decide by.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "target/interface/vector_features.h"

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
}  // namespace llvm

namespace vortex::target::cpu {

namespace codegen {

struct TargetOptions {
  std::string cpu =
      "native";          ///< "native" or an LLVM processor name: "x86-64-v2", "haswell", "znver4", "skylake-avx512", …
  std::string features;  ///< LLVM feature list added to the processor's own: "+avx512bf16,-fma"
};

/// One target. Not thread-safe: one thread at a time compiles with it.
struct Target {
  std::string cpu;       ///< resolved processor name, never "native"
  std::string features;  ///< resolved LLVM feature list
  VectorFeatures vector;
  bool runsOnHost = false;  ///< this process can execute the code
  std::unique_ptr<llvm::TargetMachine> machine;

  Target();
  Target(Target&&) noexcept;
  Target& operator=(Target&&) noexcept;
  ~Target();
};

/// Error: a processor name LLVM does not know for x86-64 (the message lists close names), one without SSE4.1,
/// or a host that is not x86-64.
Result<Target> createTarget(const TargetOptions& options = {});

/// What makes two targets generate the same code, as text; equal to the processor and features of the target the options give.
/// Cheap: needs no target machine, so that a kernel can be looked up in a cache without one.
std::string identity(const TargetOptions& options);

/// An empty module with the target's triple and data layout, position-independent.
std::unique_ptr<llvm::Module> createModule(llvm::LLVMContext& context, const std::string& name, const Target& target);

}  // namespace codegen
}  // namespace vortex::target::cpu
