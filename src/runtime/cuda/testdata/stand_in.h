// What the tests of this folder share: devices over the stand-in for libcuda, and the conformance kernels as PTX.
#pragma once

#include "artifact/device_report.h"
#include "artifact/steps.h"
#include "base/file.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/cuda/testdata/fake_cuda.h"
#include "runtime/hal/conformance_test.h"

#include <cstdlib>
#include <dlfcn.h>
#include <string>

namespace vortex::cuda::testing {

/// The functions of fake_cuda.h in the loaded library.
struct StandIn {
  decltype(&fakeCudaSet) set;
  decltype(&fakeCudaCount) count;
  decltype(&fakeCudaReset) reset;

  static const StandIn& get() {
    static const StandIn instance = load(path());
    return instance;
  }
  static StandIn load(const std::string& path) {
    void* library = ::dlopen(path.c_str(), RTLD_NOW);
    if (!library)
      std::fprintf(stderr, "%s\n", ::dlerror()), std::abort();
    return {reinterpret_cast<decltype(&fakeCudaSet)>(::dlsym(library, "fakeCudaSet")),
            reinterpret_cast<decltype(&fakeCudaCount)>(::dlsym(library, "fakeCudaCount")),
            reinterpret_cast<decltype(&fakeCudaReset)>(::dlsym(library, "fakeCudaReset"))};
  }
  /// Where the tests' files are when they run on another machine than the one that built them.
  static std::string folder() {
    const char* folder = std::getenv("VORTEX_CUDA_TESTDATA");
    return folder ? std::string(folder) + "/" : std::string();
  }
  static std::string path() { return folder().empty() ? VORTEX_FAKE_CUDA : folder() + "libvortex_fake_cuda.so"; }
  /// Of one without the functions that came after CUDA 11.4, with settings of its own.
  static std::string oldPath() {
    return folder().empty() ? VORTEX_FAKE_CUDA_11_4 : folder() + "libvortex_fake_cuda_11_4.so";
  }
};

inline std::string conformancePtx() {
  const std::string folder = StandIn::folder();
  return *base::readFile(folder.empty() ? VORTEX_CONFORMANCE_PTX : folder + "conformance.ptx");
}

/// A device of the stand-in (or of the real library: number $VORTEX_CUDA_TEST_DEVICE), made by a driver of its own.
inline Result<hal::DeviceRef> openDevice(bool real, const Options& options = {.useCache = false},
                                         const std::string& library = StandIn::path()) {
  if (real)
    ::unsetenv("VORTEX_LIBCUDA");
  else
    ::setenv("VORTEX_LIBCUDA", library.c_str(), 1);
  Result<std::vector<hal::DeviceRef>> devices = createDriver(options)->devices();
  if (!devices)
    return devices.takeError();
  if (devices->empty())
    return Error{"no device"};
  const char* chosen = real ? std::getenv("VORTEX_CUDA_TEST_DEVICE") : nullptr;
  const size_t index = chosen ? static_cast<size_t>(std::atoi(chosen)) : 0;
  if (index >= devices->size())
    return Error{"no device " + std::to_string(index)};
  return devices->at(index);
}

inline void addCode(artifact::Kernel& kernel) {
  const std::string ptx = conformancePtx();
  kernel.target = "sm_80";
  kernel.code.assign(ptx.begin(), ptx.end());
  for (artifact::Phase& phase : kernel.phases) {
    phase.hardwareThreads = kernel.sizes.constant(1);
    phase.sharedBytes = std::exchange(phase.scratchBytes, {});
  }
}

inline std::shared_ptr<artifact::Kernel> kernelNamed(const std::string& name) {
  auto kernel = std::make_shared<artifact::Kernel>(hal::conformance::kernelNamed(name));
  addCode(*kernel);
  return kernel;
}

/// A kernel without parameters whose entry point is of this name.
inline std::shared_ptr<artifact::Kernel> bareKernel(const std::string& symbol) {
  auto kernel = std::make_shared<artifact::Kernel>();
  kernel->name = symbol;
  const size::Id one = kernel->sizes.constant(1);
  kernel->phases = {{.symbol = symbol, .grid = {one, one, one}, .block = {one, one, one}, .name = symbol}};
  kernel->steps = artifact::inOrder(1);
  kernel->faults = {{artifact::kDeviceStopped, "", symbol + ".vx", 3, 8}};
  addCode(*kernel);
  return kernel;
}

}  // namespace vortex::cuda::testing
