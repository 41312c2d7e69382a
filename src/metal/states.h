// What is behind the objects of vortex::metal.
#pragma once

#include "vortex/metal/metal.h"
#include "vortex/metal_program.h"
#include "vortex/mirror.h"

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <sstream>
#include <thread>
#include <variant>

namespace vortex::metal {

inline constexpr NS::UInteger kMostIndices = 31, kMostInlineBytes = 4096;

template <typename... Parts> std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

NS::Error* makeError(const std::string& text);
/// Sets it where someone asks for it; null.
std::nullptr_t fail(NS::Error** error, const std::string& text);

template <> struct State<MTL::Device> {
  State(vortex::Device device, Stream stream) : device(std::move(device)), stream(std::move(stream)) {}
  vortex::Device device;
  std::mutex mutex;  ///< one command buffer runs at a time: mirrors are for one thread
  Stream stream;
  MTL::Device* object = nullptr;  ///< lives as long as the program
};
using DeviceState = State<MTL::Device>;

template <> struct State<MTL::Buffer> {
  DeviceState* device = nullptr;
  NS::UInteger length = 0;
  MTL::StorageMode mode = MTL::StorageModeShared;
  std::optional<Mirror> mirror;  ///< unless it is private
  vortex::Buffer memory;         ///< of private ones
  void* host = nullptr;

  /// For work queued next. With the device's mutex.
  Result<vortex::Buffer> forDevice(bool isWritten);
};

template <> struct State<MTL::CompileOptions> {
  MTL::LanguageVersion version = MTL::LanguageVersion3_2;
  std::vector<std::string> definitions;
};

template <> struct State<MTL::FunctionConstantValues> {
  std::map<uint32_t, double> byIndex;
  std::map<std::string, double> byName;
  std::string problem;
};

template <> struct State<MTL::Library> {
  DeviceState* device = nullptr;
  MetalProgram program;
};

template <> struct State<MTL::Function> {
  std::shared_ptr<State<MTL::Library>> library;
  MetalKernelInfo kernel;
  std::map<uint32_t, double> constants;
};

/// Code of a pipeline for threadgroups of one size.
struct Variant {
  std::optional<Kernel> kernel;
  std::vector<MetalBufferUse> buffers;
  std::vector<DType> types;  ///< of the launch's parameters
};

template <> struct State<MTL::ComputePipelineState> {
  std::shared_ptr<State<MTL::Function>> function;
  DeviceState* device = nullptr;
  MetalCode interface;
  uint32_t maxThreads = 1024;
  std::mutex mutex;
  std::map<std::tuple<std::array<int64_t, 3>, bool, std::map<uint32_t, uint64_t>>, std::shared_ptr<const Variant>>
      variants;

  /// Compiled at the first call for these numbers. Errors: as MetalProgram::build.
  Result<std::shared_ptr<const Variant>> variant(const std::array<int64_t, 3>& block, bool isWhole,
                                                 const std::map<uint32_t, uint64_t>& threadgroupBytes);
};

/// What is bound to an index: a buffer from an offset on, or bytes.
struct Binding {
  std::shared_ptr<State<MTL::Buffer>> buffer;
  NS::UInteger offset = 0;
  std::shared_ptr<std::vector<uint64_t>> inlined;
  NS::UInteger inlinedBytes = 0;

  bool isSet() const { return buffer || inlined; }
  NS::UInteger bytes() const { return inlined ? inlinedBytes : buffer->length - offset; }
};

struct Dispatch {
  std::string kernel;
  std::shared_ptr<const Variant> variant;
  std::vector<Binding> bindings;  ///< of variant->buffers
  std::array<int64_t, 3> grid{}, block{};
};
struct Copy {
  std::shared_ptr<State<MTL::Buffer>> from, to;
  NS::UInteger fromOffset, toOffset, bytes;
};
struct Fill {
  std::shared_ptr<State<MTL::Buffer>> to;
  NS::UInteger offset, bytes;
  uint8_t value;
};
using Command = std::variant<Dispatch, Copy, Fill>;

/// Runs what is committed, in order, in a thread of its own.
class Worker {
public:
  Worker();
  ~Worker();
  void add(std::function<void()> work);
  bool isThis() const { return std::this_thread::get_id() == thread_.get_id(); }

private:
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> work;
    bool isEnding = false;
  };
  static void run(const std::shared_ptr<Queue>& queue);
  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;
};

