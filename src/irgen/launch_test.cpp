// The launch interface: constraints, specialisation, results, temporaries, output.
#include "irgen/test_kernel.h"

namespace vortex::irgen {
namespace {

TEST(Launch, ConstraintsNameBothArgumentsAndNumbers) {
  auto a = randomFloats(6), b = randomFloats(8);
  TestKernel kernel(
      "kernel mm(a: Tensor<f32, [M, K]>, b: Tensor<f32, [K, N]>) -> Tensor<f32, [M, N]> {\n  return a @ b\n}\n");
  kernel.expectFindings = true;
  kernel.tensor(a, {2, 3}).tensor(b, {4, 2}).run();
  ASSERT_EQ(kernel.found.size(), 1u);
  EXPECT_EQ(kernel.found[0].message, "`b` has 4 rows but `a` has 3 columns (dimension K)");
}

TEST(Launch, ExpressionsInShapesAreChecked) {
  auto q = randomFloats(4), w = randomFloats(10);
  TestKernel kernel(
      "kernel k(q: Tensor<f32, [D]>, w: Tensor<f32, [3 * D]>) -> Tensor<f32, [D]> {\n  return q * w[0..D]\n}\n");
  kernel.expectFindings = true;
  kernel.tensor(q, {4}).tensor(w, {10}).run();
  ASSERT_EQ(kernel.found.size(), 1u);
  EXPECT_EQ(kernel.found[0].message, "`w` has 10 elements, but 3*D is 12");
}

TEST(Launch, EnumsHaveTheirValuesAlone) {
  for (int32_t number = -3; number < 9; ++number) {
    std::vector<float> x{1};
    TestKernel kernel("enum Mode { Zero, One, Five = 5, Six, Low = -2 }\n"
                      "kernel k(x: Tensor<f32, [N]>, m: Mode) -> Tensor<f32, [N]> {\n  return x + (m as f32)\n}\n");
    kernel.expectFindings = true;
    kernel.tensor(x, {1}).scalar(number).run();
    const bool isValue = number == 0 || number == 1 || number == 5 || number == 6 || number == -2;
    ASSERT_EQ(kernel.found.empty(), isValue) << number;
    if (!isValue)
      EXPECT_EQ(kernel.found[0].message, "`m` is " + std::to_string(number) + ", which is no value of `Mode`");
  }
}

TEST(Launch, SharedShapesAreSpecialised) {
  const char* text = R"(
kernel k(x: Tensor<f32, [N]>, w: Tensor<f32, [T]>) -> Tensor<f32, [N]> {
  let tile: Tensor<f32, [T]> @shared
  if thread.local_id < T { tile[thread.local_id] = w[thread.local_id] }
  sync_block()
  return x[thread.global_id] * tile[0]
}
)";
  Options options;
  options.dims = {std::nullopt, 5};
  auto x = randomFloats(10), w = randomFloats(5);
  TestKernel kernel(text, options);
  kernel.tensor(x, {10}).tensor(w, {5}).run();
  std::vector<float> expected = x;
  for (float& value : expected)
    value *= w[0];
  expectNear(kernel.result<float>(), expected);
  EXPECT_EQ(kernel.count("<5xf32, shared>"), kernel.count(", shared>")) << kernel.text();
}

TEST(Launch, ExplicitLaunchesOverrideTheGrid) {
  Options options;
  options.isGridGiven = true;
  options.block = {{32, 1, 1}};
  std::vector<int32_t> y(96);
  TestKernel kernel(R"(
kernel k(y: &mut Tensor<i32, [96]>) {
  y[block.id.x * block.dim.x + thread.local_id] = (block.id.x * 100 + thread.local_id) as i32
}
fn main() {
  var y: Tensor<i32, [96]> = zeros([96])
  k.launch(grid = [3], block = 32)(&mut y)
}
)",
                    options);
  kernel.grid = {{3, 1, 1}};
  kernel.tensor(y, {96}).run();
  for (int i = 0; i < 96; ++i)
    ASSERT_EQ(y[i], i / 32 * 100 + i % 32);
  kernel.grid = {{1, 1, 1}};  // the same module
  y.assign(96, -1);
  kernel.run();
  for (int i = 0; i < 96; ++i)
    ASSERT_EQ(y[i], i < 32 ? i : -1);
}

