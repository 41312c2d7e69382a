// Neighbouring elements that a thread loads at once: vxt run on the host against the reference interpreter.
#include "base/fresh_seed.h"
#include "interpreter/interpreter.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/tiles/testing/lower.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <mlir/Parser/Parser.h>
#include <random>

namespace vortex::target::gpu::tiles::testing::wide_loads {
namespace {

using gpu::testing::Launch;
using Numbers = std::vector<float>;

const std::string kView = "!vx.view<?x?xf32, global>";

/// x is [h, w], o [h, 32]: row %r is the block's, thread %t stores %total at [%r, %t].
std::string kernel(const std::string& body) {
  return "vx.entry @test : (" + kView + ", " + kView + R"vx() -> () args [
  {name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "o", role = #vx.role<param>, access = #vx.access<readwrite>}]
vx.kernel @test.main(%x: )vx" +
         kView + ", %o: " + kView + R"vx() grid [#vx.size<"dim(0,0)">, #vx.size<"1">, #vx.size<"1">]
    block [#vx.size<"32">, #vx.size<"1">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %k0 = arith.constant 0 : i32
  %k1 = arith.constant 1 : i32
  %k2 = arith.constant 2 : i32
  %k3 = arith.constant 3 : i32
  %k4 = arith.constant 4 : i32
  %zero = arith.constant 0.0 : f32
  %r = vx.block_id x
  vx.threads(%c32, %c1, %c1) {
  ^bb0(%tx: index, %ty: index, %tz: index, %t: index):
    %long = arith.index_castui %t : index to i64
    %narrow = arith.trunci %long : i64 to i32
)vx" + body +
         R"vx(
    vx.store %total, %o[%r, %t] guarded : f32, <?x?xf32, global>
  }
  vx.return
}
)vx";
}

/// Loads of x at [%r, %at + each], one after the other, and a sum that tells them apart.
std::string loads(const std::vector<int>& each, const std::string& more = "guarded") {
  std::string text, last = "%zero";
  for (size_t i = 0; i < each.size(); ++i) {
    const std::string n = std::to_string(i);
    text += "%i" + n + " = arith.addi %at, %c" + std::to_string(each[i]) + " : index\n%v" + n + " = vx.load %x[%r, %i" +
            n + "] " + more + " : <?x?xf32, global> -> f32\n%w" + n + " = arith.addf " + last + ", %v" + n +
            " : f32\n%y" + n + " = arith.mulf %w" + n + ", %w" + n + " : f32\n";
    last = "%y" + n;
  }
  return text + "%total = arith.addf " + last + ", %zero : f32";
}

std::string times(int factor) { return "%at = arith.muli %t, %c" + std::to_string(factor) + " : index\n"; }

/// x or o, rows some elements apart.
struct Matrix {
  int64_t h, w, row;
  Numbers memory;
  Matrix(int64_t height, int64_t width, int64_t pad) : h(height), w(width), row(width + pad) {
    memory.resize(static_cast<size_t>(h * row + 4), -7.0F);
  }
  /// At a multiple of 16 bytes.
  float* first() {
    auto address = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (16 - address % 16) % 16 / 4;
  }
  Numbers dense() {
    Numbers all;
    for (int64_t r = 0; r < h; ++r)
      all.insert(all.end(), first() + r * row, first() + r * row + w);
    return all;
  }
};

Numbers interpret(const std::string& text, Matrix& x, Matrix& o) {
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  EXPECT_TRUE(module);
  auto interpreter = interpreter::Interpreter::create(*module);
  EXPECT_TRUE(interpreter);
  Numbers in = x.dense(), out = o.dense();
  std::vector<interpreter::Argument> arguments{interpreter::Argument::tensor(in.data(), {x.h, x.w}),
                                               interpreter::Argument::tensor(out.data(), {o.h, o.w})};
  EXPECT_TRUE(interpreter->run(arguments));
  return out;
}

/// `lanes`: of the accesses of x, widest first.
void check(const std::string& body, std::vector<int64_t> lanes,
           Assumptions assumptions = {.unitStrides = true, .wholeRows = {0}}) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  const std::string text = kernel(body);
  Lowered lowered = lower(context, text, assumptions);
  ASSERT_EQ(lowered.error, "");
  ir::vxt::KernelOp kernel = *lowered.vxt->getOps<ir::vxt::KernelOp>().begin();
  std::vector<int64_t> found;
  kernel.walk([&](ir::vxt::LoadOp load) {
    auto vector = mlir::dyn_cast<mlir::VectorType>(load.getType());
    found.push_back(vector ? vector.getNumElements() : 1);
    EXPECT_TRUE(!vector || static_cast<int64_t>(load.getAlignment()) == 4 * vector.getNumElements());
  });
  std::sort(found.rbegin(), found.rend());
  EXPECT_EQ(found, lanes);
  std::mt19937 random(base::freshSeed());
  std::normal_distribution<float> normal;
  // Rows that hold all that threads ask for, and rows that end before: whole ones end between accesses.
  for (int64_t w : {4, 36, 64, 100, 132, 256})
    for (int64_t pad : {0, 8}) {
      SCOPED_TRACE(w);
      Matrix x(3, w, pad), o(3, 32, 4 - pad / 2);
      for (int64_t r = 0; r < x.h; ++r)
        for (int64_t c = 0; c < w; ++c)
          x.first()[r * x.row + c] = normal(random);
      Numbers expected = interpret(text, x, o);
      Launch launch;
      launch.seed = static_cast<unsigned>(random());
      launch.grid[0] = x.h;
      for (Matrix* each : {&x, &o}) {
        for (uint64_t slot : {reinterpret_cast<uint64_t>(each->first()), uint64_t(each->h), uint64_t(each->w),
                              uint64_t(each->row), uint64_t(1)})
          launch.slots.push_back(slot);
        // To the last element, no further.
        launch.memory.push_back(
            {reinterpret_cast<char*>(each->first()), static_cast<size_t>((each->h - 1) * each->row + each->w) * 4});
      }
      ASSERT_EQ(run(kernel, launch), "");
      EXPECT_EQ(o.dense(), expected);
    }
}

