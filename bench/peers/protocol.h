// What bench/cpu.py expects of every side: a process that prepares its data, prints "ready", then answers each line of its input.
//   go      one measured sample: prints its nanoseconds
//           of the clock, or of the processor in all threads where VORTEX_BENCH_PROCESSOR_TIME is set: on a busy machine the clock says little
//   digest  prints a weighted sum of the output and the same sum of absolute values, by which the sides are compared
// A side sleeps between lines, so that the script can interleave the samples of several sides.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <sys/mman.h>

namespace bench {

/// Zeroed memory on huge pages where the system has them, as NumPy's large arrays are. Never freed: the process ends.
inline float* allocate(size_t count) {
  size_t bytes = (count * sizeof(float) + (2u << 20) - 1) & ~size_t{(2u << 20) - 1};
  void* memory = std::aligned_alloc(2u << 20, bytes);
  if (!memory) {
    std::fprintf(stderr, "cannot allocate %zu bytes\n", bytes);
    std::exit(1);
  }
  madvise(memory, bytes, MADV_HUGEPAGE);
  float* values = static_cast<float*>(memory);
  for (size_t i = 0; i < count; ++i)
    values[i] = 0;
  return values;
}

/// The inputs that all sides share: values in [-0.5, 0.5), the same for the same seed on every side.
inline void fill(float* values, size_t count, uint32_t seed) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t mixed = (static_cast<uint32_t>(i) + seed * 7919u) * 2654435761u;
    values[i] = static_cast<float>(mixed >> 8 & 0xffff) / 65536.0f - 0.5f;
  }
}

inline void printDigest(const float* values, size_t count) {
  double sum = 0, absolute = 0;
  for (size_t i = 0; i < count; ++i) {
    double term = static_cast<double>(values[i]) * static_cast<double>(i % 97 + 1);
    sum += term;
    absolute += std::fabs(term);
  }
  std::printf("%.17g %.17g\n", sum, absolute);
}

inline long long now() {
  static const clockid_t clock =
      std::getenv("VORTEX_BENCH_PROCESSOR_TIME") ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

/// Serves the protocol until end of input. `sample` does the measured work, `digest` prints by printDigest.
template <typename Sample, typename Digest> int serve(Sample sample, Digest digest) {
  for (int warmUp = 0; warmUp < 2; ++warmUp)
    sample();
  std::puts("ready");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line); std::fflush(stdout)) {
    if (line == "digest") {
      digest();
      continue;
    }
    const long long start = now();
    sample();
    std::printf("%lld\n", now() - start);
  }
  return 0;
}

}  // namespace bench
