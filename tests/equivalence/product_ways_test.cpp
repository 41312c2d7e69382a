// Whatever way a launch multiplies in, the result is the same.
#include "interpreter/interpreter.h"
#include "ir/launch.h"
#include "passes/phases.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

namespace vortex::interpreter {
namespace {

/// (x @ w) @ w, where the first product crosses phases.
const char* const kProgram = R"mlir(
vx.entry @mm : (!vx.view<?x?xf32, global>, !vx.view<?x?xf32, global>, !vx.view<?x?xf32, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "w", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">, #vx.size<"dim(1,1)">]
}]
vx.kernel @mm.body(%x: !vx.view<?x?xf32, global>, %w: !vx.view<?x?xf32, global>, %out: !vx.view<?x?xf32, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %n = vx.dim %w, 1 : !vx.view<?x?xf32, global>
  %a = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %b = vx.tile_load %w[%c0, %c0] sizes(%n, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %acc = vx.broadcast %zero dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
  %h = vx.dot %a, %b, %acc : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = vx.dot %h, %b, %acc : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  vx.tile_store %d, %out[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
  vx.return
})mlir";

std::vector<float> multiply(const std::vector<float>& a, const std::vector<float>& b, int64_t m, int64_t n) {
  std::vector<float> product(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t k = 0; k < n; ++k)
      for (int64_t j = 0; j < n; ++j)
        product[static_cast<size_t>(i * n + j)] +=
            a[static_cast<size_t>(i * n + k)] * b[static_cast<size_t>(k * n + j)];
  return product;
}

TEST(ProductWays, EveryWayMultiplies) {
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kProgram, mlir::ParserConfig(&context));
  passes::TensorSchedule schedule;
  schedule.elementsPerBlock = 8, schedule.dotRows = schedule.dotColumns = 4, schedule.minInner = 1;
  schedule.smallDotRows = schedule.smallDotColumns = 2, schedule.smallDotBelow = 6;
  schedule.dotSplitBlocks = 64, schedule.dotSplitDepth = 1, schedule.thinDotRows = 1, schedule.thinDotColumns = 2,
  schedule.dotThinDepth = 1;
  schedule.dotAlignment = 16, schedule.dotCopyElements = 20, schedule.fusedOnly = true;
  ASSERT_TRUE(mlir::succeeded(passes::makePhases(*module, schedule)));
  std::set<std::string> names;
  module->walk([&](ir::CaseOp each) { names.insert(each.getName().str()); });
  EXPECT_EQ(names, (std::set<std::string>{"aligned", "copied", "in place", "small", "split", "thin", "tiny", "usual",
                                          "whole"}));
  auto interpreter = Interpreter::create(*module);
  ASSERT_TRUE(interpreter) << interpreter.error().message;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    int64_t m = 1 + static_cast<int64_t>(random() % 9), n = 1 + static_cast<int64_t>(random() % 9);
    auto draw = [&](int64_t count) {
      std::vector<float> values(static_cast<size_t>(count));
      for (float& value : values)
        value = static_cast<float>(random() % 9) - 4;
      return values;
    };
    std::vector<float> x = draw(m * n), w = draw(n * n), out(static_cast<size_t>(m * n), -12345.0f);
    std::vector<Argument> arguments = {Argument::tensor(x.data(), {m, n}), Argument::tensor(w.data(), {n, n}),
                                       Argument::tensor(out.data(), {m, n})};
    auto findings = interpreter->run(arguments, {.check = true, .seed = seed, .drawnCases = seed});
    ASSERT_TRUE(findings) << findings.error().message;
    ASSERT_TRUE(findings->empty()) << toText(findings->front());
    ASSERT_EQ(out, multiply(multiply(x, w, m, n), w, m, n)) << m << "x" << n << ", drawn " << seed;
  }
}

}  // namespace
}  // namespace vortex::interpreter
