#include "metal/states.h"

#include <chrono>

namespace vortex::metal {

void CommandBufferState::misuse(const std::string& text) {
  const std::scoped_lock lock(mutex);
  if (problem.empty())
    problem = text;
}

bool CommandBufferState::isGood() const {
  const std::scoped_lock lock(mutex);
  return problem.empty();
}

bool CommandBufferState::isCommitted() const {
  const std::scoped_lock lock(mutex);
  return status >= MTL::CommandBufferStatusCommitted;
}

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Queues one command. With the device's mutex.
class Execution {
public:
  explicit Execution(const State<MTL::CommandQueue>& queue) : queue_(queue), device_(*queue.device) {}

  Result<void> operator()(const Fill& fill) {
    Result<vortex::Buffer> to = use(fill.to, true);
    return to ? device_.stream.fill(*to, fill.offset, fill.bytes, fill.value) : to.takeError();
  }

  Result<void> operator()(const Copy& copy) {
    Result<vortex::Buffer> from = use(copy.from, false);
    if (!from)
      return from.takeError();
    Result<vortex::Buffer> to = use(copy.to, true);
    if (!to)
      return to.takeError();
    return device_.stream.copy(*to, copy.toOffset, *from, copy.fromOffset, copy.bytes);
  }

  Result<void> operator()(const Dispatch& dispatch) {
    std::vector<Argument> arguments;
    for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
      const MetalBufferUse& what = dispatch.variant->buffers[i];
      Result<Tensor> view = bind(dispatch.bindings[i], dispatch.variant->types[i], what);
      if (!view)
        return view.takeError();
      arguments.emplace_back(*std::move(view));
    }
    for (const auto* sizes : {&dispatch.grid, &dispatch.block})
      for (const int64_t extent : *sizes)
        arguments.emplace_back(extent);
    const bool isTraced = captures().isCaptured(queue_);
    std::optional<TracedDispatch> traced;
    if (isTraced) {
      Result<Event> begin = mark(), end = device_.device.createEvent();
      if (begin && end)
        traced.emplace(dispatch.kernel, dispatch.grid, dispatch.block, *begin, *end, &queue_, queue_.label,
                       dispatch.variant);
    }
    Result<std::vector<Tensor>> done =
        device_.stream.launch(*dispatch.variant->kernel, arguments, {.mayOverlap = true});
    if (!done)
      return done.takeError();
    if (traced && device_.stream.record(traced->end))
      captures().add(*std::move(traced));
    return {};
  }

  /// Waits, and makes the memory of the host equal.
  Result<void> finish() {
    if (Result<void> done = device_.stream.synchronize(); !done)
      return done;
    for (const auto& buffer : written_)
      if (buffer->mirror)
        if (Result<void> here = buffer->mirror->settle(device_.stream); !here)
          return here;
    return {};
  }

private:
  Result<vortex::Buffer> use(const std::shared_ptr<State<MTL::Buffer>>& buffer, bool isWritten) {
    if (isWritten)
      written_.push_back(buffer);
    return buffer->forDevice(isWritten);
  }

  Result<Tensor> bind(const Binding& bound, DType type, const MetalBufferUse& what) {
    const auto count = static_cast<int64_t>(bound.bytes() / what.elemBytes);
    if (bound.buffer) {
      Result<vortex::Buffer> memory = use(bound.buffer, what.isWritten);
      return memory ? Result<Tensor>(Tensor{*memory, bound.offset, type, {count}, {1}}) : memory.takeError();
    }
    return device_.device.uploadBytes(type, {count}, bound.inlined->data(),
                                      static_cast<uint64_t>(count) * what.elemBytes);
  }

  Result<Event> mark() {
    Result<Event> event = device_.device.createEvent();
    if (event)
      if (Result<void> recorded = device_.stream.record(*event); !recorded)
        return recorded.takeError();
    return event;
  }

  const State<MTL::CommandQueue>& queue_;
  DeviceState& device_;
  std::vector<std::shared_ptr<State<MTL::Buffer>>> written_;
};

