#include "hvm/eval/lifted.h"

#include "hvm/eval/evaluation.h"
#include "hvm/eval/print.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace {

using namespace vortex::hvm;

std::vector<std::string> evaluate(const std::string& text, bool isCollapsed, const EvaluationOptions& options) {
  const auto program = parseText(text, "test");
  const auto code = compile(*program);
  auto evaluation = Evaluation::create(*code, options);
  const uint32_t main = program->definitionIndex.at("main");
  std::vector<std::string> lines;
  auto print = [&](Term term, Naming naming) {
    lines.push_back(printTerm((*evaluation)->heap().words(), *code, term, naming));
  };
  if (isCollapsed) {
    auto done = (*evaluation)->collapseMain(main, ~0ull, [&](Term term) { print(term, Naming::ByDepth); });
    EXPECT_TRUE(done.ok()) << text;
  } else if (auto normal = (*evaluation)->normalizeMain(main)) {
    print(*normal, Naming::ByAppearance);
  }
  return lines;
}

// A superposition passes a row of frames at once. Each side is what it is alone.
TEST(HvmEvaluation, SuperpositionsPassWhatWaitsForThem) {
  const std::vector<std::string> places = {"(T + 3)",
                                           "(7 - T)",
                                           "(T === 2)",
                                           "(T .&. &B{9,T2})",
                                           "(T .|. (1 + 8))",
                                           "λ{λn. n}(T)",
                                           "(λx.λy. y * x)(2)(T)",
                                           "λ{1: 5; λn. n}(T)",
                                           "λ{2: λx. x; λ&n. λy. n * y}(T)(6)"};
  auto nested = [&](size_t number, std::string term) {
    for (size_t i = 0; i < 4; ++i, number /= places.size()) {
      std::string outer = places[number % places.size()];
      if (size_t at = outer.find("T2"); at != std::string::npos)
        outer.replace(at, 2, "3");
      term = outer.replace(outer.find('T'), 1, term);
    }
    return term;
  };
  for (size_t number = 0; number < 9 * 9 * 9 * 9; number += 7)
    for (bool collects : {false, true}) {
      const EvaluationOptions options{.memoryBytes = 1 << 24, .collectsAtEverySafePoint = collects};
      auto lines = [&](const std::string& text, bool isCollapsed = false) {
        return evaluate("@main = " + text, isCollapsed, options);
      };
      const std::string both = nested(number, "&A{1,2}");
      const std::string alone = "[" + nested(number, "1") + "," + nested(number, "2") + "]";
      EXPECT_EQ(lines("!x&A=" + both + ";[x₀,x₁]"), lines(alone)) << both;
      auto sides = lines(nested(number, "1"), true), others = lines(nested(number, "2"), true), all = lines(both, true);
      sides.insert(sides.end(), others.begin(), others.end());
      std::sort(sides.begin(), sides.end()), std::sort(all.begin(), all.end());
      EXPECT_EQ(all, sides) << both;
    }
}

TEST(HvmEvaluation, WhatWaitsForASideIsPrintedAsItsNodes) {
  std::vector<Term> heap(12, number(0));
  auto put = [&](std::initializer_list<uint64_t> kinds) {
    heap[4] = Term(kinds.size()) << kLiftedCountShift;
    for (uint32_t i = 0; uint64_t kind : kinds)
      heap[4] |= kind << (kLiftedBits * i++);
  };
  heap[5] = number(1), heap[6] = number(2), heap[8] = number(8);
  put({kLiftedArgument, kLiftedOp2Num, 0, kLiftedMatch, kLiftedEqual});
  EXPECT_EQ(printTerm(heap.data(), {}, makeTerm(Lf1, 1, 4), Naming::ByAppearance),
            "(8 + (A₁((2 === B₁)) + C₁))(D₁);!A&a=0;!B&a=0;!C&a=0;!D&a=0;");
}

}  // namespace
