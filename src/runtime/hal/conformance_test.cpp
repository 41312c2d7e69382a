#include "runtime/hal/conformance_test.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <thread>

namespace vortex::hal::conformance {

using artifact::ScalarType;

Argument scalarF32(float value) { return Scalar{ScalarType::F32, std::bit_cast<uint32_t>(value)}; }
Argument scalarI32(int32_t value) { return Scalar{ScalarType::I32, static_cast<uint64_t>(int64_t{value})}; }
Argument scalarI64(int64_t value) { return Scalar{ScalarType::I64, static_cast<uint64_t>(value)}; }

void Conformance::SetUp() {
  device_ = GetParam().create(0).value();
  stream_ = device_->createStream().value();
}

KernelRef Conformance::load(const std::string& name) {
  auto kernel = std::make_shared<artifact::Kernel>(kernelNamed(name));
  GetParam().addCode(*kernel);
  return device_->load(kernel).value();
}

Result<std::vector<Tensor>> Conformance::run(const KernelRef& kernel, const std::vector<Argument>& arguments,
                                             LaunchOptions options) {
  Result<std::vector<Tensor>> results = launch(*device_, *stream_, kernel, arguments, std::move(options));
  if (!results)
    return results;
  if (Result<void> done = stream_->synchronize(); !done)
    return done.takeError();
  return results;
}

std::string Conformance::launchError(const KernelRef& kernel, const std::vector<Argument>& arguments,
                                     LaunchOptions options) {
  const auto results = run(kernel, arguments, std::move(options));
  return results ? "no error" : results.error().message;
}

#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_P(Conformance, AnAllocatorOfTheCallersMakesResults) {
  const int64_t n = 100;
  const BufferRef x = device_->allocate(400).value();
  ASSERT_TRUE(stream_->fill(x, 0, 400, 0));
  const std::vector<Argument> arguments = {Tensor{x, 0, ScalarType::F32, {n}, {}}, scalarF32(2)};
  BufferRef made;
  int64_t tooMany = 0;
  LaunchOptions options;
  options.allocate = [&](size_t result, ScalarType type, std::span<const int64_t> extents) -> Result<Tensor> {
    EXPECT_EQ(result, 0u);
    EXPECT_EQ(type, ScalarType::F32);
    EXPECT_EQ(std::vector<int64_t>(extents.begin(), extents.end()), std::vector<int64_t>{n});
    made = device_->allocate(480).value();
    return Tensor{made, 80, type, {n + tooMany}, {}};
  };
  const std::vector<Tensor> results = run(load("scale"), arguments, options).value();
  EXPECT_EQ(results.at(0).buffer, made);
  EXPECT_EQ(results.at(0).byteOffset, 80u);
  made.reset();
  options.results = {results[0]};
  ASSERT_TRUE(run(load("scale"), arguments, options));
  EXPECT_EQ(made, nullptr) << "storage was given";
  options.results.clear();
  tooMany = 1;
  EXPECT_MENTIONS(launchError(load("scale"), arguments, options), "needed is f32[100]");
  options.allocate = [](size_t, ScalarType, std::span<const int64_t>) -> Result<Tensor> { return Error{"no room"}; };
  EXPECT_MENTIONS(launchError(load("scale"), arguments, options), "result 'y' of shape [100]: no room");
}

// Buffers and copies ------------------------------------------------------------------------------------------------------

TEST_P(Conformance, BuffersAreAlignedAndZeroBytesAreAllowed) {
  for (uint64_t bytes : {0ull, 1ull, 63ull, 4096ull, 3ull << 20, 40ull << 20}) {
    const BufferRef buffer = device_->allocate(bytes).value();
    EXPECT_EQ(buffer->bytes(), bytes);
    EXPECT_EQ(buffer->address() % 64, 0u);
    EXPECT_NE(buffer->address(), 0u);
    EXPECT_EQ(buffer->device(), device_.get());
    EXPECT_TRUE(stream_->fill(buffer, 0, bytes, 7));
  }
}

TEST_P(Conformance, WrittenBytesAreReadBack) {
  for (size_t size : {size_t{1}, size_t{1000}, size_t{9} << 20}) {
    std::vector<uint8_t> bytes(size);
    for (size_t i = 0; i < size; ++i)
      bytes[i] = static_cast<uint8_t>(i * 31 + (i >> 9));
    EXPECT_TRUE(download<uint8_t>(upload(bytes)) == bytes) << size;
  }
}

TEST_P(Conformance, CopiesAndFillsTouchTheirRangeOnly) {
  std::vector<uint8_t> values(1000);
  std::iota(values.begin(), values.end(), 0);
  const BufferRef source = upload(values), target = upload(std::vector<uint8_t>(1000, 9));
  ASSERT_TRUE(stream_->copy(target, 100, source, 5, 50));
  ASSERT_TRUE(stream_->fill(target, 200, 3, 77));
  std::vector<uint8_t> expected(1000, 9);
  std::copy_n(values.begin() + 5, 50, expected.begin() + 100);
  std::fill_n(expected.begin() + 200, 3, 77);
  EXPECT_EQ(download<uint8_t>(target), expected);
}

