#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Control flow of a whole-tensor kernel that its elements can run by themselves. A cheap branch becomes selects. Out of others goes what does not
/// depend on them, loads included: what is left is analysis::isElementControl, which back ends evaluate inside their loops over elements.
/// Before and after: whole-tensor vx with the same results.
void prepareElementControl(ir::EntryOp entry, ir::KernelOp kernel);

}  // namespace vortex::passes
