#include "artifact/steps.h"

#include "artifact/validate.h"

#include <gtest/gtest.h>

namespace {

using namespace vortex::artifact;
using vortex::size::Id;
using vortex::size::Op;
namespace size = vortex::size;
using RunStep = Run;  // fixtures have a Run of their own

/// One scalar parameter n, the lets `double` and `inner`, two temporaries of `double` elements, phases 0 to 4.
class Steps : public ::testing::Test {
protected:
  Steps() {
    kernel.name = "k";
    kernel.params = {{.name = "n", .type = ScalarType::I64, .firstSlot = 0}};
    kernel.lets = {{.name = "double", .type = ScalarType::U64, .firstSlot = 1},
                   {.name = "inner", .type = ScalarType::U64, .firstSlot = 2}};
    for (uint32_t i = 0; i < 2; ++i)
      kernel.temporaries.push_back({.name = "t",
                                    .isTensor = true,
                                    .rank = 1,
                                    .firstSlot = 3 + 3 * i,
                                    .extents = {kernel.sizes.add(arena.scalar(1))}});
    kernel.slotCount = 9;
    one = kernel.sizes.constant(1);
    for (const char* symbol : {"p0", "p1", "p2", "p3", "p4"})
      kernel.phases.push_back({.symbol = symbol, .grid = {one, one, one}, .block = {one, one, one}, .name = symbol});
    kernel.phases[1].written = {0};
    kernel.phases[3].written = {0, 1};
    kernel.steps = {
        {Let{0, id(make(Op::Mul, arena.scalar(0), 2))}},
        {RunStep{0}},
        {Choose{{{"few", one, less(arena.scalar(1), 10), {{RunStep{1}}}},
                 {"some",
                  less(arena.scalar(0), 50),
                  less(arena.scalar(0), 100),
                  {{Let{1, id(make(Op::Add, arena.scalar(1), 1))}},
                   {Choose{{{"odd", one, less(arena.scalar(2), 30), {{RunStep{2}}}}, {"even", one, one, {}}}}}}},
                 {"many", one, one, {{RunStep{3}}}}}}},
        {RunStep{4}}};
  }

  Id id(size::Expr expr) { return kernel.sizes.add(expr); }
  Id less(size::Expr a, int64_t b) { return id(make(Op::Less, a, b)); }

  struct Taken {
    std::vector<uint32_t> phases;
    std::vector<uint64_t> slots;
    std::vector<bool> written;
  };
  Taken take(uint64_t n) {
    const size::Program program = sizeProgram(kernel);
    size::Values values(program);
    Taken taken{{}, {n}, {}};
    taken.phases = takeSteps(kernel, values, taken.slots)->phases;
    taken.written = writtenTemporaries(kernel, taken.phases);
    return taken;
  }

  std::string complaint() {
    const auto valid = validate(kernel);
    return valid ? "" : valid.error().message;
  }
  Choose& choice() { return std::get<Choose>(kernel.steps[2].what); }

  size::Arena arena;
  Kernel kernel;
  Id one;
};

/// Phase 0, a loop that counts the let `round` from 0 to n around phase 1 and an exchange, phase 2.
class Loops : public ::testing::Test {
protected:
  Loops() {
    kernel.name = "k";
    kernel.params = {{.name = "n", .type = ScalarType::I64, .firstSlot = 0}};
    kernel.lets = {{.name = "round", .type = ScalarType::U64, .firstSlot = 1}};
    Id one = kernel.sizes.constant(1);
    for (uint32_t i = 0; i < 2; ++i)
      kernel.temporaries.push_back(
          {.name = "t", .isTensor = true, .rank = 1, .firstSlot = 2 + 3 * i, .extents = {one}});
    kernel.slotCount = 8;
    for (const char* symbol : {"p0", "p1", "p2"})
      kernel.phases.push_back({.symbol = symbol, .grid = {one, one, one}, .block = {one, one, one}, .name = symbol});
    Loop loop{.name = "the loop at k.vx:3:5",
              .firstLet = 0,
              .first = {kernel.sizes.constant(0)},
              .next = {kernel.sizes.add(make(Op::Add, arena.scalar(1), 1))},
              .condition = kernel.sizes.add(arena.make(Op::Less, arena.scalar(1), arena.scalar(0))),
              .steps = {{RunStep{1}}, {Exchange{0, 1}}}};
    kernel.steps = {{RunStep{0}}, {loop}, {RunStep{2}}};
  }

