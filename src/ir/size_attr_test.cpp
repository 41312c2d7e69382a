#include "ir/size_attr.h"

#include "gtest/gtest.h"

namespace vortex::ir {
namespace {

struct SizeAttrTest : testing::Test {
  SizeAttrTest() {
    mlir::DialectRegistry registry;
    registerVxDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    auto f32 = mlir::Float32Type::get(&context);
    int64_t dynamic = mlir::ShapedType::kDynamic;
    types = {ViewType::get({dynamic, dynamic}, f32), mlir::IntegerType::get(&context, 32),
             ViewType::get({dynamic}, f32)};
  }
  mlir::MLIRContext context;
  llvm::SmallVector<mlir::Type> types;
};

TEST_F(SizeAttrTest, SlotsFollowTheCallingConvention) {
  EXPECT_EQ(argumentSlots(types), (llvm::SmallVector<uint32_t>{0, 5, 6, 9}));
  size::Arena& arena = sizeArena(&context);
  const std::pair<size::Expr, uint32_t> places[] = {
      {arena.address(0), 0},   {arena.dim(0, 0), 1},    {arena.dim(0, 1), 2},
      {arena.stride(0, 0), 3}, {arena.stride(0, 1), 4}, {arena.scalar(1), 5},
      {arena.address(2), 6},   {arena.dim(2, 0), 7},    {arena.stride(2, 0), 8}};
  for (auto [argument, slot] : places) {
    EXPECT_EQ(slotOf(argument.node(), types), slot);
    EXPECT_EQ(argumentOfSlot(&context, types, slot), argument);
  }
}

TEST_F(SizeAttrTest, EqualExpressionsAreOneAttribute) {
  SizeAttr n = sizeDim(&context, 0, 0), m = sizeDim(&context, 2, 0);
  EXPECT_EQ(sizeBinary(size::Op::Mul, n, m), sizeBinary(size::Op::Mul, m, n));
  EXPECT_EQ(sizeBinary(size::Op::CeilDiv, n, sizeConstant(&context, 1)), n);
  EXPECT_EQ(sizeUnary(size::Op::Not, sizeConstant(&context, 0)), sizeConstant(&context, 1));
  EXPECT_EQ(constantSize(sizeBinary(size::Op::Sub, n, n)), 0);
}

}  // namespace
}  // namespace vortex::ir
