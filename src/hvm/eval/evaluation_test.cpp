#include "hvm/eval/evaluate_for_tests.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>

namespace {

using namespace vortex::hvm;

TEST(HvmEvaluation, UnscopedPairsAreEvaluatedInBothOrders) {
  EXPECT_EQ(normalForm("@main = ! f = λ v; #P{f(1,2), v}"), "#P{1,2}");
  EXPECT_EQ(normalForm("@main = ! f = λ v; #P{v, f(1,2)}"), "#P{2,1}");
  EXPECT_EQ(normalForm("@main = ! f = λ v; #P{v + 1, #Q{f(1, 2 * 3)}}"), "#P{7,#Q{1}}");
  EXPECT_EQ(normalForm("@main = ! f = λ v; ! g = λ w; #P{v, w, g(1,f(2,3))}"), "#P{3,2,1}");
}

TEST(HvmEvaluation, EveryParameterIsAnInteraction) {
  for (uint64_t parameters : {3, 200, 201, 255, 256, 300}) {
    std::string function = "@f = ", arguments;
    for (uint64_t i = 0; i < parameters; ++i) {
      function += "λa" + std::to_string(i) + ".";
      arguments += std::to_string(i) + ",";
    }
    Outcome outcome = evaluate(function + "λ{0: a2; λn. n}\n@main = @f(" + arguments + "0)");
    EXPECT_EQ(outcome.lines, std::vector<std::string>{"2"}) << parameters;
    EXPECT_EQ(outcome.interactions, parameters + 1);
  }
}

TEST(HvmEvaluation, ACyclicNetIsPrintedWithItsDuplications) {
  EXPECT_EQ(normalForm("@main = !x&A=x₁; x₀").substr(0, 11), "PARSE_ERROR");
  EXPECT_EQ(normalForm("@main = λf.λx.!g&K=f; g₀(g₁(x))"), "λa.λb.A₀(A₁(b));!A&K=a;");
}

// What a duplicated lambda consists of has no words of its own until something else than a call or a copy asks for it.
TEST(HvmEvaluation, CopiesOfAFunctionAreThatFunctionWhereverTheyGo) {
  const std::vector<std::string> functions = {"λx.5",          "λx.[1,2]",         "λx.x",     "λx.λy.x",
                                              "λx.λy.3",       "λx.x + 1",         "λx.#P{x}", "λx.λ{0:1;λn.n}(x)",
                                              "λx.&B{x,λy.7}", "λx.!y&B=x;[y₀,y₁]"};
  const std::vector<std::string> places = {
      "[F₁,F₀]",           "[F₀(1),F₁(2)]",    "[F₁(λz.z),F₀]",  "[F₀ === F₁]",           "[F₀ + 1,2 * F₁]",
      "[λ{λy.y}(F₀),F₁]",  "λ{#P:1;λz.z}(F₀)", "&(F₀){1,F₁}",    "[(↑F₀)(1),F₁]",         "[%nf(F₀),%nf(F₁)(2)]",
      "[F₀(&C{1,2}),F₁]",  "[&C{F₀,F₁}(7)]",   "F₀(F₁)",         "[!g&C=F₀;g₁(3),F₁(4)]", "[!g&C=F₁;[g₀,g₁],F₀]",
      "[!g&(9)=F₀;g₀,F₁]", "[F₀ .&. 1,F₁]",    "[F₀(*),F₁(&{})]"};
  for (const std::string& function : functions)
    for (const std::string& place : places)
      for (bool collects : {false, true}) {
        std::string written = place;
        for (size_t at; (at = written.find('F')) != std::string::npos;)
          written.replace(at, std::string("F₀").size(), "(" + function + ")");
        std::string copied = place;
        std::replace(copied.begin(), copied.end(), 'F', 'f');
        const EvaluationOptions options{.memoryBytes = 1 << 24, .collectsAtEverySafePoint = collects};
        auto lines = [&](const std::string& text) {
          const Outcome outcome = evaluate(parseText("@main = " + text, "test"), false, options, ~0ull);
          EXPECT_FALSE(outcome.error.starts_with("PARSE_ERROR")) << text;
          return outcome.lines.empty() ? outcome.error : outcome.lines[0];
        };
        EXPECT_EQ(lines("!f&A=(" + function + ");" + copied), lines(written)) << function << " in " << place;
      }
}

// Two of DUP-LAM, three of APP-LAM, two of DUP-NOD.
TEST(HvmEvaluation, CallsOfCopiesWithoutVariableCount) {
  EXPECT_EQ(evaluate("@main = !f&A=(λx.5);!g&B=f₀;[g₀(1),g₁(2),f₁(3)]").interactions, 7u);
}

/// What a program of tests/hvm expects: the block of comments at its end, `//!` for a normal form. Nothing where flags or patterns are involved.
std::optional<std::string> expectedOf(const std::filesystem::path& path, bool isCollapsed) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  std::string expected;
  bool isNormalForm = false;
  for (; !lines.empty() && lines.back().starts_with("//"); lines.pop_back()) {
    isNormalForm |= lines.back().starts_with("//!");
    const std::string text = lines.back().substr(lines.back().starts_with("//!") ? 3 : 2);
    expected = expected.empty() ? text : text + "\n" + expected;
  }
  const bool isPlain = !expected.empty() && !expected.starts_with("EXPECT_") && !lines[0].starts_with("//!");
  return isPlain && isNormalForm != isCollapsed ? std::optional(expected) : std::nullopt;
}

