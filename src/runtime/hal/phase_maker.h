// The phases of a launch, from the steps that it takes. Inside the folder.
#pragma once

#include "artifact/steps.h"
#include "runtime/hal/launch.h"

namespace vortex::hal {

/// Appends to Launch::phases. `launch`: all slots are known. `sizes`: evaluated for other slots where phases have them.
class PhaseMaker {
public:
  PhaseMaker(const DeviceInfo& device, size::Values& sizes, Launch& launch)
      : device_(device), kernel_(launch.kernel->artifact()), sizes_(sizes), launch_(launch) {}

  /// Errors: grids, blocks or memory that the device does not have, with the numbers.
  Result<void> add(const artifact::TakenSteps& taken);

  /// What a launch of these sizes wants that the artifact's code was not made for: its reason to fail where it comes to an absent entry point.
  static std::string missingNeeds(const artifact::Kernel& kernel, const size::Values& sizes, const std::string& symbol);

private:
  Error fail(const std::string& reason) const;
  void enterSetting(const artifact::Setting& setting);
  Result<void> addPhase(const artifact::Phase& phase);
  Result<void> addMaps(LaunchPhase& added) const;
  std::string scalars() const;
  Result<uint64_t> evaluateDims(const char* what, const size::Id (&ids)[3], uint32_t (&dims)[3]) const;

  const DeviceInfo& device_;
  const artifact::Kernel& kernel_;
  size::Values& sizes_;
  Launch& launch_;
  std::shared_ptr<const std::vector<uint64_t>> slots_;  ///< of the phases being added; null: the launch's
};

/// Multiplies extents; nothing if the result does not fit 63 bits.
std::optional<uint64_t> product(std::span<const int64_t> factors, uint64_t start);

/// Its text with the values of its operands.
std::string messageOf(const artifact::Constraint& constraint, const size::Values& sizes);

}  // namespace vortex::hal
