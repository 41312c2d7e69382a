// openblas <n> <threads>: C = A B, n x n, f32, row-major. The script forces the kernels with OPENBLAS_CORETYPE.
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
  int n = argc > 1 ? std::atoi(argv[1]) : 1024;
  openblas_set_num_threads(argc > 2 ? std::atoi(argv[2]) : 1);
  size_t count = static_cast<size_t>(n) * static_cast<size_t>(n);
  float* a = bench::allocate(count);
  float* b = bench::allocate(count);
  float* c = bench::allocate(count);
  bench::fill(a, count, 1);
  bench::fill(b, count, 2);
  constexpr int kRowMajor = 101, kNoTranspose = 111;
  auto sample = [&] { cblas_sgemm(kRowMajor, kNoTranspose, kNoTranspose, n, n, n, 1, a, n, b, n, 0, c, n); };
  return bench::serve(sample, [&] { bench::printDigest(c, count); });
}
