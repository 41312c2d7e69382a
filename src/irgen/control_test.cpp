// Control flow and aggregates across thread regions.
#include "irgen/test_kernel.h"

#include <numeric>

namespace vortex::irgen {
namespace {

std::vector<int32_t> counting(int count) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(Control, UniformReadsOfSharedMemorySeeTheWritesBefore) {
  auto x = counting(64), y = counting(64);
  TestKernel kernel(R"(
@launch(grid = [1], block = 64)
kernel k(x: Tensor<i32, [64]>, y: &mut Tensor<i32, [64]>) {
  let tile: Tensor<i32, [64]> @shared
  let t = thread.local_id
  tile[t] = x[t] * 3
  sync_block()
  let first = tile[5]
  var limit = 0
  while tile[limit] < 30 { limit += 1 }
  sync_block()
  tile[t] = t as i32
  sync_block()
  let second = tile[5]
  y[t] = first * 10000 + limit as i32 * 100 + second
}
)");
  kernel.tensor(x, {64}).tensor(y, {64}).run(4);
  for (int32_t value : y)
    ASSERT_EQ(value, 151005);
}

TEST(Control, MethodsOfReferencesAssignInsideOfBranchesAndLoops) {
  auto x = counting(64), y = counting(64);
  TestKernel kernel(R"(
struct Stack { size: i32, sum: i32 }
impl Stack {
  fn push(&mut self, value: i32) {
    self.sum += value * (self.size + 1)
    self.size += 1
  }
}
fn some(stack: &mut Stack, x: i32) {
  if x % 3 == 1 { stack.push(x) }
  for i in 0..x % 5 { stack.push(i as i32) }
}
fn both(stack: &mut Stack, x: i32) {
  var left = x % 4
  while left > 0 {
    some(stack, x + left)
    left -= 1
  }
}
@launch(grid = [1], block = 64)
kernel k(x: Tensor<i32, [64]>, y: &mut Tensor<i32, [64]>) {
  var stack = Stack { size: 0, sum: 0 }
  both(&mut stack, x[thread.local_id])
  y[thread.local_id] = stack.sum * 100 + stack.size
}
)");
  kernel.tensor(x, {64}).tensor(y, {64}).run(4);
  for (int32_t lane = 0; lane < 64; ++lane) {
    int32_t size = 0, sum = 0;
    const auto push = [&](int32_t value) { sum += value * (size + 1), ++size; };
    for (int32_t left = lane % 4; left > 0; --left) {
      const int32_t value = lane + left;
      if (value % 3 == 1)
        push(value);
      for (int32_t i = 0; i < value % 5; ++i)
        push(i);
    }
    ASSERT_EQ(y[lane], sum * 100 + size) << lane;
  }
}

TEST(Control, UniformExitsFromLoopsWithBarriers) {
  auto x = counting(64), y = counting(64);
  TestKernel kernel(R"(
@launch(grid = [1], block = 64)
kernel k(x: Tensor<i32, [64]>, y: &mut Tensor<i32, [64]>, n: i32, stop: i32) {
  let tile: Tensor<i32, [64]> @shared
  let t = thread.local_id
  var v = x[t]
  for i in 0..n {
    if i == stop { break }
    if i % 2 == 1 { continue }
    tile[t] = v
    sync_block()
    v = tile[(t + 1) % 64] + 1
    sync_block()
  }
  var rounds = 0
  loop {
    tile[t] = v
    sync_block()
    rounds += 1
    if tile[0] + rounds > 70 { break }
    v += tile[63 - t]
    sync_block()
  }
  if stop > 100 { return }
  y[t] = v * 100 + rounds
}
)");
  for (int32_t stop : {3, 50, 200}) {
    kernel.arguments.clear();
    std::fill(y.begin(), y.end(), -1);
    kernel.tensor(x, {64}).tensor(y, {64}).scalar(int32_t{7}).scalar(stop).run();
    std::vector<int32_t> v = x, tile(64);
    for (int i = 0; i < 7; ++i) {
      if (i == stop)
        break;
      if (i % 2 == 1)
        continue;
      tile = v;
      for (int t = 0; t < 64; ++t)
        v[t] = tile[(t + 1) % 64] + 1;
    }
    int rounds = 0;
    while (true) {
      tile = v;
      ++rounds;
      if (tile[0] + rounds > 70)
        break;
      for (int t = 0; t < 64; ++t)
        v[t] += tile[63 - t];
    }
    for (int t = 0; t < 64; ++t)
      ASSERT_EQ(y[t], stop > 100 ? -1 : v[t] * 100 + rounds);
  }
}

TEST(Control, PerThreadVariablesMergeAtUniformBranches) {
  auto x = counting(32), y = counting(32);
  TestKernel kernel(R"(
@launch(grid = [1], block = 32)
kernel k(x: Tensor<i32, [32]>, y: &mut Tensor<i32, [32]>, mode: i32) {
  let tile: Tensor<i32, [32]> @shared
  let t = thread.local_id
  var v = 1
  var w = 5
  if mode > 0 {
    tile[t] = x[t]
    sync_block()
    v = tile[31 - t]
    w = mode
  } else {
    w = x[t]
  }
  y[t] = v * 100 + w
}
)");
  for (int32_t mode : {0, 7}) {
    kernel.arguments.clear();
    kernel.tensor(x, {32}).tensor(y, {32}).scalar(mode).run();
    for (int t = 0; t < 32; ++t)
      ASSERT_EQ(y[t], mode > 0 ? (31 - t) * 100 + mode : 100 + t);
  }
}

TEST(Control, ThreadsThatReturnedStillReachLaterStatements) {
  auto y = counting(100);
  TestKernel kernel(R"(
kernel k(y: &mut Tensor<i32, [N]>, n: i32) {
  let i = thread.global_id
  if i % 3 == 0 { return }
  var total = 0
  for j in 0..n {
    if j > 4 { return }
    total += j
  }
  if total == 6 && i % 3 == 1 { return }
  y[i] = -total
}
)");
  for (int32_t n : {4, 5, 6}) {
    kernel.arguments.clear();
    y = counting(100);
    kernel.tensor(y, {100}).scalar(n).run();
    int total = n == 4 ? 6 : 10;
    for (int i = 0; i < 100; ++i)
      ASSERT_EQ(y[i], i % 3 == 0 || n == 6 || (total == 6 && i % 3 == 1) ? i : -total) << i << " " << n;
  }
}

TEST(Control, RangesStepAndListsProgress) {
  std::vector<int64_t> y(8);
  TestKernel kernel(R"(
@launch(grid = [1], block = 1)
kernel k(y: &mut Tensor<i64, [8]>, a: i32, b: i32, s: i32) {
  let t = thread.local_id
  var sum: i64 = 0
  for i in range(a, b, s) { sum = sum * 31 + (i as i64) }
  y[t] = sum
  sum = 0
  for i in range(10, 0, -3) { sum = sum * 31 + (i as i64) }
  y[t + 1] = sum
  sum = 0
  for i in [3, 1, 4, 1, 5, 9] { sum = sum * 31 + (i as i64) }
  y[t + 2] = sum
  sum = 0
  for i in [1, 3, ..., 21] { sum = sum * 31 + (i as i64) }
  y[t + 3] = sum
  sum = 0
  for (v, n) in range(5, 25, 5).enumerate() { sum = sum * 31 + (v as i64) * 7 + (n as i64) }
  y[t + 4] = sum
  sum = 0
  for i in a..b { if i == 6 { break }
    if i == 3 { continue }
    sum = sum * 31 + (i as i64) }
  y[t + 5] = sum
}
)");
  kernel.check = true;
  kernel.tensor(y, {8}).scalar(int32_t{2}).scalar(int32_t{11}).scalar(int32_t{4}).run();
  auto hash = [](std::vector<int64_t> values) {
    int64_t sum = 0;
    for (int64_t value : values)
      sum = sum * 31 + value;
    return sum;
  };
  EXPECT_EQ(y[0], hash({2, 6, 10}));
  EXPECT_EQ(y[1], hash({10, 7, 4, 1}));
  EXPECT_EQ(y[2], hash({3, 1, 4, 1, 5, 9}));
  EXPECT_EQ(y[3], hash({1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21}));
  EXPECT_EQ(y[4], hash({35, 71, 107, 143}));
  EXPECT_EQ(y[5], hash({2, 4, 5}));
}

TEST(Control, LoopsOverArraysMayBeLeftEarly) {
  auto y = counting(8);
  TestKernel kernel(R"(
kernel k(y: &mut Tensor<i32, [N]>) {
  let weights: [i32; 5] = [1, 20, 300, 4000, 50000]
  let t = thread.global_id
  var total = 0
  for w in weights {
    if w == 20 { continue }
    if w > (t as i32) * 1000 { break }
    total += w
  }
  y[t] = total
}
)");
  kernel.tensor(y, {8}).run(4);
  for (int t = 0; t < 8; ++t) {
    int total = 0;
    for (int w : {1, 20, 300, 4000, 50000}) {
      if (w == 20)
        continue;
      if (w > t * 1000)
        break;
      total += w;
    }
    ASSERT_EQ(y[t], total) << t;
  }
}

TEST(Control, LocalMemoryOfAKernelWithoutThreadsBelongsToTheBlock) {
  TestKernel kernel("kernel k(x: Tensor<f32, [N]>) -> Tensor<f32, [N]> {\n  let t: Tensor<f32, [4]> @local\n"
                    "  t[0] = 1.0\n  return x + t[0]\n}\n");
  std::vector<float> x = {1, 2, 3};
  kernel.tensor(x, {3}).run();
  expectNear(kernel.result<float>(), {2, 3, 4});
}

TEST(Control, AggregatesAndReferences) {
  std::vector<float> x = randomFloats(40), y(40);
  TestKernel kernel(R"(
struct Pair { a: f32, b: f32 }
fn swap(p: &mut Pair) {
  let old = p.a
  p.a = p.b
  p.b = old
}
fn bump(v: &mut f32, by: f32) { *v += by }
fn both(v: f32) -> (f32, f32) {
  if v < 0.0 { return (v, 1.0) }
  return (v * 2.0, 3.0)
}
kernel k(x: Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>) {
  let i = thread.global_id
  var p = Pair { a: x[i], b: 10.0 }
  if x[i] > 0.5 { swap(&mut p) }
  bump(&mut p.a, 100.0)
  var table = [1.0, 2.0, 4.0, 8.0]
  table[i % 4] += p.b
  let (u, w) = both(x[i])
  y[i] = p.a + table[(i + 1) % 4] * 1000.0 + table[i % 4] + u * w
}
)",
                    {}, "k");
  kernel.tensor(x, {40}).tensor(y, {40}).run();
  for (int i = 0; i < 40; ++i) {
    float a = x[i], b = 10;
    if (x[i] > 0.5f)
      std::swap(a, b);
    a += 100;
    float table[4] = {1, 2, 4, 8};
    table[i % 4] += b;
    float u = x[i] < 0 ? x[i] : 2 * x[i], w = x[i] < 0 ? 1 : 3;
    ASSERT_NEAR(y[i], a + table[(i + 1) % 4] * 1000 + table[i % 4] + u * w, 1e-2) << i << kernel.text();
  }
}

TEST(Control, WritesThroughReferencesAndArraysVaryByThread) {
  auto x = counting(64), y = counting(64);
  TestKernel kernel(R"(
fn add(total: &mut i32, v: i32) { *total += v }
@launch(grid = [1], block = 64)
kernel k(x: Tensor<i32, [64]>, y: &mut Tensor<i32, [64]>) {
  let tile: Tensor<i32, [64]> @shared
  let t = thread.local_id
  var total = 0
  var table = [0, 0, 0]
  for r in 0..4 {
    tile[t] = x[t] + r
    sync_block()
    add(&mut total, tile[(t + 1) % 64])
    table[t % 3] += r
    sync_block()
  }
  y[t] = total * 100 + table[0] * 3 + table[1] * 2 + table[2]
}
)",
                    {}, "k");
  kernel.tensor(x, {64}).tensor(y, {64}).run();
  for (int t = 0; t < 64; ++t)
    ASSERT_EQ(y[t], ((t + 1) % 64 * 4 + 6) * 100 + 6 * (3 - t % 3));
}

