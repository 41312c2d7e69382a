// Loops of threads, several iterations at a time: vxt run on the host against the reference interpreter, which runs one after the other.
#include "base/fresh_seed.h"
#include "interpreter/interpreter.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/tiles/testing/lower.h"

#include <cstring>
#include <gtest/gtest.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/Parser/Parser.h>
#include <random>

namespace vortex::target::gpu::tiles::testing {
namespace {

using gpu::testing::Launch;
using gpu::testing::run;

/// x and y are [n], o is [m]; 64 threads run `body` for %i from `lower` below %n by 64, with the running sum %s and the count %k.
std::string kernel(const std::string& body, const std::string& lower = "%c0", const std::string& upper = "%n") {
  return R"(
vx.entry @test : (!vx.view<?xf32, global>, !vx.view<?xi32, global>, !vx.view<?xf32, global>) -> () args [
  {name = "x", role = #vx.role<param>, access = #vx.access<readwrite>}, {name = "y", role = #vx.role<param>, access = #vx.access<read>},
  {name = "o", role = #vx.role<param>, access = #vx.access<readwrite>}]
vx.kernel @test.main(%x: !vx.view<?xf32, global>, %y: !vx.view<?xi32, global>, %o: !vx.view<?xf32, global>)
    grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"64">, #vx.size<"1">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %n = vx.dim %x, 0 : !vx.view<?xf32, global>
  %c5 = arith.constant 5 : index
  %less = arith.subi %n, %c5 : index
  vx.threads(%c64, %c1, %c1) {
  ^bb0(%tx: index, %ty: index, %tz: index, %t: index):
    %r:2 = scf.for %i = )" +
         lower + " to " + upper + R"( step %c64 iter_args(%s = %zero, %k = %c0) -> (f32, index) {
      %at = arith.addi %i, %t : index
      %in = arith.cmpi ult, %at, %n : index
)" + body +
         R"(
    }
    %last = arith.addi %t, %n : index
    %f = arith.index_cast %r#1 : index to i64
    %count = arith.sitofp %f : i64 to f32
    %both = arith.addf %r#0, %count : f32
    vx.store %both, %o[%last] guarded : f32, <?xf32, global>
  }
  vx.return
}
)";
}

const char* const kSum = R"(
      %v = scf.if %in -> (f32) {
        %w = vx.load %x[%at] : <?xf32, global> -> f32
        scf.yield %w : f32
      } else {
        scf.yield %zero : f32
      }
      %next = arith.addf %s, %v : f32
      %more = arith.addi %k, %c1 : index
      scf.yield %next, %more : f32, index)";

const char* const kRunning = R"(
      %v = vx.load %x[%at] guarded : <?xf32, global> -> f32
      %next = arith.subf %v, %s : f32
      scf.if %in {
        vx.store %next, %o[%at] : f32, <?xf32, global>
      }
      %more = arith.addi %k, %c1 : index
      scf.yield %next, %more : f32, index)";

const char* const kInPlace = R"(
      %v = vx.load %x[%at] guarded : <?xf32, global> -> f32
      %next = arith.addf %v, %s : f32
      %after = arith.addi %at, %c64 : index
      vx.store %next, %x[%after] guarded : f32, <?xf32, global>
      scf.yield %next, %k : f32, index)";

const char* const kGathered = R"(
      %j = vx.load %y[%at] guarded : <?xi32, global> -> i32
      %where = arith.index_cast %j : i32 to index
      %v = vx.load %x[%where] guarded : <?xf32, global> -> f32
      %next = arith.addf %s, %v : f32
      %more = arith.addi %k, %where : index
      scf.yield %next, %more : f32, index)";

/// Also a place that stays, outside for small tensors.
const char* const kBeside = R"(
      %c290 = arith.constant 290 : index
      %v = vx.load %x[%at] guarded : <?xf32, global> -> f32
      %w = vx.load %x[%c290] guarded : <?xf32, global> -> f32
      %both = arith.mulf %v, %w : f32
      %next = arith.addf %s, %both : f32
      scf.yield %next, %k : f32, index)";

/// Places before the tensor, of some threads.
const char* const kBefore = R"(
      %back = arith.constant -30 : index
      %before = arith.addi %at, %back : index
      %v = vx.load %x[%before] guarded : <?xf32, global> -> f32
      %next = arith.addf %s, %v : f32
      scf.yield %next, %k : f32, index)";

