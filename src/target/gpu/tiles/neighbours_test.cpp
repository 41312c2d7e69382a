// Threads that take several rows: vxt run on the host, block by block, against the reference interpreter.
#include "base/fresh_seed.h"
#include "interpreter/interpreter.h"
#include "ir/size_attr.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/tiles/testing/lower.h"

#include <cstring>
#include <gtest/gtest.h>
#include <mlir/Parser/Parser.h>
#include <random>

namespace vortex::target::gpu::tiles::testing::neighbours {
namespace {

using gpu::testing::Launch;

struct Block {
  int64_t x = 32, y = 8, z = 1;
};

/// x and o are [d, h, w]; the threads of a block are at plane %p, row %r and column %c and do `body`.
std::string kernel(const Block& block, const std::string& body) {
  const std::string view = "!vx.view<?x?x?xf32, global>", x = std::to_string(block.x), y = std::to_string(block.y),
                    z = std::to_string(block.z);
  return "vx.entry @test : (" + view + ", " + view + R"vx() -> () args [
  {name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "o", role = #vx.role<param>, access = #vx.access<readwrite>}]
vx.kernel @test.main(%x: )vx" +
         view + ", %o: " + view + ") grid [#vx.size<\"ceildiv(dim(0,2), " + x + ")\">, #vx.size<\"ceildiv(dim(0,1), " +
         y + ")\">, #vx.size<\"ceildiv(dim(0,0), " + z + ")\">] block [#vx.size<\"" + x + "\">, #vx.size<\"" + y +
         "\">, #vx.size<\"" + z + R"vx(">] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %nx = arith.constant )vx" +
         x + " : index\n  %ny = arith.constant " + y + " : index\n  %nz = arith.constant " + z + R"vx( : index
  %d = vx.dim %x, 0 : !vx.view<?x?x?xf32, global>
  %h = vx.dim %x, 1 : !vx.view<?x?x?xf32, global>
  %w = vx.dim %x, 2 : !vx.view<?x?x?xf32, global>
  %bx = vx.block_id x
  %by = vx.block_id y
  %bz = vx.block_id z
  %rows = vx.block_dim y
  %left = arith.muli %bx, %nx : index
  %top = arith.muli %by, %rows : index
  %front = arith.muli %bz, %nz : index
  %farthest = arith.subi %d, %c1 : index
  %lowest = arith.subi %h, %c1 : index
  %last = arith.subi %w, %c1 : index
  vx.threads(%nx, %ny, %nz) {
  ^bb0(%tx: index, %ty: index, %tz: index, %t: index):
    %c = arith.addi %left, %tx : index
    %r = arith.addi %top, %ty : index
    %p = arith.addi %front, %tz : index
)vx" + body +
         R"vx(
  }
  vx.return
}
)vx";
}

/// Three rows by three columns around the thread, held inside.
const std::string kNine = R"(
    %total = scf.for %i = %c0 to %c3 step %c1 iter_args(%outer = %zero) -> (f32) {
      %sum = scf.for %j = %c0 to %c3 step %c1 iter_args(%s = %outer) -> (f32) {
        %ri = arith.addi %r, %i : index
        %a = arith.maxui %ri, %c1 : index
        %b = arith.subi %a, %c1 : index
        %row = arith.minui %b, %lowest : index
        %cj = arith.addi %c, %j : index
        %d1 = arith.maxui %cj, %c1 : index
        %e = arith.subi %d1, %c1 : index
        %column = arith.minui %e, %last : index
        %v = vx.load %x[%p, %row, %column] guarded : <?x?x?xf32, global> -> f32
        %half = arith.addf %v, %s : f32
        %next = arith.mulf %half, %half : f32
        %more = arith.addf %next, %v : f32
        scf.yield %more : f32
      }
      scf.yield %sum : f32
    })";

const std::string kStore = R"(
    vx.store %total, %o[%p, %r, %c] guarded : f32, <?x?x?xf32, global>)";