TEST(Control, ShortCircuitsGuardAccesses) {
  auto x = counting(50), y = counting(50);
  TestKernel kernel(R"(
kernel k(x: Tensor<i32, [N]>, y: &mut Tensor<i32, [N]>) {
  let i = thread.global_id
  y[i] = if i + 1 < N && x[i + 1] % 2 == 0 { 1 } else if i == 0 || x[i - 1] > 20 { 2 } else { 3 }
}
)");
  kernel.tensor(x, {50}).tensor(y, {50}).run();
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(y[i], i + 1 < 50 && (i + 1) % 2 == 0 ? 1 : i == 0 || i - 1 > 20 ? 2 : 3) << i;
}

TEST(Control, UniformStoresHappenOncePerBlock) {
  std::vector<int32_t> counts(4), y(4);
  TestKernel kernel(R"(
@launch(grid = [4], block = 64)
kernel k(counts: &mut Tensor<i32, [4]>, y: &mut Tensor<i32, [4]>) {
  let tile: Tensor<i32, [1]> @shared = zeros()
  atomic_add(&mut tile[0], thread.local_id as i32)
  sync_block()
  counts[block.id.x] = tile[0] + block.id.x as i32
  let again = counts[block.id.x]
  if thread.local_id == 0 { y[block.id.x] = again }
}
)");
  kernel.tensor(counts, {4}).tensor(y, {4}).run();
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(counts[i], 2016 + i);
    ASSERT_EQ(y[i], 2016 + i);
  }
}

