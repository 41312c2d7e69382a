// From a trace to a typed kernel.
#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/program.h"
#include "metile/kinds.h"
#include "metile/one_value.h"

#include <map>
#include <set>

namespace vortex::metile {

/// Before anything is removed: operands of a type that the operation does not take are errors in the sink, and false.
bool check(const Trace& trace, const std::vector<Kind>& kinds, diag::DiagnosticSink& sink);

/// What a kernel does beyond what its trace says.
struct Additions {
  std::set<int32_t> zeroed;              ///< shared memory, ids of what declares it: begins with zeros
  std::map<size_t, Sharers> ofOneValue;  ///< stores that are atomic, by the index of the operation
};

/// Adds the traced kernel to the program: one block per program instance, one thread per lane. Its parameters are those of the trace, then
/// the numbers of instances `grid_x`, `grid_y`, `grid_z`. What cannot be expressed is an error in the sink.
void lower(const Trace& trace, std::vector<Kind> kinds, lang::Program& program, diag::DiagnosticSink& sink,
           const Additions& additions = {});

}  // namespace vortex::metile
