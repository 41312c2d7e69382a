#include "runtime/hal/host_stream.h"

#include "base/text.h"

#include <chrono>
#include <cstring>

namespace vortex::hal {

using base::concat;

void HostEvent::record() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  recordedNs_.store(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(), std::memory_order_release);
}

Result<int64_t> HostEvent::nanosecondsSince(Event& start) {
  const auto* earlier = dynamic_cast<const HostEvent*>(&start);
  if (!earlier || earlier->device_ != device_)
    return Error{"cannot measure between events of different devices"};
  const int64_t from = earlier->recordedNs_.load(std::memory_order_acquire),
                to = recordedNs_.load(std::memory_order_acquire);
  if (from < 0 || to < 0)
    return Error{concat("cannot measure: the ", from < 0 ? "start" : "end", " event was never recorded")};
  return to - from;
}

Result<void> HostStream::checkOwner(const char* operation, const BufferRef& buffer) const {
  if (!buffer)
    return Error{concat(operation, ": no buffer given")};
  if (buffer->device() != device_)
    return Error{concat(operation, ": the buffer belongs to another device than the stream")};
  return {};
}

void HostStream::forEachChunk(uint64_t bytes, const ByteRange& work) { work(0, bytes); }

void HostStream::copyBytes(void* target, const void* source, uint64_t bytes) {
  if (bytes == 0)
    return;
  auto* to = static_cast<uint8_t*>(target);
  const auto* from = static_cast<const uint8_t*>(source);
  const auto low = reinterpret_cast<uintptr_t>(to), high = reinterpret_cast<uintptr_t>(from);
  if (low < high + bytes && high < low + bytes)
    std::memmove(to, from, bytes);
  else
    forEachChunk(bytes, [&](uint64_t begin, uint64_t end) { std::memcpy(to + begin, from + begin, end - begin); });
}

Result<void> HostStream::fill(const BufferRef& target, uint64_t offset, uint64_t bytes, uint8_t value) {
  if (Result<void> owned = checkOwner("fill", target); !owned)
    return owned;
  if (Result<void> inside = checkRange("fill", *target, offset, bytes, true); !inside)
    return inside;
  return take(RecordedFill{target, offset, bytes, value});
}

Result<void> HostStream::copy(const BufferRef& target, uint64_t targetOffset, const BufferRef& source,
                              uint64_t sourceOffset, uint64_t bytes) {
  for (const BufferRef& buffer : {target, source})
    if (Result<void> owned = checkOwner("copy", buffer); !owned)
      return owned;
  if (Result<void> inside = checkRange("copy: writing", *target, targetOffset, bytes, true); !inside)
    return inside;
  if (Result<void> inside = checkRange("copy: reading", *source, sourceOffset, bytes); !inside)
    return inside;
  return take(RecordedCopy{target, targetOffset, source, sourceOffset, bytes});
}

Result<void> HostStream::write(const BufferRef& target, uint64_t offset, const void* from, uint64_t bytes) {
  if (Result<void> owned = checkOwner("write", target); !owned)
    return owned;
  if (Result<void> inside = checkRange("write", *target, offset, bytes, true); !inside)
    return inside;
  const std::lock_guard lock(mutex_);
  if (recording_) {
    const auto* first = static_cast<const uint8_t*>(from);
    recording_->add(RecordedWrite{target, offset, {first, first + bytes}});
  } else if (!pending_) {
    copyBytes(static_cast<uint8_t*>(target->host()) + offset, from, bytes);
  }
  return {};
}

Result<void> HostStream::read(void* into, const BufferRef& source, uint64_t offset, uint64_t bytes) {
  Result<bool> isThere = readUnlessFaulted(into, source, offset, bytes);
  if (!isThere)
    return isThere.takeError();
  const std::lock_guard lock(mutex_);
  return *isThere ? Result<void>() : reportFault();
}

Result<bool> HostStream::readUnlessFaulted(void* into, const BufferRef& source, uint64_t offset, uint64_t bytes) {
  if (Result<void> owned = checkOwner("read", source); !owned)
    return owned.takeError();
  if (Result<void> inside = checkRange("read", *source, offset, bytes); !inside)
    return inside.takeError();
  const std::lock_guard lock(mutex_);
  if (recording_)
    return recordingError("read");
  if (pending_)
    return false;
  copyBytes(into, static_cast<const uint8_t*>(source->host()) + offset, bytes);
  return true;
}

Result<void> HostStream::submitPhases(const Launch& launch) {
  if (launch.kernel->device() != device_)
    return Error{
        concat("kernel '", launch.kernel->artifact().name, "' was loaded on another device than the stream's")};
  const std::lock_guard lock(mutex_);
  return recording_ ? recording_->add(launch) : run(launch);
}

