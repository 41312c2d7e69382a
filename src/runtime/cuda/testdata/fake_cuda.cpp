// A libcuda.so.1 over host memory, for machines without a GPU. Streams are threads, so work that is ordered wrongly shows; freed memory is
// really freed, so that AddressSanitizer sees late accesses. "Kernels" are C functions with the CPU's calling convention, found by the name of
// the entry point in the PTX.
#include "runtime/cuda/testdata/fake_cuda.h"
#include "runtime/cuda/testdata/fake_maps.h"
#include "runtime/cuda/testdata/fake_state.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's and the kernels'.
using namespace fake_cuda;

namespace {

struct Function {
  std::string name;
  size_t parameterBytes = 0;
  bool isAlignedForMaps = false;
  unsigned dynamicShared = 48 << 10;
};

struct Module {
  std::map<std::string, Function> functions;
};

struct Link {
  std::string code;
  char* errors = nullptr;
  size_t errorBytes = 0;
};

using Graph = std::vector<std::function<void()>>;

int queueBlocks(const Function& function, const unsigned (&grid)[3], unsigned sharedBytes, Stream& stream,
                void** parameters) {
  if (sharedBytes > function.dynamicShared)
    return kOutOfResources;
  std::vector<uint64_t> parameter(function.parameterBytes / sizeof(uint64_t));
  std::memcpy(parameter.data(), parameters[0], function.parameterBytes);
  if (!mapsIn(parameter).empty() && !function.isAlignedForMaps)
    return kInvalidValue;  // the real one notices when a copy reads the map
  stream.add([=, name = function.name, x = grid[0], y = grid[1], z = grid[2]] {
    runBlocks(name, parameter, {x, y, z}, sharedBytes);
  });
  return kSuccess;
}

#ifndef FAKE_CUDA_11_4
/// CUlaunchAttribute and CUlaunchConfig.
struct Attribute {
  int id;
  unsigned padding, value[16];
};
struct Config {
  unsigned grid[3], block[3], sharedBytes;
  Stream* stream;
  const Attribute* attributes;
  unsigned attributeCount;
};
constexpr int kClusterAttribute = 4;
constexpr unsigned kMostClusterBlocks = 8;
constexpr int kCooperativeAttribute = 2;

/// Blocks of the cluster; 0: a shape that the launch cannot have.
unsigned clusterBlocks(const Config& config) {
  unsigned blocks = 1;
  for (unsigned i = 0; i < config.attributeCount; ++i) {
    const Attribute& attribute = config.attributes[i];
    if (attribute.id == kCooperativeAttribute)
      continue;
    if (attribute.id != kClusterAttribute)
      return 0;
    for (int axis = 0; axis < 3; ++axis) {
      if (attribute.value[axis] == 0 || config.grid[axis] % attribute.value[axis] != 0)
        return 0;
      blocks *= attribute.value[axis];
    }
  }
  return blocks <= kMostClusterBlocks ? blocks : 0;
}
#endif

constexpr int kRelaxedCapture = 2;
thread_local int captureMode = 0;

/// A capture is under way that calls like this one would disturb, had the thread not said that it does not mind.
bool isForbidden() {
  const std::lock_guard lock(state().mutex);
  return captureMode != kRelaxedCapture &&
         std::ranges::any_of(state().streams, [](const Stream* stream) { return stream->forbids.load(); });
}

/// Entry points and the size of their one parameter: ".entry name(… .b8 name_param_0[136]".
Module* parse(const std::string& text) {
  auto* module = new Module;
  for (size_t at = text.find(".entry "); at != std::string::npos; at = text.find(".entry ", at + 1)) {
    const size_t begin = at + 7, open = text.find('(', begin);
    const std::string name = text.substr(begin, open - begin),
                      parameter = text.substr(open, text.find(')', open) - open);
    const size_t bracket = parameter.find('[');  // none: an entry without parameters
    const int bytes = bracket == std::string::npos ? 0 : std::atoi(parameter.c_str() + bracket + 1);
    module->functions[name] = {name, static_cast<size_t>(bytes), parameter.find(".align 64") != std::string::npos};
  }
  return module;
}

}  // namespace

