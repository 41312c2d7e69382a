// Counters that random loops draw from, against the thread machine: in the largest launches that are not refused, all amounts together are no more than
// the counter has numbers. Launches are made smaller by a power of two, and so is what may be added. VORTEX_TICKET_KERNELS lengthens the run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "lang/flow/race/races.h"
#include "lang/flow/testing/graph_of.h"
#include "lang/flow/testing/thread_machine.h"

namespace vortex::lang::flow {
namespace {

using testing::GraphOf;
using testing::Launch;
using testing::Outcome;
using testing::ThreadMachine;

constexpr unsigned kSmaller = 22;
constexpr int64_t kNumbers = (int64_t(1) << 32) >> kSmaller, kRounding = 16, kThreadsOfBlock = 4;

class TicketKernels {
public:
  explicit TicketKernels(uint64_t seed) : random_(seed) {}

  std::string next() {
    std::string body = "var moves = n\n";
    for (uint32_t count = 1 + pick(3); count > 0; --count)
      body += pick(4) ? piece() : "for r" + name() + " in 0.." + number(9) + " {\n" + piece() + "}\n";
    return "@launch(grid = [ceil_div(M, 4)], block = 4)\nkernel k(w: &Tensor<u32, [M]>, z: &Tensor<u32, [N]>, x: &mut "
           "Tensor<u32, [4096]>, c: &mut Tensor<u32, [1]>, n: u32, s: i32) {\n" +
           body + "}\n";
  }

private:
  uint32_t pick(uint32_t count) { return static_cast<uint32_t>(random_() % count); }
  std::string number(uint32_t most) { return std::to_string(1 + pick(most)); }
  std::string name() { return std::to_string(names_++); }

  std::string draw() { return "atomic_add(&mut c[0], " + number(4) + ")"; }
  std::string bound() {
    static constexpr const char* kBounds[] = {"n", "n", "n", "N as u32", "moves", "s as u32", "n / 2", "40u32"};
    return kBounds[pick(std::size(kBounds))];
  }
  std::string stride() {
    static constexpr const char* kStrides[] = {"grid.dim.x * block.dim.x", "block.dim.x * grid.dim.x", "block.dim.x",
                                               "grid.dim.x", "2 * grid.dim.x * block.dim.x"};
    return kStrides[pick(8) % 5];
  }

  std::string piece() {
    const std::string i = "i" + name(), p = "p" + name(), limit = bound(),
                      moved = limit == "moves" ? "moves += " + number(2) + "\n" : "", store = "x[" + i + "] = 1\n";
    switch (pick(8)) {
    case 0: return "x[" + draw() + "] = 1\n";
    case 1:
      return "for " + i + " in 0.." + number(3) + " {\nfor " + p + " in 0.." + number(4) + " {\nx[" + draw() +
             "] = 1\n}\n}\n";
    case 2:
      return "loop {\nlet " + i + " = " + draw() + "\nif " + i + " >= " + limit + " { break }\n" + moved + store +
             "}\n";
    case 3:
      return "var " + i + " = " + draw() + "\nwhile " + i + " < " + limit + " {\n" + moved + store + i + " = " +
             draw() + "\n}\n";
    case 4:  // one round later than the number says
      return "var " + p + " = 0u32\nloop {\nlet " + i + " = " + draw() + "\n" + store + "if " + p + " >= " + limit +
             " { break }\n" + moved + p + " = " + i + "\n}\n";
    case 5: return "for " + i + " in range(thread.global_id, N, " + stride() + ") {\nx[" + draw() + "] = 1\n}\n";
    case 6:  // from below 0 on, perhaps
      return "var " + i + " = thread.global_id as i64" + (pick(2) ? " + s as i64" : "") + "\nwhile " + i +
             " < N as i64 {\nx[" + draw() + "] = 1\n" + i + " += (grid.dim.x * block.dim.x) as i64\n}\n";
    default:
      return "var " + i + " = " + (pick(4) ? "thread.global_id" : "thread.local_id") + "\nvar " + p + " = N\nwhile " +
             i + " < " + (pick(3) ? "N" : p) + " {\nx[" + draw() + "] = 1\n" + i + " += " + stride() + "\n" +
             (pick(3) ? "" : p + " += grid.dim.x * block.dim.x\n") + "}\n";
    }
  }

