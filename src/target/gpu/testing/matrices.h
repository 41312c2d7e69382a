// For tests: what matrix instructions do with the registers of a warp, by the layouts of their fragments.
#pragma once

#include "ir/vxt.h"

#include <vector>

namespace vortex::target::gpu::testing {

/// Registers of 32 lanes, in order: one cell per element.
using WarpRegisters = std::vector<std::vector<uint64_t>>;

/// `rows`: the address each lane gives. Result: `count` 32-bit words per lane.
WarpRegisters loadMatrices(const std::vector<const char*>& rows, unsigned count, bool transposed);

/// Products and sums in f64, rounded to f32 once. Empty for shapes and types that are not implemented.
WarpRegisters multiplyMatrices(ir::vxt::MmaOp op, const WarpRegisters& a, const WarpRegisters& b,
                               const WarpRegisters& c);

/// The same for fragments of two elements per lane, in row-major order.
WarpRegisters multiplyFragments(ir::vxt::FragmentMultiplyOp op, const WarpRegisters& a, const WarpRegisters& b,
                                const WarpRegisters& c);
/// An element of one float type in another.
uint64_t roundedElement(mlir::Type from, mlir::Type to, uint64_t bits);

}  // namespace vortex::target::gpu::testing
