// The Chrome trace format: a JSON object whose "traceEvents" are complete events ("ph": "X") with times in microseconds.
#include "metal/states.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace vortex::metal {

State<MTL::CaptureManager>& captures() { return MTL::CaptureManager::sharedCaptureManager()->state(); }

bool State<MTL::CaptureManager>::isCaptured(const State<MTL::CommandQueue>& from) const {
  const std::scoped_lock lock(mutex);
  return isCapturing && from.device == device && (!queue || queue == &from);
}

void State<MTL::CaptureManager>::add(TracedDispatch dispatch) {
  const std::scoped_lock lock(mutex);
  if (isCapturing)
    dispatches.push_back(std::move(dispatch));
}

static std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

static std::string triple(const std::array<int64_t, 3>& numbers) {
  return concat("[", numbers[0], ", ", numbers[1], ", ", numbers[2], "]");
}

/// One event. Empty: its times are not known.
static std::string eventOf(TracedDispatch& dispatch, Event& origin, const DeviceState& device) {
  const Result<int64_t> start = dispatch.begin.nanosecondsSince(origin);
  const Result<int64_t> time = dispatch.end.nanosecondsSince(dispatch.begin);
  if (!start || !time)
    return "";
  std::array<int64_t, 3> groups{};
  for (size_t axis = 0; axis < 3; ++axis)
    groups[axis] = (dispatch.grid[axis] + dispatch.block[axis] - 1) / dispatch.block[axis];
  const Kernel& kernel = *dispatch.variant->kernel;
  std::string facts;
  for (const char* fact : {"occupancy_percent", "registers", "spill_bytes"})
    if (const std::optional<int64_t> value = kernel.fact(fact))
      facts += concat(", ", quoted(fact), ": ", *value);
  return concat("{\"name\": ", quoted(dispatch.kernel), ", \"cat\": \"dispatch\", \"ph\": \"X\", \"pid\": 1, \"tid\": ",
                reinterpret_cast<uintptr_t>(dispatch.queue) % 1000000, ", \"ts\": ", static_cast<double>(*start) * 1e-3,
                ", \"dur\": ", static_cast<double>(*time) * 1e-3,
                ", \"args\": {\"device\": ", quoted(device.device.name()), ", \"target\": ", quoted(kernel.target()),
                ", \"queue\": ", quoted(dispatch.queueLabel), ", \"threadgroups\": ", triple(groups),
                ", \"threads_per_threadgroup\": ", triple(dispatch.block), ", \"threads\": ", triple(dispatch.grid),
                facts, "}}");
}

namespace MTL {

CaptureDescriptor* CaptureDescriptor::alloc() {
  return new CaptureDescriptor(std::make_shared<State<CaptureDescriptor>>());
}
void CaptureDescriptor::setCaptureObject(NS::Object* object) { state().object = object; }
void CaptureDescriptor::setDestination(CaptureDestination destination) { state().destination = destination; }
void CaptureDescriptor::setOutputURL(const NS::URL* url) {
  state().path = url ? url->fileSystemRepresentation() : "";
  if (!state().path.empty() && !state().path.ends_with(".json"))
    state().path += ".json";
}

CaptureManager* CaptureManager::sharedCaptureManager() {
  static auto* manager = new CaptureManager(std::make_shared<State<CaptureManager>>());
  return manager;
}

bool CaptureManager::supportsDestination(CaptureDestination destination) const {
  const char* enabled = std::getenv("MTL_CAPTURE_ENABLED");
  return destination == CaptureDestinationGPUTraceDocument && enabled && std::strcmp(enabled, "1") == 0;
}

bool CaptureManager::startCapture(const CaptureDescriptor* descriptor, NS::Error** error) {
  const auto refuse = [&](const std::string& text) {
    fail(error, "MTL::CaptureManager::startCapture: " + text);
    return false;
  };
  if (!descriptor)
    return refuse("the descriptor is null");
  const State<CaptureDescriptor>& wanted = descriptor->state();
  if (!supportsDestination(wanted.destination))
    return refuse(wanted.destination == CaptureDestinationGPUTraceDocument
                      ? "captures need MTL_CAPTURE_ENABLED=1 in the environment"
                      : "the destination is not supported; CaptureDestinationGPUTraceDocument is");
  const auto* queue = dynamic_cast<CommandQueue*>(wanted.object);
  const auto* device = queue ? queue->device() : dynamic_cast<Device*>(wanted.object);
  if (!device)
    return refuse("the object is neither a device nor a command queue");
  if (wanted.path.empty())
    return refuse("the output URL is not set");
  if (!std::ofstream(wanted.path))
    return refuse(concat("cannot write `", wanted.path, "`: ", std::strerror(errno)));
  const std::scoped_lock deviceLock(device->state().mutex);
  Result<Event> origin = device->state().device.createEvent();
  if (!origin)
    return refuse(origin.error().message);
  if (const Result<void> recorded = device->state().stream.record(*origin); !recorded)
    return refuse(recorded.error().message);
  const std::scoped_lock lock(state().mutex);
  if (state().isCapturing)
    return refuse("a capture is running");
  state().isCapturing = true;
  state().device = &device->state();
  state().queue = queue ? &queue->state() : nullptr;
  state().path = wanted.path;
  state().origin = *origin;
  state().dispatches.clear();
  return true;
}

void CaptureManager::stopCapture() {
  const std::scoped_lock lock(state().mutex);
  if (!state().isCapturing)
    return;
  state().isCapturing = false;
  std::ofstream file(state().path);
  file << "{\"traceEvents\": [\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": "
       << quoted(state().device->device.product()) << "}}";
  for (TracedDispatch& dispatch : state().dispatches)
    if (const std::string event = eventOf(dispatch, *state().origin, *state().device); !event.empty())
      file << ",\n" << event;
  file << "\n]}\n";
  state().dispatches.clear();
  state().origin.reset();
}

bool CaptureManager::isCapturing() const {
  const std::scoped_lock lock(state().mutex);
  return state().isCapturing;
}

}  // namespace MTL
}  // namespace vortex::metal
