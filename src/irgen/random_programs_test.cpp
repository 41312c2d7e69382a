// Random per-thread kernels against a lockstep evaluation of the same program under masks: every mixture of uniform and per-thread
// variables, branches, loops with jumps, inlined early returns and barriers.
#include "irgen/test_kernel.h"

#include <array>

namespace vortex::irgen {
namespace {

constexpr int kThreads = 64;
constexpr int kUniform = 3, kPerThread = 3;  // variables u0…, p0…
using Lanes = std::array<uint32_t, kThreads>;
using Mask = std::array<bool, kThreads>;

struct Machine {
  std::array<Lanes, kUniform + kPerThread> variables{};
  std::vector<Lanes> counters;
  Lanes tile{};
  struct Loop {
    Mask broke{}, continued{};
  };
  std::vector<Loop> loops;
  bool tooLong = false;
  int steps = 0;

  Mask active(Mask mask) const {
    for (const Loop& loop : loops)
      for (int t = 0; t < kThreads; ++t)
        mask[t] = mask[t] && !loop.broke[t] && !loop.continued[t];
    return mask;
  }
};

/// Text and meaning of a piece of program.
struct Node {
  std::string text;
  std::function<Lanes(Machine&)> value;
  std::function<void(Machine&, Mask)> run;
};

class Generator {
public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Node body() { return block(5, 3, true); }

private:
  uint32_t pick(uint32_t count) { return random_() % count; }

  static Lanes each(const Lanes& a, const Lanes& b, uint32_t (*op)(uint32_t, uint32_t)) {
    Lanes result;
    for (int t = 0; t < kThreads; ++t)
      result[t] = op(a[t], b[t]);
    return result;
  }

  Node constant(uint32_t number) {
    Lanes lanes;
    lanes.fill(number);
    return {std::to_string(number) + "u32", [lanes](Machine&) { return lanes; }, {}};
  }

  Node variable(int index) {
    std::string name = index < kUniform ? "u" + std::to_string(index) : "p" + std::to_string(index - kUniform);
    return {name, [index](Machine& machine) { return machine.variables[index]; }, {}};
  }

  Node expression(int depth, bool uniform) {
    switch (depth ? pick(9) : pick(3)) {
    case 0: return constant(pick(20));
    case 1: return variable(uniform ? pick(kUniform) : pick(kUniform + kPerThread));
    case 2: {
      // The counters of enclosing loops are uniform in uniform loops only.
      std::vector<int> usable;
      for (size_t i = 0; i < counterIsUniform_.size(); ++i)
        if (!uniform || counterIsUniform_[i])
          usable.push_back(static_cast<int>(i));
      if (usable.empty())
        return variable(uniform ? pick(kUniform) : kUniform + pick(kPerThread));
      int index = usable[pick(usable.size())];
      return {"i" + std::to_string(index), [index](Machine& machine) { return machine.counters[index]; }, {}};
    }
    case 3: {
      Node condition = this->condition(uniform), a = expression(depth - 1, uniform), b = expression(depth - 1, uniform);
      return {"(if " + condition.text + " { " + a.text + " } else { " + b.text + " })",
              [=](Machine& machine) {
                Lanes c = condition.value(machine), x = a.value(machine), y = b.value(machine);
                for (int t = 0; t < kThreads; ++t)
                  x[t] = c[t] ? x[t] : y[t];
                return x;
              },
              {}};
    }
    default: {
      struct Operator {
        const char* text;
        uint32_t (*op)(uint32_t, uint32_t);
      };
      static const Operator kOperators[] = {
          {"+", [](uint32_t a, uint32_t b) { return a + b; }},
          {"-", [](uint32_t a, uint32_t b) { return a - b; }},
          {"*", [](uint32_t a, uint32_t b) { return a * b; }},
          {"^", [](uint32_t a, uint32_t b) { return a ^ b; }},
          {"/", [](uint32_t a, uint32_t b) { return b ? a / b : 0; }},
          {"%", [](uint32_t a, uint32_t b) { return b ? a % b : 0; }},
      };
      const Operator& op = kOperators[pick(6)];
      Node a = expression(depth - 1, uniform), b = expression(depth - 1, uniform);
      return {"(" + a.text + " " + op.text + " " + b.text + ")",
              [a, b, op](Machine& machine) { return each(a.value(machine), b.value(machine), op.op); },
              {}};
    }
    }
  }

