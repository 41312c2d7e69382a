// Statements over the same elements that follow each other: `m = …`, `v = …`, `p = p - m / sqrt(v)`.
#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Lets such statements pass values on: what one has stored, the next ones do not read from memory, and what one has loaded, the next ones do not load
/// again. They share axes then, so that one phase computes all of them. A statement is a store of elementwise operations and reductions of
/// the innermost dimension; a store that a later one replaces, with nobody reading it meanwhile, is dropped.
void joinStatements(ir::KernelOp kernel);

}  // namespace vortex::passes
