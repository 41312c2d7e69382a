// What the compiler needs of a back end.
#pragma once

#include "artifact/artifact.h"
#include "base/result.h"
#include "chip/chip.h"
#include "passes/schedule_tensors.h"

#include <functional>
#include <memory>
#include <mlir/IR/BuiltinOps.h>
#include <string>
#include <string_view>

namespace vortex::pipeline {

class BackEnd {
public:
  virtual ~BackEnd() = default;
  /// "sm_90", or the processor's name.
  virtual std::string name() const = 0;
  /// Block sizes for the whole-tensor work of `module`.
  virtual passes::TensorSchedule tensorSchedule(mlir::ModuleOp module) const = 0;

  struct Observer {
    std::function<bool(std::string_view stage)> wants;
    std::function<void(std::string_view stage, std::string_view text)> text;  ///< for stages it wants
    std::function<void(std::string_view stage, double milliseconds)> time;
  };
  virtual Result<artifact::Kernel> compile(mlir::ModuleOp scheduled, const Observer& observer) = 0;
};

/// `target`: "cpu" or "sm_80", "sm_90", …; `cpu`: processor for the first. Error: unknown, with the known ones.
Result<std::unique_ptr<BackEnd>> createBackEnd(const std::string& target, const std::string& cpu);

/// The chip that kernels for a target are planned for; null: a processor.
const chip::Gpu* chipOf(const std::string& target);

/// What identifies the back end in cache keys; made without starting it.
std::string backEndIdentity(const std::string& target, const std::string& cpu);

}  // namespace vortex::pipeline
