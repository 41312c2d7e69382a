// Random kernels whose threads meet or not, judged by running them. VORTEX_RACE_KERNELS lengthens a run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "lang/flow/testing/graph_of.h"
#include "lang/flow/testing/race_judge.h"
#include "lang/flow/testing/random_phases.h"

namespace vortex::lang::flow {
namespace {

using testing::GraphOf;
using testing::RaceLaunch;
using testing::RaceTally;

class RaceKernels {
public:
  explicit RaceKernels(uint64_t seed) : random_(seed) {}

  std::string next() {
    isFlat_ = pick(4) != 0;
    hasExtent = pick(3) == 0;
    const std::string block = isFlat_ ? (pick(3) ? "64" : "40") : pick(2) ? "[8, 8]" : "[32, 2]";
    const std::string extent = hasExtent ? "N" : "200";
    names_ = 0;
    hasTickets_ = pick(3) == 0;
    std::string body = block_(2 + static_cast<int>(pick(3)), 2, true, {});
    return "@launch(grid = [" +
           std::string(hasExtent ? "ceil_div(N, 64)"
                       : pick(2) ? "2"
                                 : "1") +
           "], block = " + block + ")\nkernel k(x: &mut Tensor<u32, [" + extent +
           "]>, y: &mut Tensor<u32, [1000]>, c: &mut Tensor<u32, [6]>, n: usize) {\n" +
           "let t = thread.local_id\nlet g = block.id.x * 64 + t\nlet s: Tensor<u32, [70]> @shared\n" +
           "let p: Tensor<u32, [9, 40]> @shared\nlet q: Tensor<u32, [2]> @shared\nif t < 2 { q[t] = 0 }\ns[t] = 0\np[t "
           "/ 40, t % 40] = 0\nsync_block()\n" +
           body + "}\n";
  }
  /// Of numbers drawn from counters, and little else.
  std::string nextOfTickets() {
    isFlat_ = true;
    names_ = 0;
    const std::string type = pick(4) ? "u32" : "i32";
    std::string body;
    for (uint32_t count = 2 + pick(3); count > 0; --count)
      body += pick(3) == 0 ? hand()
                           : draw(pick(3) ? "" : "t < " + number(66)) + (pick(3) ? "" : barrier()) +
                                 (pick(4) ? "" : reset(type));
    const std::string first = pick(4) ? reset(type) : "";
    body =
        pick(4) ? first + body : first + "for r in 0..2 {\n" + (pick(2) ? reset(type) : "") + body + barrier() + "}\n";
    for (int name = 0; name < names_ && body.find("for r") == std::string::npos; ++name)
      body += pick(3) ? store(name) : "";
    return "@launch(grid = [2], block = 40)\nkernel k(x: &mut Tensor<u32, [200]>, y: &mut Tensor<u32, [1000]>, c: &mut "
           "Tensor<" +
           type + ", [6]>, n: usize) {\nlet t = thread.local_id\nlet g = thread.global_id\nlet q: Tensor<" + type +
           ", [2]> @shared\nlet h: Tensor<" + type +
           ", [2]> @shared\nlet s: Tensor<u32, [200]> @shared\nif t < 2 { q[t] = 0 }\nsync_block()\n" + body + "}\n";
  }
  /// Of subscripts in radices and bits that an argument gives.
  std::string nextOfBits() {
    static constexpr const char* kRadices[] = {"n",           "1usize << n",       "1usize << n",
                                               "2usize << n", "1usize << (n + 1)", "n + 1"};
    static constexpr const char* kConditions[] = {
        "n < 20",          "r > 0",   "(g & r) == 0", "(t & r) == 0", "(t & r) == 0 && t > 3",
        "!((t & r) != 0)", "g < 100", "t < 30"};
    std::string body;
    for (uint32_t count = 2 + pick(3); count > 0; --count) {
      const std::string place = std::string(pick(2) ? "x" : "s") + "[" + ofBits() + "]";
      body += pick(2) ? place + " = t as u32\n" : "y[g] += " + place + "\n";
    }
    for (uint32_t count = pick(3); count > 0; --count)
      body = "if " + std::string(kConditions[pick(8)]) + " {\n" + body + "}\n";
    return "@launch(grid = [2], block = " + std::string(pick(2) ? "64" : "40") +
           ")\nkernel k(x: &mut Tensor<u32, [200]>, y: &mut Tensor<u32, [1000]>, c: &mut Tensor<u32, [6]>, n: usize) "
           "{\n"
           "let t = thread.local_id\nlet g = thread.global_id\nlet r = " +
           kRadices[pick(6)] +
           "\nlet s: Tensor<u32, [200]> @shared\ns[t] = 0\ns[t + 64] = 0\ns[t + 128] = 0\nsync_block()\n" + body +
           "}\n";
  }
  bool hasExtent = false;

private:
  std::string barrier() { return pick(4) ? "sync_block()\n" : ""; }
  std::string reset(const std::string& type) { return "if t == 0 { q[0] = 0" + type + " }\n" + barrier(); }
  /// A number that one thread tells all others, or nearly so.
  std::string hand() {
    static constexpr const char* kThreads[] = {"t == 0", "t == 0",  "t == 0",      "t == 39",
                                               "t < 1",  "t == 40", "t % 32 == 0", "g == 0"};
    static constexpr const char* kDrawn[] = {"atomic_add(&mut c[1], 1)", "atomic_add(&mut c[1], 1)",
                                             "atomic_add(&mut c[1], 2)", "atomic_add(&mut c[2], 1)",
                                             "atomic_add(&mut q[0], 1)", "atomic_add(&mut c[1], 1) / 2"};
    const std::string name = "a" + std::to_string(names_++), cell = pick(6) ? "h[0]" : "h[1]";
    static constexpr const char* kMade[] = {"", "", " + 1", " * 40 + t", " * 2 + t", " + t"};
    return "if " + std::string(kThreads[pick(8)]) + " { " + cell + " = " + kDrawn[pick(6)] + " }\n" + barrier() +
           "let " + name + " = " + (pick(5) ? "h[0]" : "h[1]") + " as usize\n" + barrier() +
           (pick(2) ? "if t == 0 { " : "{ ") + (pick(4) ? "x" : "y") + "[" + name + kMade[pick(6)] + "] = t as u32 }\n";
  }
  std::string ofBits() {
    static constexpr const char* kBases[] = {"t",
                                             "g",
                                             "t / r * (2 * r) + t % r",
                                             "((t >> n) << (n + 1)) + (t & (r - 1))",
                                             "2 * t - (t & (r - 1))",
                                             "((t - (t & (r - 1))) << 1 | t & (r - 1))",
                                             "(t ^ 32)",
                                             "(t ^ 1)",
                                             "(g ^ r)",
                                             "(t ^ (n % 64))",
                                             "(g & !(r - 1)) + (g & (r - 1))"};
    static constexpr const char* kMore[] = {
        "", "", " + r", " | r", " ^ r", " + n", " + 64 * (n % 2)", " + 64 * ((n + 1) % 2)", " + 2 * r", " - n"};
    return "(" + std::string(kBases[pick(11)]) + ")" + kMore[pick(10)];
  }
  std::string store(int name) {
    static constexpr const char* kMade[] = {"", "", " + 1", " + 2", " + 3", " / 2", " % 64", " % 200"};
    return std::string(pick(3) ? "s" : "x") + "[a" + std::to_string(name) + kMade[pick(8)] + "] = t as u32\n";
  }
  /// Of the threads that the condition names, or of all.
  std::string draw(const std::string& condition) {
    const auto drawn = [&] {
      static constexpr const char* kCounters[] = {"c[1]", "c[1]", "c[1]", "c[2]", "c[n]", "q[0]", "q[0]", "q[1]"};
      return std::string("atomic_add(&mut ") + kCounters[pick(8)] + ", " + std::to_string(1 + pick(4)) + ")";
    };
    const std::string other = !condition.empty() ? "7" : pick(6) ? "" : drawn();
    const std::string number = other.empty() ? drawn()
                                             : "if " + (condition.empty() ? "t % 2 == 0" : condition) + " {\n" +
                                                   drawn() + "\n} else {\n" + other + "\n}";
    const int name = names_++;
    return "let a" + std::to_string(name) + " = (" + number + ") as usize\n" + (pick(2) ? store(name) : "");
  }
  uint32_t pick(uint32_t count) { return static_cast<uint32_t>(random_() % count); }
  std::string number(uint32_t count) { return std::to_string(pick(count)); }

