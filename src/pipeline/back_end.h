// What the compiler needs of a back end.
#pragma once

#include "artifact/artifact.h"
#include "base/result.h"
#include "chip/chip.h"
#include "passes/plan/rules.h"

#include <functional>
#include <memory>
#include <mlir/IR/BuiltinOps.h>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace vortex::pipeline {

/// An artifact that loading would refuse is our own mistake: compile() and plan() check it.
class BackEnd {
public:
  virtual ~BackEnd() = default;
  /// "sm_90", or the processor's name.
  virtual std::string name() const = 0;
  /// Block sizes for the whole-tensor work of `module`.
  virtual passes::TensorSchedule tensorSchedule() const = 0;

  struct Observer {
    std::function<bool(std::string_view stage)> wants;
    std::function<void(std::string_view stage, std::string_view text)> text;  ///< for stages it wants
    std::function<void(std::string_view stage, double milliseconds)> time;
  };
  /// `choose`: which of the absent entry points of a kernel are made, all without it; it may add a coverage that says what for. Back ends with one
  /// entry point per phase make them all.
  using Choose = std::function<std::set<std::string>(artifact::Kernel& kernel)>;
  Result<artifact::Kernel> compile(mlir::ModuleOp scheduled, const Observer& observer, const Choose& choose = {});

  /// A kernel whose entry points are absent, and what compileEntry() makes them of. A kernel that has few parts is complete, and `entries` is empty.
  struct Plan {
    artifact::Kernel kernel;
    std::vector<uint8_t> entries;
  };
  Result<Plan> plan(mlir::ModuleOp scheduled, const Observer& observer);

private:
  virtual Result<artifact::Kernel> doCompile(mlir::ModuleOp scheduled, const Observer& observer,
                                             const Choose& choose) = 0;
  virtual Result<Plan> doPlan(mlir::ModuleOp scheduled, const Observer& observer);
};

/// The code of an absent entry point of a plan for `target`. Any thread; does not keep what it loads. Error: damaged `entries`, no such entry
/// point, an operation that the back end cannot emit.
Result<std::vector<uint8_t>> compileEntry(const std::string& target, std::span<const uint8_t> entries,
                                          const std::string& symbol, uint32_t slotCount);

/// What code for processors is made for. Quick: for the time until it is there, which for large kernels is a seventh; it runs a few times longer.
enum class Effort : uint8_t { Usual, Quick };

/// `target`: "cpu" or "sm_80", "sm_90", …; `cpu`: processor for the first. Error: unknown, with the known ones.
Result<std::unique_ptr<BackEnd>> createBackEnd(const std::string& target, const std::string& cpu,
                                               Effort effort = Effort::Usual);

/// The chip that kernels for a target are planned for; null: a processor.
const chip::Gpu* chipOf(const std::string& target);

/// What identifies the back end in cache keys; made without starting it.
std::string backEndIdentity(const std::string& target, const std::string& cpu);

}  // namespace vortex::pipeline
