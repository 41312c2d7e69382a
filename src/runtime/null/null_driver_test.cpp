#include "runtime/null/null_driver.h"

#include "runtime/hal/conformance_test.h"

namespace vortex::hal::conformance {

INSTANTIATE_TEST_SUITE_P(Null, Conformance,
                         testing::Values(DriverUnderTest{"null",
                                                         [](uint64_t memoryLimit) -> Result<DeviceRef> {
                                                           return DeviceRef(null_device::createDevice(
                                                               {.name = "null", .memoryBytes = memoryLimit}));
                                                         },
                                                         [](artifact::Kernel& kernel) { kernel.target = "none"; }}));

TEST(NullDevice, RecordsWhatWasLaunched) {
  const auto device = null_device::createDevice();
  const StreamRef stream = device->createStream().value();
  const KernelRef kernel = device->load(std::make_shared<artifact::Kernel>(kernelNamed("total"))).value();
  const BufferRef buffer = device->allocate(4000).value();
  ASSERT_TRUE(launch(*device, *stream, kernel,
                     std::vector<Argument>{Tensor{buffer, 0, artifact::ScalarType::I32, {1000}, {}}}));
  const std::vector<null_device::Record> records = device->records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].phase, "total_partial");
  EXPECT_EQ(records[0].grid[0], 8u);
  EXPECT_EQ(records[0].scratchBytes, 1024u);
  EXPECT_EQ(records[1].grid[0], 1u);
  EXPECT_EQ(records[1].slots.at(1), 1000u);
  device->clearRecords();
  EXPECT_TRUE(device->records().empty());
}

/// Slots: x 0..2, the let 3, the temporaries 4..6 and 7..9.
artifact::Kernel kernelWithALet() {
  artifact::Kernel kernel = kernelNamed("total");
  size::Arena arena;
  const auto id = [&](size::Expr expr) { return kernel.sizes.add(expr); };
  const size::Id one = kernel.sizes.constant(1);
  kernel.results.clear();
  kernel.scalarResults.clear();
  kernel.lets = {{.name = "blocks", .type = artifact::ScalarType::U64, .firstSlot = 3}};
  kernel.temporaries.assign(2, {.name = "t",
                                .type = artifact::ScalarType::I32,
                                .isTensor = true,
                                .rank = 1,
                                .access = artifact::Access::ReadWrite,
                                .firstSlot = 4,
                                .extents = {id(size::make(size::Op::Mul, arena.scalar(1), arena.dim(0, 0)))}});
  kernel.temporaries[1].firstSlot = 7;
  kernel.slotCount = 10;
  kernel.phases[0].grid[0] = id(arena.scalar(1));
  kernel.phases[0].written = {0};
  kernel.phases[1].written = {1};
  const size::Expr each = size::make(size::Op::CeilDiv, arena.dim(0, 0), arena.clusters(1));
  kernel.steps = {
      {artifact::Let{0, id(each)}},
      {artifact::Choose{{{"few", one, id(size::make(size::Op::Less, arena.scalar(1), 10)), {{artifact::Run{0}}}},
                         {"many", one, one, {{artifact::Run{1}}}}}}}};
  return kernel;
}

TEST(NullDevice, StepsDecideAboutPhasesAndTemporaries) {
  const auto device = null_device::createDevice();
  const KernelRef kernel = device->load(std::make_shared<artifact::Kernel>(kernelWithALet())).value();
  const auto launchOf = [&](int64_t n) {
    const BufferRef buffer = device->allocate(static_cast<uint64_t>(n) * 4).value();
    return prepare(*device, kernel, std::vector<Argument>{Tensor{buffer, 0, artifact::ScalarType::I32, {n}, {}}});
  };
  const uint64_t workers = device->info().workers;
  const auto few = launchOf(static_cast<int64_t>(workers) * 9), many = launchOf(static_cast<int64_t>(workers) * 10);
  ASSERT_TRUE(few && many);
  ASSERT_EQ(few->phases.size(), 1u);
  EXPECT_EQ(few->phases[0].phase->name, "total_partial");
  EXPECT_EQ(few->phases[0].grid[0], 9u);
  EXPECT_EQ(few->slots[3], 9u);
  EXPECT_NE(few->slots[4], 0u);
  EXPECT_EQ(few->slots[5], workers * 81);
  EXPECT_EQ(std::vector(few->slots.begin() + 7, few->slots.end()), (std::vector<uint64_t>{0, 0, 0}));
  ASSERT_EQ(many->phases.size(), 1u);
  EXPECT_EQ(many->phases[0].phase->name, "total_final");
  EXPECT_EQ(many->slots[3], 10u);
  EXPECT_EQ(std::vector(many->slots.begin() + 4, many->slots.begin() + 7), (std::vector<uint64_t>{0, 0, 0}));
  EXPECT_NE(many->slots[7], 0u);
}

