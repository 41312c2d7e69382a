// Reads of shared memory before any write, against the thread machine: whatever a run finds is told, and what is told as certain every run that gets
// there finds. VORTEX_UNWRITTEN_KERNELS lengthens the run.
#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "lang/flow/check/initialised.h"

#include <cstdlib>
#include <random>
#include <set>

#include "lang/flow/testing/graph_of.h"
#include "lang/flow/testing/thread_machine.h"

namespace vortex::lang::flow {
namespace {

using testing::Analyzed;
using testing::GraphOf;
using testing::Launch;
using testing::Outcome;
using testing::ThreadMachine;

class UnwrittenKernels {
public:
  explicit UnwrittenKernels(uint64_t seed) : random_(seed) {}

  std::string next() {
    std::string declared;
    for (int i = 0; i < 3; ++i)
      declared += "let s" + std::to_string(i) + ": Tensor<u32, [32]> @shared\n";
    return "@launch(grid = [1], block = 32)\nkernel k(y: &mut Tensor<u32, [32]>, n: u32, m: u32) {\nlet t = "
           "thread.local_id\nvar flag = n > 3\n" +
           declared + statements(5, 3, false) + "}\n";
  }

private:
  uint32_t pick(uint32_t count) { return static_cast<uint32_t>(random_() % count); }
  std::string tensor() { return "s" + std::to_string(pick(3)); }

  /// The same for all threads.
  std::string condition() {
    static constexpr const char* kConditions[] = {"n > 3", "n > 3", "m == 2",          "m < n",
                                                  "flag",  "!flag", "n > 3 && m == 2", "n < 2 || flag"};
    const std::string counter = counters_.empty() ? "" : counters_[pick(static_cast<uint32_t>(counters_.size()))];
    if (!counter.empty() && pick(2))
      return counter + (pick(3) ? " == " : pick(2) ? " > " : " % 2 == ") + std::to_string(pick(2));
    return kConditions[pick(std::size(kConditions))];
  }

  /// Some threads take it and some do not, whoever else does.
  std::string parting() {
    static constexpr const char* kConditions[] = {"t < 16", "t % 2 == 0", "t == 5", "t > 30"};
    return kConditions[pick(std::size(kConditions))];
  }

  std::string statements(int count, int depth, bool inLoop) {
    std::string out;
    for (int i = 0; i < count; ++i)
      out += statement(depth, inLoop);
    return out;
  }

  std::string access() { return pick(2) ? tensor() + "[t] = m\n" : "y[t] += " + tensor() + "[t]\n"; }

  std::string statement(int depth, bool inLoop) {
    const auto some = [&](bool in) { return statements(1 + static_cast<int>(pick(2)), depth - 1, in); };
    switch (depth > 0 ? pick(13) : pick(4)) {
    case 4:
    case 5: return "if " + condition() + " {\n" + some(inLoop) + "}\n";
    case 6: return "if " + condition() + " {\n" + some(inLoop) + "} else {\n" + some(inLoop) + "}\n";
    case 7:
      return "if " + parting() + " {\n" + access() + (pick(2) ? "} else {\n" + tensor() + "[t] = m\n" : "") + "}\n";
    case 8:
    case 9: {
      const std::string name = "k" + std::to_string(names_++),
                        end = pick(3) ? (pick(2) ? "n" : "m") : std::to_string(1 + pick(3)) + "u32";
      counters_.push_back(name);
      std::string out = "for " + name + " in 0u32.." + end + " {\n" + some(true) + some(true) + "}\n";
      counters_.pop_back();
      return out;
    }
    case 10: {
      const std::string name = "k" + std::to_string(names_++);
      counters_.push_back(name);
      std::string out = "var " + name + " = 0u32\nwhile " + name + " < m {\n" + name + " += 1\n" + some(true) + "}\n";
      counters_.pop_back();
      return out;
    }
    case 11:
      return inLoop ? "if " + condition() + (pick(2) ? " { break }\n" : " { continue }\n")
                    : "if " + condition() + " { return }\n";
    case 12: return "flag = " + condition() + "\n";
    default: return access();
    }
  }

