// What a driver provides. Everything above (launch checks, the public API) is written once against these interfaces.
//
// Threads: Device, LoadedKernel, Buffer and Event may be used from any thread at once. A Stream may too: its operations are
// serialised in the order of the calls. The contents of a buffer are the caller's to synchronise, through streams and events.
// Lifetime: everything is held by shared_ptr; a buffer or kernel used by pending work stays alive until that work is done.
#pragma once

#include "artifact/artifact.h"
#include "artifact/steps.h"
#include "base/result.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vortex::hal {

class Device;
struct Launch;

struct DeviceInfo {
  std::string name;              ///< "cpu", "null", "cuda:1": unique among the devices of a process
  std::string product;           ///< "AMD EPYC 7763"
  std::string target;            ///< what to compile for it: "cpu", "sm_90"; empty: it executes nothing
  std::string model;             ///< of a CPU, whose code depends on more than the target: chip::Host::model
  uint64_t memoryBytes = 0;      ///< of the device
  uint32_t workers = 1;          ///< blocks that execute at the same time: threads of a CPU, cores of a GPU
  uint64_t maxSharedBytes = 0;   ///< shared memory of a block; 0: no limit but the memory
  uint32_t maxBlockThreads = 0;  ///< hardware threads of a block; 0: no limit
  uint32_t maxGrid[3] = {};      ///< blocks per axis; 0: no limit
  bool executes = true;          ///< false: launches are checked and recorded only
  bool hostMemory = false;       ///< Buffer::host() is never null, and Device::wrap is free of copies
};

/// A range of device memory. Its storage ends with the last reference.
class Buffer {
public:
  virtual ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  uint64_t bytes() const { return bytes_; }
  uint64_t address() const { return address_; }     ///< as kernels see it; at least 64-byte aligned unless wrapped
  void* host() const { return host_; }              ///< null if the host cannot access the memory
  const Device* device() const { return device_; }  ///< for comparison only; may have been destroyed
  bool isReadOnly() const { return readOnly_; }     ///< wrapped constant memory: no operation may write it

protected:
  Buffer(const Device* device, uint64_t bytes, uint64_t address, void* host, bool readOnly = false)
      : device_(device), bytes_(bytes), address_(address), host_(host), readOnly_(readOnly) {}

private:
  const Device* device_;
  uint64_t bytes_;
  uint64_t address_;
  void* host_;
  bool readOnly_;
};
using BufferRef = std::shared_ptr<Buffer>;

/// Kernel code placed on a device.
class LoadedKernel {
public:
  virtual ~LoadedKernel();
  const artifact::Kernel& artifact() const { return *artifact_; }
  const size::Program& sizes() const { return sizes_; }  ///< of artifact()
  bool readsBack() const { return readsBack_; }          ///< its steps depend on what its phases compute
  const Device* device() const { return device_; }
  /// Spent so far on machine code that was not there when the kernel was loaded or a launch first needed it; 0 where code comes ready.
  int64_t loadNanoseconds() const { return loadNanoseconds_.load(std::memory_order_relaxed); }
  /// Makes what the device wants of a launch besides its slots, once: the end of prepare(). Error: what the driver refuses.
  virtual Result<void> bind(Launch& launch);
  /// Neither the artifact has this entry point of a phase, by LaunchPhase::version, nor can it be made.
  bool lacks(const artifact::Phase& phase, uint32_t version) const;
  /// Makes and loads the code of an entry point that is not lacking, if this is its first use: prepare() asks for all that a launch may run, so
  /// that neither work in a stream nor a recording waits for the compiler. Error: what the compiler or the driver refuses.
  virtual Result<void> provide(const artifact::Phase& phase, uint32_t version);

protected:
  LoadedKernel(const Device* device, std::shared_ptr<const artifact::Kernel> artifact,
               std::shared_ptr<artifact::EntrySource> entries = nullptr);
  artifact::EntrySource* entries() const { return entries_.get(); }  ///< of absent entry points; may be null
  void addLoadTime(int64_t nanoseconds) { loadNanoseconds_.fetch_add(nanoseconds, std::memory_order_relaxed); }

private:
  const Device* device_;
  std::shared_ptr<const artifact::Kernel> artifact_;
  size::Program sizes_;
  bool readsBack_;
  std::shared_ptr<artifact::EntrySource> entries_;
  std::vector<std::vector<bool>> lacking_;  ///< by phase and version; empty: none
  std::atomic<int64_t> loadNanoseconds_{0};
};
using KernelRef = std::shared_ptr<LoadedKernel>;

