#include "runtime/cuda/cuda_driver.h"

#include "runtime/cuda/api.h"
#include "runtime/cuda/testdata/stand_in.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

namespace vortex::hal::conformance {

namespace {

using cuda::testing::StandIn;

template <int delay, int pools> Result<DeviceRef> create(uint64_t memoryLimit) {
  StandIn::get().set("delay", delay);
  StandIn::get().set("pools", pools);
  return cuda::testing::openDevice(false, {.memoryBytes = memoryLimit, .useCache = false});
}

Result<DeviceRef> createReal(uint64_t memoryLimit) {
  return cuda::testing::openDevice(true, {.memoryBytes = memoryLimit, .useCache = false});
}

std::vector<DriverUnderTest> drivers() {
  std::vector<DriverUnderTest> all = {{"stand_in", create<0, 1>, cuda::testing::addCode},
                                      {"slow", create<200, 1>, cuda::testing::addCode},
                                      {"without_pools", create<0, 0>, cuda::testing::addCode}};
  if (createReal(0))
    all.push_back({"gpu", createReal, cuda::testing::addCode});
  return all;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Cuda, Conformance, testing::ValuesIn(drivers()),
                         [](const auto& info) { return info.param.name; });

class CudaDriver : public testing::Test {
protected:
  CudaDriver() { standIn_.reset(); }
  ~CudaDriver() override { standIn_.reset(); }
  static std::unique_ptr<Driver> make() {
    ::setenv("VORTEX_LIBCUDA", StandIn::path().c_str(), 1);
    return cuda::createDriver({.useCache = false});
  }
  const StandIn& standIn_ = StandIn::get();
};

TEST_F(CudaDriver, AMachineWithoutTheLibraryHasNoDeviceAndSaysWhy) {
  ::unsetenv("VORTEX_LIBCUDA");
  if (::dlopen("libcuda.so.1", RTLD_NOW))
    GTEST_SKIP() << "this machine has the library";
  DriverList drivers;
  drivers.add(cuda::createDriver());
  std::vector<Error> problems;
  EXPECT_TRUE(drivers.devices(&problems).empty());
  EXPECT_TRUE(problems.empty());
  EXPECT_NE(drivers.find("cuda:0").error().message.find("no NVIDIA driver is installed"), std::string::npos);
}

TEST_F(CudaDriver, AMachineWithoutAGpuHasNoDevice) {
  standIn_.set("devices", 0);
  EXPECT_TRUE(make()->devices().value().empty());
}

TEST_F(CudaDriver, ALibraryThatDoesNotStartIsAnError) {
  standIn_.set("fail:cuInit", 803);
  const auto devices = make()->devices();
  ASSERT_FALSE(devices);
  EXPECT_NE(devices.error().message.find("the NVIDIA driver does not start"), std::string::npos);
  ::setenv("VORTEX_LIBCUDA", "/nonexistent/libcuda.so", 1);
  EXPECT_NE(cuda::createDriver()->devices().error().message.find("/nonexistent/libcuda.so"), std::string::npos);
  // libm is a library without a single one of the functions.
  ::setenv("VORTEX_LIBCUDA", "libm.so.6", 1);
  EXPECT_NE(cuda::createDriver()->devices().error().message.find("no function cuInit"), std::string::npos);
}

TEST_F(CudaDriver, EveryGpuIsADeviceAndAnIndexBeyondThemIsAnError) {
  standIn_.set("devices", 3);
  DriverList drivers;
  drivers.add(make());
  const std::vector<DeviceRef> devices = drivers.devices();
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[2]->info().name, "cuda:2");
  EXPECT_EQ(devices[2]->info().target, "sm_90");
  EXPECT_EQ(devices[2]->info().maxSharedBytes, 232448u);
  EXPECT_EQ(drivers.find("cuda").value(), devices[0]);
  EXPECT_EQ(drivers.find("cuda:7").error().message,
            "there is no device 'cuda:7'; this machine has: cuda:0, cuda:1, cuda:2");
}

/// Several devices work at once, each from threads that switch between them, and take nothing of each other's.
void useAll(const std::vector<DeviceRef>& devices) {
  ASSERT_GE(devices.size(), 2u);
  struct User {
    StreamRef stream;
    KernelRef kernel;
    BufferRef buffer;
  };
  std::vector<User> users;
  for (const DeviceRef& device : devices)
    users.push_back({device->createStream().value(), device->load(cuda::testing::kernelNamed("update")).value(),
                     device->allocate(800).value()});
  std::vector<int64_t> values(100);
  for (size_t i = 0; i < users.size(); ++i) {
    values.assign(100, static_cast<int64_t>(i));
    ASSERT_TRUE(users[i].stream->write(users[i].buffer, 0, values.data(), 800));
  }
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round)
        for (size_t i = 0; i < users.size(); ++i)
          launch(*devices[i], *users[i].stream, users[i].kernel,
                 std::vector<Argument>{Tensor{users[i].buffer, 0, artifact::ScalarType::I64, {100}, {}}, scalarI64(1),
                                       scalarI64(static_cast<int64_t>(i) + 1)})
              .value();
    });
  for (std::thread& thread : threads)
    thread.join();
  for (size_t i = 0; i < users.size(); ++i) {
    ASSERT_TRUE(users[i].stream->read(values.data(), users[i].buffer, 0, 800));
    EXPECT_EQ(values, std::vector<int64_t>(100, static_cast<int64_t>(i + 400 * (i + 1))));
  }
  const auto foreign = users[0].stream->copy(users[0].buffer, 0, users[1].buffer, 0, 8);
  ASSERT_FALSE(foreign);
  EXPECT_NE(foreign.error().message.find("belongs to another device"), std::string::npos) << foreign.error().message;
  EXPECT_FALSE(users[0].stream->wait(devices[1]->createEvent().value()));
  EXPECT_FALSE(users[0].stream->submit(
      prepare(*devices[1], users[1].kernel,
              std::vector<Argument>{Tensor{users[1].buffer, 0, artifact::ScalarType::I64, {100}, {}}, scalarI64(1),
                                    scalarI64(1)})
          .value()));
}

