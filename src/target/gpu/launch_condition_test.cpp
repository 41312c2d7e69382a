#include "target/gpu/launch_condition.h"

#include "ir/size_attr.h"
#include "ir/vx.h"
#include "ir/vxt.h"
#include "size/evaluate.h"

#include <gtest/gtest.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/IR/Builders.h>
#include <mlir/IR/BuiltinOps.h>
#include <mlir/IR/MLIRContext.h>

#include <random>

namespace vortex::target::gpu {

namespace arith = mlir::arith;

namespace {

/// A vxt.kernel with extents and strides as arguments, in which random integer code is built beside its value.
class LaunchConditionTest : public testing::Test {
protected:
  static constexpr unsigned kExtents = 3, kStrides = 2;

  LaunchConditionTest() : module_(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context_))), b_(&context_) {
    context_.loadDialect<arith::ArithDialect, ir::VxDialect, ir::vxt::VxtDialect>();
    b_.setInsertionPointToEnd(module_->getBody());
    llvm::SmallVector<mlir::Type> types(kExtents + kStrides, b_.getIndexType());
    auto kernel = b_.create<ir::vxt::KernelOp>(loc(), "k", b_.getFunctionType(types, {}), mlir::ArrayAttr(),
                                               mlir::ArrayAttr(), ir::sizeConstant(&context_, 32), 0, 0);
    mlir::Block* body = b_.createBlock(&kernel.getBody());
    for (mlir::Type type : types)
      body->addArgument(type, loc());
  }
  mlir::Location loc() { return b_.getUnknownLoc(); }
  size::Expr argumentOf(unsigned slot) {
    return slot < kExtents ? ir::sizeArena(&context_).dim(slot, 0) : ir::sizeArena(&context_).stride(slot, 0);
  }
  size::Expr condition(mlir::Value value, size_t mostSteps) {
    return launchCondition(value, [&](unsigned slot) { return argumentOf(slot); }, mostSteps);
  }

  struct Known {
    mlir::Value value;
    uint64_t now;
  };
  uint64_t pick(uint64_t count) { return random_() % count; }

  /// A number that may be small, large or negative.
  uint64_t number() {
    constexpr uint64_t interesting[] = {0, 1, 2, 3, 4, 7, 8, 31, 32, 255, 256, 1000, 8192};
    return interesting[pick(std::size(interesting))] + pick(3);
  }

