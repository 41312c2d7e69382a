#include "vortex/runtime.h"

#include "api/runtime_access.h"
#include "artifact/print_text.h"
#include "base/counted.h"
#include "base/file.h"
#include "base/text.h"
#include "runtime/cpu/cpu_driver.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/hal/driver.h"
#include "runtime/hal/launch.h"
#include "runtime/null/null_driver.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace vortex {

using base::concat;

namespace {

/// A result that is a number: one element of some rank in the artifact, a tensor of rank 0 for users.
bool isNumber(const artifact::Kernel& kernel, size_t result) {
  return std::find(kernel.scalarResults.begin(), kernel.scalarResults.end(), result) != kernel.scalarResults.end();
}

/// Memory that a caller gives for a result.
Result<hal::Tensor> storageOf(const artifact::Kernel& kernel, size_t result, const Tensor& given) {
  Result<hal::Tensor> storage = RuntimeAccess::toHal(given);
  if (storage && storage->extents.empty() && isNumber(kernel, result))
    storage->extents = storage->strides = std::vector<int64_t>(kernel.results[result].rank, 1);
  return storage;
}

std::vector<ParamInfo> describe(const std::vector<artifact::Param>& params) {
  std::vector<ParamInfo> infos;
  for (const artifact::Param& param : params)
    infos.push_back({param.name, fromArtifact(param.type), param.isTensor, param.rank,
                     param.access != artifact::Access::Read, param.structBytes, param.fieldOffset});
  return infos;
}

/// Bytes of a contiguous tensor of exactly `bytes` bytes; what read and write move.
Result<void> checkWhole(const char* operation, const Tensor& tensor, uint64_t bytes) {
  if (!tensor.isContiguous())
    return Error{
        concat(operation, ": the tensor is not contiguous, its strides are [", base::join(tensor.strides, ", "), "]")};
  const Result<uint64_t> needed =
      hal::tensorBytes(concat(operation, ": a tensor"), toArtifact(tensor.type), tensor.extents);
  if (!needed)
    return needed.error();
  if (*needed != bytes)
    return Error{concat(operation, ": the tensor has ", *needed, " bytes, the host memory ", bytes)};
  return {};
}

/// The number of "sm_90a"; 0 for anything else.
int smNumber(std::string_view target) {
  return target.starts_with("sm_") ? std::atoi(std::string(target.substr(3)).c_str()) : 0;
}

/// How well code for `built` suits a device that wants `wanted`; 0: not at all. A GPU runs code for older ones too, unless it names features of
/// exactly one (sm_90a), which then suits that one best.
int suitability(std::string_view wanted, std::string_view built) {
  if (wanted == "cpu")
    return built.starts_with("cpu") ? 1 : 0;
  const int device = smNumber(wanted), code = smNumber(built);
  if (device == 0 || code == 0)
    return 0;
  if (built.ends_with('a'))
    return code == device ? 2 * code + 1 : 0;
  return code <= device ? 2 * code : 0;
}

}  // namespace

// Runtime

Runtime::Runtime(const RuntimeOptions& options) : drivers_(std::make_shared<hal::DriverList>()) {
  drivers_->add(cpu::createDriver({.threads = options.threads, .poison = options.poison}));
  if (options.nullDevice)
    drivers_->add(null_device::createDriver());
  drivers_->add(cuda::createDriver());  // last: opening the NVIDIA driver takes time, and only its own names need it
}

std::vector<Device> Runtime::devices(std::vector<Error>* problems) const {
  std::vector<Device> devices;
  for (hal::DeviceRef& device : drivers_->devices(problems))
    devices.push_back(RuntimeAccess::wrap(std::move(device)));
  return devices;
}

Result<Device> Runtime::open(std::string_view name) const {
  if (name.empty())
    name = "cpu";  // always there, and preferred: asking the others would start their libraries
  Result<hal::DeviceRef> device = drivers_->find(name);
  if (!device)
    return device.takeError();
  return RuntimeAccess::wrap(*std::move(device));
}

