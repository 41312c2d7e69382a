#include "vortex/runtime.h"

#include "artifact/artifact.h"
#include "base/file.h"
#include "runtime/hal/conformance_kernels.h"

#include <bit>
#include <gtest/gtest.h>
#include <random>

namespace {

using namespace vortex;

std::vector<uint8_t> artifactOf(const std::string& name) {
  artifact::Kernel kernel = hal::conformance::kernelNamed(name);
  const std::string object = *base::readFile(VORTEX_CONFORMANCE_OBJECT);
  kernel.target = "cpu-x86_64-test";
  kernel.code.assign(object.begin(), object.end());
  kernel.facts = {
      {"flops", 1024, false}, {"registers.a.0", 40, false}, {"registers.a.1", 96, false}, {"registers.b", 7, false}};
  return artifact::serialize(kernel);
}

class RuntimeTest : public testing::Test {
protected:
  Runtime runtime_{{.nullDevice = true}};
  Device device_ = runtime_.open().value();
  Stream stream_ = device_.createStream().value();
};

TEST_F(RuntimeTest, TheProgramOfTheHeaderRuns) {
  const std::string path = testing::TempDir() + "scale_" + std::to_string(::getpid()) + ".vxk";
  const std::vector<uint8_t> bytes = artifactOf("scale");
  ASSERT_TRUE(base::writeFileAtomic(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));

  vortex::Runtime runtime;
  vortex::Device device = runtime.open("cpu").value();
  vortex::Kernel kernel = device.loadFile(path).value();
  vortex::Stream stream = device.createStream().value();
  std::vector<float> x(1000, 2.0f);
  auto results = stream.launch(kernel, {device.wrap(std::span(x)).value(), 3.0f}).value();
  stream.synchronize().value();
  std::span<float> y = results[0].span<float>().value();

  EXPECT_EQ(std::vector<float>(y.begin(), y.end()), std::vector<float>(1000, 6.0f));
  std::remove(path.c_str());
}

TEST_F(RuntimeTest, DevicesAreListedAndFoundByName) {
  const std::vector<Device> devices = runtime_.devices();
  ASSERT_GE(devices.size(), 2u);  // GPUs come after
  EXPECT_EQ(devices[0].name(), "cpu");
  EXPECT_EQ(devices[1].name(), "null");
  EXPECT_EQ(runtime_.open("gpu").error().message.find("there is no device 'gpu'; this machine has: cpu, null"), 0u);
  EXPECT_GE(device_.workers(), 1u);
  EXPECT_GT(device_.availableBytes().value(), 0u);
}

TEST_F(RuntimeTest, TheArtifactThatSuitsTheDeviceIsLoaded) {
  EXPECT_EQ(device_.target(), "cpu");
  const std::vector<uint8_t> cpu = artifactOf("scale"), junk = {1, 2, 3};
  const EmbeddedArtifact both[] = {{"sm_90", junk}, {"cpu-x86_64-test", cpu}};
  EXPECT_EQ(device_.load(both).value().name(), "scale");
  EXPECT_EQ(device_.load(std::span<const EmbeddedArtifact>()).error().message, "there is no artifact to load");
  const EmbeddedArtifact other[] = {{"sm_90", junk}, {"sm_80", junk}};
  EXPECT_EQ(device_.load(other).error().message, "the kernel was built for sm_90, sm_80; device 'cpu' needs cpu");
}

TEST_F(RuntimeTest, KernelsDescribeThemselves) {
  const Kernel kernel = device_.load(artifactOf("scale")).value();
  EXPECT_EQ(kernel.name(), "scale");
  EXPECT_EQ(kernel.params().at(0).name, "x");
  EXPECT_EQ(kernel.params().at(0).rank, 1u);
  EXPECT_EQ(kernel.params().at(1).type, DType::F32);
  EXPECT_TRUE(kernel.results().at(0).isWritten);
  EXPECT_EQ(kernel.fact("flops"), 1024);
  EXPECT_EQ(kernel.fact("registers"), 96);
  EXPECT_EQ(kernel.fact("registers.a.0"), 40);
  EXPECT_EQ(kernel.fact("spill_bytes"), std::nullopt);
  const std::vector<std::pair<std::string, int64_t>> facts = {
      {"flops", 1024}, {"registers", 96}, {"registers.a.0", 40}, {"registers.a.1", 96}, {"registers.b", 7}};
  EXPECT_EQ(kernel.facts(), facts);
}

TEST_F(RuntimeTest, DamagedArtifactsAreErrors) {
  std::vector<uint8_t> bytes = artifactOf("scale");
  bytes[100] ^= 1;
  EXPECT_NE(device_.load(bytes).error().message.find("damaged"), std::string::npos);
  bytes.push_back(0);
  EXPECT_NE(device_.load(bytes).error().message.find("another length than it announces"), std::string::npos);
  EXPECT_NE(device_.loadFile("/no/such/file").error().message.find("/no/such/file"), std::string::npos);
}

TEST_F(RuntimeTest, NumbersAreConvertedToTheParametersTypeOrRefused) {
  const Kernel scale = device_.load(artifactOf("scale")).value(), update = device_.load(artifactOf("update")).value();
  std::vector<float> x = {1, 2};
  const Tensor view = device_.wrap(std::span(x)).value();
  for (const Argument& two : {Argument(2.0f), Argument(2.0), Argument(2), Argument(uint8_t{2}),
                              Argument(DType::F32, std::bit_cast<uint32_t>(2.0f))})
    EXPECT_EQ(stream_.read<float>(stream_.launch(scale, {view, two}).value()[0]).value(), (std::vector<float>{2, 4}));
  std::vector<int64_t> a = {5};
  const Tensor counter = device_.wrap(std::span(a)).value();
  ASSERT_TRUE(stream_.launch(update, {counter, -1, uint64_t{7}}));
  EXPECT_EQ(a[0], 2);
  const auto message = [&](const Argument& argument) {
    const auto launched = stream_.launch(update, {counter, argument, 0});
    return launched ? std::string("no error") : launched.error().message;
  };
  EXPECT_EQ(message(UINT64_MAX), "cannot launch kernel 'update': argument 'factor' is a scalar i64, which cannot hold "
                                 "the integer 18446744073709551615");
  EXPECT_NE(message(1.5).find("the floating-point number 1.5"), std::string::npos);
  EXPECT_NE(message(true).find("the bool true"), std::string::npos);
  EXPECT_NE(message(Argument(DType::I32, 1)).find("given a scalar i32"), std::string::npos);
  EXPECT_NE(message(counter).find("given a tensor i64[1]"), std::string::npos);
  EXPECT_NE(stream_.launch(update, {1, 2, 3}).error().message.find("argument 'a' is a tensor of i64 and rank 1"),
            std::string::npos);
}

TEST_F(RuntimeTest, IntegersAreRoundedOnceToAFloatParameter) {
  const Kernel scale = device_.load(artifactOf("scale")).value();
  std::vector<float> one = {1};
  const Tensor view = device_.wrap(std::span(one)).value();
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    // Near the middle between two floats: what is lost on the way through a double decides.
    const int top = 24 + static_cast<int>(random() % 39);
    const int64_t ulp = int64_t{1} << (top - 23);
    const int64_t value = (int64_t{1} << top) + static_cast<int64_t>(random() % 100) * ulp + ulp / 2 +
                          static_cast<int64_t>(random() % 3) - 1;
    for (const int64_t number : {value, -value})
      EXPECT_EQ(stream_.read<float>(stream_.launch(scale, {view, number}).value()[0]).value()[0],
                static_cast<float>(number))
          << number;
  }
  EXPECT_EQ(stream_.read<float>(stream_.launch(scale, {view, UINT64_MAX}).value()[0]).value()[0], 0x1p64f);
}