#define CALL(symbol)                                                                                                   \
  if (const int code = enter(#symbol); code != kSuccess)                                                               \
  return code
#define CALL_IN(symbol, stream)                                                                                        \
  CALL(symbol);                                                                                                        \
  (stream) = named(stream);                                                                                            \
  if (const int code = (stream)->check(); code != kSuccess)                                                            \
  return code
#define CALL_ANYWHERE(symbol)                                                                                          \
  if (const int code = enter(#symbol, false); code != kSuccess)                                                        \
  return code

extern "C" {

int cuInit(unsigned) {
  CALL_ANYWHERE(cuInit);
  return setting("devices") == 0 ? kNoDevice : kSuccess;
}
int cuDriverGetVersion(int* version) {
  *version = static_cast<int>(setting("version"));
  return kSuccess;
}
int cuGetErrorName(int code, const char** name) {
  static const std::map<int, const char*> names = {{1, "CUDA_ERROR_INVALID_VALUE"},
                                                   {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                   {3, "CUDA_ERROR_NOT_INITIALIZED"},
                                                   {100, "CUDA_ERROR_NO_DEVICE"},
                                                   {201, "CUDA_ERROR_INVALID_CONTEXT"},
                                                   {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE"},
                                                   {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"},
                                                   {218, "CUDA_ERROR_INVALID_PTX"},
                                                   {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  const auto found = names.find(code);
  *name = found == names.end() ? "CUDA_ERROR_OTHER" : found->second;
  return kSuccess;
}
int cuGetErrorString(int, const char** text) {
  *text = "as the stand-in says";
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(setting("devices"));
  return kSuccess;
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return index < setting("devices") ? kSuccess : kInvalidDevice;
}
int cuDeviceGetName(char* name, int bytes, int device) {
  std::snprintf(name, static_cast<size_t>(bytes), "Stand-in %d", device);
  return kSuccess;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = static_cast<size_t>(setting("memory"));
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const auto capability = static_cast<int>(setting("capability"));
  const std::map<int, int> values = {{1, 1024},
                                     {5, 2147483647},
                                     {6, 65535},
                                     {7, 65535},
                                     {16, static_cast<int>(setting("cores"))},
                                     {97, 232448},
                                     {75, capability / 10},
                                     {76, capability % 10},
                                     {115, static_cast<int>(setting("pools"))}};
  const auto found = values.find(attribute);
  *value = found == values.end() ? 0 : found->second;
  return kSuccess;
}
int cuDevicePrimaryCtxRetain(Context** context, int device) {
  CALL_ANYWHERE(cuDevicePrimaryCtxRetain);
  static std::map<std::pair<uint64_t, int>, Context*> contexts;
  const std::lock_guard lock(state().mutex);
  Context*& own = contexts[{state().generation, device}];
  if (!own)
    own = new Context{state().generation, device};
  *context = own;
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  synchronizeAll();  // the end of a context is the end of its work
  return kSuccess;
}
int cuDevicePrimaryCtxReset_v2(int) {
  CALL_ANYWHERE(cuDevicePrimaryCtxReset_v2);
  synchronizeAll();
  const std::lock_guard lock(state().mutex);
  state().registered.clear();
  state().sticky = 0;
  ++state().generation;
  return kSuccess;
}
int cuCtxGetCurrent(Context** context) {
  *context = contextStack().empty() ? nullptr : contextStack().back();
  return kSuccess;
}
int cuCtxPushCurrent_v2(Context* context) {
  contextStack().push_back(context);
  return kSuccess;
}
int cuCtxPopCurrent_v2(Context** context) {
  *context = contextStack().back();
  contextStack().pop_back();
  return kSuccess;
}
int cuCtxSynchronize() {
  CALL(cuCtxSynchronize);
  synchronizeAll();
  return state().sticky;
}

// Memory

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  CALL(cuMemGetInfo_v2);
  *total = static_cast<size_t>(setting("memory"));
  *free = *total - static_cast<size_t>(state().liveBytes);
  return kSuccess;
}
int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  CALL(cuMemAlloc_v2);
  if (isForbidden())
    return kCaptureUnsupported;
  return allocateBytes(pointer, bytes);
}
int cuMemFree_v2(uint64_t pointer) {
  CALL(cuMemFree_v2);
  synchronizeAll();
  freeBytes(pointer);
  return kSuccess;
}
int cuMemPoolCreate(int** pool, const void*) {
  CALL(cuMemPoolCreate);
  *pool = new int(0);
  return kSuccess;
}
int cuMemPoolDestroy(int* pool) {
  delete pool;
  return kSuccess;
}
int cuMemPoolSetAttribute(int*, int, void*) { return kSuccess; }
int cuMemPoolTrimTo(int*, size_t) {
  CALL(cuMemPoolTrimTo);
  return kSuccess;
}
int cuMemAllocFromPoolAsync(uint64_t* pointer, size_t bytes, int*, Stream* stream) {
  CALL_IN(cuMemAllocFromPoolAsync, stream);
  if (stream->isCapturing() || isForbidden())
    return kCaptureUnsupported;  // the real one makes the former the graph's
  return allocateBytes(pointer, bytes);
}
int cuMemFreeAsync(uint64_t pointer, Stream* stream) {
  CALL_IN(cuMemFreeAsync, stream);
  stream->add([=] { freeBytes(pointer); });
  return kSuccess;
}
int cuPointerGetAttribute(void* value, int attribute, uint64_t pointer) {
  CALL(cuPointerGetAttribute);
  const std::lock_guard lock(state().mutex);
  auto after = state().allocations.upper_bound(pointer);
  if (after == state().allocations.begin())
    return kInvalidValue;
  const auto& [start, allocation] = *--after;
  if (pointer - start >= allocation.first)
    return kInvalidValue;
  const int type = 2;  // memory of a device
  std::memcpy(value, attribute == 2 ? &type : &allocation.second, sizeof type);
  return kSuccess;
}
int cuMemHostRegister_v2(void* memory, size_t bytes, unsigned) {
  CALL(cuMemHostRegister_v2);
  if (isForbidden())
    return kCaptureUnsupported;
  const std::lock_guard lock(state().mutex);
  state().registered[static_cast<uint8_t*>(memory)] = bytes;
  return kSuccess;
}
int cuMemHostUnregister(void* memory) {
  CALL(cuMemHostUnregister);
  const std::lock_guard lock(state().mutex);
  const auto* range = static_cast<const uint8_t*>(memory);
  state().counts["in use"] += state().copying[range] != 0;
  return state().registered.erase(range) ? kSuccess : kInvalidValue;
}
int cuMemHostGetDevicePointer_v2(uint64_t* device, void* host, unsigned) {
  CALL(cuMemHostGetDevicePointer_v2);
  *device = reinterpret_cast<uint64_t>(host);
  return isRegistered(host) ? kSuccess : kInvalidValue;
}
int cuMemsetD8Async(uint64_t target, unsigned char value, size_t bytes, Stream* stream) {
  CALL_IN(cuMemsetD8Async, stream);
  stream->add([=] { std::memset(memory(target), value, bytes); });
  return kSuccess;
}
int cuMemcpyHtoDAsync_v2(uint64_t target, const void* from, size_t bytes, Stream* stream) {
  CALL_IN(cuMemcpyHtoDAsync_v2, stream);
  if (isRegistered(from) && !stream->isCapturing()) {
    addPinnedCopy(*stream, from, [=] { std::memcpy(memory(target), from, bytes); });
    return kSuccess;
  }
  if (isRegistered(from)) {
    stream->add([=] { std::memcpy(memory(target), from, bytes); });
    return kSuccess;
  }
  const auto* first = static_cast<const uint8_t*>(from);
  auto staged = std::make_shared<std::vector<uint8_t>>(first, first + bytes);
  stream->add([=] { std::memcpy(memory(target), staged->data(), bytes); });
  return kSuccess;
}
int cuMemcpyDtoHAsync_v2(void* into, uint64_t source, size_t bytes, Stream* stream) {
  CALL_IN(cuMemcpyDtoHAsync_v2, stream);
  const auto copy = [=] { std::memcpy(into, memory(source), bytes); };
  if (isRegistered(into)) {
    addPinnedCopy(*stream, into, copy);
  } else {
    stream->add(copy);
    stream->synchronize();
  }
  return kSuccess;
}
int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, Stream* stream) {
  CALL_IN(cuMemcpyDtoDAsync_v2, stream);
  if (target < source + bytes && source < target + bytes)
    return kInvalidValue;  // undefined in the real one: nothing may rely on it
  stream->add([=] { std::memcpy(memory(target), memory(source), bytes); });
  return kSuccess;
}

// Streams and events

int cuStreamCreate(Stream** stream, unsigned) {
  CALL(cuStreamCreate);
  *stream = new Stream;
  const std::lock_guard lock(state().mutex);
  state().streams.insert(*stream);
  return kSuccess;
}
int cuStreamDestroy_v2(Stream* stream) {
  CALL(cuStreamDestroy_v2);
  {
    const std::lock_guard lock(state().mutex);
    state().streams.erase(stream);
  }
  stream->finish();
  return kSuccess;
}
int cuStreamSynchronize(Stream* stream) {
  CALL_IN(cuStreamSynchronize, stream);
  if (stream->isCapturing() || isForbidden())
    return kCaptureUnsupported;
  stream->synchronize();
  return state().sticky;
}
int cuStreamIsCapturing(Stream* stream, int* status) {
  CALL_IN(cuStreamIsCapturing, stream);
  *status = stream->isCapturing();
  return kSuccess;
}
int cuStreamWaitEvent(Stream* stream, EventRef* event, unsigned) {
  CALL_IN(cuStreamWaitEvent, stream);
  const EventRef waited = *event;
  std::unique_lock lock(waited->mutex);
  const uint64_t number = waited->recorded;
  lock.unlock();
  stream->add([=] { waited->waitFor(number); });
  return kSuccess;
}
int cuEventCreate(EventRef** event, unsigned) {
  CALL(cuEventCreate);
  *event = new EventRef(std::make_shared<Event>());
  return kSuccess;
}
int cuEventDestroy_v2(EventRef* event) {
  CALL(cuEventDestroy_v2);
  delete event;
  return kSuccess;
}
int cuEventRecord(EventRef* event, Stream* stream) {
  CALL_IN(cuEventRecord, stream);
  const EventRef recorded = *event;
  std::unique_lock lock(recorded->mutex);
  const uint64_t number = ++recorded->recorded;
  recorded->pending.insert(number);
  lock.unlock();
  stream->add(
      [=] {
        const std::lock_guard guard(recorded->mutex);
        recorded->pending.erase(number);
        recorded->nanoseconds = std::chrono::steady_clock::now().time_since_epoch().count();
        recorded->changed.notify_all();
      },
      true);
  return kSuccess;
}
int cuEventQuery(EventRef* event) {
  CALL(cuEventQuery);
  const std::lock_guard lock((*event)->mutex);
  return (*event)->pending.contains((*event)->recorded) ? kNotReady : kSuccess;
}
int cuEventSynchronize(EventRef* event) {
  CALL(cuEventSynchronize);
  std::unique_lock lock((*event)->mutex);
  const uint64_t number = (*event)->recorded;
  lock.unlock();
  (*event)->waitFor(number);
  return state().sticky;
}
int cuEventElapsedTime(float* milliseconds, EventRef* start, EventRef* end) {
  CALL(cuEventElapsedTime);
  *milliseconds = static_cast<float>((*end)->nanoseconds - (*start)->nanoseconds) * 1e-6f;
  return kSuccess;
}

// Graphs: what was queued while a stream captured

int cuThreadExchangeStreamCaptureMode(int* mode) {
  CALL(cuThreadExchangeStreamCaptureMode);
  std::swap(captureMode, *mode);
  return kSuccess;
}
int cuStreamBeginCapture_v2(Stream* stream, int mode) {
  CALL(cuStreamBeginCapture_v2);
  stream->beginCapture();
  stream->forbids = mode == 0;
  return kSuccess;
}
int cuStreamEndCapture(Stream* stream, Graph** graph) {
  *graph = new Graph(stream->endCapture());
  stream->forbids = false;
  CALL(cuStreamEndCapture);
  return kSuccess;
}
int cuGraphDestroy(Graph* graph) {
  delete graph;
  return kSuccess;
}
int cuGraphInstantiateWithFlags(Graph** exec, Graph* graph, unsigned long long) {
  CALL(cuGraphInstantiateWithFlags);
  *exec = new Graph(*graph);
  return kSuccess;
}
int cuGraphExecDestroy(Graph* exec) {
  CALL(cuGraphExecDestroy);
  delete exec;
  return kSuccess;
}
int cuGraphExecUpdate(Graph* exec, Graph* graph, void**, int*) {
  CALL(cuGraphExecUpdate);
  if (exec->size() != graph->size())
    return kGraphUpdateFailed;
  *exec = *graph;
  return kSuccess;
}
int cuGraphLaunch(Graph* exec, Stream* stream) {
  CALL_IN(cuGraphLaunch, stream);
  for (const std::function<void()>& operation : *exec)
    stream->add(operation);
  return kSuccess;
}

// Code

int cuLinkCreate_v2(unsigned count, const int* options, void** values, Link** link) {
  CALL(cuLinkCreate_v2);
  *link = new Link;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == 5)
      (*link)->errors = static_cast<char*>(values[i]);
    if (options[i] == 6)
      (*link)->errorBytes = reinterpret_cast<size_t>(values[i]);
  }
  return kSuccess;
}
int cuLinkAddData_v2(Link* link, int, const void* data, size_t bytes, const char*, unsigned, const int*, void**) {
  CALL(cuLinkAddData_v2);
  const std::string text(static_cast<const char*>(data), bytes - 1);
  if (const size_t at = text.find("syntax error here"); at != std::string::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    std::snprintf(link->errors, link->errorBytes, "ptxas application ptx input, line %ld; fatal: unexpected text\n",
                  line);
    return kInvalidPtx;
  }
  link->code = "MACHINE" + text;
  return kSuccess;
}
int cuLinkComplete(Link* link, void** code, size_t* bytes) {
  CALL(cuLinkComplete);
  *code = link->code.data();
  *bytes = link->code.size() + 1;
  return kSuccess;
}
int cuLinkDestroy(Link* link) {
  delete link;
  return kSuccess;
}
int cuModuleLoadData(Module** module, const void* image) {
  CALL(cuModuleLoadData);
  if (isForbidden())
    return kCaptureUnsupported;
  const std::string text = static_cast<const char*>(image);
  const bool isPtx = text.find("\n.version") != std::string::npos || text.starts_with(".version");  // is assembled
  if (!text.starts_with("MACHINE") && !isPtx)
    return kInvalidImage;
  *module = parse(text);
  return kSuccess;
}
int cuModuleUnload(Module* module) {
  CALL(cuModuleUnload);
  synchronizeAll();
  delete module;
  return kSuccess;
}
int cuModuleGetFunction(Function** function, Module* module, const char* name) {
  CALL(cuModuleGetFunction);
  const auto found = module->functions.find(name);
  if (found == module->functions.end())
    return kNotFound;
  *function = &found->second;
  return kSuccess;
}
int cuFuncGetAttribute(int* value, int attribute, Function*) {
  CALL(cuFuncGetAttribute);
  *value = attribute == 0 ? 1024 : 0;
  return kSuccess;
}
int cuFuncSetAttribute(Function* function, int attribute, int value) {
  CALL(cuFuncSetAttribute);
  if (attribute == 8)
    function->dynamicShared = static_cast<unsigned>(value);
  return kSuccess;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, Function* function, int, size_t sharedBytes) {
  CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  if (sharedBytes > function->dynamicShared)
    return kInvalidValue;
  *count = fake_cuda::kBlocksPerCore;
  return kSuccess;
}
int cuLaunchKernel(Function* function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned, unsigned, unsigned,
                   unsigned sharedBytes, Stream* stream, void** parameters, void**) {
  CALL_IN(cuLaunchKernel, stream);
  return queueBlocks(*function, {gridX, gridY, gridZ}, sharedBytes, *stream, parameters);
}

#ifndef FAKE_CUDA_11_4
int cuLaunchKernelEx(const Config* config, Function* function, void** parameters, void**) {
  Stream* stream = config->stream;
  CALL_IN(cuLaunchKernelEx, stream);
  const unsigned blocks = clusterBlocks(*config);
  if (blocks == 0)
    return kInvalidClusterSize;
  if (blocks > setting("cores"))
    return kOutOfResources;
  const bool isCooperative = config->attributeCount > 0 && config->attributes[0].id == kCooperativeAttribute;
  if (isCooperative && uint64_t{config->grid[0]} * config->grid[1] * config->grid[2] >
                           uint64_t{kBlocksPerCore} * static_cast<uint64_t>(setting("cores")))
    return kCooperativeTooLarge;
  return queueBlocks(*function, config->grid, config->sharedBytes, *stream, parameters);
}
int cuOccupancyMaxActiveClusters(int* count, Function* function, const Config* config) {
  CALL(cuOccupancyMaxActiveClusters);
  const unsigned blocks = clusterBlocks(*config);
  if (blocks == 0 || config->sharedBytes > function->dynamicShared)
    return kInvalidValue;
  *count = static_cast<int>(setting("cores")) / static_cast<int>(blocks);
  return kSuccess;
}
#endif

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
