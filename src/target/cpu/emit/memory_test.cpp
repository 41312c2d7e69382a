// Shared, local and global memory; atomics.
#include "target/cpu/emit/testing/run_kernel.h"

#include <gtest/gtest.h>
#include <numeric>

namespace vortex::target::cpu::emit::testing {
namespace {

TEST(Memory, TransposesThroughSharedMemory) {
  const char* body = R"(
  %nx = vx.block_dim x
  %ny = vx.block_dim y
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c8 = arith.constant 8 : index
  %c0 = arith.constant 0 : index
  %bx = vx.block_id x
  %by = vx.block_id y
  %x0 = arith.muli %bx, %c32 : index
  %y0 = arith.muli %by, %c32 : index
  %tile = vx.alloc "tile" : !vx.view<32x33xf32, shared>
  vx.threads (%nx, %ny, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    scf.for %k = %c0 to %c32 step %c8 {
      %yy = arith.addi %y, %k : index
      %r = arith.addi %y0, %yy : index
      %c = arith.addi %x0, %x : index
      %v = vx.load %a[%r, %c] guarded : !vx.view<?x?xf32, global> -> f32
      vx.store %v, %tile[%yy, %x] : f32, !vx.view<32x33xf32, shared>
    }
    vx.yield
  }
  vx.barrier
  vx.threads (%nx, %ny, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    scf.for %k = %c0 to %c32 step %c8 {
      %yy = arith.addi %y, %k : index
      %r = arith.addi %x0, %yy : index
      %c = arith.addi %y0, %x : index
      %v = vx.load %tile[%x, %yy] : !vx.view<32x33xf32, shared> -> f32
      vx.store %v, %o[%r, %c] guarded : f32, !vx.view<?x?xf32, global>
    }
    vx.yield
  })";
  TestKernel kernel(module("%a: !vx.view<?x?xf32, global>, %o: !vx.view<?x?xf32, global>",
                           "ceildiv(dim(0,1), 32);ceildiv(dim(0,0), 32);1", "32;8;1", body));
  ASSERT_EQ(kernel.error(), "");
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>(64, 96), {33, 70}, {1, 5}}) {
    std::vector<float> a(rows * columns), out(rows * columns, -1.f);
    std::iota(a.begin(), a.end(), 0.f);
    kernel.run({Arg::tensor(a, {rows, columns}), Arg::tensor(out, {columns, rows})});
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        ASSERT_EQ(out[c * rows + r], a[r * columns + c]);
  }
}

std::string histogram(const std::string& where) {
  std::string view = where == "shared" ? "!vx.view<16xi32, shared>" : "!vx.view<?xi32, global>";
  std::string target = where == "shared" ? "%bins" : "%o";
  return R"(
  %nx = vx.block_dim x
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %bid = vx.block_id x
  %base = arith.muli %bid, %nx : index
  %bins = vx.alloc "bins" : !vx.view<16xi32, shared>
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %c = arith.cmpi ult, %x, %c16 : index
    scf.if %c {
      vx.store %i0, %bins[%x] : i32, !vx.view<16xi32, shared>
    }
    vx.yield
  }
  vx.barrier
  %n = vx.dim %a, 0 : !vx.view<?xi32, global>
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %base, %x : index
    %in = arith.cmpi ult, %i, %n : index
    %v = vx.load %a[%i] guarded : !vx.view<?xi32, global> -> i32
    %b = arith.index_cast %v : i32 to index
    %old = vx.atomic_rmw addi relaxed block %i1, )" +
         target + "[%b] mask %in : " + view + R"( -> i32
    vx.yield
  }
  vx.barrier
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %c = arith.cmpi ult, %x, %c16 : index
    scf.if %c {
      %v = vx.load %bins[%x] : !vx.view<16xi32, shared> -> i32
      %old = vx.atomic_rmw addi relaxed device %v, %o[%x] : !vx.view<?xi32, global> -> i32
    }
    vx.yield
  })";
}

TEST(Memory, CountsHistograms) {
  for (const char* where : {"shared", "global"})
    for (int block : {256, 40}) {
      TestKernel kernel(module("%a: !vx.view<?xi32, global>, %o: !vx.view<?xi32, global>",
                               "ceildiv(dim(0,0), " + std::to_string(block) + ");1;1", std::to_string(block) + ";1;1",
                               histogram(where)));
      ASSERT_EQ(kernel.error(), "");
      std::vector<int32_t> a(1003), out(16, 0), expected(16, 0);
      std::mt19937 engine(4);
      for (int32_t& value : a) {
        value = engine() % 16;
        ++expected[value];
      }
      kernel.run({Arg::tensor(a), Arg::tensor(out)});
      EXPECT_EQ(out, expected) << where;
    }
}