TEST_P(Conformance, OverlappingCopiesBehaveAsIfBuffered) {
  std::vector<uint32_t> values(300);
  std::iota(values.begin(), values.end(), 0);
  const BufferRef buffer = upload(values);
  ASSERT_TRUE(stream_->copy(buffer, 40, buffer, 0, 800));
  std::vector<uint32_t> expected = values;
  std::copy_n(values.begin(), 200, expected.begin() + 10);
  EXPECT_EQ(download<uint32_t>(buffer), expected);
}

TEST_P(Conformance, RangesOutsideABufferAreErrorsWithNumbers) {
  const BufferRef buffer = device_->allocate(100).value(), other = device_->allocate(1000).value();
  uint8_t bytes[200] = {};
  EXPECT_MENTIONS(stream_->write(buffer, 1, bytes, 100).error().message, "100 bytes at offset 1");
  EXPECT_MENTIONS(stream_->read(bytes, buffer, UINT64_MAX, 2).error().message, "buffer of 100 bytes");
  EXPECT_FALSE(stream_->fill(buffer, 101, 0, 1));
  EXPECT_TRUE(stream_->fill(buffer, 100, 0, 1));
  EXPECT_FALSE(stream_->copy(buffer, 0, other, 0, 101));
  EXPECT_FALSE(stream_->copy(other, 0, buffer, 0, 101));
  EXPECT_FALSE(stream_->fill(nullptr, 0, 0, 1));
}

TEST_P(Conformance, WrappedHostMemoryIsTheSameMemory) {
  if (!device_->info().hostMemory)
    GTEST_SKIP() << "the device has its own memory";
  std::vector<int64_t> values = {1, 2, 3};
  const BufferRef buffer = device_->wrap(values.data(), sizeof(int64_t) * 3).value();
  EXPECT_EQ(buffer->host(), values.data());
  const Tensor view{buffer, 0, ScalarType::I64, {3}, {}};
  ASSERT_TRUE(run(load("update"), {view, scalarI64(10), scalarI64(1)}));
  if (executes()) {
    EXPECT_EQ(values, (std::vector<int64_t>{11, 21, 31}));
  }
  const Tensor constant{device_->wrap(values.data(), sizeof(int64_t) * 3, true).value(), 0, ScalarType::I64, {3}, {}};
  EXPECT_MENTIONS(launchError(load("update"), {constant, scalarI64(10), scalarI64(1)}),
                  "argument 'a' is written, but its buffer wraps constant memory");
  EXPECT_MENTIONS(stream_->fill(constant.buffer, 0, 1, 1).error().message, "constant memory");
  EXPECT_FALSE(device_->wrap(nullptr, 8));
  EXPECT_TRUE(device_->wrap(nullptr, 0));
}

TEST_P(Conformance, StorageIsReusableAfterTheLastReferenceIsGone) {
  for (int round = 0; round < 200; ++round) {
    const BufferRef buffer = device_->allocate(5 << 20).value();
    ASSERT_TRUE(stream_->fill(buffer, (5 << 20) - 1, 1, 1));
  }
  EXPECT_GT(device_->availableBytes().value(), 5u << 20);
}

// Out of memory -----------------------------------------------------------------------------------------------------------

TEST_P(Conformance, ImpossibleSizesAreErrorsWithTheByteCount) {
  EXPECT_MENTIONS(device_->allocate(uint64_t{1} << 60).error().message, "1152921504606846976 bytes requested");
  EXPECT_FALSE(device_->allocate(UINT64_MAX));
}

TEST_P(Conformance, TheMemoryLimitHoldsAndFreedMemoryCounts) {
  const DeviceRef small = GetParam().create(10 << 20).value();
  BufferRef first = small->allocate(6 << 20).value();
  const auto second = small->allocate(6 << 20);
  ASSERT_FALSE(second);
  EXPECT_MENTIONS(second.error().message, "6291456 bytes requested");
  first.reset();
  EXPECT_TRUE(small->allocate(6 << 20));
}

TEST_P(Conformance, AResultThatDoesNotFitFailsTheLaunchBeforeItRuns) {
  const KernelRef kernel = load("coordinates");
  EXPECT_MENTIONS(launchError(kernel, {scalarI32(1 << 30), scalarI32(1 << 20), scalarI32(4)}),
                  "result 'out' of shape [1073741824, 1048576, 4]");
  EXPECT_MENTIONS(launchError(kernel, {scalarI32(1 << 30), scalarI32(1 << 30), scalarI32(1 << 30)}),
                  "takes 4951760157141521099596496896 bytes, a tensor has at most 140737488355328");
  EXPECT_MENTIONS(launchError(kernel, {scalarI32(-3), scalarI32(1), scalarI32(1)}), "negative extent -3");
}

// Launches ----------------------------------------------------------------------------------------------------------------

