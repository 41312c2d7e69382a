// Fused loop nests against plain loops in double.
#include "target/cpu/tiles/testing/tensors.h"

#include <cmath>
#include <gtest/gtest.h>

namespace vortex::target::cpu::tiles::testing {
namespace {

constexpr float kPoison = -12345;

const std::string kSoftmax = R"(
  %c0 = arith.constant 0 : index
  %m = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %n = vx.dim %x, 1 : !vx.view<?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %max = vx.reduce maxf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %d = arith.subf %t, %maxb : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %sum = vx.reduce addf %e dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %sumb = vx.broadcast %sum dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.divf %e, %sumb : tensor<?x?xf32>
)";

std::vector<double> softmax(const std::vector<float>& x, int64_t m, int64_t n, int64_t rowStride,
                            int64_t columnStride) {
  std::vector<double> result(m * n);
  for (int64_t i = 0; i < m; ++i) {
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; ++j)
      top = std::max<double>(top, x[i * rowStride + j * columnStride]);
    for (int64_t j = 0; j < n; ++j)
      sum += result[i * n + j] = std::exp(x[i * rowStride + j * columnStride] - top);
    for (int64_t j = 0; j < n; ++j)
      result[i * n + j] /= sum;
  }
  return result;
}

void expectNear(const std::vector<float>& actual, const std::vector<double>& expected, double tolerance,
                const std::string& what) {
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i << " of " << what;
}

TEST(Nest, SoftmaxOfRows) {
  TensorKernel kernel({{"x", "?x?xf32"}, {"o", "?x?xf32", true}},
                      kSoftmax +
                          "vx.tile_store %r, %o[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>");
  for (auto [m, n] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 7}, {17, 64}, {5, 1000}, {130, 33}, {0, 5}, {7, 4099}}) {
    std::vector<float> x = randomFloats(m * n, 4), out(m * n + 32, kPoison);
    ASSERT_EQ(kernel.run({Arg::tensor(x, {m, n}), Arg::strided(out.data(), {m, n}, {n, 1})}), 0u);
    expectNear(out, softmax(x, m, n, n, 1), 1e-6, std::to_string(m) + "x" + std::to_string(n));
    for (int64_t i = m * n; i < m * n + 32; ++i)
      ASSERT_EQ(out[i], kPoison);
  }
}

TEST(Nest, SoftmaxOfStridedRows) {
  TensorKernel kernel({{"x", "?x?xf32"}, {"o", "?x?xf32", true}},
                      kSoftmax +
                          "vx.tile_store %r, %o[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>");
  int64_t m = 19, n = 45;
  std::vector<float> x = randomFloats(m * n * 6), out(m * n, kPoison);
  ASSERT_EQ(kernel.run({Arg::strided(x.data(), {m, n}, {1, m}), Arg::tensor(out, {m, n})}), 0u);
  expectNear(out, softmax(x, m, n, 1, m), 1e-6, "a transposed input");
  ASSERT_EQ(kernel.run({Arg::strided(x.data(), {m, n}, {n * 4, 3}), Arg::tensor(out, {m, n})}), 0u);
  expectNear(out, softmax(x, m, n, n * 4, 3), 1e-6, "an input with gaps");
}

