// The C interface over the C++ one: handles own a C++ handle each.
#include "vortex/runtime.h"
#include "vortex/vortex.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

// The enumerations are one.
static_assert(static_cast<int>(vortex::DType::F64) == VORTEX_F64 && static_cast<int>(vortex::DType::I8) == VORTEX_I8 &&
              static_cast<int>(vortex::DType::F16) == VORTEX_F16);
static_assert(static_cast<int>(vortex::ErrorKind::Fault) == VORTEX_FAULT &&
              static_cast<int>(vortex::ErrorKind::OutOfMemory) == VORTEX_OUT_OF_MEMORY);

struct vortex_runtime {
  vortex::Runtime value;
};
struct vortex_device {
  vortex::Device value;
};
struct vortex_kernel {
  vortex::Kernel value;
};
struct vortex_stream {
  vortex::Stream value;
};
struct vortex_tensor {
  vortex::Tensor value;
};
struct vortex_graph {
  vortex::Graph value;
};

namespace {

vortex::Error& lastError() {
  thread_local vortex::Error error;
  return error;
}

int failed(const vortex::Error& error) {
  lastError() = error;
  return -1;
}
int status(const vortex::Result<void>& result) { return result ? 0 : failed(result.error()); }

template <typename Handle, typename T> Handle* handle(vortex::Result<T> result) {
  if (result)
    return new Handle{std::move(result).value()};
  failed(result.error());
  return nullptr;
}

/// C callers can pass any number. Error: begins with `what`.
vortex::Result<vortex::DType> toDType(const char* what, const vortex_dtype& type) {
  std::underlying_type_t<vortex_dtype> number;
  std::memcpy(&number, &type, sizeof number);
  if (number < VORTEX_BOOL || number > VORTEX_F64)
    return vortex::Error{what + std::to_string(number)};
  return static_cast<vortex::DType>(number);
}

/// A number is extended to 64 bits: 200 is no i8.
bool isExtended(vortex::DType type, uint64_t bits) {
  const uint32_t above = 64 - 8 * vortex::byteSize(type);
  const bool isSigned = type >= vortex::DType::I8 && type <= vortex::DType::I64;
  return !isSigned || static_cast<int64_t>(bits << above) >> above == static_cast<int64_t>(bits);
}

vortex::Result<std::vector<vortex::Argument>> toArguments(const vortex_argument* arguments, size_t count) {
  std::vector<vortex::Argument> converted;
  converted.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (arguments[i].tensor) {
      converted.emplace_back(arguments[i].tensor->value);
      continue;
    }
    const vortex::Result<vortex::DType> type = toDType("an argument of an unknown type: ", arguments[i].type);
    if (!type)
      return type.error();
    if (!isExtended(*type, arguments[i].bits))
      return vortex::Error{"an argument's bits are no " + std::string(vortex::name(*type)) +
                           " extended to 64 bits: " + std::to_string(arguments[i].bits)};
    converted.emplace_back(*type, arguments[i].bits);
  }
  return converted;
}

/// Stores the first `capacity` results; their number.
int tensors(vortex::Result<std::vector<vortex::Tensor>> launched, vortex_tensor** results, size_t capacity) {
  if (!launched)
    return failed(launched.error());
  for (size_t i = 0; i < std::min(capacity, launched->size()); ++i)
    results[i] = new vortex_tensor{std::move((*launched)[i])};
  return static_cast<int>(launched->size());
}

}  // namespace

const char* vortex_last_error() { return lastError().message.c_str(); }
vortex_error_kind vortex_last_error_kind() { return static_cast<vortex_error_kind>(lastError().kind); }

vortex_runtime* vortex_runtime_create() { return new vortex_runtime; }
void vortex_runtime_destroy(vortex_runtime* runtime) { delete runtime; }

vortex_device* vortex_device_open(vortex_runtime* runtime, const char* name) {
  return handle<vortex_device>(runtime->value.open(name ? name : ""));
}
const char* vortex_device_name(const vortex_device* device) { return device->value.name().c_str(); }
const char* vortex_device_product(const vortex_device* device) { return device->value.product().c_str(); }
uint64_t vortex_device_memory_bytes(const vortex_device* device) { return device->value.memoryBytes(); }
void vortex_device_destroy(vortex_device* device) { delete device; }

