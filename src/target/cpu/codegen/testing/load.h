// For tests and benchmarks: compiles a module for the host and calls it in this process.
#pragma once

#include <memory>
#include <string>

#include "target/cpu/codegen/target.h"

namespace llvm {
class Module;
namespace orc {
class LLJIT;
}
}  // namespace llvm

namespace vortex::target::cpu::codegen {

class LoadedCode {
public:
  /// Verifies, optimises, emits and loads `module`. Aborts on any failure.
  LoadedCode(llvm::Module& module, const Target& target);
  ~LoadedCode();

  template <typename Function> Function* entry(const std::string& name) const {
    return reinterpret_cast<Function*>(address(name));
  }
  double optimizeMs() const { return optimizeMs_; }
  double emitMs() const { return emitMs_; }
  size_t objectBytes() const { return objectBytes_; }

private:
  void* address(const std::string& name) const;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  double optimizeMs_ = 0, emitMs_ = 0;
  size_t objectBytes_ = 0;
};

}  // namespace vortex::target::cpu::codegen
