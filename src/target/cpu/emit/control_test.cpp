// Control flow of regions and blocks: what diverges, what stays uniform.
#include "target/cpu/emit/testing/run_kernel.h"

#include <gtest/gtest.h>

namespace vortex::target::cpu::emit::testing {
namespace {

std::string region(const std::string& body) {
  return R"(
  %nx = vx.block_dim x
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %i2 = arith.constant 2 : i32
  %i3 = arith.constant 3 : i32
  %bid = vx.block_id x
  %base = arith.muli %bid, %nx : index
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %base, %x : index
)" + body +
         "\n    vx.yield\n  }";
}

const std::string kIntArrays = "%a: !vx.view<?xi32, global>, %o: !vx.view<?xi32, global>";

/// Runs a per-thread body on arrays of several lengths and compares with `expected(a, i)`.
void check(const std::string& body, const std::function<int32_t(const std::vector<int32_t>&, int64_t)>& expected,
           int32_t low = 0, int32_t high = 50) {
  for (const char* block : {"64", "23", "128"}) {
    TestKernel kernel(module(kIntArrays, std::string("ceildiv(dim(1,0), ") + block + ");1;1",
                             std::string(block) + ";1;1", region(body)));
    ASSERT_EQ(kernel.error(), "");
    for (int64_t n : {1, 30, 64, 129, 400}) {
      std::mt19937 engine(n);
      std::uniform_int_distribution<int32_t> values(low, high);
      std::vector<int32_t> a(n), out(n + 16, -77);
      for (int32_t& value : a)
        value = values(engine);
      kernel.run({Arg::tensor(a), Arg::strided(out.data(), {n}, {1})});
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(out[i], expected(a, i)) << "element " << i << " of " << n << ", block " << block;
      for (int64_t i = n; i < n + 16; ++i)
        ASSERT_EQ(out[i], -77);
    }
  }
}

TEST(Control, MasksDivergentBranches) {
  check(R"(
    %v = vx.load %a[%i] guarded : !vx.view<?xi32, global> -> i32
    %odd = arith.andi %v, %i1 : i32
    %c = arith.cmpi ne, %odd, %i0 : i32
    %r = scf.if %c -> i32 {
      %w = vx.load %a[%c0] : !vx.view<?xi32, global> -> i32
      %s = arith.addi %v, %w : i32
      scf.yield %s : i32
    } else {
      %big = arith.cmpi sgt, %v, %i3 : i32
      scf.if %big {
        vx.store %v, %o[%i] guarded : i32, !vx.view<?xi32, global>
      } else {
        vx.store %i3, %o[%i] guarded : i32, !vx.view<?xi32, global>
      }
      %s = vx.load %o[%i] guarded : !vx.view<?xi32, global> -> i32
      scf.yield %s : i32
    }
    vx.store %r, %o[%i] guarded : i32, !vx.view<?xi32, global>)",
        [](const std::vector<int32_t>& a, int64_t i) { return a[i] & 1 ? a[i] + a[0] : std::max(a[i], 3); });
}

TEST(Control, GuardsUnguardedAccessesByBranches) {
  // The access itself is unguarded: a lane outside must not touch memory.
  check(R"(
    %n = vx.dim %o, 0 : !vx.view<?xi32, global>
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {
      %v = vx.load %a[%i] : !vx.view<?xi32, global> -> i32
      %r = arith.muli %v, %i3 : i32
      vx.store %r, %o[%i] : i32, !vx.view<?xi32, global>
    })",
        [](const std::vector<int32_t>& a, int64_t i) { return a[i] * 3; });
}

