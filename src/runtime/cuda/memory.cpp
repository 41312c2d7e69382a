#include "runtime/cuda/memory.h"

#include "base/text.h"

#include <algorithm>
#include <cstdlib>

namespace vortex::cuda {

using base::concat;

StreamCore::~StreamCore() {
  if (context->isLost())
    return;
  const Enter enter(*context);
  if (end_)
    context->giveEvent(end_);
  if (!isBorrowed)
    context->api().streamDestroy(handle);  // what is pending still runs
}

Result<void> StreamCore::holdUp(StreamHandle other) {
  const std::lock_guard lock(mutex_);
  const char* what = "cannot order two streams";
  if (isGivenBack_)
    return end_ ? context->check(what, context->api().streamWait(other, end_, 0)) : Result<void>();
  Result<EventHandle> event = context->takeEvent();
  if (!event)
    return event.takeError();
  Result<void> done = context->check(what, context->api().eventRecord(*event, handle));
  if (done)
    done = context->check(what, context->api().streamWait(other, *event, 0));
  context->giveEvent(*event);
  return done;
}

bool StreamCore::freeBehind(DevicePointer pointer) {
  const std::lock_guard lock(mutex_);
  return !isGivenBack_ && context->api().freeAsync(pointer, handle) == kSuccess;
}

void StreamCore::giveBack() {
  const std::lock_guard lock(mutex_);
  isGivenBack_ = true;
  Result<EventHandle> event = context->takeEvent();
  if (!event)
    return;
  if (context->check("", context->api().eventRecord(*event, handle)))
    end_ = *event;
  else
    context->giveEvent(*event);
}

bool waitUntilIdle(const StreamCore& stream) {
  Context& context = *stream.context;
  return !context.isLost() && context.check("", context.api().streamSynchronize(stream.handle));
}

void CudaBuffer::addUser(const StreamCoreRef& stream) {
  const std::lock_guard lock(mutex_);
  if (std::find(users_.begin(), users_.end(), stream) == users_.end())
    users_.push_back(stream);
  lastUser_.store(stream.get(), std::memory_order_relaxed);
}

CudaBuffer::~CudaBuffer() {
  if (!accounting_) {
    if (!context_->isLost())
      waitForUsers();
    return;
  }
  if (!context_->isLost())
    free();
  accounting_->liveBytes.fetch_sub(bytes(), std::memory_order_relaxed);
}

// What fails here was lost with the context, or leaks: there is nobody to tell.
void CudaBuffer::free() {
  const Api& api = context_->api();
  const Enter enter(*context_);
  if (!context_->pool()) {
    api.free(address());  // waits for the device
    return;
  }
  if (users_.size() == 1 && users_.front()->freeBehind(address()))
    return;
  for (const StreamCoreRef& user : users_)
    if (!user->holdUp(context_->freeStream()))
      return;
  api.freeAsync(address(), context_->freeStream());
}

void CudaBuffer::waitForUsers() {
  const Enter enter(*context_);
  for (const StreamCoreRef& user : users_)
    if (!user->isBorrowed)
      waitUntilIdle(*user);
}

namespace {

Code allocateOnce(const Context& context, DevicePointer& pointer, uint64_t bytes, const StreamCore* stream) {
  const Api& api = context.api();
  if (!context.pool())
    return api.allocate(&pointer, bytes);
  if (stream)
    return api.allocateFromPool(&pointer, bytes, context.pool(), stream->handle);
  if (const Code code = api.allocateFromPool(&pointer, bytes, context.pool(), context.allocationStream());
      code != kSuccess)
    return code;
  // Other streams may use it at once.
  const Code ready = api.streamSynchronize(context.allocationStream());
  if (ready != kSuccess)
    api.freeAsync(pointer, context.allocationStream());
  return ready;
}

Error outOfMemory(const Gpu& gpu, uint64_t bytes, uint64_t available) {
  return {concat("out of memory on 'cuda:", gpu.index(), "' (", gpu.facts().product, "): ", bytes, " bytes requested, ",
                 available, " available of ", gpu.facts().memoryBytes),
          ErrorKind::OutOfMemory};
}

/// Takes the bytes from the limit; false if they do not fit.
bool reserve(Accounting& accounting, uint64_t bytes) {
  uint64_t live = accounting.liveBytes.load(std::memory_order_relaxed);
  do {
    if (live > accounting.limitBytes || bytes > accounting.limitBytes - live)
      return false;
  } while (!accounting.liveBytes.compare_exchange_weak(live, live + bytes, std::memory_order_relaxed));
  return true;
}

}  // namespace

Result<hal::BufferRef> allocate(const hal::Device* device, Gpu& gpu, const std::shared_ptr<Accounting>& accounting,
                                uint64_t bytes, const StreamCoreRef& stream) {
  Result<ContextRef> context = gpu.context();
  if (!context)
    return context.takeError();
  if (stream && stream->context != *context)
    return allocate(device, gpu, accounting, bytes);
  const auto fail = [&] {
    return outOfMemory(gpu, bytes, availableBytes(gpu, *accounting).ok() ? *availableBytes(gpu, *accounting) : 0);
  };
  if (!reserve(*accounting, bytes))
    return fail();
  const Enter enter(**context);
  const Api& api = gpu.api();
  const BesideCaptures beside(api);
  DevicePointer pointer = 0;
  const uint64_t storageBytes = std::max<uint64_t>(bytes, 1);  // an address of its own even for nothing
  Code code = allocateOnce(**context, pointer, storageBytes, stream.get());
  if (code == kOutOfMemory) {
    code = api.contextSynchronize();  // pending frees
    if (code == kSuccess && (*context)->pool())
      code = api.poolTrim((*context)->pool(), 0);
    if (code == kSuccess)
      code = allocateOnce(**context, pointer, storageBytes, stream.get());
  }
  if (code == kSuccess) {
    auto buffer = std::make_shared<CudaBuffer>(device, *context, pointer, bytes, accounting);
    if (stream)
      buffer->usedBy(stream);
    return hal::BufferRef(std::move(buffer));
  }
  accounting->liveBytes.fetch_sub(bytes, std::memory_order_relaxed);
  if (code == kOutOfMemory)
    return fail();
  return (*context)->check("allocation failed", code).takeError();
}

Result<hal::BufferRef> wrapDevice(const hal::Device* device, Gpu& gpu, DevicePointer address, uint64_t bytes,
                                  std::shared_ptr<void> owner, bool readOnly) {
  Result<ContextRef> context = gpu.context();
  if (!context)
    return context.takeError();
  const Enter enter(**context);
  // Both ends are asked about: an allocation may consist of several mappings, each with a range of its own.
  const auto check = [&](DevicePointer byte) -> Result<void> {
    unsigned type = 0;
    int ordinal = -1;
    const bool known = gpu.api().pointerAttribute(&type, kPointerMemoryType, byte) == kSuccess &&
                       gpu.api().pointerAttribute(&ordinal, kPointerDevice, byte) == kSuccess;
    if (!known || type != kMemoryOfDevice)
      return Error{concat("the ", bytes, " bytes at ", address, " are not memory of 'cuda:", gpu.index(), "'")};
    if (ordinal != gpu.index())
      return Error{concat("the ", bytes, " bytes at ", address, " are memory of 'cuda:", ordinal,
                          "', not of 'cuda:", gpu.index(), "'")};
    return {};
  };
  if (bytes > 0)
    for (const DevicePointer byte : {address, address + bytes - 1})
      if (Result<void> known = check(byte); !known)
        return known.takeError();
  return hal::BufferRef(
      std::make_shared<CudaBuffer>(device, *std::move(context), address, bytes, std::move(owner), readOnly));
}

Result<uint64_t> availableBytes(Gpu& gpu, const Accounting& accounting) {
  Result<ContextRef> context = gpu.context();
  if (!context)
    return context.takeError();
  const Enter enter(**context);
  size_t free = 0, total = 0;
  if (Result<void> known = (*context)->check("cannot read the free memory", gpu.api().memoryInfo(&free, &total));
      !known)
    return known.takeError();
  const uint64_t live = accounting.liveBytes.load(std::memory_order_relaxed);
  const uint64_t allowed = accounting.limitBytes > live ? accounting.limitBytes - live : 0;
  return std::min<uint64_t>(free, allowed);
}

Result<std::unique_ptr<PinnedMemory>> PinnedMemory::create(ContextRef context, uint64_t bytes) {
  constexpr uint64_t kPageBytes = 4096;
  const uint64_t storageBytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* host = std::aligned_alloc(kPageBytes, storageBytes);
  if (!host)
    return Error{concat("cannot get ", bytes, " bytes of host memory")};
  const Enter enter(*context);
  const Api& api = context->api();
  const BesideCaptures beside(api);
  Result<void> done =
      context->check("cannot lock host memory", api.hostRegister(host, storageBytes, kHostPortable | kHostMapped));
  if (!done) {
    std::free(host);
    return done.takeError();
  }
  DevicePointer device = 0;
  done = context->check("cannot map host memory", api.hostDevicePointer(&device, host, 0));
  std::unique_ptr<PinnedMemory> memory(new PinnedMemory(std::move(context), host, device, bytes));
  if (!done)
    return done.takeError();
  return memory;
}

PinnedMemory::~PinnedMemory() {
  if (isAbandoned_ || context_->isLost()) {
    context_->freeAtEnd(host_);
    return;
  }
  const Enter enter(*context_);
  context_->api().hostUnregister(host_);
  std::free(host_);
}

void PinnedMemory::abandon(std::unique_ptr<PinnedMemory> memory) { memory->isAbandoned_ = true; }

Result<std::unique_ptr<PinnedMemory>> PinnedPool::take(const ContextRef& context, uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(kept_, [](const auto& memory) { return memory->context()->isLost(); });
    for (auto& memory : kept_)
      if (memory->bytes() == bytes && memory->context() == context) {
        std::swap(memory, kept_.back());
        std::unique_ptr<PinnedMemory> taken = std::move(kept_.back());
        kept_.pop_back();
        return taken;
      }
  }
  return PinnedMemory::create(context, bytes);
}

void PinnedPool::give(std::unique_ptr<PinnedMemory> memory) {
  constexpr size_t kKept = 64;
  const std::lock_guard lock(mutex_);
  if (!memory->context()->isLost() && kept_.size() < kKept)
    kept_.push_back(std::move(memory));
}

void PinnedPool::giveBack(std::unique_ptr<PinnedMemory> memory, bool isIdle) {
  if (memory)
    isIdle ? give(std::move(memory)) : PinnedMemory::abandon(std::move(memory));
}

}  // namespace vortex::cuda
