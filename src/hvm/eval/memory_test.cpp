#include "hvm/eval/evaluate_for_tests.h"

#include <gtest/gtest.h>

namespace {

using namespace vortex::hvm;

// The tree's garbage is many times the limit; the live part of it is small.
TEST(HvmMemory, MemoryIsReclaimed) {
  Outcome outcome = evaluate("@make = λ{0: #L{1}; λ&n. #N{@make(n - 1), @make(n - 1)}}\n"
                             "@sum = λ{#L: λx. x; #N: λa.λb. @sum(a) + @sum(b)}\n"
                             "@loop = λ{0: 0; λ&n. @sum(@make(12)) + @loop(n - 1)}\n"
                             "@main = @loop(200)",
                             false, 64 << 20);
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.lines[0], std::to_string(4096 * 200));
  EXPECT_LT(outcome.highWater, 1u << 20);
  EXPECT_GT(outcome.collections, 3u);
}

TEST(HvmMemory, CyclicGarbageIsReclaimed) {
  Outcome outcome = evaluate("@cycle = λn. ! f = λ v; (λx.n)(f(v))\n"
                             "@loop = λ{0: 0; λ&n. @cycle(n) + @loop(n - 1)}\n@main = @loop(1000)",
                             false, 64 << 20);
  EXPECT_EQ(outcome.lines.at(0), "500500");
}

TEST(HvmMemory, ExhaustedMemoryIsAnErrorAfterTheLinesBeforeIt) {
  Outcome heap = evaluate("@f = λ&n. n <> @f(n + 1)\n@main = @f(0)", false, 8 << 20);
  EXPECT_TRUE(heap.lines.empty());
  EXPECT_EQ(heap.error, "Error: out of memory: the limit is 8388608 bytes (--memory)");
  Outcome stack = evaluate("@f = λ&n. 1 + @f(n + 1)\n@main = @f(0)", false, 8 << 20);
  EXPECT_EQ(stack.error, heap.error);
  Outcome lines = evaluate("@f = λ&n. 1 + @f(n + 1)\n@main = &a{1,&a{2,&b{3,@f(0)}}}", true, 8 << 20);
  EXPECT_EQ(lines.lines, (std::vector<std::string>{"1", "2", "3"}));
}

// Rules that fire one after the other without calls, matches or duplications between them.
TEST(HvmMemory, LongChainsOfRulesThatOnlyAddMeetTheLimitOfMemory) {
  const std::pair<const char*, bool> chains[] = {
      {"@f = λ{0: &A{λa.a, λb.b}; λ&n. @f(n - 1)(n)}\n@main = @f(90000)", false},
      {"@f = λ{0: &A{1, 2}; λ&n. @f(n - 1) + n}\n@main = @f(50000)", false},
      {"@f = λ{0: &A{1, 2}; λn. λ{λx. x}(@f(n - 1))}\n@main = @f(90000)", false},
      {"@f = λ{0: &A{1, 2}; λn. λ{0: 1; λx. x}(@f(n - 1))}\n@main = @f(90000)", false},
      {"@f = λ{0: ↑1; λ&n. (@f(n - 1) === n) .&. n}\n@main = @f(30000)", false},
      {"@f = λ{0: ^x; λ&n. @f(n - 1)(n)}\n@main = @f(90000)", false},
      {"@f = λ{0: λx. x; λ&n. λx. @f(n - 1)(x)(n)}\n@main = λx. @f(90000, x)", false},
      {"@f = λ{0: 0; λ&n. λ{λ&x. #T{x,x,x,x,x,x,x,x,x,x,x,x,n}}(@f(n - 1))}\n@main = @f(60000)", false},
      {"@f = λ{0: λx. x; λ&n. !g = @f(n - 1); λx. g(#T{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,x})}\n@main = @f(20000, 1)",
       false},
      {"@l = λ{0: []; λ&n. (λx. #T{n,1,2,3,4,5,6,7,8,9,10,11,12,13,14,x}) <> @l(n - 1)}\n@main = @l(15000)", false},
      {"@f = λ{0: 7; λn. λx. @f(n - 1)}\n@main = @f(200000)", true},
      {"@l = #C{@l}\n@main = @l", true},
      {"@f = λ{0: &A{1, 2}; λ&n. #T{n, @f(n - 1), 3, 4, 5, 6, 7}}\n@main = @f(9000)", true},
  };
  for (const auto& [text, isCollapsed] : chains) {
    auto program = parseText(text, "test");
    EvaluationOptions options{.memoryBytes = 1 << 20, .reserveWords = 1 << 16};
    Outcome outcome = evaluate(program, isCollapsed, options, ~0ull);
    EXPECT_EQ(outcome.error, "Error: out of memory: the limit is 1048576 bytes (--memory)") << text;
    if (isCollapsed)
      continue;
    options.threads = 2;
    EXPECT_EQ(evaluate(program, false, options, ~0ull).error, outcome.error) << text;
  }
}

// Another thread may use up the memory before the first one comes to an error, or to what needs less.
TEST(HvmMemory, RunsThatFailForMemoryOnSeveralThreadsEndAsOnOne) {
  const std::string library = "@grow = λ&n. n <> @grow(n + 1)\n@spin = λ{0: 0; λ&n. @spin(n - 1)}\n"
                              "@late = λ{0: 1(2); λn. @late(n - 1)}\n";
  const char* mains[] = {
      "#T{@late(3000000),0,0,0,0,0,0,0,0,0,0,0,0,0,0,@grow(0)}",
      "@late(3000000) + λ{[]: 0; <>: λh.λt. t}(@grow(0))",
  };
  for (const char* main : mains) {
    auto program = parseText(library + "@main = " + main, "test");
    EvaluationOptions options{.memoryBytes = 1 << 20};
    EXPECT_EQ(evaluate(program, false, options, ~0ull).error, "RUNTIME_ERROR: cannot apply a number") << main;
    for (unsigned threads : {2, 4}) {
      options.threads = threads;
      EXPECT_EQ(evaluate(program, false, options, ~0ull).error, "RUNTIME_ERROR: cannot apply a number") << main;
    }
  }
}

}  // namespace
