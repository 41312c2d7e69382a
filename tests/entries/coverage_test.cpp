// Random launches against what a kernel was built for: those that it covers never come to an absent entry point, and the others are told why.
#include "runtime/hal/launch.h"
#include "runtime/null/null_driver.h"
#include "tests/entries/compiled.h"

#include <random>

namespace vortex::entries {
namespace {

using pipeline::Coverage;

/// Draws launches of a kernel whose parameters share extents by position, as those of kKernels do.
class Launches {
public:
  Launches(hal::Device& device, unsigned seed) : device_(device), random_(seed) {}

  int64_t pick(std::initializer_list<int64_t> values) {
    return values.begin()[std::uniform_int_distribution<size_t>(0, values.size() - 1)(random_)];
  }

  hal::Tensor tensor(artifact::ScalarType type, int64_t rows, int64_t columns) {
    const int64_t bytes = artifact::byteSize(type), gap = pick({0, 0, 0, 1, 8});
    const bool isTurned = pick({0, 0, 0, 1}) == 1;
    const int64_t stride = (isTurned ? rows : columns) + gap, offset = pick({0, 0, 0, 1, 8}) * bytes;
    hal::Tensor made{device_
                         .allocate(static_cast<uint64_t>(offset + (rows + 1) * (columns + 1) * bytes * 2 +
                                                         (rows + columns + 2) * gap * bytes))
                         .value(),
                     static_cast<uint64_t>(offset),
                     type,
                     {rows, columns},
                     isTurned ? std::vector<int64_t>{1, stride} : std::vector<int64_t>{stride, 1}};
    isUsual = isUsual && rows * columns > 0 && !isTurned && gap == 0 && offset % 16 == 0 && columns * bytes % 16 == 0;
    return made;
  }

  /// As kKernels' parameters want them: [M, K], then [K, N].
  std::vector<hal::Argument> draw(const artifact::Kernel& kernel) {
    m = pick({0, 1, 5, 16, 33, 64, 128, 200}), k = pick({0, 1, 8, 24, 64, 100, 256, 1000, 13001}),
    n = pick({1, 8, 16, 40, 63, 64, 128, 200});
    isUsual = true;
    std::vector<hal::Argument> arguments;
    for (size_t i = 0; i < kernel.params.size(); ++i)
      arguments.emplace_back(i == 0 ? tensor(kernel.params[i].type, m, k) : tensor(kernel.params[i].type, k, n));
    return arguments;
  }

  int64_t m = 0, k = 0, n = 0;
  bool isUsual = true;

private:
  hal::Device& device_;
  std::mt19937 random_;
};

struct Found {
  int refused = 0, covered = 0;
};

/// Launches a kernel without the entry points that `coverage` does not need.
Found compare(const artifact::Kernel& lowered, const Coverage& coverage, unsigned seed) {
  artifact::Kernel built = lowered;
  const std::set<std::string> reached = coverEntries(built, coverage);
  std::erase_if(built.absent, [&](const std::string& symbol) { return reached.contains(symbol); });
  EXPECT_LT(built.absent.size(), lowered.absent.size());
  std::shared_ptr<hal::Device> device = null_device::createDevice({.keepRecords = false});
  const auto bytes = artifact::serialize(built);
  const hal::KernelRef loaded =
      device->load(std::make_shared<artifact::Kernel>(artifact::deserialize(bytes).value()), nullptr).value();
  Launches launches(*device, seed);
  Found found;
  for (int i = 0; i < 1500; ++i) {
    const auto arguments = launches.draw(built);
    const Result<hal::Launch> launch = hal::prepare(*device, loaded, arguments, {.mayOverlap = true});
    const std::string error = launch ? "" : launch.error().message;
    const bool isRefused = error.find("it was built for some launches only") != std::string::npos;
    bool isCovered = !coverage.isUsual || launches.isUsual;
    for (const Coverage::Extent& extent : coverage.extents)
      isCovered = isCovered && (extent.dim == 0 ? launches.m : launches.k) == extent.value;
    EXPECT_FALSE(isRefused && isCovered) << built.name << ": " << error << "\n" << launches.m << " " << launches.k;
    if (isRefused)
      EXPECT_NE(error.find(", because "), std::string::npos) << error;
    found.refused += isRefused;
    found.covered += isCovered;
  }
  return found;
}

TEST(Coverage, LaunchesOfTheKindNeverComeToAnAbsentEntryPointAndTheOthersAreToldWhy) {
  for (const char* target : {"sm_80", "sm_90"}) {
    Compiled compiled(target, false);
    for (size_t kernel = 0; kernel < compiled.kernels().size(); ++kernel) {
      const auto planned = compiled.plan(kernel);
      const artifact::Kernel& lowered = *planned.kernel;
      if (lowered.absent.empty())
        continue;  // one entry point
      SCOPED_TRACE(lowered.name + " for " + target);
      const Found usual = compare(lowered, {.extents = {}, .isUsual = true}, 1);
      EXPECT_GT(usual.covered, 0);
      EXPECT_GT(usual.refused, 0);
      EXPECT_GT(compare(lowered, {.extents = {{0, 0, 64}, {0, 1, 256}}}, 2).covered, 0);
      EXPECT_GT(compare(lowered, {.extents = {{0, 1, 1000}}, .isUsual = true}, 3).covered, 0);
    }
  }
}

TEST(Coverage, EveryLaunchNeedsAllThatALaunchCanReach) {
  Compiled compiled("sm_90", false);
  for (size_t kernel = 0; kernel < compiled.kernels().size(); ++kernel) {
    artifact::Kernel lowered = *compiled.plan(kernel).kernel;
    if (lowered.absent.empty())
      continue;
    const std::set<std::string> reached = pipeline::coverEntries(lowered, {});
    EXPECT_EQ(reached, std::set<std::string>(lowered.absent.begin(), lowered.absent.end())) << lowered.name;
    EXPECT_TRUE(lowered.coverage.empty());
  }
}

TEST(Coverage, UsualProductsHaveHalfTheEntryPoints) {
  Compiled compiled("sm_80", false);
  const auto all = compiled.compile(0), usual = compiled.compile(0, {.extents = {}, .isUsual = true});
  EXPECT_TRUE(all->absent.empty());
  EXPECT_LT(usual->code.size() * 2, all->code.size());
  const std::string text(usual->code.begin(), usual->code.end());
  for (const std::string& symbol : usual->absent)
    EXPECT_EQ(text.find(".entry " + symbol + "("), std::string::npos) << symbol;
}

}  // namespace
}  // namespace vortex::entries
