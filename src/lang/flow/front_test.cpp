// What checked kernels become: guards of accesses.
#include "lang/flow/testing/analyzed.h"

#include <gtest/gtest.h>

namespace vortex::lang::flow {
namespace {

using testing::Analyzed;

TEST(Front, TypesOfIndicesProveBounds) {
  Analyzed a("@launch(grid = [1], block = 256)\nkernel k(data: &Tensor<u8, [N]>, wide: &Tensor<u16, [N]>) {\n"
             "let own: Tensor<u32, [256]> @shared\nown[data[0]] = 1\nown[wide[0]] = 1\n}");
  EXPECT_EQ(a.ids(), "") << a.messages();
  const std::string text = dump(*a.program, {.types = false, .uniformity = true});
  EXPECT_NE(text.find("own[cast<usize>(*data[0: usize]?)] ="), std::string::npos) << text;
  EXPECT_NE(text.find("own[cast<usize>(*wide[0: usize]?)]? ="), std::string::npos) << text;
}

/// The guards of `t[index] = 1` in a kernel of 64 threads with `let`s before it: "?" where it is not proven.
std::string guardOf(const std::string& index, const std::string& shape = "N", const std::string& before = "",
                    const std::string& where = "") {
  Analyzed a("@launch(grid = [2], block = 64)\nkernel k(t: &mut Tensor<i32, [" + shape +
             "]>, data: &Tensor<u8, [N]>, n: u32, s: i32) " + where + " {\n" + before + "\n" +
             (before.ends_with("{") ? "t[" + index + "] = 1 }" : "t[" + index + "] = 1") + "\n}");
  EXPECT_EQ(a.ids(), "") << a.messages();
  const std::string text = dump(*a.program, {.types = false, .uniformity = true});
  const size_t end = text.find(" = 1");
  if (end == std::string::npos)
    return text;
  return text[end - 1] == '?' ? "?" : "";
}

TEST(Front, MachineIntegersProveBounds) {
  EXPECT_EQ(guardOf("(thread.local_id as u8) as usize", "256"), "");
  EXPECT_EQ(guardOf("(thread.global_id as u8) as usize", "256"), "");
  EXPECT_EQ(guardOf("thread.local_id % N", "N", "", "where N: NonZero"), "");
  EXPECT_EQ(guardOf("data[thread.local_id] % 7", "7"), "");
  EXPECT_EQ(guardOf("data[0] / 2", "128"), "");
  EXPECT_EQ(guardOf("data[0] >> 3", "32"), "");
  EXPECT_EQ(guardOf("data[0] as usize + data[1] as usize", "511"), "");
  EXPECT_EQ(guardOf("thread.global_id - 1", "N", "if thread.global_id > 0 && thread.global_id <= N {"), "");
  EXPECT_EQ(guardOf("s as usize", "N", "if s >= 0 && (s as usize) < N {"), "");
  EXPECT_EQ(guardOf("thread.local_id % N", "N", "if thread.local_id < N {"), "");
  EXPECT_EQ(guardOf("thread.local_id, thread.global_id % M", "64, M", "if thread.global_id < M {"), "");
  EXPECT_EQ(guardOf("min(thread.global_id, N - 1)", "N", "if N > 0 {"), "");
}

TEST(Front, ControlFlowProvesBounds) {
  EXPECT_EQ(guardOf("i", "N", "var i = 0usize\nwhile i < N {\nif i == 7 { break }\ni += 1\n}\nif i < N {"), "");
  EXPECT_EQ(guardOf("i", "64", "for i in range(thread.local_id, 64, 32) {"), "");
  EXPECT_EQ(guardOf("p.0", "N", "let p = (thread.global_id, 1)\nif p.0 >= N { return }"), "");
  EXPECT_EQ(guardOf("i", "N", "let i = if n == 0 { thread.local_id } else { 5 }\nif i < N {"), "");
  EXPECT_EQ(guardOf("c", "N", "for (i, c) in (5..N).enumerate() {"), "");
  EXPECT_EQ(guardOf("thread.global_id / 2 + N", "2 * N", "if thread.global_id < 2 * N {"), "");
}

TEST(Front, WhatMayWrapOrDivideByZeroIsGuarded) {
  EXPECT_EQ(guardOf("(thread.local_id as u8) as usize", "60"), "?");
  EXPECT_EQ(guardOf("(thread.global_id as i8) as usize", "128"), "?") << "negative numbers are huge";
  EXPECT_EQ(guardOf("thread.local_id % N"), "?") << "t[i % 0] of an empty tensor";
  EXPECT_EQ(guardOf("thread.local_id % (n as usize)", "N", "if n as usize <= N {"), "?");
  EXPECT_EQ(guardOf("thread.local_id / (n as usize)", "N"), "?");
  EXPECT_EQ(guardOf("(data[0] + data[1]) as usize", "200"), "?");
  EXPECT_EQ(guardOf("thread.global_id - 1", "N", "if thread.global_id <= N {"), "?");
  EXPECT_EQ(guardOf("s as usize", "N", "if s < 100 && N >= 100 {"), "?");
  EXPECT_EQ(guardOf("n + 1", "N", "if n < 4294967295 && (n as usize) < N {"), "?");
  EXPECT_EQ(guardOf("(n - 1) as usize", "4294967295"), "?");
  EXPECT_EQ(guardOf("i", "N", "var i = 0usize\nwhile i < N {\nif i == 7 { break }\ni += 1\n}"), "?")
      << "N behind the loop";
  EXPECT_EQ(guardOf("i + 1", "64", "for i in range(thread.local_id, 64, 32) {"), "?");
  EXPECT_EQ(guardOf("(c + 1) as usize", "9", "for (i, c) in (0..9i32).enumerate() {"), "?");
}

}  // namespace
}  // namespace vortex::lang::flow
