// What contexts say of values and edges, against runs of one thread of random kernels: the visit that the thread is in is a visit of the contexts,
// its edges are followed, and what is known of its conditions holds.
#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "lang/flow/solve/contexts.h"

#include <algorithm>
#include <cstdlib>
#include <random>

#include "lang/flow/testing/graph_of.h"
#include "lang/flow/testing/thread_machine.h"

namespace vortex::lang::flow {
namespace {

using testing::GraphOf;
using testing::Launch;
using testing::ThreadMachine;

class LoopKernels {
public:
  explicit LoopKernels(uint64_t seed) : random_(seed) {}
  std::string next() {
    return "@launch(grid = [1], block = 1)\nkernel k(x: &mut Tensor<i64, [4]>, n: u8, m: i64) {\nlet top = m + 9\n" +
           statements(2, 3) + "}\n";
  }

private:
  uint32_t pick(uint32_t count) { return static_cast<uint32_t>(random_() % count); }
  std::string number(uint32_t count) { return std::to_string(pick(count)); }

  std::string condition() {
    if (counters_.empty())
      return "m > 3";
    const std::string& name = counters_[pick(static_cast<uint32_t>(counters_.size()))];
    static constexpr const char* kTests[] = {" == ", " < ", " > ", " <= ", " != "};
    static constexpr const char* kComputed[] = {"", "", " % 2", " % 3", " % 4", " + 1", " * 2", " & 1", " & 3", " / 2"};
    std::string left = "(" + name + kComputed[pick(10)] + ")";
    if (pick(6) == 0)
      left = "((" + name + " as i64 + m) % 2)";
    if (pick(6) == 0)
      left = "(" + name + " as u8 + 250u8)";
    if (!fromTop_.empty() && pick(3) == 0)
      return fromTop_.back() + kTests[pick(5)] + "top";
    if (pick(4) == 0)
      left = "((" + left + " + 5) % 3)";
    if (pick(4) == 0)
      left = "(" + left + " as i64 + " + counters_[pick(static_cast<uint32_t>(counters_.size()))] + " as i64)";
    const std::string test = left + kTests[pick(5)] + number(5);
    switch (pick(5)) {
    case 0: return test + " && m > 3";
    case 1: return test + " || m > 3";
    case 2: return "!(" + test + ")";
    default: return test;
    }
  }

  std::string statements(int count, int depth) {
    std::string out;
    for (int i = 0; i < count; ++i)
      out += statement(depth);
    return out;
  }

  std::string statement(int depth) {
    if (depth == 0 || pick(4) == 0)
      return "if " + condition() + " { x[" + number(4) + "] += 1 }\n";
    const std::string name = "k" + std::to_string(names_++);
    const auto body = [&] {
      counters_.push_back(name);
      std::string out = statements(2, depth - 1);
      if (pick(4) == 0)
        out += "if " + condition() + " { break }\n";
      counters_.pop_back();
      return out;
    };
    if (pick(6) == 0) {
      fromTop_.push_back(name);
      const std::string out =
          "for " + name + (pick(2) ? " in range(top, m, -1)" : " in top..m + 12") + " {\n" + body() + "}\n";
      fromTop_.pop_back();
      return out;
    }
    switch (pick(7)) {
    case 0: return "for " + name + " in n..(n / 2 + 90) {\n" + body() + "}\n";
    case 1: return "for " + name + " in range(9i64, 0, -1) {\n" + body() + "}\n";
    case 2: return "for " + name + " in range(0i64, 11, 3) {\n" + body() + "}\n";
    case 3: return "var " + name + " = 0usize\nwhile " + name + " < 7 {\n" + body() + name + " += 1\n}\n";
    case 4: return "var " + name + " = 250u8\nloop {\n" + body() + name + " += 1\nif " + name + " == 5 { break }\n}\n";
    case 5: return "var " + name + " = 1usize\nwhile " + name + " < 12 {\n" + body() + name + " += 2\n}\n";
    default: return "for " + name + " in " + number(3) + "i64.." + number(9) + " {\n" + body() + "}\n";
    }
  }