TEST(Launch, SeveralResultsAreATuple) {
  auto x = randomFloats(12);
  TestKernel kernel(R"(
kernel split(x: Tensor<f32, [M, N]>) -> (Tensor<f32, [M, N]>, Tensor<f32, [M]>) {
  return (x * 2.0, sum(x, dim = 1))
}
)");
  kernel.tensor(x, {3, 4}).run();
  auto twice = kernel.result<float>(0), sums = kernel.result<float>(1);
  for (int i = 0; i < 3; ++i) {
    float sum = 0;
    for (int j = 0; j < 4; ++j) {
      ASSERT_FLOAT_EQ(twice[i * 4 + j], 2 * x[i * 4 + j]);
      sum += x[i * 4 + j];
    }
    ASSERT_NEAR(sums[i], sum, 1e-5);
  }
}

TEST(Launch, UnwrittenElementsOfNamedResultsAreZero) {
  auto x = randomFloats(10);
  TestKernel kernel(R"(
kernel evens(x: Tensor<f32, [N]>) -> Tensor<f32, [N]> {
  var out: Tensor<f32, [N]>
  let i = thread.global_id
  if i % 2 == 0 { out[i] = x[i] }
  return out
}
)");
  kernel.tensor(x, {10}).run();
  auto out = kernel.result<float>();
  for (int i = 0; i < 10; ++i)
    ASSERT_EQ(out[i], i % 2 ? 0 : x[i]);
}

TEST(Launch, StructParametersAreTheirFields) {
  auto x = randomFloats(6), y = randomFloats(6, 9);
  TestKernel kernel(R"(
struct Pair { a: Tensor<f32, [N]>, b: Tensor<f32, [N]>, scale: f32 }
kernel k(p: &Pair) -> Tensor<f32, [N]> {
  return p.a[thread.global_id] + p.scale * p.b[thread.global_id]
}
)");
  kernel.tensor(x, {6}).tensor(y, {6}).scalar(3.0f).run();
  auto out = kernel.result<float>();
  for (int i = 0; i < 6; ++i)
    ASSERT_FLOAT_EQ(out[i], x[i] + 3 * y[i]);
}

TEST(Launch, AssertionsCarryTheirPlace) {
  std::vector<int32_t> x = {1, 2, -3, 4};
  TestKernel kernel("kernel k(x: Tensor<i32, [N]>) {\n  assert(x[thread.global_id] > 0, \"positive\")\n}\n");
  kernel.expectFindings = true;
  kernel.tensor(x, {4}).run();
  ASSERT_EQ(kernel.found.size(), 1u);
  EXPECT_EQ(kernel.found[0].message.substr(0, 8), "positive");
  EXPECT_EQ(kernel.found[0].location.line, 2u);
}

TEST(Launch, PrintsOncePerThreadOrBlock) {
  std::vector<int32_t> x = {1, 2};
  TestKernel kernel("kernel k(x: Tensor<i32, [N]>, n: i32) {\n  print(\"n\", n)\n  print(x[thread.global_id])\n}\n");
  kernel.tensor(x, {2}).scalar(int32_t{7}).run();
  EXPECT_EQ(std::count(kernel.printed.begin(), kernel.printed.end(), '\n'), 3) << kernel.printed;
}

TEST(Launch, ReductionsFoldBlocksInAFixedTree) {
  std::vector<int32_t> x(1000);
  for (int i = 0; i < 1000; ++i)
    x[i] = (i * 37) % 501;
  TestKernel kernel(R"(
kernel largest(x: Tensor<i32, [N]>) -> i32 reduce(max) {
  let best: Tensor<i32, [1]> @shared = zeros()
  atomic_max(&mut best[0], x[thread.global_id])
  sync_block()
  return best[0]
}
)");
  kernel.tensor(x, {1000}).run();
  EXPECT_EQ(kernel.result<int32_t>(), std::vector<int32_t>{500});
}

}  // namespace
}  // namespace vortex::irgen
