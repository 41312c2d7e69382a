#include "runtime/cuda/event.h"

#include "base/text.h"

#include <cmath>

namespace vortex::cuda {

CudaEvent::~CudaEvent() { destroy(); }

void CudaEvent::destroy() {
  if (!handle_ || context_->isLost())
    return;
  const Enter enter(*context_);
  context_->api().eventDestroy(handle_);
}

Result<void> CudaEvent::record(const ContextRef& context, StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  if (context_ != context) {
    destroy();
    context_ = context;
    handle_ = nullptr;
    recorded_ = false;
    if (Result<void> made =
            context->check("cannot create an event", context->api().eventCreate(&handle_, kEventDefault));
        !made)
      return made;
  }
  Result<void> done = context->check("cannot record an event", context->api().eventRecord(handle_, stream));
  recorded_ = done.ok();
  return done;
}

Result<void> CudaEvent::holdUp(const ContextRef& context, StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  if (!isRecorded() || context_ != context)
    return {};
  return context->check("cannot wait for an event", context->api().streamWait(stream, handle_, 0));
}

bool CudaEvent::isComplete() const {
  const std::lock_guard lock(mutex_);
  if (!isRecorded())
    return true;
  const Enter enter(*context_);
  return context_->api().eventQuery(handle_) != kNotReady;
}

Result<void> CudaEvent::wait() {
  const std::lock_guard lock(mutex_);
  if (!isRecorded())
    return {};
  const Enter enter(*context_);
  return context_->check("waiting for an event failed", context_->api().eventSynchronize(handle_));
}

Result<int64_t> CudaEvent::nanosecondsSince(hal::Event& start) {
  auto* earlier = dynamic_cast<CudaEvent*>(&start);
  if (!earlier || earlier->device_ != device_)
    return Error{"cannot measure between events of different devices"};
  if (earlier == this)
    return int64_t{0};
  if (Result<void> done = earlier->wait(); !done)
    return done.takeError();
  if (Result<void> done = wait(); !done)
    return done.takeError();
  const std::scoped_lock lock(mutex_, earlier->mutex_);
  if (!earlier->isRecorded() || !isRecorded())
    return Error{
        base::concat("cannot measure: the ", earlier->isRecorded() ? "end" : "start", " event was never recorded")};
  const Enter enter(*context_);
  float milliseconds = 0;
  if (Result<void> measured = context_->check("cannot measure between events",
                                              context_->api().eventElapsed(&milliseconds, earlier->handle_, handle_));
      !measured)
    return measured.takeError();
  return static_cast<int64_t>(std::llround(double{milliseconds} * 1e6));
}

}  // namespace vortex::cuda