TEST_P(Conformance, KernelsComputeEveryElementOfEverySize) {
  const KernelRef kernel = load("scale");
  for (int64_t n : {1, 255, 256, 257, 100000}) {
    std::vector<float> x(n);
    for (int64_t i = 0; i < n; ++i)
      x[i] = static_cast<float>(i % 1000) - 500;
    const auto results = run(kernel, {tensor(x, ScalarType::F32, {n}), scalarF32(1.5f)});
    ASSERT_TRUE(results) << results.error().message;
    ASSERT_EQ(results->size(), 1u);
    EXPECT_EQ(results->at(0).extents, std::vector<int64_t>{n});
    EXPECT_EQ(results->at(0).strides, std::vector<int64_t>{1});
    if (!executes())
      continue;
    const std::vector<float> y = download<float>(results->at(0).buffer);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(y[i], x[i] * 1.5f) << i;
  }
}

TEST_P(Conformance, StridesAndOffsetsOfViewsAreHonoured) {
  std::vector<float> x(60);
  std::iota(x.begin(), x.end(), 0.0f);
  const BufferRef buffer = upload(x);
  const Tensor reversed{buffer, 59 * 4, ScalarType::F32, {20}, {-3}};
  const auto scaled = run(load("scale"), {reversed, scalarF32(2)});
  ASSERT_TRUE(scaled) << scaled.error().message;
  const Tensor window{buffer, 11 * 4, ScalarType::F32, {4, 3}, {10, 2}};
  const auto transposed = run(load("transpose"), {window});
  ASSERT_TRUE(transposed) << transposed.error().message;
  EXPECT_EQ(transposed->at(0).extents, (std::vector<int64_t>{3, 4}));
  if (!executes())
    return;
  const std::vector<float> y = download<float>(scaled->at(0).buffer), z = download<float>(transposed->at(0).buffer);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(y[i], 2.0f * static_cast<float>(59 - 3 * i));
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(z[j * 4 + i], static_cast<float>(11 + 10 * i + 2 * j));
}

TEST_P(Conformance, PhasesSeeEarlierPhasesAndScalarResultsAreOneElement) {
  const KernelRef kernel = load("total");
  for (int64_t n : {0, 1, 128, 12345, 1000000}) {
    std::vector<int32_t> x(n);
    for (int64_t i = 0; i < n; ++i)
      x[i] = static_cast<int32_t>(i * 7 % 1001 - 300);
    const auto results = run(kernel, {tensor(x, ScalarType::I32, {n})});
    ASSERT_TRUE(results) << results.error().message;
    EXPECT_TRUE(results->at(0).extents.empty());
    if (executes()) {
      EXPECT_EQ(download<int64_t>(results->at(0).buffer).at(0), std::accumulate(x.begin(), x.end(), int64_t{0})) << n;
    }
  }
}

TEST_P(Conformance, TheLaunchTakesTheStepsOfItsCase) {
  const KernelRef kernel = load("again");
  for (int64_t n : {0, 1, 99, 100, 5000}) {
    std::vector<int64_t> a(static_cast<size_t>(n), 5);
    const Tensor x = tensor(a, ScalarType::I64, {n});
    const auto results = run(kernel, {x, scalarI64(3), scalarI64(1)});
    ASSERT_TRUE(results) << results.error().message;
    const Launch launch = prepare(*device_, kernel, std::vector<Argument>{x, scalarI64(3), scalarI64(1)}).value();
    EXPECT_EQ(launch.phases.size(), n == 0 ? 0u : n < 100 ? 1u : 3u) << n;
    if (executes())
      for (int64_t value : download<int64_t>(x.buffer))
        ASSERT_EQ(value, n < 100 ? 16 : ((5 * 3 + 1) * 3 + 1) * 3 + 1) << n;
  }
}

TEST_P(Conformance, RoundsOfALoopHaveSlotsOfTheirOwn) {
  const KernelRef kernel = load("rounds");
  for (int64_t factor : {int64_t{0}, int64_t{-4}, int64_t{1}, int64_t{3}, int64_t{17}, INT64_MIN}) {
    std::vector<int64_t> a(100, 5);
    const Tensor x = tensor(a, ScalarType::I64, {100});
    const auto results = run(kernel, {x, scalarI64(factor)});
    ASSERT_TRUE(results) << results.error().message;
    uint64_t expected = 5;
    for (int64_t round = 0; round < factor; ++round)
      expected = expected * static_cast<uint64_t>(factor) + static_cast<uint64_t>(round);
    const Launch launch = prepare(*device_, kernel, std::vector<Argument>{x, scalarI64(factor)}).value();
    EXPECT_EQ(launch.phases.size(), static_cast<size_t>(std::max<int64_t>(factor, 0)));
    if (executes())
      for (int64_t value : download<int64_t>(x.buffer))
        ASSERT_EQ(value, static_cast<int64_t>(expected)) << factor;
  }
  std::vector<int64_t> a(1, 5);
  const auto endless = run(kernel, {tensor(a, ScalarType::I64, {1}), scalarI64(INT64_MAX)});
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().message,
            "cannot launch kernel 'rounds': the loop at rounds.vx:1:1 comes to more than 1048576 "
            "grids in one launch; call the kernel from a loop of the host");
}