TEST(Control, RunsLoopsWithBoundsOfTheirOwn) {
  // for k in 0..a[i]: s += k * i, gathers inside
  check(R"(
    %v = vx.load %a[%i] guarded : !vx.view<?xi32, global> -> i32
    %n = arith.index_cast %v : i32 to index
    %size = vx.dim %a, 0 : !vx.view<?xi32, global>
    %s, %steps = scf.for %k = %c0 to %n step %c1 iter_args(%s = %i0, %t = %i1) -> (i32, i32) {
      %j = arith.addi %i, %k : index
      %m = arith.remui %j, %size : index
      %w = vx.load %a[%m] : !vx.view<?xi32, global> -> i32
      %s1 = arith.addi %s, %w : i32
      %t1 = arith.addi %t, %i2 : i32
      scf.yield %s1, %t1 : i32, i32
    }
    %r = arith.addi %s, %steps : i32
    vx.store %r, %o[%i] guarded : i32, !vx.view<?xi32, global>)",
        [](const std::vector<int32_t>& a, int64_t i) {
          int32_t sum = 1 + 2 * a[i];
          for (int32_t k = 0; k < a[i]; ++k)
            sum += a[(i + k) % a.size()];
          return sum;
        });
}

TEST(Control, CountsPerThreadInWhileLoops) {
  // Collatz-like: data-dependent trip counts without memory accesses, results recorded when each lane leaves.
  check(R"(
    %v = vx.load %a[%i] guarded : !vx.view<?xi32, global> -> i32
    %last, %count, %c = scf.while (%w = %v, %n = %i0) : (i32, i32) -> (i32, i32, i32) {
      %go = arith.cmpi sgt, %w, %i1 : i32
      %twice = arith.addi %n, %n : i32
      scf.condition(%go) %w, %n, %twice : i32, i32, i32
    } do {
    ^bb0(%w: i32, %n: i32, %t: i32):
      %odd = arith.andi %w, %i1 : i32
      %isOdd = arith.cmpi ne, %odd, %i0 : i32
      %w3 = arith.muli %w, %i3 : i32
      %w31 = arith.addi %w3, %i1 : i32
      %half = arith.shrui %w, %i1 : i32
      %next = arith.select %isOdd, %w31, %half : i32
      %n1 = arith.addi %n, %i1 : i32
      scf.yield %next, %n1 : i32, i32
    }
    %r = arith.addi %count, %c : i32
    %r2 = arith.addi %r, %last : i32
    vx.store %r2, %o[%i] guarded : i32, !vx.view<?xi32, global>)",
        [](const std::vector<int32_t>& a, int64_t i) {
          int32_t w = a[i], n = 0;
          for (; w > 1; ++n)
            w = w & 1 ? 3 * w + 1 : w >> 1;
          return 3 * n + w;
        });
}

TEST(Control, StopsEarlyWithFlags) {
  // Linear search with a break flag: while (k < n && !found).
  check(R"(
    %size = vx.dim %a, 0 : !vx.view<?xi32, global>
    %key = vx.load %a[%i] guarded : !vx.view<?xi32, global> -> i32
    %true = arith.constant true
    %pos, %on = scf.while (%k = %c0, %on = %true) : (index, i1) -> (index, i1) {
      %in = arith.cmpi ult, %k, %size : index
      %go = arith.andi %in, %on : i1
      scf.condition(%go) %k, %on : index, i1
    } do {
    ^bb0(%k: index, %on: i1):
      %w = vx.load %a[%k] : !vx.view<?xi32, global> -> i32
      %differs = arith.cmpi ne, %w, %key : i32
      %k2, %on2 = scf.if %differs -> (index, i1) {
        %k1 = arith.addi %k, %c1 : index
        scf.yield %k1, %true : index, i1
      } else {
        %false = arith.constant false
        scf.yield %k, %false : index, i1
      }
      scf.yield %k2, %on2 : index, i1
    }
    %rWide = arith.index_cast %pos : index to i64
    %r = arith.trunci %rWide : i64 to i32
    vx.store %r, %o[%i] guarded : i32, !vx.view<?xi32, global>)",
        [](const std::vector<int32_t>& a, int64_t i) {
          return int32_t(std::find(a.begin(), a.end(), a[i]) - a.begin());
        });
}

