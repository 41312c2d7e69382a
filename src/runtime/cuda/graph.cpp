#include "runtime/cuda/graph.h"

#include "base/text.h"
#include "runtime/cuda/launch_log.h"
#include "runtime/cuda/launch_phases.h"

#include <algorithm>
#include <cstring>

namespace vortex::cuda {

using artifact::DeviceReport;
using base::concat;

namespace {

CudaBuffer& cudaBuffer(const hal::BufferRef& buffer) { return static_cast<CudaBuffer&>(*buffer); }

template <typename Visit> void forEachBuffer(const hal::RecordedOperation& operation, const Visit& visit) {
  if (const auto* fill = std::get_if<hal::RecordedFill>(&operation))
    visit(fill->target);
  if (const auto* write = std::get_if<hal::RecordedWrite>(&operation))
    visit(write->target);
  if (const auto* copy = std::get_if<hal::RecordedCopy>(&operation)) {
    visit(copy->target);
    visit(copy->source);
  }
  if (const auto* launch = std::get_if<hal::Launch>(&operation))
    for (const hal::BufferRef& buffer : launch->keepAlive)
      visit(buffer);
}

}  // namespace

CudaGraph::CudaGraph(const hal::Stream* stream, const hal::Device* device, std::shared_ptr<Resources> resources,
                     hal::Recording recording)
    : stream_(stream), device_(device), resources_(std::move(resources)), recording_(std::move(recording)),
      contents_(recording_.operations().size()), between_(recording_.operations().size()) {}

CudaGraph::~CudaGraph() {
  if (!context_ || context_->isLost())
    return;
  const Enter enter(*context_);
  if (exec_)
    context_->api().graphExecDestroy(exec_);
  for (std::unique_ptr<PinnedMemory>& content : contents_)
    resources_->pinned.giveBack(std::move(content), !runs_);
  resources_->pinned.giveBack(std::move(reports_), !runs_);
}

uint32_t CudaGraph::operations() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(recording_.operations().size());
}

uint32_t CudaGraph::launches() const {
  const std::lock_guard lock(mutex_);
  return recording_.launches();
}

Result<void> CudaGraph::update(uint32_t launch, const hal::Launch& replacement) {
  const std::lock_guard lock(mutex_);
  Result<void> replaced = recording_.replace(launch, replacement);
  if (replaced)
    isCurrent_ = false;
  return replaced;
}

DeviceReport* CudaGraph::report(uint32_t launch) const {
  return reinterpret_cast<DeviceReport*>(reports_->host()) + launch;
}

/// Memory that replays need besides the caller's.
Result<void> CudaGraph::prepare(const ContextRef& context) {
  if (context_ == context)
    return {};
  if (context_)
    return Error{concat("the graph was lost when the device stopped (", context_->lossReason(), "): record it again")};
  const std::vector<hal::RecordedOperation>& operations = recording_.operations();
  for (size_t i = 0; i < operations.size(); ++i)
    if (const auto* write = std::get_if<hal::RecordedWrite>(&operations[i]); write && !write->content.empty()) {
      Result<std::unique_ptr<PinnedMemory>> content = resources_->pinned.take(context, write->content.size());
      if (!content)
        return content.takeError();
      std::memcpy((*content)->host(), write->content.data(), write->content.size());
      contents_[i] = *std::move(content);
    }
  const uint64_t reportBytes = std::max<uint64_t>(recording_.launches(), 1) * sizeof(DeviceReport);
  Result<std::unique_ptr<PinnedMemory>> reports = resources_->pinned.take(context, reportBytes);
  if (!reports)
    return reports.takeError();
  std::memset((*reports)->host(), 0, reportBytes);
  reports_ = *std::move(reports);
  context_ = context;
  return {};
}

Result<void> CudaGraph::addCopy(Context& context, StreamHandle stream, const hal::RecordedCopy& copy,
                                hal::BufferRef& between) {
  const DevicePointer to = copy.target->address() + copy.targetOffset,
                      from = copy.source->address() + copy.sourceOffset;
  const auto move = [&](DevicePointer into, DevicePointer out) {
    return context.check("a copy on the device failed", context.api().copyOnDevice(into, out, copy.bytes, stream));
  };
  if (to >= from + copy.bytes || from >= to + copy.bytes)
    return move(to, from);
  if (!between) {
    Result<hal::BufferRef> allocated = allocate(device_, *resources_->gpu, resources_->accounting, copy.bytes);
    if (!allocated)
      return allocated.takeError();
    between = *std::move(allocated);
  }
  if (Result<void> out = move(between->address(), from); !out)
    return out;
  return move(to, between->address());
}

Result<void> CudaGraph::add(const ContextRef& context, StreamHandle stream, size_t operation, uint32_t launch) {
  const Api& api = context->api();
  const auto zero = [&](const hal::BufferRef& target, uint64_t offset, uint64_t bytes, uint8_t value) {
    return bytes == 0 ? Result<void>()
                      : context->check("a fill failed", api.fill(target->address() + offset, value, bytes, stream));
  };
  const hal::RecordedOperation& recorded = recording_.operations()[operation];
  if (const auto* fill = std::get_if<hal::RecordedFill>(&recorded))
    return zero(fill->target, fill->offset, fill->bytes, fill->value);
  if (const auto* copy = std::get_if<hal::RecordedCopy>(&recorded))
    return copy->bytes == 0 ? Result<void>() : addCopy(*context, stream, *copy, between_[operation]);
  if (const auto* write = std::get_if<hal::RecordedWrite>(&recorded)) {
    if (!contents_[operation])
      return {};
    return context->check("a copy to the device failed",
                          api.copyToDevice(write->target->address() + write->offset, contents_[operation]->host(),
                                           write->content.size(), stream));
  }
  const auto& submitted = std::get<hal::Launch>(recorded);
  for (const hal::Launch::ZeroFill& fill : submitted.zeroFills)
    if (Result<void> filled = zero(fill.buffer, fill.byteOffset, fill.bytes, 0); !filled)
      return filled;
  return startPhases(context, stream, submitted, reports_->device() + launch * sizeof(DeviceReport));
}

