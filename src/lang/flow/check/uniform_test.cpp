// Levels of random kernels against the thread machine, and of conditions whose level is known. VORTEX_LEVEL_KERNELS lengthens the run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "lang/flow/testing/graph_of.h"
#include "lang/flow/testing/level_judge.h"
#include "lang/flow/testing/random_kernel.h"

namespace vortex::lang::flow {
namespace {

using testing::GraphOf;
using testing::Launch;
using testing::ThreadMachine;

/// Control by positions, loops that threads leave in different iterations, and warp operations, in blocks of many shapes.
class LevelKernels {
public:
  explicit LevelKernels(uint64_t seed) : random_(seed) {}

  std::string next(BlockShape& shape) {
    static constexpr BlockShape kShapes[] = {{64, 1, 1}, {32, 3, 1}, {16, 4, 1}, {40, 1, 1},
                                             {8, 4, 2},  {64, 2, 1}, {1, 64, 1}, {32, 1, 2}};
    shape = kShapes[pick(std::size(kShapes))];
    names_ = loops_ = 0;
    std::string body = statements(4, 3);
    return "@launch(grid = [2], block = [" + std::to_string(*shape[0]) + ", " + std::to_string(*shape[1]) + ", " +
           std::to_string(*shape[2]) + "])\nkernel k(x: &mut Tensor<u32, [200]>, n: u32) {\n" +
           "let t = thread.local_id\nvar a = n\nvar b = t as u32\nvar c = 0u32\nvar m = [n, 3u32, n, 5u32]\n" + body +
           "x[t] = a + b + c\nx[t] += warp.sum(1u32)\n}\n";
  }

private:
  uint32_t pick(uint32_t count) { return static_cast<uint32_t>(random_() % count); }

  std::string value(int depth) {
    static constexpr const char* kLeaves[] = {"a",
                                              "b",
                                              "c",
                                              "n",
                                              "(t as u32)",
                                              "(thread.id.x as u32)",
                                              "(thread.id.y as u32)",
                                              "(thread.id.z as u32)",
                                              "(warp.id as u32)",
                                              "(warp.lane_id as u32)",
                                              "(block.id.x as u32)"};
    if (depth == 0)
      return kLeaves[pick(std::size(kLeaves))];
    const std::string left = value(depth - 1);
    static constexpr const char* kNumbers[] = {" / 32", " / 64", " % 32", " & 31", " - 31",
                                               " / 16", " + 1",  " >> 5", " % 2"};
    if (pick(3))
      return "(" + left + kNumbers[pick(std::size(kNumbers))] + ")";
    if (pick(4) == 0)
      return "m[(" + left + " % 4) as usize]";
    if (pick(5) == 0)
      return "warp.broadcast(" + left + ", " + std::to_string(pick(40)) + ")";
    return "(" + left + " + " + value(0) + ")";
  }

  std::string condition() {
    static constexpr const char* kTests[] = {" < ", " == ", " >= "};
    return value(1 + static_cast<int>(pick(2))) + kTests[pick(3)] + (pick(2) ? std::to_string(pick(5) * 16) : value(0));
  }

  std::string statements(int count, int depth) {
    std::string out;
    for (int i = 0; i < count; ++i)
      out += statement(depth);
    return out;
  }

  std::string statement(int depth) {
    static constexpr const char* kVariables[] = {"a", "b", "c"};
    const std::string variable = kVariables[pick(3)];
    switch (depth > 0 ? pick(9) : 0) {
    case 3:
    case 4: return "if " + plain() + " {\n" + inner(depth) + "}\n";
    case 5: return "if " + plain() + " {\n" + inner(depth) + "} else {\n" + inner(depth) + "}\n";
    case 6: {
      const std::string name = "k" + std::to_string(names_++);
      return "for " + name + " in 0.." + std::to_string(1 + pick(4)) + "u32 {\n" + jump() + inner(depth) + jump() +
             variable + " += " + name + "\n}\n";
    }
    case 7: {
      const std::string name = "k" + std::to_string(names_++);
      return "var " + name + " = 0u32\nwhile " + name + " < " + (pick(2) ? "n" : "b % 4") + " {\n" + name + " += 1\n" +
             jump() + inner(depth) + "}\n";
    }
    case 8:
      if (pick(2))
        return "m[(" + value0() + " % 4) as usize] = " + variable + "\n";
      return "x[" + (pick(2) ? value0() + " as usize" : std::string("3")) + "] = " + variable + "\n";
    default:
      if (pick(4) == 0)
        return "m[(" + value0() + " % 4) as usize] = " + variable + "\n";
      return variable + " = " + (insideBranch_ ? plainValue() : value(1 + static_cast<int>(pick(2)))) + "\n";
    }
  }