/// The whole body under the condition that the thread is inside, loops included; what is outside takes other values.
const std::string kUnder = R"(
    %isr = arith.cmpi ult, %r, %h : index
    %isc = arith.cmpi ult, %c, %w : index
    %is = arith.andi %isr, %isc : i1
    scf.if %is {)" + kNine +
                           kStore +
                           R"(
    } else {
      %v = vx.load %x[%c0, %c0, %c0] guarded : <?x?x?xf32, global> -> f32
    })";

/// Rows by 32-bit numbers with signs; the linear number of the thread counts, too.
const std::string kSigned = R"(
    %m1 = arith.constant -1 : i32
    %k0 = arith.constant 0 : i32
    %wide = arith.index_castui %r : index to i64
    %ri = arith.trunci %wide : i64 to i32
    %li = arith.index_castui %lowest : index to i64
    %l = arith.trunci %li : i64 to i32
    %two = arith.constant 2 : i32
    %tl = arith.index_castui %t : index to i64
    %tf = arith.sitofp %tl : i64 to f32
    %total = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %tf) -> (f32) {
      %iw = arith.index_castui %i : index to i64
      %in = arith.trunci %iw : i64 to i32
      %at0 = arith.addi %ri, %in : i32
      %at1 = arith.addi %at0, %m1 : i32
      %at2 = arith.maxsi %at1, %k0 : i32
      %at3 = arith.minsi %at2, %l : i32
      %row = arith.index_cast %at3 : i32 to index
      %v = vx.load %x[%p, %row, %c] guarded : <?x?x?xf32, global> -> f32
      %n = arith.addf %v, %s : f32
      scf.yield %n : f32
    })" + kStore;

/// The plane before and behind.
const std::string kPlanes = R"(
    %total = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %zero) -> (f32) {
      %pi = arith.addi %p, %i : index
      %a = arith.maxui %pi, %c1 : index
      %b = arith.subi %a, %c1 : index
      %plane = arith.minui %b, %farthest : index
      %v = vx.load %x[%plane, %r, %c] guarded : <?x?x?xf32, global> -> f32
      %n = arith.addf %v, %s : f32
      scf.yield %n : f32
    })" + kStore;

/// Its own element as it is, its neighbours held inside.
const std::string kSeven = R"(
    %isr = arith.cmpi ult, %r, %h : index
    %isc = arith.cmpi ult, %c, %w : index
    %is = arith.andi %isr, %isc : i1
    scf.if %is {
      %own = vx.load %x[%p, %r, %c] guarded : <?x?x?xf32, global> -> f32
      %p1 = arith.maxui %p, %c1 : index
      %p2 = arith.subi %p1, %c1 : index
      %p3 = vx.load %x[%p2, %r, %c] guarded : <?x?x?xf32, global> -> f32
      %q1 = arith.addi %p, %c1 : index
      %q2 = arith.minui %q1, %farthest : index
      %q3 = vx.load %x[%q2, %r, %c] guarded : <?x?x?xf32, global> -> f32
      %r1 = arith.maxui %r, %c1 : index
      %r2 = arith.subi %r1, %c1 : index
      %r3 = vx.load %x[%p, %r2, %c] guarded : <?x?x?xf32, global> -> f32
      %s1 = arith.addi %r, %c1 : index
      %s2 = arith.minui %s1, %lowest : index
      %s3 = vx.load %x[%p, %s2, %c] guarded : <?x?x?xf32, global> -> f32
      %t1 = arith.maxui %c, %c1 : index
      %t2 = arith.subi %t1, %c1 : index
      %t3 = vx.load %x[%p, %r, %t2] guarded : <?x?x?xf32, global> -> f32
      %u1 = arith.addi %c, %c1 : index
      %u2 = arith.minui %u1, %last : index
      %u3 = vx.load %x[%p, %r, %u2] guarded : <?x?x?xf32, global> -> f32
      %a1 = arith.subf %own, %p3 : f32
      %a2 = arith.mulf %a1, %q3 : f32
      %a3 = arith.addf %a2, %r3 : f32
      %a4 = arith.subf %a3, %s3 : f32
      %a5 = arith.mulf %a4, %t3 : f32
      %a6 = arith.addf %a5, %u3 : f32
      vx.store %a6, %o[%p, %r, %c] guarded : f32, <?x?x?xf32, global>
    })";

