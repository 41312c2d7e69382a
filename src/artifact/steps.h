// Which phases a launch runs.
#pragma once

#include "artifact/artifact.h"

#include <functional>

namespace vortex::artifact {

/// Of one launch; recordings have less room (hal::Recording).
constexpr uint32_t kMostPhases = 1u << 20;

/// What the slots of lets and temporaries hold while some phases run.
struct Setting {
  std::vector<uint64_t> lets;
  std::vector<uint32_t> temporaries;  ///< whose memory each has
};

/// The phases that a launch runs, in order.
struct TakenSteps {
  std::vector<uint32_t> phases;      ///< indices into Kernel::phases
  std::vector<uint32_t> settings;    ///< of each: index into allSettings
  std::vector<Setting> allSettings;  ///< at least one
};

/// Runs the phases so far and gives the element of a temporary. Nothing: the launch ends here.
using ReadStep = std::function<Result<std::optional<uint64_t>>(const TakenSteps& soFar, uint32_t temporary)>;

/// Walks the steps of a valid kernel: appends a value of every let to `slots`, which end before them, and to `values`. Error: loops come to more
/// than kMostPhases rounds or phases, with their name. `read`: for kernels that read back what they compute; the phases that are returned are
/// those after the last read.
Result<TakenSteps> takeSteps(const Kernel& kernel, size::Values& values, std::vector<uint64_t>& slots,
                             const ReadStep& read = {});

/// Has a Read among its steps.
bool readsBack(const Kernel& kernel);

/// Of a kernel that reads back: the phases that some launch with these slots may run, in no order. Lets are appended as by takeSteps, but those that
/// phases or rounds decide are 0.
std::vector<uint32_t> possiblePhases(const Kernel& kernel, size::Values& values, std::vector<uint64_t>& slots);

/// Puts lets and temporaries of a launch, whose slots are all known, where a setting has them. `own`: its slots with every temporary in its own memory.
void applySetting(const Kernel& kernel, const Setting& setting, std::span<const uint64_t> own,
                  std::vector<uint64_t>& slots);

/// Per temporary: one of these phases writes it.
std::vector<bool> writtenTemporaries(const Kernel& kernel, const std::vector<uint32_t>& phases);

/// Steps that run all phases of a kernel in order.
std::vector<Step> inOrder(size_t phases);

}  // namespace vortex::artifact