std::string joined(const Outcome& outcome) {
  std::string text = outcome.error;
  for (size_t i = outcome.lines.size(); i-- > 0;)
    text = text.empty() ? outcome.lines[i] : outcome.lines[i] + "\n" + text;
  return text;
}

// Every program of tests/hvm, collected at every safe point, and with threads.
TEST(HvmEvaluation, CollectionsAndThreadsChangeNeitherResultsNorCounts) {
  for (const auto& file : std::filesystem::directory_iterator("tests/hvm/programs")) {
    std::string name = file.path().filename().string();
    bool isLimited = name.starts_with("collapse_") || name.starts_with("enum_");
    if (file.path().extension() != ".hvm4" || name[0] == '_' || name.starts_with("large_") || isLimited)
      continue;
    auto program = parseFile(file.path().string());
    if (!program || !program->definitionIndex.contains("main"))
      continue;
    if (compile(*program)->hasEffects)
      continue;
    Outcome plain = evaluate(program, false, {.memoryBytes = 1 << 28}, ~0ull);
    if (auto expected = expectedOf(file.path(), false))
      EXPECT_EQ(joined(plain), *expected) << name;
    for (unsigned threads : {1, 2, 3, 8}) {
      EvaluationOptions options{.memoryBytes = 1 << 28, .threads = threads, .seed = threads};
      options.collectsAtEverySafePoint = plain.interactions < (threads == 1 ? 20000 : 1000);
      for (bool forks : {false, true}) {
        options.forksAtEverySafePoint = forks && threads > 1;
        Outcome stressed = evaluate(program, false, options, ~0ull);
        EXPECT_EQ(plain.lines, stressed.lines) << name << ", threads: " << threads << ", forks: " << forks;
        EXPECT_EQ(plain.error, stressed.error) << name;
        if (plain.error.empty())
          EXPECT_EQ(plain.interactions, stressed.interactions) << name << ", threads: " << threads;
      }
    }
    if (plain.interactions > 20000)
      continue;
    Outcome lines = evaluate(program, true, {.memoryBytes = 1 << 28}, 50);
    if (auto expected = expectedOf(file.path(), true))
      EXPECT_EQ(joined(lines), *expected) << name;
    for (bool forks : {false, true}) {
      EvaluationOptions options{.memoryBytes = 1 << 28, .threads = forks ? 2u : 1u, .collectsAtEverySafePoint = true};
      options.forksAtEverySafePoint = forks;
      Outcome stressed = evaluate(program, true, options, 50);
      EXPECT_EQ(lines.lines, stressed.lines) << name;
      EXPECT_EQ(lines.interactions, stressed.interactions) << name;
    }
  }
}

