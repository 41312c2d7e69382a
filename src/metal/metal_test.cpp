#include "metal/metal_fixture.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace vortex::metal::testing {

TEST_P(Metal, SharedMemoryIsSeenByKernelsAndByTheHostAfterThem) {
  const size_t n = 1003;
  const std::vector<float> x = randomNumbers(n);
  std::vector<float> expected = randomNumbers(n);
  const auto saxpy = pipeline(kSaxpy, "metal_saxpy");
  const auto bufferX = shared(x), bufferY = shared(expected);
  auto* y = static_cast<float*>(bufferY->contents());
  for (int round = 0; round < 3; ++round) {
    const float a = randomNumbers(1)[0];
    MTL::CommandBuffer* commands = queue->commandBuffer();
    MTL::ComputeCommandEncoder* encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(saxpy.get());
    encoder->setBuffer(bufferX.get(), 0, 0);
    encoder->setBuffer(bufferY.get(), 0, 1);
    encoder->setBytes(&a, sizeof a, 2);
    encoder->dispatchThreads(MTL::Size(n, 1, 1), MTL::Size(64, 1, 1));
    encoder->dispatchThreads(MTL::Size::Make(n, 1, 1), MTL::Size(64, 1, 1));
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    ASSERT_EQ(commands->status(), MTL::CommandBufferStatusCompleted) << errorOf(commands);
    EXPECT_GE(commands->GPUEndTime(), commands->GPUStartTime());
    for (size_t i = 0; i < n; ++i) {
      expected[i] += 2 * a * x[i];
      ASSERT_NEAR(y[i], expected[i], 1e-4 + 1e-4 * std::abs(expected[i])) << i;
    }
    for (size_t i = 0; i < n; ++i)  // the host writes between command buffers without saying so
      y[i] = expected[i] = static_cast<float>(round + static_cast<int>(i));
  }
}

TEST_P(Metal, OneBufferHoldsSeveralArrays) {
  const std::vector<float> values = randomNumbers(300);
  const auto saxpy = pipeline(kSaxpy, "metal_saxpy");
  const auto both = shared(values);
  const float a = 3;
  MTL::CommandBuffer* commands = queue->commandBuffer();
  MTL::ComputeCommandEncoder* encoder = commands->computeCommandEncoder();
  encoder->setComputePipelineState(saxpy.get());
  encoder->setBuffer(both.get(), 0, 0);
  encoder->setBuffer(both.get(), 0, 1);
  encoder->setBufferOffset(600, 1);
  encoder->setBytes(&a, sizeof a, 2);
  encoder->dispatchThreads({150, 1, 1}, {64, 1, 1});
  encoder->endEncoding();
  commands->commit();
  commands->waitUntilCompleted();
  EXPECT_EQ(errorOf(commands), "");
  const auto* after = static_cast<const float*>(both->contents());
  for (size_t i = 0; i < 150; ++i) {
    EXPECT_EQ(after[i], values[i]);
    EXPECT_NEAR(after[150 + i], values[150 + i] + 3 * values[i], 1e-5);
  }
}

TEST_P(Metal, BlitCopiesGoThroughPrivateMemory) {
  const std::vector<float> values = randomNumbers(256);
  const auto from = shared(values), to = shared(std::vector<float>(256, -1));
  const auto kept = NS::TransferPtr(device->newBuffer(2048, MTL::ResourceStorageModePrivate));
  const auto given = NS::TransferPtr(device->newBuffer(values.data(), 1024, MTL::ResourceStorageModePrivate));
  EXPECT_EQ(kept->contents(), nullptr);
  EXPECT_EQ(kept->storageMode(), MTL::StorageModePrivate);
  MTL::CommandBuffer* commands = queue->commandBuffer();
  MTL::BlitCommandEncoder* blit = commands->blitCommandEncoder();
  blit->copyFromBuffer(from.get(), 0, kept.get(), 1024, 512);
  blit->copyFromBuffer(given.get(), 512, kept.get(), 1536, 512);
  blit->copyFromBuffer(kept.get(), 1024, to.get(), 0, 1024);
  blit->fillBuffer(to.get(), NS::Range::Make(4, 4), 0);
  blit->endEncoding();
  commands->commit();
  commands->waitUntilCompleted();
  EXPECT_EQ(errorOf(commands), "");
  for (size_t i = 0; i < 256; ++i)
    EXPECT_EQ(static_cast<float*>(to->contents())[i], i == 1 ? 0 : values[i]);
}

