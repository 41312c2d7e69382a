#include "runtime/cuda/launch_phases.h"

#include "artifact/device_report.h"
#include "base/check.h"
#include "base/text.h"

#include <algorithm>
#include <cstring>

namespace vortex::cuda {

using base::concat;

Error launchError(const hal::Launch& launch, const Error& reason) {
  return hal::launchError(launch.kernel->artifact(), reason);
}

namespace {

Result<const LoadedEntry*> entryOf(const hal::Launch& launch, const hal::LaunchPhase& phase,
                                   const ContextRef& context) {
  return static_cast<CudaKernel&>(*launch.kernel).entryIn(context, *phase.phase, phase.version);
}

bool isClustered(const hal::LaunchPhase& phase) {
  return std::ranges::any_of(phase.phase->cluster, [](uint32_t blocks) { return blocks != 1; });
}

Code queue(const Api& api, StreamHandle stream, const hal::LaunchPhase& phase, const LoadedEntry& code,
           void** parameters) {
  const auto sharedBytes = static_cast<unsigned>(phase.sharedBytes);
  const bool isCooperative = phase.phase->isCooperative;
  if (!isClustered(phase) && !isCooperative)
    return api.launch(code.function, phase.grid[0], phase.grid[1], phase.grid[2], phase.hardwareThreads, 1, 1,
                      sharedBytes, stream, parameters, nullptr);
  LaunchAttribute together{.id = isCooperative ? kCooperative : kClusterDimension, .value = {1}};
  if (!isCooperative)
    std::ranges::copy(phase.phase->cluster, together.value);
  LaunchConfig config{.block = {phase.hardwareThreads, 1, 1},
                      .sharedBytes = sharedBytes,
                      .stream = stream,
                      .attributes = &together,
                      .attributeCount = 1};
  std::ranges::copy(phase.grid, config.grid);
  return api.launchEx(&config, code.function, parameters, nullptr);
}

Result<void> allowShared(Context& context, const hal::LaunchPhase& phase, const LoadedEntry& code) {
  if (phase.sharedBytes <= code.dynamicSharedBytes.load(std::memory_order_relaxed))
    return {};
  const auto bytes = static_cast<int>(phase.sharedBytes);
  Result<void> allowed = context.check("cannot get more than 48 KiB of shared memory",
                                       context.api().functionSet(code.function, kFunctionMaxDynamicShared, bytes));
  if (allowed)
    code.dynamicSharedBytes.store(static_cast<uint32_t>(bytes), std::memory_order_relaxed);
  return allowed;
}

/// How many blocks of the phase the device runs at the same time.
Result<uint64_t> residentBlocks(const Gpu& gpu, Context& context, const hal::LaunchPhase& phase,
                                const LoadedEntry& code) {
  if (Result<void> allowed = allowShared(context, phase, code); !allowed)
    return allowed.takeError();
  int blocks = 0;
  Result<void> told = context.check(
      "the driver does not tell how many blocks run at the same time",
      gpu.api().activeBlocks(&blocks, code.function, static_cast<int>(phase.hardwareThreads), phase.sharedBytes));
  if (!told)
    return told.takeError();
  return static_cast<uint64_t>(std::max(blocks, 0)) * static_cast<uint64_t>(gpu.facts().multiprocessors);
}

Result<void> checkPhase(const Gpu& gpu, const hal::Launch& launch, const hal::LaunchPhase& phase,
                        const LoadedEntry& code) {
  const auto fail = [&](const std::string& reason) {
    return launchError(launch, concat("phase '", phase.phase->name, "' ", reason));
  };
  if (phase.hardwareThreads == 0)
    return fail("has no hardware threads");
  if (phase.hardwareThreads > code.maxThreads)
    return fail(concat("has ", phase.hardwareThreads, " threads per block, its registers allow ", code.maxThreads));
  const uint64_t shared = phase.sharedBytes + code.staticSharedBytes;
  if (shared > static_cast<uint64_t>(gpu.facts().sharedOptInBytes))
    return fail(
        concat("needs ", shared, " bytes of shared memory per block; the device has ", gpu.facts().sharedOptInBytes));
  if (isClustered(phase) && !gpu.api().launchEx)
    return fail(concat("runs in clusters: ", gpu.api().absentError("cuLaunchKernelEx").message));
  return {};
}

Result<void> startPhase(Context& context, StreamHandle stream, const hal::Launch& launch, const hal::LaunchPhase& phase,
                        const LoadedEntry& code, void** parameters) {
  if (Result<void> allowed = allowShared(context, phase, code); !allowed)
    return allowed;
  const Code started = queue(context.api(), stream, phase, code, parameters);
  if (started == kSuccess)
    return {};
  const Error error = context.check("the driver refuses it", started).takeError();
  return error.after(
      concat("cannot launch kernel '", launch.kernel->artifact().name, "', phase '", phase.phase->name, "', ",
             phase.grid[0], " x ", phase.grid[1], " x ", phase.grid[2], " blocks of ", phase.hardwareThreads,
             " threads", isClustered(phase) ? concat(" in clusters of ", base::join(phase.phase->cluster, " x ")) : "",
             " and ", phase.sharedBytes, " bytes of shared memory: "));
}

}  // namespace

Result<void> checkResident(const Gpu& gpu, const ContextRef& context, const hal::Launch& launch,
                           const hal::LaunchPhase& phase) {
  const auto fail = [&](const Error& reason) { return reason.after(concat("phase '", phase.phase->name, "' ")); };
  if (!gpu.api().launchEx)
    return fail(gpu.api().absentError("cuLaunchKernelEx").after("is cooperative: "));
  Result<const LoadedEntry*> entry = entryOf(launch, phase, context);
  if (!entry)
    return entry.takeError();
  Result<uint64_t> resident = residentBlocks(gpu, *context, phase, **entry);
  if (!resident)
    return fail(resident.error());
  if (phase.blocks <= *resident)
    return {};
  return fail(Error{concat("has ", phase.blocks,
                           " blocks that must run at the same time (@launch(cooperative)); 'cuda:", gpu.index(),
                           "' runs at most ", *resident, " of them")});
}

Result<void> checkPhases(const Gpu& gpu, const ContextRef& context, const hal::Launch& launch) {
  for (const hal::LaunchPhase& phase : launch.phases) {
    Result<const LoadedEntry*> entry = entryOf(launch, phase, context);
    if (!entry)
      return entry.takeError();
    if (Result<void> fits = checkPhase(gpu, launch, phase, **entry); !fits)
      return fits;
  }
  return {};
}

Result<void> startPhases(const ContextRef& context, StreamHandle stream, const hal::Launch& launch,
                         DevicePointer report) {
  const uint32_t slotCount = launch.kernel->artifact().slotCount;
  VORTEX_CHECK(launch.slots.size() == slotCount);
  uint64_t parameter[artifact::kMaxParameterBytes / sizeof(uint64_t)];
  parameter[slotCount] = report;
  uint64_t* maps = parameter + artifact::tensorMapOffset(slotCount) / sizeof(uint64_t);
  std::fill(parameter + slotCount + 1, std::max(maps, parameter + slotCount + 1), 0);
  void* parameters[] = {parameter};
  for (const hal::LaunchPhase& phase : launch.phases) {
    Result<const LoadedEntry*> entry = entryOf(launch, phase, context);
    if (!entry)
      return entry.takeError();
    std::ranges::copy(launch.slotsOf(phase), parameter);
    if (!phase.encodedMaps.empty())
      std::memcpy(maps, phase.encodedMaps.data(), phase.encodedMaps.size() * sizeof(hal::EncodedMap));
    if (Result<void> started = startPhase(*context, stream, launch, phase, **entry, parameters); !started)
      return started;
  }
  return {};
}

}  // namespace vortex::cuda
