#pragma once

#include "msl/reader.h"
#include "pipeline/module_compiler.h"
#include "tools/vortex/metal_launch.h"

namespace vortex::tools {

/// A launch argument of the lowered kernel: bytes of a buffer, or the number of a size.
struct MetalArgument {
  std::vector<uint8_t>* bytes = nullptr;  ///< null: a size
  const msl::BufferUse* use = nullptr;
  int64_t number = 0;
};

/// The arguments in the order of the lowered kernel. Error: a buffer is missing or the sizes are wrong.
base::Result<std::vector<MetalArgument>> metalArguments(MetalLaunch& launch, const msl::Response& response);
/// Compiles what was read as the settings say, with the texts, times and the module that they ask for. Null and `failure` set: it cannot be done.
std::shared_ptr<const artifact::Kernel> compileMetal(const Settings& settings, const std::string& target,
                                                     const std::string& kernel, const msl::Response& response,
                                                     pipeline::Failure& failure);
/// Runs in the interpreter or on the device of the settings; buffers that are written change. Returns the exit status, after messages.
int launchMetal(const Settings& settings, const std::string& kernel, const msl::Response& response,
                std::vector<MetalArgument>& arguments);

}  // namespace vortex::tools