  std::mt19937_64 random_;
  int names_ = 0;
};

/// What is asked of launches, made smaller.
struct Limits {
  int64_t threads = 256, extent = 64, scalar = 64;
};

Limits limitsOf(const Graph& graph, const RaceReport& report, LocalId counter) {
  Limits out;
  if (const auto most = report.mostThreads.find(counter); most != report.mostThreads.end())
    out.threads = most->second >> kSmaller;
  for (const LaunchLimit& limit : report.limits) {
    for (DimVarId dim : limit.dims)
      if (graph.function->dims[dim].name == "N")
        out.extent = std::min(out.extent, limit.most >> kSmaller);
    for (uint32_t param : limit.scalars)
      if (graph.function->params[param]->name == "n")
        out.scalar = std::min(out.scalar, limit.most >> kSmaller);
  }
  return out;
}

/// What all threads add; nothing: they never end.
std::optional<int64_t> added(const Graph& graph, const Limits& limits, int64_t given) {
  Launch launch;
  launch.givesTickets = true;
  launch.maxSteps = 400'000;
  launch.block[0] = kThreadsOfBlock;
  launch.grid[0] = limits.threads / kThreadsOfBlock;
  for (uint32_t dim = 0; dim < graph.function->dims.size(); ++dim)
    launch.dims[dim] = graph.function->dims[dim].name == "N" ? limits.extent : limits.threads;
  const auto& params = graph.function->params;
  launch.scalars[params[params.size() - 2]] = limits.scalar;
  launch.scalars[params.back()] = given;
  ThreadMachine machine(graph, launch);
  machine.setElement(graph.params[graph.params.size() - 3], {0}, 0);
  int64_t sum = 0;
  machine.watch([&](StepId step, const std::vector<ThreadMachine::Thread*>& together) {
    if (graph[step].kind == StepKind::Atomic)
      for (ThreadMachine::Thread* thread : together)
        sum += static_cast<int64_t>(*machine.value(*thread, graph.uses(graph[step])[0]));
  });
  return machine.run() == Outcome::Done ? std::optional(sum) : std::nullopt;
}

TEST(Tickets, NoLaunchThatIsNotRefusedDrawsANumberTwice) {
  const char* given = std::getenv("VORTEX_TICKET_KERNELS");
  const uint64_t count = given ? std::strtoull(given, nullptr, 10) : base::sampled(300), first = base::freshSeed();
  uint64_t proven = 0;
  for (uint64_t i = 0; i < count && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + i));
    GraphOf made(TicketKernels(first + i).next());
    Graph& graph = made.graph;
    ASSERT_FALSE(graph.blocks.empty()) << made.analyzed.messages();
    const Structure structure(graph);
    const RaceReport report = findRaces(graph, structure, launchShapes(*graph.function, *made.analyzed.program));
    const LocalId counter = graph.params[graph.params.size() - 3];
    if (std::none_of(report.pairs.begin(), report.pairs.end(),
                     [](const auto& pair) { return pair.second.decider == Decider::Tickets; }))
      continue;
    const Limits limits = limitsOf(graph, report, counter);
    if (limits.threads < kThreadsOfBlock)
      continue;  // too few to be told from rounding
    ++proven;
    for (int64_t signedBound : {int64_t(8), int64_t(-10'000)}) {
      const std::optional<int64_t> sum = added(graph, limits, signedBound);
      ASSERT_TRUE(sum && *sum <= kNumbers + kRounding)
          << (sum ? std::to_string(*sum) : "more and more") << " numbers are drawn of " << kNumbers << " by "
          << limits.threads << " threads up to n = " << limits.scalar << ", N = " << limits.extent << "\n"
          << made.dump();
    }
  }
  if (!base::kIsSanitized)
    EXPECT_GT(proven * 5, count);
}

}  // namespace
}  // namespace vortex::lang::flow
