#include "ir/launch.h"

#include "ir/size_attr.h"
#include "size/evaluate.h"

#include <gtest/gtest.h>
#include <random>

namespace vortex::ir {
namespace {

/// A choice of least cost whose cases are phases c0, c1, …; scalar(2·i) is what case i needs, scalar(2·i + 1) its cost.
class LeastCost : public testing::Test {
protected:
  void build(unsigned count) {
    mlir::DialectRegistry registry;
    registerVxDialects(registry);
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
    mlir::OpBuilder builder(&context_);
    auto loc = builder.getUnknownLoc();
    module_ = mlir::ModuleOp::create(loc);
    builder.setInsertionPointToStart(module_->getBody());
    mlir::OperationState launch(loc, LaunchOp::getOperationName());
    launch.addAttribute("entry", mlir::FlatSymbolRefAttr::get(&context_, "k"));
    launch.addRegion()->emplaceBlock();
    builder.setInsertionPointToStart(llvm::cast<LaunchOp>(builder.create(launch)).getBody());
    auto choose = builder.create<ChooseOp>(loc, true);
    builder.setInsertionPointToStart(&choose->getRegion(0).emplaceBlock());
    for (unsigned i = 0; i < count; ++i) {
      SizeAttr needs = i + 1 < count ? sizeScalar(&context_, 2 * i) : SizeAttr();
      auto each = builder.create<CaseOp>(loc, builder.getStringAttr(std::to_string(i)), needs, SizeAttr(),
                                         sizeScalar(&context_, 2 * i + 1));
      each->getRegion(0).emplaceBlock();
      cases_.push_back(each);
    }
  }

  /// As a launch decides, case by case.
  unsigned taken(const std::vector<int64_t>& scalars) {
    auto valueOf = [&](SizeAttr size) {
      return size::evaluate(size.getExpr(), [&](const size::Node& leaf) { return scalars[leaf.argument]; });
    };
    for (unsigned i = 0; i < cases_.size(); ++i)
      if (holds(cases_[i], valueOf))
        return i;
    return unsigned(cases_.size());
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::vector<CaseOp> cases_;
};

TEST_F(LeastCost, TakesTheFirstOfLeastCostAmongThoseWhoseNeedsHold) {
  build(5);
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int64_t> scalars;
    for (int i = 0; i < 5; ++i) {
      scalars.push_back(static_cast<int64_t>(random() % 3) - 1);
      scalars.push_back(random() % 8 ? static_cast<int64_t>(random() % 6) : INT64_MAX);
    }
    unsigned best = 4;
    for (unsigned i = 4; i-- > 0;)
      if (scalars[2 * i] != 0 && scalars[2 * i + 1] <= scalars[2 * best + 1])
        best = i;
    ASSERT_EQ(taken(scalars), best) << round;
  }
}

TEST_F(LeastCost, TakesTheOnlyCaseWhateverItCosts) {
  build(1);
  EXPECT_FALSE(preferenceOf(cases_[0]));
  EXPECT_EQ(taken({0, INT64_MAX}), 0u);
}

}  // namespace
}  // namespace vortex::ir
