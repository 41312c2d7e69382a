// Running compiled kernels: devices, memory, streams, launches, events.
//
//   vortex::Runtime runtime;
//   vortex::Device device = runtime.open("cpu").value();
//   vortex::Kernel kernel = device.loadFile("scale.vxk").value();
//   vortex::Stream stream = device.createStream().value();
//   std::vector<float> x(1000, 2.0f);
//   auto results = stream.launch(kernel, {device.wrap(std::span(x)).value(), 3.0f}).value();
//   std::vector<float> y = stream.read<float>(results[0]).value();
//
// For a GPU open "cuda:0", load an artifact built for it, and upload() instead of wrap(): it works in memory of its own.
//
// All classes are handles: copies refer to the same object, the last one frees it. Threads: every member may be called from any
// thread; operations of one stream take effect in the order of the calls. Nothing throws; every Result's message names the
// kernel and parameter and carries the numbers that decided it.
#pragma once

#include "vortex/entry_source.h"
#include "vortex/fault.h"
#include "vortex/result.h"
#include "vortex/tensor.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vortex {

namespace hal {
class Device;
class DriverList;
class Event;
class Graph;
struct Launch;
class LoadedKernel;
class Stream;
}  // namespace hal

/// One launch argument: a tensor, or a number that is converted to the parameter's type at launch. An integer parameter takes integers that
/// it can hold, a float one any number that is finite once it is rounded to the nearest of its type.
class Argument {
public:
  Argument(Tensor tensor) : tensor_(std::move(tensor)) {}
  template <typename T>
    requires(std::is_same_v<T, bool>)  // not what only converts to bool, as pointers do
  Argument(T value) : kind_(Kind::Bool), bits_(value) {}
  Argument(float value) : Argument(static_cast<double>(value)) {}
  Argument(double value);
  template <typename T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8)
  Argument(T value)
      : kind_(std::is_signed_v<T> ? Kind::Signed : Kind::Unsigned),
        bits_(std::is_signed_v<T> ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value)) {
  }
  /// A number of exactly this type by its bit pattern, e.g. {DType::F16, 0x3c00}. The bits above it are zeros or, of signed integers, copies of
  /// the sign.
  Argument(DType type, uint64_t bits) : kind_(Kind::Bits), type_(type), bits_(bits) {}

private:
  friend struct RuntimeAccess;
  enum class Kind : uint8_t { Tensor, Bool, Signed, Unsigned, Float, Bits };
  Kind kind_ = Kind::Tensor;
  DType type_ = DType::F32;
  uint64_t bits_ = 0;
  std::optional<Tensor> tensor_;
};

/// A print in kernel code: `{}` in `format` stands for the next value; where there are values, `{{` and `}}` are braces.
struct Print {
  std::string_view format;
  std::string_view file;
  uint32_t line = 0;
  std::span<const uint64_t> values;  ///< 64-bit slots
  /// A letter per value: d (an f64), f (a shorter float, in the slot as the f64 it equals), i, u or b (integers extended to 64 bits).
  std::string_view kinds;
  std::string
  text() const;  ///< the line with its values: floats as the shortest text of their type ("3.0"), bool as true or false
};

struct LaunchOptions {
  /// Storage for results by index (row-major, contiguous, of the result's shape); absent ones are allocated by the launch.
  std::vector<std::optional<Tensor>> results{};
  /// Makes storage for the absent ones: with the allocator of another library, say. Called once for each but fields of structs, before
  /// anything runs; of a scalar result the extents are empty. Its error is the launch's.
  std::function<Result<Tensor>(size_t result, DType type, std::span<const int64_t> extents)> allocate{};
  /// Called for each print, never by two threads at once.
  std::function<void(const Print&)> print{};
  /// Numbers of blocks, for kernels whose launches give them.
  std::optional<std::array<int64_t, 3>> grid{};
  /// Tensors may lie between each other, even if they are written. The kernel must not reach an element that it writes through two of them.
  bool mayOverlap = false;
};