TEST(NullDevice, TemporariesThatNoPhaseWritesAreWhatTheyStandFor) {
  artifact::Kernel kernel = kernelWithALet();
  kernel.temporaries[0].original = 0;
  const auto device = null_device::createDevice();
  const Result<KernelRef> loaded = device->load(std::make_shared<artifact::Kernel>(kernel));
  ASSERT_TRUE(loaded) << loaded.error().message;
  for (const int64_t strides : {1, 3}) {
    const uint64_t workers = device->info().workers;
    const auto launchOf = [&](uint64_t n) {
      const BufferRef buffer = device->allocate(n * 12 + 4).value();
      const auto extent = static_cast<int64_t>(n);
      return prepare(*device, *loaded,
                     std::vector<Argument>{Tensor{buffer, 4, artifact::ScalarType::I32, {extent}, {strides}}});
    };
    const auto few = launchOf(workers * 9), many = launchOf(workers * 10);
    ASSERT_TRUE(few && many);
    const auto view = [](const Launch& launch, ptrdiff_t slot) {
      return std::vector(launch.slots.begin() + slot, launch.slots.begin() + slot + 3);
    };
    EXPECT_NE(few->slots[4], few->slots[0]);
    EXPECT_EQ(view(*many, 4), view(*many, 0));
    EXPECT_NE(view(*many, 7), view(*many, 0));
  }
}

TEST(NullDevice, MemoryThatNoTakenPhaseWritesMayBeImpossible) {
  artifact::Kernel kernel = kernelWithALet();
  size::Arena arena;
  const size::Expr cube =
      size::make(size::Op::Mul, arena.dim(0, 0), size::make(size::Op::Mul, arena.dim(0, 0), int64_t{1} << 62));
  kernel.temporaries[1].extents = {kernel.sizes.add(cube)};
  const auto device = null_device::createDevice();
  const KernelRef loaded = device->load(std::make_shared<artifact::Kernel>(kernel)).value();
  const auto message = [&](int64_t n) {
    const BufferRef buffer = device->allocate(static_cast<uint64_t>(n) * 4).value();
    const auto launch =
        prepare(*device, loaded, std::vector<Argument>{Tensor{buffer, 0, artifact::ScalarType::I32, {n}, {}}});
    return launch ? "no error" : launch.error().message;
  };
  EXPECT_EQ(message(5), "no error");
  EXPECT_NE(message(int64_t{100} * device->info().workers).find("extent 0 of temporary 't' does not fit"),
            std::string::npos);
}

