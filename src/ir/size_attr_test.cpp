#include "ir/size_attr.h"

#include "mlir/IR/Diagnostics.h"

#include "gtest/gtest.h"

namespace vortex::ir {
namespace {

using Op = artifact::SizeExpr::Op;

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
  std::function<mlir::InFlightDiagnostic()> fail() {
    return [this] { return mlir::emitError(mlir::UnknownLoc::get(&context)); };
  }
  std::vector<int64_t> slots(SizeAttr size) {
    auto expr = toSizeExpr(size, types, fail());
    std::vector<int64_t> result;
    for (const auto& step : expr->steps)
      result.push_back(step.op == Op::Slot ? step.value : -1);
    return result;
  }
  mlir::MLIRContext context;
  llvm::SmallVector<mlir::Type> types;
};

TEST_F(SizeAttrTest, SlotsFollowTheCallingConvention) {
  EXPECT_EQ(argumentSlots(types), (llvm::SmallVector<uint32_t>{0, 5, 6, 9}));
  EXPECT_EQ(slots(sizeDim(&context, 0, 0)), (std::vector<int64_t>{1}));
  EXPECT_EQ(slots(sizeDim(&context, 0, 1)), (std::vector<int64_t>{2}));
  EXPECT_EQ(slots(sizeStride(&context, 0, 0)), (std::vector<int64_t>{3}));
  EXPECT_EQ(slots(sizeStride(&context, 0, 1)), (std::vector<int64_t>{4}));
  EXPECT_EQ(slots(sizeScalar(&context, 1)), (std::vector<int64_t>{5}));
  EXPECT_EQ(slots(sizeDim(&context, 2, 0)), (std::vector<int64_t>{7}));
  EXPECT_EQ(slots(sizeStride(&context, 2, 0)), (std::vector<int64_t>{8}));
}

TEST_F(SizeAttrTest, CombinatorsFoldConstants) {
  SizeAttr n = sizeDim(&context, 0, 0), one = sizeConstant(&context, 1), zero = sizeConstant(&context, 0);
  auto constant = [&](Op op, int64_t a, int64_t b) {
    return *constantSize(sizeBinary(op, sizeConstant(&context, a), sizeConstant(&context, b)));
  };
  EXPECT_EQ(sizeBinary(Op::Mul, n, one), n);
  EXPECT_EQ(sizeBinary(Op::Add, zero, n), n);
  EXPECT_EQ(sizeBinary(Op::CeilDiv, n, one), n);
  EXPECT_EQ(sizeBinary(Op::CeilDiv, n, sizeConstant(&context, 256)).getProgram(), "dim(0,0) 256 ceildiv");
  EXPECT_EQ(constant(Op::CeilDiv, 7, 2), 4);
  EXPECT_EQ(constant(Op::CeilDiv, -7, 2), -3);
  EXPECT_EQ(constant(Op::FloorDiv, -7, 2), -4);
  EXPECT_EQ(constant(Op::Mod, -7, 4), 1);
  EXPECT_EQ(constant(Op::Mod, 7, 0), 0);
  EXPECT_EQ(constant(Op::FloorDiv, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(sizeUnary(Op::IsPowerOfTwo, sizeConstant(&context, 48)), zero);
  EXPECT_EQ(sizeUnary(Op::Not, zero), one);
}

TEST_F(SizeAttrTest, TheSlotFormComesBack) {
  auto size = SizeAttr::get(&context, "dim(0,1) stride(2,0) mul scalar(1) 3 max ceildiv 7 mod pow2 not");
  auto expr = toSizeExpr(size, types, fail());
  ASSERT_TRUE(mlir::succeeded(expr));
  EXPECT_EQ(*fromSizeExpr(&context, *expr, types), size);
}

TEST_F(SizeAttrTest, DataPointersAreNoSizes) {
  EXPECT_TRUE(mlir::failed(fromSizeExpr(&context, artifact::SizeExpr::slot(6), types)));
  EXPECT_TRUE(mlir::failed(fromSizeExpr(&context, artifact::SizeExpr::slot(9), types)));
}

}  // namespace
}  // namespace vortex::ir