TEST_P(Metal, CommandBuffersRunInTheOrderOfTheirCommitsAndTellTheirHandlers) {
  const auto cell = NS::TransferPtr(device->newBuffer(1 << 16, MTL::ResourceStorageModeShared));
  std::vector<int> told;
  std::vector<NS::SharedPtr<MTL::CommandBuffer>> all;
  for (int i = 0; i < 20; ++i) {
    auto commands = NS::RetainPtr(queue->commandBuffer());
    MTL::BlitCommandEncoder* blit = commands->blitCommandEncoder();
    blit->fillBuffer(cell.get(), NS::Range::Make(0, 1 << 16), static_cast<uint8_t>(i));
    blit->endEncoding();
    commands->addCompletedHandler([&told, i](MTL::CommandBuffer* done) {
      EXPECT_EQ(done->status(), MTL::CommandBufferStatusCompleted);
      done->waitUntilCompleted();  // returns: it is the one that is told of
      told.push_back(i);
    });
    all.push_back(commands);
  }
  for (auto& commands : all)
    commands->commit();
  all.back()->waitUntilCompleted();
  ASSERT_EQ(told.size(), 20u);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(told[static_cast<size_t>(i)], i);
  EXPECT_EQ(static_cast<uint8_t*>(cell->contents())[777], 19);
}

TEST_P(Metal, EnqueuedCommandBuffersRunInThatOrder) {
  const auto cell = shared({0});
  const auto filling = [&](uint8_t value) {
    MTL::CommandBuffer* commands = queue->commandBuffer();
    MTL::BlitCommandEncoder* blit = commands->blitCommandEncoder();
    blit->fillBuffer(cell.get(), NS::Range::Make(0, 4), value);
    blit->endEncoding();
    return NS::RetainPtr(commands);
  };
  std::vector<uint8_t> seen;
  const auto first = filling(1), second = filling(2);
  for (const auto& each : {first, second})
    each->addCompletedHandler([&](MTL::CommandBuffer*) { seen.push_back(static_cast<uint8_t*>(cell->contents())[0]); });
  first->enqueue();
  second->enqueue();
  first->enqueue();
  {
    auto* inner = NS::AutoreleasePool::alloc()->init();
    queue->commandBuffer()->enqueue();  // and is gone without a commit
    inner->release();
  }
  const auto third = filling(3);
  third->commit();
  second->commit();
  EXPECT_EQ(second->status(), MTL::CommandBufferStatusCommitted);
  EXPECT_EQ(third->status(), MTL::CommandBufferStatusCommitted);
  first->commit();
  third->waitUntilCompleted();
  EXPECT_EQ(second->status(), MTL::CommandBufferStatusCompleted);
  EXPECT_EQ(seen, (std::vector<uint8_t>{1, 2}));
  EXPECT_EQ(static_cast<uint8_t*>(cell->contents())[3], 3);
}

TEST_P(Metal, WhatWaitsBehindACommandBufferThatIsGoneRuns) {
  auto* inner = NS::AutoreleasePool::alloc()->init();
  queue->commandBuffer()->enqueue();
  const auto behind = NS::RetainPtr(queue->commandBuffer());
  behind->commit();
  EXPECT_EQ(behind->status(), MTL::CommandBufferStatusCommitted);
  inner->release();
  behind->waitUntilCompleted();
  EXPECT_EQ(behind->status(), MTL::CommandBufferStatusCompleted);
}

TEST_P(Metal, WhatWasCommittedIsDoneAlsoWhenNobodyHoldsIt) {
  std::atomic<int> done = 0;
  const auto cell = NS::TransferPtr(device->newBuffer(64, MTL::ResourceStorageModeShared));
  {
    auto* inner = NS::AutoreleasePool::alloc()->init();
    const auto own = NS::TransferPtr(device->newCommandQueue());
    MTL::CommandBuffer* commands = own->commandBuffer();
    MTL::BlitCommandEncoder* blit = commands->blitCommandEncoder();
    blit->fillBuffer(cell.get(), NS::Range::Make(0, 64), 7);
    blit->endEncoding();
    commands->addCompletedHandler([&](MTL::CommandBuffer*) { done = 1; });
    commands->commit();
    inner->release();
  }
  while (done == 0)
    std::this_thread::yield();
  EXPECT_EQ(static_cast<uint8_t*>(cell->contents())[63], 7);
}

