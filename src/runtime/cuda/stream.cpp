#include "runtime/cuda/stream.h"

#include "base/text.h"
#include "runtime/cuda/launch_phases.h"

#include <algorithm>

namespace vortex::cuda {

using base::concat;

namespace {

CudaBuffer& own(const hal::BufferRef& buffer) { return static_cast<CudaBuffer&>(*buffer); }

bool overlap(uint64_t first, uint64_t second, uint64_t bytes) {
  return first < second + bytes && second < first + bytes;
}

}  // namespace

Result<hal::StreamRef> CudaStream::create(const hal::Device* device, std::shared_ptr<Resources> resources,
                                          std::optional<StreamHandle> borrowed) {
  std::shared_ptr<CudaStream> stream(new CudaStream(device, std::move(resources), borrowed));
  if (Result<void> ready = stream->renew(); !ready)
    return ready.takeError();
  return hal::StreamRef(std::move(stream));
}

CudaStream::~CudaStream() {
  if (!core_ || core_->context->isLost())
    return;
  const Enter enter(*core_->context);
  // Reports and staging memory go back to the pool below, and prints are owed.
  if ((!log_->isEmpty() || !replays_.empty()) && waitUntilIdle(*core_))
    drainLog();
  if (borrowed_) {
    log_.reset();
    staging_.reset();
    core_->giveBack();
  }
}

Result<StreamHandle> CudaStream::makeHandle(Context& context) const {
  if (borrowed_)
    return *borrowed_;
  StreamHandle handle = nullptr;
  if (Result<void> made =
          context.check("cannot create a stream", context.api().streamCreate(&handle, kStreamNonBlocking));
      !made)
    return made.takeError();
  return handle;
}

Result<void> CudaStream::renew() {
  if (core_ && !core_->context->isLost())
    return {};
  if (!loss_.empty())
    return Error{concat("the stream of another library was lost when the device stopped (", loss_, ")")};
  Result<ContextRef> context = resources_->gpu->context();
  if (!context)
    return context.takeError();
  const Enter enter(**context);
  Result<StreamHandle> handle = makeHandle(**context);
  if (!handle)
    return handle.takeError();
  auto core = std::make_shared<StreamCore>(*context, *handle, borrowed_.has_value());
  Result<std::unique_ptr<LaunchLog>> log = LaunchLog::create(core, resources_->pinned);
  if (!log)
    return log.takeError();
  staging_ = std::make_unique<Staging>(core, resources_->pinned);
  log_ = *std::move(log);
  core_ = std::move(core);
  return {};
}

Result<void> CudaStream::checkBuffer(const char* operation, const hal::BufferRef& buffer) const {
  if (!buffer)
    return Error{concat(operation, ": no buffer given")};
  if (buffer->device() != device_)
    return Error{concat(operation, ": the buffer belongs to another device than the stream")};
  return {};
}

Result<void> CudaStream::checkContexts(std::span<const hal::BufferRef> buffers) const {
  for (const hal::BufferRef& buffer : buffers)
    if (own(buffer).context() != core_->context)
      return Error{concat("a buffer of ", buffer->bytes(), " bytes was lost when the device stopped (",
                          own(buffer).context()->lossReason(), "): allocate and fill it again")};
  return {};
}

void CudaStream::noteLoss() {
  if (!core_->context->isLost() || pending_)
    return;
  std::vector<const artifact::Kernel*> kernels;
  for (const std::shared_ptr<CudaGraph>& graph : replays_) {
    if (std::optional<hal::RunFault> told = graph->drain()) {
      pending_ = std::move(told);
      return;
    }
    for (const artifact::Kernel* kernel : graph->kernels())
      kernels.push_back(kernel);
  }
  pending_ = log_->blame(core_->context->lossReason(), std::move(kernels));
}

template <typename Work> Result<void> CudaStream::perform(bool afterFaults, const Work& work) {
  const std::lock_guard lock(mutex_);
  if (core_)
    noteLoss();
  if (pending_)
    return {};
  if (Result<void> ready = renew(); !ready)
    return ready;
  const Enter enter(*core_->context);
  Result<void> done = afterFaults ? settle() : Result<void>();
  if (done && !pending_)
    done = work();
  noteLoss();
  return pending_ ? Result<void>() : done;
}

Result<void> CudaStream::settle() {
  const bool unsettled =
      log_->isUnsettled() || std::ranges::any_of(replays_, [](const auto& graph) { return graph->reports(); });
  return unsettled ? finish() : Result<void>();
}

Result<void> CudaStream::finish() {
  Result<void> done =
      core_->context->check("waiting for the device failed", core_->context->api().streamSynchronize(core_->handle));
  if (!done)
    return done;
  drainLog();
  return {};
}

void CudaStream::drainLog() {
  std::optional<hal::RunFault> fault = log_->drain();
  for (const std::shared_ptr<CudaGraph>& graph : replays_)
    if (std::optional<hal::RunFault> told = graph->drain(); told && !fault)
      fault = std::move(told);
  replays_.clear();
  if (fault && !pending_)
    pending_ = std::move(fault);
}

bool CudaStream::isCaptured() const {
  if (!borrowed_)
    return false;
  const Enter enter(*core_->context);
  int status = 0;
  return core_->context->api().streamIsCapturing(core_->handle, &status) != kSuccess || status != 0;
}

Result<hal::BufferRef> CudaStream::allocate(hal::Device& device, uint64_t bytes) {
  bool isOfOtherGraph = false;
  {
    const std::lock_guard lock(mutex_);
    // Every replay of a recording or of another library's graph uses the memory: it has no place in the stream's order.
    const bool isOrdered = core_ && !core_->context->isLost() && !recording_;
    isOfOtherGraph = isOrdered && isCaptured();
    if (isOrdered && !isOfOtherGraph)
      return cuda::allocate(device_, *resources_->gpu, resources_->accounting, bytes, core_);
  }
  Result<hal::BufferRef> made = device.allocate(bytes);
  if (made && isOfOtherGraph) {
    const std::lock_guard lock(mutex_);
    captured_.insert(*made);
  }
  return made;
}

Result<void> CudaStream::fill(const hal::BufferRef& target, uint64_t offset, uint64_t bytes, uint8_t value) {
  if (Result<void> owned = checkBuffer("fill", target); !owned)
    return owned;
  if (Result<void> inside = hal::checkRange("fill", *target, offset, bytes, true); !inside)
    return inside;
  if (recorded([&] { return hal::RecordedFill{target, offset, bytes, value}; }))
    return {};
  return perform(true, [&]() -> Result<void> {
    if (Result<void> alive = checkContexts({&target, 1}); !alive || bytes == 0)
      return alive;
    own(target).usedBy(core_);
    return core_->context->check("a fill failed",
                                 core_->context->api().fill(target->address() + offset, value, bytes, core_->handle));
  });
}

Result<void> CudaStream::copy(const hal::BufferRef& target, uint64_t targetOffset, const hal::BufferRef& source,
                              uint64_t sourceOffset, uint64_t bytes) {
  for (const hal::BufferRef& buffer : {target, source})
    if (Result<void> owned = checkBuffer("copy", buffer); !owned)
      return owned;
  if (Result<void> inside = hal::checkRange("copy: writing", *target, targetOffset, bytes, true); !inside)
    return inside;
  if (Result<void> inside = hal::checkRange("copy: reading", *source, sourceOffset, bytes); !inside)
    return inside;
  if (recorded([&] { return hal::RecordedCopy{target, targetOffset, source, sourceOffset, bytes}; }))
    return {};
  return perform(true, [&]() -> Result<void> {
    const hal::BufferRef both[] = {target, source};
    if (Result<void> alive = checkContexts(both); !alive || bytes == 0)
      return alive;
    own(target).usedBy(core_);
    own(source).usedBy(core_);
    Context& context = *core_->context;
    const DevicePointer to = target->address() + targetOffset, from = source->address() + sourceOffset;
    const auto move = [&](DevicePointer into, DevicePointer out) {
      return context.check("a copy on the device failed", context.api().copyOnDevice(into, out, bytes, core_->handle));
    };
    if (!overlap(to, from, bytes))
      return move(to, from);
    Result<hal::BufferRef> between = cuda::allocate(device_, *resources_->gpu, resources_->accounting, bytes);
    if (!between)
      return between.takeError();
    own(*between).usedBy(core_);
    if (Result<void> out = move((*between)->address(), from); !out)
      return out;
    return move(to, (*between)->address());
  });
}

Result<void> CudaStream::write(const hal::BufferRef& target, uint64_t offset, const void* from, uint64_t bytes) {
  if (Result<void> owned = checkBuffer("write", target); !owned)
    return owned;
  if (Result<void> inside = hal::checkRange("write", *target, offset, bytes, true); !inside)
    return inside;
  const auto* first = static_cast<const uint8_t*>(from);
  if (recorded([&] { return hal::RecordedWrite{target, offset, {first, first + bytes}}; }))
    return {};
  return perform(true, [&]() -> Result<void> {
    if (Result<void> alive = checkContexts({&target, 1}); !alive || bytes == 0)
      return alive;
    own(target).usedBy(core_);
    return staging_->write(target->address() + offset, from, bytes);
  });
}

Result<void> CudaStream::read(void* into, const hal::BufferRef& source, uint64_t offset, uint64_t bytes) {
  Result<bool> isThere = readUnlessFaulted(into, source, offset, bytes);
  if (!isThere)
    return isThere.takeError();
  const std::lock_guard lock(mutex_);
  return reportFault();
}

Result<bool> CudaStream::readUnlessFaulted(void* into, const hal::BufferRef& source, uint64_t offset, uint64_t bytes) {
  if (Result<void> owned = checkBuffer("read", source); !owned)
    return owned.takeError();
  if (Result<void> inside = hal::checkRange("read", *source, offset, bytes); !inside)
    return inside.takeError();
  if (Result<void> runs = checkNotRecording("read"); !runs)
    return runs.takeError();
  Result<void> done = perform(true, [&]() -> Result<void> {
    if (Result<void> alive = checkContexts({&source, 1}); !alive || bytes == 0)
      return alive;
    own(source).usedBy(core_);
    Result<void> here = staging_->read(into, source->address() + offset, bytes);
    if (here)
      drainLog();  // the copy waited for everything before it
    return here;
  });
  if (!done)
    return done.takeError();
  const std::lock_guard lock(mutex_);
  return !pending_;
}

Result<void> CudaStream::submitPhases(const hal::Launch& launch) {
  if (launch.kernel->device() != device_)
    return Error{
        concat("kernel '", launch.kernel->artifact().name, "' was loaded on another device than the stream's")};
  {
    const std::lock_guard lock(mutex_);
    if (recording_)
      return recording_->add(launch);
    if (launch.undecided && core_ && isCaptured())
      return launchError(launch, "it waits for what it computes, and its stream is being captured");
  }
  return perform(false, [&] { return start(launch); });
}

Result<void> CudaStream::start(const hal::Launch& launch) {
  const auto fail = [&](const Error& error) { return launchError(launch, error); };
  if (Result<void> alive = checkContexts(launch.keepAlive); !alive)
    return fail(alive.error());
  if (Result<void> fits = checkPhases(*resources_->gpu, core_->context, launch); !fits)
    return fits;
  Context& context = *core_->context;
  for (const hal::BufferRef& buffer : launch.keepAlive)
    own(buffer).usedBy(core_);
  for (const hal::Launch::ZeroFill& zero : launch.zeroFills)
    if (zero.bytes != 0)
      if (Result<void> filled =
              context.check("a fill failed",
                            context.api().fill(zero.buffer->address() + zero.byteOffset, 0, zero.bytes, core_->handle));
          !filled)
        return fail(filled.error());
  if (launch.phases.empty())
    return {};
  Result<DevicePointer> report = log_->add(launch, pending_);
  if (!report)
    return fail(report.error());
  if (pending_)
    return {};
  if (isCaptured())
    captured_.insert(launch.kernel);
  return startPhases(core_->context, core_->handle, launch, *report);
}

Result<void> CudaStream::beginRecording() {
  const std::lock_guard lock(mutex_);
  if (recording_)
    return Error{"the stream is recording already"};
  recording_.emplace();
  return {};
}

Result<hal::GraphRef> CudaStream::endRecording() {
  const std::lock_guard lock(mutex_);
  if (!recording_)
    return Error{"the stream does not record"};
  hal::Recording recorded = *std::move(recording_);
  recording_.reset();
  return hal::GraphRef(std::make_shared<CudaGraph>(this, device_, resources_, std::move(recorded)));
}

Result<void> CudaStream::replay(const hal::GraphRef& graph) {
  auto ours = std::dynamic_pointer_cast<CudaGraph>(graph);
  if (!ours || ours->stream() != this)
    return Error{"replay: another stream recorded the graph"};
  if (Result<void> runs = checkNotRecording("replay"); !runs)
    return runs;
  return perform(false, [&] {
    if (std::ranges::find(replays_, ours) == replays_.end())
      replays_.push_back(ours);
    return ours->replay(core_);
  });
}

template <typename Make> bool CudaStream::recorded(const Make& make) {
  const std::lock_guard lock(mutex_);
  if (recording_)
    recording_->add(hal::RecordedOperation(make()));
  return recording_.has_value();
}

Result<void> CudaStream::checkNotRecording(const char* operation) const {
  const std::lock_guard lock(mutex_);
  return recording_ ? Result<void>(hal::recordingError(operation)) : Result<void>();
}

Result<void> CudaStream::record(const hal::EventRef& event) {
  auto* ours = dynamic_cast<CudaEvent*>(event.get());
  if (!ours || ours->device() != device_)
    return Error{"record: the event belongs to another device than the stream"};
  if (Result<void> runs = checkNotRecording("record"); !runs)
    return runs;
  return perform(false, [&] { return ours->record(core_->context, core_->handle); });
}

Result<void> CudaStream::wait(const hal::EventRef& event) {
  auto* ours = dynamic_cast<CudaEvent*>(event.get());
  if (!ours || ours->device() != device_)
    return Error{"wait: the event belongs to another device than the stream"};
  if (Result<void> runs = checkNotRecording("wait"); !runs)
    return runs;
  return perform(false, [&] { return ours->holdUp(core_->context, core_->handle); });
}

Result<void> CudaStream::reportFault() {
  if (!pending_)
    return {};
  reported_ = std::exchange(pending_, std::nullopt);
  if (core_->context->isLost()) {  // told now: what follows starts over in a new context
    if (borrowed_)
      loss_ = core_->context->lossReason();
    log_.reset();
    replays_.clear();
    staging_.reset();
    core_.reset();
  } else {  // what was queued behind it ends before the stream is usable again; its own faults are consequences
    const Enter enter(*core_->context);
    if (waitUntilIdle(*core_))
      drainLog();
    pending_.reset();
  }
  return hal::faultError(*reported_);
}

Result<void> CudaStream::synchronize() {
  if (Result<void> runs = checkNotRecording("synchronize"); !runs)
    return runs;
  if (Result<void> done = perform(false, [&] { return finish(); }); !done)
    return done;
  const std::lock_guard lock(mutex_);
  return reportFault();
}

std::optional<hal::RunFault> CudaStream::lastFault() const {
  const std::lock_guard lock(mutex_);
  return reported_;
}

}  // namespace vortex::cuda
