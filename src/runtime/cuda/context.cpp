#include "runtime/cuda/context.h"

#include "base/text.h"

#include <cstdlib>

namespace vortex::cuda {

using base::concat;

Result<void> Context::create() {
  if (const Code code = api_->primaryRetain(&handle_, device_); code != kSuccess)
    return api_->error(concat("cannot use device 'cuda:", index_, "'"), code);
  const Enter enter(*this);
  for (StreamHandle* stream : {&allocationStream_, &freeStream_})
    if (const Code code = api_->streamCreate(stream, kStreamNonBlocking); code != kSuccess)
      return api_->error("cannot create a stream", code);
  int hasPools = 0;
  api_->deviceAttribute(&hasPools, kMemoryPools, device_);
  if (!hasPools)
    return {};
  PoolProperties properties;
  properties.locationId = index_;
  if (const Code code = api_->poolCreate(&pool_, &properties); code != kSuccess)
    return api_->error("cannot create a memory pool", code);
  // Freed memory stays with the process, and an allocation never waits for another stream's work: it is usable when it returns.
  uint64_t threshold = UINT64_MAX;
  int no = 0;
  api_->poolSet(pool_, kPoolReleaseThreshold, &threshold);
  api_->poolSet(pool_, kPoolReuseInternal, &no);
  return {};
}

Context::~Context() {
  if (!handle_)
    return;
  if (!isLost()) {
    const Enter enter(*this);
    for (EventHandle event : events_)
      api_->eventDestroy(event);
    for (StreamHandle stream : {allocationStream_, freeStream_}) {
      if (!stream)
        continue;
      api_->streamSynchronize(stream);
      api_->streamDestroy(stream);
    }
    if (pool_)
      api_->poolDestroy(pool_);
  }
  api_->primaryRelease(device_);
  for (void* host : freedAtEnd_)
    std::free(host);
}

void Context::note(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (lossReason_.empty())
    lossReason_ = reason;
  lost_.store(true, std::memory_order_release);
}

std::string Context::lossReason() const {
  const std::lock_guard lock(mutex_);
  return lossReason_;
}

Result<void> Context::check(const char* what, Code code) {
  if (code == kSuccess)
    return {};
  Error error = api_->error(what, code);
  if (destroysContext(code))
    note(api_->error(concat("'cuda:", index_, "'"), code).message);
  return error;
}

Result<EventHandle> Context::takeEvent() {
  {
    const std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      EventHandle event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  EventHandle event = nullptr;
  if (Result<void> made = check("cannot create an event", api_->eventCreate(&event, kEventNoTiming)); !made)
    return made.takeError();
  return event;
}

void Context::giveEvent(EventHandle event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(event);
}

void Context::freeAtEnd(void* host) {
  const std::lock_guard lock(mutex_);
  freedAtEnd_.push_back(host);
}

Result<std::shared_ptr<Gpu>> Gpu::open(std::shared_ptr<const Api> api, int index) {
  std::shared_ptr<Gpu> gpu(new Gpu(std::move(api), index));
  if (Result<void> read = gpu->readFacts(); !read)
    return read.takeError();
  return gpu;
}

Result<void> Gpu::readFacts() {
  const auto fail = [&](Code code) { return api_->error(concat("cannot describe device 'cuda:", index_, "'"), code); };
  if (const Code code = api_->device(&device_, index_); code != kSuccess)
    return fail(code);
  char name[256] = {};
  if (const Code code = api_->deviceName(name, sizeof name, device_); code != kSuccess)
    return fail(code);
  facts_.product = name;
  size_t bytes = 0;
  if (const Code code = api_->deviceMemory(&bytes, device_); code != kSuccess)
    return fail(code);
  facts_.memoryBytes = bytes;
  int major = 0, minor = 0, pools = 0;
  const std::pair<DeviceAttribute, int*> wanted[] = {{kCapabilityMajor, &major},
                                                     {kCapabilityMinor, &minor},
                                                     {kMultiprocessors, &facts_.multiprocessors},
                                                     {kMaxThreadsPerBlock, &facts_.maxThreadsPerBlock},
                                                     {kSharedOptIn, &facts_.sharedOptInBytes},
                                                     {kMaxGridX, &facts_.maxGrid[0]},
                                                     {kMaxGridY, &facts_.maxGrid[1]},
                                                     {kMaxGridZ, &facts_.maxGrid[2]},
                                                     {kMemoryPools, &pools}};
  for (const auto& [attribute, value] : wanted)
    if (const Code code = api_->deviceAttribute(value, attribute, device_); code != kSuccess)
      return fail(code);
  facts_.capability = major * 10 + minor;
  facts_.hasPools = pools != 0;
  return {};
}

Result<ContextRef> Gpu::context() {
  const std::lock_guard lock(mutex_);
  if (context_ && !context_->isLost())
    return context_;
  // Drivers differ in what they allow after a fault. Version 580 refuses every new context of the process, primary or not, with the fault's own
  // code; where one does not, the reset below ends the old life for everyone, as the fault has already, and a new one begins.
  if (context_)
    api_->primaryReset(device_);
  auto fresh = std::make_shared<Context>(api_, device_, index_);
  if (Result<void> made = fresh->create(); !made) {
    if (!context_)
      return made.takeError();
    return Error{base::concat(context_->lossReason(),
                              ": the driver gives this process no further use of 'cuda:", index_, "'; run it again")};
  }
  context_ = std::move(fresh);
  return context_;
}

}  // namespace vortex::cuda