TEST(NullDevice, OneKernelTakesEveryGridThatALaunchGives) {
  artifact::Kernel kernel = kernelNamed("sparse");
  size::Arena arena;
  const size::Id x = kernel.sizes.add(arena.launchGrid(0));
  kernel.phases[0].grid[0] = x;
  kernel.phases[0].grid[1] = kernel.sizes.add(size::make(size::Op::Mul, arena.launchGrid(2), 2));
  kernel.phases[0].scratchBytes = kernel.sizes.add(size::make(size::Op::Mul, arena.launchGrid(0), 8));
  const auto device = null_device::createDevice();
  const KernelRef loaded = device->load(std::make_shared<artifact::Kernel>(kernel)).value();
  for (int64_t blocks : {1, 5, 70000}) {
    const Launch launch = prepare(*device, loaded, {}, {.grid = {{blocks, 1, 3}}}).value();
    ASSERT_EQ(launch.phases.size(), 1u);
    EXPECT_EQ(launch.phases[0].grid[0], blocks);
    EXPECT_EQ(launch.phases[0].grid[1], 6u);
    EXPECT_EQ(launch.phases[0].scratchBytes, static_cast<uint64_t>(blocks) * 8);
  }
  EXPECT_TRUE(prepare(*device, loaded, {}, {.grid = {{0, 1, 1}}}).value().phases.empty());
  const auto message = [&](const KernelRef& of, LaunchOptions options) {
    const auto launch = prepare(*device, of, {}, std::move(options));
    return launch ? "no error" : launch.error().message;
  };
  EXPECT_NE(message(loaded, {}).find("must give the numbers of blocks"), std::string::npos);
  EXPECT_NE(message(loaded, {.grid = {{-1, 1, 1}}}).find("impossible grid of -1 x 1 x 1"), std::string::npos);
  EXPECT_NE(message(loaded, {.grid = {{1, int64_t{1} << 32, 1}}}).find("impossible grid"), std::string::npos);
  const KernelRef own = device->load(std::make_shared<artifact::Kernel>(kernelNamed("sparse"))).value();
  EXPECT_NE(message(own, {.grid = {{1, 1, 1}}}).find("a grid of its own"), std::string::npos);
}

TEST(NullDevice, ScratchMemoryThatDoesNotFitIsRefusedNotWrapped) {
  artifact::Kernel kernel = kernelNamed("sparse");
  size::Arena arena;
  kernel.phases[0].grid[0] = kernel.sizes.add(arena.launchGrid(0));
  kernel.phases[0].scratchBytes =
      kernel.sizes.add(size::make(size::Op::Mul, arena.launchGrid(0), int64_t{1} << 62));  // 4 << 62 is 0
  const auto device = null_device::createDevice();
  const KernelRef loaded = device->load(std::make_shared<artifact::Kernel>(kernel)).value();
  const auto refused = prepare(*device, loaded, {}, {.grid = {{4, 1, 1}}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("bytes of scratch per block, which do not fit 63 bits"), std::string::npos);
}

TEST(NullDevice, LimitsOfBlocksHold) {
  artifact::Kernel kernel = kernelNamed("sparse");
  kernel.phases[0].block[0] = kernel.sizes.constant(65536);
  kernel.phases[0].hardwareThreads = kernel.sizes.constant(2048);
  kernel.phases[0].sharedBytes = kernel.sizes.constant(1000);
  const auto message = [&](const null_device::Options& options) {
    const auto device = null_device::createDevice(options);
    const auto launched = launch(*device, *device->createStream().value(),
                                 device->load(std::make_shared<artifact::Kernel>(kernel)).value(), {});
    return launched ? "no error" : launched.error().message;
  };
  EXPECT_EQ(message({.maxSharedBytes = 1000, .maxBlockThreads = 2048}), "no error");
  EXPECT_NE(message({.maxBlockThreads = 1024}).find("2048 hardware threads per block, the device allows 1024"),
            std::string::npos);
  EXPECT_NE(message({.maxSharedBytes = 999}).find("1000 bytes of shared memory"), std::string::npos);
}

TEST(DriverList, FindsDevicesByNameAndListsThem) {
  DriverList drivers;
  drivers.add(null_device::createDriver({.name = "null"}));
  drivers.add(null_device::createDriver({.name = "other"}));
  EXPECT_EQ(drivers.devices().size(), 2u);
  EXPECT_EQ(drivers.find("other").value()->info().name, "other");
  EXPECT_EQ(drivers.find("null").value()->info().name, "null");
  EXPECT_EQ(drivers.find("gpu").error().message, "there is no device 'gpu'; this machine has: null, other");
}

}  // namespace vortex::hal::conformance