  std::string leaf(const std::vector<std::string>& counters) {
    switch (pick(8)) {
    case 0: return isFlat_ ? "t" : "thread.id.x";
    case 1: return isFlat_ ? "warp.id" : "thread.id.y";
    case 2: return pick(2) ? "g" : "warp.lane_id";
    case 3: return pick(3) ? "block.id.x" : "n";
    case 4:
    case 5: return counters.empty() ? "t" : counters[pick(static_cast<uint32_t>(counters.size()))];
    default: return "t";
    }
  }

  std::string index(const std::vector<std::string>& counters, int depth) {
    if (depth == 0 || pick(5) == 0)
      return leaf(counters);
    const std::string a = index(counters, depth - 1);
    static constexpr int kMasks[] = {1, 2, 3, 7, 15, 16, 31, 32, 63};
    const std::string few = std::to_string(1 + pick(5)), mask = std::to_string(kMasks[pick(9)]);
    if (pick(4) == 0)
      return idiom(a, counters, depth);
    switch (pick(14)) {
    case 0: return "(" + a + " + " + number(70) + ")";
    case 1: return "(" + a + " * " + few + ")";
    case 2: return "(" + a + " / " + few + ")";
    case 3: return "(" + a + " % " + std::to_string(1 + pick(70)) + ")";
    case 4: return "(" + a + " ^ " + mask + ")";
    case 5: return "(" + a + " & " + mask + ")";
    case 6: return "(" + std::to_string(pick(70)) + " - " + a + ")";
    case 7: return "((" + a + " * " + few + ") as u8 as usize)";
    case 8: return "(" + a + " >> " + number(4) + ")";
    case 9: return "min(" + a + ", " + number(64) + ")";
    case 10: return "select(" + condition(counters) + ", " + a + ", " + index(counters, depth - 1) + ")";
    default: return "(" + a + (pick(3) ? " + " : " - ") + index(counters, depth - 1) + ")";
    }
  }

