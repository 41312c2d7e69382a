#pragma once

namespace vortex::passes {

/// Makes every pass of this folder available by name (vx-opt).
void registerVxPasses();

}  // namespace vortex::passes
