// Runs kernels of the host program on a device of the runtime, compiling them on first use.
#pragma once

#include "host/backend.h"
#include "pipeline/compiler.h"
#include "runtime/hal/launch.h"

#include <functional>
#include <map>
#include <tuple>

namespace vortex::tools {

lang::Scalar toLanguage(artifact::ScalarType type);

/// What a launch fixes at compile time: explicit sizes, and the extents that shared and local tensors need.
irgen::Options launchRequest(const lang::Function& kernel, std::span<const host::LaunchArgument> arguments,
                             const host::LaunchSize& size);

class DeviceBackend : public host::Backend {
public:
  /// Error: the device cannot make a stream.
  static Result<std::unique_ptr<DeviceBackend>> create(hal::DeviceRef device, pipeline::Compiler& compiler,
                                                       std::function<void(std::string_view)> output);

  Result<std::shared_ptr<host::DeviceBuffer>> allocate(size_t bytes) override;
  host::LaunchOutcome launch(const lang::Function& kernel, std::span<const host::LaunchArgument> arguments,
                             const host::LaunchSize& size) override;
  Result<void> synchronize() override;

private:
  using Key = std::tuple<const lang::Function*, std::vector<int64_t>>;

  DeviceBackend(hal::DeviceRef device, hal::StreamRef stream, pipeline::Compiler& compiler,
                std::function<void(std::string_view)> output)
      : device_(std::move(device)), stream_(std::move(stream)), compiler_(compiler), output_(std::move(output)) {}
  hal::KernelRef loaded(const lang::Function& kernel, const irgen::Options& request, host::LaunchFailure& failure);
  host::LaunchFailure faultOf(const Error& error);
  void noteLoadTime(const hal::LoadedKernel& kernel);

  hal::DeviceRef device_;
  hal::StreamRef stream_;
  pipeline::Compiler& compiler_;
  std::function<void(std::string_view)> output_;
  std::map<Key, hal::KernelRef> kernels_;
  std::map<const hal::LoadedKernel*, int64_t> loadNanoseconds_;  ///< told so far
};

}  // namespace vortex::tools