TEST_F(RuntimeTest, BitsAndTypesThatThereAreNotAreRefused) {
  const auto unknown = static_cast<DType>(99);
  const Kernel scale = device_.load(artifactOf("scale")).value(), update = device_.load(artifactOf("update")).value();
  const Tensor x = device_.upload<float>(std::vector<float>{1, 2}, {2}).value();
  const auto given = [&](const Argument& argument) { return stream_.launch(scale, {x, argument}).error().message; };
  EXPECT_EQ(given(Argument(DType::F32, uint64_t{1} << 32)),
            "cannot launch kernel 'scale': argument 'factor' is a scalar f32, given bits that no f32 has: 4294967296");
  EXPECT_NE(given(Argument(DType::I16, 0x12fff0)).find("no i16 has: 1245168"), std::string::npos);
  EXPECT_NE(given(Argument(DType::Bool, 2)).find("no bool has: 2"), std::string::npos);
  for (const uint64_t bits : {uint64_t{0xfff0}, ~uint64_t{15}})  // -16
    EXPECT_NE(given(Argument(DType::I16, bits)).find("given a scalar i16"), std::string::npos);
  EXPECT_NE(given(Argument(unknown, 0)).find("unknown type: 99"), std::string::npos);

  EXPECT_STREQ(name(unknown), "an unknown type");
  EXPECT_EQ(byteSize(unknown), 0u);
  Tensor wrong = x;
  wrong.type = unknown;
  const std::string expected = "a tensor of an unknown element type: 99";
  float value = 0;
  for (const std::string& message :
       {device_.empty(unknown, {2}).error().message, device_.uploadBytes(unknown, {2}, &value, 4).error().message,
        device_.wrapBytes(unknown, {2}, &value, 4).error().message, wrong.reshaped({2}).error().message,
        stream_.write(wrong, &value, 4).error().message, stream_.read(wrong, &value, 4).error().message,
        stream_.launch(scale, {wrong, 1}).error().message,
        stream_.launch(scale, {x, 1}, {.results = {wrong}}).error().message,
        stream_
            .launch(scale, {x, 1},
                    {.allocate = [&](size_t, DType, std::span<const int64_t>) -> Result<Tensor> { return wrong; }})
            .error()
            .message})
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  EXPECT_NE(stream_.read<float>(wrong).error().message.find("an unknown type"), std::string::npos);
  EXPECT_FALSE(wrong.span<float>().ok());
}

