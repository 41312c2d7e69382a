// Kernels whose threads hold their indices inside extents: vxt run on the host, block by block, against the reference interpreter.
#include "base/fresh_seed.h"
#include "interpreter/interpreter.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/tiles/testing/lower.h"

#include <cstring>
#include <gtest/gtest.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/Parser/Parser.h>
#include <random>

namespace vortex::target::gpu::tiles::testing::interior {
namespace {

using gpu::testing::Launch;
using gpu::testing::run;

/// x and o are [h, w]; each of 8 × 4 threads of a block is at row %r and column %c and sums what `body` makes of %i and %j from 0 to 2 into %s.
std::string kernel(const std::string& body) {
  return R"vx(
vx.entry @test : (!vx.view<?x?xf32, global>, !vx.view<?x?xf32, global>) -> () args [
  {name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "o", role = #vx.role<param>, access = #vx.access<readwrite>}]
vx.kernel @test.main(%x: !vx.view<?x?xf32, global>, %o: !vx.view<?x?xf32, global>)
    grid [#vx.size<"ceildiv(dim(0,1), 8)">, #vx.size<"ceildiv(dim(0,0), 4)">, #vx.size<"1">] block [#vx.size<"8">, #vx.size<"4">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %h = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %w = vx.dim %x, 1 : !vx.view<?x?xf32, global>
  %bx = vx.block_id x
  %by = vx.block_id y
  %left = arith.muli %bx, %c8 : index
  %top = arith.muli %by, %c4 : index
  %lowest = arith.subi %h, %c1 : index
  %last = arith.subi %w, %c1 : index
  vx.threads(%c8, %c4, %c1) {
  ^bb0(%tx: index, %ty: index, %tz: index, %t: index):
    %c = arith.addi %left, %tx : index
    %r = arith.addi %top, %ty : index
    %total = scf.for %i = %c0 to %c3 step %c1 iter_args(%outer = %zero) -> (f32) {
      %sum = scf.for %j = %c0 to %c3 step %c1 iter_args(%s = %outer) -> (f32) {
        %ri = arith.addi %r, %i : index
        %cj = arith.addi %c, %j : index
)vx" + body +
         R"vx(
      }
      scf.yield %sum : f32
    }
    vx.store %total, %o[%r, %c] guarded : f32, <?x?xf32, global>
  }
  vx.return
}
)vx";
}

const char* const kSum = R"(
        %v = vx.load %x[%row, %column] guarded : <?x?xf32, global> -> f32
        %half = arith.addf %v, %s : f32
        %next = arith.subf %half, %v : f32
        %more = arith.addf %next, %v : f32
        scf.yield %more : f32)";

/// Both sides, as `min(max(r + i, 1) - 1, h - 1)`.
const std::string kClamped = std::string(R"(
        %a = arith.maxui %ri, %c1 : index
        %b = arith.subi %a, %c1 : index
        %row = arith.minui %b, %lowest : index
        %d = arith.maxui %cj, %c1 : index
        %e = arith.subi %d, %c1 : index
        %column = arith.minui %e, %last : index)") +
                             kSum;

/// Signed, and without a number in between.
const std::string kSigned = std::string(R"(
        %rr = arith.subi %ri, %c1 : index
        %cc = arith.subi %cj, %c1 : index
        %a = arith.maxsi %rr, %c0 : index
        %row = arith.minsi %a, %lowest : index
        %d = arith.minsi %cc, %last : index
        %column = arith.maxsi %d, %c0 : index)") +
                            kSum;

/// One side of one axis.
const std::string kBelow = std::string(R"(
        %row = arith.minui %ri, %lowest : index
        %column = arith.addi %cj, %c0 : index)") +
                           kSum;

/// Far away: most blocks are inside of nothing.
const std::string kFar = std::string(R"(
        %far = arith.muli %i, %c8 : index
        %rr = arith.addi %r, %far : index
        %a = arith.maxui %rr, %c8 : index
        %b = arith.subi %a, %c8 : index
        %row = arith.minui %b, %lowest : index
        %column = arith.minui %c, %last : index)") +
                         kSum;

/// What the limit is about comes from memory: no block is inside.
const std::string kGathered = std::string(R"(
        %g = vx.load %x[%r, %c] guarded : <?x?xf32, global> -> f32
        %n = arith.fptosi %g : f32 to i32
        %at = arith.index_cast %n : i32 to index
        %row = arith.minui %at, %lowest : index
        %column = arith.minui %c, %last : index)") +
                              kSum;

/// Columns that are negative as eight bits: their mask stays.
const std::string kNarrowed = std::string(R"(
        %row = arith.minui %r, %lowest : index
        %m = arith.muli %t, %c8 : index
        %l = arith.index_cast %m : index to i64
        %n = arith.trunci %l : i64 to i8
        %column = arith.index_cast %n : i8 to index)") +
                              kSum;

using Tensor = std::vector<float>;

Tensor interpret(const std::string& text, Tensor x, Tensor o, int64_t h, int64_t w) {
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  auto interpreter = interpreter::Interpreter::create(*module);
  EXPECT_TRUE(interpreter);
  std::vector<interpreter::Argument> arguments{interpreter::Argument::tensor(x.data(), {h, w}),
                                               interpreter::Argument::tensor(o.data(), {h, w})};
  EXPECT_TRUE(interpreter->run(arguments));
  return o;
}

Tensor execute(ir::vxt::KernelOp kernel, Tensor x, Tensor o, int64_t h, int64_t w, unsigned seed) {
  Launch launch;
  launch.seed = seed;
  launch.grid[0] = (w + 7) / 8, launch.grid[1] = (h + 3) / 4;
  for (Tensor* each : {&x, &o}) {
    launch.slots.insert(launch.slots.end(), {reinterpret_cast<uint64_t>(each->data()), static_cast<uint64_t>(h),
                                             static_cast<uint64_t>(w), static_cast<uint64_t>(w), 1});
    launch.memory.push_back({reinterpret_cast<char*>(each->data()), each->size() * 4});
  }
  EXPECT_EQ(run(kernel, launch), "");
  return o;
}

/// Operations of that kind on the side for blocks inside; nothing: the kernel has one version.
template <typename Op> std::optional<size_t> countInside(ir::vxt::KernelOp kernel) {
  auto branches = kernel.getBody().front().getOps<mlir::scf::IfOp>();
  if (branches.empty() || (*branches.begin()).getElseRegion().empty())
    return std::nullopt;
  size_t count = 0;
  (*branches.begin()).getThenRegion().walk([&](Op) { ++count; });
  return count;
}

void check(const std::string& body, bool isSplit) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string text = kernel(body);
  Lowered lowered = lower(context, text);
  ASSERT_EQ(lowered.error, "");
  ir::vxt::KernelOp kernel = *lowered.vxt->getOps<ir::vxt::KernelOp>().begin();
  EXPECT_EQ(countInside<ir::vxt::LoadOp>(kernel).has_value(), isSplit);
  for (size_t masked :
       {countInside<mlir::arith::MinUIOp>(kernel).value_or(0), countInside<mlir::arith::MaxUIOp>(kernel).value_or(0),
        countInside<mlir::arith::MinSIOp>(kernel).value_or(0), countInside<mlir::arith::MaxSIOp>(kernel).value_or(0)})
    EXPECT_EQ(masked, 0U);
  std::mt19937 random(base::freshSeed());
  std::normal_distribution<float> normal;
  for (auto [h, w] : {std::pair(1, 1), {1, 9}, {4, 8}, {5, 9}, {12, 24}, {13, 25}, {16, 17}, {40, 33}, {8, 300}}) {
    SCOPED_TRACE(std::to_string(h) + " × " + std::to_string(w));
    Tensor x(static_cast<size_t>(h * w)), o(x.size(), -7.0F);
    for (float& value : x)
      value = 3 * normal(random);
    Tensor ours = execute(kernel, x, o, h, w, static_cast<unsigned>(random())), reference = interpret(text, x, o, h, w);
    ASSERT_EQ(std::memcmp(ours.data(), reference.data(), ours.size() * 4), 0);
  }
}