// Passes follow each other while threads of the one before may have stood at a safe point when it ended.
TEST(HvmEvaluation, CollectionsStayCompleteOverPassesOfSeveralThreads) {
  const std::string texts[] = {
      "@at = λ&n. ! f = λ v; #P{v, @sum(n), f(n, n + 1)}\n@main = [@at(90), @at(80), @at(70), @at(60)]",
      "@main = ! f = λ v; ! g = λ w; #P{v + @sum(50), w, g(@sum(40), f(@sum(30), @sum(20)))}",
      "@in = λ{0: #E; λ&n. ! f = λ v; #N{v, @in(n - 1), f(n, @sum(n))}}\n@main = @in(30)",
  };
  for (const std::string& text : texts) {
    auto program = parseText("@sum = λ{0: 0; λ&n. n + @sum(n - 1)}\n" + text, "test");
    Outcome plain = evaluate(program, false, {.memoryBytes = 1 << 26}, ~0ull);
    ASSERT_EQ(plain.error, "");
    for (unsigned seed = 0; seed < 20; ++seed) {
      EvaluationOptions options{.memoryBytes = 1 << 26, .threads = 2 + seed % 5, .seed = seed};
      options.collectsAtEverySafePoint = true;
      Outcome stressed = evaluate(program, false, options, ~0ull);
      EXPECT_EQ(plain.lines, stressed.lines) << text << ", seed " << seed;
      EXPECT_EQ(plain.interactions, stressed.interactions) << text << ", seed " << seed;
    }
  }
}

// The right operand is reduced ahead of need, and then the left one does not need it.
TEST(HvmEvaluation, OperandsThatAreNotNeededChangeNothing) {
  const std::string library =
      "@loop = λ&n. @loop(n + 1)\n@fail = λ{0: 1(2); λn. @fail(n - 1)}\n"
      "@fib = λ{0: 0; 1: 1; λ&n. @fib(n - 1) + @fib(n - 2)}\n"
      "@lost = λ{0: &{}; λn. @lost(n - 1)}\n@wait = λ{0: λx. x; λn.λx. @wait(n - 1, x)}\n@any "
      "= λ{0: *; λn. @any(n - 1)}\n"
      "@map = λ&f.λ{[]: []; <>: λh.λt. f(h) <> @map(f, t)}\n@sum = λ{[]: 0; <>: λh.λt. h + @sum(t)}\n";
  const char* terms[] = {
      "@sum(@map(λv&A. %nf(λ{4: 2; λw. w << (v₀ < 3)}(v₁)) * 1, [1,2]))",
      "@sum(@map(λv&A. %nf(#P{v₀, v₁ + 5}) === #P{2, 7}, [1,2,3]))",
      "@fib(8) + @sum(@map(λv&A. %nf(λ{1: λx. @fib(6) + x; λw.λx. w * x}(v₁, v₀)), [1,2,3]))",
      // The right operand binds a variable that has left its function, and that the left one comes to.
      "!f&K = (λx&K. x₀ * x₁); @wait(300, f₀)(1) * f₁(2)",
      "!f&K = (λx&K. x₀ * x₁); (@wait(300, f₀)(1) * f₁(2)) === 4",
      "!f&K = (λx&K. x₀ * x₁); !!v = (@wait(300, f₀)(1) * f₁(2)); #P{v, 3}",
      "!f&K = (λx&K. x₀ * x₁); !!v = (@wait(300, f₀)(1) * f₁(2)); 3",
      "!f&K = (λx&K. x₀ * x₁); !v&B = (@wait(300, f₀)(1) * f₁(2)); #P{v₀, λy. v₁}",
      "!f&K = (λx&K. x₀ * x₁); λ{4: 1; λn. n}(@wait(300, f₀)(1) * (@fib(7) + f₁(2)))",
      "!f&K = (λx&K. x₀ * x₁); @wait(300, f₀)(1) === f₁(&A{2, 3})",
      "!f&K = (λx&K. x₀ * x₁); [%nf(@wait(300, f₀)(1) * f₁(2)), &{}]",
      "!f&K = (λx&K. x₀ * x₁); (@wait(300, f₀)(1) * f₁(&{})) + @fib(5)",
      "!f&K = (λx&K. x₀ * x₁); ((@wait(300, f₀)(1) + @fib(6)) * @fib(7)) + f₁(@fib(5))",
      "[@lost(300) + @loop(0), @fib(9)]",
      "[@lost(300) === @fail(100), @fib(9)]",
      "[@any(300) === @loop(0), @fib(9)]",
      "[@fib(9) + (@lost(200) * @fib(12)), 1]",
      "[&L{@lost(200), @fib(8)} + @fib(9)]",
      "[(@fib(8) === @fib(9)) + (@fib(7) * @fib(6))]",
      "[#P{@fib(12), 1} === #P{@fib(4), 1}, @fib(12) === (@fib(3) + @fib(2))]",
      "[@fail(200) + @fib(12)]",
      "[@fib(12) + @fail(200)]",
      "λx. (@fib(9) + x) === (x + @fib(9))",
      "[λ{λx. 5}(&K{@fib(9) + ^a, 1} + @fib(5))]",
      "!&x = &L{@fib(7), @fib(8)}; x * x + @fib(9)",
      "λx. !&y = @fib(9) + x; [y, y + @fib(5)]",
      "λx. [(@wait(200, x) + @fib(9)) === @lost(9), 1]",
  };
  for (const char* term : terms) {
    auto program = parseText(library + "@main = " + term, "test");
    Outcome plain = evaluate(program, false, {.memoryBytes = 1 << 26}, ~0ull);
    for (unsigned seed = 0; seed < 6; ++seed) {
      EvaluationOptions options{.memoryBytes = 1 << 26, .threads = 2 + seed % 3, .seed = seed};
      options.forksAtEverySafePoint = true;
      options.collectsAtEverySafePoint = seed >= 4;
      Outcome forked = evaluate(program, false, options, ~0ull);
      EXPECT_EQ(plain.lines, forked.lines) << term;
      EXPECT_EQ(plain.error, forked.error) << term;
      if (plain.error.empty())
        EXPECT_EQ(plain.interactions, forked.interactions) << term;
    }
  }
}

