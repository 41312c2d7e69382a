// Who holds what in the matrix instructions of NVIDIA GPUs (PTX ISA, "Matrix Fragments for mma.m16n8k*" and "ldmatrix").
#pragma once

#include "layout/layout.h"

namespace vortex::layout {

/// A fragment of mma.sync.m16n8k(256 / elementBits): 16 rows × k, for 32-, 16- and 8-bit elements. Register bits count elements: those of
/// one 32-bit register first.
Layout mmaA(unsigned elementBits);
/// B fragment: k rows × 8 columns.
Layout mmaB(unsigned elementBits);
/// Accumulators, 32 bits each: 16 rows × 8 columns.
Layout mmaC();
/// mma.m8n8k4 on f64: A 8 × 4, B 4 × 8, C 8 × 8.
Layout mmaF64A();
Layout mmaF64B();
Layout mmaF64C();

/// What ldmatrix.x(2^matrixBits) leaves in registers: dimensions (matrix, row, column) of 8×8 matrices of 16-bit elements. `transposed`:
/// with .trans, where row and column are those in memory.
Layout ldmatrix(unsigned matrixBits, bool transposed);
/// Which row a lane points at: dimensions (matrix, row).
Layout ldmatrixAddresses(unsigned matrixBits);

}  // namespace vortex::layout
