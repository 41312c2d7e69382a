// Per-thread kernels: regions, barriers, control flow, domains.
#include "irgen/test_kernel.h"

#include <numeric>

namespace vortex::irgen {
namespace {

TEST(Threads, SaxpyCoversARaggedDomain) {
  auto x = randomFloats(1000, 1), y = randomFloats(1000, 2), expected = y;
  for (size_t i = 0; i < x.size(); ++i)
    expected[i] = 2.5f * x[i] + y[i];
  TestKernel kernel("kernel saxpy(a: f32, x: Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>) {\n"
                    "  let i = thread.global_id\n  y[i] = a * x[i] + y[i]\n}\n");
  kernel.scalar(2.5f).tensor(x, {1000}).tensor(y, {1000}).run();
  expectNear(y, expected);
  EXPECT_EQ(kernel.count("vx.threads"), 1u) << kernel.text();
}

TEST(Threads, AScalarPerThreadFillsTheResult) {
  auto x = randomFloats(77);
  TestKernel kernel("kernel twice(x: Tensor<f32, [N]>) -> Tensor<f32, [N]> {\n  return x[thread.global_id] * 2.0\n}\n");
  kernel.tensor(x, {77}).run();
  std::vector<float> expected = x;
  for (float& value : expected)
    value *= 2;
  expectNear(kernel.result<float>(), expected);
}

TEST(Threads, TreeReductionCutsAtBarriers) {
  const char* text = R"(
const BLOCK_SIZE: usize = 256
kernel reduce(data: Tensor<f32, [N]>) -> f32 reduce(add) {
  let tile: Tensor<f32, [BLOCK_SIZE]> @shared
  tile[thread.local_id] = data[thread.global_id]
  sync_block()
  for stride in [BLOCK_SIZE/2, BLOCK_SIZE/4, ..., 1] {
    if thread.local_id < stride {
      tile[thread.local_id] += tile[thread.local_id + stride]
    }
    sync_block()
  }
  return tile[0]
}
)";
  for (int64_t count : {0, 1, 255, 256, 257, 10000}) {
    std::vector<float> data(count + 1);
    for (int64_t i = 0; i < count; ++i)
      data[i] = static_cast<float>(i % 17);
    TestKernel kernel(text);
    kernel.tensor(data, {count}).run();
    float expected = std::accumulate(data.begin(), data.begin() + count, 0.0f);
    ASSERT_EQ(kernel.result<float>(), std::vector<float>{expected}) << kernel.text();
  }
}

TEST(Threads, EarlyReturnsSkipTheRest) {
  auto x = randomFloats(300);
  std::vector<float> y(300, -7);
  TestKernel kernel(R"(
kernel k(x: Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>, limit: usize) {
  let i = thread.global_id
  if i >= limit { return }
  if x[i] < 0.0 {
    y[i] = 0.0
    return
  }
  var v = x[i]
  v = v * v
  y[i] = v
}
)");
  kernel.tensor(x, {300}).tensor(y, {300}).scalar(uint64_t{200}).run();
  for (size_t i = 0; i < 300; ++i)
    ASSERT_FLOAT_EQ(y[i], i >= 200 ? -7.0f : x[i] < 0 ? 0.0f : x[i] * x[i]) << i;
}

TEST(Threads, ValuesLiveAcrossBarriersInUniformLoops) {
  std::vector<int32_t> x(512), y(512);
  std::iota(x.begin(), x.end(), 1);
  TestKernel kernel(R"(
@launch(grid = [2], block = 256)
kernel rotate(x: Tensor<i32, [512]>, y: &mut Tensor<i32, [512]>, rounds: i32) {
  let tile: Tensor<i32, [256]> @shared
  let t = thread.local_id
  var mine = x[thread.global_id]
  var total = 0
  for r in 0..rounds {
    tile[t] = mine
    sync_block()
    mine = tile[(t + 1) % 256]
    sync_block()
    total += mine * (r + 1)
  }
  y[thread.global_id] = total
}
)");
  kernel.tensor(x, {512}).tensor(y, {512}).scalar(int32_t{5}).run(3);
  for (int block = 0; block < 2; ++block)
    for (int t = 0; t < 256; ++t) {
      int total = 0;
      for (int r = 0; r < 5; ++r)
        total += x[block * 256 + (t + r + 1) % 256] * (r + 1);
      ASSERT_EQ(y[block * 256 + t], total);
    }
}

TEST(Threads, LoopsBreakAndContinuePerThread) {
  std::vector<int32_t> y(100);
  TestKernel kernel(R"(
kernel collatz(y: &mut Tensor<i32, [N]>) {
  var value = thread.global_id as i32 + 1
  var steps = 0
  while value != 1 {
    steps += 1
    if value % 2 == 0 {
      value = value / 2
      continue
    }
    value = 3 * value + 1
    if steps > 50 { break }
  }
  for k in 0..10 {
    if k == 7 { break }
    if k % 2 == 1 { continue }
    steps += 1000
  }
  y[thread.global_id] = steps
}
)");
  kernel.tensor(y, {100}).run();
  for (int i = 0; i < 100; ++i) {
    int value = i + 1, steps = 0;
    while (value != 1) {
      ++steps;
      if (value % 2 == 0) {
        value /= 2;
        continue;
      }
      value = 3 * value + 1;
      if (steps > 50)
        break;
    }
    ASSERT_EQ(y[i], steps + 4000) << i;
  }
}

TEST(Threads, InlinedFunctionsReturnEarly) {
  auto x = randomFloats(64);
  std::vector<float> y(64);
  TestKernel kernel(R"(
fn classify(v: f32) -> f32 {
  if v < -1.0 { return -1.0 }
  for i in 0..4 {
    if v < (i as f32) { return i as f32 }
  }
  return 99.0
}
kernel k(x: Tensor<f32, [N]>, y: &mut Tensor<f32, [N]>) {
  y[thread.global_id] = classify(x[thread.global_id]) + classify(x[thread.global_id] * 4.0)
}
)",
                    {}, "k");
  kernel.tensor(x, {64}).tensor(y, {64}).run();
  auto classify = [](float v) {
    if (v < -1)
      return -1.0f;
    for (int i = 0; i < 4; ++i)
      if (v < i)
        return static_cast<float>(i);
    return 99.0f;
  };
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(y[i], classify(x[i]) + classify(x[i] * 4)) << i;
}

