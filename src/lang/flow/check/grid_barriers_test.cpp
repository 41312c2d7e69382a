// Barriers of the grid: which values all blocks agree on, and which accesses of different blocks they order.
#include "lang/flow/testing/analyzed.h"

#include <gtest/gtest.h>

namespace vortex::lang::flow {
namespace {

std::string gridIds(const std::string& body, const std::string& launch = "grid = [4], block = 64, cooperative") {
  testing::WithRaces judged(
      "@launch(" + launch +
      ")\nkernel k(x: &mut Tensor<u32, [256]>, y: &mut Tensor<u32, [256]>, f: &mut Tensor<u32, [8]>, "
      "c: &Tensor<u32, [8]>, n: u32) {\nlet i = thread.global_id\nlet t = thread.local_id\n" +
      body + "\n}\n");
  return judged.ids();
}

TEST(GridBarriers, WhatSomeBlocksMissIsAnError) {
  for (const char* body :
       {"if block.id == 1 { sync_grid() }", "if block.id * 0 + 3 > block.id { sync_grid() }",
        "for k in 0..block.id { sync_grid() }", "if c[block.id] == 3 { sync_grid() }",
        "if block.id == 2 { return }\nsync_grid()", "for k in 0..n { if c[block.id] == k { break }\nsync_grid() }",
        "let s: Tensor<u32, [64]> @shared\ns[t] = i as u32\nsync_block()\nif s[0] > 3 { sync_grid() }",
        "var go = n > 3\nif block.id == 1 { go = false }\nif go { sync_grid() }",
        "var k = block.id\nwhile k < 9 { k += 1\nsync_grid() }", "if n > 3 { if block.id == 1 { sync_grid() } }",
        "if block.id == 1 { if n > 3 { sync_grid() } }",
        "var k = 0u32\nfor m in 0..block.id { k += 1 }\nif k == 2 { sync_grid() }",
        "let a = atomic_add(&mut f[0], 1)\nif block.sum(a) > 3 { sync_grid() }"})
    EXPECT_EQ(gridIds(body), "E0478") << body;
  EXPECT_EQ(gridIds("if t < 3 { sync_grid() }"), "E0450");
  EXPECT_EQ(gridIds("sync_grid()", "grid = [4], block = 64"), "E0477");
}

TEST(GridBarriers, WhatAllBlocksReachIsFine) {
  for (const char* body : {"sync_grid()", "for k in 0..n { sync_grid() }", "if c[3] == 9 { sync_grid() }",
                           "if n == 3 { return }\nsync_grid()", "if block.id == 1 { y[i] = 3 }\nsync_grid()",
                           "var k = n\nwhile k > 2 { k /= 2\nsync_grid() }", "if grid.dim == 3 { sync_grid() }",
                           "if block.sum(t as u32 + n) > 3 { sync_grid() }",
                           "if t < 3 { y[i] = 3 }\nfor k in 0..4 { if k == c[k as usize] { sync_grid() } }"})
    EXPECT_EQ(gridIds(body), "") << body;
}

TEST(GridBarriers, OrderAccessesOfDifferentBlocks) {
  for (const char* body : {"x[i] = n\nsync_grid()\ny[i] = x[255 - i]",
                           "x[i] = n\nsync_grid()\ny[i] = x[(i + 64) % 256]\nsync_grid()\nx[i] = y[i]",
                           "for k in 0..n { y[i] = x[255 - i]\nsync_grid()\nx[i] = y[i] + k\nsync_grid() }",
                           "var r = 0usize\nwhile r < 9 { x[(i + r) % 256] = n\nr += 1\nsync_grid() }",
                           "if i == 0 { f[0] = n }\nsync_grid()\nif f[0] == 3 { y[i] = 1 }",
                           "let o = c[3] as usize\nx[(i + o) % 256] = n\nsync_grid()"})
    EXPECT_EQ(gridIds(body), "") << body;
  for (const char* body :
       {"x[i] = n\nsync_block()\ny[i] = x[255 - i]", "x[i] = n\nsync_grid()\ny[i] = x[255 - i]\nx[i] = 3",
        "for k in 0..3 { y[i] = x[255 - i]\nsync_grid()\nx[i] = y[i] + k }",
        "var r = block.id\nfor k in 0..4 { x[(t + r * 64) % 256] = n\nr = r * 2\nsync_grid() }",
        "if i == 0 { f[0] = n }\nif f[0] == 3 { y[i] = 1 }\nsync_grid()",
        "let o = c[block.id] as usize\nx[(i + o) % 256] = n\nsync_grid()"})
    EXPECT_NE(gridIds(body), "") << body;
}

TEST(GridBarriers, BlocksMayWaitForEachOtherWhereTheyRunTogether) {
  const char* waits = "if t == 0 { while atomic_load(&f[0]) != n { }\natomic_store(&mut f[0], n + 1) }";
  EXPECT_EQ(gridIds(waits), "");
  EXPECT_EQ(gridIds(waits, "grid = [4], block = 64"), "E0455");
  EXPECT_EQ(gridIds("if atomic_load(&f[0]) == n { sync_grid() }\nif t == 0 { atomic_add(&mut f[0], 1) }"), "E0450");
}

}  // namespace
}  // namespace vortex::lang::flow
