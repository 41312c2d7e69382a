// Who executes a statement: each thread, or the block once.
#pragma once

#include <unordered_set>

#include "lang/sema/program.h"

namespace vortex::lang::flow {

/// Expressions that each thread evaluates for itself, though all of them may get the same: those of statements in which anything is a thread's own.
std::unordered_set<const Expr*> threadCode(const Function& kernel);

}  // namespace vortex::lang::flow
