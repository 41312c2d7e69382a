// Each way to use the interface wrongly: an error that names the call, and nothing is run.
#include "metal/metal_fixture.h"

namespace vortex::metal::testing {

class MetalMisuse : public Metal {
protected:
  /// Encodes with everything set right, then what `change` does, then a dispatch unless the encoder has ended.
  std::string errorAfter(const std::function<void(MTL::CommandBuffer*, MTL::ComputeCommandEncoder*)>& change) {
    const std::vector<float> before = randomNumbers(100);
    const auto saxpy = pipeline(kSaxpy, "metal_saxpy");
    const auto x = shared(randomNumbers(100)), y = shared(before);
    const float a = 2;
    MTL::CommandBuffer* commands = queue->commandBuffer();
    MTL::ComputeCommandEncoder* encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(saxpy.get());
    encoder->setBuffer(x.get(), 0, 0);
    encoder->setBuffer(y.get(), 0, 1);
    encoder->setBytes(&a, sizeof a, 2);
    change(commands, encoder);
    encoder->dispatchThreads({100, 1, 1}, {32, 1, 1});
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    EXPECT_EQ(commands->status(), MTL::CommandBufferStatusError);
    for (size_t i = 0; i < before.size(); ++i)
      EXPECT_EQ(static_cast<float*>(y->contents())[i], before[i]) << "nothing ran";
    return errorOf(commands);
  }
  std::string afterEncoding(const std::function<void(MTL::ComputeCommandEncoder*)>& change) {
    return errorAfter([&](MTL::CommandBuffer*, MTL::ComputeCommandEncoder* encoder) { change(encoder); });
  }
  std::string libraryError(const std::string& source, const MTL::CompileOptions* options = nullptr) const {
    NS::Error* error = nullptr;
    EXPECT_EQ(device->newLibrary(text(source), options, &error), nullptr);
    return error ? error->localizedDescription()->utf8String() : "";
  }
  std::string pipelineError(const std::string& source) const {
    NS::Error* error = nullptr;
    const auto function = NS::TransferPtr(library(source)->newFunction(text("k")));
    EXPECT_EQ(device->newComputePipelineState(function.get(), &error), nullptr);
    return error ? error->localizedDescription()->utf8String() : "";
  }
};

#define EXPECT_SAYS(call, text)                                                                                        \
  do {                                                                                                                 \
    const std::string said = (call);                                                                                   \
    EXPECT_NE(said.find(text), std::string::npos) << said;                                                             \
  } while (false)

TEST_P(MetalMisuse, UnknownFunctionsAreNamed) {
  const auto from = library(kSaxpy);
  EXPECT_EQ(from->newFunction(text("daxpy")), nullptr);
  NS::Error* error = nullptr;
  EXPECT_EQ(from->newFunction(text("daxpy"), nullptr, &error), nullptr);
  EXPECT_STREQ(error->localizedDescription()->utf8String(),
               "MTL::Library::newFunction: the library has no kernel `daxpy`; it has `metal_saxpy`");
  EXPECT_EQ(device->newComputePipelineState(nullptr, &error), nullptr);
  EXPECT_SAYS(error->localizedDescription()->utf8String(),
              "MTL::Device::newComputePipelineState: the function is null");
  const auto function = NS::TransferPtr(from->newFunction(text("metal_saxpy")));
  EXPECT_EQ(other->newComputePipelineState(function.get(), &error), nullptr);
  EXPECT_SAYS(error->localizedDescription()->utf8String(), "`metal_saxpy` is of another device");
}

TEST_P(MetalMisuse, PipelinesAndBuffersOfAnotherDeviceAreRefused) {
  const auto foreign = pipelineOn(other, kSaxpy, "metal_saxpy");
  EXPECT_SAYS(afterEncoding([&](auto* encoder) { encoder->setComputePipelineState(foreign.get()); }),
              "MTL::ComputeCommandEncoder::setComputePipelineState: `metal_saxpy` is a pipeline of another device");
  const auto memory = NS::TransferPtr(other->newBuffer(400, MTL::ResourceStorageModeShared));
  EXPECT_SAYS(afterEncoding([&](auto* encoder) { encoder->setBuffer(memory.get(), 0, 0); }),
              "MTL::ComputeCommandEncoder::setBuffer: the buffer for index 0 is of another device");
  EXPECT_SAYS(afterEncoding([&](auto* encoder) { encoder->setComputePipelineState(nullptr); }),
              "setComputePipelineState: the pipeline is null");
}

TEST_P(MetalMisuse, MissingAndShortBuffersAreNamedByTheirIndex) {
  EXPECT_SAYS(afterEncoding([](auto* encoder) { encoder->setBuffer(nullptr, 0, 0); }),
              "MTL::ComputeCommandEncoder::dispatchThreads: [[buffer(0)]] of `metal_saxpy` is not set");
  EXPECT_SAYS(afterEncoding([](auto* encoder) { encoder->setBytes("ab", 2, 2); }),
              "[[buffer(2)]] of `metal_saxpy` has 2 bytes; the kernel takes 4 at least");
  EXPECT_SAYS(afterEncoding([](auto* encoder) { encoder->setBufferOffset(400, 1); }),
              "setBufferOffset: the offset 400 for index 1 is not in the buffer's 400 bytes");
  EXPECT_SAYS(afterEncoding([](auto* encoder) { encoder->setBufferOffset(2, 1); }),
              "the offset 2 of [[buffer(1)]] is no multiple of 4");
  EXPECT_SAYS(afterEncoding([](auto* encoder) { encoder->setBufferOffset(0, 9); }), "there is no buffer at index 9");
  EXPECT_SAYS(afterEncoding([&](auto* encoder) { encoder->setBuffer(shared({1, 2}).get(), 8, 0); }),
              "setBuffer: the offset 8 for index 0 is not in the buffer's 8 bytes");
  const auto wide = pipeline("kernel void k(device float* y [[buffer(1)]], constant uint3& n [[buffer(2)]], uint i "
                             "[[thread_position_in_grid]]) { y[i] = n.x + n.z; }",
                             "k");
  EXPECT_SAYS(afterEncoding([&](auto* encoder) {
                encoder->setComputePipelineState(wide.get());
                encoder->setBytes("12345678", 8, 2);
              }),
              "[[buffer(2)]] of `k` has 8 bytes; the kernel takes 12 at least");
}

TEST_P(MetalMisuse, IndicesAndInlineBytesHaveLimits) {
  const std::vector<uint8_t> bytes(5000);
  EXPECT_SAYS(afterEncoding([&](auto* encoder) { encoder->setBytes(bytes.data(), 4097, 2); }),
              "MTL::ComputeCommandEncoder::setBytes: 4097 bytes for index 2: 1 to 4096 can be set");
  EXPECT_SAYS(afterEncoding([&](auto* encoder) { encoder->setBytes(bytes.data(), 0, 2); }), "0 bytes");
  EXPECT_SAYS(afterEncoding([&](auto* encoder) { encoder->setBytes(nullptr, 4, 2); }), "the bytes are null");
  EXPECT_SAYS(afterEncoding([&](auto* encoder) { encoder->setBytes(bytes.data(), 4, 31); }),
              "setBytes: the index 31 is larger than 30");
  EXPECT_SAYS(afterEncoding([&](auto* encoder) { encoder->setBuffer(nullptr, 0, 31); }),
              "setBuffer: the index 31 is larger than 30");
  EXPECT_SAYS(afterEncoding([&](auto* encoder) { encoder->setThreadgroupMemoryLength(16, 31); }),
              "setThreadgroupMemoryLength: the index 31 is larger than 30");
}

TEST_P(MetalMisuse, OneMemoryIsNotGivenTwiceWhereItIsWritten) {
  const auto both = shared(randomNumbers(100));
  EXPECT_SAYS(afterEncoding([&](auto* encoder) {
                encoder->setBuffer(both.get(), 0, 0);
                encoder->setBuffer(both.get(), 0, 1);
              }),
              "[[buffer(0)]] and [[buffer(1)]] of `metal_saxpy` are the same memory, and the kernel writes it");
}

TEST_P(MetalMisuse, GridsAndThreadgroupsHaveLimits) {
  const auto dispatch = [&](MTL::Size grid, MTL::Size block) {
    return afterEncoding([&](auto* encoder) { encoder->dispatchThreads(grid, block); });
  };
  EXPECT_SAYS(dispatch({0, 1, 1}, {32, 1, 1}), "dispatchThreads: a grid of 0 by 1 by 1 is empty");
  EXPECT_SAYS(dispatch({100, 1, 0}, {32, 1, 1}), "is empty");
  EXPECT_SAYS(dispatch({100, 1, 1}, {32, 33, 1}),
              "a threadgroup of 32 by 33 by 1 threads: the pipeline takes 1 to 1024");
  EXPECT_SAYS(dispatch({100, 1, 1}, {0, 1, 1}), "a threadgroup of 0 by 1 by 1");
  EXPECT_SAYS(dispatch({100, 1, 1}, {NS::UInteger{1} << 32, NS::UInteger{1} << 32, 1}), "a threadgroup of");
  EXPECT_SAYS(dispatch({NS::UInteger{1} << 40, 1, 1}, {32, 1, 1}), "is too large");
  EXPECT_SAYS(afterEncoding([](auto* encoder) { encoder->dispatchThreadgroups({0, 1, 1}, {32, 1, 1}); }),
              "dispatchThreadgroups: a grid of 0 by 1 by 1 is empty");
  EXPECT_SAYS(afterEncoding([](auto* encoder) { encoder->dispatchThreadgroups({1, 1, 1}, {32, 0, 1}); }),
              "dispatchThreadgroups: a threadgroup without threads");
}

TEST_P(MetalMisuse, ThreadgroupMemoryIsSetInPiecesOf16AndFitsTheDevice) {
  EXPECT_SAYS(afterEncoding([](auto* encoder) { encoder->setThreadgroupMemoryLength(20, 0); }),
              "MTL::ComputeCommandEncoder::setThreadgroupMemoryLength: the length 20 for index 0 is no multiple of 16");
  EXPECT_SAYS(afterEncoding([](auto* encoder) { encoder->setThreadgroupMemoryLength(24, 0); }),
              "the length 24 for index 0 is no multiple of 16");
  const std::string source =
      "kernel void k(device float* y [[buffer(1)]], threadgroup float* kept [[threadgroup(3)]], uint i "
      "[[thread_position_in_grid]]) { kept[i] = 1; y[i] = kept[i]; }";
  const auto made = pipeline(source, "k");
  EXPECT_SAYS(afterEncoding([&](auto* encoder) { encoder->setComputePipelineState(made.get()); }),
              "`kept` is [[threadgroup(3)]], whose length setThreadgroupMemoryLength was not given");
  EXPECT_SAYS(afterEncoding([&](auto* encoder) {
                encoder->setComputePipelineState(made.get());
                encoder->setThreadgroupMemoryLength(128, 3);
                encoder->setThreadgroupMemoryLength(0, 3);
              }),
              "whose length setThreadgroupMemoryLength was not given");
  EXPECT_SAYS(afterEncoding([&](auto* encoder) {
                encoder->setComputePipelineState(made.get());
                encoder->setThreadgroupMemoryLength(32784, 3);
              }),
              "the kernel needs 32784 bytes of threadgroup memory; the device has 32768");
  const auto both =
      pipeline("kernel void k(device float* y [[buffer(1)]], threadgroup float* given [[threadgroup(0)]], uint i "
               "[[thread_index_in_threadgroup]]) { threadgroup float own[4096]; own[i] = given[i] = i; "
               "metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup); y[i] = own[31 - i] + given[31 - i]; }",
               "k");
  EXPECT_SAYS(afterEncoding([&](auto* encoder) {
                encoder->setComputePipelineState(both.get());
                encoder->setThreadgroupMemoryLength(16400, 0);
              }),
              "the kernel needs 32784 bytes of threadgroup memory; the device has 32768");
}

TEST_P(MetalMisuse, EndedEncodersAndCommittedBuffersTakeNothing) {
  EXPECT_SAYS(afterEncoding([](auto* encoder) { encoder->endEncoding(); }),
              "MTL::ComputeCommandEncoder::dispatchThreads: the encoder has ended");
  EXPECT_SAYS(errorAfter([](auto* commands, auto*) { commands->computeCommandEncoder(); }),
              "MTL::CommandBuffer::computeCommandEncoder: the encoder before has not ended");
  EXPECT_SAYS(errorAfter([](auto* commands, auto*) { commands->commit(); }),
              "MTL::CommandBuffer::commit: an encoder has not ended");
  EXPECT_SAYS(errorAfter([](auto* commands, auto*) { commands->addCompletedHandler(nullptr); }),
              "MTL::CommandBuffer::addCompletedHandler: the handler is empty");
  EXPECT_SAYS(
      errorAfter([](auto* commands, auto*) { commands->addScheduledHandler(MTL::CommandBuffer::HandlerFunction()); }),
      "MTL::CommandBuffer::addScheduledHandler: the handler is empty");
  EXPECT_SAYS(errorAfter([](auto* commands, auto*) { commands->waitUntilCompleted(); }),
              "MTL::CommandBuffer::waitUntilCompleted: the command buffer was not committed");
  for (int call = 0; call < 4; ++call) {
    MTL::CommandBuffer* commands = queue->commandBuffer();
    MTL::BlitCommandEncoder* blit = commands->blitCommandEncoder();
    const auto cell = shared({0});
    blit->fillBuffer(cell.get(), NS::Range::Make(0, 4), 1);
    blit->endEncoding();
    commands->commit();
    call == 0   ? commands->commit()
    : call == 1 ? void(commands->blitCommandEncoder())
    : call == 2 ? blit->endEncoding()
                : commands->addCompletedHandler(nullptr);
    commands->waitUntilCompleted();
    const char* said[] = {"MTL::CommandBuffer::commit: the command buffer was committed before",
                          "MTL::CommandBuffer::blitCommandEncoder: the command buffer was committed",
                          "MTL::BlitCommandEncoder::endEncoding: the encoder has ended",
                          "MTL::CommandBuffer::addCompletedHandler: the command buffer was committed"};
    EXPECT_EQ(commands->status(), MTL::CommandBufferStatusError);
    EXPECT_EQ(errorOf(commands), said[call]);
  }
}

TEST_P(MetalMisuse, CopiesStayInTheirBuffers) {
  const auto ten = NS::TransferPtr(device->newBuffer(10, MTL::ResourceStorageModeShared));
  const auto foreign = NS::TransferPtr(other->newBuffer(10, MTL::ResourceStorageModeShared));
  const auto copying = [&](const MTL::Buffer* from, NS::UInteger at, NS::UInteger size) {
    MTL::CommandBuffer* commands = queue->commandBuffer();
    MTL::BlitCommandEncoder* blit = commands->blitCommandEncoder();
    blit->copyFromBuffer(from, at, ten.get(), 0, size);
    blit->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    return errorOf(commands);
  };
  EXPECT_SAYS(copying(ten.get(), 4, 7),
              "MTL::BlitCommandEncoder::copyFromBuffer: 7 bytes from 4 on are not in the source's 10");
  EXPECT_SAYS(copying(ten.get(), 11, UINTPTR_MAX), "are not in the source's 10 bytes");
  EXPECT_SAYS(copying(nullptr, 0, 1), "the source is null");
  EXPECT_SAYS(copying(foreign.get(), 0, 1), "the source is of another device");
  EXPECT_SAYS(copying(ten.get(), 0, 0), "no bytes");
}

TEST_P(MetalMisuse, BuffersWithoutBytesAndOfMoreThanThereIsAreNull) {
  EXPECT_EQ(device->newBuffer(0, MTL::ResourceStorageModeShared), nullptr);
  EXPECT_EQ(device->newBuffer(UINTPTR_MAX, MTL::ResourceStorageModeShared), nullptr);
  EXPECT_EQ(device->newBuffer(UINTPTR_MAX, MTL::ResourceStorageModePrivate), nullptr);
  EXPECT_EQ(device->newBuffer(16, static_cast<MTL::ResourceOptions>(3 << 4)), nullptr);  // memoryless
  EXPECT_EQ(device->newBuffer(nullptr, 16, MTL::ResourceStorageModeShared), nullptr);
}

TEST_P(MetalMisuse, SourcesWithErrorsAreReportedAtTheirLine) {
  EXPECT_SAYS(libraryError("kernel void k(device int* x [[buffer(0)]]) {\n  x[0] = y;\n}\n"), "program_source:2:10");
  EXPECT_SAYS(libraryError("#include \"nowhere.h\"\n"), "nowhere.h");
  EXPECT_SAYS(libraryError("kernel void k(uint i [[no_such_input]]) {}\n"), "no_such_input");
  EXPECT_SAYS(libraryError("kernel void k(texture2d<float> t [[texture(0)]]) {}\n"), "program_source:1:");
  EXPECT_SAYS(libraryError("kernel void k(device double* x [[buffer(0)]]) { x[0] = 1; }\nfragment void f() {}"),
              "error[");
  const auto options = NS::TransferPtr(MTL::CompileOptions::alloc()->init());
  options->setLanguageVersion(MTL::LanguageVersion4_0);
  EXPECT_SAYS(libraryError(kSaxpy, options.get()),
              "MTL::Device::newLibrary: version 4.0 of the language is not supported; 3.2 is");
  NS::Error* error = nullptr;
  EXPECT_EQ(device->newLibrary(nullptr, nullptr, &error), nullptr);
  EXPECT_SAYS(error->localizedDescription()->utf8String(), "the source is null");
}

TEST_P(MetalMisuse, WhatCannotBeCompiledFailsWithThePipeline) {
  EXPECT_SAYS(
      pipelineError("#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device int* x [[buffer(0)]]) { "
                    "threadgroup int big[9000]; big[x[0]] = 1; threadgroup_barrier(mem_flags::mem_threadgroup); x[0] = "
                    "big[x[1]]; }"),
      "`k` has 36000 bytes of threadgroup memory; the device has 32768");
  EXPECT_SAYS(pipelineError("int f(int n) { return n < 2 ? 1 : n * f(n - 1); }\n"
                            "kernel void k(device int* x [[buffer(0)]]) { x[0] = f(x[1]); }\n"),
              "MTL::Device::newComputePipelineState: \nerror[");
}

TEST_P(MetalMisuse, ConstantsOfOtherTypesAreRefused) {
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const auto from = library(kSaxpy);
  const auto refused = [&](const void* value, MTL::DataType type) {
    values->reset();
    values->setConstantValue(value, type, NS::UInteger{0});
    NS::Error* error = nullptr;
    EXPECT_EQ(from->newFunction(text("metal_saxpy"), values.get(), &error), nullptr);
    return std::string(error->localizedDescription()->utf8String());
  };
  const int64_t large = INT64_MAX;
  EXPECT_SAYS(refused(&large, MTL::DataTypeHalf), "MTL::FunctionConstantValues::setConstantValue: values of type 16");
  EXPECT_SAYS(refused(&large, MTL::DataTypeLong), "integers of more than 53 bits");
  EXPECT_SAYS(refused(nullptr, MTL::DataTypeInt), "the value is null");
}

TEST_P(MetalMisuse, CapturesNeedAnObjectAFileAndADestination) {
  ::setenv("MTL_CAPTURE_ENABLED", "1", 1);
  const auto descriptor = NS::TransferPtr(MTL::CaptureDescriptor::alloc()->init());
  const auto refused = [&] {
    NS::Error* error = nullptr;
    EXPECT_FALSE(MTL::CaptureManager::sharedCaptureManager()->startCapture(descriptor.get(), &error));
    return std::string(error->localizedDescription()->utf8String());
  };
  EXPECT_SAYS(refused(), "MTL::CaptureManager::startCapture: the destination is not supported");
  descriptor->setDestination(MTL::CaptureDestinationGPUTraceDocument);
  EXPECT_SAYS(refused(), "neither a device nor a command queue");
  descriptor->setCaptureObject(device);
  EXPECT_SAYS(refused(), "the output URL is not set");
  descriptor->setOutputURL(NS::URL::fileURLWithPath(text("/no/such/folder/x")));
  EXPECT_SAYS(refused(), "cannot write `/no/such/folder/x.json`");
  EXPECT_FALSE(MTL::CaptureManager::sharedCaptureManager()->isCapturing());
}

INSTANTIATE_TEST_SUITE_P(Devices, MetalMisuse, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return info.param; });

}  // namespace vortex::metal::testing
