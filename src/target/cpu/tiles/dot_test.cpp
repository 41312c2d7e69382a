// Products, with what is fused into them, against plain loops in double.
#include "target/cpu/tiles/testing/tensors.h"

#include <cmath>
#include <gtest/gtest.h>

namespace vortex::target::cpu::tiles::testing {
namespace {

constexpr float kDotPoison = -12345;

const std::string kOperands = R"(
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = vx.dim %a, 0 : !vx.view<?x?xf32, global>
  %k = vx.dim %a, 1 : !vx.view<?x?xf32, global>
  %n = vx.dim %o, 1 : !vx.view<?x?xf32, global>
  %ta = vx.tile_load %a[%c0, %c0] sizes(%m, %k) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %acc = vx.broadcast %zero dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
)";
const std::string kPlainB = R"(
  %tb = vx.tile_load %b[%c0, %c0] sizes(%k, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
)";
const std::string kDot = R"(
  %d = vx.dot %ta, %tb, %acc : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
)";
const std::string kStore = R"(
  vx.tile_store %d, %o[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
)";
const std::vector<Argument> kMatrices = {{"a", "?x?xf32"}, {"b", "?x?xf32"}, {"o", "?x?xf32", true}};

struct Sizes {
  int64_t m, n, k;
};
const std::vector<Sizes> kSizes = {{1, 1, 1},     {3, 5, 31},   {1, 300, 64}, {200, 1, 77},  {4, 4, 0},     {17, 33, 5},
                                   {66, 64, 300}, {5, 3, 1100}, {0, 4, 3},    {70, 90, 100}, {129, 257, 33}};

std::vector<double> product(const std::vector<float>& a, const std::vector<float>& b, Sizes s) {
  std::vector<double> result(s.m * s.n);
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t k = 0; k < s.k; ++k)
      for (int64_t j = 0; j < s.n; ++j)
        result[i * s.n + j] += double(a[i * s.k + k]) * b[k * s.n + j];
  return result;
}

void check(const std::vector<float>& out, const std::vector<double>& expected, Sizes s, double tolerance) {
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::isnan(out[i]) ? INFINITY : std::abs(out[i] - expected[i]));
  EXPECT_LE(worst, tolerance * (1 + std::sqrt(double(s.k)))) << s.m << "x" << s.n << "x" << s.k;
  for (size_t i = expected.size(); i < out.size(); ++i)
    ASSERT_EQ(out[i], kDotPoison);
}

TEST(Dot, Plain) {
  TensorKernel kernel(kMatrices, kOperands + kPlainB + kDot + kStore);
  for (Sizes s : kSizes) {
    std::vector<float> a = randomFloats(s.m * s.k), b = randomFloats(s.k * s.n), out(s.m * s.n + 16, kDotPoison);
    ASSERT_EQ(kernel.run({Arg::tensor(a, {s.m, s.k}), Arg::tensor(b, {s.k, s.n}),
                          Arg::strided(out.data(), {s.m, s.n}, {s.n, 1})}),
              0u);
    check(out, product(a, b, s), s, 5e-6);
  }
}

TEST(Dot, LargeAndRagged) {
  TensorKernel kernel(kMatrices, kOperands + kPlainB + kDot + kStore);
  Sizes s{1000, 1003, 999};
  std::vector<float> a = randomFloats(s.m * s.k), b = randomFloats(s.k * s.n), out(s.m * s.n + 16, kDotPoison);
  ASSERT_EQ(kernel.run({Arg::tensor(a, {s.m, s.k}), Arg::tensor(b, {s.k, s.n}),
                        Arg::strided(out.data(), {s.m, s.n}, {s.n, 1})}),
            0u);
  // The worst of a million sums lies further out than that of the small ones (1.08e-4 was seen); a wrong element is off by about 1.
  check(out, product(a, b, s), s, 6e-6);
}

TEST(Dot, StridedOperands) {
  TensorKernel kernel(kMatrices, kOperands + kPlainB + kDot + kStore);
  for (Sizes s : kSizes) {
    // a column-major, b with gaps between columns.
    std::vector<float> a = randomFloats(s.m * s.k), b = randomFloats(s.k * s.n), out(s.m * s.n + 16, kDotPoison);
    std::vector<float> at(a.size()), gaps(b.size() * 2 + 1, NAN);
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t k = 0; k < s.k; ++k)
        at[k * s.m + i] = a[i * s.k + k];
    for (size_t i = 0; i < b.size(); ++i)
      gaps[2 * i] = b[i];
    ASSERT_EQ(
        kernel.run({Arg::strided(at.data(), {s.m, s.k}, {1, s.m}), Arg::strided(gaps.data(), {s.k, s.n}, {2 * s.n, 2}),
                    Arg::strided(out.data(), {s.m, s.n}, {s.n, 1})}),
        0u);
    check(out, product(a, b, s), s, 5e-6);
  }
}

