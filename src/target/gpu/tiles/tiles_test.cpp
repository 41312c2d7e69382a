#include "target/gpu/tiles/testing/lower.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace vortex::target::gpu::tiles::testing {
namespace {

TEST(Lower, PrintsAFile) {
  const char* path = std::getenv("VORTEX_LOWER");
  if (!path)
    GTEST_SKIP();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  bool aligned = std::getenv("VORTEX_ALIGNED") != nullptr;
  Lowered lowered = lower(context, text.str(), {.unitStrides = aligned, .alignedRows = aligned});
  if (lowered.vx && std::getenv("VORTEX_VX"))
    lowered.vx->dump();
  if (lowered.vxt)
    lowered.vxt->dump();
  EXPECT_EQ(lowered.error, "");
}

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing
