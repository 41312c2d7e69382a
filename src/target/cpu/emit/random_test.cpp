// Random per-thread programs against a C++ evaluator that runs one thread at a time.
#include "base/sanitized.h"
#include "target/cpu/emit/testing/run_kernel.h"

#include <gtest/gtest.h>
#include <sstream>

namespace vortex::target::cpu::emit::testing {
namespace {

constexpr int kVariables = 5;  // 0–2 are i32, 3 and 4 index; all changed by statements
using State = std::array<int64_t, kVariables>;

struct Machine {
  const std::vector<int32_t>& input;
  std::vector<int32_t>& output;
};

/// A statement as text in SSA form, and as a function on the thread's variables.
struct Program {
  std::mt19937 random;
  std::ostringstream text;
  int names = 0, depth = 0;
  using Step = std::function<void(State&, Machine&)>;
  std::array<std::string, kVariables> current;

  explicit Program(unsigned seed) : random(seed) {}

  unsigned pick(unsigned count) { return random() % count; }
  std::string fresh() { return "%v" + std::to_string(names++); }
  static const char* type(int variable) { return variable < 3 ? "i32" : "index"; }
  static int64_t wrap(int variable, int64_t value) { return variable < 3 ? int32_t(value) : value; }
  std::string allTypes() { return "i32, i32, i32, index, index"; }
  std::string list(const std::array<std::string, kVariables>& values) {
    std::string result;
    for (const std::string& value : values)
      result += (result.empty() ? "" : ", ") + value;
    return result;
  }

  std::string constant(int64_t value, const char* type) {
    std::string name = fresh();
    text << name << " = arith.constant " << value << " : " << type << "\n";
    return name;
  }

  Step arithmetic() {
    int target = pick(kVariables);
    bool index = target >= 3;
    int a = index ? 3 + pick(2) : pick(3), b = index ? 3 + pick(2) : pick(3);
    static const char* const ops[] = {"arith.addi",  "arith.subi",  "arith.muli", "arith.xori",
                                      "arith.maxsi", "vx.int divs", "vx.int remu"};
    unsigned op = pick(7);
    std::string rhs = current[b];
    int64_t literal = 0;
    bool useLiteral = pick(2);
    if (useLiteral)
      rhs = constant(literal = int64_t(pick(9)) - 2, type(target));
    std::string name = fresh();
    text << name << " = " << ops[op] << " " << current[a] << ", " << rhs << " : " << type(target) << "\n";
    current[target] = name;
    return [=](State& s, Machine&) {
      int64_t x = s[a], y = useLiteral ? literal : s[b], r = 0;
      switch (op) {
      case 0: r = int64_t(uint64_t(x) + uint64_t(y)); break;
      case 1: r = int64_t(uint64_t(x) - uint64_t(y)); break;
      case 2: r = int64_t(uint64_t(x) * uint64_t(y)); break;
      case 3: r = x ^ y; break;
      case 4: r = std::max(x, y); break;
      case 5: r = y == 0 ? 0 : y == -1 ? int64_t(0 - uint64_t(x)) : x / y; break;
      default:
        if (target < 3)
          r = uint32_t(y) == 0 ? 0 : uint32_t(x) % uint32_t(y);
        else
          r = y == 0 ? 0 : int64_t(uint64_t(x) % uint64_t(y));
      }
      s[target] = wrap(target, r);
    };
  }

  Step load() {
    int target = pick(3), source = 3 + pick(2);
    std::string name = fresh();
    text << name << " = vx.load %a[" << current[source] << "] guarded : !vx.view<?xi32, global> -> i32\n";
    current[target] = name;
    return [=](State& s, Machine& m) { s[target] = uint64_t(s[source]) < m.input.size() ? m.input[s[source]] : 0; };
  }

  /// Threads write and read their own element only.
  Step store() {
    int source = pick(3);
    bool readsBack = pick(2);
    text << "vx.store " << current[source] << ", %o[%i] guarded : i32, !vx.view<?xi32, global>\n";
    int target = pick(3);
    if (readsBack) {
      std::string name = fresh();
      text << name << " = vx.load %o[%i] guarded : !vx.view<?xi32, global> -> i32\n";
      current[target] = name;
    }
    return [=](State& s, Machine& m) {
      bool inside = size_t(thread) < m.output.size();
      if (inside)
        m.output[thread] = int32_t(s[source]);
      if (readsBack)
        s[target] = inside ? m.output[thread] : 0;
    };
  }

  static thread_local int64_t thread;

  std::pair<std::string, std::function<bool(const State&)>> condition() {
    static const char* const predicates[] = {"slt", "ult", "eq", "sge"};
    int a = pick(kVariables);
    unsigned predicate = pick(4);
    int64_t literal = int64_t(pick(70)) - 5;
    bool against = pick(3) == 0;
    int b = a < 3 ? pick(3) : 3 + pick(2);
    std::string rhs = against ? current[b] : constant(literal, type(a));
    std::string name = fresh();
    text << name << " = arith.cmpi " << predicates[predicate] << ", " << current[a] << ", " << rhs << " : " << type(a)
         << "\n";
    return {name, [=](const State& s) {
              int64_t x = s[a], y = against ? s[b] : literal;
              switch (predicate) {
              case 0: return x < y;
              case 1: return a < 3 ? uint32_t(x) < uint32_t(y) : uint64_t(x) < uint64_t(y);
              case 2: return x == y;
              default: return x >= y;
              }
            }};
  }

  Step branch() {
    auto [name, test] = condition();
    auto before = current;
    std::array<std::string, kVariables> results;
    std::string group = fresh();
    for (int i = 0; i < kVariables; ++i)
      results[i] = group + "#" + std::to_string(i);
    text << group << ":5 = scf.if " << name << " -> (" << allTypes() << ") {\n";
    Step thenStep = sequence(3);
    text << "scf.yield " << list(current) << " : " << allTypes() << "\n} else {\n";
    current = before;
    Step elseStep = pick(2) ? sequence(2) : Step([](State&, Machine&) {});
    text << "scf.yield " << list(current) << " : " << allTypes() << "\n}\n";
    current = results;
    return [=](State& s, Machine& m) { test(s) ? thenStep(s, m) : elseStep(s, m); };
  }

  /// for k = lower; k < lower + count; with a count that is constant or depends on a variable.
  Step loop() {
    int base = 3 + pick(2), bound = pick(3);
    unsigned kind = pick(3);  // trip count: constant; same window per thread; data-dependent
    std::string zero = constant(0, "index"), one = constant(1, "index"), five = constant(5, "i32"),
                four = constant(4, "index");
    std::string lower = zero, upper = four;
    if (kind == 1) {
      lower = current[base];
      upper = fresh();
      text << upper << " = arith.addi " << lower << ", " << four << " : index\n";
    } else if (kind == 2) {
      std::string rest = fresh();
      text << rest << " = vx.int remu " << current[bound] << ", " << five << " : i32\n";
      upper = fresh();
      text << upper << " = arith.index_cast " << rest << " : i32 to index\n";
    }
    std::array<std::string, kVariables> arguments, results;
    std::string group = fresh(), iv = fresh(), inits;
    for (int i = 0; i < kVariables; ++i) {
      arguments[i] = fresh();
      results[i] = group + "#" + std::to_string(i);
      inits += (i ? ", " : "") + arguments[i] + " = " + current[i];
    }
    text << group << ":5 = scf.for " << iv << " = " << lower << " to " << upper << " step " << one << " iter_args("
         << inits << ") -> (" << allTypes() << ") {\n";
    current = arguments;
    int exposed = 3 + pick(2);
    current[exposed] = iv;
    Step body = sequence(3);
    text << "scf.yield " << list(current) << " : " << allTypes() << "\n}\n";
    current = results;
    return [=](State& s, Machine& m) {
      int64_t first = kind == 1 ? s[base] : 0, count = kind == 2 ? uint32_t(s[bound]) % 5 : 4;
      int64_t last = int64_t(uint64_t(first) + uint64_t(count));
      for (int64_t k = first; k < last; ++k) {
        s[exposed] = k;
        body(s, m);
      }
    };
  }

  /// while (i32 variable test && fuel left)
  Step whileLoop() {
    std::string zero = constant(0, "i32"), one = constant(1, "i32"), six = constant(6, "i32");
    std::array<std::string, kVariables> before, after, results;
    std::string group = fresh(), inits, arguments, fuelBefore = fresh(), fuelAfter = fresh();
    for (int i = 0; i < kVariables; ++i) {
      before[i] = fresh();
      after[i] = fresh();
      results[i] = group + "#" + std::to_string(i);
      inits += before[i] + " = " + current[i] + ", ";
      arguments += after[i] + ": " + type(i) + ", ";
    }
    text << group << ":6 = scf.while (" << inits << fuelBefore << " = " << zero << ") : (" << allTypes()
         << ", i32) -> (" << allTypes() << ", i32) {\n";
    current = before;
    auto [name, test] = condition();
    std::string fuelled = fresh(), both = fresh();
    text << fuelled << " = arith.cmpi slt, " << fuelBefore << ", " << six << " : i32\n"
         << both << " = arith.andi " << name << ", " << fuelled << " : i1\n"
         << "scf.condition(" << both << ") " << list(before) << ", " << fuelBefore << " : " << allTypes()
         << ", i32\n} do {\n^bb0(" << arguments << fuelAfter << ": i32):\n";
    current = after;
    Step body = sequence(3);
    std::string next = fresh();
    text << next << " = arith.addi " << fuelAfter << ", " << one << " : i32\n";
    text << "scf.yield " << list(current) << ", " << next << " : " << allTypes() << ", i32\n}\n";
    current = results;
    return [=](State& s, Machine& m) {
      for (int fuel = 0; fuel < 6 && test(s); ++fuel)
        body(s, m);
    };
  }

  Step statement() {
    unsigned kind = pick(depth < 3 ? 10 : 6);
    if (kind < 3)
      return arithmetic();
    if (kind < 5)
      return load();
    if (kind < 6)
      return store();
    ++depth;
    Step step = kind < 8 ? branch() : kind < 9 ? loop() : whileLoop();
    --depth;
    return step;
  }

