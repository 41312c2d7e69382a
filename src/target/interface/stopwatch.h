#pragma once

#include <ctime>

namespace vortex::target {

/// Processor time of the calling thread.
class Stopwatch {
public:
  /// Milliseconds since construction or the last lap.
  double lap() {
    double time = now(), elapsed = time - start_;
    start_ = time;
    return elapsed;
  }

private:
  static double now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e3 + double(time.tv_nsec) * 1e-6;
  }
  double start_ = now();
};

}  // namespace vortex::target