TEST_F(CudaDriver, SeveralGpusWorkAtOnce) {
  standIn_.set("devices", 3);
  const auto driver = make();
  useAll(driver->devices().value());
}

TEST(CudaGpu, SeveralGpusWorkAtOnce) {
  ::unsetenv("VORTEX_LIBCUDA");
  const auto driver = cuda::createDriver({.useCache = false});
  const auto devices = driver->devices();
  if (!devices || devices->size() < 2)
    GTEST_SKIP() << "fewer than two GPUs";
  useAll(*devices);
}

TEST_F(CudaDriver, BuffersMayOutliveTheirDeviceAndNothingLeaks) {
  const int64_t before = standIn_.count("live");
  {
    DeviceRef device = cuda::testing::openDevice(false).value();
    StreamRef stream = device->createStream().value();
    BufferRef first = device->allocate(1000).value(), second = device->allocate(2000).value();
    ASSERT_TRUE(stream->copy(second, 0, first, 0, 1000));
    ASSERT_TRUE(
        device->createStream().value()->copy(device->allocate(1000).value(), 0, first, 0, 1000));  // a second user
    device.reset();
    first.reset();
    ASSERT_TRUE(stream->fill(second, 0, 2000, 3));
    EXPECT_TRUE(stream->synchronize());
  }
  EXPECT_EQ(standIn_.count("live"), before);
}

TEST_F(CudaDriver, AFullDeviceWaitsForPendingFreesBeforeItRefuses) {
  standIn_.set("memory", 10 << 20);
  standIn_.set("delay", 2000);
  const DeviceRef device = cuda::testing::openDevice(false).value();
  const StreamRef stream = device->createStream().value();
  for (int i = 0; i < 10; ++i) {
    const auto buffer = device->allocate(6 << 20);
    ASSERT_TRUE(buffer) << buffer.error().message;
    ASSERT_TRUE(stream->fill(*buffer, 0, 6 << 20, 1));
  }
  const auto tooMuch = device->allocate(11 << 20);
  ASSERT_FALSE(tooMuch);
  EXPECT_NE(tooMuch.error().message.find("11534336 bytes requested"), std::string::npos) << tooMuch.error().message;
  EXPECT_NE(tooMuch.error().message.find("of 10485760"), std::string::npos) << tooMuch.error().message;
}

