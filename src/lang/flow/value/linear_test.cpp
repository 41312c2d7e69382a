// Small random systems against all numbers of their boxes: what is said to be empty has no solution, and most of what has none is seen.
#include "lang/flow/value/linear.h"

#include <gtest/gtest.h>

#include <random>

namespace vortex::lang::flow {
namespace {

struct System {
  std::vector<Interval> ranges;
  std::vector<std::pair<std::vector<int>, int>> rows;  ///< coefficients, and what their sum is at least
};

System randomSystem(std::mt19937_64& random) {
  const auto pick = [&](int low, int high) { return low + static_cast<int>(random() % uint64_t(high - low + 1)); };
  System out;
  const int variables = pick(1, 4);
  for (int i = 0; i < variables; ++i) {
    const int low = pick(-3, 2);
    out.ranges.push_back({low, low + pick(0, 5)});
  }
  for (int i = pick(1, 6); i > 0; --i) {
    std::vector<int> row;
    for (int j = 0; j < variables; ++j)
      row.push_back(pick(0, 3) ? pick(-4, 4) : 0);
    out.rows.emplace_back(row, pick(-12, 14));
  }
  return out;
}

bool hasSolution(const System& system, std::vector<int>& numbers) {
  const size_t at = numbers.size();
  if (at == system.ranges.size()) {
    for (const auto& [row, least] : system.rows) {
      int sum = 0;
      for (size_t i = 0; i < row.size(); ++i)
        sum += row[i] * numbers[i];
      if (sum < least)
        return false;
    }
    return true;
  }
  for (auto number = static_cast<int>(system.ranges[at].low); number <= system.ranges[at].high; ++number) {
    numbers.push_back(number);
    const bool found = hasSolution(system, numbers);
    numbers.pop_back();
    if (found)
      return true;
  }
  return false;
}

bool saysEmpty(const System& system) {
  LinearSystem made;
  for (const Interval& range : system.ranges)
    made.addVariable(range);
  for (const auto& [coefficients, least] : system.rows) {
    LinearSystem::Row row;
    for (size_t i = 0; i < coefficients.size(); ++i)
      if (coefficients[i] != 0)
        row.emplace_back(i, coefficients[i]);
    made.addAtLeast(row, least);
  }
  uint64_t steps = 200;
  return made.isEmpty(steps);
}

TEST(LinearSystem, OnlySystemsWithoutASolutionAreEmpty) {
  std::mt19937_64 random(17);
  size_t empty = 0, seen = 0;
  for (int i = 0; i < 20'000; ++i) {
    const System system = randomSystem(random);
    std::vector<int> numbers;
    const bool isEmpty = !hasSolution(system, numbers), isSeen = saysEmpty(system);
    ASSERT_TRUE(isEmpty || !isSeen) << "system " << i;
    empty += isEmpty;
    seen += isSeen;
  }
  EXPECT_GT(empty, 5000u);
  EXPECT_GT(seen * 10, empty * 9);  // the others have a solution that is no whole number
}

TEST(LinearSystem, BoundsMayBeMissing) {
  for (const __int128 least : {-1, 0, 1}) {
    LinearSystem system;
    const size_t x = system.addVariable({}), y = system.addVariable({});
    system.addAtLeast({{x, 1}, {y, -2}}, 0);
    system.addAtLeast({{x, -1}, {y, 2}}, least);
    uint64_t steps = 20;
    EXPECT_EQ(system.isEmpty(steps), least > 0);
  }
}

TEST(LinearSystem, NumbersThatAreTooLargeLeaveItOpen) {
  LinearSystem system;
  const size_t x = system.addVariable({0, 1});
  system.addAtLeast({{x, __int128(1) << 90}}, __int128(1) << 91);
  uint64_t steps = 20;
  EXPECT_FALSE(system.isEmpty(steps));
}

}  // namespace
}  // namespace vortex::lang::flow
