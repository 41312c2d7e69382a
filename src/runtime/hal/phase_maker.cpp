#include "runtime/hal/phase_maker.h"

#include "base/text.h"
#include "size/message.h"

namespace vortex::hal {

using base::concat;

std::optional<uint64_t> product(std::span<const int64_t> factors, uint64_t start) {
  uint64_t result = start;
  bool zero = false, overflow = false;
  for (int64_t factor : factors) {
    zero |= factor == 0;
    overflow |= __builtin_mul_overflow(result, static_cast<uint64_t>(factor), &result) || result > INT64_MAX;
  }
  if (zero)
    return 0;
  return overflow ? std::nullopt : std::optional(result);
}

std::string messageOf(const artifact::Constraint& constraint, const size::Values& sizes) {
  std::vector<int64_t> values;
  for (const size::Id operand : constraint.operands)
    values.push_back(sizes[operand]);
  return size::fillMessage(constraint.message, values);
}

std::string PhaseMaker::missingNeeds(const artifact::Kernel& kernel, const size::Values& sizes,
                                     const std::string& symbol) {
  std::vector<std::string> needs;
  for (const artifact::Constraint& each : kernel.coverage)
    if (sizes[each.condition] == 0)
      needs.push_back(messageOf(each, sizes));
  if (kernel.coverage.empty())
    return concat("the code of its entry point '", symbol, "' is made by a compiler, and it was loaded without one");
  return concat("it was built for some launches only, without its entry point '", symbol, "', because ",
                base::join(needs, "; "), " (`vortex build --versions complete` makes all)");
}

Error PhaseMaker::fail(const std::string& reason) const { return launchError(kernel_, reason); }

Result<void> PhaseMaker::add(const artifact::TakenSteps& taken) {
  // A launch that goes on later has slots of lets that are not its own.
  const bool hasSettings = taken.allSettings.size() > 1 || launch_.kernel->readsBack();
  if (!hasSettings)
    sizes_.advance(launch_.slots);
  for (size_t i = 0; i < taken.phases.size(); ++i) {
    if (hasSettings && (i == 0 || taken.settings[i] != taken.settings[i - 1]))
      enterSetting(taken.allSettings[taken.settings[i]]);
    if (Result<void> added = addPhase(kernel_.phases[taken.phases[i]]); !added)
      return added;
  }
  return {};
}

void PhaseMaker::enterSetting(const artifact::Setting& setting) {
  auto slots = std::make_shared<std::vector<uint64_t>>(launch_.slots);
  applySetting(kernel_, setting, launch_.slots, *slots);
  sizes_.restart();
  sizes_.advance(*slots);
  slots_ = std::move(slots);
}

Result<void> PhaseMaker::addPhase(const artifact::Phase& phase) {
  LaunchPhase added;
  added.phase = &phase;
  added.slots = slots_;
  Result<uint64_t> blocks = evaluateDims("grid", phase.grid, added.grid);
  if (!blocks)
    return blocks.takeError();
  added.blocks = *blocks;
  if (added.blocks == 0)
    return {};
  for (int axis = 0; axis < 3; ++axis)
    if (const uint32_t limit = device_.maxGrid[axis]; limit != 0 && added.grid[axis] > limit)
      return fail(concat("it has ", added.grid[axis], " blocks in ", "xyz"[axis], ", the device allows ", limit));
  const Result<uint64_t> threads = evaluateDims("block", phase.block, added.block);
  if (!threads)
    return Error{threads.error()};
  if (*threads == 0)
    return fail("it has 0 threads per block");
  const uint32_t threadLimit = device_.maxBlockThreads;  // each may run several of the program's
  const int64_t hardware = sizes_[phase.hardwareThreads];
  if (hardware < 0 || hardware > INT32_MAX || (threadLimit != 0 && hardware > threadLimit))
    return fail(concat("it has ", hardware, " hardware threads per block, the device allows ", threadLimit));
  added.hardwareThreads = static_cast<uint32_t>(hardware);
  while (added.version < phase.versions.size() && sizes_[phase.versions[added.version].when] == 0)
    ++added.version;
  if (launch_.kernel->lacks(phase, added.version))
    return fail(missingNeeds(kernel_, sizes_, artifact::symbolOf(phase, added.version)));
  if (Result<void> provided = launch_.kernel->provide(phase, added.version); !provided)
    return launchError(kernel_, provided.error());
  const std::optional<int64_t> wholeScratch = sizes_.exactly(phase.scratchBytes);
  if (!wholeScratch)
    return fail(
        concat("phase '", phase.name, "' needs bytes of scratch per block, which do not fit 63 bits", scalars()));
  const int64_t scratch = *wholeScratch, shared = sizes_[phase.sharedBytes];
  const uint64_t sharedLimit = device_.maxSharedBytes;
  if (scratch < 0 || shared < 0 || (sharedLimit != 0 && static_cast<uint64_t>(shared) > sharedLimit))
    return fail(concat(
        "phase '", phase.name, "' needs ", shared, " bytes of shared memory and ", scratch, " of scratch per block",
        sharedLimit == 0 ? std::string() : concat("; the device has ", sharedLimit, " of shared memory")));
  added.scratchBytes = static_cast<uint64_t>(scratch);
  added.sharedBytes = static_cast<uint64_t>(shared);
  if (Result<void> mapped = addMaps(added); !mapped)
    return mapped;
  launch_.phases.push_back(std::move(added));
  return {};
}

Result<void> PhaseMaker::addMaps(LaunchPhase& added) const {
  const artifact::Phase& phase = *added.phase;
  for (int axis = 0; axis < 3; ++axis)
    if (added.grid[axis] % phase.cluster[axis] != 0)
      return fail(concat("phase '", phase.name, "' has ", base::join(added.grid, " x "),
                         " blocks, no multiple of its clusters of ", base::join(phase.cluster, " x ")));
  for (const artifact::TensorMap& map : phase.maps) {
    added.maps.push_back(artifact::convertMap<int64_t>(map, [&](size::Id id) { return sizes_[id]; }));
    if (const std::string error = encodingError(added.maps.back()); !error.empty())
      return fail(concat("phase '", phase.name, "' cannot use its tensor map ", added.maps.size() - 1, ": ", error));
  }
  return {};
}

/// The integer arguments of the launch.
std::string PhaseMaker::scalars() const {
  std::string text;
  for (const artifact::Param& param : kernel_.params)
    if (!param.isTensor && !artifact::isFloat(param.type) && param.firstSlot < launch_.slots.size())
      text += concat(text.empty() ? ", with " : ", ", param.name, " = ",
                     param.type == artifact::ScalarType::U64
                         ? std::to_string(launch_.slots[param.firstSlot])
                         : std::to_string(static_cast<int64_t>(launch_.slots[param.firstSlot])));
  return text;
}

Result<uint64_t> PhaseMaker::evaluateDims(const char* what, const size::Id (&ids)[3], uint32_t (&dims)[3]) const {
  int64_t values[3];
  for (int axis = 0; axis < 3; ++axis) {
    const std::optional<int64_t> value = sizes_.exactly(ids[axis]);
    if (!value)
      return fail(concat("it has an impossible ", what, " of a size along ", "xyz"[axis], " that does not fit 63 bits",
                         scalars()));
    values[axis] = *value;
  }
  const auto outside = [](int64_t value) { return value < 0 || value > INT32_MAX; };
  std::optional<uint64_t> total;
  if (!outside(values[0]) && !outside(values[1]) && !outside(values[2]))
    total = product(values, 1);
  if (!total)
    return fail(concat("it has an impossible ", what, " of ", values[0], " x ", values[1], " x ", values[2]));
  for (int axis = 0; axis < 3; ++axis)
    dims[axis] = static_cast<uint32_t>(values[axis]);
  return *total;
}

}  // namespace vortex::hal