TEST(Control, KeepsNeighbouringWindowsUniform) {
  // for j in i..i+3: bounds differ per thread, trip counts do not.
  check(R"(
    %c3 = arith.constant 3 : index
    %end = arith.addi %i, %c3 : index
    %s = scf.for %j = %i to %end step %c1 iter_args(%s = %i0) -> i32 {
      %w = vx.load %a[%j] guarded : !vx.view<?xi32, global> -> i32
      %s1 = arith.addi %s, %w : i32
      scf.yield %s1 : i32
    }
    vx.store %s, %o[%i] guarded : i32, !vx.view<?xi32, global>)",
        [](const std::vector<int32_t>& a, int64_t i) {
          int32_t sum = 0;
          for (int64_t j = i; j < std::min<int64_t>(i + 3, a.size()); ++j)
            sum += a[j];
          return sum;
        });
}

TEST(Control, StridesThroughTheGrid) {
  // for j = i; j < n; j += 32, unguarded; runs with one block.
  std::string body = region(R"(
    %n = vx.dim %o, 0 : !vx.view<?xi32, global>
    %c50 = arith.constant 50 : index
    scf.for %j = %i to %n step %c50 {
      %v = vx.load %a[%j] : !vx.view<?xi32, global> -> i32
      %w = arith.addi %v, %i1 : i32
      vx.store %w, %o[%j] : i32, !vx.view<?xi32, global>
    })");
  TestKernel kernel(module(kIntArrays, "1;1;1", "50;1;1", body));
  ASSERT_EQ(kernel.error(), "");
  for (int64_t n : {3, 50, 77, 1000}) {
    std::vector<int32_t> a(n), out(n + 8, -5);
    for (int64_t i = 0; i < n; ++i)
      a[i] = i * i;
    kernel.run({Arg::tensor(a), Arg::strided(out.data(), {n}, {1})});
    for (int64_t i = 0; i < n + 8; ++i)
      ASSERT_EQ(out[i], i < n ? i * i + 1 : -5);
  }
}

TEST(Control, ReducesATreeWithBarriersInAUniformLoop) {
  std::string body = R"(
  %nx = vx.block_dim x
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %bid = vx.block_id x
  %base = arith.muli %bid, %nx : index
  %tmp = vx.alloc "tmp" : !vx.view<256xf32, shared>
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %base, %x : index
    %v = vx.load %a[%i] guarded : !vx.view<?xf32, global> -> f32
    vx.store %v, %tmp[%x] : f32, !vx.view<256xf32, shared>
    vx.yield
  }
  vx.barrier
  %end = scf.while (%s = %c128) : (index) -> index {
    %go = arith.cmpi ugt, %s, %c0 : index
    scf.condition(%go) %s : index
  } do {
  ^bb0(%s: index):
    vx.threads (%nx, %c1, %c1) {
    ^bb0(%x: index, %y: index, %z: index, %l: index):
      %c = arith.cmpi ult, %x, %s : index
      scf.if %c {
        %j = arith.addi %x, %s : index
        %v = vx.load %tmp[%x] : !vx.view<256xf32, shared> -> f32
        %w = vx.load %tmp[%j] : !vx.view<256xf32, shared> -> f32
        %r = arith.addf %v, %w : f32
        vx.store %r, %tmp[%x] : f32, !vx.view<256xf32, shared>
      }
      vx.yield
    }
    vx.barrier
    %h = vx.int divu %s, %c2 : index
    scf.yield %h : index
  }
  %total = vx.load %tmp[%c0] : !vx.view<256xf32, shared> -> f32
  vx.store %total, %o[%bid] : f32, !vx.view<?xf32, global>)";
  TestKernel kernel(
      module("%a: !vx.view<?xf32, global>, %o: !vx.view<?xf32, global>", "dim(1,0);1;1", "256;1;1", body));
  ASSERT_EQ(kernel.error(), "");
  int64_t n = 1000;
  std::vector<float> a(n), out(4);
  for (int64_t i = 0; i < n; ++i)
    a[i] = float(i % 97) - 40;
  kernel.run({Arg::tensor(a), Arg::tensor(out)});
  for (int b = 0; b < 4; ++b) {
    float sum = 0;
    for (int64_t i = b * 256; i < std::min<int64_t>(n, b * 256 + 256); ++i)
      sum += a[i];
    EXPECT_EQ(out[b], sum);
  }
}