TEST_F(CudaDriver, LargeCopiesGoThroughPinnedMemoryInOrder) {
  const DeviceRef device = cuda::testing::openDevice(false).value();
  const StreamRef stream = device->createStream().value();
  standIn_.set("delay", 500);
  std::vector<uint32_t> values(5'000'000), back(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<uint32_t>(i * 2654435761u);
  const BufferRef buffer = device->allocate(values.size() * 4 + 3).value();
  std::vector<uint32_t> given = values;
  ASSERT_TRUE(stream->write(buffer, 3, given.data(), given.size() * 4));
  std::fill(given.begin(), given.end(), 0);  // free to change at once
  ASSERT_TRUE(stream->read(back.data(), buffer, 3, back.size() * 4));
  EXPECT_TRUE(back == values);
}

TEST_F(CudaDriver, LimitsAreCheckedBeforeAnythingIsLaunched) {
  const DeviceRef device = cuda::testing::openDevice(false).value();
  const StreamRef stream = device->createStream().value();
  const auto launchError = [&](const std::function<void(artifact::Phase&, size::Table&)>& change) {
    auto kernel = cuda::testing::bareKernel("sparse");
    change(kernel->phases[0], kernel->sizes);
    const auto result = launch(*device, *stream, device->load(kernel).value(), {});
    return result ? "no error" : result.error().message;
  };
  const auto expect = [&](const std::function<void(artifact::Phase&, size::Table&)>& change, const char* part) {
    const std::string message = launchError(change);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect([&](auto& phase, auto& sizes) { phase.hardwareThreads = sizes.constant(1056); },
         "1056 hardware threads per block, the device allows 1024");
  expect([&](auto& phase, auto& sizes) { phase.block[0] = sizes.constant(0); }, "0 threads per block");
  expect([&](auto& phase, auto& sizes) { phase.sharedBytes = sizes.constant(300000); },
         "the device has 232448 of shared memory");
  expect([&](auto& phase, auto& sizes) { phase.grid[1] = sizes.constant(70000); },
         "70000 blocks in y, the device allows 65535");
  EXPECT_EQ(standIn_.count("cuLaunchKernel"), 0);
  EXPECT_EQ(launchError([&](auto& phase, auto& sizes) { phase.sharedBytes = sizes.constant(200000); }),
            "no error");  // asked for, once
  EXPECT_EQ(launchError([&](auto& phase, auto& sizes) { phase.block[0] = sizes.constant(2048); }),
            "no error");  // of which each hardware thread runs several
  EXPECT_EQ(standIn_.count("cuFuncSetAttribute"), 1);
}

TEST_F(CudaDriver, KernelsThatRunNothingNeedNoCode) {
  const DeviceRef device = cuda::testing::openDevice(false).value();
  const StreamRef stream = device->createStream().value();
  auto kernel = cuda::testing::bareKernel("sparse");
  kernel->phases.clear();
  kernel->steps = artifact::inOrder(0);
  kernel->code.clear();
  const auto loaded = device->load(kernel);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto launched = launch(*device, *stream, *loaded, {});
  ASSERT_TRUE(launched) << launched.error().message;
  EXPECT_EQ(standIn_.count("cuLaunchKernel"), 0);
}

TEST_F(CudaDriver, ALaunchNeitherAllocatesNorWaits) {
  const DeviceRef device = cuda::testing::openDevice(false).value();
  const StreamRef stream = device->createStream().value();
  const KernelRef kernel = device->load(cuda::testing::kernelNamed("scale")).value();
  const BufferRef x = device->allocate(400).value(), y = device->allocate(400).value();
  const std::vector<Argument> arguments = {Tensor{x, 0, artifact::ScalarType::F32, {100}, {}}, scalarF32(2)};
  const LaunchOptions options{.results = {Tensor{y, 0, artifact::ScalarType::F32, {100}, {}}}};
  const Launch prepared = prepare(*device, kernel, arguments, options).value();
  const auto calls = [&] {
    return standIn_.count("cuStreamSynchronize") + standIn_.count("cuMemAllocFromPoolAsync") +
           standIn_.count("cuEventSynchronize") + standIn_.count("cuMemHostRegister_v2");
  };
  const int64_t before = calls();
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(stream->submit(prepared));
  EXPECT_EQ(calls(), before);
  EXPECT_EQ(standIn_.count("cuLaunchKernel"), 100);
}

TEST_F(CudaDriver, ResultsOfLaunchesComeFromTheStreamsMemoryWithoutWaiting) {
  const DeviceRef device = cuda::testing::openDevice(false).value();
  const StreamRef stream = device->createStream().value();
  const KernelRef kernel = device->load(cuda::testing::kernelNamed("scale")).value();
  const std::vector<float> values(100, 3);
  const BufferRef x = device->allocate(400).value();
  ASSERT_TRUE(stream->write(x, 0, values.data(), 400));
  const std::vector<Argument> arguments = {Tensor{x, 0, artifact::ScalarType::F32, {100}, {}}, scalarF32(2)};
  ASSERT_TRUE(launch(*device, *stream, kernel, arguments));
  const std::map<std::string, int64_t> perLaunch = {
      {"cuMemAllocFromPoolAsync", 1}, {"cuMemFreeAsync", 1}, {"cuLaunchKernel", 1},   {"cuStreamSynchronize", 0},
      {"cuEventRecord", 0},           {"cuEventCreate", 0},  {"cuStreamWaitEvent", 0}};
  std::map<std::string, int64_t> before;
  for (const auto& [symbol, calls] : perLaunch)
    before[symbol] = standIn_.count(symbol.c_str());
  for (int i = 0; i < 99; ++i)
    ASSERT_TRUE(launch(*device, *stream, kernel, arguments));
  const std::vector<Tensor> last = launch(*device, *stream, kernel, arguments).value();
  for (const auto& [symbol, calls] : perLaunch)
    EXPECT_EQ(standIn_.count(symbol.c_str()) - before[symbol], symbol == "cuMemFreeAsync" ? 99 : 100 * calls) << symbol;
  std::vector<float> out(100);
  ASSERT_TRUE(stream->read(out.data(), last[0].buffer, 0, 400));
  EXPECT_EQ(out, std::vector<float>(100, 6));
}

TEST_F(CudaDriver, ResultsOfAStreamAreReadByOthersBehindItAndOutliveIt) {
  standIn_.set("delay", 200);
  const DeviceRef device = cuda::testing::openDevice(false).value();
  const KernelRef kernel = device->load(cuda::testing::kernelNamed("scale")).value();
  const std::vector<float> values(100, 3);
  for (int round = 0; round < 10; ++round) {
    StreamRef first = device->createStream().value();
    const StreamRef second = device->createStream().value();
    const EventRef event = device->createEvent().value();
    BufferRef x = device->allocate(400).value();
    ASSERT_TRUE(first->write(x, 0, values.data(), 400));
    std::vector<Tensor> doubled =
        launch(*device, *first, kernel,
               std::vector<Argument>{Tensor{std::exchange(x, nullptr), 0, artifact::ScalarType::F32, {100}, {}},
                                     scalarF32(2)})
            .value();
    ASSERT_TRUE(first->record(event) && second->wait(event));
    if (round % 2 == 0)
      first.reset();
    doubled = launch(*device, *second, kernel, std::vector<Argument>{doubled[0], scalarF32(5)}).value();
    std::vector<float> out(100);
    ASSERT_TRUE(second->read(out.data(), doubled[0].buffer, 0, 400));
    EXPECT_EQ(out, std::vector<float>(100, 30));
  }
  EXPECT_EQ(standIn_.count("live"), 0);
}

TEST_F(CudaDriver, MemoryOfRecordedLaunchesIsNotTheStreams) {
  const DeviceRef device = cuda::testing::openDevice(false).value();
  const StreamRef stream = device->createStream().value();
  const int64_t before = standIn_.count("cuStreamSynchronize");
  const BufferRef own = stream->allocate(*device, 400).value();
  EXPECT_EQ(standIn_.count("cuStreamSynchronize"), before);
  ASSERT_TRUE(stream->beginRecording());
  const BufferRef recorded = stream->allocate(*device, 400).value();
  EXPECT_EQ(standIn_.count("cuStreamSynchronize"), before + 1);  // every stream's when it is there
  ASSERT_TRUE(stream->endRecording());
}

TEST_F(CudaDriver, WhatIsOutOfMemoryIsToldWithoutReadingMessages) {
  const DeviceRef device = cuda::testing::openDevice(false).value();
  const Result<BufferRef> most = device->allocate(uint64_t{1} << 60);
  ASSERT_FALSE(most);
  EXPECT_EQ(most.error().kind, ErrorKind::OutOfMemory);
  standIn_.set("fail:cuModuleLoadData", 2);
  const KernelRef kernel = device->load(cuda::testing::kernelNamed("scale")).value();
  const Tensor x{device->allocate(4).value(), 0, artifact::ScalarType::F32, {1}, {}};
  const auto launched = launch(*device, *device->createStream().value(), kernel, {{x, scalarF32(2)}});
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().kind, ErrorKind::OutOfMemory) << launched.error().message;
  EXPECT_TRUE(launched.error().message.starts_with("cannot l")) << launched.error().message;
}

TEST_F(CudaDriver, AFullDeviceWaitsForFreesOfStreamsToo) {
  const DeviceRef device = cuda::testing::openDevice(false).value();
  const StreamRef stream = device->createStream().value();
  standIn_.set("fail:cuMemAllocFromPoolAsync", 2);  // out of memory, once
  EXPECT_TRUE(stream->allocate(*device, 400));
  EXPECT_EQ(standIn_.count("cuMemPoolTrimTo"), 1);
}

/// The driver's own launch of the same code, without anything of ours: microseconds each.
double rawLaunchMicroseconds(int launches) {
  const cuda::ApiSearch search = cuda::openApi();
  const cuda::Api& api = *search.api;
  cuda::ContextHandle context = nullptr;
  cuda::StreamHandle stream = nullptr;
  cuda::ModuleHandle module = nullptr;
  cuda::FunctionHandle function = nullptr;
  uint64_t slots[8] = {};
  void* parameters[] = {slots};
  api.primaryRetain(&context, 0);
  api.contextPush(context);
  EXPECT_EQ(api.streamCreate(&stream, cuda::kStreamNonBlocking), cuda::kSuccess);
  EXPECT_EQ(api.moduleLoad(&module, cuda::testing::conformancePtx().c_str()), cuda::kSuccess);
  EXPECT_EQ(api.moduleFunction(&function, module, "scale"), cuda::kSuccess);
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    api.streamSynchronize(stream);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i)
      api.launch(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
    best = std::min(best, elapsed.count() / launches);
  }
  api.streamSynchronize(stream);
  api.streamDestroy(stream);
  api.moduleUnload(module);
  api.contextPop(&context);
  api.primaryRelease(0);
  return best;
}