TEST(Threads, FunctionsWithBarriersJoinTheBlock) {
  std::vector<float> x = randomFloats(256), y(256);
  TestKernel kernel(R"(
fn neighbour(tile: &mut Tensor<f32, [128]> @shared, v: f32) -> f32 {
  tile[thread.local_id] = v
  sync_block()
  let n = tile[(thread.local_id + 1) % 128]
  sync_block()
  return n
}
@launch(grid = [2], block = 128)
kernel k(x: Tensor<f32, [256]>, y: &mut Tensor<f32, [256]>) {
  let tile: Tensor<f32, [128]> @shared
  let i = thread.global_id
  y[i] = x[i] + neighbour(&mut tile, x[i] * 2.0) * 3.0
}
)",
                    {}, "k");
  kernel.tensor(x, {256}).tensor(y, {256}).run(5);
  for (int i = 0; i < 256; ++i) {
    int n = i / 128 * 128 + (i + 1) % 128;
    ASSERT_NEAR(y[i], x[i] + x[n] * 6, 1e-5) << i;
  }
}

TEST(Threads, TransposeThroughSharedMemory) {
  std::vector<float> x = randomFloats(70 * 45), y(45 * 70);
  TestKernel kernel(R"(
@launch(grid = [ceil_div(N, 32), ceil_div(M, 32)], block = [32, 8])
kernel transpose(x: Tensor<f32, [M, N]>, y: &mut Tensor<f32, [N, M]>) {
  let tile: Tensor<f32, [32, 33]> @shared
  for k in 0..4 {
    tile[thread.id.y + k * 8, thread.id.x] = x[block.id.y * 32 + thread.id.y + k * 8, block.id.x * 32 + thread.id.x]
  }
  sync_block()
  for k in 0..4 {
    y[block.id.x * 32 + thread.id.y + k * 8, block.id.y * 32 + thread.id.x] = tile[thread.id.x, thread.id.y + k * 8]
  }
}
)");
  kernel.check = false;  // the guards at the edges are meant
  kernel.tensor(x, {70, 45}).tensor(y, {45, 70}).run();
  for (int i = 0; i < 70; ++i)
    for (int j = 0; j < 45; ++j)
      ASSERT_EQ(y[j * 70 + i], x[i * 45 + j]);
}