TEST_P(Conformance, RoundsGoOnWhileThePhasesSaySo) {
  const KernelRef kernel = load("until");
  for (int64_t limit : {INT64_MIN, int64_t{3}, int64_t{4}, int64_t{100}, int64_t{1} << 40}) {
    std::vector<int64_t> a(100, 3);
    const Tensor x = tensor(a, ScalarType::I64, {100});
    ASSERT_TRUE(run(kernel, {x, scalarI64(limit)}));
    int64_t expected = 3;
    while (expected < limit)
      expected *= 2;
    if (executes()) {
      EXPECT_EQ(download<int64_t>(x.buffer), std::vector<int64_t>(100, expected)) << limit;
    }
  }
  // Half a million waits for another device take minutes.
  const Tensor endless = tensor(std::vector<int64_t>{0}, ScalarType::I64, {1});
  if (executes() && endless.buffer->host()) {
    EXPECT_EQ(launchError(kernel, {endless, scalarI64(1)}),
              "cannot launch kernel 'until': the loop at until.vx:1:1 comes to more than 1048576 grids in one launch; "
              "call the kernel from a loop of the host");
  }
}

TEST_P(Conformance, AFaultEndsTheRounds) {
  if (!executes())
    GTEST_SKIP() << "nothing executes";
  const KernelRef kernel = load("until");
  const Tensor bad = tensor(std::vector<int64_t>{-1}, ScalarType::I64, {1}),
               good = tensor(std::vector<int64_t>{3}, ScalarType::I64, {1});
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(launch(*device_, *stream_, kernel, std::vector<Argument>{bad, scalarI64(5)}));
    ASSERT_TRUE(launch(*device_, *stream_, kernel, std::vector<Argument>{good, scalarI64(5)})) << "skipped";
    EXPECT_EQ(stream_->synchronize().error().message, "kernel 'until' stopped: E0701: value below zero (until.vx:2:3)");
    EXPECT_EQ(download<int64_t>(good.buffer), std::vector<int64_t>{round == 0 ? 3 : 6}) << round;
    ASSERT_TRUE(run(kernel, {good, scalarI64(5)}));
    EXPECT_EQ(download<int64_t>(good.buffer), std::vector<int64_t>{6});
  }
}

TEST_P(Conformance, LaunchesThatReadBackAreNotRecorded) {
  const KernelRef kernel = load("until");
  const std::vector<Argument> arguments{tensor(std::vector<int64_t>{3}, ScalarType::I64, {1}), scalarI64(5)};
  ASSERT_TRUE(stream_->beginRecording());
  EXPECT_EQ(launch(*device_, *stream_, kernel, arguments).error().message,
            "kernel 'until' has a loop or branch that waits for what the kernel computes: such launches cannot be "
            "recorded");
  EXPECT_EQ(stream_->endRecording().value()->launches(), 0u);
  EXPECT_TRUE(run(kernel, arguments));
}

TEST_P(Conformance, BlocksKnowTheirPositionInThreeDimensions) {
  const auto results = run(load("coordinates"), {scalarI32(5), scalarI32(7), scalarI32(11)});
  ASSERT_TRUE(results) << results.error().message;
  if (!executes())
    return;
  const std::vector<uint32_t> out = download<uint32_t>(results->at(0).buffer);
  for (uint32_t z = 0; z < 5; ++z)
    for (uint32_t y = 0; y < 7; ++y)
      for (uint32_t x = 0; x < 11; ++x)
        ASSERT_EQ(out[(z * 7 + y) * 11 + x], x + 1000 * y + 1000000 * z + 0x10000000u);
}

TEST_P(Conformance, AnEmptyGridRunsNothing) {
  const auto results = run(load("coordinates"), {scalarI32(5), scalarI32(0), scalarI32(11)});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(results->at(0).buffer->bytes(), 0u);
}

TEST_P(Conformance, ResultsThatAskForItStartAtZeroAlsoInReusedStorage) {
  const KernelRef kernel = load("sparse");
  for (int round = 0; round < 3; ++round) {
    const auto results = run(kernel, {});
    ASSERT_TRUE(results) << results.error().message;
    EXPECT_EQ(download<float>(results->at(0).buffer), std::vector<float>(1000, 0.0f));
    ASSERT_TRUE(stream_->fill(results->at(0).buffer, 0, 4000, 0x55));
  }
}

TEST_P(Conformance, ResultsGoToGivenStorage) {
  const BufferRef storage = upload(std::vector<float>(8, -1.0f));
  const Tensor x = tensor<float>({1, 2, 3}, ScalarType::F32, {3});
  const Tensor target{storage, 8, ScalarType::F32, {3}, {}};
  const auto results = run(load("scale"), {x, scalarF32(10)}, {.results = {target}});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(results->at(0).buffer, storage);
  if (executes()) {
    EXPECT_EQ(download<float>(storage), (std::vector<float>{-1, -1, 10, 20, 30, -1, -1, -1}));
  }
  EXPECT_MENTIONS(
      launchError(load("scale"), {x, scalarF32(1)}, {.results = {Tensor{storage, 0, ScalarType::F32, {4}, {}}}}),
      "needed is f32[3]");
  EXPECT_MENTIONS(
      launchError(load("scale"), {x, scalarF32(1)}, {.results = {Tensor{storage, 0, ScalarType::F32, {3}, {2}}}}),
      "contiguous");
  EXPECT_MENTIONS(
      launchError(load("scale"), {x, scalarF32(1)}, {.results = {Tensor{storage, 24, ScalarType::F32, {3}, {}}}}),
      "leaves its buffer of 32 bytes");
}