TEST_P(Metal, LibrariesSayWhatTheyHave) {
  const auto from = library(kSaxpy);
  ASSERT_EQ(from->functionNames()->count(), 1u);
  EXPECT_TRUE(from->functionNames()->object<NS::String>(0)->isEqualToString(text("metal_saxpy")));
  const auto function = NS::TransferPtr(from->newFunction(text("metal_saxpy")));
  EXPECT_STREQ(function->name()->utf8String(), "metal_saxpy");
  EXPECT_EQ(function->device(), device);
  const auto made = NS::TransferPtr(device->newComputePipelineState(function.get(), nullptr));
  EXPECT_EQ(made->maxTotalThreadsPerThreadgroup(), 1024u);
  EXPECT_EQ(made->threadExecutionWidth(), 32u);
  const auto small = pipeline(
      "[[max_total_threads_per_threadgroup(64)]] kernel void metal_saxpy(device float* y [[buffer(1)]]) { y[0] = 1; }",
      "metal_saxpy");
  EXPECT_EQ(small->maxTotalThreadsPerThreadgroup(), 64u);
  EXPECT_EQ(made->staticThreadgroupMemoryLength(), 0u);
  EXPECT_EQ(made->device(), device);
}

TEST_P(Metal, ObjectsLiveAsLongAsTheyAreHeld) {
  auto* inner = NS::AutoreleasePool::alloc()->init();
  NS::String* kept = text("kept")->retain();
  EXPECT_EQ(kept->retainCount(), 2u);
  inner->release();
  EXPECT_EQ(kept->retainCount(), 1u);
  EXPECT_STREQ(kept->utf8String(), "kept");
  kept->release();
}

/// Kernels that the stand-in has no function for run on the CPU only.
class MetalOnCpu : public Metal {
protected:
  std::vector<uint32_t> run(const std::string& source, const MTL::FunctionConstantValues* constants, MTL::Size grid,
                            MTL::Size block, bool isInGroups, size_t words,
                            const MTL::CompileOptions* options = nullptr, NS::UInteger threadgroupBytes = 0) {
    NS::Error* error = nullptr;
    const auto from = NS::TransferPtr(device->newLibrary(text(source), options, &error));
    EXPECT_TRUE(from) << error->localizedDescription()->utf8String();
    const auto function = NS::TransferPtr(from->newFunction(text("k"), constants, &error));
    const auto made = NS::TransferPtr(device->newComputePipelineState(function.get(), &error));
    EXPECT_TRUE(made) << error->localizedDescription()->utf8String();
    const auto out = NS::TransferPtr(device->newBuffer(words * 4, MTL::ResourceStorageModeShared));
    MTL::CommandBuffer* commands = queue->commandBuffer();
    MTL::ComputeCommandEncoder* encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(made.get());
    encoder->setBuffer(out.get(), 0, 0);
    if (threadgroupBytes)
      encoder->setThreadgroupMemoryLength(threadgroupBytes, 0);
    if (isInGroups)
      encoder->dispatchThreadgroups(grid, block);
    else
      encoder->dispatchThreads(grid, block);
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    EXPECT_EQ(errorOf(commands), "");
    const auto* first = static_cast<const uint32_t*>(out->contents());
    return {first, first + words};
  }
};

TEST_P(MetalOnCpu, ThreadgroupsAtTheEdgesAreSmaller) {
  const char* source = "kernel void k(device uint* out [[buffer(0)]], uint2 i [[thread_position_in_grid]], uint2 size "
                       "[[threads_per_threadgroup]], uint2 all [[threads_per_grid]]) { out[i.y * all.x + i.x] = size.x "
                       "* 100 + size.y; }";
  const auto edges = run(source, nullptr, {7, 5, 1}, {4, 2, 1}, false, 35);
  for (uint32_t y = 0; y < 5; ++y)
    for (uint32_t x = 0; x < 7; ++x)
      EXPECT_EQ(edges[y * 7 + x], (x < 4 ? 400 : 300) + (y < 4 ? 2u : 1u));
  const auto whole = run(source, nullptr, {2, 3, 1}, {4, 2, 1}, true, 48);
  EXPECT_EQ(whole, std::vector<uint32_t>(48, 402));
}