// Each element waits for the open variable through all before it. Going through them once for every operand and every copy took a time that grew with
// the cube of their number, while interactions grow with its square.
TEST(HvmEvaluation, ChainsThatWaitForAnOpenVariableTakeTimeByTheirInteractions) {
  const char* chains[] = {
      "@deep = λ{0: λx. x; λn.λx. !y&K = x + @id(1); @deep(n - 1, y₀)}",
      "@deep = λ{0: λx. x; λn.λx. !y&K = @id(1) + x; @deep(n - 1, y₀)}",
      "@deep = λ{0: λx. x <> []; λn.λx. !y&K = x + @id(1); y₁ <> @deep(n - 1, y₀)}",
  };
  for (const char* chain : chains) {
    const auto program = [&](uint64_t length) {
      return parseText("@id = λx. x\n" + std::string(chain) + "\n@main = ! f = λ v; #P{@deep(" +
                           std::to_string(length) + ", v), 7}",
                       "test");
    };
    for (uint64_t length : {10, 1500}) {
      auto code = compile(*program(length));
      auto evaluation = Evaluation::create(*code, {.memoryBytes = uint64_t(1) << 30});
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_TRUE(bool((*evaluation)->normalizeMain(program(length)->definitionIndex.at("main")))) << chain;
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << chain;
      EXPECT_EQ((*evaluation)->interactions(), length * length + 6 * length + 5) << chain;
    }
  }
}

// A thread that reduces the right operand is done long before the left one is, and then only the frame of `===` refers to its value.
TEST(HvmEvaluation, ValuesOfForkedOperandsOutliveCollections) {
  const std::string library = "@list = λ{0: []; λ&n. n <> @list(n - 1)}\n"
                              "@pair = λ{0: λx. x; λn.λ&x. @pair(n - 1, #P{x, x})}\n"
                              "@sum = λ{[]: 0; <>: λh.λt. h + @sum(t)}\n"
                              "@late = λ{0: λx. x; λn.λx. !!s = @sum(@list(20)); @late(n - 1, x)}\n";
  const char* terms[] = {
      "@late(60, [4, 3, 2, 1]) === @list(4)",
      "@late(60, #P{#P{1, 1}, #P{1, 1}}) === @pair(2, 1)",
      "@late(60, [#P{7, 8}]) === (λx. [#P{x, 8}])(7)",
      "@late(60, 5) + (λ&x. &A{x, x * 2})(7)",
  };
  for (const char* term : terms) {
    auto program = parseText(library + "@main = [" + term + "]", "test");
    Outcome plain = evaluate(program, false, {.memoryBytes = 1 << 26}, ~0ull);
    for (unsigned seed = 0; seed < 4; ++seed) {
      EvaluationOptions options{.memoryBytes = 1 << 26, .threads = 2 + seed % 2, .seed = seed};
      options.forksAtEverySafePoint = options.collectsAtEverySafePoint = true;
      Outcome forked = evaluate(program, false, options, ~0ull);
      EXPECT_EQ(plain.lines, forked.lines) << term;
      EXPECT_EQ(plain.interactions, forked.interactions) << term;
    }
  }
}

