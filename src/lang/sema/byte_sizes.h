// What constant extents take: more than any device has is an error before anything runs.
#pragma once

#include "base/tensor_bytes.h"
#include "diag/diagnostic.h"
#include "lang/sema/program.h"

namespace vortex::lang {

/// Of a value in memory, in full: tensors with their elements (unknown extents count as 1), arrays, structs and tuples with their parts.
base::WideBytes bytesOf(Type type);

/// E0553 where a tensor type, or what a kernel keeps in shared or local memory, takes more than base/tensor_bytes.h allows. Once per type and
/// function. Runs when the memory spaces of kernels are final.
void checkByteSizes(const Program& program, diag::DiagnosticSink& sink);

}  // namespace vortex::lang