TEST(WideLoads, FourNeighboursAreOneAccess) { check(times(4) + loads({0, 1, 2, 3}), {4}); }
TEST(WideLoads, InAnyOrderAndAgain) { check(times(4) + loads({2, 0, 3, 2, 1, 0}), {4}); }
TEST(WideLoads, WhereTheSecondFourStart) { check(times(8) + loads({7, 4, 5, 1, 6, 0}), {4, 2}); }
TEST(WideLoads, TwoNeighboursOfEveryOther) { check(times(2) + loads({0, 1}), {2}); }
TEST(WideLoads, PairsOfWhatStartsAtTwo) { check(times(2) + loads({0, 1, 2, 3}), {2, 2}); }
TEST(WideLoads, ThreesStayApart) { check(times(3) + loads({0, 1, 2}), {1, 1, 1}); }
TEST(WideLoads, AGapStays) { check(times(4) + loads({0, 2, 3}), {2, 1}); }
TEST(WideLoads, ShiftedPairsStay) { check(times(4) + loads({1, 2}), {1, 1}); }

TEST(WideLoads, SumsMadeBeforeACastAndAfter) {
  check(R"(%b = arith.muli %narrow, %k4 : i32
    %b1 = arith.addi %b, %k1 : i32
    %b2 = arith.addi %b, %k2 : i32
    %i0 = arith.index_castui %b : i32 to index
    %i1 = arith.index_castui %b1 : i32 to index
    %i2 = arith.index_castui %b2 : i32 to index
    %i3 = arith.addi %i2, %c1 : index
    %v0 = vx.load %x[%r, %i0] guarded : <?x?xf32, global> -> f32
    %v1 = vx.load %x[%r, %i1] guarded : <?x?xf32, global> -> f32
    %v2 = vx.load %x[%r, %i2] guarded : <?x?xf32, global> -> f32
    %v3 = vx.load %x[%r, %i3] guarded : <?x?xf32, global> -> f32
    %s = arith.addf %v0, %v1 : f32
    %p = arith.mulf %s, %v2 : f32
    %total = arith.subf %p, %v3 : f32)",
        {4});
}

