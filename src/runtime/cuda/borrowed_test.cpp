// Memory and streams of another library in the same process: here that library is this test, which calls the driver itself.
#include "runtime/cuda/api.h"
#include "runtime/cuda/testdata/stand_in.h"

#include <gtest/gtest.h>

namespace vortex::hal::conformance {

namespace {

using cuda::Api;
using cuda::DevicePointer;
using cuda::StreamHandle;
using cuda::testing::StandIn;

class CudaBorrowed : public testing::Test {
protected:
  CudaBorrowed() {
    standIn_.reset();
    standIn_.set("devices", 2);
    ::setenv("VORTEX_LIBCUDA", StandIn::path().c_str(), 1);
    api_ = cuda::openApi().api;
    driver_ = cuda::createDriver({.useCache = false});
    devices_ = driver_->devices().value();
    cuda::ContextHandle context = nullptr;
    EXPECT_EQ(api_->primaryRetain(&context, 0), cuda::kSuccess);
    EXPECT_EQ(api_->contextPush(context), cuda::kSuccess);
    EXPECT_EQ(api_->streamCreate(&stream_, 0), cuda::kSuccess);
    EXPECT_EQ(api_->allocate(&memory_, 800), cuda::kSuccess);
  }
  ~CudaBorrowed() override {
    api_->free(memory_);
    if (stream_)
      api_->streamDestroy(stream_);
    cuda::ContextHandle context = nullptr;
    api_->contextPop(&context);
    standIn_.reset();
  }
  /// Adds `step` to each of the 100 numbers of the buffer.
  void update(Stream& stream, const BufferRef& buffer, int64_t step) {
    if (!kernel_)
      kernel_ = devices_[0]->load(cuda::testing::kernelNamed("update")).value();
    launch(
        *devices_[0], stream, kernel_,
        std::vector<Argument>{Tensor{buffer, 0, artifact::ScalarType::I64, {100}, {}}, scalarI64(1), scalarI64(step)})
        .value();
  }
  std::vector<int64_t> contents(DevicePointer memory) {
    std::vector<int64_t> values(100);
    EXPECT_EQ(api_->copyToHost(values.data(), memory, 800, stream_), cuda::kSuccess);
    EXPECT_EQ(api_->streamSynchronize(stream_), cuda::kSuccess);
    return values;
  }