  vortex::Result<TakenSteps> take(uint64_t n) {
    const size::Program program = sizeProgram(kernel);
    size::Values values(program);
    std::vector<uint64_t> slots{n};
    return takeSteps(kernel, values, slots);
  }
  std::string complaint() {
    const auto valid = validate(kernel);
    return valid ? "" : valid.error().message;
  }
  Loop& loop() { return std::get<Loop>(kernel.steps[1].what); }

  size::Arena arena;
  Kernel kernel;
};

using Phases = std::vector<uint32_t>;

TEST_F(Loops, RunTheirStepsAndExchangeTemporaries) {
  EXPECT_EQ(complaint(), "");
  const auto taken = take(3);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->phases, (Phases{0, 1, 1, 1, 2}));
  for (uint64_t round = 0; round < 3; ++round) {
    const Setting& setting = taken->allSettings[taken->settings[1 + round]];
    EXPECT_EQ(setting.lets, (std::vector<uint64_t>{round}));
    EXPECT_EQ(setting.temporaries[0], round % 2);
    EXPECT_EQ(setting.temporaries[1], 1 - round % 2);
  }
  EXPECT_EQ(taken->allSettings[taken->settings[4]].temporaries[0], 1u);
  EXPECT_EQ(taken->allSettings[taken->settings[4]].lets[0], 3u);
}

TEST_F(Loops, OfOneRoundLeaveItsLetsToTheLaunch) {
  Step only = kernel.steps[1];
  std::get<Loop>(only.what).steps.pop_back();
  kernel.steps = {only};
  const size::Program program = sizeProgram(kernel);
  size::Values values(program);
  std::vector<uint64_t> slots{1};
  const auto taken = takeSteps(kernel, values, slots);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->allSettings.size(), 1u);
  EXPECT_EQ(slots, (std::vector<uint64_t>{1, 0}));
}

TEST_F(Loops, MayRunZeroTimes) {
  for (int64_t n : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    const auto taken = take(static_cast<uint64_t>(n));
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->phases, (Phases{0, 2})) << n;
  }
}

TEST_F(Loops, OfTooManyPhasesAreErrorsThatNameThem) {
  for (uint64_t n : {uint64_t{kMostPhases}, uint64_t{INT64_MAX}}) {
    const auto taken = take(n);
    ASSERT_FALSE(taken);
    EXPECT_NE(taken.error().message.find("the loop at k.vx:3:5 comes to more than 1048576 grids"), std::string::npos)
        << taken.error().message;
  }
  loop().steps.clear();  // rounds without phases end, too
  kernel.steps.insert(kernel.steps.begin(), {RunStep{1}});
  EXPECT_FALSE(take(uint64_t{1} << 40));
  EXPECT_TRUE(take(1000));
}

TEST_F(Loops, SurviveAFile) {
  const auto read = deserialize(serialize(kernel));
  ASSERT_TRUE(read) << read.error().message;
  kernel = *read;
  EXPECT_EQ(take(2)->phases, (Phases{0, 1, 1, 2}));
}