Result<void> CudaGraph::capture(const ContextRef& context, StreamHandle stream) {
  uint32_t launch = 0;
  for (size_t i = 0; i < recording_.operations().size(); ++i) {
    if (Result<void> added = add(context, stream, i, launch); !added)
      return added;
    launch += std::holds_alternative<hal::Launch>(recording_.operations()[i]);
  }
  return {};
}

Result<void> CudaGraph::instantiate(const StreamCoreRef& core, GraphHandle captured) {
  Context& context = *core->context;
  const Api& api = context.api();
  if (exec_) {  // the same nodes with other arguments: replays that are queued keep the old ones
    GraphNodeHandle node = nullptr;
    int result = 0;
    if (api.graphExecUpdate(exec_, captured, &node, &result) == kSuccess)
      return {};
    if (Result<void> idle = context.check("waiting for the device failed", api.streamSynchronize(core->handle)); !idle)
      return idle;
    api.graphExecDestroy(exec_);
    exec_ = nullptr;
  }
  return context.check("cannot instantiate the graph", api.graphInstantiate(&exec_, captured, 0));
}

void CudaGraph::markUsed(const StreamCoreRef& core) {
  for (const hal::RecordedOperation& operation : recording_.operations())
    forEachBuffer(operation, [&](const hal::BufferRef& buffer) { cudaBuffer(buffer).usedBy(core); });
  for (const hal::BufferRef& buffer : between_)
    if (buffer)
      cudaBuffer(buffer).usedBy(core);
}

Result<void> CudaGraph::replay(const StreamCoreRef& core) {
  const std::lock_guard lock(mutex_);
  Context& context = *core->context;
  const Api& api = context.api();
  if (Result<void> ready = prepare(core->context); !ready)
    return ready;
  if (!isCurrent_) {
    for (const hal::RecordedOperation& operation : recording_.operations()) {
      Result<void> alive;
      forEachBuffer(operation, [&](const hal::BufferRef& buffer) {
        if (cudaBuffer(buffer).context() != core->context)
          alive = Error{concat("a buffer of ", buffer->bytes(),
                               " bytes was lost when the device stopped: record the graph again")};
      });
      if (const auto* launch = std::get_if<hal::Launch>(&operation); launch && alive)
        alive = checkPhases(*resources_->gpu, core->context, *launch);
      if (!alive)
        return alive;
    }
    // A stream that exists for the capture only: whatever fails in it leaves the caller's stream as it was.
    StreamHandle scratch = nullptr;
    if (Result<void> made = context.check("cannot create a stream", api.streamCreate(&scratch, kStreamNonBlocking));
        !made)
      return made;
    const StreamCore owner(core->context, scratch);
    if (Result<void> begun = context.check("cannot record", api.captureBegin(scratch, kCaptureRelaxed)); !begun)
      return begun;
    Result<void> built = capture(core->context, scratch);
    GraphHandle captured = nullptr;
    Result<void> ended = context.check("cannot record", api.captureEnd(scratch, &captured));
    if (built)
      built = std::move(ended);
    if (built)
      built = instantiate(core, captured);
    if (captured)
      api.graphDestroy(captured);
    if (!built)
      return built;
    isCurrent_ = true;
  }
  markUsed(core);
  runs_ = true;
  return context.check("cannot replay the graph", api.graphLaunch(exec_, core->handle));
}

std::optional<hal::RunFault> CudaGraph::drain() {
  const std::lock_guard lock(mutex_);
  runs_ = false;
  std::optional<hal::RunFault> fault;
  uint32_t launch = 0;
  for (const hal::RecordedOperation& operation : recording_.operations()) {
    const auto* submitted = std::get_if<hal::Launch>(&operation);
    if (!submitted || !reports_)
      continue;
    DeviceReport* own = report(launch++);
    // The device wrote it; the compiler must not assume what it last saw.
    const uint32_t code = *const_cast<const volatile uint32_t*>(&own->fault);
    if (code == 0)
      continue;
    const artifact::Kernel& kernel = submitted->kernel->artifact();
    if (!fault && code <= kernel.faults.size())
      fault = faultOf(kernel, *own);
    *own = DeviceReport{};
  }
  return fault;
}

bool CudaGraph::reports() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(recording_.operations(), [](const hal::RecordedOperation& operation) {
    const auto* launch = std::get_if<hal::Launch>(&operation);
    return launch && static_cast<const CudaKernel&>(*launch->kernel).reports();
  });
}

std::vector<const artifact::Kernel*> CudaGraph::kernels() const {
  const std::lock_guard lock(mutex_);
  std::vector<const artifact::Kernel*> kernels;
  for (const hal::RecordedOperation& operation : recording_.operations())
    if (const auto* launch = std::get_if<hal::Launch>(&operation))
      kernels.push_back(&launch->kernel->artifact());
  return kernels;
}

}  // namespace vortex::cuda
