// Scheduling whole-tensor programs must not change what the interpreter computes.
#include "interpreter/random_tiles.h"
#include "passes/schedule_tensors.h"

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
  const passes::TensorSchedule schedules[] = {
      {.elementsPerBlock = 4, .dotRows = 2, .dotColumns = 2, .minInner = 1},
      {.elementsPerBlock = 16, .dotRows = 3, .dotColumns = 4, .minInner = 2},
      {},
  };
  for (unsigned seed = 1; seed <= 150; ++seed) {
    const passes::TensorSchedule& schedule = schedules[seed % std::size(schedules)];
    RandomProgram random(seed, 1 + int(seed % 7));
    mlir::ModuleOp module = random.program->module();
    std::string before = textOf(module);
    ASSERT_TRUE(mlir::succeeded(passes::scheduleTensors(module, schedule))) << before;
    ASSERT_TRUE(mlir::succeeded(mlir::verify(module))) << before << textOf(module);
    std::string problem;
    std::vector<int32_t> values = random.run(problem, {.check = true, .seed = seed});
    ASSERT_EQ(problem, "") << "seed " << seed << "\n" << before << textOf(module);
    ASSERT_EQ(values, random.expected) << "seed " << seed << "\n" << before << textOf(module);
  }
}

}  // namespace
}  // namespace vortex::interpreter::random_tiles