vortex_kernel* vortex_kernel_load(vortex_device* device, const void* artifact, size_t bytes) {
  return handle<vortex_kernel>(device->value.load({static_cast<const uint8_t*>(artifact), bytes}));
}
vortex_kernel* vortex_kernel_load_file(vortex_device* device, const char* path) {
  return handle<vortex_kernel>(device->value.loadFile(path));
}
const char* vortex_kernel_name(const vortex_kernel* kernel) { return kernel->value.name().c_str(); }
void vortex_kernel_destroy(vortex_kernel* kernel) { delete kernel; }

vortex_tensor* vortex_tensor_create(vortex_device* device, vortex_dtype type, const int64_t* extents, size_t rank) {
  const vortex::Result<vortex::DType> element = toDType("a tensor of an unknown element type: ", type);
  if (!element) {
    failed(element.error());
    return nullptr;
  }
  return handle<vortex_tensor>(device->value.empty(*element, std::vector<int64_t>(extents, extents + rank)));
}
vortex_dtype vortex_tensor_type(const vortex_tensor* tensor) { return static_cast<vortex_dtype>(tensor->value.type); }
size_t vortex_tensor_rank(const vortex_tensor* tensor) { return tensor->value.extents.size(); }
int64_t vortex_tensor_extent(const vortex_tensor* tensor, size_t dim) {
  return dim < tensor->value.extents.size() ? tensor->value.extents[dim] : -1;
}
size_t vortex_tensor_bytes(const vortex_tensor* tensor) {
  return static_cast<size_t>(tensor->value.elements()) * vortex::byteSize(tensor->value.type);
}
void vortex_tensor_destroy(vortex_tensor* tensor) { delete tensor; }

vortex_stream* vortex_stream_create(vortex_device* device) {
  return handle<vortex_stream>(device->value.createStream());
}
int vortex_stream_write(vortex_stream* stream, const vortex_tensor* target, const void* from, size_t bytes) {
  return status(stream->value.write(target->value, from, bytes));
}
int vortex_stream_read(vortex_stream* stream, const vortex_tensor* source, void* into, size_t bytes) {
  return status(stream->value.read(source->value, into, bytes));
}
int vortex_stream_launch(vortex_stream* stream, const vortex_kernel* kernel, const vortex_argument* arguments,
                         size_t count, vortex_tensor** results, size_t capacity) {
  const vortex::Result<std::vector<vortex::Argument>> converted = toArguments(arguments, count);
  if (!converted)
    return failed(converted.error());
  return tensors(stream->value.launch(kernel->value, *converted), results, capacity);
}
int vortex_stream_begin_recording(vortex_stream* stream) { return status(stream->value.beginRecording()); }
vortex_graph* vortex_stream_end_recording(vortex_stream* stream) {
  return handle<vortex_graph>(stream->value.endRecording());
}
int vortex_stream_replay(vortex_stream* stream, const vortex_graph* graph) {
  return status(stream->value.replay(graph->value));
}
int vortex_graph_update(vortex_graph* graph, size_t launch, const vortex_kernel* kernel,
                        const vortex_argument* arguments, size_t count, vortex_tensor** results, size_t capacity) {
  if (launch > UINT32_MAX)
    return failed({"the graph has no launch " + std::to_string(launch)});
  const vortex::Result<std::vector<vortex::Argument>> converted = toArguments(arguments, count);
  if (!converted)
    return failed(converted.error());
  return tensors(graph->value.update(static_cast<uint32_t>(launch), kernel->value, *converted), results, capacity);
}
void vortex_graph_destroy(vortex_graph* graph) { delete graph; }
int vortex_stream_synchronize(vortex_stream* stream) { return status(stream->value.synchronize()); }
void vortex_stream_destroy(vortex_stream* stream) { delete stream; }