TEST_F(RuntimeTest, TensorsWithoutStridesAreRowMajorAndOthersHaveOneForEachExtent) {
  const std::vector<float> values = {0, 1, 2, 3, 4, 5};
  Tensor tensor = device_.upload<float>(values, {2, 3}).value();
  tensor.strides = {};
  EXPECT_EQ(stream_.read<float>(tensor).value(), values);
  EXPECT_EQ(tensor.slice(0, 1, 2).value().strides, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(tensor.transposed(0, 1).value().strides, (std::vector<int64_t>{1, 3}));
  tensor.strides = {1};
  EXPECT_FALSE(tensor.isContiguous());
  EXPECT_EQ(tensor.slice(1, 0, 1).error().message, "a tensor has 2 extents and 1 strides");
  EXPECT_FALSE(tensor.transposed(0, 1).ok());
  EXPECT_FALSE(stream_.read<float>(tensor).ok());
}

TEST_F(RuntimeTest, TensorsThatLieAboutTheirSizeAreNotRead) {
  Tensor tensor = device_.upload<float>(std::vector<float>{1, 2}, {2}).value();
  for (const int64_t extent : {int64_t{-2}, int64_t{3}, int64_t{1} << 44, INT64_MAX}) {
    tensor.extents = {extent};
    EXPECT_FALSE(stream_.read<float>(tensor).ok()) << extent;
  }
  EXPECT_FALSE(stream_.read<float>(Tensor{}).ok());
}

TEST_F(RuntimeTest, ViewsSliceTransposeAndReshape) {
  std::vector<float> x(12);
  for (int i = 0; i < 12; ++i)
    x[i] = static_cast<float>(i);
  const Tensor tensor = device_.upload<float>(x, {3, 4}).value();
  const Kernel transpose = device_.load(artifactOf("transpose")).value();
  const Tensor columns = tensor.slice(1, 1, 4, 2).value();
  EXPECT_FALSE(columns.isContiguous());
  EXPECT_EQ(stream_.read<float>(stream_.launch(transpose, {columns}).value()[0]).value(),
            (std::vector<float>{1, 5, 9, 3, 7, 11}));
  const Tensor turned = tensor.transposed(0, 1).value();
  EXPECT_EQ(stream_.read<float>(stream_.launch(transpose, {turned}).value()[0]).value(), x);
  EXPECT_EQ(tensor.reshaped({2, 6}).value().strides, (std::vector<int64_t>{6, 1}));
  EXPECT_FALSE(tensor.reshaped({5}));
  EXPECT_FALSE(turned.reshaped({12}));
  EXPECT_FALSE(tensor.slice(2, 0, 1));
  EXPECT_FALSE(tensor.slice(0, 2, 1));
  EXPECT_FALSE(tensor.slice(0, 0, 4));
  EXPECT_TRUE(tensor.slice(0, 3, 3));
  EXPECT_FALSE(turned.span<float>());
  EXPECT_FALSE(tensor.span<double>());
  EXPECT_EQ(tensor.span<float>().value()[11], 11.0f);
}

TEST_F(RuntimeTest, FaultsCarryTheirPlace) {
  const Kernel check = device_.load(artifactOf("check")).value();
  const std::vector<int32_t> x = {1, -1, 2};
  ASSERT_TRUE(stream_.launch(check, {device_.upload<int32_t>(x, {3}).value()}));
  EXPECT_EQ(stream_.synchronize().error().message, "kernel 'check' stopped: E0701: value below zero (check.vx:12:5)");
  EXPECT_EQ(stream_.lastFault()->line, 12u);
  EXPECT_EQ(stream_.lastFault()->id, "E0701");
}

TEST_F(RuntimeTest, SizesThatDoNotFitAreErrorsWithNumbers) {
  std::vector<float> x(3);
  EXPECT_NE(device_.wrap(std::span(x), {4}).error().message.find("f32[4] has 16 bytes, the memory 12"),
            std::string::npos);
  EXPECT_NE(device_.upload<float>(x, {2, 2}).error().message.find("the tensor has 16 bytes, the host memory 12"),
            std::string::npos);
  EXPECT_NE(device_.empty(DType::F64, {int64_t{1} << 40, 8}).error().message.find("70368744177664 bytes requested"),
            std::string::npos);
  EXPECT_FALSE(device_.empty(DType::F64, {-1}));
}

TEST_F(RuntimeTest, ShapesThatWrapOrExceedAnyDeviceAreRefusedHoweverATensorIsMade) {
  const int64_t most = int64_t{1} << 47, wide = int64_t{1} << 32;
  std::vector<uint8_t> none;
  const std::vector<std::vector<int64_t>> refused = {
      {most + 1}, {wide, wide}, {wide, wide, wide, wide}, {0, most + 1}, {wide, 0, wide}};
  for (const std::vector<int64_t>& extents : refused) {
    for (const std::string& message :
         {device_.empty(DType::U8, extents).error().message, device_.wrap(std::span(none), extents).error().message,
          device_.upload<uint8_t>(none, extents).error().message})
      EXPECT_NE(message.find("at most 140737488355328"), std::string::npos) << message;
    Tensor view = device_.empty(DType::U8, {0}).value();
    EXPECT_FALSE(view.reshaped(extents).ok());
    view.extents = extents;
    view.strides = std::vector<int64_t>(extents.size(), 0);
    EXPECT_FALSE(stream_.write(view, nullptr, 0).ok());
    EXPECT_FALSE(view.span<uint8_t>().ok());
  }
  EXPECT_EQ(device_.empty(DType::U8, {0, most}).value().elements(), 0);
  EXPECT_TRUE(device_.wrap(std::span(none), {most, 0}).ok());
}

TEST_F(RuntimeTest, GraphsReplayWhatWasRecorded) {
  const Kernel scale = device_.load(artifactOf("scale")).value();
  const Tensor x = device_.upload<float>(std::vector<float>{1, 2}, {2}).value();
  ASSERT_TRUE(stream_.beginRecording());
  const Tensor twice = stream_.launch(scale, {x, 2.0f}).value()[0];
  const Tensor sixfold = stream_.launch(scale, {twice, 3.0f}).value()[0];
  EXPECT_FALSE(stream_.synchronize());
  Graph graph = stream_.endRecording().value();
  EXPECT_EQ(graph.launches(), 2u);
  ASSERT_TRUE(stream_.replay(graph));
  EXPECT_EQ(stream_.read<float>(sixfold).value(), (std::vector<float>{6, 12}));
  const Argument arguments[] = {twice, 10.0f};
  ASSERT_TRUE(graph.update(1, scale, arguments, {.results = {sixfold}}));
  EXPECT_FALSE(graph.update(2, scale, arguments));
  ASSERT_TRUE(stream_.replay(graph));
  EXPECT_EQ(stream_.read<float>(sixfold).value(), (std::vector<float>{20, 40}));
}

TEST_F(RuntimeTest, EventsMeasure) {
  Event start = device_.createEvent().value(), end = device_.createEvent().value();
  ASSERT_TRUE(stream_.record(start));
  const Buffer buffer = device_.allocate(32 << 20).value();
  ASSERT_TRUE(stream_.fill(buffer, 0, 32 << 20, 1));
  ASSERT_TRUE(stream_.record(end));
  EXPECT_GT(end.nanosecondsSince(start).value(), 0);
}

}  // namespace
