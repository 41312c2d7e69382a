#include "target/cpu/emit/testing/run_kernel.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace vortex::target::cpu::emit::testing {
namespace {

/// Whether blocks of a phase that sums a[row, k] * b[k, column] run in bands; `row` and `column` are computed by `places`.
bool isInBands(const std::string& places, const std::string& more = "") {
  const std::string view = "!vx.view<?xf32, global>";
  TestKernel kernel(module("%a: " + view + ", %b: " + view + ", %o: " + view + ", %n: index", "8;8;1", "16;1;1", R"(
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %nx = vx.block_dim x
  %bx = vx.block_id x
  %by = vx.block_id y
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
)" + places + R"(
    %from = arith.muli %row, %n : index
    %sum, %next = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero, %at = %column) -> (f32, index) {
      %i = arith.addi %from, %k : index
      %u = vx.load %a[%i] guarded : )" + view + R"( -> f32
      %v = vx.load %b[%at] guarded : )" + view + R"( -> f32
      %p = arith.mulf %u, %v : f32
      %t = arith.addf %s, %p : f32
      %on = arith.addi %at, %n : index
      scf.yield %t, %on : f32, index
    }
    %to = arith.addi %from, %column : index
    vx.store %sum, %o[%to] guarded : f32, )" + view + more + R"(
    vx.yield
  })"));
  EXPECT_EQ(kernel.error(), "");
  return std::ranges::any_of(kernel.kernel().facts,
                             [](const artifact::Fact& fact) { return fact.key.starts_with("bands."); });
}

constexpr const char* kColumn =
    "    %start = arith.muli %bx, %nx : index\n    %column = arith.addi %start, %x : index\n";

TEST(Bands, AreForProducts) { EXPECT_TRUE(isInBands(std::string(kColumn) + "    %row = arith.addi %by, %y : index")); }

TEST(Bands, NothingIsSharedByAColumnWhereAllDependOnItsRow) {
  EXPECT_FALSE(isInBands("    %start = arith.muli %bx, %nx : index\n    %last = arith.addi %start, %x : index\n"
                         "    %column = arith.addi %last, %by : index\n    %row = arith.addi %by, %y : index"));
  EXPECT_FALSE(isInBands("    %column = arith.addi %by, %x : index\n    %row = arith.addi %by, %y : index"));
}

TEST(Bands, BlocksThatMayWaitForEarlierOnesRunInRows) {
  EXPECT_FALSE(isInBands(std::string(kColumn) + "    %row = arith.addi %by, %y : index",
                         "\n    %seen = vx.atomic_load relaxed device %o[%c0] : !vx.view<?xf32, global> -> f32"));
}

}  // namespace
}  // namespace vortex::target::cpu::emit::testing
