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

TEST(NullDevice, LimitsOfBlocksHold) {
  artifact::Kernel kernel = kernelNamed("sparse");
  kernel.phases[0].block[0] = kernel.sizes.constant(2048);
  kernel.phases[0].sharedBytes = kernel.sizes.constant(1000);
  const auto message = [&](const null_device::Options& options) {
    const auto device = null_device::createDevice(options);
    const auto launched = launch(*device, *device->createStream().value(),
                                 device->load(std::make_shared<artifact::Kernel>(kernel)).value(), {});
    return launched ? "no error" : launched.error().message;
  };
  EXPECT_EQ(message({.maxSharedBytes = 1000, .maxBlockThreads = 2048}), "no error");
  EXPECT_NE(message({.maxBlockThreads = 1024}).find("2048 threads per block, the device allows 1024"),
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
