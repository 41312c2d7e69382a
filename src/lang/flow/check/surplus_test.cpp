// Stores of surplus threads, and zeros that they add, against launches in which each thread's element and value are known.
#include <gtest/gtest.h>

#include "lang/flow/testing/analyzed.h"

namespace vortex::lang::flow {
namespace {

using testing::Analyzed;

std::string surplusIds(const std::string& body, const std::string& attributes = "", const std::string& more = "") {
  Analyzed analyzed(attributes + "kernel k(x: &Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>, z: &mut Tensor<f32, [64]>" +
                    more + ") {\nlet g = thread.global_id\nlet t = thread.local_id\n" + body + "\n}\n");
  EXPECT_FALSE(analyzed.sink.hasErrors()) << analyzed.messages();
  return analyzed.ids();
}

const char* const kBlockOf32 = "@launch(block = 32)\n";

TEST(Surplus, StoresThatFollowTheThreadOfTheBlockMayBeLost) {
  // y[g] makes N the domain: threads beyond it store nothing.
  for (const char* store : {"z[t] = 1.0", "z[t % 64] = x[0]", "if t < 3 { z[0] = 1.0 }", "z[warp.id] = 1.0",
                            "z[warp.lane_id] = 1.0", "z[thread.id.x] = 1.0", "atomic_add(&mut z[t], 1.0)",
                            "z[0] = t as f32", "var s = 0usize\nif t > 3 { s = 1 }\nz[s] = 1.0",
                            "for i in 0..t { z[i] = 1.0 }", "z[block.id.x * 32 + t] = 1.0"})
    EXPECT_EQ(surplusIds("y[g] = x[g]\n" + std::string(store)), "W0452") << store;
}

TEST(Surplus, StoresOfTheElementOrOfTheBlockAreNotLost) {
  for (const char* store :
       {"z[g % 64] = 1.0", "z[0] = x[g]", "if g < 3 { z[t] = 1.0 }", "z[block.id.x % 64] = 1.0", "z[3] = 1.0",
        "z[t] = x[g]", "var s = 0usize\nif g > 3 { s = t }\nz[s] = 1.0", "let own = x[g]\nz[t] = own + 1.0"})
    EXPECT_EQ(surplusIds("y[g] = x[g]\n" + std::string(store)), "") << store;
}

TEST(Surplus, WhatThreadsMadeTogetherIsNoThreadsOwn) {
  for (const char* made : {"let v = block.sum(x[g])\nif t == 63 { z[block.id.x] = v }",
                           "let v = warp.sum(x[g])\nif warp.lane_id == 31 { z[warp.id] = v }",
                           "let v = warp.broadcast(x[g], 0i32)\nif warp.lane_id == 3 { z[warp.id] = v }"})
    EXPECT_NE((" " + surplusIds("y[g] = x[g]\n" + std::string(made))).find("W0452"), std::string::npos) << made;
  for (const char* made : {"let v = block.sum(x[g])\nif t == 0 { z[block.id.x] = v }",
                           "let v = warp.sum(x[g])\nif warp.lane_id == 0 { z[warp.id] = v }",
                           "let v = warp.sum(x[g])\nif t % 32 == 0 { z[warp.id] = v }",
                           "let v = warp.sum(x[g])\nz[t % 64] = v + x[g]", "let v = block.sum(x[g])\nz[g % 64] = v"})
    EXPECT_EQ((" " + surplusIds("y[g] = x[g]\n" + std::string(made))).find("W0452"), std::string::npos) << made;
}

TEST(Surplus, SharedAndLocalMemoryIsWrittenByAllThreads) {
  EXPECT_EQ(surplusIds("let s: Tensor<f32, [256]> @shared\nlet l: Tensor<f32, [4]> @local\ns[t] = 1.0\nl[t % 4] = "
                       "2.0\nsync_block()\n"
                       "y[g] = s[t] + l[t % 4] + x[g]"),
            "");
}

TEST(Surplus, OnlyBlocksThatDoNotFitHaveSurplusThreads) {
  const auto ids = [](const std::string& extent, const std::string& attributes) {
    Analyzed analyzed(
        attributes + "kernel k(y: &mut Tensor<f32, [" + extent +
        "]>, z: &mut Tensor<f32, [64]>) {\ny[thread.global_id] = 1.0\nz[thread.local_id % 64] = 1.0\n}\n");
    return analyzed.ids();
  };
  EXPECT_EQ(ids("64", kBlockOf32), "");
  EXPECT_EQ(ids("65", kBlockOf32), "W0452");
  EXPECT_EQ(ids("N", kBlockOf32), "W0452");
  EXPECT_EQ(ids("N", "@launch(block = 1)\n"), "");
  EXPECT_EQ(ids("512", ""), "") << "of the usual block";
  EXPECT_EQ(ids("100", ""), "W0452");
  EXPECT_EQ(ids("N", "@launch(grid = [4], block = 32)\n"), "") << "whose grid is written";
}

TEST(Surplus, WhatSurplusThreadsDoNotGetToOrStoresOutsideIsNotLost) {
  // The element that the thread of a block has is the element of the grid, written in another way.
  for (const char* store : {"y[block.id.x * 32 + t] = 1.0", "if block.id.x * 32 + t < N { z[t] = 1.0 }",
                            "if block.id.x * 32 + t >= N { return }\nz[t] = 1.0"})
    EXPECT_EQ(surplusIds("y[g] = x[g]\n" + std::string(store), kBlockOf32), "") << store;
  for (const char* store :
       {"z[t] = 1.0", "if block.id.x * 32 + t <= N { z[t] = 1.0 }", "if block.id.x * 16 + t < N { z[t] = 1.0 }"})
    EXPECT_EQ(surplusIds("y[g] = x[g]\n" + std::string(store), kBlockOf32), "W0452") << store;
}

TEST(Surplus, EachAxisHasThreadsOfItsOwn) {
  const auto ids = [](const std::string& shape, const std::string& store) {
    Analyzed analyzed("@launch(block = [8, 4])\nkernel k(y: &mut Tensor<f32, [" + shape +
                      "]>, z: &mut Tensor<f32, [64]>) {\ny[thread.global_id.y, thread.global_id.x] = 1.0\n" + store +
                      "\n}\n");
    return analyzed.ids();
  };
  EXPECT_EQ(ids("R, C", "z[thread.global_id.x % 64] = 1.0"), "");
  EXPECT_EQ(ids("R, C", "z[thread.id.x] = 1.0"), "W0452");
  EXPECT_EQ(ids("R, C", "z[thread.id.y] = thread.global_id.x as f32"), "W0452") << "rows beyond the last";
  EXPECT_EQ(ids("R, 8", "z[thread.id.x] = 1.0"), "") << "columns fit";
  EXPECT_EQ(ids("4, C", "z[thread.id.x] = 1.0"), "W0452");
  EXPECT_EQ(ids("4, C", "z[thread.id.y] = 1.0"), "");
}

//===-- zeros of surplus threads ----------------------------------------------------------------------------------===//

std::string reduced(const std::string& body, const std::string& kind) {
  Analyzed analyzed(
      "fn twice(v: f32) -> f32 { return v * 2.0 }\nfn at(x: &Tensor<f32, [N]>, i: usize) -> f32 { return x[i] }\n"
      "struct Two { a: f32, b: f32 }\n"
      "kernel k(x: &Tensor<f32, [N]>, p: &Tensor<Two, [N]>, o: &Tensor<f32, [M]>) -> f32 reduce(" +
      kind + ") {\nlet g = thread.global_id\n" + body + "\n}\n");
  EXPECT_FALSE(analyzed.sink.hasErrors()) << analyzed.messages();
  return analyzed.ids();
}

TEST(SurplusReads, ZerosThatAreExchangedWithoutATestOfTheBoundAreTold) {
  for (const char* body : {"return block.max(x[g])", "return block.min(x[g] + 1.0)", "return block.max(twice(x[g]))",
                           "return warp.max(x[g])", "let v = x[g] * 2.0\nreturn block.max(v)",
                           "return block.max(p[g].b)", "let other = warp.shuffle_xor(x[g], 1)\nreturn block.max(1.0)",
                           "let s: Tensor<f32, [256]> @shared\ns[thread.local_id] = x[g]\nsync_block()\nreturn s[0]",
                           "return block.max(at(x, g))"})
    EXPECT_EQ(reduced(body, "max"), "W0450") << body;
}

TEST(SurplusReads, WhatIsChosenByTheBoundOrIsNoElementOfTheThreadIsFine) {
  for (const char* body :
       {"return block.max(if g < N { x[g] } else { -inf })", "let own = x[g]\nreturn block.max(o[0])",
        "let v = if g < N { x[g] } else { -inf }\nreturn block.max(v)", "let own = x[g]\nreturn block.max(1.0)",
        "let l: Tensor<f32, [4]> @local\nl[0] = x[g]\nreturn block.max(1.0)",
        "let s: Tensor<f32, [256]> @shared\ns[thread.local_id] = if g < N { x[g] } else { 0.0 }\nsync_block()\nreturn "
        "s[0]",
        "let s: Tensor<f32, [256]> @shared\ns[thread.local_id] = 1.0\nif g < N { s[thread.local_id] = x[g] "
        "}\nsync_block()\nreturn s[0]"})
    EXPECT_EQ(reduced(body, "max"), "") << body;
}

TEST(SurplusReads, ZerosChangeNoSumAndNoOr) {
  EXPECT_EQ(reduced("return block.sum(x[g])", "add"), "");
  EXPECT_EQ(reduced("return block.sum(x[g])", "min"), "") << "each block's sum is right";
  EXPECT_EQ(reduced("return block.sum(x[g] + 1.0)", "min"), "W0450");
  EXPECT_EQ(reduced("return block.sum(exp(x[g]))", "add"), "W0450");
  EXPECT_EQ(reduced("var v = x[g]\nfor m in [2, 1] { v += warp.shuffle_xor(v, m) }\nreturn block.sum(v)", "add"), "");
  EXPECT_EQ(reduced("var v = x[g]\nfor m in [2, 1] { v += warp.shuffle_xor(v, m) }\nreturn block.sum(v)", "min"),
            "W0450");
  const auto bits = [](const std::string& kind) {
    return Analyzed("kernel k(x: &Tensor<u32, [N]>) -> u32 reduce(" + kind +
                    ") {\nlet s: Tensor<u32, [256]> @shared\ns[thread.local_id] = "
                    "x[thread.global_id]\nsync_block()\nreturn s[0]\n}\n")
        .ids();
  };
  EXPECT_EQ(bits("or"), "");
  EXPECT_EQ(bits("and"), "W0450");
  EXPECT_EQ(bits("max"), "W0450");
}

}  // namespace
}  // namespace vortex::lang::flow