/// Not a timed test: prints what a launch costs beside the driver's own call, for whoever looks. The kernel has no element to work on.
TEST(CudaGpu, LaunchesOfTinyKernelsAreCheap) {
  const auto opened = cuda::testing::openDevice(true);
  if (!opened)
    GTEST_SKIP() << opened.error().message;
  const DeviceRef device = *opened;
  const StreamRef stream = device->createStream().value();
  auto artifact = cuda::testing::kernelNamed("scale");
  artifact->constraints.clear();
  artifact->phases[0].grid[0] = artifact->sizes.constant(1);
  const KernelRef loaded = device->load(artifact).value();
  const BufferRef x = device->allocate(4096).value(), y = device->allocate(4096).value();
  const std::vector<Argument> arguments = {Tensor{x, 0, artifact::ScalarType::F32, {0}, {}}, scalarF32(1)};
  const LaunchOptions options{.results = {Tensor{y, 0, artifact::ScalarType::F32, {0}, {}}}};
  const Launch prepared = prepare(*device, loaded, arguments, options).value();
  constexpr int kLaunches = 500;  // fewer than the device queues: the host is measured, not the device
  const auto time = [&](const char* what, const auto& work) {
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      ASSERT_TRUE(stream->synchronize());
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kLaunches; ++i)
        work();
      const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
      best = std::min(best, elapsed.count() / kLaunches);
    }
    std::printf("%-24s %.3f us per launch\n", what, best);
  };
  std::printf("%-24s %.3f us per launch\n", "the driver's own", rawLaunchMicroseconds(kLaunches));
  time("prepare", [&] { (void)prepare(*device, loaded, arguments, options); });
  time("submit", [&] { (void)stream->submit(prepared); });
  time("launch", [&] { (void)launch(*device, *stream, loaded, arguments, options); });
  time("launch and synchronize",
       [&] { (void)launch(*device, *stream, loaded, arguments, options), (void)stream->synchronize(); });
  constexpr int kRecorded = 20;
  ASSERT_TRUE(stream->beginRecording());
  for (int i = 0; i < kRecorded; ++i)
    ASSERT_TRUE(stream->submit(prepared));
  const GraphRef graph = stream->endRecording().value();
  ASSERT_TRUE(stream->replay(graph));
  time("replay of 20 launches", [&] { (void)stream->replay(graph); });
  time("update one of them, replay", [&] { (void)graph->update(7, prepared), (void)stream->replay(graph); });
  time("allocate and free", [&] { (void)device->allocate(1 << 20); });
}

}  // namespace vortex::hal::conformance
