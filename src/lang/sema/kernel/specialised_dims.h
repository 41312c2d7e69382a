#pragma once

#include <vector>

#include "lang/sema/program.h"

namespace vortex::lang {

/// The dimension variables that code is made for one value of, as a shared or local tensor has them in its shape.
std::vector<DimVarId> specialisedDims(const Function& kernel);

}  // namespace vortex::lang
