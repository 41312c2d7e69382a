#include "ir/tile_sizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

namespace vortex::ir {
namespace {

// Argument k of the function prints as "%k", a constant as its value, an unknown extent as "?".
std::string show(llvm::ArrayRef<mlir::OpFoldResult> sizes) {
  std::string text;
  for (mlir::OpFoldResult size : sizes) {
    text += text.empty() ? "" : " ";
    if (!size)
      text += "?";
    else if (auto attribute = llvm::dyn_cast<mlir::Attribute>(size))
      text += std::to_string(llvm::cast<mlir::IntegerAttr>(attribute).getInt());
    else if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(llvm::cast<mlir::Value>(size)))
      text += "%" + std::to_string(argument.getArgNumber());
    else
      text += "value";
  }
  return text;
}

/// Sizes of the value returned by a function with arguments %a: view, %n, %m: index, %p: i1.
std::string sizesOf(llvm::StringRef body, llvm::StringRef type) {
  mlir::DialectRegistry registry;
  registerVxDialects(registry);
  mlir::MLIRContext context(registry);
  std::string text = ("func.func @f(%n: index, %m: index, %a: !vx.view<?x?xf32, global>, %p: i1, %c: index) -> " +
                      type + " {\n" + body + "\n}")
                         .str();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return "does not parse";
  auto function = *module->getOps<mlir::func::FuncOp>().begin();
  return show(tileSizes(function.getBody().front().getTerminator()->getOperand(0)));
}

constexpr const char* kLoad =
    "%t = vx.tile_load %a[%c, %c] sizes(%n, %m) : !vx.view<?x?xf32, global> -> tensor<?x?xf32>\n";

TEST(TileSizes, StaticExtentsNeedNoProducer) {
  EXPECT_EQ(sizesOf("%t = vx.iota 0 -> tensor<4x8xi32> return %t : tensor<4x8xi32>", "tensor<4x8xi32>"), "4 8");
}
TEST(TileSizes, SizesOperandsFillDynamicDimensionsInOrder) {
  EXPECT_EQ(
      sizesOf("%t = vx.iota 0 sizes(%m, %n) -> tensor<?x8x?xi32> return %t : tensor<?x8x?xi32>", "tensor<?x8x?xi32>"),
      "%1 8 %0");
}
TEST(TileSizes, ConstantSizesBecomeAttributes) {
  EXPECT_EQ(sizesOf("%k = arith.constant 5 : index %t = vx.iota 0 sizes(%k) -> tensor<?xi32> return %t : tensor<?xi32>",
                    "tensor<?xi32>"),
            "5");
}
TEST(TileSizes, ElementwiseTransposeReduceAndDotFollowTheirOperands) {
  std::string body = kLoad;
  body += "%u = arith.addf %t, %t : tensor<?x?xf32>\n%e = math.exp %u : tensor<?x?xf32>\n"
          "%w = vx.transpose %e [1, 0] : tensor<?x?xf32> -> tensor<?x?xf32>\n";
  EXPECT_EQ(sizesOf(body + "return %w : tensor<?x?xf32>", "tensor<?x?xf32>"), "%1 %0");
  EXPECT_EQ(
      sizesOf(body + "%r = vx.reduce addf %w dims [1] : tensor<?x?xf32> -> tensor<?xf32> return %r : tensor<?xf32>",
              "tensor<?xf32>"),
      "%1");
  EXPECT_EQ(
      sizesOf(body +
                  "%k = arith.constant 0.0 : f32 %z = vx.broadcast %k dims [] sizes(%n, %n) : f32 -> tensor<?x?xf32>\n"
                  "%d = vx.dot %t, %w, %z : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32> return %d : "
                  "tensor<?x?xf32>",
              "tensor<?x?xf32>"),
      "%0 %0");
}
TEST(TileSizes, LoopCarriedTilesKeepTheirInitialExtents) {
  std::string body = kLoad;
  body += "%r = scf.for %i = %c to %n step %m iter_args(%x = %t) -> tensor<?x?xf32> {\n"
          "  %y = arith.addf %x, %x : tensor<?x?xf32> scf.yield %y : tensor<?x?xf32> }\n";
  EXPECT_EQ(sizesOf(body + "return %r : tensor<?x?xf32>", "tensor<?x?xf32>"), "%0 %1");
}
TEST(TileSizes, BranchesUseExtentsFromOutside) {
  std::string body = kLoad;
  body += "%r = scf.if %p -> tensor<?x?xf32> {\n  %k = arith.addi %n, %m : index\n"
          "  %y = vx.tile_load %a[%c, %c] sizes(%k, %m) : !vx.view<?x?xf32, global> -> tensor<?x?xf32>\n"
          "  scf.yield %y : tensor<?x?xf32>\n} else {\n  scf.yield %t : tensor<?x?xf32>\n}\n";
  EXPECT_EQ(sizesOf(body + "return %r : tensor<?x?xf32>", "tensor<?x?xf32>"), "%0 %1");
}
TEST(TileSizes, ThreadResultsHaveBlockExtent) {
  auto threads = [](const char* shape) {
    return sizesOf("%one = arith.constant 1 : index %k = arith.constant 4 : index\n%r = vx.threads (" +
                       std::string(shape) +
                       ") {\n^bb0(%x: index, %y: index, %z: index, %l: index):\n vx.yield %x : index\n} : "
                       "tensor<?xindex>\nreturn %r : tensor<?xindex>",
                   "tensor<?xindex>");
  };
  EXPECT_EQ(threads("%n, %one, %one"), "%0");
  EXPECT_EQ(threads("%k, %k, %one"), "16");
  EXPECT_EQ(threads("%n, %m, %one"), "?");
}

}  // namespace
}  // namespace vortex::ir
