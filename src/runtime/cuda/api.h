// The part of the CUDA driver API that this folder uses, declared here and found with dlopen: neither building nor starting
// Vortex needs a CUDA toolkit or a driver. Names, types and numbers: CUDA Driver API reference manual; the symbol of a function
// is the one that its newest ABI has carried since CUDA 11.4.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace vortex::cuda {

// Handles are pointers to types that nobody defines.
using ContextHandle = struct CudaContextTag*;
using ModuleHandle = struct CudaModuleTag*;
using FunctionHandle = struct CudaFunctionTag*;
using StreamHandle = struct CudaStreamTag*;
using EventHandle = struct CudaEventTag*;
using PoolHandle = struct CudaPoolTag*;
using LinkHandle = struct CudaLinkTag*;
using GraphHandle = struct CudaGraphTag*;
using GraphExecHandle = struct CudaGraphExecTag*;
using GraphNodeHandle = struct CudaGraphNodeTag*;
using DeviceHandle = int;
using DevicePointer = uint64_t;

/// CUresult. Only what the code here tells apart has a name; the driver itself names the others.
enum Code : int {
  kSuccess = 0,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kStubLibrary = 34,
  kNoDevice = 100,
  kInvalidImage = 200,
  kNoBinary = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kJitCompilerNotFound = 221,
  kUnsupportedPtxVersion = 222,
  kContained = 226,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchTimeout = 702,
  kAssert = 710,
  kHardwareStackError = 714,
  kLaunchFailed = 719,
  kTensorMemoryLeak = 721,
};

/// CUdevice_attribute
enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxGridX = 5,
  kMaxGridY = 6,
  kMaxGridZ = 7,
  kMultiprocessors = 16,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kSharedOptIn = 97,
  kMemoryPools = 115,
};

/// CUfunction_attribute
enum FunctionAttribute : int {
  kFunctionMaxThreads = 0,
  kFunctionStaticShared = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicShared = 8,
};

/// CUjit_option
enum JitOption : int {
  kJitInfoLog = 3,
  kJitInfoLogBytes = 4,
  kJitErrorLog = 5,
  kJitErrorLogBytes = 6,
  kJitOptimizationLevel = 7,
  kJitLineInfo = 13,
};
/// CUpointer_attribute, CUmemorytype
inline constexpr int kPointerMemoryType = 2, kPointerDevice = 9;
inline constexpr unsigned kMemoryOfDevice = 2;

inline constexpr int kJitInputPtx = 1;
inline constexpr int kCaptureRelaxed = 2;  ///< CU_STREAM_CAPTURE_MODE_RELAXED

inline constexpr unsigned kStreamNonBlocking = 1;                        ///< CU_STREAM_NON_BLOCKING
inline constexpr unsigned kEventDefault = 0, kEventNoTiming = 2;         ///< CU_EVENT_DISABLE_TIMING
inline constexpr unsigned kHostPortable = 1, kHostMapped = 2;            ///< CU_MEMHOSTREGISTER_PORTABLE, _DEVICEMAP
inline constexpr int kPoolReuseInternal = 3, kPoolReleaseThreshold = 4;  ///< CUmemPool_attribute

/// CUmemPoolProps
struct PoolProperties {
  int allocationType = 1;  ///< pinned: the only one
  int handleTypes = 0;     ///< not shared with other processes
  int locationType = 1;    ///< device
  int locationId = 0;
  void* securityAttributes = nullptr;
  size_t maxBytes = 0;
  uint8_t reserved[56] = {};
};
static_assert(sizeof(PoolProperties) == 88);

/// CUlaunchAttribute
struct LaunchAttribute {
  int id = 0;
  uint8_t padding[4] = {};
  uint32_t value[16] = {};
};
inline constexpr int kCooperative = 2;       ///< CU_LAUNCH_ATTRIBUTE_COOPERATIVE: 1
inline constexpr int kClusterDimension = 4;  ///< CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: x, y, z

/// CUlaunchConfig
struct LaunchConfig {
  unsigned grid[3] = {}, block[3] = {}, sharedBytes = 0;
  StreamHandle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attributeCount = 0;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);