TEST_F(Loops, ThatMakeNoSenseAreRefused) {
  const Kernel sound = kernel;
  auto isRefused = [&](auto change, const char* why) {
    kernel = sound;
    change();
    EXPECT_NE(complaint().find(why), std::string::npos) << complaint();
  };
  isRefused([&] { loop().next.clear(); }, "sets 1 lets first and 0 next");
  isRefused([&] { loop().firstLet = 7; }, "from let 7 of 1 where 0 are set");
  isRefused([&] { loop().first[0] = kernel.sizes.add(arena.scalar(1)); }, "a first value of the loop at k.vx:3:5");
  isRefused([&] { loop().steps[1] = {Exchange{0, 0}}; }, "exchanges temporaries 0 and 0");
  isRefused([&] { loop().steps[1] = {Exchange{0, 9}}; }, "exchanges temporaries 0 and 9 of 2");
  isRefused([&] { kernel.temporaries[1].type = ScalarType::F64; }, "which differ in type or extents");
  isRefused([&] { loop().steps.clear(); }, "no step runs phase 'p1'");
}

/// Phase 0; while what it leaves in temporary 0 is not zero: phase 1 (which writes temporary 1), phase 0 again; then phase 2.
class Reads : public ::testing::Test {
protected:
  Reads() {
    kernel.name = "k";
    kernel.params = {{.name = "n", .type = ScalarType::I64, .firstSlot = 0}};
    for (uint32_t i = 0; i < 2; ++i)
      kernel.lets.push_back({.name = "let", .type = ScalarType::U64, .firstSlot = 1 + i});
    const Id one = kernel.sizes.constant(1);
    for (uint32_t i = 0; i < 2; ++i)
      kernel.temporaries.push_back({.name = "t",
                                    .type = ScalarType::I64,
                                    .isTensor = true,
                                    .rank = 1,
                                    .firstSlot = 3 + 3 * i,
                                    .extents = {one}});
    kernel.slotCount = 9;
    for (const char* symbol : {"p0", "p1", "p2", "p3"})
      kernel.phases.push_back({.symbol = symbol, .grid = {one, one, one}, .block = {one, one, one}, .name = symbol});
    const Id few = kernel.sizes.add(arena.make(Op::Less, arena.scalar(0), arena.constant(10))),
             goesOn = kernel.sizes.add(arena.scalar(2));
    Loop loop{.name = "the loop at k.vx:3:5",
              .firstLet = 0,
              .first = {one},
              .next = {goesOn},
              .condition = kernel.sizes.add(arena.scalar(1)),
              .steps = {{RunStep{0}},
                        {Read{1, 0}},
                        {Choose{{{"then", goesOn, one, {{RunStep{1}}}}, {"else", one, one, {}}}}}}};
    kernel.steps = {{loop}, {Choose{{{"few", one, few, {{RunStep{2}}}}, {"many", one, one, {{RunStep{3}}}}}}}};
  }
  Loop& loop() { return std::get<Loop>(kernel.steps[0].what); }
  std::string complaint() {
    const auto valid = validate(kernel);
    return valid ? "" : valid.error().message;
  }

  size::Arena arena;
  Kernel kernel;
};

TEST_F(Reads, DecideWhenTheStepsBeforeThemHaveRun) {
  EXPECT_EQ(complaint(), "");
  const size::Program program = sizeProgram(kernel);
  for (uint32_t rounds : {0u, 1u, 5u}) {
    size::Values values(program);
    std::vector<uint64_t> slots{3};
    std::vector<Phases> parts;
    const auto rest = takeSteps(kernel, values, slots, [&](const TakenSteps& soFar, uint32_t temporary) {
      EXPECT_EQ(temporary, 0u);
      parts.push_back(soFar.phases);
      EXPECT_EQ(soFar.settings.size(), soFar.phases.size());
      return vortex::Result<std::optional<uint64_t>>(parts.size() <= rounds ? 1 : 0);
    });
    ASSERT_TRUE(rest);
    EXPECT_EQ(rest->phases, (Phases{2}));
    std::vector<Phases> expected{{0}};
    expected.resize(rounds + 1, {1, 0});
    EXPECT_EQ(parts, expected);
  }
}

TEST_F(Reads, MayEndTheLaunch) {
  const size::Program program = sizeProgram(kernel);
  size::Values values(program);
  std::vector<uint64_t> slots{3};
  const auto ended = takeSteps(kernel, values, slots, [](const TakenSteps&, uint32_t) {
    return vortex::Result<std::optional<uint64_t>>(std::nullopt);
  });
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->phases.empty());
  size::Values others(program);
  slots = {3};
  const auto failed = takeSteps(kernel, others, slots, [](const TakenSteps&, uint32_t) {
    return vortex::Result<std::optional<uint64_t>>(vortex::Error{"no"});
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "no");
}

