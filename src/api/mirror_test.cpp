#include "base/fresh_seed.h"
#include "vortex/mirror.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace vortex {

namespace {

/// A device that works in host memory, and the stand-in for a GPU, which does not.
class Mirrors : public testing::TestWithParam<const char*> {
protected:
  Mirrors() {
    for (uint8_t& value : values)
      value = static_cast<uint8_t>(random_());
  }
  /// Work on the device that writes.
  void overwrite(const Buffer& memory, uint8_t value) { ASSERT_TRUE(stream.fill(memory, 0, memory.bytes(), value)); }
  std::vector<uint8_t> seen(const Buffer& memory) {
    std::vector<uint8_t> out(memory.bytes());
    EXPECT_TRUE(stream.read({memory, 0, DType::U8, {static_cast<int64_t>(out.size())}, {1}}, out.data(), out.size()));
    return out;
  }
  void expectCopies(const Mirror& mirror, uint64_t toDevice, uint64_t toHost) const {
    const bool isShared = device.name() == "cpu";
    EXPECT_EQ(mirror.isShared(), isShared);
    EXPECT_EQ(mirror.copies().toDevice, isShared ? 0 : toDevice);
    EXPECT_EQ(mirror.copies().toHost, isShared ? 0 : toHost);
  }

  /// Before the runtime looks for devices.
  static bool chooseStandIn() {
    ::setenv("VORTEX_LIBCUDA", VORTEX_FAKE_CUDA, 1);
    return ::setenv("FAKE_CUDA_delay", "100", 1) == 0;  // work is late: what does not wait reads too early
  }

  const bool hasStandIn_ = chooseStandIn();
  std::mt19937 random_{base::freshSeed()};
  std::vector<uint8_t> values = std::vector<uint8_t>(1000);
  Runtime runtime;
  Device device = runtime.open(GetParam()).value();
  Stream stream = device.createStream().value();
};

TEST_P(Mirrors, TheHostSeesWhatWorkWroteAndWorkWhatTheHostWrote) {
  Mirror mirror = Mirror::create(device, 1000).value();
  auto* bytes = static_cast<uint8_t*>(mirror.host(stream).value());
  EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + 1000), std::vector<uint8_t>(1000, 0));
  for (int round = 0; round < 3; ++round) {
    std::copy(values.begin(), values.end(), bytes);
    EXPECT_EQ(seen(mirror.forDevice(stream, false).value()), values);
    overwrite(mirror.forDevice(stream, true).value(), static_cast<uint8_t>(round + 1));
    EXPECT_EQ(mirror.host(stream).value(), bytes) << "always the same memory";
    EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + 1000), std::vector<uint8_t>(1000, static_cast<uint8_t>(round + 1)));
  }
  expectCopies(mirror, 3, 3);
}

TEST_P(Mirrors, NothingIsCopiedThatNobodyChanged) {
  Mirror mirror = Mirror::over(device, values.data(), 1000).value();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(seen(mirror.forDevice(stream, false).value()), values);
  expectCopies(mirror, 1, 0);
  for (int i = 0; i < 5; ++i)
    overwrite(mirror.forDevice(stream, true).value(), 7);
  EXPECT_TRUE(stream.synchronize());
  EXPECT_TRUE(mirror.settle(stream));
  expectCopies(mirror, 1, 0);
  EXPECT_TRUE(mirror.host(stream));
  EXPECT_TRUE(mirror.host(stream));
  EXPECT_EQ(values, std::vector<uint8_t>(1000, 7));
  expectCopies(mirror, 1, 1);
}

TEST_P(Mirrors, MemoryThatIsHeldIsEqualAfterEveryWait) {
  bool isHeld = true;
  Mirror mirror = Mirror::over(device, values.data(), 1000, {.isHeld = [&] { return isHeld; }}).value();
  for (uint8_t round = 1; round <= 3; ++round) {
    values.assign(1000, round);
    EXPECT_EQ(seen(mirror.forDevice(stream, false).value()), values) << "written without asking";
    overwrite(mirror.forDevice(stream, true).value(), static_cast<uint8_t>(round + 100));
    EXPECT_TRUE(stream.synchronize());
    EXPECT_TRUE(mirror.settle(stream));
    EXPECT_EQ(values, std::vector<uint8_t>(1000, static_cast<uint8_t>(round + 100)));
  }
  expectCopies(mirror, 6, 3);  // for every use: the host may have written in between
  isHeld = false;
  overwrite(mirror.forDevice(stream, true).value(), 9);
  EXPECT_TRUE(stream.synchronize());
  EXPECT_TRUE(mirror.settle(stream));
  expectCopies(mirror, 6, 3);
  EXPECT_EQ(mirror.isDeviceNewer(), !mirror.isShared());
  EXPECT_TRUE(mirror.host(stream));
  EXPECT_EQ(values, std::vector<uint8_t>(1000, 9));
}

TEST_P(Mirrors, AHostThatWritesBehindUnfinishedWorkDoesNotOverwriteIt) {
  Mirror mirror = Mirror::over(device, values.data(), 1000, {.isHeld = [] { return true; }}).value();
  overwrite(mirror.forDevice(stream, true).value(), 5);
  EXPECT_EQ(seen(mirror.forDevice(stream, false).value()), std::vector<uint8_t>(1000, 5));
  expectCopies(mirror, 1, 0);
}

TEST_P(Mirrors, ReadOnlyMemoryIsWrittenByNobody) {
  const std::vector<uint8_t> before = values;
  Mirror mirror = Mirror::over(device, values.data(), 1000, {.isReadOnly = true}).value();
  EXPECT_NE(mirror.forDevice(stream, true).error().message.find("1000 bytes are read-only"), std::string::npos);
  EXPECT_EQ(seen(mirror.forDevice(stream, false).value()), before);
  EXPECT_TRUE(mirror.host(stream));
  EXPECT_EQ(seen(mirror.forDevice(stream, false).value()), before);
  expectCopies(mirror, 1, 0);
}

TEST_P(Mirrors, NoBytesAndTooManyBytes) {
  Mirror none = Mirror::create(device, 0).value();
  EXPECT_EQ(none.forDevice(stream, true).value().bytes(), 0u);
  EXPECT_TRUE(none.host(stream));
  const Result<Mirror> most = Mirror::create(device, UINT64_MAX);
  ASSERT_FALSE(most);
  EXPECT_EQ(most.error().kind, ErrorKind::OutOfMemory);
  EXPECT_NE(most.error().message.find("out of memory"), std::string::npos);
}

TEST_P(Mirrors, TheOwnerLivesAsLongAsTheMirror) {
  bool isOwned = true;
  {
    const Mirror mirror =
        Mirror::over(device, values.data(), 1000,
                     {.owner = std::shared_ptr<void>(&isOwned, [](void* flag) { *static_cast<bool*>(flag) = false; })})
            .value();
    EXPECT_TRUE(isOwned);
  }
  EXPECT_FALSE(isOwned);
}

INSTANTIATE_TEST_SUITE_P(Devices, Mirrors, testing::Values("cpu", "cuda:0"), [](const auto& info) {
  return std::string(info.param).substr(0, info.param[1] == 'p' ? 3 : 4);
});

}  // namespace

}  // namespace vortex
