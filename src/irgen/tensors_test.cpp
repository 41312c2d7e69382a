// Whole-tensor kernels and sequential programs over tensors.
#include "irgen/test_kernel.h"

namespace vortex::irgen {
namespace {

TEST(Tensors, ElementwiseChains) {
  auto x = randomFloats(300, 1), y = randomFloats(300, 2);
  TestKernel kernel("kernel silu(x: Tensor<f32, [M, N]>, y: Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> {\n"
                    "  let z = x / (1.0 + exp(-x))\n  return z * y + 2.0\n}\n");
  kernel.tensor(x, {20, 15}).tensor(y, {20, 15}).run();
  std::vector<float> expected(300);
  for (size_t i = 0; i < 300; ++i)
    expected[i] = x[i] / (1 + std::exp(-x[i])) * y[i] + 2;
  expectNear(kernel.result<float>(), expected);
}

TEST(Tensors, SoftmaxOfRows) {
  auto x = randomFloats(7 * 13);
  TestKernel kernel("kernel rows(x: Tensor<f32, [M, N]>) -> Tensor<f32, [M, N]> {\n  return softmax(x, dim = -1)\n}\n");
  kernel.tensor(x, {7, 13}).run();
  std::vector<float> expected(x.size());
  for (int i = 0; i < 7; ++i) {
    float sum = 0;
    for (int j = 0; j < 13; ++j)
      sum += std::exp(x[i * 13 + j]);
    for (int j = 0; j < 13; ++j)
      expected[i * 13 + j] = std::exp(x[i * 13 + j]) / sum;
  }
  expectNear(kernel.result<float>(), expected);
}

TEST(Tensors, MatrixProductsAccumulate) {
  auto a = randomFloats(5 * 9, 1), b = randomFloats(9 * 4, 2), bias = randomFloats(4, 3);
  TestKernel kernel(R"(
kernel linear(a: Tensor<f32, [M, K]>, b: Tensor<f32, [K, N]>, bias: Tensor<f32, [N]>) -> Tensor<f32, [M, N]> {
  return max(a @ b + bias, 0.0)
}
)");
  kernel.tensor(a, {5, 9}).tensor(b, {9, 4}).tensor(bias, {4}).run();
  std::vector<float> expected(20);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 4; ++j) {
      float sum = bias[j];
      for (int k = 0; k < 9; ++k)
        sum += a[i * 9 + k] * b[k * 4 + j];
      expected[i * 4 + j] = std::max(sum, 0.0f);
    }
  expectNear(kernel.result<float>(), expected);
}

TEST(Tensors, RmsNormReducesAndBroadcasts) {
  auto x = randomFloats(6 * 10, 1), w = randomFloats(10, 2);
  TestKernel kernel(R"(
kernel rmsnorm(x: Tensor<f32, [M, N]>, w: Tensor<f32, [N]>, eps: f32) -> Tensor<f32, [M, N]> {
  let scale = rsqrt(mean(x * x, dim = -1, keepdim = true) + eps)
  return x * scale * w
}
)");
  kernel.tensor(x, {6, 10}).tensor(w, {10}).scalar(1e-5f).run();
  std::vector<float> expected(60);
  for (int i = 0; i < 6; ++i) {
    float sum = 0;
    for (int j = 0; j < 10; ++j)
      sum += x[i * 10 + j] * x[i * 10 + j];
    for (int j = 0; j < 10; ++j)
      expected[i * 10 + j] = x[i * 10 + j] / std::sqrt(sum / 10 + 1e-5f) * w[j];
  }
  expectNear(kernel.result<float>(), expected);
}

TEST(Tensors, UniformChoicesMergeTiles) {
  auto q = randomFloats(6 * 4, 1), k = randomFloats(6 * 4, 2), v = randomFloats(6 * 4, 3);
  TestKernel kernel(R"(
kernel attention(q: Tensor<f32, [S, D]>, k: Tensor<f32, [S, D]>, v: Tensor<f32, [S, D]>, causal: bool) -> Tensor<f32, [S, D]> {
  var scores = q @ k.transpose() / sqrt(D)
  if causal { scores = scores.mask_upper_triangle(-inf) }
  let weights = softmax(scores, dim = -1)
  return weights @ v
}
)");
  for (bool causal : {false, true}) {
    kernel.arguments.clear();
    kernel.tensor(q, {6, 4}).tensor(k, {6, 4}).tensor(v, {6, 4}).scalar(causal).run();
    std::vector<float> expected(24);
    for (int i = 0; i < 6; ++i) {
      std::vector<float> weights(6);
      float sum = 0;
      for (int j = 0; j < (causal ? i + 1 : 6); ++j) {
        float score = 0;
        for (int d = 0; d < 4; ++d)
          score += q[i * 4 + d] * k[j * 4 + d];
        sum += weights[j] = std::exp(score / 2);
      }
      for (int j = 0; j < 6; ++j)
        for (int d = 0; d < 4; ++d)
          expected[i * 4 + d] += weights[j] / sum * v[j * 4 + d];
    }
    expectNear(kernel.result<float>(), expected);
  }
}

TEST(Tensors, ScalarResultsOfReductions) {
  auto x = randomFloats(50);
  TestKernel kernel("kernel total(x: Tensor<f32, [N]>) -> f32 {\n  return sum(x * x)\n}\n");
  kernel.tensor(x, {50}).run();
  float expected = 0;
  for (float value : x)
    expected += value * value;
  expectNear(kernel.result<float>(), {expected});
}

TEST(Tensors, IndependentLoopsAreMarked) {
  auto a = randomFloats(5 * 9, 1), b = randomFloats(9 * 4, 2);
  TestKernel kernel(R"(
kernel matmul(a: Tensor<f32, [M, K]>, b: Tensor<f32, [K, N]>) -> Tensor<f32, [M, N]> {
  var out: Tensor<f32, [M, N]>
  for i in 0..M {
    for j in 0..N {
      var sum = 0.0
      for k in 0..K { sum += a[i, k] * b[k, j] }
      out[i, j] = sum
    }
  }
  return out
}
)");
  kernel.tensor(a, {5, 9}).tensor(b, {9, 4}).run();
  std::vector<float> expected(20);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 9; ++k)
        expected[i * 4 + j] += a[i * 9 + k] * b[k * 4 + j];
  expectNear(kernel.result<float>(), expected);
  EXPECT_EQ(kernel.count("vx.independent"), 2u) << kernel.text();
}

