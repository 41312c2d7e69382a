#include "runtime/cuda/kernel.h"

#include "artifact/device_report.h"
#include "artifact/validate.h"
#include "base/text.h"
#include "runtime/cuda/jit.h"

#include <algorithm>

namespace vortex::cuda {

using base::concat;

namespace {

Result<void> checkArtifact(const artifact::Kernel& kernel) {
  if (Result<void> valid = artifact::validate(kernel); !valid)
    return valid;
  const uint64_t parameterBytes = (uint64_t{kernel.slotCount} + 1) * sizeof(uint64_t);
  if (parameterBytes > artifact::kMaxParameterBytes)
    return Error{
        concat("its arguments take ", parameterBytes, " bytes, a launch can carry ", artifact::kMaxParameterBytes)};
  for (const artifact::Phase& phase : kernel.phases)
    if (phase.hardwareThreads.steps.empty())
      return Error{concat("phase '", phase.name, "' does not say how many hardware threads a block has")};
  return {};
}

}  // namespace

LoadedModule::~LoadedModule() {
  if (!handle || context->isLost())
    return;
  const Enter enter(*context);
  context->api().moduleUnload(handle);
}

CudaKernel::CudaKernel(const hal::Device* device, Gpu& gpu, std::shared_ptr<const artifact::Kernel> kernel)
    : LoadedKernel(device, std::move(kernel)), sharedOptInBytes_(static_cast<uint32_t>(gpu.facts().sharedOptInBytes)) {
  mayPrint_ = std::ranges::any_of(artifact().faults,
                                  [](const artifact::Fault& fault) { return fault.id.starts_with("print"); });
}

Result<hal::KernelRef> CudaKernel::load(const hal::Device* device, Gpu& gpu, artifact::Cache* cache,
                                        std::shared_ptr<const artifact::Kernel> kernel) {
  const auto fail = [&](const Error& error) {
    return Error{concat("cannot load kernel '", kernel->name, "': ", error.message)};
  };
  if (!kernel->target.starts_with("sm_"))
    return Error{concat("kernel '", kernel->name, "' was compiled for '", kernel->target, "', this device runs 'sm_",
                        gpu.facts().capability, "'")};
  if (Result<void> valid = checkArtifact(*kernel); !valid)
    return fail(valid.error());
  const std::string_view ptx(reinterpret_cast<const char*>(kernel->code.data()), kernel->code.size());
  Result<PtxHeader> header = readHeader(ptx);
  if (!header)
    return fail(header.error());
  if (Result<void> runs = checkPtx(gpu, *header); !runs)
    return fail(runs.error());
  Result<ContextRef> context = gpu.context();
  if (!context)
    return fail(context.error());
  const Enter enter(**context);
  Result<std::vector<uint8_t>> machineCode = assemble(**context, gpu, ptx, cache);
  if (!machineCode)
    return fail(machineCode.error());
  std::shared_ptr<CudaKernel> loaded(new CudaKernel(device, gpu, kernel));
  loaded->machineCode_ = *std::move(machineCode);
  if (Result<void> placed = loaded->place(*context); !placed) {
    if (!cache || loaded->wasAccepted_)
      return fail(placed.error());
    // What the cache kept may be unusable here though its key matches (a driver of the same version built otherwise): assemble once more.
    Result<std::vector<uint8_t>> fresh = assemble(**context, gpu, ptx, nullptr);
    if (!fresh)
      return fail(fresh.error());
    loaded->machineCode_ = *std::move(fresh);
    if (Result<void> again = loaded->place(*context); !again)
      return fail(again.error());
  }
  return hal::KernelRef(std::move(loaded));
}

Result<void> CudaKernel::place(const ContextRef& context) {
  const Api& api = context->api();
  const std::vector<artifact::Phase>& phases = artifact().phases;
  auto module = std::make_unique<LoadedModule>(context, 2 * phases.size());
  if (Result<void> done =
          context->check("the driver refuses the machine code", api.moduleLoad(&module->handle, machineCode_.data()));
      !done)
    return done;
  wasAccepted_ = true;
  for (size_t i = 0; i < module->phases.size(); ++i) {
    LoadedPhase& phase = module->phases[i];
    const std::string& symbol = i < phases.size() ? phases[i].symbol : phases[i - phases.size()].generalSymbol;
    if (i >= phases.size() && symbol.empty())
      continue;
    const Code found = api.moduleFunction(&phase.function, module->handle, symbol.c_str());
    if (found == kNotFound)
      return Error{concat("its code has no entry point '", symbol, "'")};
    if (Result<void> done = context->check("cannot find an entry point", found); !done)
      return done;
    int maxThreads = 0, staticShared = 0;
    for (const auto& [attribute, value] :
         {std::pair(kFunctionMaxThreads, &maxThreads), std::pair(kFunctionStaticShared, &staticShared)})
      if (Result<void> done =
              context->check("cannot describe an entry point", api.functionAttribute(value, attribute, phase.function));
          !done)
        return done;
    phase.maxThreads = static_cast<uint32_t>(maxThreads);
    phase.staticSharedBytes = static_cast<uint32_t>(staticShared);
    // Beyond 48 KiB a function must be allowed more, once.
    constexpr uint32_t kWithoutAsking = 48 << 10;
    phase.dynamicSharedBytes = phase.staticSharedBytes < kWithoutAsking ? kWithoutAsking - phase.staticSharedBytes : 0;
  }
  current_.store(module.get(), std::memory_order_release);
  modules_.push_back(std::move(module));
  return {};
}

Result<const LoadedModule*> CudaKernel::moduleIn(const ContextRef& context) {
  const LoadedModule* current = current_.load(std::memory_order_acquire);
  if (current->context == context)
    return current;
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<LoadedModule>& module : modules_)
    if (module->context == context)
      return module.get();
  const Enter enter(*context);
  if (Result<void> placed = place(context); !placed)
    return Error{concat("cannot load kernel '", artifact().name, "' again: ", placed.error().message)};
  return modules_.back().get();
}

}  // namespace vortex::cuda