TEST_F(Reads, LeavePossibleWhatTheyDecide) {
  EXPECT_TRUE(readsBack(kernel));
  const size::Program program = sizeProgram(kernel);
  for (uint64_t n : {uint64_t{3}, uint64_t{30}}) {
    size::Values values(program);
    std::vector<uint64_t> slots{n};
    EXPECT_EQ(possiblePhases(kernel, values, slots), n < 10 ? (Phases{0, 1, 2}) : (Phases{0, 1, 3}));
    EXPECT_EQ(slots, (std::vector<uint64_t>{n, 0, 0}));
  }
}

TEST_F(Reads, SurviveAFile) {
  const auto read = deserialize(serialize(kernel));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(readsBack(*read));
}

TEST_F(Reads, ThatMakeNoSenseAreRefused) {
  const Kernel sound = kernel;
  auto isRefused = [&](auto change, const char* why) {
    kernel = sound;
    change();
    EXPECT_NE(complaint().find(why), std::string::npos) << complaint();
  };
  isRefused([&] { loop().steps[1] = {Read{0, 0}}; }, "sets let 0 of 2 where 1 are set");
  isRefused([&] { loop().steps[1] = {Read{1, 2}}; }, "read from temporary 2 of 2, which is not one i64");
  isRefused([&] { kernel.temporaries[0].type = ScalarType::F64; }, "which is not one i64");
  isRefused([&] { kernel.temporaries[0].extents = {kernel.sizes.constant(2)}; }, "which is not one i64");
  isRefused([&] { std::swap(loop().steps[1], loop().steps[2]); }, "reads slot 2, but only 2 are known");
}

using Slots = std::vector<uint64_t>;

TEST_F(Steps, TheFirstCaseThatHoldsIsTaken) {
  EXPECT_EQ(complaint(), "");
  EXPECT_EQ(take(4).phases, (Phases{0, 1, 4}));
  EXPECT_EQ(take(5).phases, (Phases{0, 2, 4}));
  EXPECT_EQ(take(14).phases, (Phases{0, 2, 4}));
  EXPECT_EQ(take(15).phases, (Phases{0, 4}));
}

TEST_F(Steps, ACaseIsNotTakenWithoutWhatItNeeds) {
  EXPECT_EQ(take(49).phases, (Phases{0, 4}));
  EXPECT_EQ(take(50).phases, (Phases{0, 3, 4}));
  EXPECT_EQ(take(100).phases, (Phases{0, 3, 4}));
}

TEST_F(Steps, LetsOfCasesThatAreNotTakenAreZero) {
  EXPECT_EQ(take(4).slots, (Slots{4, 8, 0}));
  EXPECT_EQ(take(20).slots, (Slots{20, 40, 41}));
  EXPECT_EQ(take(60).slots, (Slots{60, 120, 0}));
}

TEST_F(Steps, OnlyWhatATakenPhaseWritesNeedsMemory) {
  EXPECT_EQ(take(4).written, (std::vector<bool>{true, false}));
  EXPECT_EQ(take(20).written, (std::vector<bool>{false, false}));
  EXPECT_EQ(take(60).written, (std::vector<bool>{true, true}));
}

TEST_F(Steps, EveryPhaseIsRunByOneStep) {
  kernel.steps.push_back({RunStep{3}});
  EXPECT_NE(complaint().find("two steps run phase 'p3'"), std::string::npos) << complaint();
  kernel.steps.resize(3);
  EXPECT_NE(complaint().find("no step runs phase 'p4'"), std::string::npos) << complaint();
  kernel.steps.push_back({RunStep{5}});
  EXPECT_NE(complaint().find("runs phase 5 of 5"), std::string::npos) << complaint();
}

