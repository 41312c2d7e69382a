#include "lang/flow/value/node.h"
#include "lang/flow/value/testing/every_value.h"

#include <gtest/gtest.h>

#include <cmath>

namespace vortex::lang::flow {
namespace {

using testing::kI8;
using testing::kU8;

TEST(Nodes, OfEqualStructureAreOne) {
  NodeTable nodes;
  const ValueId a = nodes.argument(0, kU8), b = nodes.argument(1, kU8);
  EXPECT_EQ(nodes.op(Op::Add, kU8, a, b), nodes.op(Op::Add, kU8, b, a));
  EXPECT_NE(nodes.op(Op::Sub, kU8, a, b), nodes.op(Op::Sub, kU8, b, a));
  EXPECT_NE(a, nodes.argument(0, kI8));
  EXPECT_EQ(nodes.position(PositionKind::BlockId, 2), nodes.position(PositionKind::BlockId, 2));
  EXPECT_NE(nodes.phi(kU8, BlockId{0}), nodes.phi(kU8, BlockId{0}));
  EXPECT_NE(nodes.unknown(nullptr, kU8), nodes.unknown(nullptr, kU8));
}

TEST(Nodes, FoldConstantsInTheirType) {
  NodeTable nodes;
  const ValueId sum = nodes.op(Op::Add, kU8, nodes.constant(kU8, 200), nodes.constant(kU8, 100));
  EXPECT_EQ(nodes[sum].constant(), 44);
  EXPECT_EQ(nodes[nodes.convert(kI8, nodes.constant(kU8, 255))].constant(), -1);
  EXPECT_EQ(nodes[nodes.negate(nodes.constant(kI8, -128))].constant(), -128);
  EXPECT_EQ(nodes[nodes.complement(nodes.constant(kBool, 1))].constant(), 0);
  const ValueId a = nodes.argument(0, kU8);
  EXPECT_EQ(nodes.op(Op::Mul, kU8, a, nodes.constant(kU8, 1)), a);
  EXPECT_EQ(nodes.op(Op::Select, kU8, nodes.constant(kBool, 1), a, nodes.constant(kU8, 3)), a);
}

TEST(Nodes, ReplacedPhisAreSeenThrough) {
  NodeTable nodes;
  const ValueId outer = nodes.phi(kU8, BlockId{1}), inner = nodes.phi(kU8, BlockId{2});
  const ValueId one = nodes.constant(kU8, 1), next = nodes.op(Op::Add, kU8, inner, one);
  nodes.setPhiOperands(inner, {outer, inner});
  nodes.replacePhi(inner, outer);
  EXPECT_EQ(nodes.resolved(inner), outer);
  EXPECT_TRUE(nodes.operand(next, 0) == outer || nodes.operand(next, 1) == outer);
  EXPECT_EQ(nodes.phiBlock(outer), BlockId{1});
}

/// The oracle: the processor's own arithmetic on eight bits, every pair of operands.
template <class T> void compareAllPairs(MachineType type) {
  for (int i = static_cast<int>(type.lowest()); i <= type.highest(); ++i)
    for (int j = static_cast<int>(type.lowest()); j <= type.highest(); ++j) {
      const auto is = [&](Op op, int exact) {
        ASSERT_EQ(static_cast<int>(applyOp(op, type, i, j)), static_cast<int>(static_cast<T>(exact))) << i << " " << j;
      };
      is(Op::Add, i + j);
      is(Op::Sub, i - j);
      is(Op::Mul, i * j);
      is(Op::Div, j == 0 ? 0 : i / j);
      is(Op::Rem, j == 0 ? 0 : i % j);
      is(Op::CeilDiv, j == 0 ? 0 : static_cast<int>(std::ceil(static_cast<double>(i) / j)));
      is(Op::Shl, static_cast<int>(static_cast<unsigned>(i) << (static_cast<unsigned>(j) & 7)));
      is(Op::Shr, i >> (static_cast<unsigned>(j) & 7));
      is(Op::And, i & j);
      is(Op::Or, i | j);
      is(Op::Xor, i ^ j);
      is(Op::Min, i < j ? i : j);
      is(Op::Max, i < j ? j : i);
    }
}

TEST(Nodes, ComputeAsTheProcessorDoes) {
  compareAllPairs<uint8_t>(kU8);
  compareAllPairs<int8_t>(kI8);
}

}  // namespace
}  // namespace vortex::lang::flow
