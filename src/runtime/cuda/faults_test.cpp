// Faults that end the context, and faults of the host's own making.
#include "runtime/cuda/testdata/stand_in.h"

namespace vortex::cuda {

using hal::Argument;
using hal::Tensor;
using hal::conformance::scalarI64;
using testing::StandIn;

/// On the stand-in, and on a GPU where there is one.
class CudaFaults : public ::testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    StandIn::get().reset();
    auto opened = testing::openDevice(GetParam());
    if (!opened)
      GTEST_SKIP() << opened.error().message;
    device_ = *opened;
    stream_ = device_->createStream().value();
  }
  /// A real driver gives the process no second context: see CudaGpu.
  static bool endsTheProcess() { return GetParam(); }
  Result<void> launch(const std::string& symbol) {
    auto done = hal::launch(*device_, *stream_, device_->load(testing::bareKernel(symbol)).value(), {});
    return done ? Result<void>() : Result<void>(done.takeError());
  }
  hal::DeviceRef device_;
  hal::StreamRef stream_;
};

INSTANTIATE_TEST_SUITE_P(Cuda, CudaFaults, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "gpu" : "stand_in"; });

TEST_P(CudaFaults, AnIllegalAddressNamesTheKernelAndTheProcessGoesOn) {
  if (endsTheProcess())
    GTEST_SKIP() << "in a process of its own";
  for (int round = 0; round < 3; ++round) {
    const hal::KernelRef update = device_->load(testing::kernelNamed("update")).value();
    const hal::BufferRef before = device_->allocate(80).value();
    const hal::EventRef event = device_->createEvent().value();
    ASSERT_TRUE(stream_->record(event));
    ASSERT_TRUE(launch("crash"));
    ASSERT_TRUE(stream_->fill(before, 0, 80, 0));  // skipped or lost
    const auto failed = stream_->synchronize();
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().message.find("kernel 'crash' stopped: E0708"), std::string::npos)
        << failed.error().message;
    EXPECT_NE(failed.error().message.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << failed.error().message;
    EXPECT_NE(failed.error().message.find("`vortex run --check` finds it"), std::string::npos)
        << failed.error().message;
    EXPECT_NE(failed.error().message.find("(crash.vx:3:8)"), std::string::npos) << failed.error().message;
    ASSERT_TRUE(stream_->lastFault());
    EXPECT_EQ(stream_->lastFault()->kernel, "crash");
    EXPECT_TRUE(event->isComplete());
    // Everything but the contents of memory is usable again, with the same handles.
    const auto stale = stream_->fill(before, 0, 80, 1);
    ASSERT_FALSE(stale);
    EXPECT_NE(stale.error().message.find("was lost when the device stopped"), std::string::npos)
        << stale.error().message;
    const hal::BufferRef a = device_->allocate(80).value();
    const std::vector<int64_t> ones(10, 1);
    ASSERT_TRUE(stream_->write(a, 0, ones.data(), 80));
    const auto again = hal::launch(
        *device_, *stream_, update,
        std::vector<Argument>{Tensor{a, 0, artifact::ScalarType::I64, {10}, {}}, scalarI64(5), scalarI64(2)});
    ASSERT_TRUE(again) << again.error().message;
    std::vector<int64_t> back(10);
    const auto read = stream_->read(back.data(), a, 0, 80);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(back, std::vector<int64_t>(10, 7));
    EXPECT_TRUE(stream_->record(event));
    EXPECT_TRUE(event->wait());
  }
}

TEST_P(CudaFaults, OneOfSeveralKernelsIsNotAccusedAlone) {
  if (endsTheProcess())
    GTEST_SKIP() << "in a process of its own";
  const hal::KernelRef update = device_->load(testing::kernelNamed("update")).value();
  const hal::BufferRef a = device_->allocate(80).value();
  ASSERT_TRUE(hal::launch(
      *device_, *stream_, update,
      std::vector<Argument>{Tensor{a, 0, artifact::ScalarType::I64, {10}, {}}, scalarI64(5), scalarI64(2)}));
  ASSERT_TRUE(launch("crash"));
  const auto failed = stream_->synchronize();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("it ran update, crash (crash.vx:3) since the last synchronisation"),
            std::string::npos)
      << failed.error().message;
}

