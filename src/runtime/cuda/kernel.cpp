#include "runtime/cuda/kernel.h"

#include "artifact/device_report.h"
#include "artifact/validate.h"
#include "base/text.h"
#include "runtime/cuda/jit.h"
#include "runtime/cuda/launch_phases.h"
#include "runtime/cuda/tensor_map.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace vortex::cuda {

using base::concat;

namespace {

Result<void> checkArtifact(const artifact::Kernel& kernel) {
  if (Result<void> valid = artifact::validate(kernel); !valid)
    return valid;
  uint64_t parameterBytes = artifact::parameterBytes(kernel.slotCount, {});
  for (const artifact::Phase& phase : kernel.phases) {
    if (kernel.sizes.constantOf(phase.hardwareThreads) == 0)
      return Error{concat("phase '", phase.name, "' does not say how many hardware threads a block has")};
    parameterBytes = std::max(parameterBytes, artifact::parameterBytes(kernel.slotCount, phase));
  }
  if (parameterBytes > artifact::kMaxParameterBytes)
    return Error{
        concat("its arguments take ", parameterBytes, " bytes, a launch can carry ", artifact::kMaxParameterBytes)};
  return {};
}

std::string_view textOf(const artifact::Kernel& kernel) {
  return {reinterpret_cast<const char*>(kernel.code.data()), kernel.code.size()};
}

Result<void> checkText(const Gpu& gpu, std::string_view ptx) {
  Result<PtxHeader> header = readHeader(ptx);
  return header ? checkPtx(gpu, *header) : header.takeError();
}

}  // namespace

Placement::~Placement() {
  if (context_->isLost())
    return;
  const Enter enter(*context_);
  for (ModuleHandle module : modules_)
    context_->api().moduleUnload(module);
}

const LoadedEntry* Placement::add(size_t index, std::unique_ptr<LoadedEntry> entry) {
  const LoadedEntry* added = entry.get();
  const std::lock_guard lock(mutex_);
  owned_.push_back(std::move(entry));
  entries_[index].store(added, std::memory_order_release);
  return added;
}

void Placement::own(ModuleHandle module) {
  const std::lock_guard lock(mutex_);
  modules_.push_back(module);
}

CudaKernel::CudaKernel(const hal::Device* device, const Resources& resources,
                       std::shared_ptr<const artifact::Kernel> kernel, std::shared_ptr<artifact::EntrySource> entries)
    : LoadedKernel(device, std::move(kernel), std::move(entries)), gpu_(resources.gpu), cache_(resources.cache),
      ptx_(textOf(artifact())), parts_(ptx_.count() + artifact().absent.size()) {
  mayPrint_ = artifact::mayPrint(artifact());
  reports_ = std::ranges::any_of(artifact().faults,
                                 [](const artifact::Fault& fault) { return fault.id != artifact::kDeviceStopped; });
}

Result<hal::KernelRef> CudaKernel::load(const hal::Device* device, const Resources& resources,
                                        std::shared_ptr<const artifact::Kernel> kernel,
                                        std::shared_ptr<artifact::EntrySource> entries) {
  Gpu& gpu = *resources.gpu;
  const auto fail = [&](const Error& error) {
    return error.after(concat("cannot load kernel '", kernel->name, "': "));
  };
  if (!kernel->target.starts_with("sm_"))
    return Error{concat("kernel '", kernel->name, "' was compiled for '", kernel->target, "', this device runs 'sm_",
                        gpu.facts().capability, "'")};
  if (Result<void> valid = checkArtifact(*kernel); !valid)
    return fail(valid.error());
  // A plan, whose entries come later, or results without elements: nothing runs.
  const bool hasNoText = kernel->code.empty() && (!kernel->absent.empty() || kernel->phases.empty());
  if (Result<void> runs = hasNoText ? checkPtx(gpu, {.target = kernel->target}) : checkText(gpu, textOf(*kernel));
      !runs)
    return fail(runs.error());
  Result<ContextRef> context = gpu.context();
  if (!context)
    return fail(context.error());
  std::shared_ptr<CudaKernel> loaded(new CudaKernel(device, resources, kernel, std::move(entries)));
  if (Result<void> listed = loaded->listEntries(); !listed)
    return fail(listed.error());
  if (loaded->parts_.size() == 1 && loaded->ptx_.count() == 1 && !kernel->phases.empty()) {  // whatever a launch runs
    const Enter enter(**context);
    if (Result<const LoadedEntry*> first = loaded->entryIn(*context, kernel->phases[0], 0); !first)
      return first.takeError();
  }
  return hal::KernelRef(std::move(loaded));
}