TEST_P(Conformance, PrintsReachTheSinkOnceEach) {
  std::vector<uint64_t> seen;
  LaunchOptions options;
  options.print = [&](const artifact::Fault& format, std::span<const uint64_t> values) {
    EXPECT_EQ(format.message, "block {} and {}");
    ASSERT_EQ(values.size(), 2u);
    EXPECT_EQ(values[1], 2 * values[0]);
    seen.push_back(values[0]);
  };
  const KernelRef kernel = load("talk");
  ASSERT_TRUE(run(kernel, {scalarI32(500)}, options));
  ASSERT_TRUE(run(kernel, {scalarI32(500)}));
  if (!executes())
    return;
  std::sort(seen.begin(), seen.end());
  std::vector<uint64_t> expected(500);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
}

// Wrong arguments ---------------------------------------------------------------------------------------------------------

TEST_P(Conformance, WrongArgumentsAreNamed) {
  const KernelRef kernel = load("scale");
  const Tensor x = tensor<float>({1, 2, 3, 4}, ScalarType::F32, {4});
  EXPECT_MENTIONS(launchError(kernel, {x}), "takes 2 arguments, 1 given");
  EXPECT_MENTIONS(launchError(kernel, {x, scalarI32(1)}), "argument 'factor' is a scalar f32, given a scalar i32");
  EXPECT_MENTIONS(launchError(kernel, {scalarF32(1), scalarF32(1)}),
                  "argument 'x' is a tensor of f32 and rank 1, given a scalar f32");
  Tensor other = x;
  other.extents = {2, 2};
  EXPECT_MENTIONS(launchError(kernel, {other, scalarF32(1)}), "given a tensor f32[2, 2]");
  other = x;
  other.extents = {5};
  EXPECT_MENTIONS(launchError(kernel, {other, scalarF32(1)}), "leaves its buffer of 16 bytes");
  other.extents = {INT64_MAX};
  EXPECT_MENTIONS(launchError(kernel, {other, scalarF32(1)}), "takes 36893488147419103228 bytes, a tensor has at most");
  other = x;
  other.strides = {-1};
  EXPECT_MENTIONS(launchError(kernel, {other, scalarF32(1)}), "leaves its buffer");
  other = x;
  other.byteOffset = 2;
  other.extents = {2};
  EXPECT_MENTIONS(launchError(kernel, {other, scalarF32(1)}), "no multiple of its elements' 4 bytes");
  other = x;
  other.extents = {-1};
  EXPECT_MENTIONS(launchError(kernel, {other, scalarF32(1)}), "negative extent -1");
  other = x;
  other.buffer = nullptr;
  EXPECT_MENTIONS(launchError(kernel, {other, scalarF32(1)}), "has no buffer");
}

TEST_P(Conformance, ConstraintsFailWithTheirNumbers) {
  const Tensor empty = tensor<float>({}, ScalarType::F32, {0});
  EXPECT_MENTIONS(launchError(load("scale"), {empty, scalarF32(1)}),
                  "cannot launch kernel 'scale': x needs at least one element, it has 0");
}

TEST_P(Conformance, AliasingWithAWrittenTensorIsRefused) {
  const BufferRef buffer = upload(std::vector<float>(64, 1.0f));
  const KernelRef kernel = load("scale");
  const Tensor first{buffer, 0, ScalarType::F32, {32}, {}}, second{buffer, 128, ScalarType::F32, {32}, {}},
      middle{buffer, 64, ScalarType::F32, {32}, {}};
  EXPECT_TRUE(run(kernel, {first, scalarF32(2)}, {.results = {second}}));
  EXPECT_MENTIONS(launchError(kernel, {first, scalarF32(2)}, {.results = {middle}}),
                  "argument 'x' and result 'y' share memory");
  const Tensor repeated{upload(std::vector<int64_t>{1}), 0, ScalarType::I64, {4}, {0}};
  EXPECT_MENTIONS(launchError(load("update"), {repeated, scalarI64(1), scalarI64(1)}), "elements share memory");
}

TEST_P(Conformance, AnotherDevicesObjectsAreRefused) {
  const DeviceRef other = GetParam().create(0).value();
  const BufferRef foreign = other->allocate(64).value();
  const Tensor x{foreign, 0, ScalarType::F32, {4}, {}};
  EXPECT_MENTIONS(launchError(load("scale"), {x, scalarF32(1)}), "lives on another device");
  EXPECT_FALSE(stream_->fill(foreign, 0, 4, 0));
  EXPECT_FALSE(stream_->record(other->createEvent().value()));
  EXPECT_FALSE(launch(*other, *other->createStream().value(), load("sparse"), {}));
}