Result<void> HostStream::run(const Launch& launch) {
  for (const Launch::ZeroFill& zero : launch.zeroFills)
    if (Result<void> filled = perform(RecordedFill{zero.buffer, zero.byteOffset, zero.bytes, 0}); !filled)
      return filled;
  if (pending_)
    return {};
  Result<std::optional<artifact::Fault>> outcome = execute(launch);
  if (!outcome)
    return outcome.takeError();
  if (*outcome)
    pending_ = RunFault{launch.kernel->artifact().name, std::move(**outcome)};
  return {};
}

Result<void> HostStream::take(RecordedOperation operation) {
  const std::lock_guard lock(mutex_);
  if (!recording_)
    return perform(operation);
  recording_->add(std::move(operation));
  return {};
}

Result<void> HostStream::perform(const RecordedOperation& operation) {
  if (pending_)
    return {};
  const auto at = [](const BufferRef& buffer, uint64_t offset) {
    return static_cast<uint8_t*>(buffer->host()) + offset;
  };
  if (const auto* launch = std::get_if<Launch>(&operation))
    return run(*launch);
  if (const auto* fill = std::get_if<RecordedFill>(&operation)) {
    uint8_t* to = at(fill->target, fill->offset);
    if (fill->bytes != 0)
      forEachChunk(fill->bytes,
                   [&](uint64_t begin, uint64_t end) { std::memset(to + begin, fill->value, end - begin); });
  } else if (const auto* copy = std::get_if<RecordedCopy>(&operation)) {
    copyBytes(at(copy->target, copy->targetOffset), at(copy->source, copy->sourceOffset), copy->bytes);
  } else if (const auto* write = std::get_if<RecordedWrite>(&operation)) {
    copyBytes(at(write->target, write->offset), write->content.data(), write->content.size());
  }
  return {};
}

namespace {

/// Belongs to the stream that recorded it.
class HostGraph : public Graph {
public:
  HostGraph(const HostStream* stream, Recording recording)
      : stream_(stream), recording_(std::make_shared<const Recording>(std::move(recording))) {}
  uint32_t operations() const override { return static_cast<uint32_t>(recording()->operations().size()); }
  uint32_t launches() const override { return recording()->launches(); }
  Result<void> update(uint32_t launch, const Launch& replacement) override {
    const std::lock_guard lock(mutex_);
    auto changed = std::make_shared<Recording>(*recording_);  // a replay that runs now goes on with the old one
    Result<void> replaced = changed->replace(launch, replacement);
    if (replaced)
      recording_ = std::move(changed);
    return replaced;
  }
  const HostStream* stream() const { return stream_; }
  std::shared_ptr<const Recording> recording() const {
    const std::lock_guard lock(mutex_);
    return recording_;
  }

private:
  const HostStream* stream_;  ///< for comparison only
  mutable std::mutex mutex_;
  std::shared_ptr<const Recording> recording_;
};

}  // namespace

Result<void> HostStream::beginRecording() {
  const std::lock_guard lock(mutex_);
  if (recording_)
    return Error{"the stream is recording already"};
  recording_.emplace();
  return {};
}

Result<GraphRef> HostStream::endRecording() {
  const std::lock_guard lock(mutex_);
  if (!recording_)
    return Error{"the stream does not record"};
  Recording recorded = *std::move(recording_);
  recording_.reset();
  return GraphRef(std::make_shared<HostGraph>(this, std::move(recorded)));
}

Result<void> HostStream::replay(const GraphRef& graph) {
  const auto* own = dynamic_cast<const HostGraph*>(graph.get());
  if (!own || own->stream() != this)
    return Error{"replay: another stream recorded the graph"};
  const std::shared_ptr<const Recording> recording = own->recording();
  const std::lock_guard lock(mutex_);
  if (recording_)
    return recordingError("replay");
  for (const RecordedOperation& operation : recording->operations())
    if (Result<void> done = perform(operation); !done)
      return done;
  return {};
}

Result<void> HostStream::record(const EventRef& event) {
  auto* own = dynamic_cast<HostEvent*>(event.get());
  if (!own || own->device() != device_)
    return Error{"record: the event belongs to another device than the stream"};
  const std::lock_guard lock(mutex_);
  if (recording_)
    return recordingError("record");
  own->record();
  return {};
}

Result<void> HostStream::wait(const EventRef& event) {
  const auto* own = dynamic_cast<const HostEvent*>(event.get());
  if (!own || own->device() != device_)
    return Error{"wait: the event belongs to another device than the stream"};
  const std::lock_guard lock(mutex_);
  if (recording_)
    return recordingError("wait");
  return {};  // whatever was recorded is complete
}

Result<void> HostStream::reportFault() {
  if (!pending_)
    return {};
  reported_ = std::exchange(pending_, std::nullopt);
  return faultError(*reported_);
}

Result<void> HostStream::synchronize() {
  const std::lock_guard lock(mutex_);
  if (recording_)
    return recordingError("synchronize");
  return reportFault();
}

std::optional<RunFault> HostStream::lastFault() const {
  const std::lock_guard lock(mutex_);
  return reported_;
}

}  // namespace vortex::hal