// Device

const std::string& Device::name() const { return device_->info().name; }
const std::string& Device::product() const { return device_->info().product; }
const std::string& Device::target() const { return device_->info().target; }
const std::string& Device::model() const { return device_->info().model; }
uint64_t Device::memoryBytes() const { return device_->info().memoryBytes; }
uint32_t Device::workers() const { return device_->info().workers; }
Result<uint64_t> Device::availableBytes() const { return device_->availableBytes(); }

Result<Buffer> Device::allocate(uint64_t bytes) const {
  Result<hal::BufferRef> buffer = device_->allocate(bytes);
  if (!buffer)
    return buffer.takeError();
  return RuntimeAccess::wrap(*std::move(buffer));
}

Result<Tensor> Device::empty(DType type, std::vector<int64_t> extents) const {
  const Result<uint64_t> bytes = hal::tensorBytes("a tensor", toArtifact(type), extents);
  if (!bytes)
    return bytes.error();
  Result<Buffer> buffer = allocate(*bytes);
  if (!buffer)
    return buffer.takeError();
  Tensor tensor;
  tensor.buffer = *std::move(buffer);
  tensor.type = type;
  tensor.strides = hal::contiguousStrides(extents);
  tensor.extents = std::move(extents);
  return tensor;
}

Result<Tensor> Device::uploadBytes(DType type, std::vector<int64_t> extents, const void* values, uint64_t bytes) const {
  Result<Tensor> tensor = empty(type, std::move(extents));
  if (!tensor)
    return tensor;
  Result<Stream> stream = createStream();
  if (!stream)
    return stream.takeError();
  if (Result<void> written = stream->write(*tensor, values, bytes); !written)
    return written.takeError();
  if (Result<void> done = stream->synchronize(); !done)  // other streams may use the tensor at once
    return done.takeError();
  return tensor;
}

Result<Tensor> Device::wrapBytes(DType type, std::vector<int64_t> extents, void* memory, uint64_t bytes,
                                 bool readOnly) const {
  const Result<uint64_t> needed = hal::tensorBytes("a tensor", toArtifact(type), extents);
  if (!needed)
    return needed.error();
  if (*needed != bytes)
    return Error{concat("a tensor ", vortex::name(type), "[", base::join(extents, ", "), "] has ", *needed,
                        " bytes, the memory ", bytes)};
  Result<hal::BufferRef> buffer = device_->wrap(memory, bytes, readOnly);
  if (!buffer)
    return buffer.takeError();
  Tensor tensor;
  tensor.buffer = RuntimeAccess::wrap(*std::move(buffer));
  tensor.type = type;
  tensor.strides = hal::contiguousStrides(extents);
  tensor.extents = std::move(extents);
  return tensor;
}

Result<Buffer> Device::wrapDevice(uint64_t address, uint64_t bytes, std::shared_ptr<void> owner, bool readOnly) const {
  Result<hal::BufferRef> buffer = device_->wrapDevice(address, bytes, std::move(owner), readOnly);
  if (!buffer)
    return buffer.takeError();
  return RuntimeAccess::wrap(*std::move(buffer));
}

Result<Stream> Device::wrapStream(uint64_t handle) const {
  Result<hal::StreamRef> stream = device_->wrapStream(handle);
  if (!stream)
    return stream.takeError();
  return RuntimeAccess::wrap(device_, *std::move(stream));
}

Result<Stream> Device::createStream() const {
  Result<hal::StreamRef> stream = device_->createStream();
  if (!stream)
    return stream.takeError();
  return RuntimeAccess::wrap(device_, *std::move(stream));
}

Result<Event> Device::createEvent() const {
  Result<hal::EventRef> event = device_->createEvent();
  if (!event)
    return event.takeError();
  return RuntimeAccess::wrap(*std::move(event));
}

Result<Kernel> RuntimeAccess::load(const Device& device, std::shared_ptr<const artifact::Kernel> kernel,
                                   std::shared_ptr<artifact::EntrySource> entries) {
  Result<hal::KernelRef> loaded = device.device_->load(std::move(kernel), std::move(entries));
  if (!loaded)
    return loaded.takeError();
  return wrap(*std::move(loaded));
}

