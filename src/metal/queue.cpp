#include "metal/states.h"

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
