#include "passes/register.h"

#include "passes/schedule_tensors.h"

namespace vortex::passes {

void registerVxPasses() {
  mlir::registerPass([] { return createScheduleTensorsPass(); });
}

}  // namespace vortex::passes
