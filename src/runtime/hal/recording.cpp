#include "runtime/hal/recording.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::hal {

using base::concat;

static Result<void> checkRecordable(const Launch& launch) {
  const artifact::Kernel& kernel = launch.kernel->artifact();
  const bool prints =
      std::ranges::any_of(kernel.faults, [](const artifact::Fault& fault) { return fault.id.starts_with("print"); });
  if (prints && launch.print)
    return Error{concat("kernel '", kernel.name, "' prints: such launches cannot be recorded")};
  if (launch.undecided)
    return Error{concat("kernel '", kernel.name,
                        "' has a loop or branch that waits for what the kernel computes: such "
                        "launches cannot be recorded")};
  return {};
}

void Recording::add(RecordedOperation operation) { operations_.push_back(std::move(operation)); }

Result<void> Recording::add(const Launch& launch) {
  if (Result<void> recordable = checkRecordable(launch); !recordable)
    return recordable;
  launches_.push_back(operations_.size());
  operations_.emplace_back(launch);
  return {};
}

Result<void> Recording::replace(uint32_t launch, const Launch& replacement) {
  if (launch >= launches_.size())
    return Error{concat("the graph has ", launches_.size(), " launches, number ", launch, " is not one of them")};
  auto& recorded = std::get<Launch>(operations_[launches_[launch]]);
  if (recorded.kernel != replacement.kernel)
    return Error{concat("launch ", launch, " of the graph runs kernel '", recorded.kernel->artifact().name,
                        "', it cannot become one of '", replacement.kernel->artifact().name, "'")};
  if (Result<void> recordable = checkRecordable(replacement); !recordable)
    return recordable;
  recorded = replacement;
  return {};
}

Error recordingError(const char* operation) {
  return {concat(operation, ": the stream is recording; end the recording first")};
}

}  // namespace vortex::hal
