// Between a front end and a back end: loops, phases and their pieces.
#pragma once

#include "passes/phases.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace vortex::pipeline {

/// Makes of a front end's module what back ends take: phases with grids, canonical. `rules`: the target's. `plans` gets the text of the plans.
/// False after diagnostics.
bool schedule(mlir::ModuleOp module, const passes::TensorSchedule& rules, std::string& plans);

/// The first line of a file with a module as schedule() gets it: how vx-opt does the same, but for the target's rules, and what wrote the file.
std::string reproducerHead(const std::string& target);

}  // namespace vortex::pipeline