TEST(Memory, AtomicsReturnOldValuesAndCombine) {
  const char* body = R"(
  %nx = vx.block_dim x
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %i1 = arith.constant 1 : i32
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %v = vx.load %a[%x] guarded : !vx.view<?xi32, global> -> i32
    %ticket = vx.atomic_rmw addi relaxed device %i1, %s[%c0] : !vx.view<?xi32, global> -> i32
    vx.store %ticket, %o[%x] guarded : i32, !vx.view<?xi32, global>
    %m = vx.atomic_rmw maxs relaxed device %v, %s[%c1] : !vx.view<?xi32, global> -> i32
    %p = vx.atomic_rmw xor relaxed device %v, %s[%c2] : !vx.view<?xi32, global> -> i32
    %f = vx.load %s[%c3] : !vx.view<?xi32, global> -> i32
    %e = vx.atomic_cas acq_rel device %f, %v, %s[%c3] : !vx.view<?xi32, global> -> i32
    vx.yield
  })";
  TestKernel kernel(module("%a: !vx.view<?xi32, global>, %o: !vx.view<?xi32, global>, %s: !vx.view<?xi32, global>",
                           "1;1;1", "70;1;1", body));
  ASSERT_EQ(kernel.error(), "");
  std::vector<int32_t> a(70), out(70), s{0, -100, 3, 5};
  for (int i = 0; i < 70; ++i)
    a[i] = (i * 37) % 70 - 20;
  kernel.run({Arg::tensor(a), Arg::tensor(out), Arg::tensor(s)});
  EXPECT_EQ(s[0], 70);
  EXPECT_EQ(s[1], 49);
  int32_t all = 3;
  for (int32_t value : a)
    all ^= value;
  EXPECT_EQ(s[2], all);
  std::sort(out.begin(), out.end());
  for (int i = 0; i < 70; ++i)
    EXPECT_EQ(out[i], i);
}

TEST(Memory, SumsFloatsAtomically) {
  const char* body = R"(
  %nx = vx.block_dim x
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %bid = vx.block_id x
  %base = arith.muli %bid, %nx : index
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %base, %x : index
    %v = vx.load %a[%i] guarded : !vx.view<?xf64, global> -> f64
    %old = vx.atomic_rmw addf relaxed device %v, %o[%c0] : !vx.view<?xf64, global> -> f64
    %m = vx.atomic_rmw maxf relaxed device %v, %o[%c1] : !vx.view<?xf64, global> -> f64
    vx.yield
  })";
  TestKernel kernel(
      module("%a: !vx.view<?xf64, global>, %o: !vx.view<?xf64, global>", "ceildiv(dim(0,0), 64);1;1", "64;1;1", body));
  ASSERT_EQ(kernel.error(), "");
  std::vector<double> a(500), out{0, -1e9};
  std::iota(a.begin(), a.end(), 1.0);
  kernel.run({Arg::tensor(a), Arg::tensor(out)});
  EXPECT_EQ(out[0], 500 * 501 / 2);
  EXPECT_EQ(out[1], 500);
}