/// A point in the order of a stream.
class Event {
public:
  virtual ~Event();
  /// True when the work before the latest record is done; also true if the event was never recorded.
  virtual bool isComplete() const = 0;
  /// Blocks until isComplete. Error: the device failed.
  virtual Result<void> wait() = 0;
  /// Nanoseconds of device time from the completion of `start` to the completion of this event. Waits for both.
  /// Errors: one of them was never recorded, or they belong to different devices.
  virtual Result<int64_t> nanosecondsSince(Event& start) = 0;
};
using EventRef = std::shared_ptr<Event>;

/// A message that kernel code raised.
struct RunFault {
  std::string kernel;
  artifact::Fault fault;
};

/// Work that a stream recorded, to be replayed as a whole at the cost of one launch. It holds the buffers and kernels it uses.
class Graph {
public:
  virtual ~Graph();
  virtual uint32_t operations() const = 0;  ///< launches, fills and copies
  virtual uint32_t launches() const = 0;
  /// Replaces a launch, counted from 0 in the order of submit(), in replays queued from now on. Errors: no such launch, another kernel, a
  /// launch that cannot be recorded.
  virtual Result<void> update(uint32_t launch, const Launch& replacement) = 0;
};
using GraphRef = std::shared_ptr<Graph>;

/// An in-order queue of work. Operations may run asynchronously; arguments that are wrong are reported by the call itself.
/// A kernel that faults leaves the stream failed: later work of this stream is skipped, and the next synchronize()
/// reports the fault and clears it. Launches that an asynchronous device had queued before the fault was known may still run.
class Stream {
public:
  virtual ~Stream();
  /// Uninitialised memory for work that this stream is given from now on; other streams may use it behind that work. `device` is the stream's.
  /// Errors: as Device::allocate.
  virtual Result<BufferRef> allocate(Device& device, uint64_t bytes);
  /// All ranges are in bytes and checked against the buffers; the error carries offset, length and size.
  virtual Result<void> fill(const BufferRef& target, uint64_t offset, uint64_t bytes, uint8_t value) = 0;
  virtual Result<void> copy(const BufferRef& target, uint64_t targetOffset, const BufferRef& source,
                            uint64_t sourceOffset,
                            uint64_t bytes) = 0;  ///< ranges may overlap
  /// Host to device. `from` may be reused as soon as the call returns.
  virtual Result<void> write(const BufferRef& target, uint64_t offset, const void* from, uint64_t bytes) = 0;
  /// Device to host. Waits until the bytes are there; reports a fault of earlier work as synchronize() does.
  virtual Result<void> read(void* into, const BufferRef& source, uint64_t offset, uint64_t bytes) = 0;
  /// Runs what prepare() made. `launch.kernel` must belong to this stream's device. Launches that print or read back what they compute cannot be
  /// recorded. Those that read back wait for it, so that most of their work is done when the call returns; work that other threads submit
  /// meanwhile may come between their phases. A fault ends them.
  Result<void> submit(const Launch& launch);
  virtual Result<void> record(const EventRef& event) = 0;
  /// Later work of this stream starts after the latest record of the event; an event never recorded holds up nothing.
  virtual Result<void> wait(const EventRef& event) = 0;
  /// From now on fill, copy, write and submit are checked and recorded, not run; read, record, wait, replay and synchronize are errors.
  /// Error: the stream records already.
  virtual Result<void> beginRecording() = 0;
  /// Ends the recording, also when it fails. Errors: the stream does not record; the device refuses.
  virtual Result<GraphRef> endRecording() = 0;
  /// Queues what the graph holds, in its order. Results of recorded launches are written anew by every replay; faults are reported as
  /// those of launches. Errors: a graph that another stream recorded, or that was lost with the device's contents.
  virtual Result<void> replay(const GraphRef& graph) = 0;
  /// Waits for all work. The error of a fault reads "kernel 'k' stopped: E0701: message (file:line:column)".
  virtual Result<void> synchronize() = 0;
  /// The fault that the last failing synchronize() or read() reported, for callers that print it themselves.
  virtual std::optional<RunFault> lastFault() const = 0;

protected:
  /// Runs the phases that are known.
  virtual Result<void> submitPhases(const Launch& launch) = 0;
  /// As read(), but leaves a fault of earlier work to synchronize(): false.
  virtual Result<bool> readUnlessFaulted(void* into, const BufferRef& source, uint64_t offset, uint64_t bytes) = 0;
};
using StreamRef = std::shared_ptr<Stream>;

