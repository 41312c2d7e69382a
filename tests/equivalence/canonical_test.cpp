// vx-simplify and CSE must not change what the interpreter computes.
#include "interpreter/random_tiles.h"
#include "passes/simplify.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace vortex::interpreter::random_tiles {
namespace {

TEST(Canonical, RandomTensorProgramsKeepTheirResults) {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    RandomProgram random(seed, 8);
    mlir::PassManager manager(random.program->module()->getContext());
    manager.addPass(passes::createSimplifyPass());
    manager.addPass(mlir::createCSEPass());
    ASSERT_TRUE(mlir::succeeded(manager.run(random.program->module()))) << random.body;
    std::string problem;
    std::vector<int32_t> values = random.run(problem);
    ASSERT_EQ(problem, "") << random.body;
    ASSERT_EQ(values, random.expected) << "seed " << seed << "\n" << random.body;
  }
}

}  // namespace
}  // namespace vortex::interpreter::random_tiles
