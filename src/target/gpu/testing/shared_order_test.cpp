#include "target/gpu/testing/shared_order.h"

#include "target/gpu/testing/machine.h"

#include <gtest/gtest.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Parser/Parser.h>

namespace vortex::target::gpu::testing {
namespace {

struct SharedOrderTest : ::testing::Test {
  SharedOrderTest() { order.reset(16, 64); }
  bool reads(unsigned thread, size_t at = 0) { return order.access(thread, at, 4, false).empty(); }
  bool writes(unsigned thread, size_t at = 0) { return order.access(thread, at, 4, true).empty(); }
  SharedOrder order;
};

TEST_F(SharedOrderTest, AThreadSeesWhatItDidItself) {
  EXPECT_TRUE(writes(3) && reads(3) && writes(3));
  EXPECT_TRUE(writes(4, 4)) << "other bytes";
}

TEST_F(SharedOrderTest, AWriteOfAnotherThreadNeedsABarrier) {
  EXPECT_TRUE(writes(3));
  EXPECT_FALSE(reads(4));
  EXPECT_FALSE(writes(4, 2)) << "two bytes in common";
  order.meet(0, 64);
  EXPECT_TRUE(reads(4) && reads(63));
}

TEST_F(SharedOrderTest, EveryReaderMustBeDoneBeforeAWrite) {
  EXPECT_TRUE(reads(1) && reads(2) && reads(40));
  order.meet(0, 32);
  EXPECT_FALSE(writes(2)) << "thread 40 was not there";
  order.meet(0, 64);
  EXPECT_TRUE(writes(2));
}

TEST_F(SharedOrderTest, ABarrierOfAWarpOrdersThatWarp) {
  EXPECT_TRUE(writes(3));
  order.meet(32, 32);
  EXPECT_FALSE(reads(4));
  order.meet(0, 32);
  EXPECT_TRUE(reads(4));
  EXPECT_FALSE(reads(32));
}

TEST_F(SharedOrderTest, WhatIsReleasedAfterwardsIsNotSeen) {
  SharedOrder::Clock clock;
  EXPECT_TRUE(writes(3));
  order.release(3, clock);
  EXPECT_TRUE(writes(3, 8));
  order.acquire(50, clock);
  EXPECT_TRUE(reads(50));
  EXPECT_FALSE(reads(50, 8));
}

/// Each thread of a warp stores its number, waits in some way, and reads what its neighbour stored.
std::string exchange(const std::string& between) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::arith::ArithDialect, ir::VxDialect, ir::vxt::VxtDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "vxt.kernel @exchange() attributes {threads = #vx.size<\"32\">, shared_bytes = 256 : i64} {\n"
      "%t = vxt.thread_id : index\n%p = vxt.shared 0 : !vxt.ptr<shared>\n%one = arith.constant 1 : i32\n"
      "%i1 = arith.constant 1 : index\n%next = arith.addi %t, %i1 : index\n%f = arith.constant 2.0 : f32\n"
      "vxt.store %f, %p[%t] : f32, !vxt.ptr<shared>, index\n" +
          between + "%v = vxt.load %p[%next] : !vxt.ptr<shared>, index -> f32\nvxt.return\n}\n",
      &context);
  return module ? run(*module->getOps<ir::vxt::KernelOp>().begin(), {}) : "does not parse";
}

/// Lanes wait for one another at a shuffle, but PTX orders no memory by it.
TEST(Machine, WantsABarrierBetweenLanesOfAWarp) {
  EXPECT_EQ(exchange("vxt.barrier\n"), "");
  EXPECT_EQ(exchange("vxt.warp_barrier\n"), "");
  for (const char* between : {"", "%r = vxt.shuffle xor %f, %one : f32\n"})
    EXPECT_NE(exchange(between).find("no barrier orders the two"), std::string::npos) << exchange(between);
}

}  // namespace
}  // namespace vortex::target::gpu::testing
