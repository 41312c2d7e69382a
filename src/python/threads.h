// The interpreter's lock, around work that needs no Python.
//
// What Python ends while a daemon thread works without the lock: taking the lock again would end that thread by unwinding its C++ frames,
// which terminates the process. Such threads sleep instead, as they do in Python from 3.14 on.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace vortex::python {

namespace nb = nanobind;

class Leaving {
public:
  /// Called by `atexit`, holding the lock: from now on other threads stay out, those that wait for the lock come in first.
  static void begin() {
    last_ = std::this_thread::get_id();
    isLeaving_ = true;
    PyThreadState* state = PyEval_SaveThread();
    while (entering_ > 0)
      std::this_thread::yield();
    PyEval_RestoreThread(state);
  }
  /// For a thread other than the one that ends Python.
  static bool isOver() { return isLeaving_ && std::this_thread::get_id() != last_; }
  /// Takes the lock by `take`; sleeps for ever when Python is ending.
  template <typename Take> static auto enter(const Take& take) {
    ++entering_;
    if (isOver()) {
      --entering_;
      for (;;)
        std::this_thread::sleep_for(std::chrono::hours(1));
    }
    struct Entered {
      ~Entered() { --entering_; }
    } entered;
    return take();
  }

private:
  static inline std::atomic<bool> isLeaving_{false};
  static inline std::atomic<int> entering_{0};
  static inline std::thread::id last_;
};

/// The result of work done without the lock. It is looked at with the lock: raising an exception needs it.
template <typename Work> auto unlocked(const Work& work) {
  PyThreadState* state = PyEval_SaveThread();
  auto result = work();
  Leaving::enter([&] { PyEval_RestoreThread(state); });
  return result;
}

/// Runs `work`, which calls Python, on a thread that does not hold the lock.
template <typename Work> void locked(const Work& work) {
  const PyGILState_STATE state = Leaving::enter([] { return PyGILState_Ensure(); });
  work();
  PyGILState_Release(state);
}

/// Threads whose caller may have left. The libraries that they use are taken down behind the end of Python: the process then ends without that.
class Unheard {
public:
  Unheard() { ++working_; }
  ~Unheard() { --working_; }
  Unheard(const Unheard&) = delete;
  Unheard& operator=(const Unheard&) = delete;

  /// Called when Python has ended. What is registered here runs before whatever the libraries have registered until now.
  static void atEnd() {
    on_exit(
        [](int status, void*) {
          if (working_ == 0)
            return;
          std::fflush(nullptr);
          _exit(status);
        },
        nullptr);
  }

private:
  static inline std::atomic<int> working_{0};
};

/// Long work that Ctrl-C ends for its caller: another thread does it, and finishes it unheard. `work` owns what it uses.
template <typename Work> auto interruptible(Work work) {
  using Done = std::invoke_result_t<Work>;
  auto task = std::make_shared<std::packaged_task<Done()>>(std::move(work));
  std::future<Done> done = task->get_future();
  std::thread([task = std::move(task), unheard = std::make_unique<Unheard>()]() mutable {
    (*task)();
    task.reset();
  }).detach();
  constexpr auto kPoll = std::chrono::milliseconds(50);
  while (unlocked([&] { return done.wait_for(kPoll); }) != std::future_status::ready)
    if (PyErr_CheckSignals() != 0)
      throw nb::python_error();
  return done.get();
}

inline void bindThreads() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&Leaving::begin));
  Py_AtExit(&Unheard::atEnd);
}

}  // namespace vortex::python
