// For tests: whole-tensor or block-level vx text → scheduled → run on the host with poisoned results, temporaries and scratch.
#pragma once

#include "target/cpu/emit/testing/run_kernel.h"

namespace vortex::target::cpu::tiles::testing {

using emit::testing::Arg;
using emit::testing::TestKernel;

struct Argument {
  std::string name, shape;  ///< "?x?xf32"
  bool isResult = false;
};

/// A module with one whole-tensor kernel; arguments are views %name of global memory.
std::string wholeTensor(const std::vector<Argument>& arguments, const std::string& body);

/// The text after the schedule pass, and after the CPU target's own preparation.
std::string scheduled(const std::string& text);

/// A compiled whole-tensor kernel.
class TensorKernel {
public:
  TensorKernel(const std::vector<Argument>& arguments, const std::string& body);
  /// Parameters and results; temporaries are added, with poisoned contents.
  uint32_t run(const std::vector<Arg>& args, unsigned seed = 1);
  std::function<void()> prepare(const std::vector<Arg>& args);
  TestKernel& kernel() { return kernel_; }
  const std::string& text() const { return text_; }

private:
  std::vector<Arg> withTemporaries(const std::vector<Arg>& args);
  std::string text_;
  TestKernel kernel_;
  std::vector<std::vector<uint64_t>> memory_;
};

/// Normally distributed values, from one base::freshSeed() of the process.
std::mt19937& generator();
std::vector<float> randomFloats(size_t count, float scale = 1);

}  // namespace vortex::target::cpu::tiles::testing