/// A parameter or result of a kernel. The parts of structs, tuples and arrays are parameters of their own, in order and depth first, named after
/// the way to them: `pages.table`, `weights.0`. A tensor of structs is one tensor per scalar of its elements, all of the same extents: `p.at.x`,
/// `p.mass`, `p.hits.0`. With `@layout(aos)` these are strided views of one buffer of structs (laid out as C does): `structBytes` tells how
/// far apart neighbouring structs are and `fieldOffset` where in a struct the view begins. Any strides may be given for parameters; results
/// are allocated so.
struct ParamInfo {
  std::string name;
  DType type = DType::F32;
  bool isTensor = false;
  uint32_t rank = 0;
  bool isWritten = false;
  uint32_t structBytes = 0, fieldOffset = 0;  ///< 0: not a field of an array of structs
};

/// A compiled kernel that is loaded on a device.
class Kernel {
public:
  const std::string& name() const;
  const std::string& target() const;  ///< "cpu-x86_64-znver3", "sm_90", …
  std::vector<ParamInfo> params() const;
  std::vector<ParamInfo> results() const;
  /// A resource fact of the compiler: "object_bytes", "ptx_bytes"; "registers", "stack_bytes", "spill_bytes" where ptxas assembled the
  /// code: the most that one of its entry points has, and "registers.scale.main" of the one of that name.
  std::optional<int64_t> fact(std::string_view key) const;
  std::vector<std::pair<std::string, int64_t>> facts() const;  ///< all that fact() knows, by key

private:
  friend struct RuntimeAccess;
  explicit Kernel(std::shared_ptr<hal::LoadedKernel> kernel) : kernel_(std::move(kernel)) {}
  std::shared_ptr<hal::LoadedKernel> kernel_;
};

/// A point in a stream's order.
class Event {
public:
  bool isComplete() const;  ///< also true before the first record
  Result<void> wait();
  /// Device time from `start` to this event. Waits for both. Errors: never recorded; different devices.
  Result<int64_t> nanosecondsSince(const Event& start);

private:
  friend struct RuntimeAccess;
  explicit Event(std::shared_ptr<hal::Event> event) : event_(std::move(event)) {}
  std::shared_ptr<hal::Event> event_;
};

/// The bytes of an artifact for one target, as the headers of `vortex build --header` hold them.
struct EmbeddedArtifact {
  std::string_view target;  ///< "cpu-x86_64-znver3", "sm_90"
  std::span<const uint8_t> bytes;
};

/// A checked launch with its memory: submitting it again costs neither checks nor allocations. It holds what it uses, and every submit writes
/// the same results.
class PreparedLaunch {
public:
  std::vector<Tensor> results() const;

private:
  friend struct RuntimeAccess;
  explicit PreparedLaunch(std::shared_ptr<const hal::Launch> launch) : launch_(std::move(launch)) {}
  std::shared_ptr<const hal::Launch> launch_;
};

/// Work that a stream recorded, to be replayed as a whole: many short launches then cost about one. It holds the memory and kernels it uses.
class Graph {
public:
  uint32_t operations() const;  ///< launches, fills, copies and writes
  uint32_t launches() const;
  /// Gives launch number `launch`, counted from 0 in recorded order, other arguments for replays queued from now on; returns its results.
  /// Errors: as Stream::launch; no such launch; another kernel than the recorded one.
  Result<std::vector<Tensor>> update(uint32_t launch, const Kernel& kernel, std::span<const Argument> arguments,
                                     const LaunchOptions& options = {});

private:
  friend struct RuntimeAccess;
  Graph(std::shared_ptr<hal::Device> device, std::shared_ptr<hal::Graph> graph)
      : device_(std::move(device)), graph_(std::move(graph)) {}
  std::shared_ptr<hal::Device> device_;
  std::shared_ptr<hal::Graph> graph_;
};