/// The place of a load is what earlier iterations loaded.
const char* const kChased = R"(
      %j = vx.load %y[%k] guarded : <?xi32, global> -> i32
      %where = arith.index_cast %j : i32 to index
      %v = vx.load %x[%where] guarded : <?xf32, global> -> f32
      %next = arith.addf %s, %v : f32
      scf.yield %next, %where : f32, index)";

/// A loop inside, whose body reads what stands before it.
const char* const kNested = R"(
      %v = vx.load %x[%at] guarded : <?xf32, global> -> f32
      %half = arith.addf %v, %s : f32
      %next = scf.for %m = %c0 to %c5 step %c1 iter_args(%sum = %half) -> (f32) {
        %again = arith.subf %half, %sum : f32
        %twice = arith.addf %again, %sum : f32
        scf.yield %twice : f32
      }
      %more = arith.addi %k, %c1 : index
      scf.yield %next, %more : f32, index)";

struct Data {
  std::vector<float> x, o;
  std::vector<int32_t> y;
};

Data interpret(const std::string& text, Data data) {
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  auto interpreter = interpreter::Interpreter::create(*module);
  EXPECT_TRUE(interpreter);
  auto tensor = [](auto& values) {
    return interpreter::Argument::tensor(values.data(), {static_cast<int64_t>(values.size())});
  };
  std::vector<interpreter::Argument> arguments{tensor(data.x), tensor(data.y), tensor(data.o)};
  auto findings = interpreter->run(arguments);
  EXPECT_TRUE(findings);
  return data;
}

Data execute(Lowered& lowered, Data data, unsigned seed) {
  Launch launch;
  launch.seed = seed;
  auto add = [&](auto& values) {
    launch.slots.insert(launch.slots.end(), {reinterpret_cast<uint64_t>(values.data()), values.size(), 1});
    launch.memory.push_back({reinterpret_cast<char*>(values.data()), values.size() * 4});
  };
  add(data.x);
  add(data.y);
  add(data.o);
  EXPECT_EQ(run(*lowered.vxt->getOps<ir::vxt::KernelOp>().begin(), launch), "");
  return data;
}

size_t loopsOf(Lowered& lowered) {
  size_t loops = 0;
  lowered.vxt->walk([&](mlir::scf::ForOp) { ++loops; });
  return loops;
}

/// `loops`: groups of iterations whose masks and bounds are known, other groups, and what is left.
void check(const std::string& text, size_t loops) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Lowered lowered = lower(context, text);
  ASSERT_EQ(lowered.error, "");
  EXPECT_EQ(loopsOf(lowered), loops);
  std::mt19937 random(base::freshSeed());
  std::normal_distribution<float> normal;
  for (size_t n : {1, 2, 63, 64, 65, 192, 193, 255, 256, 257, 300, 511, 512, 640, 1000}) {
    SCOPED_TRACE("n " + std::to_string(n));
    Data data{std::vector<float>(n), std::vector<float>(n + 64, -7.0F), std::vector<int32_t>(n)};
    for (size_t i = 0; i < n; ++i)
      data.x[i] = normal(random), data.y[i] = static_cast<int32_t>(random() % n);
    Data ours = execute(lowered, data, static_cast<unsigned>(random())), reference = interpret(text, data);
    ASSERT_EQ(std::memcmp(ours.x.data(), reference.x.data(), n * 4), 0);
    ASSERT_EQ(std::memcmp(ours.o.data(), reference.o.data(), reference.o.size() * 4), 0);
  }
}

TEST(Loops, LoadSeveralIterationsAhead) { check(kernel(kSum), 3); }
TEST(Loops, StoreInTheOrderOfIterations) { check(kernel(kRunning), 3); }
TEST(Loops, GatherSeveralIterationsAhead) { check(kernel(kGathered), 3); }
TEST(Loops, ReadPlacesThatStay) { check(kernel(kBeside), 3); }
TEST(Loops, ReadBeforeTheTensor) { check(kernel(kBefore), 3); }
TEST(Loops, FollowWhatTheyLoad) { check(kernel(kChased), 2); }
TEST(Loops, ThatReadWhatTheyWroteStay) { check(kernel(kInPlace), 1); }
TEST(Loops, WithLoopsInsideStay) { check(kernel(kNested), 2); }
TEST(Loops, MayStartAtTheThreadsOwnNumber) { check(kernel(kSum, "%t"), 3); }
TEST(Loops, MayEndBeforeTheyStart) { check(kernel(kSum, "%c0", "%less"), 3); }

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing
