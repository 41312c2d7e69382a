// The machine behind the stand-in for libcuda: settings, contexts, memory, and streams that are threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace fake_cuda {

enum Code : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidPtx = 218,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kOutOfResources = 701,
  kNotSupported = 801,
  kCooperativeTooLarge = 720,
  kInvalidClusterSize = 912,
  kCaptureUnsupported = 900,
  kGraphUpdateFailed = 910,
};

/// Blocks of any size.
inline constexpr int kBlocksPerCore = 2;

struct Context {
  uint64_t generation;
  int device;
};

class Stream;

struct State {
  const int process = ::getpid();  ///< forked processes have no driver
  std::mutex mutex;
  std::map<std::string, int64_t> settings, counts;
  std::map<const uint8_t*, size_t> registered;  ///< page-locked ranges
  std::map<const uint8_t*, int> copying;        ///< queued copies that use a page-locked range, by its start
  std::set<Stream*> streams;
  std::map<uint64_t, std::pair<size_t, int>> allocations;  ///< bytes and device by address
  std::atomic<int> ending{0};                              ///< destroyed streams that still run what was queued
  std::atomic<int64_t> liveBytes{0};
  std::atomic<int> sticky{0};  ///< the code that ended the context; 0: it lives
  std::atomic<uint64_t> generation{1};
};
State& state();
int64_t setting(const std::string& key);

/// Contexts pushed on this thread.
std::vector<Context*>& contextStack();
/// Counts the call; the code to return at once, or success.
int enter(const char* symbol, bool needsContext = true);

class Stream {
public:
  /// Of the current context's device.
  Stream();
  /// Success if the current context is of the stream's device.
  int check() const;
  /// `always`: also when the context has ended, as what only wakes waiters.
  void add(std::function<void()> operation, bool always = false);
  void synchronize();
  /// Its thread ends when it has run what is queued.
  void finish();
  /// Until endCapture() operations are kept instead of run.
  void beginCapture();
  std::vector<std::function<void()>> endCapture();
  bool isCapturing();
  std::atomic<bool> forbids{
      false};  ///< a capture that keeps other calls of any thread away (CU_STREAM_CAPTURE_MODE_GLOBAL)

private:
  void work();
  std::mutex mutex_;
  std::condition_variable changed_;
  struct Operation {
    std::function<void()> run;
    bool always;
  };
  std::deque<Operation> queue_;
  bool capturing_ = false;
  std::vector<std::function<void()>> captured_;
  bool busy_ = false, ending_ = false;
  const int device_;
  std::thread worker_;
};
void synchronizeAll();
/// The default stream of the current context's device for the handles that name it (0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD), else `stream`.
Stream* named(Stream* stream);

struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0;       ///< the number of the last recording
  std::set<uint64_t> pending;  ///< recordings in streams that have not come to them: each is waited for by itself
  int64_t nanoseconds = 0;
  void waitFor(uint64_t number);
};
using EventRef = std::shared_ptr<Event>;

int allocateBytes(uint64_t* pointer, size_t bytes);
void freeBytes(uint64_t pointer);
bool isRegistered(const void* pointer);
/// Queues a copy that reads or writes this page-locked memory; the range counts as in use until it has run or was skipped.
void addPinnedCopy(Stream& stream, const void* pinned, std::function<void()> copy);
inline uint8_t* memory(uint64_t pointer) { return reinterpret_cast<uint8_t*>(pointer); }

/// Runs the C function of this name for every block and writes the report. `parameter`: slots and report, or with maps. "crash", what is
/// compiled from a kernel of this name, and maps of memory that nobody allocated end the context.
void runBlocks(const std::string& name, const std::vector<uint64_t>& parameter, const unsigned (&grid)[3],
               unsigned sharedBytes);

}  // namespace fake_cuda