/// Neighbours in the row only.
const std::string kInRow = R"(
    %total = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %zero) -> (f32) {
      %ci = arith.addi %c, %i : index
      %v = vx.load %x[%p, %r, %ci] guarded : <?x?x?xf32, global> -> f32
      %n = arith.addf %v, %s : f32
      scf.yield %n : f32
    })" + kStore;

/// A kernel that loads what it stores: threads are unordered, but one's own accesses are not.
const std::string kInPlace = R"(
    %r1 = arith.addi %r, %c1 : index
    %v = vx.load %o[%p, %r, %c] guarded : <?x?x?xf32, global> -> f32
    %u = vx.load %x[%p, %r1, %c] guarded : <?x?x?xf32, global> -> f32
    %total = arith.addf %u, %v : f32)" +
                             kStore;

/// How many times is not known.
const std::string kUnknownLength = R"(
    %total = scf.for %i = %c0 to %d step %c1 iter_args(%s = %zero) -> (f32) {
      %ri = arith.addi %r, %i : index
      %v = vx.load %x[%p, %ri, %c] guarded : <?x?x?xf32, global> -> f32
      %n = arith.addf %v, %s : f32
      scf.yield %n : f32
    })" + kStore;

using Numbers = std::vector<float>;

/// A tensor of extents [d, h, w] in memory of its own, some elements apart, rows perhaps backwards.
struct Tensor {
  int64_t extents[3], strides[3], first = 0;
  Numbers memory;

  Tensor(int64_t d, int64_t h, int64_t w, int64_t apart, bool isBackwards) : extents{d, h, w} {
    const int64_t row = w * apart + 3;
    strides[0] = row * h + 5, strides[1] = isBackwards ? -row : row, strides[2] = apart;
    first = isBackwards ? row * (h - 1) : 0;
    memory.resize(static_cast<size_t>(d * strides[0] + row), -7.0F);
  }
  float& at(int64_t p, int64_t r, int64_t c) {
    return memory[static_cast<size_t>(first + p * strides[0] + r * strides[1] + c * strides[2])];
  }
  Numbers dense() {
    Numbers all;
    for (int64_t p = 0; p < extents[0]; ++p)
      for (int64_t r = 0; r < extents[1]; ++r)
        for (int64_t c = 0; c < extents[2]; ++c)
          all.push_back(at(p, r, c));
    return all;
  }
};

Numbers interpret(const std::string& text, Tensor& x, Tensor& o) {
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  EXPECT_TRUE(module);
  auto interpreter = interpreter::Interpreter::create(*module);
  EXPECT_TRUE(interpreter);
  Numbers in = x.dense(), out = o.dense();
  std::vector<int64_t> extents(x.extents, x.extents + 3);
  std::vector<interpreter::Argument> arguments{interpreter::Argument::tensor(in.data(), extents),
                                               interpreter::Argument::tensor(out.data(), extents)};
  EXPECT_TRUE(interpreter->run(arguments));
  return out;
}

void execute(ir::vxt::KernelOp kernel, const Block& block, Tensor& x, Tensor& o, unsigned seed) {
  Launch launch;
  launch.seed = seed;
  const int64_t sides[3] = {block.x, block.y, block.z};
  for (int axis = 0; axis < 3; ++axis)
    launch.grid[axis] = (x.extents[2 - axis] + sides[axis] - 1) / sides[axis];
  for (Tensor* each : {&x, &o}) {
    launch.slots.push_back(reinterpret_cast<uint64_t>(each->memory.data() + each->first));
    for (const auto* numbers : {&each->extents, &each->strides})
      for (int64_t number : *numbers)
        launch.slots.push_back(static_cast<uint64_t>(number));
    launch.memory.push_back({reinterpret_cast<char*>(each->memory.data()), each->memory.size() * 4});
  }
  ASSERT_EQ(run(kernel, launch), "");
}

