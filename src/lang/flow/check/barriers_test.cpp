// Barriers, warp operations, atomics and tile work under control that threads take differently.
#include "lang/flow/testing/analyzed.h"

#include <gtest/gtest.h>

namespace vortex::lang::flow {
namespace {

using testing::Analyzed;

std::string barrierIds(const std::string& body, const std::string& block = "64") {
  Analyzed analyzed("fn early(x: &Tensor<u32, [N]>, n: u32) -> u32 { for i in 0..n { if x[i as usize] == n { return i "
                    "} } return 3 }\n"
                    "@launch(grid = [4], block = " +
                    block +
                    ")\nkernel k(x: &mut Tensor<u32, [N]>, f: &mut Tensor<u32, [8]>, n: u32) {\n"
                    "let t = thread.local_id\n" +
                    body + "\n}\n");
  return analyzed.ids();
}

TEST(Barriers, WhereNotAllThreadsGetTheyAreErrors) {
  for (const char* body :
       {"if t < 3 { sync_block() }", "if t < 32 { sync_block() }", "for i in 0..t { sync_block() }",
        "if t == 3 { return }\nsync_block()", "while x[t] > 3 { x[t] -= 1\nsync_block() }",
        "for i in 0..9 { if x[t] == i { break }\nsync_block() }",
        "for i in 0..9 { if t == 3 { continue }\nsync_block() }", "if n > 3 { if t > 4 { } else { sync_block() } }",
        "if x[n as usize] > t as u32 && n > 3 { sync_block() }",
        "var go = n > 3\nif t == 9 { go = false }\nif go { sync_block() }",
        "for i in 0..9 { if x[t] == i { break } else { sync_block() } }", "if t < 32 { sync_block() }\nsync_warp()",
        "if atomic_add(&mut f[0], 1) == 0 { sync_block() }",
        "let own: Tensor<u32, [4]> @local = zeros()\nown[0] = t as u32\nif own[0] == 3 { sync_block() }",
        "loop { if x[t] == 3 { break }\nif n == 5 { sync_block()\nbreak } }"})
    EXPECT_EQ(barrierIds(body), "E0450") << body;
  for (const char* body : {"if t < 3 { x[t] = warp.sum(1u32) }", "if t < 33 { sync_warp() }",
                           "for i in 0..t { x[t] = warp.broadcast(n, 3) }",
                           "var i = t\nwhile i < 64 { i += 32\nsync_warp()\nif warp.lane_id == 3 { break } }"})
    EXPECT_EQ(barrierIds(body), "E0451") << body;
  EXPECT_EQ(barrierIds("if t < 3 { let s: Tensor<u32, [64]> @shared\ns[t] = 1 }"), "E0452");
}

TEST(Barriers, WhereAllThreadsGetTheyAreFine) {
  for (const char* body :
       {"if n > 3 { sync_block() }", "for i in 0..n { sync_block() }", "if t < 3 { x[t] = 1 }\nsync_block()",
        "if n == 3 { return }\nsync_block()", "for i in 0..9 { if x[t] == i { break } }\nsync_block()",
        "for i in 0..9 { if n == i { break }\nsync_block() }", "if block.id.x == 2 { sync_block() }",
        "while atomic_load(&f[0]) > n { f[0] = 0\nif t > 3 { break } }\nsync_block()",
        "if t < 32 { x[t] = warp.sum(1u32) }", "if t / 32 == n as usize { sync_warp() }",
        "var k = early(x, t as u32)\nsync_block()\nx[t] = k",
        "for i in 0..9 { if t == 3 { continue }\nx[t] = i }\nsync_block()",
        "var i = 0u32\nwhile i < n { i += 1\nsync_block() }", "var i = t / 32\nwhile i < 64 { i += 2\nsync_warp() }"})
    EXPECT_EQ(barrierIds(body), "") << body;
  EXPECT_EQ(barrierIds("if thread.id.y == 1 { sync_warp() }", "[32, 2]"), "");
  EXPECT_EQ(barrierIds("if thread.id.y == 1 { sync_warp() }", "[16, 4]"), "E0451");
}

TEST(Barriers, AnAtomicOperationThatAllThreadsWouldDoIsAnErrorUnlessItsResultIsUsed) {
  for (const char* body : {"atomic_add(&mut f[0], 1)", "atomic_add(&mut f[n as usize], n)",
                           "if n > 3 { atomic_max(&mut f[block.id.x], 4) }", "atomic_store(&mut f[0], 3)"})
    EXPECT_EQ(barrierIds(body), "E0453") << body;
  for (const char* body :
       {"let i = atomic_add(&mut f[0], 1)\nx[t] = i", "atomic_add(&mut f[t % 8], 1)", "atomic_add(&mut f[0], t as u32)",
        "if t == 0 { atomic_add(&mut f[0], 1) }", "if t == 0 { atomic_add(&mut f[0], 1)\nx[t] = 1 }",
        "if x[t] > 3 { atomic_add(&mut f[0], 1) }"})
    EXPECT_EQ(barrierIds(body), "") << body;
}

}  // namespace
}  // namespace vortex::lang::flow