  std::mt19937_64 random_;
  int names_ = 0;
  std::vector<std::string> counters_, fromTop_;
};

/// One thread on its way through the visits.
class Follower {
public:
  Follower(const Graph& graph, const Contexts& contexts, ThreadMachine& machine)
      : graph_(graph), contexts_(contexts), machine_(machine), iterations_(graph.loops.size()) {}

  void visit(StepId id, ThreadMachine::Thread& thread) {
    const BlockId block = graph_.blockOf(id);
    if (id == graph_[block].begin)
      enter(block);
    const Step& step = graph_[id];
    if (id != StepId{indexOf(graph_[block].end) - 1})
      return;
    const auto context = contextOf(block);
    ASSERT_TRUE(context.has_value());
    uint32_t successor = 0;
    if (step.kind == StepKind::Branch) {
      const auto number = machine_.value(thread, step.value);
      ASSERT_TRUE(number.has_value());
      successor = *number != 0 ? 0 : 1;
      const Known known = contexts_.known(step.value, block, *context);
      ASSERT_TRUE(known.low <= *number && *number <= known.high) << "step " << indexOf(id);
      checkOperands(step.value, block, *context, thread);
    }
    last_ = block;
    if (step.kind != StepKind::Return)
      wanted_ = contexts_.follow(block, *context, successor);
    ASSERT_TRUE(step.kind == StepKind::Return || !wanted_.empty()) << "step " << indexOf(id) << " is not followed";
  }

private:
  void checkOperands(ValueId value, BlockId block, Context context, ThreadMachine::Thread& thread) {
    const Node& node = graph_.values[value];
    for (size_t i = 0; node.kind == NodeKind::Op && i < operandCount(node.op); ++i) {
      const ValueId operand = graph_.values.operand(value, i);
      const auto number = machine_.value(thread, operand);
      if (!number)
        continue;
      const Known known = contexts_.known(operand, block, context);
      ASSERT_TRUE(known.low <= *number && *number <= known.high) << "value " << indexOf(operand);
      ASSERT_TRUE(known.number() || ((*number - known.residue) % known.modulus) == 0) << "value " << indexOf(operand);
      checkOperands(operand, block, context, thread);
    }
  }

  void enter(BlockId block) {
    if (const LoopId loop = graph_[block].loop; loop != kNoLoop && graph_[loop].header == block)
      iterations_[indexOf(loop)] =
          last_ != kNoBlock && graph_.isInside(last_, loop) ? iterations_[indexOf(loop)] + 1 : 0;
    const auto context = contextOf(block);
    ASSERT_TRUE(context.has_value());
    const bool isWanted = wanted_.empty() || std::find(wanted_.begin(), wanted_.end(), *context) != wanted_.end();
    ASSERT_TRUE(isWanted) << "block " << indexOf(block);
  }

  /// The visit whose iterations are those of the thread.
  std::optional<Context> contextOf(BlockId block) const {
    for (uint32_t c = 0; c < contexts_.count(block); ++c) {
      bool isThis = true;
      for (LoopId loop = graph_[block].loop; loop != kNoLoop; loop = graph_[loop].parent) {
        const uint32_t number = iterations_[indexOf(loop)], prologue = contexts_.prologue();
        const uint32_t expected = number < prologue ? number : prologue + number % contexts_.modulus();
        isThis = isThis && (!contexts_.isFollowed(loop) || contexts_.iteration(loop, block, Context{c}) == expected);
      }
      if (isThis)
        return Context{c};
    }
    return std::nullopt;
  }