TEST(Tensors, DependentLoopsRunInOrder) {
  std::vector<int32_t> x = {3, 1, 4, 1, 5, 9, 2, 6};
  TestKernel kernel(R"(
kernel prefix(x: Tensor<i32, [N]>) -> Tensor<i32, [N]> {
  var out: Tensor<i32, [N]>
  var sum = 0
  for i in 0..N {
    sum += x[i]
    out[i] = sum
  }
  return out
}
)");
  kernel.tensor(x, {8}).run();
  EXPECT_EQ(kernel.result<int32_t>(), (std::vector<int32_t>{3, 4, 8, 9, 14, 23, 25, 31}));
}

TEST(Tensors, LoopsAreSpreadOnlyWhereNoCastOrRemainderJoinsIterations) {
  const auto grids = [](const std::string& range, const std::string& subscript) {
    return TestKernel("kernel last(x: &Tensor<i32, [N]>, out: &mut Tensor<i32, [M]>) {\n  for i in " + range +
                      " { out[" + subscript + "] = i as i32 }\n}\n")
        .count("vx.independent");
  };
  for (const char* joined : {"(i as u8) as usize", "(i as u16) as usize", "(i as u32) as usize", "(i as i8) as usize",
                             "i % M", "i / 2", "i & 255", "(i * 2) as u32"})
    EXPECT_EQ(grids("0..N", joined), 0u) << joined;
  EXPECT_EQ(grids("0..257", "(i as u8) as usize"), 0u);
  for (const char* apart : {"i", "(i as u64) as usize", "(i as i64) as usize", "i + 0", "i % 281474976710656"})
    EXPECT_EQ(grids("0..N", apart), 1u) << apart;
  EXPECT_EQ(grids("0..256", "(i as u8) as usize"), 1u);
  EXPECT_EQ(grids("0..128", "(i as i8) as usize"), 1u);
}

TEST(Tensors, IterationsThatMeetInAnElementKeepTheirOrder) {
  TestKernel kernel(R"(
kernel last(x: &Tensor<i32, [N]>) -> Tensor<i32, [256]> {
  var out: Tensor<i32, [256]>
  for i in 0..N { out[(i as u8) as usize] = x[i] }
  return out
}
)");
  std::vector<int32_t> x(1000), expected(256);
  for (int32_t i = 0; i < 1000; ++i)
    expected[i % 256] = x[i] = 3 * i + 1;
  kernel.tensor(x, {1000}).run();
  EXPECT_EQ(kernel.result<int32_t>(), expected);
}

}  // namespace
}  // namespace vortex::irgen