/// An in-order queue of work on one device. On the CPU an operation is complete when its call returns; on GPUs it may run later.
/// A kernel that faults stops the stream: later work is skipped until the next synchronize() reports the fault.
class Stream {
public:
  /// Checks arguments and the kernel's constraints, allocates what it returns, then runs the kernel. Errors, all before anything
  /// runs: count, types, ranks; views that leave their buffers; tensors that share memory with one that is written; a constraint's
  /// own message; out of memory. A scalar result is a tensor of rank 0.
  Result<std::vector<Tensor>> launch(const Kernel& kernel, std::span<const Argument> arguments,
                                     const LaunchOptions& options = {});
  Result<std::vector<Tensor>> launch(const Kernel& kernel, std::initializer_list<Argument> arguments,
                                     const LaunchOptions& options = {}) {
    return launch(kernel, std::span(arguments.begin(), arguments.size()), options);
  }

  /// What launch() does before it runs anything, with the same errors.
  Result<PreparedLaunch> prepare(const Kernel& kernel, std::span<const Argument> arguments,
                                 const LaunchOptions& options = {}) const;
  /// Error: prepared for another device.
  Result<void> submit(const PreparedLaunch& launch);

  /// Copies a contiguous tensor's elements from or to host memory of exactly its size in bytes. read() waits for them.
  Result<void> write(const Tensor& target, const void* from, uint64_t bytes);
  Result<void> read(const Tensor& source, void* into, uint64_t bytes);
  /// The elements as a vector. Errors as read(); T is not the element type.
  template <typename T> Result<std::vector<T>> read(const Tensor& source) {
    const Result<size_t> count = elementsOf(source, dtypeOf<T>());
    if (!count)
      return count.error();
    // The vector of bools has no array of its elements.
    std::conditional_t<std::is_same_v<T, bool>, std::vector<uint8_t>, std::vector<T>> values(*count);
    if (Result<void> done = read(source, values.data(), values.size() * sizeof(T)); !done)
      return done.takeError();
    if constexpr (std::is_same_v<T, bool>)
      return std::vector<bool>(values.begin(), values.end());
    else
      return values;
  }
  /// Bytes of buffers; ranges are checked.
  Result<void> fill(const Buffer& target, uint64_t offset, uint64_t bytes, uint8_t value);
  Result<void> copy(const Buffer& target, uint64_t targetOffset, const Buffer& source, uint64_t sourceOffset,
                    uint64_t bytes);

  /// From here to endRecording() launches, writes, fills and copies are checked and recorded, not run, and everything that waits is an
  /// error. What launch() returns is written by every replay. Launches that print cannot be recorded.
  Result<void> beginRecording();
  Result<Graph> endRecording();
  /// Queues what the graph holds. Error: another stream recorded it.
  Result<void> replay(const Graph& graph);

  Result<void> record(const Event& event);
  Result<void> wait(const Event& event);  ///< later work starts after the event's latest record
  /// Waits for all work of this stream; reports a fault as "kernel 'k' stopped: E0701: message (file:line:column)".
  Result<void> synchronize();
  /// The fault that synchronize() or read() reported last.
  std::optional<Fault> lastFault() const;

private:
  friend struct RuntimeAccess;
  static Result<size_t> elementsOf(const Tensor& source, DType expected);
  Stream(std::shared_ptr<hal::Device> device, std::shared_ptr<hal::Stream> stream)
      : device_(std::move(device)), stream_(std::move(stream)) {}
  std::shared_ptr<hal::Device> device_;
  std::shared_ptr<hal::Stream> stream_;
};

class Device {
public:
  const std::string& name() const;     ///< "cpu"
  const std::string& product() const;  ///< "AMD EPYC 7763"
  const std::string&
  target() const;  ///< what kernels for it are compiled for: "cpu", "sm_90"; empty: it executes nothing
  /// With target() all that code compiled on this machine depends on: of a CPU a hash of its model and features, of a GPU empty.
  const std::string& model() const;
  uint64_t memoryBytes() const;
  uint32_t workers() const;  ///< blocks that run at the same time
  Result<uint64_t> availableBytes() const;