  /// Turned, mirrored, woven, wrapped and grouped numbers, in types that lose or keep them.
  std::string idiom(const std::string& a, const std::vector<std::string>& counters, int depth) {
    static constexpr const char* kTypes[] = {"u32", "i32", "u8", "i8", "u16", "i64"};
    const std::string type = kTypes[pick(6)], b = index(counters, depth - 1), few = std::to_string(1 + pick(9)),
                      size = std::to_string(2 + pick(64)), cast = "(" + a + " as " + type + ")",
                      other = "(" + b + " as " + type + ")";
    const auto narrow = [&](const std::string& number) { return "((" + number + ") as usize)"; };
    switch (pick(16)) {
    case 0: return "(" + narrow(cast + " - " + few) + (pick(2) ? "" : " % " + size) + ")";
    case 1: return narrow("(" + cast + " + " + other + ") % " + few);
    case 2: return narrow(cast + " * " + few + " / " + std::to_string(1 + pick(9)));
    case 3: return narrow(cast + " ^ (" + cast + " >> 1)");
    case 4: return narrow(cast + " ^ " + other);
    case 5: return narrow(cast + " << " + number(6));
    case 6: return "((" + a + " << 1 | " + a + " >> 5) & 63)";
    case 7: return "((" + a + " + " + size + " - " + few + ") % " + size + ")";
    case 8: return "(if " + condition(counters) + " { " + a + " } else { " + b + " })";
    case 9: return "(" + few + " * (" + a + " / " + few + ") + (" + a + " + " + b + ") % " + few + ")";
    case 10: return "(" + a + " / (min(" + size + " - " + leaf(counters) + ", " + few + ")))";
    case 11: return "(" + a + " % max(" + leaf(counters) + ", " + few + "))";
    case 12: return "((" + a + " & 7 | (" + a + " & 56) << " + number(3) + ") ^ " + b + ")";
    case 13: return "(" + a + " >> (" + b + " & " + few + "))";
    case 14: return "(" + a + " * n % " + size + ")";
    default: return narrow("(0" + type + " - " + cast + ") & " + few);
    }
  }

  std::string condition(const std::vector<std::string>& counters) {
    static constexpr const char* kComparisons[] = {"<", ">=", "==", "!=", "<="};
    const std::string compared = leaf(counters) + (pick(3) ? " " : " % 2 ") + kComparisons[pick(5)] + " " +
                                 (pick(3) ? number(66) : leaf(counters));
    return pick(5) ? compared : compared + (pick(2) ? " && " : " || ") + condition(counters);
  }

  std::string subscript(const std::vector<std::string>& counters) {
    return index(counters, 1 + static_cast<int>(pick(2)));
  }

  std::string access(const std::vector<std::string>& counters) {
    const std::string place = pick(4) == 0   ? "p[" + index(counters, 1) + ", " + subscript(counters) + "]"
                              : pick(3) == 0 ? "x[" + subscript(counters) + "]"
                                             : "s[" + subscript(counters) + "]";
    switch (pick(7)) {
    case 0: return "atomic_add(&mut " + place + ", t as u32)\n";
    case 1:
    case 2:
    case 3: return place + " = t as u32\n";
    default: return "y[g] += " + place + "\n";
    }
  }

