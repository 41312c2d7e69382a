#include "runtime/cpu/cpu_driver.h"

#include "base/file.h"
#include "runtime/hal/conformance_test.h"

#include <chrono>
#include <cstdlib>

namespace vortex::hal::conformance {

namespace {

void addCode(artifact::Kernel& kernel) {
  const std::string object = *base::readFile(VORTEX_CONFORMANCE_OBJECT);
  kernel.target = "cpu-x86_64-test";
  kernel.code.assign(object.begin(), object.end());
}

template <uint32_t threads, bool poison> Result<DeviceRef> create(uint64_t memoryLimit) {
  return cpu::createDevice({.threads = threads, .memoryBytes = memoryLimit, .poison = poison});
}

std::shared_ptr<artifact::Kernel> kernel(const std::string& name) {
  auto made = std::make_shared<artifact::Kernel>(kernelNamed(name));
  addCode(*made);
  return made;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Cpu, Conformance,
                         testing::Values(DriverUnderTest{"cpu", create<0, false>, addCode},
                                         DriverUnderTest{"one_thread", create<1, false>, addCode},
                                         DriverUnderTest{"sixteen_threads_poisoned", create<16, true>, addCode}),
                         [](const auto& info) { return info.param.name; });

TEST(CpuDevice, KernelsOfOtherMachinesAreRefused) {
  const DeviceRef device = cpu::createDevice().value();
  auto other = kernel("scale");
  other->target = "sm_90";
  EXPECT_EQ(device->load(other).error().message,
            "kernel 'scale' was compiled for 'sm_90', this device runs 'cpu-x86_64'");
  auto demanding = kernel("scale");
  demanding->facts.push_back({"requires.antigravity", 1, false});
  EXPECT_NE(device->load(demanding).error().message.find("antigravity"), std::string::npos);
  auto modest = kernel("scale");
  modest->facts.push_back({"requires.popcnt", 1, false});
  EXPECT_TRUE(device->load(modest));
}

TEST(CpuDevice, AMissingEntryPointIsNamed) {
  auto broken = kernel("scale");
  broken->phases[0].symbol = "nowhere";
  EXPECT_NE(cpu::createDevice().value()->load(broken).error().message.find("no function 'nowhere'"), std::string::npos);
}

TEST(CpuDevice, TheThreadCountFollowsOptionAndEnvironment) {
  ::setenv("VORTEX_NUM_THREADS", "3", 1);
  EXPECT_EQ(cpu::createDevice().value()->info().workers, 3u);
  EXPECT_EQ(cpu::createDevice({.threads = 5}).value()->info().workers, 5u);
  for (const char* bad : {"0", "-1", "four", "3x", "99999"}) {
    ::setenv("VORTEX_NUM_THREADS", bad, 1);
    const auto device = cpu::createDevice();
    ASSERT_FALSE(device) << bad;
    EXPECT_NE(device.error().message.find(bad), std::string::npos);
  }
  ::unsetenv("VORTEX_NUM_THREADS");
  EXPECT_GE(cpu::createDevice().value()->info().workers, 1u);
}

TEST(CpuDevice, ScratchThatDoesNotFitIsAnErrorBeforeAnyBlockRuns) {
  const DeviceRef device = cpu::createDevice({.threads = 4, .memoryBytes = 64 << 20}).value();
  auto greedy = kernel("total");
  greedy->phases[1].scratchBytes = greedy->sizes.constant(20 << 20);
  const KernelRef loaded = device->load(greedy).value();
  const StreamRef stream = device->createStream().value();
  const BufferRef x = device->allocate(400).value(), sum = device->allocate(8).value();
  const auto launched =
      launch(*device, *stream, loaded, std::vector<Argument>{Tensor{x, 0, artifact::ScalarType::I32, {100}, {}}},
             {.results = {Tensor{sum, 0, artifact::ScalarType::I64, {}, {}}}});
  ASSERT_FALSE(launched);
  EXPECT_NE(launched.error().message.find("phase 'total_final' needs 20971520 bytes of scratch for each of 4 workers"),
            std::string::npos)
      << launched.error().message;
}

/// Not a timed test: prints what a launch costs, for whoever looks.
TEST(CpuDevice, LaunchesOfTinyKernelsAreCheap) {
  const DeviceRef device = cpu::createDevice().value();
  const StreamRef stream = device->createStream().value();
  const KernelRef loaded = device->load(kernel("scale")).value();
  const BufferRef x = device->allocate(4096).value(), y = device->allocate(4096).value();
  ASSERT_TRUE(stream->fill(x, 0, 4096, 0));
  const std::vector<Argument> arguments = {Tensor{x, 0, artifact::ScalarType::F32, {1024}, {}}, scalarF32(1)};
  const LaunchOptions options{.results = {Tensor{y, 0, artifact::ScalarType::F32, {1024}, {}}}};
  constexpr int kLaunches = 20000;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kLaunches; ++i)
    ASSERT_TRUE(launch(*device, *stream, loaded, arguments, options));
  const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
  RecordProperty("launch_us", std::to_string(elapsed.count() / kLaunches));
  std::printf("%.2f us per launch\n", elapsed.count() / kLaunches);
}

}  // namespace vortex::hal::conformance
