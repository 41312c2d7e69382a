#include "target/gpu/placement.h"

#include "ir/size_attr.h"
#include "size/evaluate.h"

#include <gtest/gtest.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/IR/BuiltinOps.h>
#include <mlir/IR/OwningOpRef.h>
#include <mlir/Parser/Parser.h>

namespace vortex::target::gpu {
namespace {

/// Of one tensor of a launch.
struct Lies {
  int64_t address = 0;
  std::vector<int64_t> extents, strides;
};

/// `uses` of %x, the only argument, in a phase of its own.
class Placement : public testing::Test {
protected:
  Placement() { context_.loadDialect<mlir::arith::ArithDialect, ir::VxDialect>(); }

  ir::KernelOp phase(const std::string& type, const std::string& uses, const std::string& role = "param",
                     const std::string& facts = "") {
    const std::string view = "!vx.view<" + type + ", global>";
    module_ = mlir::parseSourceString<mlir::ModuleOp>(
        "vx.entry @k : (" + view + ") -> () args [{name = \"x\", role = #vx.role<" + role +
            ">, access = #vx.access<read>" + facts + "}]\nvx.kernel @k.0(%x: " + view +
            ") attributes {grid = [#vx.size<\"1\">, #vx.size<\"1\">, #vx.size<\"1\">], block = [#vx.size<\"1\">, "
            "#vx.size<\"1\">, #vx.size<\"1\">]} {\n  %c0 = arith.constant 0 : index\n  %n = vx.dim %x, 0 : " +
            view + "\n" + uses + "  vx.return\n}\n",
        mlir::ParserConfig(&context_));
    EXPECT_TRUE(module_);
    return *module_->getOps<ir::KernelOp>().begin();
  }

  /// `isParam`: callers give it.
  bool holds(ir::KernelOp phase, const Assumptions& assumptions, const Lies& lies, bool isParam = true) {
    artifact::Kernel kernel;
    if (isParam)
      kernel.params.emplace_back();
    else
      kernel.results.emplace_back();
    size::Expr condition = conditionFor(phase, kernel, assumptions);
    return !condition || size::evaluate(condition, [&](const size::Node& leaf) {
                           return leaf.op == size::Op::Address ? lies.address
                                  : leaf.op == size::Op::Dim   ? lies.extents[leaf.dim]
                                                               : lies.strides[leaf.dim];
                         }) != 0;
  }

  static constexpr const char* kMatrix = "?x?xf32";
  static constexpr const char* kLoad = "  %t = vx.tile_load %x[%c0, %c0] sizes(%n, %n) inbounds : !vx.view<?x?xf32, "
                                       "global> -> tensor<?x?xf32>\n";
  const Assumptions unit_{.unitStrides = true}, aligned_{.aligned = {0}}, whole_{.aligned = {0}, .wholeRows = {0}};

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(Placement, AsksNothingWithoutAssumptionsOrUses) {
  EXPECT_TRUE(holds(phase(kMatrix, kLoad), {}, {4, {3, 5}, {1, 7}}));
  EXPECT_TRUE(holds(phase(kMatrix, ""), aligned_, {4, {3, 5}, {1, 7}}));
}

TEST_F(Placement, AsksNeighboursToFollowEachOther) {
  ir::KernelOp loads = phase(kMatrix, kLoad);
  EXPECT_TRUE(holds(loads, unit_, {4, {3, 5}, {7, 1}}));
  EXPECT_FALSE(holds(loads, unit_, {4, {3, 5}, {1, 3}}));
  EXPECT_TRUE(holds(loads, unit_, {4, {3, 5}, {1, 3}}, false));  // the launch allocates results
}

TEST_F(Placement, AsksRowsToStartAtSixteenBytes) {
  ir::KernelOp loads = phase(kMatrix, kLoad);
  EXPECT_TRUE(holds(loads, aligned_, {32, {3, 5}, {8, 1}}));
  EXPECT_FALSE(holds(loads, aligned_, {36, {3, 5}, {8, 1}}));
  EXPECT_FALSE(holds(loads, aligned_, {32, {3, 5}, {6, 1}}));
  EXPECT_FALSE(holds(loads, aligned_, {32, {3, 5}, {8, 2}}));
  EXPECT_FALSE(holds(loads, aligned_, {32, {3, 5}, {6, 1}}, false));
}

TEST_F(Placement, AsksWholeRowsOnlyWhereThatIsAssumed) {
  ir::KernelOp loads = phase(kMatrix, kLoad);
  EXPECT_TRUE(holds(loads, whole_, {32, {3, 4}, {8, 1}}));
  EXPECT_FALSE(holds(loads, whole_, {32, {3, 5}, {8, 1}}));
}

TEST_F(Placement, TrustsTheRowsOfTemporaries) {
  ir::KernelOp loads = phase(
      "?x8xf32", "  %t = vx.tile_load %x[%c0, %c0] sizes(%n) inbounds : !vx.view<?x8xf32, global> -> tensor<?x8xf32>\n",
      "temp", ", extents = [#vx.size<\"dim(0,0)\">, #vx.size<\"8\">]");
  EXPECT_TRUE(hasAlignedRows(loads, 0));
  EXPECT_TRUE(holds(loads, aligned_, {36, {3, 8}, {6, 1}}, false));
}

/// What a window leaves out has one element: neither its stride matters, nor that it is last.
TEST_F(Placement, IgnoresDimensionsOfOneElement) {
  const std::string column = "  %w = vx.subview %x[%c0, %c0] sizes(%n) dropped [1] {vx.unit} : !vx.view<?x?xf32, "
                             "global> to !vx.view<?xf32, global>\n";
  ir::KernelOp window = phase(kMatrix, column);
  EXPECT_EQ(rowsOf(window, 0).dim, 0u);
  EXPECT_TRUE(holds(window, aligned_, {32, {9, 1}, {1, 1}}));
  EXPECT_TRUE(holds(window, aligned_, {32, {9, 1}, {1, 3}}));
  EXPECT_FALSE(holds(window, aligned_, {32, {9, 1}, {4, 1}}));
  EXPECT_FALSE(holds(window, unit_, {32, {9, 1}, {4, 1}}));
  const std::string row = "  %w = vx.subview %x[%c0, %c0] sizes(%n) dropped [0] {vx.unit} : !vx.view<?x?xf32, global> "
                          "to !vx.view<?xf32, global>\n";
  EXPECT_TRUE(holds(phase(kMatrix, row), aligned_, {32, {1, 9}, {9, 1}}));
  EXPECT_FALSE(holds(phase(kMatrix, row + kLoad), aligned_, {32, {1, 9}, {9, 1}}));
}

/// Other windows may leave out one of many.
TEST_F(Placement, KeepsDimensionsThatWindowsChooseFrom) {
  ir::KernelOp window = phase(
      kMatrix,
      "  %w = vx.subview %x[%c0, %c0] sizes(%n) dropped [1] : !vx.view<?x?xf32, global> to !vx.view<?xf32, global>\n");
  EXPECT_EQ(rowsOf(window, 0).dim, 1u);
  EXPECT_FALSE(holds(window, unit_, {32, {9, 1}, {1, 3}}));
}

}  // namespace
}  // namespace vortex::target::gpu