TEST(Interior, BlocksAwayFromTheEdgesHaveNoLimits) { check(kClamped, true); }
TEST(Interior, LimitsMayBeSigned) { check(kSigned, true); }
TEST(Interior, OneLimitIsEnough) { check(kBelow, true); }
TEST(Interior, LimitsMayBeFarAway) { check(kFar, true); }
TEST(Interior, NumbersThatATypeDoesNotHoldAreNoRange) { check(kNarrowed, true); }
TEST(Interior, WhatComesFromMemoryKeepsItsLimit) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Lowered lowered = lower(context, kernel(kGathered));
  ASSERT_EQ(lowered.error, "");
  ir::vxt::KernelOp kernel = *lowered.vxt->getOps<ir::vxt::KernelOp>().begin();
  EXPECT_EQ(countInside<mlir::arith::MinUIOp>(kernel).value_or(1), 1U);
}
TEST(Interior, BlocksInsideLoadWithoutMasks) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Lowered lowered = lower(context, kernel(kClamped));
  size_t masks = 0;
  (*(*lowered.vxt->getOps<ir::vxt::KernelOp>().begin()).getBody().front().getOps<mlir::scf::IfOp>().begin())
      .getThenRegion()
      .walk([&](mlir::Operation* op) {
        if (auto load = llvm::dyn_cast<ir::vxt::LoadOp>(op))
          masks += load.getMask() ? 1 : 0;
        else if (auto store = llvm::dyn_cast<ir::vxt::StoreOp>(op))
          masks += store.getMask() ? 1 : 0;
      });
  EXPECT_EQ(masks, 0U);
}

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing::interior
