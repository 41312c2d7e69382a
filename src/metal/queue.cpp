#include "metal/states.h"

#include <algorithm>

namespace vortex::metal {

Worker::Worker() : thread_([queue = queue_] { run(queue); }) {}

/// What was added is still done. The last handle may go in the thread itself.
Worker::~Worker() {
  {
    const std::scoped_lock lock(queue_->mutex);
    queue_->isEnding = true;
  }
  queue_->changed.notify_all();
  if (isThis())
    thread_.detach();
  else
    thread_.join();
}

void Worker::add(std::function<void()> work) {
  {
    const std::scoped_lock lock(queue_->mutex);
    queue_->work.push_back(std::move(work));
  }
  queue_->changed.notify_all();
}

void Worker::run(const std::shared_ptr<Queue>& queue) {
  std::unique_lock lock(queue->mutex);
  while (true) {
    queue->changed.wait(lock, [&] { return queue->isEnding || !queue->work.empty(); });
    if (queue->work.empty())
      return;
    std::function<void()> next = std::move(queue->work.front());
    queue->work.pop_front();
    lock.unlock();
    auto* pool = NS::AutoreleasePool::alloc()->init();
    next();
    next = nullptr;
    pool->release();
    lock.lock();
  }
}

using QueueState = State<MTL::CommandQueue>;

QueueState::Place* QueueState::placeOf(const State<MTL::CommandBuffer>& buffer) {
  const auto found =
      std::find_if(places_.begin(), places_.end(), [&](const Place& place) { return place.owner == &buffer; });
  return found == places_.end() ? nullptr : &*found;
}

void QueueState::reserve(const State<MTL::CommandBuffer>& buffer) {
  const std::scoped_lock lock(mutex_);
  places_.push_back({&buffer, {}});
}

void QueueState::commit(MTL::CommandBuffer* buffer) {
  const std::scoped_lock lock(mutex_);
  Place* place = placeOf(buffer->state());
  if (!place)
    place = &places_.emplace_back(Place{&buffer->state(), {}});
  place->committed = NS::RetainPtr(buffer);
  start();
}

void QueueState::giveUp(const State<MTL::CommandBuffer>& buffer) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(places_, [&](const Place& place) { return place.owner == &buffer; });
  start();
}

void QueueState::start() {
  for (; !places_.empty() && places_.front().committed; places_.pop_front())
    worker.add([buffer = std::move(places_.front().committed)] { buffer->state().run(buffer.get()); });
}

namespace MTL {

CommandQueue* Device::newCommandQueue() {
  auto made = std::make_shared<State<CommandQueue>>();
  made->device = &state();
  return new CommandQueue(std::move(made));
}

CommandBuffer* CommandQueue::commandBuffer() {
  auto made = std::make_shared<CommandBufferState>();
  made->queue = shared();
  return (new CommandBuffer(std::move(made)))->autorelease();
}

void CommandQueue::setLabel(const NS::String* label) { state().label = label ? label->utf8String() : ""; }
Device* CommandQueue::device() const { return state().device->object; }

}  // namespace MTL
}  // namespace vortex::metal
