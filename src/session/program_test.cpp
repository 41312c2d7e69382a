#include "base/fresh_seed.h"
#include "vortex/compiler.h"
#include "vortex/runtime.h"

#include <gtest/gtest.h>
#include <random>

namespace {

using namespace vortex;

constexpr const char* kScale =
    "kernel scale(x: &Tensor<f32, [N]>, factor: f32) -> Tensor<f32, [N]> {\n    return x * factor\n}\n";

std::vector<float> randomNumbers(size_t count) {
  std::mt19937 generator(base::freshSeed());
  std::uniform_real_distribution<float> uniform(-4, 4);
  std::vector<float> numbers(count);
  for (float& number : numbers)
    number = uniform(generator);
  return numbers;
}

TEST(ProgramTest, ACompiledKernelRunsOnTheDevice) {
  const Program program = Program::compile("scale.vx", kScale);
  ASSERT_TRUE(program.ok()) << program.report();
  Runtime runtime;
  const Device device = runtime.open("cpu").value();
  const auto artifact = program.build("scale", {.target = device.target()});
  ASSERT_TRUE(artifact.ok()) << artifact.error().message;
  const Kernel kernel = device.load(*artifact).value();
  std::vector<float> x = randomNumbers(1003);
  Stream stream = device.createStream().value();
  const auto results = stream.launch(kernel, {device.wrap(std::span(x)).value(), 3.0f}).value();
  const std::vector<float> y = stream.read<float>(results[0]).value();
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(y[i], x[i] * 3.0f);
}

TEST(ProgramTest, APreparedLaunchRunsAsOftenAsItIsSubmitted) {
  const Program program =
      Program::compile("step.vx", "kernel step(x: &mut Tensor<f32, [N]>) {\n    x[thread.global_id] += 1.0\n}\n");
  Runtime runtime;
  const Device device = runtime.open("cpu").value();
  const Kernel kernel = device.load(program.build("step").value()).value();
  std::vector<float> x(77, 0.0f);
  Stream stream = device.createStream().value();
  const Argument argument = device.wrap(std::span(x)).value();
  const PreparedLaunch launch = stream.prepare(kernel, {&argument, 1}).value();
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(stream.submit(launch).ok());
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_EQ(x, std::vector<float>(77, 5.0f));
  EXPECT_EQ(device.wrap(std::span(x)).value().buffer.address(), reinterpret_cast<uint64_t>(x.data()));
  Runtime other;
  Stream foreign = other.open("cpu").value().createStream().value();
  EXPECT_NE(foreign.submit(launch).error().message.find("another device"), std::string::npos);
}

TEST(ProgramTest, LaunchesKeepToTheBlocksAndGridsThatTheChecksHoldFor) {
  const Program program = Program::compile("rows.vx", R"(
kernel rows(x: &mut Tensor<f32, [N, 8]>) {
    if thread.global_id.y < N {
        for c in 0..8 {
            x[thread.global_id.y, c] += 1.0
        }
    }
}
)",
                                           {.dims = {}, .importPaths = {}, .isGridGiven = true, .instances = {}});
  Runtime runtime;
  const Device device = runtime.open("cpu").value();
  const auto built = [&](std::array<int64_t, 3> block) {
    return program.build("rows", {.target = device.target(), .isGridGiven = true, .block = block});
  };
  const Kernel kernel = device.load(built({1, 64, 1}).value()).value();
  Stream stream = device.createStream().value();
  std::vector<float> x(100 * 8, 0.0f);
  const auto launched = [&](std::array<int64_t, 3> grid) {
    LaunchOptions options;
    options.grid = grid;
    const Argument argument = device.wrap(std::span(x), {100, 8}).value();
    const auto results = stream.launch(kernel, {argument}, options);
    return results.ok() ? std::string() : results.error().message;
  };
  EXPECT_EQ(launched({1, 2, 1}), "");
  EXPECT_NE(launched({3, 2, 1}).find("proven free of races for 1 block along x, and the launch has 3"),
            std::string::npos);
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_EQ(x, std::vector<float>(100 * 8, 1.0f));
  for (int again = 0; again < 2; ++again)
    EXPECT_NE(built({2, 64, 1}).error().message.find("error[E0630]: race on `x`"), std::string::npos);
  EXPECT_TRUE(built({1, 128, 1}).ok());
}

