// The language's numeric rules in kernels.
#include "irgen/test_kernel.h"

#include <cmath>
#include <limits>

namespace vortex::irgen {
namespace {

TEST(Numbers, IntegerOperationsAreTotal) {
  std::vector<int32_t> a = {7, -7, 5, std::numeric_limits<int32_t>::min(), 1, 9}, b = {2, 2, 0, -1, 33, -4};
  std::vector<int32_t> q(6), r(6), s(6), p(6);
  TestKernel kernel(R"(
kernel k(a: Tensor<i32, [N]>, b: Tensor<i32, [N]>, q: &mut Tensor<i32, [N]>, r: &mut Tensor<i32, [N]>, s: &mut Tensor<i32, [N]>, p: &mut Tensor<i32, [N]>) {
  let i = thread.global_id
  q[i] = a[i] / b[i]
  r[i] = a[i] % b[i]
  s[i] = a[i] << b[i]
  p[i] = a[i] ** 3
}
)");
  kernel.tensor(a, {6}).tensor(b, {6}).tensor(q, {6}).tensor(r, {6}).tensor(s, {6}).tensor(p, {6}).run();
  EXPECT_EQ(q, (std::vector<int32_t>{3, -3, 0, std::numeric_limits<int32_t>::min(), 0, -2}));
  EXPECT_EQ(r, (std::vector<int32_t>{1, -1, 0, 0, 1, 1}));
  EXPECT_EQ(s[4], 2);  // counts are taken modulo the width
  EXPECT_EQ(p, (std::vector<int32_t>{343, -343, 125, 0, 1, 729}));
}

TEST(Numbers, FloatToIntegerSaturates) {
  std::vector<float> x = {1.9f, -1.9f, 3e10f, -3e10f, std::nanf(""), 300.0f};
  std::vector<int32_t> i(6);
  std::vector<uint8_t> u(6);
  TestKernel kernel(R"(
kernel k(x: Tensor<f32, [N]>, i: &mut Tensor<i32, [N]>, u: &mut Tensor<u8, [N]>) {
  let t = thread.global_id
  i[t] = x[t] as i32
  u[t] = x[t] as u8
}
)");
  kernel.tensor(x, {6}).tensor(i, {6}).tensor(u, {6}).run();
  EXPECT_EQ(i, (std::vector<int32_t>{1, -1, INT32_MAX, INT32_MIN, 0, 300}));
  EXPECT_EQ(u, (std::vector<uint8_t>{1, 0, 255, 0, 0, 255}));
}

TEST(Numbers, SignednessDecidesWideningComparisonAndShift) {
  std::vector<int8_t> s = {-1, 5};
  std::vector<uint8_t> u = {255, 5};
  std::vector<int64_t> out(8);
  TestKernel kernel(R"(
@launch(grid = [1], block = 2)
kernel k(s: Tensor<i8, [2]>, u: Tensor<u8, [2]>, out: &mut Tensor<i64, [2, 4]>) {
  let t = thread.local_id
  out[t, 0] = s[t] as i64
  out[t, 1] = u[t] as i64
  out[t, 2] = (s[t] >> 1) as i64
  out[t, 3] = (u[t] >> 1) as i64 + (if u[t] > 100 { 1000 } else { 0 })
}
)");
  kernel.tensor(s, {2}).tensor(u, {2}).tensor(out, {2, 4}).run();
  EXPECT_EQ(out, (std::vector<int64_t>{-1, 255, -1, 1127, 5, 5, 2, 2}));
}

TEST(Numbers, NarrowFloatTilesRoundOnlyAtTheEnd) {
  TestKernel kernel("kernel k(x: Tensor<f16, [N]>) -> Tensor<f16, [N]> {\n  return (x + 1.0) * x - x\n}\n");
  EXPECT_EQ(kernel.count("arith.truncf"), 1u) << kernel.text();
  TestKernel bound("kernel k(x: Tensor<f16, [N]>) -> Tensor<f16, [N]> {\n  let y = (x + 1.0) * x\n  return y - x\n}\n");
  EXPECT_EQ(bound.count("arith.truncf"), 2u) << bound.text();
}

TEST(Numbers, ProductsOfNarrowFloatsAccumulateInF32) {
  TestKernel kernel(
      "kernel k(a: Tensor<f16, [M, K]>, b: Tensor<f16, [K, N]>) -> Tensor<f16, [M, N]> {\n  return a @ b\n}\n");
  EXPECT_EQ(kernel.count("-> tensor<?x?xf32>"), 2u) << kernel.text();  // zero and product
  EXPECT_EQ(kernel.count("arith.extf"), 0u) << kernel.text();
  TestKernel wide(R"(
kernel k(a: Tensor<bf16, [M, K]>, b: Tensor<bf16, [K, N]>) -> Tensor<f32, [M, N]> {
  var acc: Tensor<f32, [M, N]> = zeros()
  acc += a @ b
  return acc
}
)");
  EXPECT_EQ(wide.count("vx.dot"), 1u) << wide.text();
  EXPECT_EQ(wide.count("arith.addf"), 0u) << wide.text();
  EXPECT_EQ(wide.count("arith.extf"), 0u) << wide.text();
}

TEST(Numbers, ContractionFollowsTheAttributes) {
  const char* body = "kernel k(x: Tensor<f32, [N]>) -> Tensor<f32, [N]> {\n  return x * 2.0 + 1.0\n}\n";
  EXPECT_EQ(TestKernel(body).count("fastmath<contract>"), 2u);
  EXPECT_EQ(TestKernel(std::string("@strict\n") + body).count("fastmath"), 0u);
  EXPECT_EQ(TestKernel(std::string("@fastmath\n") + body).count("fastmath<fast>"), 2u);
}

TEST(Numbers, MathOfScalars) {
  auto x = randomFloats(40);
  std::vector<float> y(40);
  TestKernel kernel(R"(
kernel k(x: Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>) {
  let v = x[thread.global_id]
  y[thread.global_id] = sign(v) * sqrt(abs(v)) + clamp(v, -0.5, 0.5) + v ** 2.0 + min(v, 0.25) + floor(v) + fma(v, v, 1.0)
}
)");
  kernel.tensor(x, {40}).tensor(y, {40}).run();
  for (int i = 0; i < 40; ++i) {
    float v = x[i], s = v > 0 ? 1 : v < 0 ? -1 : v;
    ASSERT_NEAR(y[i],
                s * std::sqrt(std::abs(v)) + std::clamp(v, -0.5f, 0.5f) + v * v + std::min(v, 0.25f) + std::floor(v) +
                    v * v + 1,
                1e-4);
  }
}

}  // namespace
}  // namespace vortex::irgen
