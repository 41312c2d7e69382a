// For tests: compiles vx text for the host and runs its grid block by block, in a seeded order, with poisoned scratch memory.
#pragma once

#include "artifact/steps.h"
#include "target/cpu/cpu_target.h"

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace vortex::target::cpu::emit::testing {

/// One launch argument: a tensor in host memory or the bits of a scalar.
struct Arg {
  void* data = nullptr;
  std::vector<int64_t> extents, strides;
  uint64_t bits = 0;
  bool isTensor = false;

  /// Row-major.
  template <typename T> static Arg tensor(std::vector<T>& storage, std::vector<int64_t> extents) {
    std::vector<int64_t> strides(extents.size(), 1);
    for (size_t i = extents.size(); i-- > 1;)
      strides[i - 1] = strides[i] * extents[i];
    return strided(storage.data(), std::move(extents), std::move(strides));
  }
  template <typename T> static Arg tensor(std::vector<T>& storage) {
    return tensor(storage, {int64_t(storage.size())});
  }
  static Arg strided(void* data, std::vector<int64_t> extents, std::vector<int64_t> strides) {
    return {data, std::move(extents), std::move(strides), 0, true};
  }
  static Arg scalar(uint64_t bits) { return {nullptr, {}, {}, bits, false}; }
  static Arg scalar(float value);
};

struct Print {
  uint32_t fault;
  std::vector<uint64_t> values;
};

class TestKernel {
public:
  /// Aborts with the diagnostics when the text does not parse.
  explicit TestKernel(const std::string& text, const codegen::TargetOptions& options = {});
  ~TestKernel();

  /// Empty when the kernel compiled.
  const std::string& error() const { return error_; }
  const artifact::Kernel& kernel() const { return kernel_; }
  const CompileTimes& times() const { return times_; }
  const std::string& llvmText() const { return llvm_; }
  const std::string& assembly() const { return assembly_; }

  /// Runs every phase; returns 0 or the first fault + 1. Checks that nothing is written past the scratch memory.
  uint32_t run(const std::vector<Arg>& args, unsigned seed = 1);
  const std::vector<Print>& prints() const { return prints_; }

  /// For timing: a callable that runs all blocks of all phases in order on this thread.
  std::function<void()> prepare(const std::vector<Arg>& args);
  /// What launches are told of the device.
  int64_t workers = 1;

private:
  struct Loaded;
  std::vector<uint64_t> slotsOf(const std::vector<Arg>& args) const;
  artifact::TakenSteps stepsTaken(const std::vector<uint64_t>& slots) const;

  artifact::Kernel kernel_;
  std::string error_, llvm_, assembly_;
  CompileTimes times_;
  std::unique_ptr<Loaded> loaded_;
  std::vector<Print> prints_;
};

/// A module with one entry and one kernel. `signature`: "%a: !vx.view<?xf32, global>, %n: index"; access modes are readwrite.
std::string module(const std::string& signature, const std::string& grid, const std::string& block,
                   const std::string& body);

}  // namespace vortex::target::cpu::emit::testing
