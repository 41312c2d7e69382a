// Verdicts on kernels of a line or two. Each table states what a proof may not take for granted, beside what it may.
#include <gtest/gtest.h>

#include <algorithm>

#include "lang/flow/race/walk.h"
#include "lang/flow/testing/analyzed.h"
#include "lang/flow/testing/graph_of.h"

namespace vortex::lang::flow {
namespace {

std::string verdictOf(const std::string& body, const std::string& launch = "grid = [1], block = 64") {
  const testing::WithRaces judged(
      "@launch(" + launch +
      ")\nkernel k(x: &mut Tensor<u32, [256]>, y: &mut Tensor<u32, [256]>, p: &mut Tensor<u32, [R, "
      "C]>, b: &Tensor<bool, [64]>, c: &Tensor<u32, [64]>, n: usize, m: i32) {\n"
      "let t = thread.local_id\nlet s: Tensor<u32, [64]> @shared\ns[t] = 0\nsync_block()\n" +
      body + "\n}\n");
  std::string ids = judged.ids();
  if (ids.starts_with("W0458"))  // a position that is along x only
    ids.erase(0, std::string_view("W0458 ").size());
  return ids.empty()                ? "free"
         : ids.starts_with("E0630") ? "racy"
         : ids.starts_with("W0631") ? "unknown"
                                    : judged.messages();
}

struct Line {
  const char* verdict;
  const char* body;
};

void expectVerdicts(std::initializer_list<Line> lines, const std::string& launch = "grid = [1], block = 64") {
  for (const Line& line : lines)
    EXPECT_EQ(verdictOf(line.body, launch), line.verdict) << line.body;
}

TEST(Verdicts, QuotientAndRemainderTellNumbersApartWhereTheDivisorIsNotNothing) {
  expectVerdicts({{"free", "if n > 0 { p[t / n, t % n] = 1 }"},
                  {"unknown", "p[t / n, t % n] = 1"},
                  {"free", "p[t / max(n, 1), t % max(n, 1)] = 1"},
                  {"unknown", "if n > 0 { p[t / n, t % (n + 1)] = 1 }"}});
}

TEST(Verdicts, TablesTakeConditionsThatAreNotKnownAsTheyMayBe) {
  expectVerdicts({{"unknown", "if select(t < 3, true, c[t] > 3) { s[t * t % 64] = 1 }"},
                  {"free", "if select(t < 3, c[t] > 3, false) { s[t * t % 64] = 1 }"},
                  {"unknown", "s[if b[t] { t } else { t ^ 1 }] = 1"},
                  {"unknown", "s[if b[t] { t ^ 1 } else { t }] = 1"},
                  {"free", "s[if b[t] { t } else { t ^ 0 }] = 1"}});
}

TEST(Verdicts, PartsThatAreChosenAreWhereTheyBegin) {
  expectVerdicts({{"unknown", "let v = if n > 3 { &x[0..64] } else { &x[1..65] }\ny[t] = v[t]\nx[t] = 1"},
                  {"free", "let v = if n > 3 { &x } else { &y }\ns[t] = v[t]\nx[t] = 1"}});
}

TEST(Verdicts, LoopsLeaveWhatTheyAreLeftWith) {
  const auto behind = [](const std::string& condition, const std::string& use) {
    return verdictOf("var d = 1usize\nwhile " + condition + " { d *= 2 }\ns[t ^ (" + use + ")] = 1");
  };
  EXPECT_EQ(behind("d < 16 && c[(t + d) % 64] > 0", "d / 16"), "unknown");
  EXPECT_EQ(behind("d < 16 && c[(t + d) % 64] > 0", "d / 32"), "free");
}

TEST(Verdicts, NumbersThatAreDrawnBeforeACounterIsClearedComeTwice) {
  const std::string first = "let q: Tensor<u32, [1]> @shared\nif t == 0 { q[0] = 0 }\nsync_block()\n"
                            "let i = atomic_add(&mut q[0], 1)\n",
                    clear = "sync_block()\nif t == 0 { q[0] = 0 }\nsync_block()\n",
                    second = "let j = atomic_add(&mut q[0], 1)\n", use = "x[i] = 1\nx[j] = 2";
  EXPECT_EQ(verdictOf(first + second + use), "free");
  EXPECT_EQ(verdictOf(first + clear + second + use), "unknown");
  EXPECT_EQ(verdictOf(first + use.substr(0, 9)), "free");
}

TEST(Verdicts, ANumberThatIsDrawnLeavesAsManyToItsThreadAsItAdds) {
  const auto used = [](const std::string& uses) {
    return verdictOf("let q: Tensor<u32, [1]> @shared\nif t == 0 { q[0] = 0 }\nsync_block()\nlet i = atomic_add(&mut "
                     "q[0], 1)\nlet j = atomic_add(&mut q[0], 4)\n" +
                     uses);
  };
  for (const char* uses : {"x[i] = 1\nx[j] = 2", "x[j] = 1\nx[j + 3] = 2", "x[i] = 1\nx[j + 3] = 2"})
    EXPECT_EQ(used(uses), "free") << uses;
  for (const char* uses : {"x[i + 1] = 1\nx[j] = 2", "x[j] = 1\nx[j + 4] = 2",
                           "x[i as usize + 1] = 1\nx[j as usize] = 2", "x[i as usize] = 1\nx[j as usize + 4] = 2"})
    EXPECT_EQ(used(uses), "unknown") << uses;
}

TEST(Verdicts, WitnessesAreNotAskedAcrossBarriers) {
  expectVerdicts({{"unknown", "s[t] = 1\nsync_warp()\ny[t] = s[t / 32 * 32 ^ (t * R % 32)]"},
                  {"racy", "s[t] = 1\ny[t] = s[t / 32 * 32 ^ (t * R % 32)]"},
                  {"racy", "s[t] = 1\nsync_warp()\ny[t] = s[t / 32 * 32 ^ (t * R % 33)]"}});
  // Of no size that is tried more than the first round stores.
  const auto inRounds = [](const std::string& tensor, const std::string& barrier) {
    return verdictOf("for r in 0..4usize {\nif r * r * R % 17 == 0 { " + tensor + "[t] = 1 }\n" + barrier +
                     "if r * r * R % 17 != 0 { y[t] = " + tensor + "[63 - t] }\n}");
  };
  for (const char* tensor : {"s", "x"}) {
    EXPECT_EQ(inRounds(tensor, "sync_block()\n"), "unknown") << tensor;
    EXPECT_EQ(inRounds(tensor, ""), "racy") << tensor;
  }
}

TEST(Verdicts, BlocksAreAsLargeAsTheArgumentThatGivesThem) {
  const std::string launch = "grid = [ceil_div(R, n)], block = n";
  const auto used = [&](const std::string& index) {
    return verdictOf("let i = " + index + "\nif i < 256 { x[i] = 1 }", launch);
  };
  for (const char* index : {"block.id.x * n + t", "thread.global_id", "block.id.x * n + (n - t)",
                            "block.dim.x * block.id.x + t", "t + n * block.id.x + 3"})
    EXPECT_EQ(used(index), "free") << index;
  for (const char* index : {"block.id.x * n / 2 + t", "block.id.x * (n - 1) + t", "block.id.x * n + t * 2",
                            "block.id.x * R + t", "block.id.x * n + (n - t) * 2", "block.id.x + t"})
    EXPECT_EQ(used(index), "unknown") << index;
}

TEST(Verdicts, WitnessesHaveNumbersForArgumentsOnlyWhereTheyNameThem) {
  for (const char* body :
       {"if m == 0 { x[t / 2] = 1 }", "if m == 5 { x[t / 2] = 1 }", "if m == 5 && n == 5 { x[t / 2] = 1 }"})
    EXPECT_EQ(verdictOf(body), "racy") << body;
  EXPECT_EQ(verdictOf("if m == 1000 { x[t / 2] = 1 }"), "unknown") << "which is not tried";
  EXPECT_EQ(verdictOf("if m == 0 { x[t / 2] = 1 }", "grid = [n], block = 64"), "unknown") << "the caller's";
}

/// Numbers of blocks that are arguments are the caller's.
TEST(Verdicts, BlocksAlongAnAxisThatNothingAsksForDoTheSame) {
  for (const char* body : {"x[thread.global_id] = 1", "if thread.global_id < 256 { x[thread.global_id] += 1 }"}) {
    EXPECT_EQ(verdictOf(body, "grid = [n], block = 64"), "free") << body;
    EXPECT_EQ(verdictOf(body, "grid = [n, 1], block = 64"), "free") << body;
    EXPECT_EQ(verdictOf(body, "grid = [n, n], block = 64"), "unknown") << body;
    EXPECT_EQ(verdictOf(body, "grid = [n, 2], block = 64"), "racy") << body;
  }
}

/// A walk's limit holds however often its threads meet.
TEST(Verdicts, StatementsThatTouchOneElementCostWhatComparingThemDoes) {
  const auto used = [](bool meet) {
    std::string body;
    for (size_t i = 0; i < 100; ++i)
      body += meet ? "  x[thread.local_id % 2] = 1\n" : "  x[thread.local_id * 100 + " + std::to_string(i) + "] = 1\n";
    testing::GraphOf of("@launch(grid = [1], block = 64)\nkernel k(x: &mut Tensor<i32, [6400]>) {\n" + body + "}\n");
    constexpr uint64_t most = 1u << 20;
    uint64_t left = most;
    SampleLaunch launch;
    launch.block = {64, 1, 1};
    flow::Meetings meetings;
    walkLaunch(of.graph, launch, std::vector<bool>(of.graph.stepCount(), true), left, meetings);
    return most - left;
  };
  const uint64_t alone = used(false);
  EXPECT_GE(alone, 6400u);
  EXPECT_GT(used(true), 5 * alone);
}

}  // namespace
}  // namespace vortex::lang::flow
