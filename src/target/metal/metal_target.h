// The Metal back end: scheduled vx → vxt → Metal Shading Language text. No Apple tool takes part; docs/metal.md says what was tested how.
#pragma once

#include "artifact/artifact.h"
#include "passes/plan/rules.h"

#include <mlir/IR/BuiltinOps.h>
#include <string>
#include <vector>

namespace vortex::target::metal {

/// "metal3.1".
std::vector<std::string> targetNames();
bool isTarget(const std::string& name);
/// The chip that kernels are planned for: the smallest one.
const char* chipName();

/// Block sizes of whole-tensor work: those of the smallest GPU of the first generation.
passes::TensorSchedule tensorSchedule();

/// `module`: one vx.entry and scheduled vx.kernel phases in order. Not changed. `vxt`: receives the per-thread code if it is not null. Error: what
/// Metal or its smallest GPU has not, with its source location and numbers.
Result<artifact::Kernel> compileKernel(mlir::ModuleOp module, const std::string& target, std::string* vxt);

}  // namespace vortex::target::metal