/// d[i, j] = s[i] - s[j] needs s twice, d - transpose(d) four times; each copy reads the one scan.
TEST(Nest, DifferencesOfAScan) {
  TensorKernel kernel({{"x", "?xf32"}, {"o", "?x?xf32", true}}, R"(
  %c0 = arith.constant 0 : index
  %m = vx.dim %x, 0 : !vx.view<?xf32, global>
  %v = vx.tile_load %x[%c0] sizes(%m) inbounds : !vx.view<?xf32, global> -> tensor<?xf32>
  %s = vx.scan maxf %v dim 0 : tensor<?xf32>
  %a = vx.broadcast %s dims [0] sizes(%m, %m) : tensor<?xf32> -> tensor<?x?xf32>
  %b = vx.broadcast %s dims [1] sizes(%m, %m) : tensor<?xf32> -> tensor<?x?xf32>
  %d = arith.subf %a, %b : tensor<?x?xf32>
  %t = vx.transpose %d [1, 0] : tensor<?x?xf32> -> tensor<?x?xf32>
  %e = arith.subf %d, %t : tensor<?x?xf32>
  %u = vx.transpose %e [1, 0] : tensor<?x?xf32> -> tensor<?x?xf32>
  %r = arith.subf %e, %u : tensor<?x?xf32>
  vx.tile_store %r, %o[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
)");
  for (int64_t m : {1, 7, 40}) {
    std::vector<float> x = randomFloats(m), out(m * m, kPoison), scan(x);
    for (int64_t i = 1; i < m; ++i)
      scan[i] = std::max(scan[i - 1], scan[i]);
    ASSERT_EQ(kernel.run({Arg::tensor(x, {m}), Arg::tensor(out, {m, m})}), 0u);
    std::vector<double> expected(m * m);
    for (int64_t i = 0; i < m * m; ++i)
      expected[i] = 4 * (static_cast<double>(scan[i / m]) - scan[i % m]);
    expectNear(out, expected, 1e-5, "m = " + std::to_string(m));
  }
}

TEST(Nest, SoftmaxInPlace) {
  TensorKernel kernel({{"x", "?x?xf32", true}},
                      kSoftmax +
                          "vx.tile_store %r, %x[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>");
  int64_t m = 33, n = 77;
  std::vector<float> x = randomFloats(m * n);
  auto expected = softmax(x, m, n, n, 1);
  ASSERT_EQ(kernel.run({Arg::tensor(x, {m, n})}), 0u);
  expectNear(x, expected, 1e-6, "x");
}

TEST(Nest, LayerNormWithStatistics) {
  TensorKernel kernel({{"x", "?x?xf32"}, {"w", "?xf32"}, {"o", "?x?xf32", true}, {"s", "?xf32", true}}, R"(
  %c0 = arith.constant 0 : index
  %m = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %n = vx.dim %x, 1 : !vx.view<?x?xf32, global>
  %ni = arith.index_cast %n : index to i64
  %nf = arith.sitofp %ni : i64 to f32
  %eps = arith.constant 1.0e-5 : f32
  %t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %wt = vx.tile_load %w[%c0] sizes(%n) inbounds : !vx.view<?xf32, global> -> tensor<?xf32>
  %wb = vx.broadcast %wt dims [1] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %nb = vx.broadcast %nf dims [] sizes(%m) : f32 -> tensor<?xf32>
  %eb = vx.broadcast %eps dims [] sizes(%m) : f32 -> tensor<?xf32>
  %s1 = vx.reduce addf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %mean = arith.divf %s1, %nb : tensor<?xf32>
  %meanb = vx.broadcast %mean dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %d = arith.subf %t, %meanb : tensor<?x?xf32>
  %q = arith.mulf %d, %d : tensor<?x?xf32>
  %s2 = vx.reduce addf %q dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %var = arith.divf %s2, %nb : tensor<?xf32>
  %vare = arith.addf %var, %eb : tensor<?xf32>
  %rstd = math.rsqrt %vare : tensor<?xf32>
  %rstdb = vx.broadcast %rstd dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %y = arith.mulf %d, %rstdb : tensor<?x?xf32>
  %z = arith.mulf %y, %wb : tensor<?x?xf32>
  vx.tile_store %z, %o[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
  vx.tile_store %rstd, %s[%c0] inbounds : tensor<?xf32>, !vx.view<?xf32, global>)");
  for (auto [m, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {9, 100}, {40, 1025}}) {
    std::vector<float> x = randomFloats(m * n, 3), w = randomFloats(n), out(m * n, kPoison), stats(m, kPoison);
    ASSERT_EQ(kernel.run({Arg::tensor(x, {m, n}), Arg::tensor(w), Arg::tensor(out, {m, n}), Arg::tensor(stats)}), 0u);
    for (int64_t i = 0; i < m; ++i) {
      double mean = 0, var = 0;
      for (int64_t j = 0; j < n; ++j)
        mean += x[i * n + j] / double(n);
      for (int64_t j = 0; j < n; ++j)
        var += (x[i * n + j] - mean) * (x[i * n + j] - mean) / double(n);
      double rstd = 1 / std::sqrt(var + 1e-5);
      ASSERT_NEAR(stats[i], rstd, 1e-5 * rstd);
      for (int64_t j = 0; j < n; ++j)
        ASSERT_NEAR(out[i * n + j], (x[i * n + j] - mean) * rstd * w[j], 3e-5);
    }
  }
}

TEST(Nest, ColumnSumsAndCentering) {
  TensorKernel kernel({{"x", "?x?xf32"}, {"o", "?x?xf32", true}, {"s", "?xf32", true}}, R"(
  %c0 = arith.constant 0 : index
  %m = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %n = vx.dim %x, 1 : !vx.view<?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %s1 = vx.reduce addf %t dims [0] : tensor<?x?xf32> -> tensor<?xf32>
  %b = vx.broadcast %s1 dims [1] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %d = arith.subf %t, %b : tensor<?x?xf32>
  vx.tile_store %s1, %s[%c0] inbounds : tensor<?xf32>, !vx.view<?xf32, global>
  vx.tile_store %d, %o[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>)");
  for (auto [m, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {9, 100}, {300, 77}, {0, 3}}) {
    std::vector<float> x = randomFloats(m * n), out(m * n, kPoison), sums(n, kPoison);
    ASSERT_EQ(kernel.run({Arg::tensor(x, {m, n}), Arg::tensor(out, {m, n}), Arg::tensor(sums)}), 0u);
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < m; ++i)
        sum += x[i * n + j];
      ASSERT_NEAR(sums[j], sum, 1e-4);
      for (int64_t i = 0; i < m; ++i)
        ASSERT_NEAR(out[i * n + j], x[i * n + j] - sum, 1e-4);
    }
  }
}

TEST(Nest, DivisionByTheSumOfAll) {
  TensorKernel kernel({{"x", "?x?xf32"}, {"o", "?x?xf32", true}}, R"(
  %c0 = arith.constant 0 : index
  %m = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %n = vx.dim %x, 1 : !vx.view<?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %q = arith.mulf %t, %t : tensor<?x?xf32>
  %s = vx.reduce addf %q dims [0, 1] : tensor<?x?xf32> -> f32
  %b = vx.broadcast %s dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
  %d = arith.divf %t, %b : tensor<?x?xf32>
  vx.tile_store %d, %o[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>)");
  for (auto [m, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {50, 3}, {300, 777}}) {
    std::vector<float> x = randomFloats(m * n), out(m * n, kPoison);
    ASSERT_EQ(kernel.run({Arg::tensor(x, {m, n}), Arg::tensor(out, {m, n})}), 0u);
    double sum = 0;
    for (float value : x)
      sum += double(value) * value;
    for (int64_t i = 0; i < m * n; ++i)
      ASSERT_NEAR(out[i], x[i] / sum, 1e-5 * (std::abs(x[i] / sum) + 1e-3));
  }
}

TEST(Nest, LargeOutputsBypassTheCaches) {
  TensorKernel kernel({{"x", "?x?xf32"}, {"o", "?x?xf32", true}}, R"(
  %c0 = arith.constant 0 : index
  %m = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %n = vx.dim %x, 1 : !vx.view<?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %q = arith.mulf %t, %t : tensor<?x?xf32>
  vx.tile_store %q, %o[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>)");
  int64_t m = 2601, n = 2999;  // 31 MB, rows unaligned
  std::vector<float> x = randomFloats(m * n);
  for (int64_t shift : {0, 1, 5}) {
    std::vector<float> out(m * n + 16, kPoison);
    for (int64_t stride : {n, n - 2}) {  // the second: rows overlap in x only
      ASSERT_EQ(kernel.run({Arg::strided(x.data(), {m, n - 2}, {stride, 1}),
                            Arg::strided(out.data() + shift, {m, n - 2}, {n - 2, 1})}),
                0u);
      int64_t wrong = 0;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n - 2; ++j)
          wrong += out[shift + i * (n - 2) + j] != x[i * stride + j] * x[i * stride + j];
      ASSERT_EQ(wrong, 0);
      ASSERT_EQ(out[shift + m * (n - 2)], kPoison);
    }
  }
}

}  // namespace
}  // namespace vortex::target::cpu::tiles::testing