Result<void> CudaKernel::listEntries() {
  for (const artifact::Phase& phase : artifact().phases) {
    firstEntry_.push_back(symbols_.size());
    for (const artifact::Version& version : phase.versions)
      symbols_.push_back(version.symbol);
    symbols_.push_back(phase.symbol);
  }
  std::map<std::string_view, size_t> absent;
  for (const std::string& symbol : artifact().absent)
    absent.emplace(symbol, ptx_.count() + absent.size());
  for (std::string_view symbol : symbols_) {
    const auto isAbsent = absent.find(symbol);
    partOf_.push_back(isAbsent != absent.end() ? isAbsent->second : ptx_.partOf(symbol));
    if (isAbsent == absent.end() && partOf_.back() == ptx_.count())
      return Error{concat("its code has no entry point '", symbol, "'")};
  }
  return {};
}

size_t CudaKernel::numberOf(const artifact::Phase& phase, uint32_t version) const {
  return firstEntry_[static_cast<size_t>(&phase - artifact().phases.data())] + version;
}

Result<void> CudaKernel::provide(const artifact::Phase& phase, uint32_t version) {
  if (const Placement* current = current_.load(std::memory_order_acquire);
      current && current->entry(numberOf(phase, version)))
    return {};
  Result<ContextRef> context = gpu_->context();
  if (!context)
    return context.takeError();
  const Enter enter(**context);
  Result<const LoadedEntry*> entry = entryIn(*context, phase, version);
  return entry ? Result<void>() : entry.takeError();
}

/// Under the part's lock.
Result<std::string> CudaKernel::textOfPart(size_t index) {
  if (index < ptx_.count())
    return ptx_.text(index);
  if (!entries())
    return Error{"its code was left out of the kernel"};
  Result<std::vector<uint8_t>> made = entries()->make(artifact().absent[index - ptx_.count()]);
  if (!made)
    return made.takeError();
  std::string text(made->begin(), made->end());
  if (Result<void> runs = checkText(*gpu_, text); !runs)
    return runs.takeError();
  return text;
}

Result<void> CudaKernel::bind(hal::Launch& launch) {
  const auto needsDevice = [](const hal::LaunchPhase& phase) {
    return !phase.maps.empty() || phase.phase->isCooperative;
  };
  if (std::ranges::none_of(launch.phases, needsDevice))
    return {};
  Result<ContextRef> context = gpu_->context();
  if (!context)
    return context.takeError();
  const Enter enter(**context);
  for (hal::LaunchPhase& phase : launch.phases) {
    if (phase.phase->isCooperative)
      if (Result<void> fits = checkResident(*gpu_, *context, launch, phase); !fits)
        return fits;
    for (const artifact::TensorMapOf<int64_t>& map : phase.maps) {
      Result<hal::EncodedMap> encoded = encode(**context, map);
      if (!encoded)
        return encoded.error().after(
            concat("phase '", phase.phase->name, "', tensor map ", phase.encodedMaps.size(), ": "));
      phase.encodedMaps.push_back(*encoded);
    }
  }
  return {};
}

Placement& CudaKernel::placementIn(const ContextRef& context) {
  if (Placement* current = current_.load(std::memory_order_acquire); current && current->context() == context)
    return *current;
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Placement>& placement : placements_)
    if (placement->context() == context)
      return *placement;
  placements_.push_back(std::make_unique<Placement>(context, symbols_.size()));
  current_.store(placements_.back().get(), std::memory_order_release);
  return *placements_.back();
}

Result<const LoadedEntry*> CudaKernel::entryIn(const ContextRef& context, const artifact::Phase& phase,
                                               uint32_t version) {
  Placement& placement = placementIn(context);
  const size_t index = numberOf(phase, version);
  if (const LoadedEntry* known = placement.entry(index))
    return known;
  Result<const LoadedEntry*> placed = place(placement, index);
  if (placed)
    return placed;
  return placed.error().after(
      concat("cannot load kernel '", artifact().name, "', entry point '", symbols_[index], "': "));
}