TEST(ProgramTest, BlocksThatTheKernelComputesAreNoOthers) {
  const Program program = Program::compile("parts.vx", R"(
@launch(grid = [ceil_div(N, M)], block = M)
kernel parts(x: &mut Tensor<f32, [N]>, y: &Tensor<f32, [M]>) {
    let i = block.id.x * M + thread.local_id
    if i < N {
        x[i] += y[thread.local_id]
    }
}
)");
  EXPECT_EQ(program.report(), "");
  EXPECT_TRUE(program.build("parts").ok());
  const auto other = program.build("parts", {.block = std::array<int64_t, 3>{64, 1, 1}});
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("error[E0630]: race on `x`"), std::string::npos) << other.error().message;
}

TEST(ProgramTest, TheInterpreterAgreesWithTheDevice) {
  const Program program = Program::compile("scale.vx", kScale);
  std::vector<float> x = randomNumbers(37);
  const float factor = 2.5f;
  uint32_t bits;
  std::memcpy(&bits, &factor, 4);
  const auto results = program.interpret(
      "scale", std::vector<HostArgument>{{x.data(), {37}, {}, 0}, {nullptr, {}, {}, bits}}, {}, {.check = true});
  ASSERT_TRUE(results.ok()) << results.error().message;
  ASSERT_EQ((*results)[0].bytes.size(), 37 * sizeof(float));
  std::vector<float> y(37);
  std::memcpy(y.data(), (*results)[0].bytes.data(), 37 * sizeof(float));
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(y[i], x[i] * factor);
}

TEST(ProgramTest, DiagnosticsHaveIdPlaceAndRendering) {
  const Program program =
      Program::compile("bad.vx", "kernel k(x: &Tensor<f32, [N]>) {\n    x[thread.global_id] = 1.0\n}\n");
  ASSERT_FALSE(program.ok());
  const Diagnostic& diagnostic = program.diagnostics()[0];
  EXPECT_EQ(diagnostic.severity, "error");
  EXPECT_FALSE(diagnostic.id.empty());
  ASSERT_FALSE(diagnostic.labels.empty());
  EXPECT_EQ(diagnostic.labels[0].file, "bad.vx");
  EXPECT_EQ(diagnostic.labels[0].line, 2u);
  EXPECT_NE(diagnostic.rendered.find("bad.vx:2:"), std::string::npos);
  EXPECT_NE(program.build("k").error().message.find(diagnostic.message), std::string::npos);
}

TEST(ProgramTest, WhatThereIsNotIsNamed) {
  const Program program = Program::compile("scale.vx", kScale);
  EXPECT_EQ(program.build("scal").error().message, "there is no kernel 'scal'; there are scale");
  EXPECT_NE(program.text("scale", "nothing").error().message.find("there is no stage 'nothing'; there are irgen"),
            std::string::npos);
  EXPECT_EQ(program.text("scale", "vxt").error().message,
            "code for this target has no stage `vxt`; choose another target");
  EXPECT_NE(program.text("scale", "assembly").value().find("scale"), std::string::npos);
  EXPECT_FALSE(program.build("scale", {.target = "sm_20"}).ok());
}

TEST(ProgramTest, ParametersAndTheExtentsToGiveAreDescribed) {
  const Program program = Program::compile(
      "rows.vx", "kernel rows(x: &Tensor<f32, [M, N]>, y: &mut Tensor<f32, [N]>, k: i32) {\n"
                 "    let t: Tensor<f32, [N]> @shared\n    t[thread.local_id] = x[0, thread.local_id]\n"
                 "    sync_block()\n    y[thread.global_id] = t[thread.local_id]\n}\n");
  ASSERT_TRUE(program.ok()) << program.report();
  const KernelInfo kernel = program.kernels().at(0);
  ASSERT_EQ(kernel.params.size(), 3u);
  EXPECT_EQ(kernel.params[0].rank, 2u);
  EXPECT_FALSE(kernel.params[0].isWritten);
  EXPECT_TRUE(kernel.params[1].isWritten);
  EXPECT_EQ(kernel.params[2].dtype, DType::I32);
  ASSERT_EQ(kernel.fixedExtents.size(), 1u);
  EXPECT_NE(program.build("rows").error().message.find("one value of `N`"), std::string::npos);
}

}  // namespace