TEST_P(Conformance, AMalformedKernelIsNotLoaded) {
  auto kernel = std::make_shared<artifact::Kernel>(kernelNamed("scale"));
  GetParam().addCode(*kernel);
  kernel->slotCount = 1;
  EXPECT_FALSE(device_->load(kernel));
}

// Order, events, faults, threads ------------------------------------------------------------------------------------------

TEST_P(Conformance, WorkOfAStreamRunsInOrder) {
  const KernelRef kernel = load("update");
  const Tensor a = tensor(std::vector<int64_t>(1000, 1), ScalarType::I64, {1000});
  uint64_t expected = 1;
  for (int64_t step = 0; step < 200; ++step) {
    ASSERT_TRUE(launch(*device_, *stream_, kernel, std::vector<Argument>{a, scalarI64(3), scalarI64(step)}));
    expected = expected * 3 + static_cast<uint64_t>(step);
  }
  const std::vector<int64_t> values = download<int64_t>(a.buffer);
  if (executes()) {
    EXPECT_EQ(values, std::vector<int64_t>(1000, static_cast<int64_t>(expected)));
  }
}

TEST_P(Conformance, EventsOrderStreamsAndMeasureTime) {
  const StreamRef other = device_->createStream().value();
  const EventRef start = device_->createEvent().value(), end = device_->createEvent().value();
  EXPECT_TRUE(start->isComplete());
  EXPECT_MENTIONS(end->nanosecondsSince(*start).error().message, "never recorded");
  const BufferRef buffer = device_->allocate(64 << 20).value();
  ASSERT_TRUE(stream_->record(start));
  ASSERT_TRUE(stream_->fill(buffer, 0, buffer->bytes(), 3));
  ASSERT_TRUE(stream_->record(end));
  ASSERT_TRUE(other->wait(end));
  ASSERT_TRUE(other->fill(buffer, 0, 1, 4));
  ASSERT_TRUE(other->synchronize());
  ASSERT_TRUE(end->wait());
  EXPECT_TRUE(end->isComplete());
  EXPECT_GT(end->nanosecondsSince(*start).value(), 0);
  const std::vector<uint8_t> bytes = download<uint8_t>(buffer);
  EXPECT_EQ(bytes[0], 4);
  EXPECT_EQ(bytes[(64 << 20) - 1], 3);
}

TEST_P(Conformance, AFaultIsReportedOnceAndStopsTheStreamUntilThen) {
  if (!executes())
    GTEST_SKIP() << "nothing executes";
  const KernelRef kernel = load("check");
  std::vector<int32_t> x(3000, 5);
  x[700] = 101;
  x[2000] = -1;
  const Tensor input = tensor(x, ScalarType::I32, {3000});
  const BufferRef marker = upload(std::vector<uint8_t>{1});
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(launch(*device_, *stream_, kernel, std::vector<Argument>{input}));
    ASSERT_TRUE(stream_->fill(marker, 0, 1, 99));  // skipped
    const auto failed = stream_->synchronize();
    ASSERT_FALSE(failed);
    // On a CPU the first block in order decides, whatever the threads did; on a GPU the first in time.
    const std::string first = "kernel 'check' stopped: E0702: value above 100 (check.vx:13:9)",
                      second = "kernel 'check' stopped: E0701: value below zero (check.vx:12:5)";
    if (device_->info().hostMemory || failed.error().message != second) {
      EXPECT_EQ(failed.error().message, first);
    }
    ASSERT_TRUE(stream_->lastFault());
    EXPECT_EQ(stream_->lastFault()->fault.line, failed.error().message == first ? 13u : 12u);
    EXPECT_TRUE(stream_->synchronize());
    EXPECT_EQ(download<uint8_t>(marker), std::vector<uint8_t>{1});
  }
}

// Graphs -------------------------------------------------------------------------------------------------------------------

TEST_P(Conformance, ARecordingRunsNothingAndEveryReplayRunsAllOfIt) {
  const KernelRef kernel = load("update");
  const Tensor a = tensor(std::vector<int64_t>(1000, 7), ScalarType::I64, {1000});
  const BufferRef kept = upload(std::vector<int64_t>(1000, -1)), bytes = upload(std::vector<uint8_t>(64, 1));
  ASSERT_TRUE(stream_->beginRecording());
  EXPECT_MENTIONS(stream_->beginRecording().error().message, "recording already");
  std::vector<int64_t> start(1000, 2);
  ASSERT_TRUE(stream_->write(a.buffer, 0, start.data(), 8000));
  start.assign(1000, 99);  // recorded as it was
  ASSERT_TRUE(launch(*device_, *stream_, kernel, std::vector<Argument>{a, scalarI64(3), scalarI64(1)}));
  ASSERT_TRUE(stream_->copy(kept, 0, a.buffer, 0, 8000));
  ASSERT_TRUE(launch(*device_, *stream_, kernel, std::vector<Argument>{a, scalarI64(10), scalarI64(5)}));
  ASSERT_TRUE(stream_->fill(bytes, 8, 8, 3));
  ASSERT_TRUE(stream_->copy(bytes, 4, bytes, 0, 32));  // overlapping
  ASSERT_TRUE(stream_->copy(bytes, 0, bytes, 0, 0));
  const GraphRef graph = stream_->endRecording().value();
  EXPECT_EQ(graph->operations(), 7u);
  EXPECT_EQ(graph->launches(), 2u);
  EXPECT_EQ(download<int64_t>(a.buffer)[0], 7);
  EXPECT_EQ(download<uint8_t>(bytes), std::vector<uint8_t>(64, 1));
  std::vector<uint8_t> expected(64, 1);
  for (int round = 0; round < 300; ++round) {
    ASSERT_TRUE(stream_->replay(graph));
    std::fill_n(expected.begin() + 8, 8, 3);
    const std::vector<uint8_t> before = expected;
    std::copy_n(before.begin(), 32, expected.begin() + 4);
  }
  EXPECT_EQ(download<uint8_t>(bytes), expected);
  if (executes()) {
    EXPECT_EQ(download<int64_t>(kept), std::vector<int64_t>(1000, 7));
    EXPECT_EQ(download<int64_t>(a.buffer), std::vector<int64_t>(1000, 75));
  }
}