Result<const LoadedEntry*> CudaKernel::place(Placement& placement, size_t entry) {
  const size_t index = partOf_[entry];
  const std::lock_guard lock(parts_[index].mutex);
  if (const LoadedEntry* known = placement.entry(entry))
    return known;
  const auto start = std::chrono::steady_clock::now();
  Result<ModuleHandle> module = moduleOf(placement, index);
  if (!module)
    return module.takeError();
  Result<std::unique_ptr<LoadedEntry>> described = describe(*placement.context(), *module, symbols_[entry]);
  addLoadTime(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
  if (!described)
    return described.takeError();
  return placement.add(entry, *std::move(described));
}

/// Code whose warps trade registers is assembled when it is loaded, as a whole program, and the driver keeps what it makes of it. Its linker would
/// take the code for a part of a program: it ignores `setmaxnreg` then, and makes each matrix instruction wait for the one before (ptxas: C7504,
/// C7509).
static bool isWholeProgram(std::string_view ptx) { return ptx.find("setmaxnreg") != std::string_view::npos; }

/// Under the part's lock.
Result<ModuleHandle> CudaKernel::moduleOf(Placement& placement, size_t index) {
  Part& part = parts_[index];
  Context& context = *placement.context();
  for (const auto& [where, module] : part.modules)
    if (where == placement.context())
      return module;
  bool fresh = !part.machineCode.empty();  // loaded before, in another context
  std::string ptx;
  if (!fresh) {
    Result<std::string> text = textOfPart(index);
    if (!text)
      return text.takeError();
    ptx = *std::move(text);
    if ((fresh = isWholeProgram(ptx)))
      part.machineCode.assign(ptx.c_str(), ptx.c_str() + ptx.size() + 1);
  }
  for (artifact::Cache* cache = cache_.get();; cache = nullptr) {
    if (part.machineCode.empty()) {
      Result<std::vector<uint8_t>> machineCode = assemble(context, *gpu_, ptx, cache);
      if (!machineCode)
        return machineCode.takeError();
      part.machineCode = *std::move(machineCode);
    }
    Result<ModuleHandle> module = loadModule(context, part);
    if (module) {
      part.modules.emplace_back(placement.context(), *module);
      placement.own(*module);
      return module;
    }
    // What the cache kept may be unusable here though its key matches (a driver of the same version built otherwise): assemble once more.
    if (fresh || !cache)
      return module;
    part.machineCode.clear();
  }
}

Result<ModuleHandle> CudaKernel::loadModule(Context& context, const Part& part) const {
  ModuleHandle module = nullptr;
  const BesideCaptures beside(context.api());
  if (Result<void> done = context.check("the driver refuses the machine code",
                                        context.api().moduleLoad(&module, part.machineCode.data()));
      !done)
    return done.takeError();
  return module;
}

Result<std::unique_ptr<LoadedEntry>> CudaKernel::describe(Context& context, ModuleHandle module,
                                                          std::string_view symbol) const {
  const Api& api = context.api();
  auto entry = std::make_unique<LoadedEntry>();
  if (Result<void> done =
          context.check("cannot find it", api.moduleFunction(&entry->function, module, std::string(symbol).c_str()));
      !done)
    return done.takeError();
  int maxThreads = 0, staticShared = 0;
  for (const auto& [attribute, value] :
       {std::pair(kFunctionMaxThreads, &maxThreads), std::pair(kFunctionStaticShared, &staticShared)})
    if (Result<void> done =
            context.check("cannot describe it", api.functionAttribute(value, attribute, entry->function));
        !done)
      return done.takeError();
  entry->maxThreads = static_cast<uint32_t>(maxThreads);
  entry->staticSharedBytes = static_cast<uint32_t>(staticShared);
  // Beyond 48 KiB a function must be allowed more, once.
  constexpr uint32_t kWithoutAsking = 48 << 10;
  entry->dynamicSharedBytes = entry->staticSharedBytes < kWithoutAsking ? kWithoutAsking - entry->staticSharedBytes : 0;
  return entry;
}

}  // namespace vortex::cuda