/// The caller's function as devices take it.
struct CallersEntries : artifact::EntrySource {
  explicit CallersEntries(vortex::EntrySource function) : function(std::move(function)) {}
  Result<std::vector<uint8_t>> make(const std::string& symbol) override { return function(symbol); }
  vortex::EntrySource function;
};

Result<Kernel> Device::load(std::span<const uint8_t> artifact) const { return load(artifact, EntrySource()); }

Result<Kernel> Device::load(std::span<const uint8_t> artifact, EntrySource entries) const {
  Result<artifact::Kernel> kernel = artifact::deserialize({artifact.begin(), artifact.end()});
  if (!kernel)
    return kernel.takeError();
  return RuntimeAccess::load(*this, std::make_shared<const artifact::Kernel>(*std::move(kernel)),
                             entries ? std::make_shared<CallersEntries>(std::move(entries)) : nullptr);
}

Result<Kernel> Device::loadFile(const std::string& path) const {
  const Result<std::string> content = base::readFile(path);
  if (!content)
    return content.error();
  Result<Kernel> kernel = load({reinterpret_cast<const uint8_t*>(content->data()), content->size()});
  if (!kernel)
    return kernel.error().after(concat(path, ": "));
  return kernel;
}

Result<Kernel> Device::load(std::span<const EmbeddedArtifact> artifacts) const {
  const EmbeddedArtifact* best = nullptr;
  int bestRank = 0;
  std::vector<std::string_view> targets;
  for (const EmbeddedArtifact& artifact : artifacts) {
    targets.push_back(artifact.target);
    if (const int rank = suitability(target(), artifact.target); rank > bestRank) {
      best = &artifact;
      bestRank = rank;
    }
  }
  if (best)
    return load(best->bytes);
  if (targets.empty())
    return Error{"there is no artifact to load"};
  return Error{concat("the kernel was built for ", base::join(targets, ", "), "; device '", name(), "' needs ",
                      target().empty() ? "none" : target())};
}

// Kernel

const std::string& Kernel::name() const { return kernel_->artifact().name; }
const std::string& Kernel::target() const { return kernel_->artifact().target; }
std::vector<ParamInfo> Kernel::params() const { return describe(kernel_->artifact().params); }
std::vector<ParamInfo> Kernel::results() const {
  std::vector<ParamInfo> infos = describe(kernel_->artifact().results);
  for (const uint32_t number : kernel_->artifact().scalarResults)
    infos[number].rank = 0;
  return infos;
}

std::vector<std::pair<std::string, int64_t>> Kernel::facts() const {
  std::map<std::string, int64_t> all;
  for (const artifact::Fact& fact : kernel_->artifact().facts) {
    all[fact.key] = fact.value;
    const std::string ofAll = fact.key.substr(0, fact.key.find('.'));
    const auto [known, isNew] = all.emplace(ofAll, fact.value);
    known->second = std::max(known->second, fact.value);
  }
  return {all.begin(), all.end()};
}

std::optional<int64_t> Kernel::fact(std::string_view key) const {
  for (const auto& [known, value] : facts())
    if (known == key)
      return value;
  return std::nullopt;
}

// Event

bool Event::isComplete() const { return event_->isComplete(); }
Result<void> Event::wait() { return event_->wait(); }
Result<int64_t> Event::nanosecondsSince(const Event& start) { return event_->nanosecondsSince(*start.event_); }

/// Arguments and options of a launch as the device takes them.
struct Prepared {
  std::vector<hal::Argument> arguments;
  hal::LaunchOptions options;
};