  /// Warp operations stand where all lanes are: outside of branches and loops.
  std::string inner(int depth) {
    const bool was = std::exchange(insideBranch_, true);
    std::string out = statements(1 + static_cast<int>(pick(2)), depth - 1);
    insideBranch_ = was;
    return out;
  }
  std::string plainValue() {
    std::string out = value(1 + static_cast<int>(pick(2)));
    while (out.find("broadcast") != std::string::npos)
      out = value(1);
    return out;
  }
  std::string plain() {
    std::string out = condition();
    while (out.find("broadcast") != std::string::npos)
      out = condition();
    return out;
  }
  std::string value0() { return value(0); }
  std::string jump() { return pick(3) ? "" : "if " + plain() + (pick(2) ? " { break }\n" : " { continue }\n"); }

  std::mt19937_64 random_;
  int names_ = 0, loops_ = 0;
  bool insideBranch_ = false;
};

void judgeLevels(GraphOf& made, const BlockShape& shape) {
  Graph& graph = made.graph;
  ASSERT_FALSE(graph.blocks.empty());
  const Structure structure(graph);
  const Uniformity levels(graph, structure, {&shape, 1});
  for (int64_t argument : {0, 3, 40}) {
    Launch launch;
    launch.grid = {2, 1, 1};
    for (size_t axis = 0; axis < 3; ++axis)
      launch.block[axis] = *shape[axis];
    for (LocalId param : graph.params)
      launch.scalars[graph[param].variable] = argument;
    ThreadMachine machine(graph, launch);
    for (int64_t i = 0; i < 200; ++i)
      machine.setElement(graph.params[0], {i}, (i * 7 + argument) % 23);
    machine.watch([&](StepId step, const std::vector<ThreadMachine::Thread*>& together) {
      if (!::testing::Test::HasFailure())
        EXPECT_EQ(excessOfLevels(graph, levels, machine, step, together), "") << made.dump();
    });
    machine.run();
  }
}

TEST(Levels, NobodyDisagreesWhoIsSaidToAgree) {
  const char* given = std::getenv("VORTEX_LEVEL_KERNELS");
  const uint64_t count = given ? std::strtoull(given, nullptr, 10) : base::sampled(250), first = base::freshSeed();
  for (uint64_t i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + i));
    BlockShape shape;
    GraphOf made(LevelKernels(first + i).next(shape));
    judgeLevels(made, shape);
  }
}

TEST(Levels, NobodyDisagreesInKernelsWithCallsAndMemory) {
  const uint64_t first = base::freshSeed();
  for (uint64_t i = 0; i < base::sampled(40) && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + i));
    GraphOf made(testing::randomKernel(first + i).text);
    judgeLevels(made, {64, 1, 1});
  }
}

GraphOf levelKernel(const std::string& body, const std::string& block = "64") {
  return GraphOf("@launch(grid = [2], block = " + block +
                 ")\nkernel k(x: &mut Tensor<u32, [N]>, c: &Tensor<u32, [8]>, n: u32) {\n" + body + "\n}");
}

/// Of the branch behind so many others: its value, and its block.
std::pair<Level, Level> levelsOfBranch(GraphOf made, size_t skipped = 0) {
  const StepId branch = made.graph.blocks.empty() ? kNoStep : made.first(StepKind::Branch, skipped);
  if (branch == kNoStep)
    return {Level::Lane, Level::Lane};
  const Structure structure(made.graph);
  const LaunchShapes shapes = launchShapes(*made.graph.function, *made.analyzed.program);
  const Uniformity levels(made.graph, structure, shapes.writtenBlocks());
  return {levels.ofValue(made.graph[branch].value), levels.ofBlock(made.graph.blockOf(branch))};
}

Level levelOfCondition(const std::string& condition, const std::string& block) {
  return levelsOfBranch(levelKernel("if " + condition +
                                        " { x[thread.global_id] = 1 }\nlet w = warp.sum(1u32)\n"
                                        "if w == 77 { x[thread.global_id] = w }",
                                    block))
      .first;
}

