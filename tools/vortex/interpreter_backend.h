// Runs kernels of the host program in the reference interpreter: `--device interpreter` and `--check`.
#pragma once

#include "host/backend.h"
#include "interpreter/interpreter.h"
#include "pipeline/compiler.h"

#include <functional>
#include <map>

namespace vortex::tools {

struct InterpreterOptions {
  bool check = false;         ///< bounds, uninitialised reads, races, divergence
  bool trustsProofs = false;  ///< with `check`: as in interpreter::Options
  uint64_t seed = 0;          ///< order of blocks and warps
  uint64_t maxSteps = 0;      ///< with `check`: as in interpreter::Options
  std::function<void(std::string_view)> output;
};

class InterpreterBackend : public host::Backend {
public:
  InterpreterBackend(pipeline::Compiler& compiler, InterpreterOptions options)
      : compiler_(compiler), options_(std::move(options)) {}

  Result<std::shared_ptr<host::DeviceBuffer>> allocate(size_t bytes) override;
  host::LaunchOutcome launch(const lang::Function& kernel, std::span<const host::LaunchArgument> arguments,
                             const host::LaunchSize& size) override;
  Result<void> synchronize() override { return {}; }

private:
  pipeline::Compiler& compiler_;
  InterpreterOptions options_;
};

}  // namespace vortex::tools