  Step sequence(unsigned most) {
    std::vector<Step> steps;
    for (unsigned count = 1 + pick(most); count > 0; --count)
      steps.push_back(statement());
    return [steps](State& s, Machine& m) {
      for (const Step& step : steps)
        step(s, m);
    };
  }
};

thread_local int64_t Program::thread = 0;

/// `isWarp`: a warp operation fixes the width, so what diverges may run lane by lane.
void checkProgram(unsigned seed, bool isWarp) {
  Program program(seed);
  program.current = {"%s0", "%i7", "%s2", "%i", "%x"};
  Program::Step steps = program.sequence(6);
  std::string body = R"(
  %nx = vx.block_dim x
  %ny = vx.block_dim y
  %nz = vx.block_dim z
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %i7 = arith.constant 7 : i32
  %bid = vx.block_id x
  %area = arith.muli %nx, %ny : index
  %volume = arith.muli %area, %nz : index
  %base = arith.muli %bid, %volume : index
  vx.threads (%nx, %ny, %nz) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %base, %l : index
    %s0 = vx.load %a[%i] guarded : !vx.view<?xi32, global> -> i32
    %layer = arith.muli %z, %c100 : index
    %yz = arith.addi %y, %layer : index
    %s2Wide = arith.index_cast %yz : index to i64
    %s2 = arith.trunci %s2Wide : i64 to i32
)" + std::string(isWarp ? "vx.warp_barrier\n" : "") +
                     program.text.str();
  std::string sum = program.current[0];
  for (int variable : {1, 2}) {
    std::string next = "%sum" + std::to_string(variable);
    body += next + " = arith.addi " + sum + ", " + program.current[variable] + " : i32\n";
    sum = next;
  }
  for (int variable : {3, 4}) {
    std::string suffix = std::to_string(variable);
    body += "%wide" + suffix + " = arith.index_cast " + program.current[variable] + " : index to i64\n";
    body += "%cast" + suffix + " = arith.trunci %wide" + suffix + " : i64 to i32\n";
    body += "%sum" + suffix + " = arith.addi " + sum + ", %cast" + suffix + " : i32\n";
    sum = "%sum" + suffix;
  }
  body += "vx.store " + sum + ", %o[%i] guarded : i32, !vx.view<?xi32, global>\nvx.yield\n}";
  static constexpr std::array<int, 3> kShapes[] = {{64, 1, 1}, {37, 1, 1}, {16, 4, 1}, {10, 3, 1},
                                                   {4, 8, 1},  {32, 2, 1}, {1, 8, 4},  {1, 40, 1},
                                                   {1, 3, 5},  {2, 1, 33}, {1, 1, 32}};
  const auto [bx, by, bz] = kShapes[seed % std::size(kShapes)];
  const int64_t volume = bx * by * bz;
  TestKernel kernel(module("%a: !vx.view<?xi32, global>, %o: !vx.view<?xi32, global>",
                           "ceildiv(dim(1,0), " + std::to_string(volume) + ");1;1",
                           std::to_string(bx) + ";" + std::to_string(by) + ";" + std::to_string(bz), body),
                    {.cpu = !isWarp    ? "native"
                            : seed % 2 ? "x86-64-v2"
                                       : "x86-64-v3",
                     .features = ""});
  ASSERT_EQ(kernel.error(), "");
  int64_t n = 100 + seed % 60;
  std::vector<int32_t> input(n), output(n, 0), expected(n, 0);
  for (int32_t& value : input)
    value = int32_t(program.random() % 90) - 10;
  bool strided = seed % 5 == 4;
  std::vector<int32_t> spread(2 * n);
  for (int64_t i = 0; i < n; ++i)
    spread[2 * i] = input[i];
  kernel.run({strided ? Arg::strided(spread.data(), {n}, {2}) : Arg::tensor(input), Arg::tensor(output)}, seed);
  Machine machine{input, expected};
  int64_t threads = (n + volume - 1) / volume * volume;
  for (int64_t t = 0; t < threads; ++t) {
    Program::thread = t;
    int64_t local = t % volume;
    State state{t < n ? input[t] : 0, 7, local / bx % by + 100 * (local / bx / by), t, local % bx};
    steps(state, machine);
    if (t < n)
      expected[t] = int32_t(uint32_t(state[0]) + uint32_t(state[1]) + uint32_t(state[2]) + uint32_t(state[3]) +
                            uint32_t(state[4]));
  }
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ(output[i], expected[i]) << "element " << i << " of seed " << seed << "\n" << body;
}

TEST(Random, ProgramsAgreeWithOneThreadAtATime) {
  const char *count = std::getenv("VORTEX_RANDOM_PROGRAMS"), *first = std::getenv("VORTEX_RANDOM_SEED");
  unsigned seed = first ? std::atoi(first) : 1, last = seed + (count ? std::atoi(count) : base::sampled(40));
  for (; seed < last && !::testing::Test::HasFatalFailure(); ++seed)
    for (bool isWarp : {false, true})
      checkProgram(seed, isWarp);
}

}  // namespace
}  // namespace vortex::target::cpu::emit::testing