  const Graph& graph_;
  const Contexts& contexts_;
  ThreadMachine& machine_;
  std::vector<uint32_t> iterations_;
  BlockId last_ = kNoBlock;
  std::vector<Context> wanted_;  ///< none before the first block
};

std::vector<Contexts> contextsOf(const Graph& graph) {
  return {Contexts::plain(graph), Contexts::peel(graph), Contexts::ring(graph, 2), Contexts::ring(graph, 3, 2)};
}

/// One run, followed through all visits.
void follow(const GraphOf& made, const std::vector<Contexts>& all, int64_t argument) {
  Launch launch;
  for (LocalId param : made.graph.params)
    launch.scalars[made.graph[param].variable] = argument;
  launch.maxSteps = 5'000;
  ThreadMachine machine(made.graph, launch);
  for (int64_t i = 0; i < 4; ++i)
    machine.setElement(made.graph.params[0], {i}, 0);
  std::vector<Follower> followers;
  for (const Contexts& contexts : all)
    followers.emplace_back(made.graph, contexts, machine);
  machine.watch([&](StepId step, const std::vector<ThreadMachine::Thread*>& together) {
    for (Follower& follower : followers)
      if (!::testing::Test::HasFatalFailure())
        follower.visit(step, *together.front());
  });
  machine.run();
}

TEST(Contexts, WhatIsKnownOfANumberHoldsInEveryRound) {
  const char* kLoops[] = {"for k in 0i64..40",
                          "for k in range(0i64, 60, 3)",
                          "for k in range(40i64, 3, -1)",
                          "for k in range(60i64, 1, -4)",
                          "for k in range(top, m, -1)",
                          "for k in top..m + 12"};
  const char* kTests[] = {"k < top",          "top <= k",          "k == top",           "k < 4",
                          "k <= 4",           "k % 3 == 1",        "k % 7 == 6",         "(k + 5) % 6 == 2",
                          "(40 - k) % 3 < 2", "40 - k < 9",        "k + k / 3 == 9",     "k / 3 + k == 9",
                          "k * k / 3 == 3",   "(k >> 1) & 3 == 2", "k as u8 + 250u8 < 3"};
  for (const char* loop : kLoops) {
    std::string body;
    for (const char* test : kTests)
      body += "if " + std::string(test) + " { x[0] += 1 }\n";
    GraphOf made(
        "@launch(grid = [1], block = 1)\nkernel k(x: &mut Tensor<i64, [4]>, n: u8, m: i64) {\nlet top = m + 9\n" +
        std::string(loop) + " {\n" + body + "}\n}\n");
    SCOPED_TRACE(loop);
    ASSERT_FALSE(made.graph.blocks.empty()) << made.analyzed.messages();
    const std::vector<Contexts> all = contextsOf(made.graph);
    for (const Contexts& contexts : all)
      EXPECT_EQ(contexts.isFollowed(LoopId{0}), contexts.prologue() > 0);
    follow(made, all, 5);
  }
}

TEST(Contexts, AThreadIsAlwaysInOneOfTheVisits) {
  const char* given = std::getenv("VORTEX_LOOP_KERNELS");
  const uint64_t count = given ? std::strtoull(given, nullptr, 10) : base::sampled(40), first = base::freshSeed();
  size_t followed = 0;
  for (uint64_t i = 0; i < count && !HasFatalFailure(); ++i) {
    GraphOf made(LoopKernels(first + i).next());
    SCOPED_TRACE("seed " + std::to_string(first + i) + "\n" + made.dump());
    ASSERT_FALSE(made.graph.blocks.empty());
    const std::vector<Contexts> all = contextsOf(made.graph);
    for (const Contexts& contexts : all)
      for (size_t loop = 0; loop < made.graph.loops.size(); ++loop)
        followed += contexts.isFollowed(LoopId{static_cast<uint32_t>(loop)});
    for (int64_t argument : {0, 5, 200})
      if (!HasFatalFailure())
        follow(made, all, argument);
  }
  if (!base::kIsSanitized)
    EXPECT_GT(followed, count);
}

}  // namespace
}  // namespace vortex::lang::flow