size_t loads(ir::vxt::KernelOp kernel) {
  size_t count = 0;
  kernel.walk([&](ir::vxt::LoadOp) { ++count; });
  return count;
}

/// `threads`: of a block as lowered; fewer than logical ones where they were joined.
void check(const Block& block, const std::string& body, int64_t threads) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  const std::string text = kernel(block, body);
  std::mt19937 random(base::freshSeed());
  std::normal_distribution<float> normal;
  for (bool unitStrides : {true, false}) {
    Lowered lowered = lower(context, text, {.unitStrides = unitStrides});
    ASSERT_EQ(lowered.error, "");
    ir::vxt::KernelOp kernel = *lowered.vxt->getOps<ir::vxt::KernelOp>().begin();
    EXPECT_EQ(kernel.getThreads(), ir::sizeConstant(&context, threads));
    for (auto [d, h, w] : {std::array<int64_t, 3>{1, 1, 1}, {2, 1, 33}, {1, 7, 5}, {9, 3, 32}, {1, 25, 97}})
      for (bool isBackwards : {false, true}) {
        SCOPED_TRACE(std::to_string(d) + " × " + std::to_string(h) + " × " + std::to_string(w));
        Tensor x(d, h, w, unitStrides ? 1 : 2, isBackwards), o(d, h, w, unitStrides ? 1 : 3, !isBackwards);
        for (int64_t p = 0; p < d; ++p)
          for (int64_t r = 0; r < h; ++r)
            for (int64_t c = 0; c < w; ++c)
              x.at(p, r, c) = normal(random);
        Tensor between = o;  // poisoned, between the elements and outside as well
        Numbers expected = interpret(text, x, o);
        execute(kernel, block, x, o, static_cast<unsigned>(random()));
        Numbers ours = o.dense();
        ASSERT_EQ(std::memcmp(ours.data(), expected.data(), ours.size() * 4), 0);
        for (int64_t p = 0; p < d; ++p)
          for (int64_t r = 0; r < h; ++r)
            for (int64_t c = 0; c < w; ++c)
              o.at(p, r, c) = between.at(p, r, c);
        ASSERT_EQ(o.memory, between.memory);
      }
  }
}

TEST(Neighbours, NinePointsOfFourRowsAreLoadedOnce) {
  check({}, kNine + kStore, 64);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Lowered lowered = lower(context, kernel({}, kNine + kStore), {.unitStrides = true});
  EXPECT_EQ(loads(*lowered.vxt->getOps<ir::vxt::KernelOp>().begin()), 2 * 18U);  // inside and at the edges
}
TEST(Neighbours, ConditionsAroundLoopsBecomeMasks) { check({}, kUnder, 64); }
TEST(Neighbours, RowsMayBeSignedAndNarrow) { check({}, kSigned, 64); }
TEST(Neighbours, RowsShorterThanAWarp) { check({16, 16, 1}, kNine + kStore, 64); }
TEST(Neighbours, AsManyRowsAsTheBlockAllows) { check({32, 6, 1}, kNine + kStore, 96); }
TEST(Neighbours, PlanesAreRows) { check({32, 1, 8}, kPlanes, 64); }
TEST(Neighbours, SevenPointsInSpace) { check({}, kSeven, 64); }
TEST(Neighbours, SmallBlocksStay) { check({8, 8, 1}, kNine + kStore, 64); }
TEST(Neighbours, WhatIsSharedInARowStays) { check({}, kInRow, 256); }
TEST(Neighbours, LoopsOfUnknownLengthStay) { check({}, kUnknownLength, 256); }
TEST(Neighbours, LoadsOfWhatIsStoredStay) { check({}, kInPlace, 256); }

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing::neighbours