/// The commands one after the other; nothing of a command buffer that was misused. In the queue's thread.
void CommandBufferState::run(MTL::CommandBuffer* object) {
  {
    const std::scoped_lock lock(mutex);
    status = MTL::CommandBufferStatusScheduled;
  }
  changed.notify_all();
  for (const auto& handler : scheduled)
    handler(object);
  std::string failure;
  const double begin = now();
  if (isGood()) {
    const std::scoped_lock lock(queue->device->mutex);
    Execution execution(*queue);
    Result<void> done;
    for (const Command& command : commands)
      if (done = std::visit(execution, command); !done)
        break;
    Result<void> finished = execution.finish();
    failure = !done ? done.error().message : !finished ? finished.error().message : "";
  }
  commands.clear();  // and let go of buffers
  {
    const std::scoped_lock lock(mutex);
    start = begin;
    end = now();
    if (!failure.empty() && problem.empty())
      problem = "MTL::CommandBuffer: " + failure;
    status = MTL::CommandBufferStatusCompleted;
  }
  for (const auto& handler : completed)
    handler(object);
  const std::scoped_lock lock(mutex);
  isDone = true;
  changed.notify_all();
}

namespace MTL {

template <class Encoder> static Encoder* makeEncoder(CommandBuffer* buffer, const char* call) {
  CommandBufferState& state = buffer->state();
  auto made = std::make_shared<State<Encoder>>();
  made->buffer = NS::RetainPtr(buffer);
  made->isOpen = false;
  if (state.isCommitted())
    state.misuse(concat("MTL::CommandBuffer::", call, ": the command buffer was committed"));
  else if (state.hasOpenEncoder)
    state.misuse(concat("MTL::CommandBuffer::", call, ": the encoder before has not ended"));
  else
    made->isOpen = state.hasOpenEncoder = true;
  return (new Encoder(std::move(made)))->autorelease();
}

ComputeCommandEncoder* CommandBuffer::computeCommandEncoder() {
  return makeEncoder<ComputeCommandEncoder>(this, "computeCommandEncoder");
}
BlitCommandEncoder* CommandBuffer::blitCommandEncoder() {
  return makeEncoder<BlitCommandEncoder>(this, "blitCommandEncoder");
}

static void addHandler(CommandBufferState& state, std::vector<CommandBuffer::HandlerFunction>& list,
                       const CommandBuffer::HandlerFunction& handler, const char* call) {
  if (state.isCommitted())
    return state.misuse(concat("MTL::CommandBuffer::", call, ": the command buffer was committed"));
  if (!handler)
    return state.misuse(concat("MTL::CommandBuffer::", call, ": the handler is empty"));
  list.push_back(handler);
}

void CommandBuffer::addScheduledHandler(const HandlerFunction& handler) {
  addHandler(state(), state().scheduled, handler, "addScheduledHandler");
}
void CommandBuffer::addCompletedHandler(const HandlerFunction& handler) {
  addHandler(state(), state().completed, handler, "addCompletedHandler");
}

void CommandBuffer::enqueue() {
  {
    const std::scoped_lock lock(state().mutex);
    if (state().status != CommandBufferStatusNotEnqueued)
      return;
    state().status = CommandBufferStatusEnqueued;
  }
  state().queue->reserve(state());
}

void CommandBuffer::commit() {
  if (state().isCommitted())
    return state().misuse("MTL::CommandBuffer::commit: the command buffer was committed before");
  if (state().hasOpenEncoder)
    state().misuse("MTL::CommandBuffer::commit: an encoder has not ended");
  {
    const std::scoped_lock lock(state().mutex);
    state().status = CommandBufferStatusCommitted;
  }
  state().queue->commit(this);
}

void CommandBuffer::waitUntilCompleted() {
  if (!state().isCommitted())
    return state().misuse("MTL::CommandBuffer::waitUntilCompleted: the command buffer was not committed");
  if (state().queue->worker.isThis())
    return;  // a handler: what it would wait for is itself, or behind it
  std::unique_lock lock(state().mutex);
  state().changed.wait(lock, [&] { return state().isDone; });
}

CommandBufferStatus CommandBuffer::status() const {
  const std::scoped_lock lock(state().mutex);
  const bool isRunning =
      state().status == CommandBufferStatusCommitted || state().status == CommandBufferStatusScheduled;
  return state().problem.empty() || isRunning ? state().status : CommandBufferStatusError;
}

NS::Error* CommandBuffer::error() const {
  if (status() != CommandBufferStatusError)
    return nullptr;
  const std::scoped_lock lock(state().mutex);
  return makeError(state().problem);
}

NS::TimeInterval CommandBuffer::GPUStartTime() const {
  const std::scoped_lock lock(state().mutex);
  return state().start;
}
NS::TimeInterval CommandBuffer::GPUEndTime() const {
  const std::scoped_lock lock(state().mutex);
  return state().end;
}
Device* CommandBuffer::device() const { return state().queue->device->object; }

}  // namespace MTL
}  // namespace vortex::metal