static Result<Prepared> convert(const Kernel& kernel, std::span<const Argument> arguments,
                                const LaunchOptions& options) {
  const artifact::Kernel& artifact = RuntimeAccess::kernel(kernel)->artifact();
  if (arguments.size() != artifact.params.size())
    return hal::launchError(artifact, concat("it takes ", base::counted(artifact.params.size(), "argument"), ", ",
                                             arguments.size(), " given"));
  Prepared prepared;
  prepared.arguments.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    Result<hal::Argument> argument = RuntimeAccess::toHal(arguments[i], artifact.params[i]);
    if (!argument)
      return hal::launchError(artifact, argument.error());
    prepared.arguments.push_back(*std::move(argument));
  }
  for (const std::optional<Tensor>& result : options.results) {
    const size_t number = prepared.options.results.size();
    if (result && number < artifact.results.size() && isNumber(artifact, number) && result->rank() != 0)
      return hal::launchError(artifact,
                              concat("the storage for result '", artifact.results[number].name, "' is a tensor ",
                                     name(result->type), "[", base::join(result->extents, ", "), "], needed is ",
                                     name(result->type), "[]"));
    std::optional<hal::Tensor>& storage = prepared.options.results.emplace_back();
    if (!result)
      continue;
    Result<hal::Tensor> given = storageOf(artifact, number, *result);
    if (!given)
      return hal::launchError(artifact, given.takeError().after("the storage for a result is "));
    storage = *std::move(given);
  }
  if (options.allocate)
    prepared.options.allocate = [&artifact,
                                 make = options.allocate](size_t number, artifact::ScalarType type,
                                                          std::span<const int64_t> extents) -> Result<hal::Tensor> {
      Result<Tensor> made =
          make(number, fromArtifact(type), isNumber(artifact, number) ? std::span<const int64_t>() : extents);
      return made ? storageOf(artifact, number, *made) : made.takeError();
    };
  prepared.options.grid = options.grid;
  prepared.options.mayOverlap = options.mayOverlap;
  if (options.print)
    prepared.options.print = [print = options.print](const artifact::Fault& format, std::span<const uint64_t> values) {
      print({format.message, format.file, format.line, values, artifact::printKinds(format)});
    };
  return prepared;
}

static std::vector<Tensor> fromHal(const artifact::Kernel& kernel, const std::vector<hal::Tensor>& results) {
  std::vector<Tensor> tensors;
  tensors.reserve(results.size());
  for (const hal::Tensor& result : results)
    if (Tensor& tensor = tensors.emplace_back(RuntimeAccess::fromHal(result)); isNumber(kernel, tensors.size() - 1))
      tensor.extents = tensor.strides = {};
  return tensors;
}

std::string Print::text() const { return artifact::printText(format, kinds, values); }

// Graph

uint32_t Graph::operations() const { return graph_->operations(); }
uint32_t Graph::launches() const { return graph_->launches(); }

Result<std::vector<Tensor>> Graph::update(uint32_t launch, const Kernel& kernel, std::span<const Argument> arguments,
                                          const LaunchOptions& options) {
  Result<Prepared> prepared = convert(kernel, arguments, options);
  if (!prepared)
    return prepared.takeError();
  Result<hal::Launch> replacement =
      hal::prepare(*device_, RuntimeAccess::kernel(kernel), prepared->arguments, std::move(prepared->options));
  if (!replacement)
    return replacement.takeError();
  if (Result<void> updated = graph_->update(launch, *replacement); !updated)
    return updated.takeError();
  return fromHal(RuntimeAccess::kernel(kernel)->artifact(), replacement->results);
}

// Stream

Result<void> Stream::beginRecording() { return stream_->beginRecording(); }

Result<Graph> Stream::endRecording() {
  Result<hal::GraphRef> graph = stream_->endRecording();
  if (!graph)
    return graph.takeError();
  return RuntimeAccess::wrap(device_, *std::move(graph));
}

Result<void> Stream::replay(const Graph& graph) { return stream_->replay(RuntimeAccess::graph(graph)); }

