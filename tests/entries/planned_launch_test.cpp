// Kernels that are planned, loaded and launched through the public interface, on the stand-in for a GPU.
#include "tests/entries/compiled.h"

#include "vortex/compiler.h"
#include "vortex/runtime.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <unistd.h>

namespace vortex::entries {
namespace {

namespace fs = std::filesystem;

class PlannedLaunches : public testing::Test {
protected:
  PlannedLaunches() {
    std::string pattern = testing::TempDir() + "vortex_plans_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("VORTEX_CACHE_DIR", folder_.c_str(), 1);
  }
  ~PlannedLaunches() override {
    ::unsetenv("VORTEX_CACHE_DIR");
    fs::remove_all(folder_);
  }
  KernelPlan plan(const char* kernel, bool useCache = false) {
    return program.plan(kernel, {.target = device.target(), .useCache = useCache}).value();
  }
  /// Counts what it makes.
  EntrySource counted(EntrySource entries) {
    return [this, entries = std::move(entries)](const std::string& entry) {
      ++made;
      return entries(entry);
    };
  }
  std::vector<Argument> operands(int64_t m, int64_t k, int64_t n) const {
    return {device.empty(DType::F16, {m, k}).value(), device.empty(DType::F16, {k, n}).value()};
  }
  size_t files() const {
    size_t count = 0;
    for (const auto& item : fs::recursive_directory_iterator(folder_))
      count += item.is_regular_file() && item.path().filename() != "lock";
    return count;
  }

  std::string folder_;
  const bool hasStandIn_ = ::setenv("VORTEX_LIBCUDA", VORTEX_FAKE_CUDA, 1) == 0;
  Runtime runtime;
  Device device = runtime.open("cuda:0").value();
  Stream stream = device.createStream().value();
  Program program = Program::compile("kernels.vx", kKernels);
  std::atomic<int> made = 0;
};

TEST_F(PlannedLaunches, MakeWhatTheyRunAndNothingTwice) {
  const KernelPlan planned = plan("product");
  const Kernel kernel = device.load(planned.artifact, counted(planned.entries)).value();
  EXPECT_EQ(made, 0);
  ASSERT_TRUE(stream.launch(kernel, operands(256, 256, 256)));
  const int first = made;
  EXPECT_GE(first, 1);
  EXPECT_LE(first, 3);
  ASSERT_TRUE(stream.launch(kernel, operands(256, 256, 256)));
  EXPECT_EQ(made, first);
  ASSERT_TRUE(stream.launch(kernel, operands(255, 255, 255)));
  EXPECT_GT(made, first);
  EXPECT_TRUE(stream.synchronize());
}

TEST_F(PlannedLaunches, OfAnArtifactAloneAreRefused) {
  const KernelPlan planned = plan("product");
  const Kernel kernel = device.load(planned.artifact).value();
  const auto refused = stream.launch(kernel, operands(64, 64, 64));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("product"), std::string::npos) << refused.error().message;
}

TEST_F(PlannedLaunches, ReplayWithoutTheCompiler) {
  const KernelPlan planned = plan("product");
  const Kernel kernel = device.load(planned.artifact, counted(planned.entries)).value();
  ASSERT_TRUE(stream.beginRecording());
  ASSERT_TRUE(stream.launch(kernel, operands(256, 256, 256)));
  const int recorded = made;
  EXPECT_GE(recorded, 1);
  Graph graph = stream.endRecording().value();
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(stream.replay(graph));
  EXPECT_EQ(made, recorded);
  ASSERT_TRUE(graph.update(0, kernel, operands(255, 255, 255)));
  const int updated = made;
  EXPECT_GT(updated, recorded);
  ASSERT_TRUE(stream.replay(graph));
  EXPECT_EQ(made, updated);
  EXPECT_TRUE(stream.synchronize());
}

TEST_F(PlannedLaunches, OfSeveralThreadsMakeAnEntryPointOnce) {
  const KernelPlan planned = plan("soft");
  const Kernel kernel = device.load(planned.artifact, counted(planned.entries)).value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      Stream own = device.createStream().value();
      EXPECT_TRUE(own.launch(kernel, {device.empty(DType::F32, {64, 1024}).value()}));
      EXPECT_TRUE(own.synchronize());
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(made, 1);
}

TEST_F(PlannedLaunches, FailWhereTheCompilerDoes) {
  const KernelPlan planned = plan("soft");
  int asked = 0;
  const Kernel kernel = device
                            .load(planned.artifact,
                                  [&](const std::string& entry) -> Result<std::vector<uint8_t>> {
                                    return asked++ == 0 ? Result<std::vector<uint8_t>>(Error{"no compiler today"})
                                                        : planned.entries(entry);
                                  })
                            .value();
  const std::vector<Argument> rows{device.empty(DType::F32, {64, 1024}).value()};
  const auto failed = stream.launch(kernel, rows);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("cannot load kernel 'soft', entry point '"), std::string::npos)
      << failed.error().message;
  EXPECT_NE(failed.error().message.find("no compiler today"), std::string::npos) << failed.error().message;
  EXPECT_TRUE(stream.launch(kernel, rows));
  EXPECT_FALSE(planned.entries("nothing"));
  EXPECT_TRUE(stream.synchronize());
}

TEST_F(PlannedLaunches, OfAPlanThatWasKeptAreTheSame) {
  const KernelPlan planned = plan("product", true);
  EntrySource later = Program::entriesOf(planned.kept).value();
  std::string symbol;
  const Kernel kernel = device
                            .load(planned.artifact,
                                  [&](const std::string& entry) {
                                    symbol = entry;
                                    return planned.entries(entry);
                                  })
                            .value();
  ASSERT_TRUE(stream.launch(kernel, operands(256, 256, 256)));
  const size_t before = files();
  EXPECT_EQ(later(symbol).value(), planned.entries(symbol).value());
  EXPECT_EQ(Program::entriesOf(planned.kept, false).value()(symbol).value(), planned.entries(symbol).value());
  EXPECT_EQ(files(), before);
  for (size_t at = 0; at < planned.kept.size(); at += planned.kept.size() / 50) {
    std::vector<uint8_t> damaged = planned.kept;
    damaged[at] ^= 1;
    EXPECT_FALSE(Program::entriesOf(damaged));
    damaged = planned.kept;
    damaged.resize(at);
    EXPECT_FALSE(Program::entriesOf(damaged));
  }
  EXPECT_TRUE(stream.synchronize());
}

TEST_F(PlannedLaunches, OfAProgramThatIsGoneWork) {
  KernelPlan planned = [&] {
    const Program other = Program::compile("kernels.vx", kKernels);
    return other.plan("product", {.target = device.target(), .useCache = false}).value();
  }();
  const Kernel kernel = device.load(planned.artifact, std::exchange(planned.entries, nullptr)).value();
  EXPECT_TRUE(stream.launch(kernel, operands(32, 256, 128)));
  EXPECT_TRUE(stream.synchronize());
}

TEST_F(PlannedLaunches, OfACompleteKernelNeedNoSource) {
  const KernelPlan planned = program.plan("soft", {.target = "cpu", .useCache = false}).value();
  EXPECT_FALSE(planned.entries);
  EXPECT_TRUE(planned.kept.empty());
  const Device cpu = runtime.open("cpu").value();
  EXPECT_TRUE(cpu.load(planned.artifact, planned.entries));
}

}  // namespace
}  // namespace vortex::entries
