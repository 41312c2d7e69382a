#include "metal/states.h"

namespace vortex::metal {

Result<std::shared_ptr<const Variant>>
State<MTL::ComputePipelineState>::variant(const std::array<int64_t, 3>& block, bool isWhole,
                                          const std::map<uint32_t, uint64_t>& threadgroupBytes) {
  const std::scoped_lock lock(mutex);
  std::shared_ptr<const Variant>& known = variants[{block, isWhole, threadgroupBytes}];
  if (known)
    return known;
  const Result<MetalCode> code =
      function->library->program.build(function->kernel.name, {.target = device->device.target(),
                                                               .block = block,
                                                               .isWhole = isWhole,
                                                               .threadgroupBytes = threadgroupBytes,
                                                               .constants = function->constants});
  if (!code)
    return code.error();
  Result<Kernel> kernel = device->device.load(code->artifact);
  if (!kernel)
    return kernel.takeError();
  auto made = std::make_shared<Variant>();
  made->kernel = *std::move(kernel);
  made->buffers = code->buffers;
  for (const ParamInfo& param : made->kernel->params())
    made->types.push_back(param.type);
  return known = std::move(made);
}

namespace MTL {

ComputePipelineState* Device::newComputePipelineState(const Function* function, NS::Error** error) {
  constexpr const char* kCall = "MTL::Device::newComputePipelineState: ";
  if (!function)
    return fail(error, concat(kCall, "the function is null"));
  if (function->state().library->device != &state())
    return fail(error, concat(kCall, "`", function->state().kernel.name, "` is of another device"));
  auto made = std::make_shared<State<ComputePipelineState>>();
  made->function = function->shared();
  made->device = &state();
  MetalBuildRequest request{.target = state().device.target(), .constants = made->function->constants};
  for (const MetalParameter& parameter : made->function->kernel.parameters)
    if (parameter.kind == MetalParameterKind::Threadgroup)
      request.threadgroupBytes[parameter.index] =
          16;  // dispatches give it: here only what the kernel uses is looked at
  Result<MetalCode> lowered = made->function->library->program.lower(made->function->kernel.name, request);
  if (!lowered)
    return fail(error, concat(kCall, "\n", lowered.error().message));
  made->interface = *std::move(lowered);
  if (made->interface.staticThreadgroupBytes > maxThreadgroupMemoryLength())
    return fail(error, concat(kCall, "`", made->function->kernel.name, "` has ", made->interface.staticThreadgroupBytes,
                              " bytes of threadgroup memory; the device has ", maxThreadgroupMemoryLength()));
  if (const uint32_t most = made->function->kernel.maxThreads; most != 0)
    made->maxThreads = std::min(made->maxThreads, most);
  return new ComputePipelineState(std::move(made));
}

NS::UInteger ComputePipelineState::maxTotalThreadsPerThreadgroup() const { return state().maxThreads; }
NS::UInteger ComputePipelineState::staticThreadgroupMemoryLength() const {
  return state().interface.staticThreadgroupBytes;
}
Device* ComputePipelineState::device() const { return state().device->object; }

}  // namespace MTL
}  // namespace vortex::metal
