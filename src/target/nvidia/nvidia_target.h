// The NVIDIA back end: scheduled vx → vxt → PTX.
#pragma once

#include "artifact/artifact.h"
#include "artifact/cache.h"
#include "passes/plan/rules.h"
#include "target/nvidia/codegen.h"

#include <functional>
#include <mlir/IR/BuiltinOps.h>
#include <mlir/IR/OwningOpRef.h>

namespace vortex::target::nvidia {

/// Intermediate texts, each produced only when its pointer is set.
struct CompileTexts {
  std::string* vxnv = nullptr;           ///< roles and rings, of modules that have them
  std::string* vxt = nullptr;            ///< per-thread code
  std::string* llvm = nullptr;           ///< LLVM IR as emitted
  std::string* optimizedLlvm = nullptr;  ///< after the optimiser
};

/// Where compile time went, milliseconds of processor time: the caller's, for `optimize` and `codegen` that of the slowest entry point (they are
/// compiled side by side).
struct CompileTimes {
  double lower = 0, emit = 0, optimize = 0, codegen = 0;
};

/// Block sizes of whole-tensor work on this target, for `module` before the schedule.
passes::TensorSchedule tensorSchedule(const Target& target);

/// A kernel before its code: every entry point is absent, and `entries` has a vxt.kernel for each.
struct LoweredKernel {
  artifact::Kernel kernel;
  mlir::OwningOpRef<mlir::ModuleOp> entries;
};

/// `module`: one vx.entry and scheduled vx.kernel phases in order. Not changed. Error: a construct the back end cannot lower or a resource the
/// chip does not have, with its source location and numbers.
Result<LoweredKernel> lowerKernel(mlir::ModuleOp module, const Target& target, const CompileTexts& texts = {},
                                  CompileTimes* times = nullptr);

/// Gives the kernel the code of the absent entry points that are `wanted`; the others stay absent. Error: an operation that cannot be emitted.
Result<void> addCode(LoweredKernel& lowered, const std::function<bool(const std::string& symbol)>& wanted,
                     const Target& target, const CompileTexts& texts = {}, CompileTimes* times = nullptr);

/// PTX of one entry point of a module of them. Error: there is none of this name; an operation that cannot be emitted.
Result<std::string> compileEntry(mlir::ModuleOp entries, const std::string& symbol, uint32_t slotCount,
                                 const Target& target);

/// Machine code for an artifact of this target, by ptxas; adds its counts to `kernel.facts`. Empty without ptxas. `cache` may be null. Error: what
/// ptxas refuses.
Result<std::vector<uint8_t>> assembleKernel(artifact::Kernel& kernel, const Target& target, artifact::Cache* cache);

}  // namespace vortex::target::nvidia