TEST(Memory, KeepsLocalArraysPerThread) {
  // One array inside the region, one that survives a barrier.
  const char* body = R"(
  %nx = vx.block_dim x
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %keep = vx.alloc "keep" : !vx.view<5xi32, local>
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %t = vx.alloc "t" : !vx.view<5xi32, local>
    scf.for %k = %c0 to %c5 step %c1 {
      %s = arith.muli %x, %c5 : index
      %j = arith.addi %s, %k : index
      %v = vx.load %a[%j] guarded : !vx.view<?xi32, global> -> i32
      vx.store %v, %t[%k] : i32, !vx.view<5xi32, local>
    }
    %first = vx.load %t[%c0] : !vx.view<5xi32, local> -> i32
    %f = arith.index_cast %first : i32 to index
    %pick = arith.remui %f, %c5 : index
    %chosen = vx.load %t[%pick] : !vx.view<5xi32, local> -> i32
    scf.for %k = %c0 to %c5 step %c1 {
      %v = vx.load %t[%k] : !vx.view<5xi32, local> -> i32
      %w = arith.addi %v, %chosen : i32
      vx.store %w, %keep[%k] : i32, !vx.view<5xi32, local>
    }
    vx.yield
  }
  vx.barrier
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    scf.for %k = %c0 to %c5 step %c1 {
      %s = arith.muli %x, %c5 : index
      %j = arith.addi %s, %k : index
      %v = vx.load %keep[%k] : !vx.view<5xi32, local> -> i32
      vx.store %v, %o[%j] guarded : i32, !vx.view<?xi32, global>
    }
    vx.yield
  })";
  for (const char* block : {"64;1;1", "37;1;1", "floordiv(dim(0,0), 5);1;1"}) {
    TestKernel kernel(module("%a: !vx.view<?xi32, global>, %o: !vx.view<?xi32, global>", "1;1;1", block, body));
    ASSERT_EQ(kernel.error(), "");
    int threads = 37;
    std::vector<int32_t> a(5 * threads), out(5 * threads);
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = i * 13 % 101;
    kernel.run({Arg::tensor(a), Arg::tensor(out)});
    for (int t = 0; t < threads; ++t)
      for (int k = 0; k < 5; ++k)
        ASSERT_EQ(out[5 * t + k], a[5 * t + k] + a[5 * t + a[5 * t] % 5]) << block;
  }
}

TEST(Memory, WindowsOfViewsMoveWithTheThread) {
  // Row sums through a subview whose offset differs per thread.
  const char* body = R"(
  %nx = vx.block_dim x
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %columns = vx.dim %a, 1 : !vx.view<?x?xf32, global>
  %rows = vx.dim %a, 0 : !vx.view<?x?xf32, global>
  %middle = arith.subi %columns, %c1 : index
  %inner = vx.subview %a[%c0, %c1] sizes(%rows, %middle) : !vx.view<?x?xf32, global> to !vx.view<?x?xf32, global>
  vx.threads (%nx, %c1, %c1) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %in = arith.cmpi ult, %x, %rows : index
    scf.if %in {
      %row = vx.subview %inner[%x, %c0] sizes(%middle) dropped [0] : !vx.view<?x?xf32, global> to !vx.view<?xf32, global>
      %s = scf.for %k = %c0 to %middle step %c1 iter_args(%s = %f0) -> f32 {
        %v = vx.load %row[%k] : !vx.view<?xf32, global> -> f32
        %t = arith.addf %s, %v : f32
        scf.yield %t : f32
      }
      vx.store %s, %o[%x] : f32, !vx.view<?xf32, global>
    }
    vx.yield
  })";
  TestKernel kernel(module("%a: !vx.view<?x?xf32, global>, %o: !vx.view<?xf32, global>", "1;1;1", "64;1;1", body));
  ASSERT_EQ(kernel.error(), "");
  std::vector<float> a(40 * 9), out(40);
  std::iota(a.begin(), a.end(), 0.f);
  kernel.run({Arg::tensor(a, {40, 9}), Arg::tensor(out)});
  for (int r = 0; r < 40; ++r)
    ASSERT_EQ(out[r], std::accumulate(a.begin() + r * 9 + 1, a.begin() + r * 9 + 9, 0.f));
}

TEST(Memory, BlockLevelAccessesHappenOnce) {
  const char* body = R"(
  %c0 = arith.constant 0 : index
  %i1 = arith.constant 1 : i32
  %b = vx.block_id x
  %v = vx.load %a[%b] guarded : !vx.view<?xi32, global> -> i32
  %w = arith.addi %v, %i1 : i32
  vx.store %w, %a[%b] guarded : i32, !vx.view<?xi32, global>
  %old = vx.atomic_rmw addi relaxed device %v, %s[%c0] : !vx.view<?xi32, global> -> i32
  %f = arith.constant false
  %z = vx.atomic_rmw addi relaxed device %v, %s[%c0] mask %f : !vx.view<?xi32, global> -> i32)";
  TestKernel kernel(module("%a: !vx.view<?xi32, global>, %s: !vx.view<?xi32, global>", "8;1;1", "32;1;1", body));
  ASSERT_EQ(kernel.error(), "");
  std::vector<int32_t> a{1, 2, 3, 4, 5, 100, 100}, s{0};
  kernel.run({Arg::strided(a.data(), {5}, {1}), Arg::tensor(s)});
  EXPECT_EQ(a, (std::vector<int32_t>{2, 3, 4, 5, 6, 100, 100}));
  EXPECT_EQ(s[0], 15);
}

}  // namespace
}  // namespace vortex::target::cpu::emit::testing