TEST_P(MetalOnCpu, BuffersOfConstantsThatAreOffNeedNotBeSet) {
  const char* source =
      "constant bool isOn [[function_constant(5)]];\n"
      "kernel void k(device uint* out [[buffer(0)]], device const uint* more [[buffer(1), "
      "function_constant(isOn)]], uint i [[thread_position_in_grid]]) { out[i] = isOn ? more[i] : 7; }";
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const bool isOn = false;
  values->setConstantValue(&isOn, MTL::DataTypeBool, NS::UInteger{5});
  EXPECT_EQ(run(source, values.get(), {3, 1, 1}, {2, 1, 1}, false, 3), std::vector<uint32_t>(3, 7));
}

TEST_P(MetalOnCpu, FunctionConstantsAreGivenByIndexAndByName) {
  const char* source = "constant uint factor [[function_constant(3)]];\nconstant bool isOn [[function_constant(5)]];\n"
                       "kernel void k(device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = "
                       "isOn ? i * factor : 1; }";
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const uint32_t factor = 1 + static_cast<uint32_t>(random_()) % 1000;
  const bool isOn = true, isOff = false;
  values->setConstantValue(&factor, MTL::DataTypeUInt, NS::UInteger{3});
  values->setConstantValue(&isOn, MTL::DataTypeBool, text("isOn"));
  EXPECT_EQ(run(source, values.get(), {4, 1, 1}, {4, 1, 1}, false, 4),
            (std::vector<uint32_t>{0, factor, 2 * factor, 3 * factor}));
  values->setConstantValue(&isOff, MTL::DataTypeBool, text("isOn"));
  EXPECT_EQ(run(source, values.get(), {4, 1, 1}, {4, 1, 1}, false, 4), std::vector<uint32_t>(4, 1));
}

TEST_P(MetalOnCpu, FunctionConstantsHaveTheSizeAndTheSignOfTheirType) {
  const char* source = "constant char a [[function_constant(0)]];\nconstant short b [[function_constant(1)]];\n"
                       "constant short c [[function_constant(2)]];\nconstant ushort d [[function_constant(3)]];\n"
                       "constant long e [[function_constant(4)]];\nconstant uchar f [[function_constant(5)]];\n"
                       "constant uchar g [[function_constant(6)]];\n"
                       "kernel void k(device int* out [[buffer(0)]]) { out[0] = a; out[1] = b; out[2] = c; out[3] = d; "
                       "out[4] = e >> 20; out[5] = f * 1000 + g; }";
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const int8_t a = -3;
  const int16_t shorts[] = {-300, 301};
  const uint16_t d = 65533;
  const int64_t e = -(int64_t{7} << 40);
  const uint8_t bytes[] = {250, 251};
  values->setConstantValue(&a, MTL::DataTypeChar, NS::UInteger{0});
  values->setConstantValues(shorts, MTL::DataTypeShort, NS::Range::Make(1, 2));
  values->setConstantValue(&d, MTL::DataTypeUShort, NS::UInteger{3});
  values->setConstantValue(&e, MTL::DataTypeLong, NS::UInteger{4});
  values->setConstantValues(bytes, MTL::DataTypeUChar, NS::Range::Make(5, 2));
  const std::vector<uint32_t> got = run(source, values.get(), {1, 1, 1}, {1, 1, 1}, false, 6);
  EXPECT_EQ((std::vector<int32_t>(got.begin(), got.end())),
            (std::vector<int32_t>{-3, -300, 301, 65533, -7 * (1 << 20), 250251}));
}

/// Every float: beyond the integers that constants of 64 bits are limited to.
TEST_P(MetalOnCpu, FloatConstantsKeepTheirBits) {
  const char* source = "#include <metal_stdlib>\nconstant float c [[function_constant(0)]];\n"
                       "kernel void k(device uint* out [[buffer(0)]]) { out[0] = metal::as_type<uint>(c); }";
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  for (const float value : {1e30f, -3.4e38f, 1e-42f, -0.0f, std::numeric_limits<float>::infinity()}) {
    values->setConstantValue(&value, MTL::DataTypeFloat, NS::UInteger{0});
    EXPECT_EQ(run(source, values.get(), {1, 1, 1}, {1, 1, 1}, false, 1),
              std::vector<uint32_t>{std::bit_cast<uint32_t>(value)});
  }
}