template <> struct State<MTL::CommandQueue> {
  DeviceState* device = nullptr;
  std::string label;
  Worker worker;

  /// Command buffers run in the order of their places.
  void reserve(const State<MTL::CommandBuffer>& buffer);
  /// In its place, or in the last one.
  void commit(MTL::CommandBuffer* buffer);
  /// It is gone: the others do not wait for it.
  void giveUp(const State<MTL::CommandBuffer>& buffer);

private:
  struct Place {
    const State<MTL::CommandBuffer>* owner;
    NS::SharedPtr<MTL::CommandBuffer> committed;  ///< null: others wait for it
  };
  Place* placeOf(const State<MTL::CommandBuffer>& buffer);
  void start();

  std::mutex mutex_;  ///< of what follows
  std::deque<Place> places_;
};

template <> struct State<MTL::CommandBuffer> {
  ~State() { queue->giveUp(*this); }
  std::shared_ptr<State<MTL::CommandQueue>> queue;
  std::vector<Command> commands;
  bool hasOpenEncoder = false;

  mutable std::mutex mutex;  ///< of what follows
  std::condition_variable changed;
  MTL::CommandBufferStatus status = MTL::CommandBufferStatusNotEnqueued;
  bool isDone = false;  ///< the handlers have returned
  std::string problem;  ///< the first one; not empty: the status is an error
  std::vector<MTL::CommandBuffer::HandlerFunction> scheduled, completed;
  double start = 0, end = 0;

  void misuse(const std::string& text);
  bool isGood() const;
  bool isCommitted() const;
  void run(MTL::CommandBuffer* object);
};
using CommandBufferState = State<MTL::CommandBuffer>;

template <> struct State<MTL::ComputeCommandEncoder> {
  NS::SharedPtr<MTL::CommandBuffer> buffer;
  bool isOpen = true;
  std::shared_ptr<State<MTL::ComputePipelineState>> pipeline;
  std::array<Binding, kMostIndices> bindings;
  std::map<uint32_t, uint64_t> threadgroupBytes;

  /// False, and an error of the command buffer: the encoder has ended.
  bool accepts(const char* call) const;
  void misuse(const char* call, const std::string& text) const;
  void dispatch(const char* call, const std::array<uint64_t, 3>& grid, const MTL::Size& block);
  Result<void> checkSizes(const std::array<uint64_t, 3>& grid, const MTL::Size& block) const;
  Result<void> bind(Dispatch& dispatch) const;
};

template <> struct State<MTL::BlitCommandEncoder> {
  NS::SharedPtr<MTL::CommandBuffer> buffer;
  bool isOpen = true;
  bool accepts(const char* call) const;
  void misuse(const char* call, const std::string& text) const;
};

/// A dispatch of a capture: the events around it.
struct TracedDispatch {
  std::string kernel;
  std::array<int64_t, 3> grid, block;
  Event begin, end;
  const void* queue;
  std::string queueLabel;
  std::shared_ptr<const Variant> variant;
};

template <> struct State<MTL::CaptureDescriptor> {
  NS::Object* object = nullptr;
  MTL::CaptureDestination destination = MTL::CaptureDestinationDeveloperTools;
  std::string path;
};

template <> struct State<MTL::CaptureManager> {
  mutable std::mutex mutex;
  bool isCapturing = false;
  DeviceState* device = nullptr;
  const State<MTL::CommandQueue>* queue = nullptr;  ///< null: all of the device
  std::string path;
  std::optional<Event> origin;
  std::vector<TracedDispatch> dispatches;

  bool isCaptured(const State<MTL::CommandQueue>& from) const;
  void add(TracedDispatch dispatch);
};
State<MTL::CaptureManager>& captures();

}  // namespace vortex::metal