  Node condition(bool uniform) {
    Node a = expression(1, uniform), b = expression(1, uniform);
    bool less = pick(2);
    auto compare = less ? +[](uint32_t x, uint32_t y) -> uint32_t { return x % 16 < y % 16; }
                        : +[](uint32_t x, uint32_t y) -> uint32_t { return x % 16 == y % 16; };
    return {a.text + " % 16 " + (less ? "<" : "==") + " " + b.text + " % 16",
            [=](Machine& machine) { return each(a.value(machine), b.value(machine), compare); },
            {}};
  }

  Node assignment(bool uniformControl) {
    bool uniform = uniformControl && pick(2);
    int target = uniform ? pick(kUniform) : kUniform + pick(kPerThread);
    Node value = expression(2, uniform);
    bool viaCall = pick(4) == 0;
    std::string text = variable(target).text + " = " + (viaCall ? "early(" + value.text + ")" : value.text) + "\n";
    return {text, {}, [=](Machine& machine, Mask mask) {
              Lanes lanes = value.value(machine);
              for (int t = 0; t < kThreads; ++t)
                if (mask[t])
                  machine.variables[target][t] = viaCall ? (lanes[t] % 3 == 0   ? lanes[t] + 7
                                                            : lanes[t] % 3 == 1 ? 5
                                                                                : lanes[t] * 3)
                                                         : lanes[t];
            }};
  }

  Node exchange() {
    int from = kUniform + pick(kPerThread), to = kUniform + pick(kPerThread);
    uint32_t shift = pick(kThreads), at = pick(kThreads);
    bool readsUniform = pick(2);
    int uniform = pick(kUniform);
    std::string text = "tile[t] = " + variable(from).text + "\nsync_block()\n" + variable(to).text + " = tile[(t + " +
                       std::to_string(shift) + ") % 64]\n";
    if (readsUniform)
      text += variable(uniform).text + " = tile[" + std::to_string(at) + "]\n";
    text += "sync_block()\n";
    return {text, {}, [=](Machine& machine, Mask mask) {
              if (!mask[0])
                return;  // uniform control: all threads or none
              machine.tile = machine.variables[from];
              for (int t = 0; t < kThreads; ++t)
                machine.variables[to][t] = machine.tile[(t + shift) % kThreads];
              if (readsUniform)
                machine.variables[uniform].fill(machine.tile[at]);
            }};
  }

  Node branch(int size, int depth, bool uniformControl) {
    bool uniform = uniformControl && pick(2);
    Node condition = this->condition(uniform), a = block(size, depth - 1, uniform), b = block(size, depth - 1, uniform);
    return {
        "if " + condition.text + " {\n" + a.text + "} else {\n" + b.text + "}\n", {}, [=](Machine& machine, Mask mask) {
          Lanes lanes = condition.value(machine);
          Mask yes, no;
          for (int t = 0; t < kThreads; ++t) {
            yes[t] = mask[t] && lanes[t];
            no[t] = mask[t] && !lanes[t];
          }
          a.run(machine, yes);
          b.run(machine, no);
        }};
  }

  Node jump(bool uniform) {
    Node condition = this->condition(uniform);
    bool isBreak = pick(2);
    return {"if " + condition.text + " { " + (isBreak ? "break" : "continue") + " }\n",
            {},
            [=](Machine& machine, Mask mask) {
              Lanes lanes = condition.value(machine);
              for (int t = 0; t < kThreads; ++t)
                if (mask[t] && lanes[t])
                  (isBreak ? machine.loops.back().broke : machine.loops.back().continued)[t] = true;
            }};
  }