TEST_P(MetalOnCpu, OptionsReachTheSource) {
  const char* source =
      "kernel void k(device uint* out [[buffer(0)]]) { out[0] = N * T(2); out[1] = __METAL_VERSION__; }";
  const auto options = NS::TransferPtr(MTL::CompileOptions::alloc()->init());
  options->setLanguageVersion(MTL::LanguageVersion3_1);
  const NS::Object *values[] = {NS::Number::number(21), text("half")}, *names[] = {text("N"), text("T")};
  options->setPreprocessorMacros(NS::Dictionary::dictionary(values, names, 2));
  EXPECT_EQ(run(source, nullptr, {1, 1, 1}, {1, 1, 1}, false, 2, options.get()), (std::vector<uint32_t>{42, 310}));
}

TEST_P(MetalOnCpu, ThreadgroupMemoryHasTheLengthThatIsSet) {
  const char* source = "#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device uint* out [[buffer(0)]], "
                       "threadgroup uint* "
                       "t [[threadgroup(0)]], uint i [[thread_position_in_threadgroup]]) { t[i] = i; "
                       "threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = t[31 - i]; }";
  const auto turned = run(source, nullptr, {32, 1, 1}, {32, 1, 1}, false, 32, nullptr, 128);
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(turned[i], 31 - i);
}

TEST_P(Metal, ACaptureHasAnEventForEachDispatch) {
  const auto path = std::filesystem::temp_directory_path() / ("capture." + std::to_string(random_()) + ".gputrace");
  const auto descriptor = NS::TransferPtr(MTL::CaptureDescriptor::alloc()->init());
  descriptor->setCaptureObject(queue.get());
  descriptor->setDestination(MTL::CaptureDestinationGPUTraceDocument);
  descriptor->setOutputURL(NS::URL::fileURLWithPath(text(path.string())));
  MTL::CaptureManager* manager = MTL::CaptureManager::sharedCaptureManager();
  NS::Error* error = nullptr;
  ::unsetenv("MTL_CAPTURE_ENABLED");
  EXPECT_FALSE(manager->startCapture(descriptor.get(), &error));
  EXPECT_NE(std::string(error->localizedDescription()->utf8String()).find("MTL_CAPTURE_ENABLED=1"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".json"));
  ::setenv("MTL_CAPTURE_ENABLED", "1", 1);
  ASSERT_TRUE(manager->startCapture(descriptor.get(), &error)) << error->localizedDescription()->utf8String();
  EXPECT_TRUE(manager->isCapturing());
  const auto saxpy = pipeline(kSaxpy, "metal_saxpy");
  const auto x = shared(randomNumbers(100)), y = shared(randomNumbers(100));
  MTL::CommandBuffer* commands = queue->commandBuffer();
  MTL::ComputeCommandEncoder* encoder = commands->computeCommandEncoder();
  encoder->setComputePipelineState(saxpy.get());
  encoder->setBuffer(x.get(), 0, 0);
  encoder->setBuffer(y.get(), 0, 1);
  encoder->setBuffer(x.get(), 4, 2);
  for (int i = 0; i < 3; ++i)
    encoder->dispatchThreads({100, 1, 1}, {32, 1, 1});
  encoder->endEncoding();
  commands->commit();
  commands->waitUntilCompleted();
  EXPECT_EQ(errorOf(commands), "");
  EXPECT_FALSE(manager->startCapture(descriptor.get(), nullptr)) << "one is running";
  manager->stopCapture();
  std::stringstream trace;
  trace << std::ifstream(path.string() + ".json").rdbuf();
  size_t events = 0;
  for (size_t at = 0; (at = trace.str().find("\"ph\": \"X\"", at)) != std::string::npos; ++at)
    ++events;
  EXPECT_EQ(events, 3u) << trace.str();
  EXPECT_NE(trace.str().find("\"threadgroups\": [4, 1, 1]"), std::string::npos);
  std::filesystem::remove(path.string() + ".json");
}

INSTANTIATE_TEST_SUITE_P(Devices, Metal, ::testing::Values("cpu", "cuda"), [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Devices, MetalOnCpu, ::testing::Values("cpu"), [](const auto& info) { return info.param; });

}  // namespace vortex::metal::testing