TEST(WideLoads, SumsThatWrapInTheirTypeStayApart) {  // x + 3 at the end of i32 is far from x
  check(R"(%m = arith.constant -2 : i32
    %b = arith.addi %narrow, %m : i32
    %b1 = arith.addi %b, %k1 : i32
    %i0 = arith.index_castui %b : i32 to index
    %i1 = arith.index_castui %b1 : i32 to index
    %v0 = vx.load %x[%r, %i0] guarded : <?x?xf32, global> -> f32
    %v1 = vx.load %x[%r, %i1] guarded : <?x?xf32, global> -> f32
    %total = arith.subf %v0, %v1 : f32)",
        {1, 1});
}

TEST(WideLoads, OfOneMask) {
  const std::string masks = "%m = arith.cmpi ult, %t, %c5 : index\n%n = arith.cmpi ult, %t, %c7 : index\n" + times(2);
  check(masks + loads({0, 1}, "mask %m guarded"), {2});
  check(masks + R"(%i1 = arith.addi %at, %c1 : index
    %v0 = vx.load %x[%r, %at] mask %m guarded : <?x?xf32, global> -> f32
    %v1 = vx.load %x[%r, %i1] mask %n guarded : <?x?xf32, global> -> f32
    %total = arith.subf %v0, %v1 : f32)",
        {1, 1});
}

TEST(WideLoads, OfOneRow) {
  check(times(2) + R"(%q = arith.addi %r, %c1 : index
    %i1 = arith.addi %at, %c1 : index
    %v0 = vx.load %x[%r, %at] guarded : <?x?xf32, global> -> f32
    %v1 = vx.load %x[%q, %i1] guarded : <?x?xf32, global> -> f32
    %total = arith.subf %v0, %v1 : f32)",
        {1, 1});
}

TEST(WideLoads, InWindowsOfWholeRows) {
  const std::string window = R"(%h = vx.dim %x, 0 : !vx.view<?x?xf32, global>
    %w = vx.dim %x, 1 : !vx.view<?x?xf32, global>
    %n = arith.subi %w, %c4 : index
    %i1 = arith.addi %at, %c1 : index
)";
  const std::string rest = R"(
    %v0 = vx.load %y[%r, %at] guarded : <?x?xf32, global> -> f32
    %v1 = vx.load %y[%r, %i1] guarded : <?x?xf32, global> -> f32
    %total = arith.subf %v0, %v1 : f32)";
  const std::string from = "%y = vx.subview %x[%c0, ", types = " : " + kView + " to " + kView;
  check(times(2) + window + from + "%c0] sizes(%h, %w)" + types + rest, {2});
  check(times(2) + window + from + "%c4] sizes(%h, %n)" + types + rest, {1, 1});  // it may end anywhere
}

TEST(WideLoads, RowsThatMayEndAnywhereStay) {
  check(times(4) + loads({0, 1, 2, 3}), {1, 1, 1, 1}, {.unitStrides = true});
  check(times(4) + loads({0, 1, 2, 3}), {1, 1, 1, 1}, {.unitStrides = true, .aligned = {0}});
}

TEST(WideLoads, OfWhatIsStoredStay) {
  check(times(2) + R"(%i1 = arith.addi %at, %c1 : index
    %v0 = vx.load %o[%r, %t] guarded : <?x?xf32, global> -> f32
    %total = arith.addf %v0, %v0 : f32)",
        {1}, {.unitStrides = true, .wholeRows = {0, 1}});
}

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing::wide_loads