TEST(Control, SlicesAreWindows) {
  auto x = randomFloats(6 * 8);
  TestKernel kernel(R"(
fn row_sum(row: &Tensor<f32, [K]>) -> f32 {
  var sum = 0.0
  for j in 0..K { sum += row[j] }
  return sum
}
kernel k(x: Tensor<f32, [M, 8]>) -> Tensor<f32, [M]> {
  let i = thread.global_id
  return row_sum(&x[i, 2..6])
}
)",
                    {}, "k");
  kernel.tensor(x, {6, 8}).run();
  auto out = kernel.result<float>();
  ASSERT_EQ(out.size(), 6u);
  for (int i = 0; i < 6; ++i)
    ASSERT_NEAR(out[i], x[i * 8 + 2] + x[i * 8 + 3] + x[i * 8 + 4] + x[i * 8 + 5], 1e-5);
}

TEST(Control, TilesThroughLoopsAndSlices) {
  auto x = randomFloats(12, 1), w = randomFloats(3 * 16, 2);
  TestKernel kernel(R"(
kernel layers(x: Tensor<f32, [M, 4]>, w: Tensor<f32, [L, 4, 4]>) -> Tensor<f32, [M, 4]> {
  var h = x * 1.0
  for l in 0..L {
    h = max(h @ w[l, :, :], 0.0) + h
  }
  return h
}
)");
  kernel.tensor(x, {3, 4}).tensor(w, {3, 4, 4}).run();
  std::vector<float> h = x;
  for (int l = 0; l < 3; ++l) {
    std::vector<float> next(12);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j) {
        float sum = 0;
        for (int k = 0; k < 4; ++k)
          sum += h[i * 4 + k] * w[l * 16 + k * 4 + j];
        next[i * 4 + j] = std::max(sum, 0.0f) + h[i * 4 + j];
      }
    h = next;
  }
  expectNear(kernel.result<float>(), h);
}

}  // namespace
}  // namespace vortex::irgen