  Node loop(int size, int depth, bool uniformControl) {
    bool uniform = uniformControl && pick(2);
    int index = static_cast<int>(counterIsUniform_.size());
    uint32_t trips = 1 + pick(4);
    counterIsUniform_.push_back(uniform);
    loopIsUniform_.push_back(uniform);
    Node body = block(size, depth - 1, uniform);
    loopIsUniform_.pop_back();
    counterIsUniform_.pop_back();
    std::string name = "i" + std::to_string(index);
    return {"for " + name + " in 0.." + std::to_string(trips) + "u32 {\n" + body.text + "}\n",
            {},
            [=](Machine& machine, Mask mask) {
              machine.counters.resize(std::max<size_t>(machine.counters.size(), index + 1));
              machine.loops.emplace_back();
              for (uint32_t trip = 0; trip < trips; ++trip) {
                machine.counters[index].fill(trip);
                machine.loops.back().continued = {};
                if (++machine.steps > 20000)
                  machine.tooLong = true;
                body.run(machine, mask);
              }
              machine.loops.pop_back();
            }};
  }

  Node block(int size, int depth, bool uniformControl) {
    std::vector<Node> statements;
    std::string text;
    for (int i = 0; i < size; ++i) {
      bool inLoop = !loopIsUniform_.empty();
      switch (pick(depth > 0 ? 8 : 4)) {
      case 3:
      case 4:
        if (uniformControl) {
          statements.push_back(exchange());
          break;
        }
        [[fallthrough]];
      case 2:
        if (inLoop && pick(2) && (uniformControl || !loopIsUniform_.back())) {
          // A jump of only some threads makes the rest of the loop per-thread: allowed in loops made for it.
          statements.push_back(jump(loopIsUniform_.back()));
          break;
        }
        [[fallthrough]];
      case 0:
      case 1: statements.push_back(assignment(uniformControl)); break;
      case 5:
      case 6: statements.push_back(branch(size - 2, depth, uniformControl)); break;
      default: statements.push_back(loop(size - 1, depth, uniformControl)); break;
      }
      text += statements.back().text;
    }
    return {text, {}, [statements](Machine& machine, Mask mask) {
              for (const Node& statement : statements)
                statement.run(machine, machine.active(mask));
            }};
  }

  std::mt19937 random_;
  std::vector<bool> counterIsUniform_, loopIsUniform_;
};

TEST(RandomPrograms, AgreeWithLockstepEvaluation) {
  int ran = 0;
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    Node body = Generator(seed).body();
    Machine machine;
    std::vector<uint32_t> x(kThreads), y(kThreads);
    for (int t = 0; t < kThreads; ++t)
      x[t] = machine.variables[kUniform][t] = t * 7 % 13;
    for (int i = 0; i < kUniform; ++i)
      machine.variables[i].fill(i + 1);
    for (int i = 1; i < kPerThread; ++i)
      machine.variables[kUniform + i].fill(i);
    Mask all;
    all.fill(true);
    body.run(machine, all);
    if (machine.tooLong)
      continue;
    std::string text =
        "fn early(v: u32) -> u32 {\n  if v % 3 == 0 { return v + 7 }\n  if v % 3 == 1 { return 5 }\n  return v * 3\n}\n"
        "@launch(grid = [1], block = 64)\nkernel k(x: Tensor<u32, [64]>, y: &mut Tensor<u32, [64]>) {\n"
        "let tile: Tensor<u32, [64]> @shared\nlet t = thread.local_id\n"
        "var u0: u32 = 1\nvar u1: u32 = 2\nvar u2: u32 = 3\nvar p0 = x[t]\nvar p1: u32 = 1\nvar p2: u32 = 2\n" +
        body.text + "y[t] = p0 * 31 + p1 * 17 + p2 * 5 + u0 + u1 * 3 + u2 * 7\n}\n";
    TestKernel kernel(text, {}, "k");
    kernel.tensor(x, {kThreads}).tensor(y, {kThreads}).run(seed);
    ++ran;
    for (int t = 0; t < kThreads; ++t) {
      const auto& v = machine.variables;
      uint32_t expected = v[3][t] * 31 + v[4][t] * 17 + v[5][t] * 5 + v[0][t] + v[1][t] * 3 + v[2][t] * 7;
      ASSERT_EQ(y[t], expected) << "seed " << seed << " thread " << t << "\n" << text << kernel.text();
    }
    if (testing::Test::HasFailure())
      FAIL() << "seed " << seed << "\n" << text;
  }
  EXPECT_GT(ran, 100);
}

}  // namespace
}  // namespace vortex::irgen