// member, symbol, parameters
#define VORTEX_CUDA_FUNCTIONS(X)                                                                                       \
  X(init, cuInit, (unsigned))                                                                                          \
  X(driverVersion, cuDriverGetVersion, (int*))                                                                         \
  X(errorName, cuGetErrorName, (Code, const char**))                                                                   \
  X(errorText, cuGetErrorString, (Code, const char**))                                                                 \
  X(deviceCount, cuDeviceGetCount, (int*))                                                                             \
  X(device, cuDeviceGet, (DeviceHandle*, int))                                                                         \
  X(deviceName, cuDeviceGetName, (char*, int, DeviceHandle))                                                           \
  X(deviceMemory, cuDeviceTotalMem_v2, (size_t*, DeviceHandle))                                                        \
  X(deviceAttribute, cuDeviceGetAttribute, (int*, DeviceAttribute, DeviceHandle))                                      \
  X(primaryRetain, cuDevicePrimaryCtxRetain, (ContextHandle*, DeviceHandle))                                           \
  X(primaryRelease, cuDevicePrimaryCtxRelease_v2, (DeviceHandle))                                                      \
  X(primaryReset, cuDevicePrimaryCtxReset_v2, (DeviceHandle))                                                          \
  X(contextCurrent, cuCtxGetCurrent, (ContextHandle*))                                                                 \
  X(contextPush, cuCtxPushCurrent_v2, (ContextHandle))                                                                 \
  X(contextPop, cuCtxPopCurrent_v2, (ContextHandle*))                                                                  \
  X(contextSynchronize, cuCtxSynchronize, ())                                                                          \
  X(memoryInfo, cuMemGetInfo_v2, (size_t*, size_t*))                                                                   \
  X(allocate, cuMemAlloc_v2, (DevicePointer*, size_t))                                                                 \
  X(free, cuMemFree_v2, (DevicePointer))                                                                               \
  X(poolCreate, cuMemPoolCreate, (PoolHandle*, const PoolProperties*))                                                 \
  X(poolDestroy, cuMemPoolDestroy, (PoolHandle))                                                                       \
  X(poolSet, cuMemPoolSetAttribute, (PoolHandle, int, void*))                                                          \
  X(poolTrim, cuMemPoolTrimTo, (PoolHandle, size_t))                                                                   \
  X(allocateFromPool, cuMemAllocFromPoolAsync, (DevicePointer*, size_t, PoolHandle, StreamHandle))                     \
  X(freeAsync, cuMemFreeAsync, (DevicePointer, StreamHandle))                                                          \
  X(hostRegister, cuMemHostRegister_v2, (void*, size_t, unsigned))                                                     \
  X(hostUnregister, cuMemHostUnregister, (void*))                                                                      \
  X(hostDevicePointer, cuMemHostGetDevicePointer_v2, (DevicePointer*, void*, unsigned))                                \
  X(pointerAttribute, cuPointerGetAttribute, (void*, int, DevicePointer))                                              \
  X(fill, cuMemsetD8Async, (DevicePointer, unsigned char, size_t, StreamHandle))                                       \
  X(copyToDevice, cuMemcpyHtoDAsync_v2, (DevicePointer, const void*, size_t, StreamHandle))                            \
  X(copyToHost, cuMemcpyDtoHAsync_v2, (void*, DevicePointer, size_t, StreamHandle))                                    \
  X(copyOnDevice, cuMemcpyDtoDAsync_v2, (DevicePointer, DevicePointer, size_t, StreamHandle))                          \
  X(streamCreate, cuStreamCreate, (StreamHandle*, unsigned))                                                           \
  X(streamDestroy, cuStreamDestroy_v2, (StreamHandle))                                                                 \
  X(streamSynchronize, cuStreamSynchronize, (StreamHandle))                                                            \
  X(streamIsCapturing, cuStreamIsCapturing, (StreamHandle, int*))                                                      \
  X(streamWait, cuStreamWaitEvent, (StreamHandle, EventHandle, unsigned))                                              \
  X(exchangeCaptureMode, cuThreadExchangeStreamCaptureMode, (int*))                                                    \
  X(captureBegin, cuStreamBeginCapture_v2, (StreamHandle, int))                                                        \
  X(captureEnd, cuStreamEndCapture, (StreamHandle, GraphHandle*))                                                      \
  X(graphDestroy, cuGraphDestroy, (GraphHandle))                                                                       \
  X(graphInstantiate, cuGraphInstantiateWithFlags, (GraphExecHandle*, GraphHandle, unsigned long long))                \
  X(graphExecDestroy, cuGraphExecDestroy, (GraphExecHandle))                                                           \
  X(graphExecUpdate, cuGraphExecUpdate, (GraphExecHandle, GraphHandle, GraphNodeHandle*, int*))                        \
  X(graphLaunch, cuGraphLaunch, (GraphExecHandle, StreamHandle))                                                       \
  X(eventCreate, cuEventCreate, (EventHandle*, unsigned))                                                              \
  X(eventDestroy, cuEventDestroy_v2, (EventHandle))                                                                    \
  X(eventRecord, cuEventRecord, (EventHandle, StreamHandle))                                                           \
  X(eventQuery, cuEventQuery, (EventHandle))                                                                           \
  X(eventSynchronize, cuEventSynchronize, (EventHandle))                                                               \
  X(eventElapsed, cuEventElapsedTime, (float*, EventHandle, EventHandle))                                              \
  X(linkCreate, cuLinkCreate_v2, (unsigned, JitOption*, void**, LinkHandle*))                                          \
  X(linkAdd, cuLinkAddData_v2, (LinkHandle, int, const void*, size_t, const char*, unsigned, JitOption*, void**))      \
  X(linkComplete, cuLinkComplete, (LinkHandle, void**, size_t*))                                                       \
  X(linkDestroy, cuLinkDestroy, (LinkHandle))                                                                          \
  X(moduleLoad, cuModuleLoadData, (ModuleHandle*, const void*))                                                        \
  X(moduleUnload, cuModuleUnload, (ModuleHandle))                                                                      \
  X(moduleFunction, cuModuleGetFunction, (FunctionHandle*, ModuleHandle, const char*))                                 \
  X(functionAttribute, cuFuncGetAttribute, (int*, FunctionAttribute, FunctionHandle))                                  \
  X(functionSet, cuFuncSetAttribute, (FunctionHandle, FunctionAttribute, int))                                         \
  X(activeBlocks, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int*, FunctionHandle, int, size_t))                    \
  X(launch, cuLaunchKernel,                                                                                            \
    (FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, StreamHandle, void**,       \
     void**))

