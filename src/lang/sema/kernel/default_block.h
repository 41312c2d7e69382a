#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lang/sema/dim.h"
#include "lang/sema/program.h"

namespace vortex::lang {

/// Threads of a block where neither kernel nor launch says: rows of x are whole warps, so that neighbouring threads touch neighbouring elements;
/// a short constant last extent takes a shorter row. Of blocks whose threads return the elements of a tile, one thread for each. `domain`: the kernel's own, in
/// x, y, z order, as far as it is known.
std::array<int64_t, 3> defaultBlock(const KernelSpec& kernel, const std::vector<DimExpr>& domain);

}  // namespace vortex::lang
