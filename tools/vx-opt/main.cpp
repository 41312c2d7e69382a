// vx-opt: parses vx modules, runs passes by name, prints the result.
#include "ir/vx.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

namespace vortex::passes {
void registerVxPasses();  // src/passes, or no_passes.cpp in a build without that folder
}

namespace vortex::target::gpu::hopper {
void registerHopperPasses();  // src/target/gpu/hopper, as above
}

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  vortex::ir::registerVxDialects(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerLoopInvariantCodeMotionPass();
  mlir::registerSymbolDCEPass();
  mlir::registerStripDebugInfoPass();
  vortex::passes::registerVxPasses();
  vortex::target::gpu::hopper::registerHopperPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "vx optimizer driver\n", registry));
}
