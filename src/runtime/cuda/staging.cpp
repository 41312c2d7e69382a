#include "runtime/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace vortex::cuda {

Staging::~Staging() {
  if (stream_->context->isLost())
    return;
  const Enter enter(*stream_->context);
  for (Chunk& chunk : chunks_) {
    pool_.giveBack(std::move(chunk.memory), !chunk.busy || waitUntilIdle(*stream_));
    if (chunk.done && !stream_->context->isLost())
      stream_->context->giveEvent(chunk.done);
  }
}

Result<void> Staging::prepare(Chunk& chunk) {
  if (chunk.memory)
    return finish(chunk);
  Result<std::unique_ptr<PinnedMemory>> memory = pool_.take(stream_->context, kChunkBytes);
  if (!memory)
    return memory.takeError();
  if (!chunk.done) {
    Result<EventHandle> event = stream_->context->takeEvent();
    if (!event)
      return event.takeError();
    chunk.done = *event;
  }
  chunk.memory = *std::move(memory);
  return {};
}

Result<void> Staging::finish(Chunk& chunk) {
  if (!chunk.busy)
    return {};
  Result<void> done = stream_->context->check("a copy failed", stream_->context->api().eventSynchronize(chunk.done));
  chunk.busy = !done;
  return done;
}

Result<void> Staging::mark(Chunk& chunk) {
  Result<void> recorded = stream_->context->check("cannot record an event",
                                                  stream_->context->api().eventRecord(chunk.done, stream_->handle));
  if (!recorded && !waitUntilIdle(*stream_))
    PinnedMemory::abandon(std::move(chunk.memory));
  chunk.busy = recorded.ok();
  return recorded;
}

Result<void> Staging::write(DevicePointer target, const void* from, uint64_t bytes) {
  Context& context = *stream_->context;
  if (bytes <= kShortBytes)
    return context.check("a copy to the device failed",
                         context.api().copyToDevice(target, from, bytes, stream_->handle));
  const auto* source = static_cast<const uint8_t*>(from);
  for (uint64_t at = 0, turn = 0; at < bytes; at += kChunkBytes, ++turn) {
    Chunk& chunk = chunks_[turn % 2];
    if (Result<void> free = prepare(chunk); !free)
      return free;
    const uint64_t length = std::min(kChunkBytes, bytes - at);
    std::memcpy(chunk.memory->host(), source + at, length);
    if (Result<void> begun =
            context.check("a copy to the device failed",
                          context.api().copyToDevice(target + at, chunk.memory->host(), length, stream_->handle));
        !begun)
      return begun;
    if (Result<void> marked = mark(chunk); !marked)
      return marked;
  }
  return {};
}

Result<void> Staging::read(void* into, DevicePointer source, uint64_t bytes) {
  Context& context = *stream_->context;
  if (bytes <= kShortBytes) {
    if (Result<void> begun = context.check("a copy from the device failed",
                                           context.api().copyToHost(into, source, bytes, stream_->handle));
        !begun)
      return begun;
    return context.check("waiting for the device failed", context.api().streamSynchronize(stream_->handle));
  }
  auto* target = static_cast<uint8_t*>(into);
  const uint64_t count = (bytes + kChunkBytes - 1) / kChunkBytes;
  const auto length = [&](uint64_t turn) { return std::min(kChunkBytes, bytes - turn * kChunkBytes); };
  for (uint64_t turn = 0; turn <= count; ++turn) {
    if (turn < count) {
      Chunk& chunk = chunks_[turn % 2];
      if (Result<void> free = prepare(chunk); !free)
        return free;
      if (Result<void> begun = context.check("a copy from the device failed",
                                             context.api().copyToHost(chunk.memory->host(), source + turn * kChunkBytes,
                                                                      length(turn), stream_->handle));
          !begun)
        return begun;
      if (Result<void> marked = mark(chunk); !marked)
        return marked;
    }
    if (turn > 0) {
      Chunk& chunk = chunks_[(turn - 1) % 2];
      if (Result<void> done = finish(chunk); !done)
        return done;
      std::memcpy(target + (turn - 1) * kChunkBytes, chunk.memory->host(), length(turn - 1));
    }
  }
  return {};
}

}  // namespace vortex::cuda
