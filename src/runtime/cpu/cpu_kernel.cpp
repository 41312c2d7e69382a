#include "runtime/cpu/cpu_kernel.h"

#include "artifact/validate.h"
#include "base/text.h"
#include "runtime/cpu/externals.h"
#include "runtime/cpu/meeting.h"
#include "runtime/hal/launch.h"

#include <algorithm>
#include <optional>

namespace vortex::cpu {

using base::concat;

namespace {

#if defined(__x86_64__)
constexpr const char* kArchitecture = "x86_64";
#elif defined(__aarch64__)
constexpr const char* kArchitecture = "aarch64";
#else
constexpr const char* kArchitecture = "unknown";
#endif

/// Nothing if the feature is not one we can ask for.
std::optional<bool> hasFeature(std::string_view feature) {
#if defined(__x86_64__)
  __builtin_cpu_init();
#define VORTEX_FEATURE(f)                                                                                              \
  if (feature == #f)                                                                                                   \
  return __builtin_cpu_supports(#f) != 0
  VORTEX_FEATURE(sse3);
  VORTEX_FEATURE(ssse3);
  VORTEX_FEATURE(popcnt);
  VORTEX_FEATURE(avx);
  VORTEX_FEATURE(avx2);
  VORTEX_FEATURE(fma);
  VORTEX_FEATURE(f16c);
  VORTEX_FEATURE(bmi);
  VORTEX_FEATURE(bmi2);
  VORTEX_FEATURE(avx512f);
  VORTEX_FEATURE(avx512bw);
  VORTEX_FEATURE(avx512cd);
  VORTEX_FEATURE(avx512dq);
  VORTEX_FEATURE(avx512vl);
  VORTEX_FEATURE(avx512vnni);
  VORTEX_FEATURE(avx512bf16);
  if (feature == "sse4.1")
    return __builtin_cpu_supports("sse4.1") != 0;
  if (feature == "sse4.2")
    return __builtin_cpu_supports("sse4.2") != 0;
#undef VORTEX_FEATURE
#endif
  (void)feature;
  return std::nullopt;
}

Result<void> checkHost(const artifact::Kernel& kernel) {
  const std::string expected = concat("cpu-", kArchitecture);
  if (!kernel.target.starts_with(expected))
    return Error{
        concat("kernel '", kernel.name, "' was compiled for '", kernel.target, "', this device runs '", expected, "'")};
  constexpr std::string_view prefix = "requires.";
  for (const artifact::Fact& fact : kernel.facts) {
    if (!fact.key.starts_with(prefix) || fact.value == 0)
      continue;
    const std::string feature = fact.key.substr(prefix.size());
    const std::optional<bool> present = hasFeature(feature);
    if (!present.value_or(false))
      return Error{concat("kernel '", kernel.name, "' needs the processor feature ", feature, ", which ",
                          present ? "this host does not have" : "this runtime does not know")};
  }
  return {};
}

}  // namespace

CpuKernel::CpuKernel(const hal::Device* device, std::shared_ptr<const artifact::Kernel> kernel,
                     std::unique_ptr<LoadedObject> object)
    : LoadedKernel(device, std::move(kernel)), object_(std::move(object)) {}

Result<hal::KernelRef> CpuKernel::load(const hal::Device* device, std::shared_ptr<const artifact::Kernel> kernel) {
  if (Result<void> valid = artifact::validate(*kernel); !valid)
    return valid.takeError();
  if (Result<void> runs = checkHost(*kernel); !runs)
    return runs.takeError();
  if (kernel->phases.empty())  // results without elements: nothing runs, and the object has no code
    return hal::KernelRef(std::shared_ptr<CpuKernel>(new CpuKernel(device, kernel, nullptr)));
  Result<std::unique_ptr<LoadedObject>> object = LoadedObject::load(kernel->code, &findExternal);
  if (!object)
    return object.error().after(concat("cannot load kernel '", kernel->name, "': "));
  std::shared_ptr<CpuKernel> loaded(new CpuKernel(device, kernel, std::move(*object)));
  for (const artifact::Phase& phase : kernel->phases) {
    void* entry = loaded->object_->find(phase.symbol);
    if (!entry)
      return Error{
          concat("cannot load kernel '", kernel->name, "': its object defines no function '", phase.symbol, "'")};
    const bool isInBands = std::ranges::any_of(kernel->facts, [&](const artifact::Fact& fact) {
      return fact.value != 0 && fact.key == concat("bands.", phase.symbol);
    });
    loaded->phases_.push_back({reinterpret_cast<artifact::CpuEntry>(entry), std::make_unique<PhaseHistory>(),
                               isInBands ? BlockRun::Order::Bands : BlockRun::Order::Rows});
  }
  return hal::KernelRef(std::move(loaded));
}

Result<void> CpuKernel::bind(hal::Launch& launch) {
  for (const hal::LaunchPhase& phase : launch.phases)
    if (phase.phase->isCooperative && phase.blocks > kMostTogether)
      return Error{base::concat("its ", phase.blocks,
                                " blocks must run at the same time (@launch(cooperative)); a CPU runs at most ",
                                kMostTogether)};
  return {};
}

}  // namespace vortex::cpu