TEST(Levels, ConditionsThatTheBlockOrAWarpAgreesOn) {
  for (const char* condition :
       {"n > 3", "block.id.x == 0", "c[3] > 1", "c[n as usize] > 1", "block.dim.x > 7", "N > 3"})
    EXPECT_EQ(levelOfCondition(condition, "64"), Level::Block) << condition;
  for (const char* condition : {"warp.id == 0", "thread.local_id / 32 == 0", "thread.local_id < 32",
                                "thread.local_id >> 5 == 1", "warp.sum(1u32) == 5", "warp.ballot(n > 3) == 0",
                                "warp.broadcast(n + thread.local_id as u32, 3) == 4", "c[warp.id] == 1"})
    EXPECT_EQ(levelOfCondition(condition, "64"), Level::Warp) << condition;
  for (const char* condition :
       {"thread.local_id < 33", "thread.local_id == 0", "warp.lane_id == 3", "thread.global_id < N",
        "c[thread.local_id % 8] == 1", "warp.broadcast(n + thread.local_id as u32, thread.local_id as i32) == 4",
        "x[thread.global_id] == 1"})
    EXPECT_EQ(levelOfCondition(condition, "64"), Level::Lane) << condition;
  EXPECT_EQ(levelOfCondition("thread.id.y == 0", "[32, 2]"), Level::Warp);
  EXPECT_EQ(levelOfCondition("thread.id.y == 0", "[16, 4]"), Level::Lane);
  EXPECT_EQ(levelOfCondition("thread.id.z == 0", "[16, 4, 2]"), Level::Warp);
  EXPECT_EQ(levelOfCondition("thread.id.y == 0", "[64, 1]"), Level::Block);
  EXPECT_EQ(levelOfCondition("thread.id.x < 32", "[64, 2]"), Level::Warp);
  EXPECT_EQ(levelOfCondition("warp.broadcast(n + thread.local_id as u32, 9) == 4", "40"), Level::Lane)
      << "the last warp has no lane 9";
}

TEST(Levels, WhatEachThreadHasOfItsOwnDiffers) {
  const std::string use = "{ x[thread.global_id] = 1 }";
  EXPECT_EQ(levelOfCondition("atomic_add(&mut x[0], 1) == 0", "64"), Level::Lane);
  EXPECT_EQ(levelsOfBranch(
                levelKernel("let own: Tensor<u32, [4]> @local\nown[0] = thread.local_id as u32\nif own[0] == 3 " + use))
                .first,
            Level::Lane);
  const std::string rounds = "var i = 0u32\nwhile i < thread.local_id as u32 { i += 1 }\n";
  EXPECT_EQ(levelsOfBranch(levelKernel(rounds + "if i == 3 " + use), 1).first, Level::Lane)
      << "they left in other rounds";
}

TEST(Levels, WhatAllChooseBetweenIsWhatEachThreadHas) {
  const std::pair<const char*, Level> kGiven[] = {
      {"n as usize", Level::Block}, {"thread.local_id / 32", Level::Warp}, {"thread.local_id", Level::Lane}};
  const char* kMade[] = {"if n > 3 { a = 9 }", "if n > 3 { a += 1 }", "for r in 0..n { a += 1 }"};
  for (const auto& [given, level] : kGiven)
    for (const std::string made : kMade)
      EXPECT_EQ(levelsOfBranch(levelKernel("let w = warp.sum(1u32)\nvar a = " + std::string(given) + "\n" + made +
                                           "\nif a == 3 { x[thread.global_id] = w }"),
                               1)
                    .first,
                level)
          << given << ", " << made;
}

/// What stands in memory that somebody writes is read once for the block only where all of it comes together.
TEST(Levels, WrittenMemoryIsReadByThoseWhoGetThereTogether) {
  const auto level = [](const std::string& around, const std::string& read, const std::string& written) {
    return levelsOfBranch(GraphOf("@launch(grid = [2], block = 64)\nkernel k(x: &mut Tensor<u32, [64]>, y: &mut "
                                  "Tensor<u32, [64]>, c: &Tensor<u32, [64]>, n: u32) {\nlet s: Tensor<u32, [64]> "
                                  "@shared\nlet t = thread.local_id\ns[t] = 0\nlet w = warp.sum(1u32)\nsync_block()\n" +
                                  around + " {\nif " + read + " == 1 {\nx[t] = w\n}\n}\nsync_block()\n" + written +
                                  "\n}"),
                          1)
        .first;
  };
  const std::pair<const char*, Level> kControls[] = {
      {"if n > 3", Level::Block}, {"if t < 32", Level::Warp}, {"if t < 33", Level::Lane}};
  const char* kRead[] = {"c[3]", "y[3]", "s[3]", "y[n as usize % 64]"};
  const char* kWritten[] = {"", "y[t] = 1", "for each in [&mut x, &mut y] { each[t] = 1 }"};
  for (const auto& [control, here] : kControls)
    for (const char* read : kRead)
      for (const char* written : kWritten) {
        const bool isWritten = read[0] == 's' || (read[0] == 'y' && written[0] != 0);
        EXPECT_EQ(level(control, read, written), isWritten ? here : Level::Block)
            << control << ": " << read << ", " << written;
      }
}

TEST(Levels, WhatLeadsOutOfALoopIsDoneInTheRoundInWhichAThreadLeaves) {
  EXPECT_EQ(levelsOfBranch(levelKernel("var i = 0usize\nloop {\ni += 1\nif i < thread.local_id { continue }\n"
                                       "if n == 5 { x[0] = 1 }\nbreak\n}"),
                           1),
            std::pair(Level::Block, Level::Lane));
}

}  // namespace
}  // namespace vortex::lang::flow
