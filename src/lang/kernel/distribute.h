#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/kernel/roots.h"
#include "lang/sema/program.h"

#include <set>

namespace vortex::lang {

/// Decides what each `@local` tensor of an inlined kernel is (language.md §7) and gives its uses the types that say so:
/// one array per thread (only its elements are used): unchanged; a tile of the block (used as a tile): a tensor value; a tile of which
/// elements or slices are written, or any in a kernel without threads: shared memory, of which the block has one. Runs after the grid is
/// known and before uniformity. Returns the variables that became the block's.
std::set<const Variable*> distributeLocals(Program& program, Function& kernel, const Roots& roots);

/// Reports elements of the block's tiles that single threads write, and tiles of local memory that cannot be distributed. After
/// uniformity.
void checkBlockTiles(const Function& kernel, const Roots& roots, const std::set<const Variable*>& blockTiles,
                     diag::DiagnosticSink& sink);

}  // namespace vortex::lang