class Device : public std::enable_shared_from_this<Device> {
public:
  virtual ~Device();
  virtual const DeviceInfo& info() const = 0;
  /// Bytes that an allocation could get now; a hint, others allocate too.
  virtual Result<uint64_t> availableBytes() const = 0;
  /// Uninitialised memory, 64-byte aligned; zero bytes are allowed. Error: out of memory, with requested and available bytes.
  virtual Result<BufferRef> allocate(uint64_t bytes) = 0;
  /// A buffer over memory of the caller, who keeps it alive and mapped until the last reference is gone.
  /// Errors: null pointer with bytes > 0; the device cannot access host memory.
  virtual Result<BufferRef> wrap(void* memory, uint64_t bytes, bool readOnly = false) = 0;
  /// A buffer over memory of this device that another library allocated. `owner` is let go of once no work of streams made here uses the
  /// memory, which its end waits for; work of wrapped streams is ordered with the memory's end by whoever lends both.
  /// Errors: memory of the host or of another device; a device without memory of its own.
  virtual Result<BufferRef> wrapDevice(uint64_t address, uint64_t bytes, std::shared_ptr<void> owner,
                                       bool readOnly = false);
  virtual Result<StreamRef> createStream() = 0;
  /// The queue of another library (CUDA: a CUstream of the primary context, 0 is the default stream): used in its order, never destroyed. It
  /// must live as long as the stream returned; buffers may outlive both. Error: a device without such queues.
  virtual Result<StreamRef> wrapStream(uint64_t handle);
  virtual Result<EventRef> createEvent() = 0;
  /// How many clusters of this many blocks the device runs at the same time, when one block fills a core: of one block, its workers. 0: it has no
  /// such clusters. Error: the device failed.
  virtual Result<uint32_t> residentClusters(uint32_t blocks);
  /// `entries` makes the code of absent entry points when launches first need them; without it, such launches are refused. Errors: made for another
  /// target; code that cannot be loaded; a phase's symbol that is missing.
  virtual Result<KernelRef> load(std::shared_ptr<const artifact::Kernel> kernel,
                                 std::shared_ptr<artifact::EntrySource> entries) = 0;
  Result<KernelRef> load(std::shared_ptr<const artifact::Kernel> kernel) { return load(std::move(kernel), nullptr); }
};
using DeviceRef = std::shared_ptr<Device>;

/// Error unless [offset, offset + bytes) lies in the buffer, and, for `writes`, the buffer may be written.
Result<void> checkRange(const char* operation, const Buffer& buffer, uint64_t offset, uint64_t bytes,
                        bool writes = false);

/// The text that synchronize() reports.
Error faultError(const RunFault& fault);

}  // namespace vortex::hal
