#include "hvm/slices/transfer.h"

#include "hvm/eval/evaluation.h"
#include "hvm/eval/print.h"

#include <gtest/gtest.h>

namespace {

using namespace vortex::hvm;

struct Reduced {
  std::string text;
  uint64_t interactions = 0, offloaded = 0;
  bool isOpened = false;
  uint64_t heapWords = 0;
};

/// `leastWidth` tasks open the device, which is the CPU here; 0: no device.
Reduced reduce(const std::string& text, uint32_t leastWidth, uint64_t fuel = ~uint64_t(0)) {
  const auto program = parseText(text, "test");
  const auto code = compile(*program);
  EvaluationOptions options{.memoryBytes = uint64_t(1) << 28, .fuel = fuel};
  std::optional<slices::Session> session, first;
  if (leastWidth > 0)
    options.offload = [&](Machine& machine, Term& term, bool forks) {
      slices::SliceOptions run;
      run.forks = forks;
      run.memoryBytes = options.memoryBytes;
      run.fuel = fuel - std::min(fuel, machine.interactions());
      run.leastWidth = leastWidth;
      run.session = &session, run.cpuSession = &first;
      return slices::reduceOnDevice(run, machine, term);
    };
  auto evaluation = Evaluation::create(*code, options);
  Reduced reduced;
  if (auto normal = (*evaluation)->normalizeMain(program->definitionIndex.at("main")))
    reduced.text = printTerm((*evaluation)->heap().words(), *code, *normal, Naming::ByAppearance);
  else
    reduced.text = normal.error().message;
  reduced.interactions = (*evaluation)->interactions();
  reduced.offloaded = (*evaluation)->offloadedInteractions();
  reduced.isOpened = session.has_value();
  reduced.heapWords = (*evaluation)->heap().highWater();
  return reduced;
}

bool hasKernels() { return slices::loadKernels(*vortex::Runtime().open("cpu")).ok(); }

const std::string kWide[] = {
    "@fib = λ{0: 0; 1: 1; λ&n. @fib(n - 1) + @fib(n - 2)}\n@main = %gnf(@fib(19))",
    "@tree = λ{0: 1; λ&d. #N{@tree(d - 1), @tree(d - 1)}}\n@main = %gnf(@tree(10))",
    "@tree = λ{0: 1; λ&d. #N{@tree(d - 1), @tree(d - 1)}}\n@sum = λ{#N: λa.λb. @sum(a) + @sum(b); λn. n}\n"
    "@main = !&t = @tree(9); #P{%gnf(@sum(t)), t, %gnf(λx. #Q{x, @sum(@tree(10))})}",
    "@both = λ{0: λx. x; λ&d. λ&x. @both(d - 1, x * 2) + @both(d - 1, x * 2 + 1)}\n@main = %gnf(@both(11, 1))",
    "@sup = λ{0: 0; λ&d. &(d){@sup(d - 1) * 2, @sup(d - 1) * 2 + 1}}\n@main = !x&A = %gnf(@sup(8)); [x₀, x₁]",
};
const std::string kNarrow[] = {
    "@count = λ{0: 0; λn. 1 + @count(n - 1)}\n@main = %gnf(@count(20000))",
    "@loop = λ{0: λx. x; λ&n. λx. @loop(n - 1, x + n)}\n@main = %gnf([@loop(5000, 1), @loop(400, 2)])",
    "@main = %gnf(&a{1 + 2, 4})",
};

TEST(HvmSlices, TermsGoOverToTheDeviceWhenThereAreTasksEnough) {
  if (!hasKernels())
    GTEST_SKIP() << "built without kernels";
  for (const std::string& text : kWide) {
    const Reduced alone = reduce(text, 0);
    for (uint32_t leastWidth : {16u, 64u}) {
      const Reduced together = reduce(text, leastWidth);
      EXPECT_EQ(together.text, alone.text) << text;
      EXPECT_EQ(together.interactions, alone.interactions) << text;
      EXPECT_TRUE(together.isOpened) << text;
    }
  }
}

TEST(HvmSlices, OnlyWhatIsStillReferredToComesBack) {
  if (!hasKernels())
    GTEST_SKIP() << "built without kernels";
  const std::string text = "@list = λ{0: []; λ&n. n <> @list(n - 1)}\n@sum = λ{[]: 0; <>: λx.λxs. x + @sum(xs)}\n"
                           "@both = λ{0: λxs. @sum(xs); λ&d. λ&xs. @both(d - 1, xs) + @both(d - 1, xs)}\n"
                           "@main = %gnf(@both(8, @list(40)))";
  const Reduced alone = reduce(text, 0), together = reduce(text, 64);
  EXPECT_EQ(together.text, alone.text);
  EXPECT_EQ(together.interactions, alone.interactions);
  EXPECT_TRUE(together.isOpened);
  EXPECT_LE(together.heapWords, 2 * kBlockWords);  // the copies of the list are used up
}

TEST(HvmSlices, NarrowTermsDoNotOpenTheDevice) {
  if (!hasKernels())
    GTEST_SKIP() << "built without kernels";
  for (const std::string& text : kNarrow) {
    const Reduced alone = reduce(text, 0), together = reduce(text, 256);
    EXPECT_EQ(together.text, alone.text) << text;
    EXPECT_EQ(together.interactions, alone.interactions) << text;
    EXPECT_FALSE(together.isOpened) << text;
  }
}

TEST(HvmSlices, FuelIsSharedByBothParts) {
  if (!hasKernels())
    GTEST_SKIP() << "built without kernels";
  const uint64_t all = reduce(kWide[0], 0).interactions;
  for (uint64_t fuel : {all / 50, all / 2, all - 1, all, all + 1})
    EXPECT_EQ(reduce(kWide[0], 16, fuel).text, reduce(kWide[0], 0, fuel).text) << fuel;
}

}  // namespace