TEST(Dot, StoredAndConsumed) {
  // The raw product and a function of it, from one computation.
  TensorKernel kernel({{"a", "?x?xf32"}, {"b", "?x?xf32"}, {"o", "?x?xf32", true}, {"r", "?x?xf32", true}},
                      kOperands + kPlainB + kDot + kStore + R"(
  %neg = arith.negf %d : tensor<?x?xf32>
  vx.tile_store %neg, %r[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>)");
  for (Sizes s : kSizes) {
    std::vector<float> a = randomFloats(s.m * s.k), b = randomFloats(s.k * s.n), out(s.m * s.n, kDotPoison),
                       other = out;
    ASSERT_EQ(kernel.run({Arg::tensor(a, {s.m, s.k}), Arg::tensor(b, {s.k, s.n}), Arg::tensor(out, {s.m, s.n}),
                          Arg::tensor(other, {s.m, s.n})}),
              0u);
    check(out, product(a, b, s), s, 5e-6);
    for (size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], -other[i]);
  }
}

/// Two sums that a loop carries, whose products share an operand that is computed once.
TEST(Dot, CarriedSumsOfProductsThatShareAnOperand) {
  const char* const view = "!vx.view<16x16xf32, global>";
  const char* const body = R"(
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zeros = arith.constant dense<0.0> : tensor<16x16xf32>
  %x = vx.tile_load %a[%c0, %c0] inbounds : VIEW -> tensor<16x16xf32>
  %y = vx.tile_load %b[%c0, %c0] inbounds : VIEW -> tensor<16x16xf32>
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %zeros, %q = %zeros) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
    %d = vx.dot %x, %y, %zeros : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %e = math.exp %d : tensor<16x16xf32>
    %p2 = vx.dot %e, %x, %p : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %m = arith.mulf %e, %x : tensor<16x16xf32>
    %q2 = vx.dot %m, %y, %q : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %p2, %q2 : tensor<16x16xf32>, tensor<16x16xf32>
  }
  vx.tile_store %r#0, %o[%c0, %c0] inbounds : tensor<16x16xf32>, VIEW
  vx.tile_store %r#1, %s[%c0, %c0] inbounds : tensor<16x16xf32>, VIEW
)";
  std::string text = body;
  for (size_t at; (at = text.find("VIEW")) != std::string::npos;)
    text.replace(at, 4, view);
  TensorKernel kernel({{"a", "16x16xf32"}, {"b", "16x16xf32"}, {"o", "16x16xf32", true}, {"s", "16x16xf32", true}},
                      text);
  const Sizes s{16, 16, 16};
  std::vector<float> a = randomFloats(256, 0.3f), b = randomFloats(256, 0.3f), out(272, kDotPoison),
                     second(272, kDotPoison);
  ASSERT_EQ(kernel.run({Arg::tensor(a, {16, 16}), Arg::tensor(b, {16, 16}), Arg::tensor(out, {16, 16}),
                        Arg::tensor(second, {16, 16})}),
            0u);
  std::vector<float> e, m;
  for (double sum : product(a, b, s)) {
    e.push_back(static_cast<float>(std::exp(sum)));
    m.push_back(e.back() * a[m.size()]);
  }
  std::vector<double> expected = product(e, a, s), expectedSecond = product(m, b, s);
  for (std::vector<double>* sums : {&expected, &expectedSecond})
    for (double& sum : *sums)
      sum *= 3;
  check(out, expected, s, 1e-3);
  check(second, expectedSecond, s, 1e-3);
}

TEST(Dot, TransposedBiasAndActivation) {
  TensorKernel kernel({{"a", "?x?xf32"}, {"b", "?x?xf32"}, {"v", "?xf32"}, {"o", "?x?xf32", true}}, kOperands + R"(
  %bt = vx.tile_load %b[%c0, %c0] sizes(%n, %k) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %tb = vx.transpose %bt [1, 0] : tensor<?x?xf32> -> tensor<?x?xf32>
  %p = vx.dot %ta, %tb, %acc : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %tv = vx.tile_load %v[%c0] sizes(%n) inbounds : !vx.view<?xf32, global> -> tensor<?xf32>
  %vb = vx.broadcast %tv dims [1] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %s = arith.addf %p, %vb : tensor<?x?xf32>
  %d = math.tanh %s : tensor<?x?xf32>
)" + kStore);
  for (Sizes s : kSizes) {
    std::vector<float> a = randomFloats(s.m * s.k, 0.2f), b = randomFloats(s.k * s.n, 0.2f), bias = randomFloats(s.n),
                       out(s.m * s.n + 16, kDotPoison);
    std::vector<float> bt(b.size());
    for (int64_t k = 0; k < s.k; ++k)
      for (int64_t j = 0; j < s.n; ++j)
        bt[j * s.k + k] = b[k * s.n + j];
    auto expected = product(a, b, s);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = std::tanh(expected[i] + bias[i % s.n]);
    ASSERT_EQ(kernel.run({Arg::tensor(a, {s.m, s.k}), Arg::tensor(bt, {s.n, s.k}), Arg::tensor(bias),
                          Arg::strided(out.data(), {s.m, s.n}, {s.n, 1})}),
              0u);
    check(out, expected, s, 5e-6);
  }
}

