// openblas <m> <threads> [n k]: C = A B, m x n of depth k (default: both m), f32, row-major. The script forces the kernels with OPENBLAS_CORETYPE.
#include "bench/peers/protocol.h"

#include <cstring>

extern "C" {
// Declared here: Debian and Ubuntu install cblas.h at different places, and these three never change.
void cblas_sgemm(int order, int transA, int transB, int m, int n, int k, float alpha, const float* a, int lda,
                 const float* b, int ldb, float beta, float* c, int ldc);
void openblas_set_num_threads(int threads);
char* openblas_get_corename(void);
}

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "core") == 0)
    return std::puts(openblas_get_corename()) < 0;
  int m = argc > 1 ? std::atoi(argv[1]) : 1024, n = argc > 3 ? std::atoi(argv[3]) : m,
      k = argc > 4 ? std::atoi(argv[4]) : m;
  openblas_set_num_threads(argc > 2 ? std::atoi(argv[2]) : 1);
  auto elements = [](int rows, int columns) { return static_cast<size_t>(rows) * static_cast<size_t>(columns); };
  size_t count = elements(m, n);
  float* a = bench::allocate(elements(m, k));
  float* b = bench::allocate(elements(k, n));
  float* c = bench::allocate(count);
  bench::fill(a, elements(m, k), 1);
  bench::fill(b, elements(k, n), 2);
  constexpr int kRowMajor = 101, kNoTranspose = 111;
  auto sample = [&] { cblas_sgemm(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1, a, k, b, n, 0, c, n); };
  return bench::serve(sample, [&] { bench::printDigest(c, count); });
}
