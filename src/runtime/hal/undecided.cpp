// Launches whose steps depend on what their phases compute: the steps are taken while the phases run. Up to each read, phases are
// submitted as launches of their own; then the stream waits for the value.
#include "runtime/hal/phase_maker.h"

#include "base/text.h"

namespace vortex::hal {

using base::concat;

namespace {

class Continuation {
public:
  using Submit = std::function<Result<void>(const Launch&)>;
  using ReadBack = std::function<Result<bool>(void* into, const BufferRef& source, uint64_t bytes)>;

  Continuation(const Launch& launch, Submit submit, ReadBack readBack)
      : launch_(launch), undecided_(*launch.undecided), kernel_(launch.kernel->artifact()), sizes_(undecided_.sizes),
        submit_(std::move(submit)), readBack_(std::move(readBack)) {}

  Result<void> run() {
    size::Values walked = undecided_.sizes;
    walked.restart();
    std::vector<uint64_t> slots(launch_.slots.begin(), launch_.slots.begin() + kernel_.lets[0].firstSlot);
    bool hasEnded = false;
    auto taken =
        artifact::takeSteps(kernel_, walked, slots, [&](const artifact::TakenSteps& soFar, uint32_t temporary) {
          Result<std::optional<uint64_t>> value = read(soFar, temporary);
          hasEnded = value && !*value;
          return value;
        });
    if (!taken)
      return launchError(kernel_, taken.error());
    return hasEnded ? Result<void>() : submitPart(*taken);
  }

private:
  Result<std::optional<uint64_t>> read(const artifact::TakenSteps& soFar, uint32_t temporary) {
    if (Result<void> submitted = submitPart(soFar); !submitted)
      return submitted.takeError();
    const BufferRef& source = undecided_.temporaries[temporary];
    if (!source)
      return Error{concat("no phase writes temporary ", temporary, ", which a step reads")};
    uint64_t value = 0;
    if (!undecided_.device.executes)
      return std::optional(value);
    Result<bool> isThere = readBack_(&value, source, sizeof value);
    if (!isThere)
      return isThere.takeError();
    return *isThere ? std::optional(value) : std::nullopt;
  }

  Result<void> submitPart(const artifact::TakenSteps& taken) {
    Launch part;
    part.kernel = launch_.kernel;
    part.slots = launch_.slots;
    part.keepAlive = launch_.keepAlive;
    part.print = launch_.print;
    if (Result<void> added = PhaseMaker(undecided_.device, sizes_, part).add(taken); !added)
      return added;
    if (part.phases.empty())
      return {};
    if (Result<void> bound = part.kernel->bind(part); !bound)
      return launchError(kernel_, bound.error());
    return submit_(part);
  }

  const Launch& launch_;
  const Undecided& undecided_;
  const artifact::Kernel& kernel_;
  size::Values sizes_;  ///< of the phases being submitted
  Submit submit_;
  ReadBack readBack_;
};

}  // namespace

Result<void> Stream::submit(const Launch& launch) {
  Result<void> begun = submitPhases(launch);  // also what comes before the first phase
  if (!begun || !launch.undecided)
    return begun;
  return Continuation(
             launch, [this](const Launch& part) { return submitPhases(part); },
             [this](void* into, const BufferRef& source, uint64_t bytes) {
               return readUnlessFaulted(into, source, 0, bytes);
             })
      .run();
}

}  // namespace vortex::hal
