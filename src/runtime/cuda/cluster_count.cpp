// Cores come in groups of different sizes (an H100 lacks some of its die's cores, a MIG slice most), and a cluster lies in one group: only the
// driver knows how many fit. It tells it of a function, so there is one that does nothing and takes all of a core's shared memory.
#include "runtime/cuda/cluster_count.h"

#include "base/text.h"
#include "runtime/cuda/jit.h"

#include <algorithm>

namespace vortex::cuda {

namespace {

constexpr int kFirstWithClusters = 90;  // compute capability
constexpr const char* kProbe =
    ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry vortex_probe() { ret; }\n";

class ProbeModule {
public:
  explicit ProbeModule(Context& context) : context_(context) {}
  ~ProbeModule() {
    if (module_)
      context_.api().moduleUnload(module_);
  }
  ProbeModule(const ProbeModule&) = delete;
  ProbeModule& operator=(const ProbeModule&) = delete;

  Result<FunctionHandle> load(const Gpu& gpu) {
    Result<std::vector<uint8_t>> code = assemble(context_, gpu, kProbe, nullptr);
    if (!code)
      return code.takeError();
    FunctionHandle function = nullptr;
    Result<void> done =
        context_.check("the driver refuses the probe", context_.api().moduleLoad(&module_, code->data()));
    if (done)
      done = context_.check("the probe is missing", context_.api().moduleFunction(&function, module_, "vortex_probe"));
    if (done)
      done =
          context_.check("cannot get all shared memory",
                         context_.api().functionSet(function, kFunctionMaxDynamicShared, gpu.facts().sharedOptInBytes));
    return done ? Result<FunctionHandle>(function) : Result<FunctionHandle>(done.takeError());
  }

private:
  Context& context_;
  ModuleHandle module_ = nullptr;
};

}  // namespace

Result<uint32_t> ClusterCount::of(uint32_t blocks) {
  if (blocks == 1)
    return static_cast<uint32_t>(gpu_->facts().multiprocessors);
  if (gpu_->facts().capability < kFirstWithClusters || !gpu_->api().activeClusters || !gpu_->api().launchEx)
    return 0u;
  const std::lock_guard lock(mutex_);
  if (const auto found = known_.find(blocks); found != known_.end())
    return found->second;
  Result<uint32_t> count = ask(blocks);
  if (!count)
    return count.error().after(
        base::concat("cannot tell how many clusters of ", blocks, " blocks 'cuda:", gpu_->index(), "' runs: "));
  known_.emplace(blocks, *count);
  return count;
}

Result<uint32_t> ClusterCount::ask(uint32_t blocks) {
  Result<ContextRef> context = gpu_->context();
  if (!context)
    return context.takeError();
  const Enter enter(**context);
  ProbeModule probe(**context);
  Result<FunctionHandle> function = probe.load(*gpu_);
  if (!function)
    return function.takeError();
  LaunchAttribute cluster{.id = kClusterDimension, .value = {blocks, 1, 1}};
  const LaunchConfig config{.grid = {blocks, 1, 1},
                            .block = {1, 1, 1},
                            .sharedBytes = static_cast<unsigned>(gpu_->facts().sharedOptInBytes),
                            .attributes = &cluster,
                            .attributeCount = 1};
  int count = 0;
  if (Result<void> done =
          (*context)->check("the driver does not tell", gpu_->api().activeClusters(&count, *function, &config));
      !done)
    return done.takeError();
  return static_cast<uint32_t>(std::max(count, 0));
}

}  // namespace vortex::cuda