Result<std::vector<Tensor>> Stream::launch(const Kernel& kernel, std::span<const Argument> arguments,
                                           const LaunchOptions& options) {
  Result<Prepared> prepared = convert(kernel, arguments, options);
  if (!prepared)
    return prepared.takeError();
  Result<std::vector<hal::Tensor>> results =
      hal::launch(*device_, *stream_, RuntimeAccess::kernel(kernel), prepared->arguments, std::move(prepared->options));
  if (!results)
    return results.takeError();
  return fromHal(RuntimeAccess::kernel(kernel)->artifact(), *results);
}

Result<PreparedLaunch> Stream::prepare(const Kernel& kernel, std::span<const Argument> arguments,
                                       const LaunchOptions& options) const {
  Result<Prepared> prepared = convert(kernel, arguments, options);
  if (!prepared)
    return prepared.takeError();
  Result<hal::Launch> launch =
      hal::prepare(*device_, RuntimeAccess::kernel(kernel), prepared->arguments, std::move(prepared->options));
  if (!launch)
    return launch.takeError();
  return RuntimeAccess::wrap(std::make_shared<const hal::Launch>(*std::move(launch)));
}

Result<void> Stream::submit(const PreparedLaunch& launch) {
  const hal::Launch& work = RuntimeAccess::launch(launch);
  if (work.kernel->device() != device_.get())
    return Error{concat("kernel '", work.kernel->artifact().name, "' was prepared for another device than '",
                        device_->info().name, "'")};
  return stream_->submit(work);
}

std::vector<Tensor> PreparedLaunch::results() const { return fromHal(launch_->kernel->artifact(), launch_->results); }

Result<void> Stream::write(const Tensor& target, const void* from, uint64_t bytes) {
  if (Result<void> whole = checkWhole("write", target, bytes); !whole)
    return whole;
  return stream_->write(RuntimeAccess::buffer(target.buffer), target.byteOffset, from, bytes);
}

Result<void> Stream::read(const Tensor& source, void* into, uint64_t bytes) {
  if (Result<void> whole = checkWhole("read", source, bytes); !whole)
    return whole;
  return stream_->read(into, RuntimeAccess::buffer(source.buffer), source.byteOffset, bytes);
}

Result<size_t> Stream::elementsOf(const Tensor& source, DType expected) {
  if (source.type != expected)
    return Error{concat("the tensor's elements are ", vortex::name(source.type), ", not ", vortex::name(expected))};
  const Result<uint64_t> bytes = hal::tensorBytes("read: a tensor", toArtifact(source.type), source.extents);
  if (!bytes)
    return bytes.error();
  if (Result<void> whole = checkWhole("read", source, *bytes); !whole)
    return whole.takeError();
  const hal::BufferRef& buffer = RuntimeAccess::buffer(source.buffer);
  if (!buffer)
    return Error{"read: the tensor has no buffer"};
  if (Result<void> inside = hal::checkRange("read", *buffer, source.byteOffset, *bytes, false); !inside)
    return inside.takeError();
  return static_cast<size_t>(*bytes / byteSize(source.type));
}

Result<void> Stream::fill(const Buffer& target, uint64_t offset, uint64_t bytes, uint8_t value) {
  return stream_->fill(RuntimeAccess::buffer(target), offset, bytes, value);
}

Result<void> Stream::copy(const Buffer& target, uint64_t targetOffset, const Buffer& source, uint64_t sourceOffset,
                          uint64_t bytes) {
  return stream_->copy(RuntimeAccess::buffer(target), targetOffset, RuntimeAccess::buffer(source), sourceOffset, bytes);
}

Result<void> Stream::record(const Event& event) { return stream_->record(RuntimeAccess::event(event)); }
Result<void> Stream::wait(const Event& event) { return stream_->wait(RuntimeAccess::event(event)); }
Result<void> Stream::synchronize() { return stream_->synchronize(); }

std::optional<Fault> Stream::lastFault() const {
  std::optional<hal::RunFault> fault = stream_->lastFault();
  if (!fault)
    return std::nullopt;
  return Fault{fault->kernel,     fault->fault.id,   fault->fault.message,
               fault->fault.file, fault->fault.line, fault->fault.column};
}

}  // namespace vortex
