// The CPU back end: scheduled vx → a compiled kernel for x86-64.
#pragma once

#include "artifact/artifact.h"
#include "target/cpu/codegen/target.h"

#include "passes/plan/rules.h"

#include <mlir/IR/BuiltinOps.h>

namespace vortex::target::cpu {

/// Intermediate texts, each produced only when its pointer is set.
struct CompileTexts {
  std::string* llvm = nullptr;           ///< LLVM IR as emitted
  std::string* optimizedLlvm = nullptr;  ///< after the optimiser
  std::string* assembly = nullptr;
};

/// Where compile time went, milliseconds of the calling thread's processor time.
struct CompileTimes {
  double emit = 0, optimize = 0, codegen = 0;
};

/// Block sizes of whole-tensor work on this target.
passes::TensorSchedule tensorSchedule(const codegen::Target& target);

/// `module`: one vx.entry and scheduled vx.kernel phases in order. Not changed. Error: a construct the back end cannot emit, named with its
/// source location.
Result<artifact::Kernel> compileKernel(mlir::ModuleOp module, const codegen::Target& target,
                                       const CompileTexts& texts = {}, CompileTimes* times = nullptr);

}  // namespace vortex::target::cpu