  /// A number drawn from one of the counters, and what is made of it.
  std::string ticket() {
    static constexpr const char* kAmounts[] = {"1", "1", "2", "4", "t as u32", "n as u32 + 1"};
    const std::string counter = pick(4) ? "c[1]" : pick(2) ? "c[n]" : "q[" + number(2) + "]";
    const std::string drawn = "atomic_add(&mut " + counter + ", " + kAmounts[pick(6)] + ")",
                      name = "a" + std::to_string(names_++);
    static constexpr const char* kMade[] = {"", "", " + 1", " + 3", " / 2", " * 2", " % 64", " as u8"};
    const std::string index = "(" + name + kMade[pick(8)] + ") as usize";
    return "let " + name + " = " + drawn + "\n" + (pick(3) ? "x" : "s") + "[" + index + "] = t as u32\n" +
           (pick(3) ? "" : "y[g] += x[(" + name + kMade[pick(8)] + ") as usize]\n");
  }

  std::string block_(int statements, int depth, bool isUniform, const std::vector<std::string>& counters) {
    std::string out;
    for (int i = 0; i < statements; ++i)
      out += statement(depth, isUniform, counters);
    return out;
  }

  /// Under a condition that all threads agree on: of a counter or an argument.
  std::string barrierOfSomeRounds(const std::vector<std::string>& counters) {
    std::string of = "n";
    for (const std::string& counter : counters)
      if (counter[0] == 'k' && pick(3))
        of = counter;
    static constexpr const char* kConditions[] = {" > 0",  " != 0",         " > 1",          " + 1 < n",
                                                  " < 3",  " % 2 == 0",     " % 2 == 1",     " + 1 != n",
                                                  " == 0", " < 2 && n > 2", " > 0 || n == 2"};
    return "if " + of + kConditions[pick(11)] + " {\nsync_block()\n}\n";
  }

  std::string statement(int depth, bool isUniform, std::vector<std::string> counters) {
    if (hasTickets_ && pick(3) == 0)
      return ticket();
    const uint32_t kind = depth > 0 ? pick(12) : pick(7);
    if (kind < 5 || (kind < 7 && !isUniform))
      return access(counters);
    if (kind == 5)
      return pick(2) ? "sync_block()\n" : barrierOfSomeRounds(counters);
    if (kind == 6)
      return pick(3) ? "sync_block()\n" : "sync_warp()\n";
    if (kind < 9)
      return "if " + condition(counters) + " {\n" + block_(1 + static_cast<int>(pick(2)), depth - 1, false, counters) +
             "}\n";
    const uint32_t shape = pick(8);
    const std::string name = (shape == 6 ? "v" : "k") + std::to_string(names_++);
    counters.push_back(name);
    const auto body = [&] { return block_(1 + static_cast<int>(pick(3)), depth - 1, isUniform, counters); };
    const std::string size = std::to_string(pick(3) ? 64 : 1 + pick(64)), few = std::to_string(2 + pick(5));
    switch (shape) {
    case 0: return "for " + name + " in [16usize, 8, ..., 1] {\n" + body() + "}\n";
    case 5: return "for " + name + " in [t, t + " + size + "] {\n" + block_(2, depth - 1, false, counters) + "}\n";
    case 6: {
      // The bits of a number one after the other, or buffers in turn.
      const std::string m = "m" + name, e = "e" + name, bit = "(t >> " + e + " & 1)";
      const std::string steps[] = {m + " | " + bit + " << 2 * " + e, m + " * 2 + " + bit, "1 - " + m,
                                   "(" + m + " + 1) % 3", m + " ^ t >> " + e};
      const std::string step = steps[pick(5)];
      return "var " + m + " = " + number(2) + "usize\nfor " + e + " in 0.." + few + "usize {\n" + m + " = " + step +
             "\n" + (pick(3) ? "" : "s[" + m + " * 35 + t] = 1\n") + "}\nlet " + name + " = " + m + "\n" + body();
    }
    case 1: return "for " + name + " in 1..n {\n" + body() + "}\n";
    case 2: return "var " + name + " = 4usize\nwhile " + name + " > 0 {\n" + body() + name + " /= 2\n}\n";
    case 3: return "for " + name + " in range(0usize, 12, " + std::to_string(2 + pick(4)) + ") {\n" + body() + "}\n";
    default: return "for " + name + " in 0.." + std::to_string(1 + pick(4)) + "usize {\n" + body() + "}\n";
    }
  }