/// Copies in a circle: each waits a while, then for what the first one or the others make of the next one. They stand in fields that go to different
/// threads.
std::string circleOf(unsigned copies, unsigned length, const std::string& first = "", const std::string& rest = "") {
  const unsigned places[] = {1, 15, 11, 9};
  std::vector<std::string> fields(16, "0");
  std::string text = "@wait = λ{0: λx. x; λn.λx. @wait(n - 1, x)}\n@main = ! f = λ v; ", value = "v", all;
  for (unsigned i = 0; i < copies; ++i) {
    const std::string name(1, static_cast<char>('a' + i)), label(1, static_cast<char>('A' + i));
    text += "!" + name + "&" + label + " = @wait(" + std::to_string(length) + ", " + (i ? rest : first) + "(" + value +
            ")); ";
    value = name + "₀";
    fields[places[i]] = name + "₁";
  }
  for (const std::string& field : fields)
    all += field + ",";
  return text + "f(λk. k, " + value + ")(#T{" + all + "})";
}

// Which copy is stuck first decides what becomes of the others: the sums have no end in the order of one thread.
TEST(HvmEvaluation, CirclesAreReducedInTheOrderOfOneThread) {
  for (auto [first, rest] : {std::pair("", "(λn. 1 + n)"), {"λ{0: 1; λn. n}", ""}}) {
    auto program = parseText(circleOf(2, 50000, first, rest), "test");
    EvaluationOptions options{.memoryBytes = 1 << 28, .fuel = 401'000};
    Outcome plain = evaluate(program, false, options, ~0ull);
    for (unsigned seed = 0; seed < 12; ++seed) {
      options.threads = 2 + seed % 3, options.seed = seed;
      Outcome found = evaluate(program, false, options, ~0ull);
      EXPECT_EQ(plain.lines, found.lines) << first << ", " << rest << ", seed " << seed;
      EXPECT_EQ(plain.error, found.error) << first << ", " << rest << ", seed " << seed;
      if (plain.error.empty())
        EXPECT_EQ(plain.interactions, found.interactions) << first << ", " << rest << ", seed " << seed;
    }
  }
}

TEST(HvmEvaluation, ThreadsThatWaitForEachOtherInACircleHoldStuckCopies) {
  for (unsigned copies : {1, 2, 3, 4})
    for (unsigned length : {0, 300, 300000}) {
      auto program = parseText(circleOf(copies, length), "test");
      Outcome plain = evaluate(program, false, {.memoryBytes = 1 << 26}, ~0ull);
      ASSERT_EQ(plain.error, "");
      EXPECT_NE(plain.lines[0].find("!A&"), std::string::npos) << plain.lines[0];
      for (unsigned seed = 0; seed < 5; ++seed) {
        Outcome found =
            evaluate(program, false, {.memoryBytes = 1 << 26, .threads = copies + seed % 3, .seed = seed}, ~0ull);
        EXPECT_EQ(plain.lines, found.lines) << copies << " copies, seed " << seed;
        EXPECT_EQ(plain.interactions, found.interactions) << copies << " copies, seed " << seed;
      }
    }
}

// What waits for open variables is spread over the threads that came to it; one of them tries all of it again.
TEST(HvmEvaluation, WhatWaitsForOpenVariablesIsKeptByEveryThread) {
  auto program = parseText("@sum = λ{0: 0; λ&n. n + @sum(n - 1)}\n"
                           "@in = λ{0: #E{}; λ&d. ! f = λ v; #N{v === d, @sum(d * 9), @in(d - 1), f(@in(d - 1), d)}}\n"
                           "@main = @in(12)",
                           "test");
  Outcome plain = evaluate(program, false, {.memoryBytes = 1 << 28}, ~0ull);
  ASSERT_EQ(plain.error, "");
  EXPECT_EQ(plain.lines[0].find("==="), std::string::npos);
  for (unsigned seed = 0; seed < 10; ++seed) {
    Outcome found = evaluate(program, false, {.memoryBytes = 1 << 28, .threads = 2 + seed % 5, .seed = seed}, ~0ull);
    EXPECT_EQ(plain.lines, found.lines) << seed;
    EXPECT_EQ(plain.interactions, found.interactions) << seed;
  }
}

TEST(HvmEvaluation, BothOperandsAreReducedAtOnce) {
  auto program = parseText("@fib = λ{0: 0; 1: 1; λ&n. @fib(n - 1) + @fib(n - 2)}\n@main = @fib(24)", "test");
  auto code = compile(*program);
  const uint64_t count = evaluate(program, false, {.memoryBytes = 1 << 26}, 1).interactions;
  // A busy machine may not start the second thread before the first one is done.
  bool haveBothWorked = false;
  for (int attempt = 0; attempt < 1000 && !haveBothWorked; ++attempt) {
    auto evaluation = Evaluation::create(*code, {.memoryBytes = 1 << 26, .threads = 2, .forksAtEverySafePoint = true});
    auto normal = (*evaluation)->normalizeMain(program->definitionIndex.at("main"));
    EXPECT_EQ(numberOf(*normal), 46368u);
    EXPECT_EQ((*evaluation)->interactions(), count);
    haveBothWorked =
        std::ranges::all_of((*evaluation)->interactionsByThread(), [](uint64_t each) { return each > 100; });
  }
  EXPECT_TRUE(haveBothWorked);
}

/// Asks at every safe point for the oldest operand.
class Asking : public World {
public:
  bool safePoint(Machine& machine, Term&) override {
    uint64_t frame = 0;
    forks += machine.forkOldest(frame) != 0;
    return true;
  }
  Normal normalize(Machine&, Term&, bool) override { return Normal::Failed; }
  Wait awaitCell(Machine&, Term&) override { return Wait::Stop; }
  bool doubt() override { return false; }
  bool meetsCircle() override { return ++circles, false; }
  void detachOperand(Machine&, Loc) override {}
  unsigned forks = 0, circles = 0;
};

/// `term` reduced by a machine that shares the heap with others.
std::unique_ptr<Machine> reduceShared(const Code& code, Heap& heap, Asking& world, Term& term) {
  auto machine = Machine::create(world, heap, code, 0, ~0ull);
  (*machine)->beginSharing();
  EXPECT_EQ((*machine)->reduce(term), Machine::Outcome::Value);
  return std::move(*machine);
}

// In another order that thread might not have come there.
TEST(HvmEvaluation, AThreadThatWaitsForItselfSaysSo) {
  for (auto [text, circles] : {std::pair("@main = ! f = λ v; !a&A = v; f(λk. k, a₀)(a₁)", 1u),
                               {"@main = ! f = λ v; !a&A = v + 1; f(λk. k, 2)(a₁ + a₀)", 0u},
                               {"@main = ! f = λ v; !a&A = λx. x; f(λk. k, a₀)(a₁(v))", 0u}}) {
    auto program = parseText(text, "test");
    auto code = compile(*program);
    Asking world;
    auto heap = Heap::create(1 << 26, Heap::kReserveWords);
    Term term = makeTerm(Ref, program->definitionIndex.at("main"));
    reduceShared(*code, **heap, world, term);
    EXPECT_EQ(world.circles, circles) << text;
  }
}

TEST(HvmEvaluation, OperandsAreFoundBelowWhereAnEarlierOneWasGiven) {
  // The sum in the first argument lies above the other arguments, the one in the branch of @choose takes their place.
  auto program = parseText("@id = λn. n\n@choose = λ{0: λa.λb.λc.λd. 0; λn.λa.λb.λc.λd. @id(n) + @id(a)}\n"
                           "@main = @choose(@id(1) + @id(2), 7, 8, 9, 10)",
                           "test");
  auto code = compile(*program);
  Asking world;
  auto heap = Heap::create(1 << 26, Heap::kReserveWords);
  auto machine = Machine::create(world, **heap, *code, 0, ~0ull);
  (*machine)->ask();
  Term term = makeTerm(Ref, program->definitionIndex.at("main"));
  ASSERT_EQ((*machine)->reduce(term), Machine::Outcome::Value);
  EXPECT_EQ(numberOf(term), 10u);
  EXPECT_EQ(world.forks, 2u);
}

TEST(HvmEvaluation, DeepRecursionNeedsNoThreadStack) {
  EXPECT_EQ(normalForm("@f = λ{0: 0; λn. 1 + @f(n - 1)}\n@main = @f(2000000)"), "2000000");
  Outcome nested = evaluate("@f = λ{0: #Z; λn. #S{@f(n - 1)}}\n@main = @f(300000)");
  EXPECT_EQ(nested.lines.at(0).size(), 300000 * 4 + 4);
}

TEST(HvmEvaluation, NaturalsListsAndTextPrintShort) {
  EXPECT_EQ(normalForm("@main = [3n, 2n+5, \"a\\n\\\"\", [1,'b'], 1<>2, #SUC, #CHR{1,2}, '\\'', [], \"\"]"),
            "[3n,2n+5,\"a\\n\\\"\",[1,'b'],1<>2,#SUC{},#CHR{1,2},'\\'',[],[]]");
}

}  // namespace
