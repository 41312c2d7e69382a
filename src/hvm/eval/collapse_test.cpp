#include "hvm/eval/evaluate_for_tests.h"

#include <gtest/gtest.h>

namespace {

using namespace vortex::hvm;

TEST(HvmCollapse, TheOrderOfCollapseFollowsDepthAndMarks) {
  EXPECT_EQ(evaluate("@main = &a{&b{1,2},&c{3,4}}", true).lines, (std::vector<std::string>{"1", "2", "3", "4"}));
  EXPECT_EQ(evaluate("@main = &a{&b{1,2},3}", true).lines, (std::vector<std::string>{"3", "1", "2"}));
  EXPECT_EQ(evaluate("@main = &a{↑↑&b{1,2},3}", true).lines, (std::vector<std::string>{"3", "1", "2"}));
  EXPECT_EQ(evaluate("@main = &a{1,&{}}", true).lines, (std::vector<std::string>{"1"}));
  EXPECT_TRUE(evaluate("@main = 1", true, 1 << 28, 0).lines.empty());
}

TEST(HvmCollapse, MarksInsideAConstructorAreDroppedInCollapse) {
  EXPECT_EQ(evaluate("@main = [↑(1 + 2), 4]", true).lines.at(0), "[3,4]");
}

// What a copy that stays stuck holds is printed as it is, with operands in it that were offered to other threads and that nobody came to.
TEST(HvmCollapse, OperandsThatNobodyCameToArePrinted) {
  const char* mains[] = {
      "!f&K = (λx.@wait(6,&K{x,2})); !v&A = λ{0: 1; λn. n}(@wait(3, f₀)(1) + @wait(2, 3)); [v₀, v₁]",
      "!f&K = (λx.@wait(6,&K{x,2})); !v&A = λ{0: 1; λn. n}(@wait(3, f₀)(1) + &Z{0,1}); [v₀, v₁]",
      "!f&K = (λx.@wait(6,&K{x,2})); !v&A = λ{0: 1; λn. n}((@wait(3, f₀)(1) - @wait(2,&E{0,1})) + &Z{0,1}); [v₀, v₁]",
      "!f&K = (λx.@wait(6,&K{x,2})); !v&A = λ{0: 1; λn. n}(@wait(3, f₀)(1) === @wait(2, #P{1,2})); [v₀, v₁]",
  };
  for (const char* main : mains) {
    auto program = parseText(std::string("@wait = λ{0: λx. x; λn.λx. @wait(n - 1, x)}\n@main = ") + main, "test");
    const Outcome plain = evaluate(program, true, {.memoryBytes = 1 << 24}, 50);
    EXPECT_EQ(plain.error, "");
    for (bool collects : {false, true}) {
      EvaluationOptions options{.memoryBytes = 1 << 24, .threads = 3};
      options.forksAtEverySafePoint = true, options.collectsAtEverySafePoint = collects;
      const Outcome forked = evaluate(program, true, options, 50);
      EXPECT_EQ(plain.lines, forked.lines) << main;
      EXPECT_EQ(plain.interactions, forked.interactions) << main;
    }
  }
}

}  // namespace