// The same, of functions that came after CUDA 11.4, with the version that brought them; null in a driver without them.
#define VORTEX_CUDA_OPTIONAL_FUNCTIONS(X)                                                                              \
  X(launchEx, cuLaunchKernelEx, (const LaunchConfig*, FunctionHandle, void**, void**), 11080)                          \
  X(activeClusters, cuOccupancyMaxActiveClusters, (int*, FunctionHandle, const LaunchConfig*), 11080)                  \
  X(tensorMapEncode, cuTensorMapEncodeTiled,                                                                           \
    (void*, int, uint32_t, DevicePointer, const uint64_t*, const uint64_t*, const uint32_t*, const uint32_t*, int,     \
     int, int, int),                                                                                                   \
    12000)

/// The functions, and the library they came from, which stays loaded for the life of the process: drivers do not survive dlclose.
struct Api {
#define VORTEX_CUDA_MEMBER(member, symbol, parameters) Code(*member) parameters = nullptr;
  VORTEX_CUDA_FUNCTIONS(VORTEX_CUDA_MEMBER)
#define VORTEX_CUDA_OPTIONAL_MEMBER(member, symbol, parameters, since) VORTEX_CUDA_MEMBER(member, symbol, parameters)
  VORTEX_CUDA_OPTIONAL_FUNCTIONS(VORTEX_CUDA_OPTIONAL_MEMBER)
#undef VORTEX_CUDA_OPTIONAL_MEMBER
#undef VORTEX_CUDA_MEMBER
  std::string library;
  int version = 0;    ///< CUDA version the driver supports: 12040 is 12.4
  std::string build;  ///< the kernel module's own version line, empty if it is not readable
  int process = 0;    ///< that started the driver: no call succeeds in processes forked from it

  /// "what: CUDA_ERROR_X (the driver's sentence)"
  Error error(const std::string& what, Code code) const;
  /// "libcuda.so.1 has no function cuLaunchKernelEx: …": the error of using an optional function that is null.
  Error absentError(const char* symbol) const;
};

/// What opening the library came to: the functions, or why there are none.
struct ApiSearch {
  std::shared_ptr<const Api> api;
  std::string absence;          ///< no library or no device: a machine without CUDA, in one clause
  std::optional<Error> broken;  ///< a library that is there and unusable
};

/// Opens $VORTEX_LIBCUDA, else libcuda.so.1, and initialises it. Takes the driver's start-up time (0.1 to 1 s) when it succeeds.
ApiSearch openApi();

/// After these the context cannot be used any more, by anyone in the process.
bool destroysContext(Code code);

/// "12.4" for 12040.
std::string versionText(int version);

}  // namespace vortex::cuda