TEST_P(Conformance, AnUpdatedLaunchServesTheReplaysThatFollow) {
  const KernelRef kernel = load("update"), other = load("scale");
  const Tensor a = tensor(std::vector<int64_t>(100, 1), ScalarType::I64, {100}),
               b = tensor(std::vector<int64_t>(50, 1), ScalarType::I64, {50});
  ASSERT_TRUE(stream_->beginRecording());
  for (int64_t step = 0; step < 2; ++step)
    ASSERT_TRUE(launch(*device_, *stream_, kernel, std::vector<Argument>{a, scalarI64(2), scalarI64(step)}));
  const GraphRef graph = stream_->endRecording().value();
  ASSERT_TRUE(stream_->replay(graph));  // (1 * 2 + 0) * 2 + 1
  const auto prepared = [&](const KernelRef& which, const std::vector<Argument>& arguments) {
    return prepare(*device_, which, arguments).value();
  };
  ASSERT_TRUE(graph->update(1, prepared(kernel, {a, scalarI64(10), scalarI64(3)})));
  ASSERT_TRUE(stream_->replay(graph));  // (5 * 2 + 0) * 10 + 3
  ASSERT_TRUE(graph->update(0, prepared(kernel, {b, scalarI64(7), scalarI64(0)})));
  ASSERT_TRUE(stream_->replay(graph));  // a: 103 * 10 + 3, b: 7
  EXPECT_MENTIONS(graph->update(2, prepared(kernel, {a, scalarI64(1), scalarI64(1)})).error().message,
                  "has 2 launches");
  const Tensor x = tensor<float>({1}, ScalarType::F32, {1});
  EXPECT_MENTIONS(graph->update(0, prepared(other, {x, scalarF32(1)})).error().message, "runs kernel 'update'");
  if (executes()) {
    EXPECT_EQ(download<int64_t>(a.buffer), std::vector<int64_t>(100, 1033));
    EXPECT_EQ(download<int64_t>(b.buffer), std::vector<int64_t>(50, 7));
  }
}

TEST_P(Conformance, AnUpdateMayTakeOtherSteps) {
  const KernelRef kernel = load("again");
  const Tensor a = tensor(std::vector<int64_t>(50, 1), ScalarType::I64, {50}),
               b = tensor(std::vector<int64_t>(200, 1), ScalarType::I64, {200});
  ASSERT_TRUE(stream_->beginRecording());
  ASSERT_TRUE(launch(*device_, *stream_, kernel, std::vector<Argument>{a, scalarI64(2), scalarI64(1)}));
  const GraphRef graph = stream_->endRecording().value();
  ASSERT_TRUE(stream_->replay(graph));
  const auto update = [&](const Tensor& x) {
    return graph->update(0, prepare(*device_, kernel, std::vector<Argument>{x, scalarI64(2), scalarI64(1)}).value());
  };
  ASSERT_TRUE(update(b));
  ASSERT_TRUE(stream_->replay(graph));
  ASSERT_TRUE(update(a));
  ASSERT_TRUE(stream_->replay(graph));
  ASSERT_TRUE(stream_->synchronize());
  if (executes()) {
    EXPECT_EQ(download<int64_t>(a.buffer), std::vector<int64_t>(50, 7));
    EXPECT_EQ(download<int64_t>(b.buffer), std::vector<int64_t>(200, 15));
  }
}

TEST_P(Conformance, ReplaysFillResultsAnewAndHoldWhatTheyUse) {
  GraphRef graph;
  std::vector<Tensor> results;
  {
    const BufferRef x = upload(std::vector<float>{1, 2, 3});
    ASSERT_TRUE(stream_->beginRecording());
    results = launch(*device_, *stream_, load("scale"),
                     std::vector<Argument>{Tensor{x, 0, ScalarType::F32, {3}, {}}, scalarF32(2)})
                  .value();
    graph = stream_->endRecording().value();
  }
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(stream_->fill(results[0].buffer, 0, 12, 0xff));
    ASSERT_TRUE(stream_->replay(graph));
    if (executes()) {
      EXPECT_EQ(download<float>(results[0].buffer), (std::vector<float>{2, 4, 6}));
    }
  }
  ASSERT_TRUE(stream_->replay(graph));
  graph.reset();  // the replay is queued
  EXPECT_TRUE(stream_->synchronize());
}

