// Scheduling whole-tensor programs must not change what the interpreter computes.
#include "interpreter/random_tiles.h"
#include "passes/phases.h"

#include "mlir/IR/Verifier.h"

namespace vortex::interpreter::random_tiles {
namespace {

std::string textOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

TEST(Schedule, RandomTensorProgramsKeepTheirResults) {
  // Blocks so small that every program has several, with ragged ends.
  passes::TensorSchedule tiny, small, gpu;
  tiny.elementsPerBlock = 4, tiny.dotRows = tiny.dotColumns = 2, tiny.minInner = 1;
  small.elementsPerBlock = 16, small.dotRows = 3, small.dotColumns = 4, small.minInner = 2;
  small.squareSide = 3, small.reductionBlocks = 4;
  gpu.elementsPerBlock = 8, gpu.dotRows = gpu.dotColumns = 4, gpu.minInner = 1;
  gpu.squareSide = 4, gpu.reductionBlocks = 3, gpu.smallTensor = 32, gpu.smallElementsPerBlock = 4,
  gpu.fusedOnly = true;
  passes::TensorSchedule ways = gpu;  // every product in every way
  ways.smallDotRows = ways.smallDotColumns = 2, ways.smallDotBelow = 6, ways.dotSplitBlocks = 64,
  ways.dotSplitDepth = 1;
  ways.thinDotRows = 1, ways.thinDotColumns = 2, ways.dotAlignment = 16, ways.dotCopyElements = 20;
  const passes::TensorSchedule schedules[] = {tiny, small, gpu, {}, ways};
  for (unsigned seed = 1; seed <= 150; ++seed) {
    const passes::TensorSchedule& schedule = schedules[seed % std::size(schedules)];
    RandomProgram random(seed, 1 + int(seed % 7));
    mlir::ModuleOp module = random.program->module();
    std::string before = textOf(module);
    ASSERT_TRUE(mlir::succeeded(passes::makePhases(module, schedule))) << before;
    ASSERT_TRUE(mlir::succeeded(mlir::verify(module))) << before << textOf(module);
    std::string problem;
    std::vector<int32_t> values = random.run(problem, {.check = true, .seed = seed, .drawnCases = seed % 2 ? seed : 0});
    ASSERT_EQ(problem, "") << "seed " << seed << "\n" << before << textOf(module);
    ASSERT_EQ(values, random.expected) << "seed " << seed << "\n" << before << textOf(module);
  }
}

}  // namespace
}  // namespace vortex::interpreter::random_tiles
