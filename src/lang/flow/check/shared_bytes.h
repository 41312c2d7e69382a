// Where the shared tensors of a kernel lie in the memory of a block.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diag/diagnostic.h"
#include "lang/flow/graph/graph.h"

namespace vortex::lang::flow {

struct SharedPlan {
  /// The tensors that are alive where the program's own take most, and how much they take then.
  std::vector<const Variable*> largest;
  int64_t bytes = 0;
  std::map<const Variable*, uint64_t> slots;  ///< of those among `largest` that `@pipeline` gives several
  /// Declarations before which the block must meet, as the tensor takes bytes of these, which threads may still be at.
  std::map<const Expr*, std::vector<const Variable*>> barriers;
};

/// Gives tensors that are not alive together the same bytes, as code generation does (layout/byte_ranges). A tensor lives from its declaration to
/// its last use, a loop that uses it counting as a whole. Extents that only the launch knows count as 1: the kernel is compiled again when they are
/// known. Marks declarations that get a barrier in the graph.
SharedPlan planShared(Graph& graph);

/// Reports shared memory over the target's limit (language.md §7; E0552, W0552), with the bytes of each tensor that is alive when it is largest.
/// `limit` is in bytes; `target` names it in the message. `isAdvice`: a warning, `target` is only the chip with most.
void checkSharedBytes(const Function& kernel, const SharedPlan& plan, uint64_t limit, const std::string& target,
                      bool isAdvice, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