TEST_F(Steps, ALetIsSetBeforeItIsUsed) {
  choice().cases[0].when = less(arena.scalar(2), 1);
  EXPECT_NE(complaint().find("the condition of case 'few' reads slot 2, but only 2 are known"), std::string::npos)
      << complaint();
}

TEST_F(Steps, ALetIsNotItsOwnValue) {
  kernel.steps[0] = {Let{0, id(arena.scalar(1))}};
  EXPECT_NE(complaint().find("the value of let 'double' reads slot 1"), std::string::npos) << complaint();
}

TEST_F(Steps, LetsAreSetOnceAndInOrder) {
  kernel.steps.push_back({Let{0, one}});
  EXPECT_NE(complaint().find("sets let 0 of 2 where 2 are set"), std::string::npos) << complaint();
  kernel.steps.pop_back();
  kernel.steps[0] = {Let{1, one}};
  EXPECT_NE(complaint().find("sets let 1 of 2 where 0 are set"), std::string::npos) << complaint();
  kernel.steps[0] = {Let{0, one}};
  std::vector<Step>& some = choice().cases[1].steps;
  std::get<Choose>(some[1].what).cases[0].when = one;
  some.erase(some.begin());
  EXPECT_NE(complaint().find("its steps set 1 of 2 lets"), std::string::npos) << complaint();
}

TEST_F(Steps, ALetIsANumber) {
  kernel.lets[0].type = ScalarType::F32;
  EXPECT_NE(complaint().find("let 'double' is no u64"), std::string::npos) << complaint();
}

TEST_F(Steps, ConditionsReadNoTemporaries) {
  choice().cases[0].needs = id(arena.dim(3, 0));
  EXPECT_NE(complaint().find("the needs of case 'few' reads slot 4"), std::string::npos) << complaint();
}

TEST_F(Steps, TheLastCaseAlwaysHolds) {
  choice().cases.back().needs = less(arena.scalar(0), 5);
  EXPECT_NE(complaint().find("the last case 'many' of a choice depends on the launch"), std::string::npos);
  choice().cases.back() = {"never", one, Id{}, {{RunStep{3}}}};
  EXPECT_NE(complaint().find("the last case 'never'"), std::string::npos) << complaint();
  choice().cases.clear();
  EXPECT_NE(complaint().find("a choice has no cases"), std::string::npos) << complaint();
}

TEST_F(Steps, PhasesWriteTemporariesThatExist) {
  kernel.phases[2].written = {2};
  EXPECT_NE(complaint().find("phase 'p2' writes temporary 2 of 2"), std::string::npos) << complaint();
}

TEST_F(Steps, NestingEnds) {
  for (const unsigned depth : {1u, kMostNesting - 1, kMostNesting, kMostNesting + 1, 3 * kMostNesting}) {
    Step step{Choose{{{"end", one, one, {}}}}};
    for (unsigned i = 1; i < depth; ++i)
      step = {Choose{{{"level", one, one, {step}}}}};
    Kernel deep = kernel;
    deep.steps.push_back(std::move(step));
    EXPECT_EQ(static_cast<bool>(validate(deep)), depth < kMostNesting) << depth;
    EXPECT_EQ(static_cast<bool>(deserialize(serialize(deep))), depth < kMostNesting) << depth;
  }
}

TEST_F(Steps, StepsReadBackUnchanged) {
  const std::vector<uint8_t> bytes = serialize(kernel);
  const auto again = deserialize(bytes);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(serialize(*again), bytes);
  const auto& cases = std::get<Choose>(again->steps[2].what).cases;
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[1].name, "some");
  EXPECT_EQ(cases[1].needs, choice().cases[1].needs);
  EXPECT_EQ(std::get<Let>(cases[1].steps[0].what).let, 1u);
  EXPECT_EQ(std::get<RunStep>(cases[2].steps[0].what).phase, 3u);
  EXPECT_EQ(again->phases[3].written, (std::vector<uint32_t>{0, 1}));
}

}  // namespace