TEST_P(Conformance, AStreamThatRecordsRefusesWhatWaits) {
  const BufferRef buffer = upload(std::vector<uint8_t>{1});
  const EventRef event = device_->createEvent().value();
  EXPECT_MENTIONS(stream_->endRecording().error().message, "does not record");
  ASSERT_TRUE(stream_->beginRecording());
  uint8_t byte = 0;
  EXPECT_MENTIONS(stream_->read(&byte, buffer, 0, 1).error().message, "read: the stream is recording");
  EXPECT_FALSE(stream_->record(event));
  EXPECT_FALSE(stream_->wait(event));
  EXPECT_FALSE(stream_->synchronize());
  EXPECT_FALSE(stream_->fill(buffer, 1, 1, 0));  // checked now
  LaunchOptions options;
  options.print = [](const artifact::Fault&, std::span<const uint64_t>) {};
  EXPECT_MENTIONS(
      launch(*device_, *stream_, load("talk"), std::vector<Argument>{scalarI32(1)}, options).error().message,
      "kernel 'talk' prints");
  const GraphRef empty = stream_->endRecording().value();
  EXPECT_EQ(empty->operations(), 0u);
  EXPECT_TRUE(stream_->replay(empty));
  EXPECT_MENTIONS(device_->createStream().value()->replay(empty).error().message, "another stream recorded");
  EXPECT_TRUE(stream_->synchronize());
  EXPECT_TRUE(stream_->read(&byte, buffer, 0, 1));
}

TEST_P(Conformance, AFaultInAReplayIsReportedAsThatOfALaunch) {
  if (!executes())
    GTEST_SKIP() << "nothing executes";
  const KernelRef kernel = load("check");
  const int32_t good = 5, bad = -1;
  const BufferRef x = upload(std::vector<int32_t>{good}), marker = upload(std::vector<uint8_t>{1});
  ASSERT_TRUE(stream_->beginRecording());
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(launch(*device_, *stream_, kernel, std::vector<Argument>{Tensor{x, 0, ScalarType::I32, {1}, {}}}));
  const GraphRef graph = stream_->endRecording().value();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(stream_->write(x, 0, &good, 4));
    ASSERT_TRUE(stream_->replay(graph));
    EXPECT_TRUE(stream_->synchronize());
    ASSERT_TRUE(stream_->write(x, 0, &bad, 4));
    ASSERT_TRUE(stream_->replay(graph));
    ASSERT_TRUE(stream_->fill(marker, 0, 1, 99));  // skipped
    EXPECT_MENTIONS(stream_->synchronize().error().message,
                    "kernel 'check' stopped: E0701: value below zero (check.vx:12:5)");
    EXPECT_TRUE(stream_->synchronize());
    EXPECT_EQ(download<uint8_t>(marker), std::vector<uint8_t>{1});
  }
}

TEST_P(Conformance, ManyThreadsMayUseOneDevice) {
  const KernelRef kernel = load("total");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      const StreamRef stream = device_->createStream().value();
      for (int round = 0; round < 60; ++round) {
        const int64_t n = 1 + (thread * 977 + round * 131) % 5000;
        const std::vector<int32_t> x(n, thread + 1);
        const BufferRef buffer = device_->allocate(n * 4).value();
        stream->write(buffer, 0, x.data(), n * 4).value();
        const auto results =
            launch(*device_, *stream, kernel, std::vector<Argument>{Tensor{buffer, 0, ScalarType::I32, {n}, {}}});
        int64_t sum = 0;
        if (!results || !stream->read(&sum, results->at(0).buffer, 0, 8) || (executes() && sum != n * (thread + 1)))
          ++wrong;
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(Conformance, ManyThreadsMayUseOneStream) {
  const KernelRef kernel = load("update");
  const Tensor a = tensor(std::vector<int64_t>(100, 0), ScalarType::I64, {100});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 6; ++thread)
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round)
        launch(*device_, *stream_, kernel, std::vector<Argument>{a, scalarI64(1), scalarI64(1)}).value();
    });
  for (std::thread& thread : threads)
    thread.join();
  if (executes()) {
    EXPECT_EQ(download<int64_t>(a.buffer), std::vector<int64_t>(100, 600));
  }
}

TEST_P(Conformance, BuffersAndKernelsMayOutliveTheirHandles) {
  std::vector<Tensor> results;
  {
    const Tensor x = tensor<float>({1, 2}, ScalarType::F32, {2});
    results = run(load("scale"), {x, scalarF32(3)}).value();
  }
  device_.reset();
  if (results.at(0).buffer->host() && GetParam().create(0).value()->info().executes) {
    EXPECT_EQ(static_cast<const float*>(results[0].buffer->host())[1], 6.0f);
  }
}

}  // namespace vortex::hal::conformance