TEST(Threads, HistogramAddsAtomically) {
  std::vector<uint32_t> data(5000), bins(16);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<uint32_t>(i * 7 % 23);
  TestKernel kernel(R"(
kernel histogram(data: Tensor<u32, [N]>, bins: &mut Tensor<u32, [16]>) {
  let tile: Tensor<u32, [16]> @shared = zeros()
  let value = data[thread.global_id]
  if thread.global_id < N {
    atomic_add(&mut tile[value % 16], 1)
  }
  sync_block()
  if thread.local_id < 16 {
    atomic_add(&mut bins[thread.local_id], tile[thread.local_id])
  }
}
)");
  kernel.tensor(data, {5000}).tensor(bins, {16}).run(2);
  std::vector<uint32_t> expected(16);
  for (uint32_t value : data)
    ++expected[value % 16];
  EXPECT_EQ(bins, expected);
}

TEST(Threads, WarpOperationsStayInsideRegions) {
  std::vector<float> x = randomFloats(256), y(256);
  TestKernel kernel(R"(
@launch(grid = [2], block = 128)
kernel k(x: Tensor<f32, [256]>, y: &mut Tensor<f32, [256]>) {
  let v = x[thread.global_id]
  let total = warp.sum(v)
  let other = warp.shuffle_xor(v, 1)
  y[thread.global_id] = total + other
}
)");
  kernel.tensor(x, {256}).tensor(y, {256}).run();
  EXPECT_EQ(kernel.count("vx.threads"), 1u);
  for (int i = 0; i < 256; ++i) {
    float total = 0;
    for (int lane = 0; lane < 32; ++lane)
      total += x[i / 32 * 32 + lane];
    ASSERT_NEAR(y[i], total + x[i ^ 1], 1e-4);
  }
}

TEST(Threads, TwoDimensionalStencil) {
  std::vector<float> x = randomFloats(37 * 61), y(37 * 61);
  TestKernel kernel(R"(
kernel jacobi(x: Tensor<f32, [H, W]>, y: &mut Tensor<f32, [H, W]>) {
  let i = thread.global_id.y
  let j = thread.global_id.x
  if i > 0 && i + 1 < H && j > 0 && j + 1 < W {
    y[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])
  } else {
    y[i, j] = x[i, j]
  }
}
)");
  kernel.tensor(x, {37, 61}).tensor(y, {37, 61}).run();
  for (int i = 0; i < 37; ++i)
    for (int j = 0; j < 61; ++j) {
      bool inner = i > 0 && i < 36 && j > 0 && j < 60;
      float expected = inner
                           ? 0.25f * (x[(i - 1) * 61 + j] + x[(i + 1) * 61 + j] + x[i * 61 + j - 1] + x[i * 61 + j + 1])
                           : x[i * 61 + j];
      ASSERT_NEAR(y[i * 61 + j], expected, 1e-5);
    }
}

TEST(Threads, LocalArraysAndUniformCounters) {
  std::vector<int32_t> y(64);
  TestKernel kernel(R"(
@launch(grid = [1], block = 64)
kernel k(y: &mut Tensor<i32, [64]>) {
  let a: Tensor<i32, [8]> @local = zeros()
  var rounds = 0
  for i in 0..8 {
    a[i] = (thread.local_id as i32) * (i as i32)
    rounds += 1
  }
  sync_block()
  var sum = 0
  for i in 0..rounds { sum += a[i] }
  y[thread.local_id] = sum
}
)");
  kernel.tensor(y, {64}).run();
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(y[i], 28 * i);
}

/// A region computes both, and what is the same for all threads is used as one value behind it.
TEST(Threads, ASumThatIsTheSameForAllThreadsBesideOnesThatAreNot) {
  auto x = randomFloats(128), y = std::vector<float>(65, -7);
  TestKernel kernel(R"(
@launch(grid = [1], block = [64])
kernel sums(x: Tensor<f32, [N]>, y: &mut Tensor<f32, [M]>) {
  var own: f32 = 0.0
  var alike: f32 = 0.0
  for k in 0..2 {
    own += x[thread.local_id + 64 * k]
    alike += x[k]
  }
  y[thread.local_id] = own
  sync_block()
  y[64] = alike
}
)");
  std::vector<float> expected(65);
  for (size_t i = 0; i < 64; ++i)
    expected[i] = x[i] + x[i + 64];
  expected[64] = x[0] + x[1];
  kernel.tensor(x, {128}).tensor(y, {65}).run();
  expectNear(y, expected);
}

}  // namespace
}  // namespace vortex::irgen
