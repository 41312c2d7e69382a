// copy <MB>: the machine's copy bandwidth: all usable cores, the better of the library's memcpy and non-temporal stores.
#include "bench/peers/protocol.h"

#include <cstring>
#include <sched.h>
#include <thread>
#include <vector>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace {

size_t usableCores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? static_cast<size_t>(CPU_COUNT(&set)) : 1;
}

/// 64-byte aligned, count a multiple of 16.
void copyStreaming(float* out, const float* in, size_t count) {
#ifdef __SSE2__
  for (size_t i = 0; i < count; i += 16)
    for (size_t j = 0; j < 16; j += 4)
      _mm_stream_ps(out + i + j, _mm_load_ps(in + i + j));
  _mm_sfence();
#else
  std::memcpy(out, in, count * sizeof(float));
#endif
}

void copyLibrary(float* out, const float* in, size_t count) { std::memcpy(out, in, count * sizeof(float)); }

}  // namespace

int main(int argc, char** argv) {
  size_t count = static_cast<size_t>(argc > 1 ? std::atoi(argv[1]) : 64) << 18;
  bool streaming = argc > 2 && std::strcmp(argv[2], "streaming") == 0;
  float* in = bench::allocate(count);
  float* out = bench::allocate(count);
  bench::fill(in, count, 1);
  size_t cores = usableCores();
  auto sample = [&] {
    std::vector<std::thread> threads;
    size_t part = count / cores / 16 * 16;
    for (size_t i = 0; i < cores; ++i) {
      size_t begin = i * part, length = i + 1 == cores ? count - begin : part;
      threads.emplace_back(streaming ? copyStreaming : copyLibrary, out + begin, in + begin, length);
    }
    for (std::thread& thread : threads)
      thread.join();
  };
  return bench::serve(sample, [&] { bench::printDigest(out, count); });
}