  void grow(std::vector<Known>& integers, std::vector<Known>& truths) {
    Known x = integers[pick(integers.size())], y = integers[pick(integers.size())];
    auto keep = [&](mlir::Value value, uint64_t now) { integers.push_back({value, now}); };
    auto tell = [&](mlir::Value value, bool now) { truths.push_back({value, now}); };
    uint64_t few = 1 + pick(64);
    mlir::Value constant = b_.create<arith::ConstantIndexOp>(loc(), static_cast<int64_t>(few));
    auto sx = static_cast<int64_t>(x.now), sy = static_cast<int64_t>(y.now);
    switch (pick(13)) {
    case 0: return keep(b_.create<arith::AddIOp>(loc(), x.value, y.value), x.now + y.now);
    case 1: return keep(b_.create<arith::SubIOp>(loc(), x.value, y.value), x.now - y.now);
    case 2: return keep(b_.create<arith::MulIOp>(loc(), x.value, constant), x.now * few);
    case 3: return keep(b_.create<arith::MaxUIOp>(loc(), x.value, y.value), std::max(x.now, y.now));
    case 4: return keep(b_.create<arith::MinUIOp>(loc(), x.value, y.value), std::min(x.now, y.now));
    case 5: return keep(b_.create<arith::MaxSIOp>(loc(), x.value, y.value), static_cast<uint64_t>(std::max(sx, sy)));
    case 6: return keep(b_.create<arith::DivUIOp>(loc(), x.value, constant), x.now / few);
    case 7: return keep(b_.create<arith::CeilDivUIOp>(loc(), x.value, constant), x.now / few + (x.now % few != 0));
    case 8: return keep(b_.create<arith::RemUIOp>(loc(), x.value, constant), x.now % few);
    case 9: {
      if (truths.empty())
        return;
      const Known& c = truths[pick(truths.size())];
      return keep(b_.create<arith::SelectOp>(loc(), c.value, x.value, y.value), c.now ? x.now : y.now);
    }
    case 10: {
      using P = arith::CmpIPredicate;
      constexpr P all[] = {P::eq, P::ne, P::slt, P::sle, P::sgt, P::sge, P::ult, P::ule, P::ugt, P::uge};
      bool now[] = {
          x.now == y.now, x.now != y.now, sx<sy, sx <= sy, sx> sy, sx >= sy, x.now<y.now, x.now <= y.now, x.now> y.now,
          x.now >= y.now};
      uint64_t which = pick(10);
      return tell(b_.create<arith::CmpIOp>(loc(), all[which], x.value, y.value), now[which]);
    }
    case 11: {
      if (truths.size() < 2)
        return;
      Known p = truths[pick(truths.size())], q = truths[pick(truths.size())];
      return pick(2) ? tell(b_.create<arith::AndIOp>(loc(), p.value, q.value), p.now && q.now)
                     : tell(b_.create<arith::OrIOp>(loc(), p.value, q.value), p.now || q.now);
    }
    default: {
      mlir::Value wide = b_.create<arith::IndexCastOp>(loc(), b_.getI64Type(), x.value);
      mlir::Value mask = b_.create<arith::ConstantIntOp>(loc(), 7, 64);
      mlir::Value low = b_.create<arith::AndIOp>(loc(), wide, mask);
      mlir::Value none = b_.create<arith::ConstantIntOp>(loc(), 0, 64);
      return tell(b_.create<arith::CmpIOp>(loc(), arith::CmpIPredicate::eq, low, none), (x.now & 7) == 0);
    }
    }
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::OpBuilder b_;
  std::mt19937_64 random_{11};
};

TEST_F(LaunchConditionTest, HasTheValueThatTheKernelComputes) {
  mlir::Block& body = *b_.getInsertionBlock();
  unsigned converted = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<uint64_t> slots;
    std::vector<Known> integers, truths;
    for (unsigned i = 0; i < kExtents + kStrides; ++i) {
      slots.push_back(i < kExtents || pick(2) ? number() : -number());
      integers.push_back({body.getArgument(i), slots.back()});
    }
    for (int step = 0; step < 14; ++step)
      grow(integers, truths);
    for (const Known& truth : truths) {
      size::Expr converts = condition(truth.value, 200);
      if (!converts)
        continue;
      ++converted;
      int64_t value = size::evaluate(
          converts, [&](const size::Node& argument) { return static_cast<int64_t>(slots[argument.argument]); });
      ASSERT_EQ(value != 0, truth.now != 0);
    }
  }
  EXPECT_GT(converted, 200u);
}

TEST_F(LaunchConditionTest, WhatDiffersBetweenBlocksOrIsTooLongIsNone) {
  mlir::Value block = b_.create<ir::vxt::BlockIdOp>(loc(), b_.getIndexType(), ir::Axis::X);
  mlir::Value extent = b_.getInsertionBlock()->getArgument(0);
  mlir::Value here = b_.create<arith::CmpIOp>(loc(), arith::CmpIPredicate::ult, block, extent);
  EXPECT_FALSE(condition(here, 100));
  mlir::Value sum = extent;
  for (int i = 0; i < 120; ++i)
    sum = b_.create<arith::AddIOp>(loc(), sum, sum);
  mlir::Value large = b_.create<arith::CmpIOp>(loc(), arith::CmpIPredicate::ult, sum, extent);
  EXPECT_FALSE(condition(large, 100));
}

}  // namespace

}  // namespace vortex::target::gpu