  /// Uninitialised, 64-byte aligned. Error: requested and available bytes.
  Result<Buffer> allocate(uint64_t bytes) const;
  /// An uninitialised row-major tensor. Errors: a negative extent; out of memory.
  Result<Tensor> empty(DType type, std::vector<int64_t> extents) const;
  /// A row-major tensor with a copy of the values. Errors: the number of values is not the product of the extents; out of memory.
  template <typename T> Result<Tensor> upload(std::span<const T> values, std::vector<int64_t> extents) const {
    return uploadBytes(dtypeOf<T>(), std::move(extents), values.data(), values.size_bytes());
  }
  Result<Tensor> uploadBytes(DType type, std::vector<int64_t> extents, const void* values, uint64_t bytes) const;
  /// A tensor over the caller's memory, without a copy; the memory must outlive every use. Over constant memory every write is
  /// refused. Errors: sizes that differ; a device that cannot use host memory.
  template <typename T> Result<Tensor> wrap(std::span<T> values, std::vector<int64_t> extents) const {
    using Element = std::remove_const_t<T>;
    return wrapBytes(dtypeOf<Element>(), std::move(extents), const_cast<Element*>(values.data()), values.size_bytes(),
                     std::is_const_v<T>);
  }
  template <typename T> Result<Tensor> wrap(std::span<T> values) const {
    return wrap(values, {static_cast<int64_t>(values.size())});
  }
  Result<Tensor> wrapBytes(DType type, std::vector<int64_t> extents, void* memory, uint64_t bytes,
                           bool readOnly = false) const;

  /// Memory of this GPU that another library allocated, without a copy; `owner` is let go of with the last handle, after the work of streams
  /// made here that uses it. Errors: memory of the host or of another device; a device without memory of its own.
  Result<Buffer> wrapDevice(uint64_t address, uint64_t bytes, std::shared_ptr<void> owner = nullptr,
                            bool readOnly = false) const;

  Result<Stream> createStream() const;
  /// The queue of another library (CUDA: a CUstream of the primary context; 0: the default stream): work goes there in its order, so that it
  /// needs no waiting before and after. The queue must outlive the Stream, which never destroys it. Faults of kernels are told by the next
  /// launch or synchronize(). Error: a device without such queues.
  Result<Stream> wrapStream(uint64_t handle) const;
  Result<Event> createEvent() const;
  /// A kernel artifact as `vortex build` writes it. Errors: damaged, another format version, another target, a processor feature
  /// that is missing.
  Result<Kernel> load(std::span<const uint8_t> artifact) const;
  /// The artifact of a plan (compiler.h): `entries` makes the code that it lacks when launches first need it, while they are prepared, never
  /// in a replay. An empty source: as load(artifact).
  Result<Kernel> load(std::span<const uint8_t> artifact, EntrySource entries) const;
  Result<Kernel> loadFile(const std::string& path) const;
  /// The one of several artifacts of a kernel that suits the device best: for GPUs the newest that it can run. Error: none does; lists targets.
  Result<Kernel> load(std::span<const EmbeddedArtifact> artifacts) const;

private:
  friend struct RuntimeAccess;
  explicit Device(std::shared_ptr<hal::Device> device) : device_(std::move(device)) {}
  std::shared_ptr<hal::Device> device_;
};

struct RuntimeOptions {
  uint32_t threads = 0;  ///< of the CPU device; 0: $VORTEX_NUM_THREADS, else all this process may use
  bool poison =
      false;  ///< CPU: fill new memory and scratch with 0xff bytes, to make reads of unwritten elements visible
  bool nullDevice = false;  ///< also offer "null", which checks launches and executes nothing
};

/// The devices of this machine. Devices of one Runtime share nothing with those of another.
class Runtime {
public:
  explicit Runtime(const RuntimeOptions& options = {});
  /// Most preferred first. Drivers that are present but broken add an error to `problems`.
  std::vector<Device> devices(std::vector<Error>* problems = nullptr) const;
  /// By name ("cpu", "cuda:1", "cuda" for the first); an empty name is the most preferred device. Error: lists the names there are.
  Result<Device> open(std::string_view name = "") const;

private:
  std::shared_ptr<hal::DriverList> drivers_;
};

}  // namespace vortex