  std::mt19937_64 random_;
  bool isFlat_ = true, hasTickets_ = false;
  int names_ = 0;
};

void judge(const std::string& text, const std::vector<RaceLaunch>& launches, RaceTally& tally) {
  GraphOf made(text);
  SCOPED_TRACE(made.dump());
  ASSERT_FALSE(made.graph.blocks.empty());
  const LaunchShapes shapes = launchShapes(*made.graph.function, *made.analyzed.program);
  ASSERT_EQ(judgeRaces(made.graph, shapes, launches, tally), "");
}

/// Some arguments of each extent.
std::vector<RaceLaunch> launchesOf(const std::vector<int64_t>& extents) {
  std::vector<RaceLaunch> out;
  for (int64_t extent : extents)
    for (int64_t argument : {0, 2, 5})
      out.push_back({extent, {{"n", argument}}});
  return out;
}

uint64_t fromEnvironment(const char* name, uint64_t usual) {
  const char* given = std::getenv(name);
  return given ? std::strtoull(given, nullptr, 10) : usual;
}

TEST(RandomRaces, WhatIsProvenFreeNeverMeetsAndWitnessesDo) {
  const uint64_t first = base::freshSeed();
  const uint64_t count = fromEnvironment("VORTEX_RACE_KERNELS", base::sampled(150));
  RaceTally tally;
  for (uint64_t i = 0; i < count && !HasFatalFailure(); ++i) {
    SCOPED_TRACE("VORTEX_SEED=" + std::to_string(first + i));
    RaceKernels kernels(first + i);
    const std::string text = kernels.next();
    judge(text, launchesOf(kernels.hasExtent ? std::vector<int64_t>{1, 63, 130} : std::vector<int64_t>{200}), tally);
  }
  std::printf("%zu pairs, %zu of them undecided, %zu meet\n", tally.pairs, tally.undecided, tally.witnesses);
  if (!base::kIsSanitized)
    EXPECT_LT(tally.undecided * 5, tally.pairs);
}

TEST(RandomRaces, SubscriptsOfBitsAndRadicesAreApartWhereThatIsProven) {
  const uint64_t first = base::freshSeed();
  const uint64_t count = fromEnvironment("VORTEX_RACE_KERNELS", base::sampled(300));
  RaceTally tally;
  for (uint64_t i = 0; i < count && !HasFatalFailure(); ++i) {
    SCOPED_TRACE("VORTEX_SEED=" + std::to_string(first + i));
    judge(RaceKernels(first + i).nextOfBits(), launchesOf({200}), tally);
  }
  std::printf("%zu pairs, %zu of them undecided, %zu meet\n", tally.pairs, tally.undecided, tally.witnesses);
}

TEST(RandomRaces, BarriersOfLoopsOrderWhatTheyAreProvenToOrder) {
  const uint64_t first = base::freshSeed();
  const uint64_t count = fromEnvironment("VORTEX_RACE_KERNELS", base::sampled(150));
  std::vector<RaceLaunch> launches;
  for (int64_t n : {0, 1, 2, 3})
    for (int64_t m : {0, 1, 2})
      launches.push_back({1, {{"n", n}, {"m", m}}});
  RaceTally tally;
  for (uint64_t i = 0; i < count && !HasFatalFailure(); ++i) {
    const std::string text = testing::randomPhases(first + i);
    SCOPED_TRACE("VORTEX_SEED=" + std::to_string(first + i) + "\n" + text);
    judge(text, launches, tally);
  }
  std::printf("%zu pairs, %zu of them undecided, %zu meet\n", tally.pairs, tally.undecided, tally.witnesses);
}

TEST(RandomRaces, NumbersDrawnFromCountersAreApartWhereThatIsProven) {
  const uint64_t first = base::freshSeed();
  const uint64_t count = fromEnvironment("VORTEX_RACE_KERNELS", base::sampled(500));
  RaceTally tally;
  for (uint64_t i = 0; i < count && !HasFatalFailure(); ++i) {
    SCOPED_TRACE("VORTEX_SEED=" + std::to_string(first + i));
    judge(RaceKernels(first + i).nextOfTickets(), launchesOf({200}), tally);
  }
  if (!base::kIsSanitized)
    EXPECT_GT(tally.tickets * 10, count);
}

}  // namespace
}  // namespace vortex::lang::flow