TEST(Control, CarriesThreadValuesThroughUniformLoops) {
  // Two per-thread values swapped each iteration, number of iterations read from memory.
  std::string body = R"(
  %nx = vx.block_dim x
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %n32 = vx.load %count[%c0] : !vx.view<?xi32, global> -> i32
  %n = arith.index_cast %n32 : i32 to index
  %p, %q = vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %u = vx.load %a[%x] : !vx.view<?xi32, global> -> i32
    %v = arith.addi %u, %u : i32
    vx.yield %u, %v : i32, i32
  } : tensor<?xi32>, tensor<?xi32>
  %pn, %qn = scf.for %k = %c0 to %n step %c1 iter_args(%pp = %p, %qq = %q) -> (tensor<?xi32>, tensor<?xi32>) {
    vx.barrier
    scf.yield %qq, %pp : tensor<?xi32>, tensor<?xi32>
  }
  %small = arith.cmpi ult, %n, %c1 : index
  %r = scf.if %small -> tensor<?xi32> {
    scf.yield %qn : tensor<?xi32>
  } else {
    scf.yield %pn : tensor<?xi32>
  }
  vx.threads (%nx, %c1, %c1) ins(%r, %qn : tensor<?xi32>, tensor<?xi32>) {
  ^bb0(%x: index, %y: index, %z: index, %l: index, %u: i32, %v: i32):
    %c100 = arith.constant 100 : i32
    %w = arith.muli %v, %c100 : i32
    %s = arith.addi %u, %w : i32
    vx.store %s, %a[%x] : i32, !vx.view<?xi32, global>
    vx.yield
  })";
  TestKernel kernel(
      module("%a: !vx.view<?xi32, global>, %count: !vx.view<?xi32, global>", "1;1;1", "dim(0,0);1;1", body));
  ASSERT_EQ(kernel.error(), "");
  for (int count : {0, 1, 2, 7})
    for (int n : {5, 64, 100}) {
      std::vector<int32_t> a(n), counts{count};
      for (int i = 0; i < n; ++i)
        a[i] = i + 1;
      kernel.run({Arg::tensor(a), Arg::tensor(counts)});
      for (int i = 0; i < n; ++i) {
        int p = count % 2 ? 2 * (i + 1) : i + 1, q = count % 2 ? i + 1 : 2 * (i + 1);
        ASSERT_EQ(a[i], (count < 1 ? q : p) + 100 * q) << count << " iterations";
      }
    }
}

TEST(Control, ReportsAFailedAssertion) {
  std::string body = region(R"(
    %v = vx.load %a[%i] guarded : !vx.view<?xi32, global> -> i32
    %ok = arith.cmpi slt, %v, %i3 : i32
    vx.assert %ok, "too large" id "E0701"
    vx.print "v = {}", %v : i32)");
  TestKernel kernel(module(kIntArrays, "1;1;1", "20;1;1", body));
  ASSERT_EQ(kernel.error(), "");
  std::vector<int32_t> a(18, -2), out(18);
  EXPECT_EQ(kernel.run({Arg::tensor(a), Arg::tensor(out)}), 0u);
  ASSERT_EQ(kernel.prints().size(), 20u);
  EXPECT_EQ(kernel.prints()[0].values, std::vector<uint64_t>{uint64_t(-2)});
  EXPECT_EQ(kernel.kernel().faults[kernel.prints()[0].fault].message, "v = {}");
  a[17] = 3;
  uint32_t fault = kernel.run({Arg::tensor(a), Arg::tensor(out)});
  ASSERT_NE(fault, 0u);
  EXPECT_EQ(kernel.kernel().faults[fault - 1].id, "E0701");
  EXPECT_EQ(kernel.kernel().faults[fault - 1].message, "too large");
}

}  // namespace
}  // namespace vortex::target::cpu::emit::testing
