// Which loops end only when another thread writes.
#include "lang/flow/testing/analyzed.h"

#include <gtest/gtest.h>

namespace vortex::lang::flow {
namespace {

using testing::Analyzed;

std::string waitingIds(const std::string& body) {
  Analyzed analyzed("@launch(grid = [4], block = 64)\nkernel k(x: &mut Tensor<u32, [N]>, f: &mut Tensor<u32, [8]>, c: "
                    "&Tensor<u32, [8]>, n: u32) {\n"
                    "let t = thread.local_id\nlet s: Tensor<u32, [64]> @shared\ns[t] = 0\nsync_block()\n" +
                    body + "\n}\n");
  return analyzed.ids();
}

TEST(Waiting, LoopsThatOnlyOthersEndAreErrors) {
  for (const char* body :
       {"while atomic_load(&f[0]) == 0 { }\nf[0] = 1", "while f[0] == 0 { }\nf[0] = n",
        "loop { if atomic_load(&f[t % 8]) == n { break } }\nif t == 0 { atomic_add(&mut f[1], 1) }",
        "while atomic_exchange(&mut f[0], 1) == 1 { }", "while atomic_compare_exchange(&mut f[0], 0, 1) != 0 { }",
        "while atomic_max(&mut f[0], n) < 3 { }", "while atomic_min(&mut f[0], n) > 3 { }",
        "while atomic_and(&mut f[0], 7) > 3 { }", "while atomic_or(&mut f[0], 0) < 3 { }",
        "while atomic_add(&mut f[0], 0) < 3 { }", "while s[0] == 0 { }\ns[t] = 1",
        "var seen = 0u32\nwhile seen == 0 { seen = atomic_load(&f[2]) }\nf[2] = 1",
        "var seen = 0u32\nvar rounds = 0u32\nwhile seen == 0 { seen = atomic_load(&f[2])\nrounds += 1 }\nf[2] = rounds",
        "while atomic_load(&f[0]) == 0 { f[1] = 3 }\nf[0] = 1", "while atomic_load(&f[0]) == 0 && n > 3 { }\nf[0] = 1",
        "for i in 0..4 { while atomic_load(&f[0]) < i { } }\nif t == 0 { atomic_add(&mut f[0], 1) }",
        "loop { let v = atomic_load(&f[0])\nif v > 3 { break }\nif v == 9 { x[t] = 1 } }\nf[0] = 9"})
    EXPECT_EQ(waitingIds(body), "E0455") << body;
}

TEST(Waiting, LoopsThatMoveOnByThemselvesAreFine) {
  for (const char* body :
       {"while atomic_add(&mut f[0], 1) < 30 { }", "while atomic_add(&mut f[0], n) < 30 { }",
        "var i = 0u32\nwhile i < c[0] { i += 1 }",
        "var i = 0u32\nwhile i < n && atomic_load(&f[0]) == 0 { i += 1 }\nf[0] = 1",
        "while f[t % 8] > 3 { f[t % 8] = f[t % 8] - 1 }", "while f[0] > 3 { f[t % 8] = 0 }",
        "loop { if c[0] > 3 { break }\nif n == 3 { break }\nreturn }",
        "var seen = atomic_load(&f[0])\nloop { let old = atomic_compare_exchange(&mut f[0], seen, "
        "seen + 1)\nif old == seen { break }\nseen = old }",
        "for i in 0..c[0] { f[i as usize] = 0 }",
        "var at = n\nwhile c[at as usize % 8] > 3 { at = c[at as usize % 8] + at }",
        "var k = 1u32\nwhile atomic_max(&mut f[0], k) < 30 { k += 1 }",
        "loop { let v = atomic_load(&f[0])\nif v < 4 { f[0] = v + 1 } else { break } }",
        "loop { let old = atomic_load(&f[0])\nif atomic_compare_exchange(&mut f[0], old, old * 3) == "
        "old { break } }",
        "while s[t] < n { s[t] += 1 }"})
    EXPECT_EQ(waitingIds(body), "") << body;
}

TEST(Waiting, LoopsWhoseFlagNothingWritesAreErrors) {
  for (const char* body :
       {"while c[0] == 0 { }", "while f[0] == 0 { }", "while atomic_load(&f[0]) == 0 { }",
        "loop { if c[t % 8] > n { break } }", "while f[0] < n { x[t] = 1 }",
        "var seen = c[1]\nwhile seen == 0 { seen = c[1] }", "for i in 0..4 { while c[i as usize] < i { } }"})
    EXPECT_EQ(waitingIds(body), "E0455") << body;
  for (const char* body : {"if c[0] == 0 { x[t] = 1 }", "var i = 0usize\nwhile i < 8 && c[i] == 0 { i += 1 }",
                           "for i in 0..8 { if c[i] == 0 { break } }", "loop { if c[0] == 0 { break }\nreturn }"})
    EXPECT_EQ(waitingIds(body), "") << body;
}

/// The grid is that of x's elements.
std::string surplusIds(const std::string& body) {
  return Analyzed("kernel k(x: &mut Tensor<u32, [N]>, f: &mut Tensor<u32, [8]>) {\nlet i = thread.global_id\n"
                  "let s: Tensor<u32, [64]> @shared\ns[thread.local_id % 64] = 0\nsync_block()\nx[i] = 0\n" +
                  body + "\n}\n")
      .ids();
}

TEST(Waiting, SurplusThreadsStayOutOfLoopsThatTheyWouldNotLeaveIfATestCanStandThere) {
  EXPECT_EQ(surplusIds("while warp.any(x[i] < 10) { x[i] += 1 }"), "W0450 E0455");
  for (const char* body : {"while warp.any(x[i] > 10) { x[i] -= 1 }", "loop { x[i] += 1\nif x[i] > 5 { return } }",
                           "loop { if warp.any(atomic_add(&mut f[0], 1) > 9) { break } }"})
    EXPECT_EQ(surplusIds(body), "E0455") << body;
  for (const char* body : {"while x[i] < 10 { x[i] += 1 }", "while atomic_add(&mut f[0], 1) < 9 { }",
                           "let t = loop { let t = atomic_add(&mut f[0], 1)\nif t > 9 { break t } }\nx[i] = t",
                           "var v = 0u32\nwhile warp.any(v < 10) { v += 1\nx[i] = v }",
                           "while f[0] < 9 { if thread.local_id == 0 { f[0] += 1 }\nsync_block() }",
                           "var v = x[i]\nwhile v != 1 { v = if v % 2 == 0 { v / 2 } else { 3 * v + 1 } }\nx[i] = v"})
    EXPECT_EQ(surplusIds(body), "") << body;
  EXPECT_EQ(surplusIds("var v = x[i]\nvar c = 1u32\nwhile v < f[0] { v *= 2\nc = 0 }\nx[i] = block.sum(c)"), "W0450");
}

}  // namespace
}  // namespace vortex::lang::flow