  const StandIn& standIn_ = StandIn::get();
  std::shared_ptr<const Api> api_;
  std::unique_ptr<Driver> driver_;
  std::vector<DeviceRef> devices_;
  KernelRef kernel_;
  StreamHandle stream_ = nullptr;
  DevicePointer memory_ = 0;
};

TEST_F(CudaBorrowed, MemoryOfALentStreamIsFreedInItsOrderUntilItIsGivenBack) {
  StreamRef stream = devices_[0]->wrapStream(reinterpret_cast<uint64_t>(stream_)).value();
  BufferRef early = stream->allocate(*devices_[0], 800).value(), late = stream->allocate(*devices_[0], 800).value();
  EXPECT_EQ(standIn_.count("cuStreamSynchronize"), 0);
  for (const BufferRef& buffer : {early, late})
    update(*stream, buffer, 1);
  const int64_t events = standIn_.count("cuEventRecord");
  early.reset();
  EXPECT_EQ(standIn_.count("cuMemFreeAsync"), 1);
  EXPECT_EQ(standIn_.count("cuEventRecord"), events);
  stream.reset();
  api_->streamDestroy(std::exchange(stream_, nullptr));
  late.reset();
  EXPECT_EQ(standIn_.count("cuMemFreeAsync"), 2);
}

TEST_F(CudaBorrowed, MemoryForACapturedStreamIsNotItsGraphs) {
  const StreamRef stream = devices_[0]->wrapStream(reinterpret_cast<uint64_t>(stream_)).value();
  ASSERT_EQ(api_->captureBegin(stream_, cuda::kCaptureRelaxed), cuda::kSuccess);
  EXPECT_TRUE(stream->allocate(*devices_[0], 800));  // the stand-in refuses memory in the stream itself
  cuda::GraphHandle graph = nullptr;
  ASSERT_EQ(api_->captureEnd(stream_, &graph), cuda::kSuccess);
  api_->graphDestroy(graph);
}

TEST_F(CudaBorrowed, ACaptureOfAnotherLibraryMayBeTheFirstUseOfItsStreamAndKeepsItsMemory) {
  constexpr int kGlobal = 0;
  const BufferRef buffer = devices_[0]->wrapDevice(memory_, 800, nullptr).value();
  ASSERT_EQ(api_->fill(memory_, 0, 800, stream_), cuda::kSuccess);
  ASSERT_EQ(api_->streamSynchronize(stream_), cuda::kSuccess);
  ASSERT_EQ(api_->captureBegin(stream_, kGlobal), cuda::kSuccess);
  DevicePointer other = 0;
  EXPECT_NE(api_->allocate(&other, 8), cuda::kSuccess);  // as the driver has it
  const StreamRef stream = devices_[0]->wrapStream(reinterpret_cast<uint64_t>(stream_)).value();
  std::weak_ptr<hal::Buffer> own = stream->allocate(*devices_[0], 800).value();
  EXPECT_FALSE(own.expired());
  update(*stream, buffer, 3);
  cuda::GraphHandle graph = nullptr;
  ASSERT_EQ(api_->captureEnd(stream_, &graph), cuda::kSuccess);
  EXPECT_TRUE(stream->synchronize());
  const std::weak_ptr<LoadedKernel> kernel = std::exchange(kernel_, nullptr);
  EXPECT_FALSE(kernel.expired());
  cuda::GraphExecHandle exec = nullptr;
  ASSERT_EQ(api_->graphInstantiate(&exec, graph, 0), cuda::kSuccess);
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(api_->graphLaunch(exec, stream_), cuda::kSuccess);
  EXPECT_EQ(contents(memory_), std::vector<int64_t>(100, 6));
  EXPECT_FALSE(own.expired());
  api_->graphExecDestroy(exec);
  api_->graphDestroy(graph);
}

TEST_F(CudaBorrowed, KernelsWorkInMemoryAndStreamOfAnotherLibraryInItsOrder) {
  standIn_.set("delay", 300);
  bool isOwned = true;
  const std::shared_ptr<void> owner(&isOwned, [](void* flag) { *static_cast<bool*>(flag) = false; });
  BufferRef buffer = devices_[0]->wrapDevice(memory_, 800, owner).value();
  EXPECT_EQ(buffer->address(), memory_);
  const StreamRef stream = devices_[0]->wrapStream(reinterpret_cast<uint64_t>(stream_)).value();
  ASSERT_EQ(api_->fill(memory_, 0, 800, stream_), cuda::kSuccess);
  update(*stream, buffer, 3);
  ASSERT_EQ(api_->copyOnDevice(memory_ + 400, memory_, 400, stream_), cuda::kSuccess);
  update(*stream, buffer, 4);
  EXPECT_EQ(contents(memory_), std::vector<int64_t>(100, 7));
  EXPECT_EQ(owner.use_count(), 2);
  buffer.reset();
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_TRUE(isOwned);
}

TEST_F(CudaBorrowed, TheDriversDefaultStreamsMayBeLent) {
  const BufferRef buffer = devices_[0]->wrapDevice(memory_, 800, nullptr).value();
  for (const uint64_t handle : {0, 1, 2}) {  // the legacy one by both its names, that of the thread
    const StreamRef stream = devices_[0]->wrapStream(handle).value();
    ASSERT_TRUE(stream->fill(buffer, 0, 800, 0));
    update(*stream, buffer, static_cast<int64_t>(handle) + 5);
    ASSERT_TRUE(stream->synchronize());
    EXPECT_EQ(contents(memory_), std::vector<int64_t>(100, static_cast<int64_t>(handle) + 5));
  }
}

TEST_F(CudaBorrowed, TheEndOfABorrowedBufferWaitsForOwnStreamsAndFreesNothing) {
  standIn_.set("delay", 500);
  const StreamRef own = devices_[0]->createStream().value();
  const int64_t live = standIn_.count("live");
  {
    const BufferRef buffer = devices_[0]->wrapDevice(memory_, 800, nullptr).value();
    ASSERT_TRUE(own->fill(buffer, 0, 800, 0));
    update(*own, buffer, 9);
  }
  std::vector<int64_t> values(100);
  EXPECT_EQ(values = contents(memory_), std::vector<int64_t>(100, 9));  // nothing but the buffer's end was waited for
  EXPECT_EQ(standIn_.count("live"), live);
}

TEST_F(CudaBorrowed, ABufferMayOutliveTheStreamThatWasLent) {
  standIn_.set("delay", 500);
  const int64_t live = standIn_.count("live");
  {
    BufferRef own = devices_[0]->allocate(800).value();
    const BufferRef lent = devices_[0]->wrapDevice(memory_, 800, nullptr).value();
    StreamRef stream = devices_[0]->wrapStream(reinterpret_cast<uint64_t>(stream_)).value();
    ASSERT_TRUE(stream->fill(own, 0, 800, 0));
    ASSERT_TRUE(stream->copy(lent, 0, own, 0, 800));
    stream.reset();
    ASSERT_EQ(api_->streamDestroy(stream_), cuda::kSuccess);
    stream_ = nullptr;
    own.reset();  // freed behind the copy
  }
  EXPECT_EQ(api_->contextSynchronize(), cuda::kSuccess);
  EXPECT_EQ(standIn_.count("live"), live);
}

TEST_F(CudaBorrowed, AllocationsDoNotWaitForFreesBehindTheWorkOfALentStream) {
  const StreamRef stream = devices_[0]->wrapStream(reinterpret_cast<uint64_t>(stream_)).value();
  BufferRef own = devices_[0]->allocate(800).value();
  const EventRef behind = devices_[0]->createEvent().value();
  standIn_.set("delay", 10000);  // us for each operation: 20 s in all, if it is waited for
  for (int i = 0; i < 2000; ++i)
    ASSERT_TRUE(stream->fill(own, 0, 800, 0));
  ASSERT_TRUE(stream->record(behind));
  own.reset();
  EXPECT_TRUE(devices_[0]->allocate(800).ok());
  EXPECT_FALSE(behind->isComplete());
  standIn_.set("delay", 0);
  EXPECT_TRUE(stream->synchronize());
}

TEST_F(CudaBorrowed, MemoryOfTheHostOfOthersAndOfNobodyIsRefused) {
  int64_t host = 0;
  EXPECT_NE(devices_[0]
                ->wrapDevice(reinterpret_cast<uint64_t>(&host), 8, nullptr)
                .error()
                .message.find("are not memory of 'cuda:0'"),
            std::string::npos);
  EXPECT_NE(
      devices_[1]->wrapDevice(memory_, 800, nullptr).error().message.find("are memory of 'cuda:0', not of 'cuda:1'"),
      std::string::npos);
  EXPECT_FALSE(devices_[0]->wrapDevice(memory_ + 400, 800, nullptr)) << "the end lies outside";
  EXPECT_TRUE(devices_[0]->wrapDevice(0, 0, nullptr)) << "nothing";
  const BufferRef constant = devices_[0]->wrapDevice(memory_, 800, nullptr, true).value();
  EXPECT_NE(devices_[0]->createStream().value()->fill(constant, 0, 8, 1).error().message.find("constant memory"),
            std::string::npos);
}

TEST_F(CudaBorrowed, FaultsAreToldByTheNextCallThatWaits) {
  const StreamRef stream = devices_[0]->wrapStream(reinterpret_cast<uint64_t>(stream_)).value();
  const KernelRef check = devices_[0]->load(cuda::testing::kernelNamed("check")).value();
  const BufferRef buffer = devices_[0]->wrapDevice(memory_, 800, nullptr).value();
  ASSERT_EQ(api_->fill(memory_, 0xff, 800, stream_), cuda::kSuccess);  // -1 each
  launch(*devices_[0], *stream, check, std::vector<Argument>{Tensor{buffer, 0, artifact::ScalarType::I32, {200}, {}}})
      .value();
  const auto told = stream->synchronize();
  ASSERT_FALSE(told);
  EXPECT_NE(told.error().message.find("kernel 'check' stopped"), std::string::npos) << told.error().message;
  EXPECT_TRUE(stream->synchronize());
}

TEST_F(CudaBorrowed, ABorrowedStreamEndsWithTheContext) {
  const StreamRef stream = devices_[0]->wrapStream(reinterpret_cast<uint64_t>(stream_)).value();
  standIn_.set("fail:cuMemsetD8Async", cuda::kIllegalAddress);
  const BufferRef buffer = devices_[0]->wrapDevice(memory_, 800, nullptr).value();
  EXPECT_TRUE(stream->fill(buffer, 0, 8, 1));
  EXPECT_FALSE(stream->synchronize());
  const auto after = stream->fill(buffer, 0, 8, 1);
  ASSERT_FALSE(after);
  EXPECT_NE(after.error().message.find("stream of another library was lost"), std::string::npos)
      << after.error().message;
}

}  // namespace

}  // namespace vortex::hal::conformance
