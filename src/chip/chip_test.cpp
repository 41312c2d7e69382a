#include "chip/chip.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <set>

namespace {

using namespace vortex::chip;
namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(Gpus, AreFoundByUniqueNames) {
  std::set<std::string_view> names;
  for (const Gpu& gpu : gpus()) {
    EXPECT_TRUE(names.insert(gpu.name).second) << gpu.name;
    EXPECT_EQ(findGpu(gpu.name), &gpu);
  }
  EXPECT_EQ(findGpu("sm_90")->cores, 132u);
  EXPECT_EQ(findGpu("sm_1"), nullptr);
}

/// Published rates against units x clock: a slip of a digit in a table fails here.
TEST(Gpus, RatesFollowFromUnitsAndClock) {
  const auto lanes = [](const char* name, double perCore) {
    const Gpu& gpu = *findGpu(name);
    return gpu.peak.f32 / (gpu.cores * perCore * 2 * gpu.clockHz);
  };
  EXPECT_NEAR(lanes("sm_90", 128), 1.0, 0.02);
  EXPECT_NEAR(lanes("sm_80", 64), 1.0, 0.02);
  EXPECT_NEAR(lanes("gfx942", 128), 1.0, 0.02);
  EXPECT_NEAR(lanes("pvc", 128), 1.0, 0.02);
  EXPECT_NEAR(findGpu("apple_m1")->peak.f32, 2.6e12, 0.05e12);
  EXPECT_NEAR(findGpu("apple_m2")->peak.f32, 3.6e12, 0.05e12);
}

/// Cycles of square products in 16-bit types, tiles of 128×256 on every core, against measurements on an H200.
TEST(Gpus, CostsOfProductsAreThoseMeasured) {
  const Gpu& gpu = *findGpu("sm_90");
  const ProductCosts& costs = gpu.products;
  EXPECT_TRUE(gpu.hasBulkTensorCopies && gpu.hasWarpgroupMatrix);
  EXPECT_EQ(gpu.maxClusterBlocks, 8u);
  const auto cycles = [&](uint64_t n) {
    constexpr uint64_t rows = 128, columns = 256, depth = 64;
    const uint64_t tiles = n / rows * (n / columns), rounds = (tiles + gpu.cores - 1) / gpu.cores;
    const uint64_t step = rows * columns * depth / costs.multiplyAdds16;
    EXPECT_GE(step, 2 * (rows + columns) * depth / costs.sharedBytes);
    return costs.launchCycles +
           rounds * (n / depth * step + uint64_t{costs.tileCycles} * rows * columns / costs.tileResults);
  };
  for (auto [n, measured] : {std::pair<uint64_t, double>{2048, 39960}, {4096, 274700}, {8192, 2131000}})
    EXPECT_NEAR(static_cast<double>(cycles(n)) / measured, 1.0, 0.001) << n;
  // The rate is the vendor's: 1.83 GHz is the clock that its f16 rate is for.
  EXPECT_NEAR(costs.multiplyAdds16 * 2.0 * gpu.cores * 1.83e9 / gpu.peak.matrixF16, 1.0, 0.01);
  EXPECT_EQ(costs.sharedBytes, gpu.sharedBanks * gpu.bankBytes);
  EXPECT_FALSE(findGpu("sm_80")->hasBulkTensorCopies);
  EXPECT_EQ(findGpu("sm_80")->maxClusterBlocks, 1u);
}

TEST(Host, ThisMachineHasPlausibleNumbers) {
  const Host host = detectHost();
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  EXPECT_GE(host.threads, 1u);
  EXPECT_LE(host.threads, static_cast<uint32_t>(CPU_COUNT(&mask)));
  EXPECT_GE(host.cores, 1u);
  EXPECT_TRUE(host.vectorBytes == 16 || host.vectorBytes == 32 || host.vectorBytes == 64);
  EXPECT_GT(host.memoryBytes, uint64_t{1} << 28);
  EXPECT_EQ(host.cacheLineBytes & (host.cacheLineBytes - 1), 0u);
  EXPECT_FALSE(host.name.empty());
}

class FakeHost : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "vortex_chip_XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    while (!CPU_ISSET(cpu_, &mask))
      ++cpu_;
  }
  void TearDown() override { fs::remove_all(root_); }
  fs::path cpu() const { return root_ + "/sys/devices/system/cpu/cpu" + std::to_string(cpu_); }

  std::string root_;
  int cpu_ = 0;
};

TEST_F(FakeHost, CachesAndNameAreRead) {
  write(root_ + "/proc/cpuinfo", "processor\t: 0\nmodel name\t: Test 9000\nflags\t: x\n");
  const char* const facts[][4] = {{"1", "Data", "48K", "0"},
                                  {"1", "Instruction", "32K", "0"},
                                  {"2", "Unified", "2048K", "0"},
                                  {"3", "Unified", "32M", "0-3,8"}};
  for (int i = 0; i < 4; ++i) {
    const fs::path folder = cpu() / "cache" / ("index" + std::to_string(i));
    write(folder / "level", facts[i][0]);
    write(folder / "type", facts[i][1]);
    write(folder / "size", facts[i][2]);
    write(folder / "shared_cpu_list", facts[i][3]);
    write(folder / "coherency_line_size", "128\n");
  }
  const Host host = detectHost(root_);
  EXPECT_EQ(host.name, "Test 9000");
  EXPECT_EQ(host.l1Bytes, 48u << 10);
  EXPECT_EQ(host.l2Bytes, 2048u << 10);
  EXPECT_EQ(host.l3Bytes, 32u << 20);
  EXPECT_EQ(host.l3SharingThreads, 5u);
  EXPECT_EQ(host.cacheLineBytes, 128u);
}

TEST_F(FakeHost, ModelsDifferByFamilyAndFeatures) {
  const std::string path = root_ + "/proc/cpuinfo";
  const auto modelOf = [&](const std::string& text) {
    write(path, text);
    return detectHost(root_).model;
  };
  const std::string model = modelOf("processor\t: 0\nmodel\t\t: 85\nmodel name\t: A\nflags\t\t: fma avx2\n");
  EXPECT_EQ(modelOf("processor\t: 1\nmodel\t\t: 85\nmodel name\t: B\ncpu MHz\t: 3\nflags\t\t: fma avx2\n"), model);
  EXPECT_NE(modelOf("processor\t: 0\nmodel\t\t: 85\nmodel name\t: A\nflags\t\t: fma avx2 avx512f\n"), model);
  EXPECT_NE(modelOf("processor\t: 0\nmodel\t\t: 106\nmodel name\t: A\nflags\t\t: fma avx2\n"), model);
  EXPECT_NE(modelOf(""), model);
}

TEST_F(FakeHost, QuotasOfTheControlGroupAndItsAncestorsHold) {
  write(root_ + "/proc/self/cgroup", "0::/a/b\n");
  write(root_ + "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write(root_ + "/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  write(root_ + "/sys/fs/cgroup/a/b/memory.max", "1073741824\n");
  const Host host = detectHost(root_);
  EXPECT_EQ(host.threads, 1u);
  EXPECT_EQ(host.memoryBytes, 1u << 30);
}

TEST_F(FakeHost, AnEmptySystemStillWorks) {
  const Host host = detectHost(root_);
  EXPECT_EQ(host.name, "unknown");
  EXPECT_EQ(host.l3Bytes, 0u);
  EXPECT_GE(host.cores, 1u);
}

}  // namespace
