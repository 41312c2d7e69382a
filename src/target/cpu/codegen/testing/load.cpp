#include "target/cpu/codegen/testing/load.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Module.h>

#include <time.h>

#include "base/check.h"
#include "target/cpu/codegen/emit_object.h"
#include "target/interface/llvm_module.h"

namespace vortex::target::cpu::codegen {

LoadedCode::LoadedCode(llvm::Module& module, const Target& target) {
  const std::string complaint = verify(module);
  VORTEX_CHECK(complaint.empty(), "%s", complaint.c_str());
  auto now = [] {  // of this thread, so that other programs disturb less
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e3 + double(time.tv_nsec) * 1e-6;
  };
  const double start = now();
  optimize(module, target);
  const double optimized = now();
  const std::vector<uint8_t> object = emitObject(module, target);
  emitMs_ = now() - optimized;
  optimizeMs_ = optimized - start;
  objectBytes_ = object.size();
  jit_ = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  llvm::cantFail(jit_->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(
      llvm::StringRef(reinterpret_cast<const char*>(object.data()), object.size()), "kernel")));
}

LoadedCode::~LoadedCode() = default;

void* LoadedCode::address(const std::string& name) const { return llvm::cantFail(jit_->lookup(name)).toPtr<void*>(); }

}  // namespace vortex::target::cpu::codegen