TEST_P(CudaFaults, AGraphsKernelIsNamedAndTheGraphIsLostWithTheContext) {
  if (endsTheProcess())
    GTEST_SKIP() << "in a process of its own";
  ASSERT_TRUE(stream_->beginRecording());
  ASSERT_TRUE(launch("crash"));
  const hal::GraphRef graph = stream_->endRecording().value();
  ASSERT_TRUE(stream_->replay(graph));
  const auto failed = stream_->synchronize();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("kernel 'crash' stopped: E0708"), std::string::npos) << failed.error().message;
  EXPECT_EQ(stream_->lastFault()->kernel, "crash");
  const auto again = stream_->replay(graph);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("the graph was lost when the device stopped"), std::string::npos)
      << again.error().message;
  ASSERT_TRUE(stream_->beginRecording());  // and the stream goes on
  ASSERT_TRUE(launch("sparse"));
  ASSERT_TRUE(stream_->replay(stream_->endRecording().value()));
  EXPECT_TRUE(stream_->synchronize());
}

TEST_P(CudaFaults, AnotherStreamLearnsOfTheLoss) {
  if (endsTheProcess())
    GTEST_SKIP() << "in a process of its own";
  const hal::StreamRef other = device_->createStream().value();
  const hal::BufferRef buffer = device_->allocate(8).value();
  ASSERT_TRUE(other->fill(buffer, 0, 8, 1));
  ASSERT_TRUE(other->synchronize());
  ASSERT_TRUE(launch("crash"));
  ASSERT_FALSE(stream_->synchronize());
  uint64_t value = 0;
  const auto lost = other->read(&value, buffer, 0, 8);
  ASSERT_FALSE(lost);
  EXPECT_NE(lost.error().message.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << lost.error().message;
  const hal::BufferRef fresh = device_->allocate(8).value();
  EXPECT_TRUE(other->fill(fresh, 0, 8, 2));
  EXPECT_TRUE(other->read(&value, fresh, 0, 8));
  EXPECT_EQ(value, 0x0202020202020202u);
}

TEST_P(CudaFaults, MoreLaunchesThanTheLogHoldsAllReport) {
  const hal::KernelRef check = device_->load(testing::kernelNamed("check")).value();
  const hal::BufferRef x = device_->allocate(4).value();
  const Tensor input{x, 0, artifact::ScalarType::I32, {1}, {}};
  const int32_t good = 5, bad = -1;
  ASSERT_TRUE(stream_->write(x, 0, &good, 4));
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(hal::launch(*device_, *stream_, check, std::vector<Argument>{input}));
  EXPECT_TRUE(stream_->synchronize());
  for (int faulty : {0, 1, 127, 128, 129, 255, 256, 300}) {
    // Only the launch after `faulty` good ones sees the bad value.
    for (int i = 0; i < faulty; ++i)
      ASSERT_TRUE(hal::launch(*device_, *stream_, check, std::vector<Argument>{input}));
    ASSERT_TRUE(stream_->write(x, 0, &bad, 4));
    ASSERT_TRUE(hal::launch(*device_, *stream_, check, std::vector<Argument>{input}));
    const auto failed = stream_->synchronize();
    ASSERT_FALSE(failed) << faulty;
    EXPECT_EQ(failed.error().message, "kernel 'check' stopped: E0701: value below zero (check.vx:12:5)");
    ASSERT_TRUE(stream_->write(x, 0, &good, 4));
    EXPECT_TRUE(stream_->synchronize());
  }
}

TEST_P(CudaFaults, PrintsBeyondTheSpaceOfALaunchAreCounted) {
  const hal::KernelRef talk = device_->load(testing::kernelNamed("talk")).value();
  uint64_t prints = 0;
  std::string last;
  hal::LaunchOptions options;
  options.print = [&](const artifact::Fault& format, std::span<const uint64_t> values) {
    prints += !values.empty();
    last = format.message;
  };
  constexpr int32_t kBlocks = 50000;
  ASSERT_TRUE(
      hal::launch(*device_, *stream_, talk, std::vector<Argument>{hal::conformance::scalarI32(kBlocks)}, options));
  ASSERT_TRUE(stream_->synchronize());
  EXPECT_EQ(prints, (uint64_t{1} << 17) / 3);
  EXPECT_NE(last.find("bytes of prints are lost"), std::string::npos) << last;
  // And several launches that print, more than there are areas.
  prints = 0;
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(hal::launch(*device_, *stream_, talk, std::vector<Argument>{hal::conformance::scalarI32(10)}, options));
  ASSERT_TRUE(stream_->synchronize());
  EXPECT_EQ(prints, 200u);
}

/// 0: as it should be; else the number of what was not.
static int crashOnTheGpu() {
  const hal::DeviceRef device = testing::openDevice(true).value();
  const hal::StreamRef stream = device->createStream().value();
  const hal::BufferRef buffer = device->allocate(8).value();
  if (!hal::launch(*device, *stream, device->load(testing::bareKernel("crash")).value(), {}))
    return 1;
  const auto failed = stream->synchronize();
  if (failed || failed.error().message.find("kernel 'crash' stopped: E0708: the device stopped") == std::string::npos)
    return 2;
  std::fprintf(stderr, "%s\n", failed.error().message.c_str());
  const auto again = device->allocate(8);
  const auto write = stream->fill(buffer, 0, 8, 1);
  if (again.ok() != write.ok() && again)
    return 0;  // a driver that allows a new context
  std::fprintf(stderr, "%s\n", again.error().message.c_str());
  if (again || again.error().message.find("no further use of 'cuda:") == std::string::npos)
    return 3;
  return 0;
}

TEST(CudaGpuDeathTest, AnIllegalAddressNamesTheKernelAndEndsInOrder) {
  if (const auto opened = testing::openDevice(true); !opened)
    GTEST_SKIP() << opened.error().message;
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has not touched the driver
  EXPECT_EXIT(std::exit(crashOnTheGpu()), ::testing::ExitedWithCode(0), "CUDA_ERROR_ILLEGAL_ADDRESS");
}

/// Copies that were queued before a wait or a record failed still use page-locked memory when their stream ends.
class CudaLateCopies : public ::testing::TestWithParam<std::tuple<std::vector<const char*>, int>> {};

TEST_P(CudaLateCopies, KeepTheirMemoryAndDisturbNoLaterOnes) {
  const auto& [failing, code] = GetParam();
  const StandIn& standIn = StandIn::get();
  standIn.reset();
  constexpr uint64_t kBytes = uint64_t{9} << 20;  // three chunks of staging memory
  for (const bool reads : {false, true}) {
    standIn.reset();
    {
      const hal::DeviceRef device = testing::openDevice(false).value();
      const hal::BufferRef buffer = device->allocate(kBytes).value();
      std::vector<uint8_t> values(kBytes, 7);
      const hal::StreamRef stream = device->createStream().value();
      standIn.set("delay", 2000);
      for (const char* symbol : failing)
        standIn.set((std::string("fail:") + symbol).c_str(), code);
      // Whether it fails depends on what had to be waited for.
      (void)(reads ? stream->read(values.data(), buffer, 0, kBytes) : stream->write(buffer, 0, values.data(), kBytes));
      if (code == 1) {
        standIn.set("fail:cuStreamSynchronize", 0);
        ASSERT_TRUE(stream->write(buffer, 0, values.data(), kBytes));
        std::vector<uint8_t> back(kBytes);
        ASSERT_TRUE(stream->read(back.data(), buffer, 0, kBytes));
        EXPECT_EQ(back, values);
      }
    }
    EXPECT_EQ(standIn.count("in use"), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Calls, CudaLateCopies,
    ::testing::Combine(::testing::Values(std::vector<const char*>{"cuEventRecord"},
                                         std::vector<const char*>{"cuEventSynchronize"},
                                         std::vector<const char*>{"cuEventRecord", "cuStreamSynchronize"},
                                         std::vector<const char*>{"cuEventSynchronize", "cuStreamSynchronize"}),
                       ::testing::Values(1, 700)));

TEST(CudaErrors, EveryCallThatFailsIsAnErrorAndLeaksNothing) {
  const StandIn& standIn = StandIn::get();
  standIn.reset();
  const auto session = []() -> Result<void> {
    auto device = testing::openDevice(false);
    if (!device)
      return device.takeError();
    auto stream = (*device)->createStream();
    if (!stream)
      return stream.takeError();
    auto kernel = (*device)->load(testing::kernelNamed("update"));
    if (!kernel)
      return kernel.takeError();
    auto buffer = (*device)->allocate(200 << 10);
    if (!buffer)
      return buffer.takeError();
    std::vector<int64_t> values(100 << 8, 1);
    if (auto done = (*stream)->write(*buffer, 0, values.data(), 200 << 10); !done)
      return done;
    const std::vector<Argument> arguments = {Tensor{*buffer, 0, artifact::ScalarType::I64, {100}, {}}, scalarI64(2),
                                             scalarI64(0)};
    if (auto done = hal::launch(**device, **stream, *kernel, arguments); !done)
      return done.takeError();
    (*stream)->beginRecording().value();
    if (auto done = hal::launch(**device, **stream, *kernel, arguments); !done)
      return done.takeError();
    if (auto done = (*stream)->replay((*stream)->endRecording().value()); !done)
      return done;
    return (*stream)->read(values.data(), *buffer, 0, 200 << 10);
  };
  ASSERT_TRUE(session());
  for (const char* symbol : {"cuInit",
                             "cuDevicePrimaryCtxRetain",
                             "cuStreamCreate",
                             "cuMemPoolCreate",
                             "cuMemHostRegister_v2",
                             "cuMemHostGetDevicePointer_v2",
                             "cuLinkCreate_v2",
                             "cuLinkAddData_v2",
                             "cuLinkComplete",
                             "cuModuleGetFunction",
                             "cuFuncGetAttribute",
                             "cuMemAllocFromPoolAsync",
                             "cuMemcpyHtoDAsync_v2",
                             "cuEventCreate",
                             "cuEventRecord",
                             "cuLaunchKernel",
                             "cuStreamBeginCapture_v2",
                             "cuStreamEndCapture",
                             "cuGraphInstantiateWithFlags",
                             "cuGraphLaunch",
                             "cuMemcpyDtoHAsync_v2",
                             "cuEventSynchronize",
                             "cuStreamSynchronize",
                             "cuModuleLoadData"}) {
    for (const int code : {1, 700}) {
      standIn.reset();
      const int64_t live = standIn.count("live");
      standIn.set((std::string("fail:") + symbol).c_str(), code);
      const auto done = session();
      EXPECT_FALSE(done) << symbol;
      if (!done && code == 1) {
        EXPECT_NE(done.error().message.find("CUDA_ERROR_INVALID_VALUE"), std::string::npos)
            << symbol << ": " << done.error().message;
      }
      if (code == 1) {
        standIn.reset();
        EXPECT_EQ(standIn.count("live"), live) << symbol;
      }
    }
  }
  standIn.reset();
  EXPECT_TRUE(session());
}

}  // namespace vortex::cuda