  std::mt19937_64 random_;
  int names_ = 0;
  std::vector<std::string> counters_;
};

/// Of one launch: the steps that read what nothing had written, the first time that they ran and at any time.
struct UnwrittenReads {
  std::set<StepId> reached, first, any;
};

UnwrittenReads unwrittenReads(const Graph& graph, int64_t n, int64_t m) {
  Launch launch;
  launch.block = {32, 1, 1};
  launch.scalars[graph[graph.params[1]].variable] = n;
  launch.scalars[graph[graph.params[2]].variable] = m;
  ThreadMachine machine(graph, launch);
  UnwrittenReads out;
  std::set<LocalId> written;
  for (int64_t t = 0; t < 32; ++t)
    machine.setElement(graph.params[0], {t}, 0);
  machine.watch([&](StepId step, const std::vector<ThreadMachine::Thread*>&) {
    for (const Access& access : graph.accessesOf(graph[step])) {
      const Place& place = graph[access.place];
      if (place.storage != Storage::Shared)
        continue;
      if (access.mode != AccessMode::Read) {
        written.insert(place.root);
        continue;
      }
      const bool isFirst = out.reached.insert(step).second;
      if (written.contains(place.root))
        continue;
      out.any.insert(step);
      if (isFirst)
        out.first.insert(step);
    }
  });
  EXPECT_EQ(machine.run(), Outcome::Done);
  return out;
}

void judgeUnwritten(const std::string& text) {
  GraphOf made(text);
  SCOPED_TRACE(text);
  Graph& graph = made.graph;
  if (graph.blocks.empty())
    return;
  const Structure structure(graph);
  const BlockShape shape = {32, 1, 1};
  const Uniformity uniformity(graph, structure, {&shape, 1});
  diag::DiagnosticSink sink;
  checkInitialised(graph, structure, uniformity, sink);
  std::set<std::string> told;
  std::set<uint32_t> certain;
  for (const diag::Diagnostic& each : sink.all()) {
    const size_t quote = each.message.find('`');
    told.insert(each.message.substr(quote + 1, each.message.find('`', quote + 1) - quote - 1));
    if (each.id == "E0525")
      certain.insert(each.labels.front().range.begin);
  }
  for (int64_t n : {1, 2, 4, 5})
    for (int64_t m : {0, 1, 2, 3}) {
      const UnwrittenReads found = unwrittenReads(graph, n, m);
      for (StepId step : found.any)
        ASSERT_TRUE(told.contains(graph[graph[graph.accessesOf(graph[step])[0].place].root].variable->name))
            << "not told: step " << indexOf(step) << " with n = " << n << ", m = " << m;
      for (StepId step : found.reached)
        ASSERT_TRUE(!certain.contains(graph[step].origin->range.begin) || found.first.contains(step))
            << "certain: step " << indexOf(step) << " with n = " << n << ", m = " << m;
    }
}

TEST(Initialised, RunsFindWhatIsTold) {
  const char* given = std::getenv("VORTEX_UNWRITTEN_KERNELS");
  const uint64_t count = given ? std::strtoull(given, nullptr, 10) : base::sampled(300), first = base::freshSeed();
  for (uint64_t i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + i));
    judgeUnwritten(UnwrittenKernels(first + i).next());
  }
}

std::string unwrittenIds(const std::string& body) {
  return Analyzed("@launch(grid = [1], block = 32)\nkernel k(y: &mut Tensor<u32, [N]>, n: u32, m: u32) {\nlet t = "
                  "thread.local_id\nlet s: Tensor<u32, [32]> @shared\n" +
                  body + "\n}\n")
      .ids();
}

TEST(Initialised, WhatIsWrittenOnEveryWayIsFine) {
  for (const char* body :
       {"s[t] = 1\nsync_block()\ny[t] = s[t]", "if n > 3 { s[t] = 1 } else { s[t] = 2 }\ny[t] = s[t]",
        "if n > 3 { s[t] = 1 }\nif n > 3 { y[t] = s[t] }", "for k in 0..4 { if k == 0 { s[t] = n }\ny[t] = s[t] }",
        "for k in 0..4 { s[t] = k }\ny[t] = s[t]", "for k in 0..N { s[t] = 3 }\ny[t] = s[t]",
        "var go = n > 3\nif go { s[t] = 1 }\nif go { y[t] = s[t] }", "if t < 16 { s[t] = 1 }\ny[t] = s[t]",
        "for k in 0..n { s[t] = k\ny[t] = s[t] }",
        "let a: [Tensor<u32, [32]> @shared; 2]\nfor k in 0..8usize { a[k % 2][t] = 1\ny[t] = a[k % 2][t] }",
        "if n == 3 { return }\ns[t] = 1\ny[t] = s[t]",
        "var k = 0u32\nloop { s[t] = 1\nk += 1\nif k > n { break } }\ny[t] = s[t]",
        "let l: Tensor<u32, [4]> @local\nfor k in 0..4 { l[k] = 1 }\ny[t] = l[2]",
        "var done = false\nfor k in 0..n { if k == m { s[t] = 1\ndone = true\nbreak } }\nif done { y[t] = s[t] }"})
    EXPECT_EQ(unwrittenIds(body), "") << body;
}

TEST(Initialised, WhatMayBeReadFirstIsTold) {
  for (const char* body :
       {"y[t] = s[t]\ns[t] = 1", "for k in 0..n { y[t] = 1 }\ny[t] = s[t]", "for k in 0..3 { y[t] = s[t]\ns[t] = 1 }",
        "if n > 3 { y[t] = s[t] }", "for k in 0..4 { if k == 0 { y[t] = s[t] } else { s[t] = 1 } }", "s[t] += 1",
        "let a: [Tensor<u32, [32]> @shared; 2]\na[0][t] = 1\ny[t] = a[1][t]"})
    EXPECT_EQ(unwrittenIds(body), "E0525") << body;
  for (const char* body :
       {"if n > 3 { s[t] = 1 }\ny[t] = s[t]", "for k in 0..n { s[t] = k }\ny[t] = s[t]",
        "for k in 0..n { if k == 2 { break }\ns[t] = k }\ny[t] = s[t]",
        "if n > 3 { s[t] = 1 }\nif m > 3 { y[t] = s[t] }",
        "var go = n > 3\nif go { s[t] = 1 }\ngo = true\nif go { y[t] = s[t] }",
        "for k in 0..4 { if n > k { y[t] = s[t] }\ns[t] = 1 }", "while m > y[0] { s[t] = 1\nbreak }\ny[t] = s[t]",
        "for k in 0..4 { if k == 1 { s[t] = 1 }\nif k > n { y[t] = s[t] } }",
        "if n > 3 { y[t] = 1 } else { if m == 2 { s[t] = 1 } }\nif n > 3 { } else { y[t] = s[t] }",
        "if n > 3 { if m == 2 { s[t] = 1 } } else { y[t] = 1 }\nif n > 3 { y[t] = s[t] }"})
    EXPECT_EQ(unwrittenIds(body), "W0525") << body;
  EXPECT_EQ(unwrittenIds("let l: Tensor<u32, [4]> @local\nif t < 16 { l[0] = 1 }\ny[t] = l[0]"), "W0525")
      << "each thread's own";
}

}  // namespace
}  // namespace vortex::lang::flow