TEST(Dot, Attention) {
  // softmax(q kᵀ) v per head, one phase.
  TensorKernel kernel({{"q", "?x?x?xf32"}, {"k", "?x?x?xf32"}, {"v", "?x?x?xf32"}, {"o", "?x?x?xf32", true}}, R"(
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %h = vx.dim %q, 0 : !vx.view<?x?x?xf32, global>
  %s = vx.dim %q, 1 : !vx.view<?x?x?xf32, global>
  %e = vx.dim %q, 2 : !vx.view<?x?x?xf32, global>
  %tq = vx.tile_load %q[%c0, %c0, %c0] sizes(%h, %s, %e) inbounds : !vx.view<?x?x?xf32, global> -> tensor<?x?x?xf32>
  %tk = vx.tile_load %k[%c0, %c0, %c0] sizes(%h, %s, %e) inbounds : !vx.view<?x?x?xf32, global> -> tensor<?x?x?xf32>
  %tv = vx.tile_load %v[%c0, %c0, %c0] sizes(%h, %s, %e) inbounds : !vx.view<?x?x?xf32, global> -> tensor<?x?x?xf32>
  %kt = vx.transpose %tk [0, 2, 1] : tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %acc = vx.broadcast %zero dims [] sizes(%h, %s, %s) : f32 -> tensor<?x?x?xf32>
  %x = vx.dot %tq, %kt, %acc : tensor<?x?x?xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %max = vx.reduce maxf %x dims [2] : tensor<?x?x?xf32> -> tensor<?x?xf32>
  %maxb = vx.broadcast %max dims [0, 1] sizes(%h, %s, %s) : tensor<?x?xf32> -> tensor<?x?x?xf32>
  %d = arith.subf %x, %maxb : tensor<?x?x?xf32>
  %p = math.exp %d : tensor<?x?x?xf32>
  %sum = vx.reduce addf %p dims [2] : tensor<?x?x?xf32> -> tensor<?x?xf32>
  %sumb = vx.broadcast %sum dims [0, 1] sizes(%h, %s, %s) : tensor<?x?xf32> -> tensor<?x?x?xf32>
  %w = arith.divf %p, %sumb : tensor<?x?x?xf32>
  %acc2 = vx.broadcast %zero dims [] sizes(%h, %s, %e) : f32 -> tensor<?x?x?xf32>
  %r = vx.dot %w, %tv, %acc2 : tensor<?x?x?xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  vx.tile_store %r, %o[%c0, %c0, %c0] inbounds : tensor<?x?x?xf32>, !vx.view<?x?x?xf32, global>)");
  for (auto [h, s, e] : std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {2, 5, 16}, {3, 100, 64}, {1, 200, 30}}) {
    std::vector<float> q = randomFloats(h * s * e), k = randomFloats(h * s * e), v = randomFloats(h * s * e),
                       out(h * s * e, kDotPoison);
    ASSERT_EQ(kernel.run({Arg::tensor(q, {h, s, e}), Arg::tensor(k, {h, s, e}), Arg::tensor(v, {h, s, e}),
                          Arg::tensor(out, {h, s, e})}),
              0u);
    for (int64_t b = 0; b < h; ++b)
      for (int64_t i = 0; i < s; ++i) {
        std::vector<double> row(s), expected(e);
        double top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < s; ++j) {
          for (int64_t c = 0; c < e; ++c)
            row[j] += double(q[(b * s + i) * e + c]) * k[(b * s + j) * e + c];
          top = std::max(top, row[j]);
        }
        for (double& value : row)
          sum += value = std::exp(value - top);
        for (int64_t j = 0; j < s; ++j)
          for (int64_t c = 0; c < e; ++c)
            expected[c] += row[j] / sum * v[(b * s + j) * e + c];
        for (int64_t c = 0; c < e; ++c)
          ASSERT_NEAR(out[(b * s + i) * e + c], expected[c], 1e-4) << b << " " << i << " " << c << " of " << s;
      }
  }
}

}  // namespace
}  // namespace vortex::target::cpu::tiles::testing
