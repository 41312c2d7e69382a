#include "base/fresh_seed.h"
#include "vortex/metal_program.h"
#include "vortex/runtime.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

namespace vortex {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSaxpy = R"(#include <metal_stdlib>
using namespace metal;
constant float extra [[function_constant(4)]];
kernel void saxpy(device const float* x [[buffer(0)]], device float* y [[buffer(2)]], constant float3& a [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  threadgroup float kept[64];
  kept[i % 64] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] += a.x * kept[i % 64] + extra;
}
)";

/// A cache of its own for each test.
class MetalProgramTest : public testing::Test {
protected:
  MetalProgramTest() {
    // Not by a seed: the parts of a suite run beside each other with the same one.
    std::string name = (fs::temp_directory_path() / "metal_program.XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    ::setenv("VORTEX_CACHE_DIR", (folder_ / "cache").c_str(), 1);
  }
  ~MetalProgramTest() override { fs::remove_all(folder_); }
  size_t entries() const {
    size_t count = 0;
    for (const auto& each : fs::recursive_directory_iterator(folder_ / "cache"))
      count += each.is_regular_file();
    return count;
  }
  void write(const char* name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  fs::path folder_;
};

TEST_F(MetalProgramTest, SaysWhatItsKernelsTake) {
  const MetalProgram program = MetalProgram::compile("saxpy.metal", kSaxpy);
  ASSERT_TRUE(program.ok()) << program.report();
  const auto kernels = program.kernels();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].name, "saxpy");
  EXPECT_EQ(kernels[0].parameters[2].leastBytes, 12u) << "of a float3 the fourth float is never read";
  EXPECT_EQ(kernels[0].parameters[0].leastBytes, 0u);
  ASSERT_EQ(program.constants().size(), 1u);
  EXPECT_EQ(program.constants()[0].name, "extra");
  EXPECT_EQ(program.constants()[0].index, 4u);
  const MetalCode code = program.lower("saxpy", {.constants = {{4, 0.5}}}).value();
  EXPECT_EQ(code.staticThreadgroupBytes, 256u);
  EXPECT_EQ(code.buffers.size(), 3u);
}

TEST_F(MetalProgramTest, ItsKernelsRunAlsoFromTheCache) {
  std::mt19937 random(base::freshSeed());
  std::uniform_real_distribution<float> uniform(-4, 4);
  std::vector<float> x(200), start(200), a{uniform(random), 0, 0};
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = uniform(random);
    start[i] = uniform(random);
  }
  Runtime runtime;
  const Device device = runtime.open("cpu").value();
  Stream stream = device.createStream().value();
  for (int round = 0; round < 2; ++round) {
    const MetalProgram program = MetalProgram::compile("saxpy.metal", kSaxpy);
    const auto code = program.build(
        "saxpy", {.target = device.target(), .block = std::array<int64_t, 3>{64, 1, 1}, .constants = {{4, 0.5}}});
    ASSERT_TRUE(code) << code.error().message;
    static size_t kept = 0;
    if (round == 0)
      kept = entries();
    else
      EXPECT_EQ(entries(), kept) << "nothing was made that was not found";
    const Kernel kernel = device.load(code->artifact).value();
    std::vector<float> y = start;
    std::vector<Argument> arguments;
    for (const MetalBufferUse& use : code->buffers) {
      std::vector<float>& of = use.index == 0 ? x : use.index == 2 ? y : a;
      arguments.emplace_back(device
                                 .wrapBytes(kernel.params()[arguments.size()].type, {static_cast<int64_t>(of.size())},
                                            of.data(), of.size() * 4)
                                 .value());
    }
    for (const int64_t size : {200, 1, 1, 64, 1, 1})
      arguments.emplace_back(size);
    const auto launched = stream.launch(kernel, arguments);
    ASSERT_TRUE(launched) << launched.error().message;
    ASSERT_TRUE(stream.synchronize());
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(y[i], start[i] + a[0] * x[i] + 0.5f, 1e-5);
  }
}

TEST_F(MetalProgramTest, AnIncludedFileThatChangedIsReadAgain) {
  const std::string main = "#include \"part.h\"\nkernel void k(device int* x [[buffer(0)]]) { x[0] = VALUE; }\n";
  const std::string name = (folder_ / "main.metal").string();
  write("part.h", "#define VALUE 1\n");
  EXPECT_TRUE(MetalProgram::compile(name, main).ok());
  const size_t kept = entries();
  EXPECT_TRUE(MetalProgram::compile(name, main).ok());
  EXPECT_EQ(entries(), kept);
  write("part.h", "#define VALUE no_such_name\n");
  const MetalProgram broken = MetalProgram::compile(name, main);
  EXPECT_FALSE(broken.ok());
  EXPECT_NE(broken.report().find("no_such_name"), std::string::npos) << broken.report();
  write("part.h", "#define VALUE 1\n");
  EXPECT_TRUE(MetalProgram::compile(name, main).ok());
}

TEST_F(MetalProgramTest, ErrorsOfTextThatIsNoFileShowItsLines) {
  const MetalProgram program =
      MetalProgram::compile("program_source", "kernel void k(device int* x [[buffer(0)]]) {\n  x[0] = y;\n}\n");
  ASSERT_FALSE(program.ok());
  ASSERT_EQ(program.diagnostics().size(), 1u);
  EXPECT_EQ(program.diagnostics()[0].labels[0].line, 2u);
  EXPECT_EQ(program.diagnostics()[0].labels[0].column, 10u);
  EXPECT_NE(program.report().find("x[0] = y;"), std::string::npos) << program.report();
  EXPECT_EQ(program.build("k").error().message, program.report());
}

TEST_F(MetalProgramTest, RefusesKernelsThatAreNotThereAndTargetsThatAreUnknown) {
  const MetalProgram program = MetalProgram::compile("saxpy.metal", kSaxpy);
  EXPECT_NE(program.build("daxpy").error().message.find("there are `saxpy`"), std::string::npos);
  EXPECT_FALSE(program.build("saxpy", {.target = "sm_10"}));
}

}  // namespace
}  // namespace vortex
