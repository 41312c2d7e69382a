// Per-thread kernels against loops.
#include "interpreter/test_program.h"

#include <chrono>
#include <numeric>
#include <random>

namespace vortex::interpreter {
namespace {

std::vector<float> randomFloats(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(-2, 2);
  std::vector<float> values(count);
  for (float& value : values)
    value = distribution(random);
  return values;
}

const std::vector<std::string> kBlocksOf64 = {"ceildiv(dim(0,0), 64)", "1", "1"}, k64 = {"64", "1", "1"};

TEST(Threads, SaxpyWithARaggedLastBlock) {
  TestProgram program(
      {input("a", "?xf32"), input("b", "?xf32"), scalar("k", "f32"), result("r", "?xf32", {"dim(0,0)"})},
      {{kBlocksOf64, k64, perThread(R"(
    %n = vx.dim %a, 0 : !vx.view<?xf32, global>
    %in = arith.cmpi ult, %i, %n : index
    %u = vx.load %a[%i] mask %in guarded : !vx.view<?xf32, global> -> f32
    %v = vx.load %b[%i] mask %in guarded : !vx.view<?xf32, global> -> f32
    %p = arith.mulf %k, %u : f32
    %s = arith.addf %p, %v : f32
    vx.store %s, %r[%i] mask %in guarded : f32, !vx.view<?xf32, global>)")}});
  for (size_t n : {0, 1, 63, 64, 65, 1000}) {
    std::vector<float> a = randomFloats(n, 1), b = randomFloats(n, 2);
    for (uint64_t seed : {0, 7}) {
      std::vector<Argument> arguments{tensorOf(a, {int64_t(n)}), tensorOf(b, {int64_t(n)}),
                                      Argument::bits(std::bit_cast<uint32_t>(1.7f))};
      EXPECT_EQ(program.runText(arguments, {.check = true, .seed = seed}), "");
      for (size_t i = 0; i < n; ++i) {
        float product = 1.7f * a[i];  // two roundings
        EXPECT_EQ(dataOf<float>(arguments[3])[i], product + b[i]);
      }
    }
  }
}

TEST(Threads, DivergentLoopsKeepEachLanesValue) {
  // Collatz: steps to reach 1.
  TestProgram program({input("a", "?xi32"), result("r", "?xi32", {"dim(0,0)"})}, {{kBlocksOf64, k64, perThread(R"(
    %n = vx.load %a[%i] : !vx.view<?xi32, global> -> i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %end:2 = scf.while (%v = %n, %s = %c0) : (i32, i32) -> (i32, i32) {
      %more = arith.cmpi sgt, %v, %c1 : i32
      scf.condition(%more) %v, %s : i32, i32
    } do {
    ^bb0(%v: i32, %s: i32):
      %bit = arith.andi %v, %c1 : i32
      %odd = arith.cmpi eq, %bit, %c1 : i32
      %next = scf.if %odd -> i32 {
        %t = arith.muli %v, %c3 : i32
        %u = arith.addi %t, %c1 : i32
        scf.yield %u : i32
      } else {
        %h = arith.shrsi %v, %c1 : i32
        scf.yield %h : i32
      }
      %t = arith.addi %s, %c1 : i32
      scf.yield %next, %t : i32, i32
    }
    vx.store %end#1, %r[%i] : i32, !vx.view<?xi32, global>)")}});
  std::vector<int32_t> a(128);
  std::iota(a.begin(), a.end(), 1);
  std::vector<Argument> arguments{tensorOf(a)};
  EXPECT_EQ(program.runText(arguments), "");
  for (int32_t i = 0; i < 128; ++i) {
    int32_t steps = 0;
    for (int64_t v = i + 1; v > 1; ++steps)
      v = v % 2 ? 3 * v + 1 : v / 2;
    EXPECT_EQ(dataOf<int32_t>(arguments[1])[i], steps) << i;
  }
}

TEST(Threads, LoopBoundsMayDifferByLaneAndCarriedValuesMaySwap) {
  // Fibonacci of the thread id, by swapping two carried values.
  TestProgram program({input("a", "?xi32"), result("r", "?xi32", {"dim(0,0)"})}, {{kBlocksOf64, k64, perThread(R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %f0 = arith.constant 0 : i32
    %f1 = arith.constant 1 : i32
    %f:2 = scf.for %k = %c0 to %i step %c1 iter_args(%p = %f0, %q = %f1) -> (i32, i32) {
      %s = arith.addi %p, %q : i32
      scf.yield %q, %s : i32, i32
    }
    vx.store %f#0, %r[%i] : i32, !vx.view<?xi32, global>)")}});
  std::vector<int32_t> a(64);
  std::vector<Argument> arguments{tensorOf(a)};
  EXPECT_EQ(program.runText(arguments), "");
  uint32_t p = 0, q = 1;
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(dataOf<uint32_t>(arguments[1])[i], p) << i;
    p = std::exchange(q, p + q);
  }
}

// The seed's tree reduction: shared memory, a uniform loop of regions and barriers.
const char* const kTree = R"(
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %zero = arith.constant 0 : index
  %false = arith.constant false
  %nx = vx.block_dim x
  %bx = vx.block_id x
  %s = vx.alloc "partial" : !vx.view<64xf32, shared>
  vx.threads (%nx, %one, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %base = arith.muli %bx, %nx : index
    %i = arith.addi %base, %x : index
    %n = vx.dim %a, 0 : !vx.view<?xf32, global>
    %in = arith.cmpi ult, %i, %n : index
    %v = vx.load %a[%i] mask %in guarded : !vx.view<?xf32, global> -> f32
    vx.store %v, %s[%x] : f32, !vx.view<64xf32, shared>
  }
  vx.barrier
  %half = vx.int shru %nx, %one : index
  %end = scf.while (%w = %half) : (index) -> index {
    %more = arith.cmpi ugt, %w, %zero : index
    scf.condition(%more) %w : index
  } do {
  ^bb0(%w: index):
    vx.threads (%nx, %one, %one) {
    ^bb0(%x: index, %y: index, %z: index, %l: index):
      %low = arith.cmpi ult, %x, %w : index
      scf.if %low {
        %j = arith.addi %x, %w : index
        %u = vx.load %s[%x] : !vx.view<64xf32, shared> -> f32
        %v = vx.load %s[%j] : !vx.view<64xf32, shared> -> f32
        %t = arith.addf %u, %v : f32
        vx.store %t, %s[%x] : f32, !vx.view<64xf32, shared>
      }
    }
    BARRIER
    %h = vx.int shru %w, %one : index
    scf.yield %h : index
  }
  %t = vx.load %s[%zero] : !vx.view<64xf32, shared> -> f32
  vx.store %t, %p[%bx] : f32, !vx.view<?xf32, global>
)";

std::string tree(const std::string& barrier) {
  std::string text = kTree;
  return text.replace(text.find("BARRIER"), 7, barrier);
}

TEST(Threads, TreeReductionInTwoPhasesThroughATemporary) {
  // The second phase adds the blocks' sums in order.
  const char* total = R"(
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %n = vx.dim %p, 0 : !vx.view<?xf32, global>
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%t = %f0) -> f32 {
    %v = vx.load %p[%k] : !vx.view<?xf32, global> -> f32
    %u = arith.addf %t, %v : f32
    scf.yield %u : f32
  }
  vx.store %s, %r[%c0] : f32, !vx.view<1xf32, global>)";
  TestProgram program(
      {input("a", "?xf32"), result("r", "1xf32", {"1"}), temporary("p", "?xf32", {"ceildiv(dim(0,0), 64)"})},
      {{kBlocksOf64, k64, tree("vx.barrier")}, {{"1", "1", "1"}, {"1", "1", "1"}, total}});
  std::vector<float> a = randomFloats(1000, 3);
  double sum = std::accumulate(a.begin(), a.end(), 0.0);
  for (uint64_t seed : {0, 1, 2}) {
    std::vector<Argument> arguments{tensorOf(a)};
    EXPECT_EQ(program.runText(arguments, {.check = true, .seed = seed}), "");
    EXPECT_NEAR(*dataOf<float>(arguments[1]), sum, 1e-4);
  }
}

TEST(Threads, AMissingBarrierIsARaceNamingBothPlaces) {
  TestProgram program({input("a", "?xf32"), result("p", "?xf32", {"ceildiv(dim(0,0), 64)"})},
                      {{kBlocksOf64, k64, tree("")}});
  std::vector<float> a(64, 1);
  std::vector<Argument> arguments{tensorOf(a)};
  std::vector<Finding> findings = program.run(arguments, {.check = true});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, Finding::Kind::Race);
  EXPECT_NE(findings[0].message.find("`partial`"), std::string::npos) << findings[0].message;
  EXPECT_NE(findings[0].message.find("of block (0, 0, 0)"), std::string::npos);
  EXPECT_EQ(findings[0].location.file, "test.vx");
  ASSERT_EQ(findings[0].notes.size(), 1u);
  EXPECT_NE(findings[0].notes[0].location.line, 0u);
  EXPECT_NE(findings[0].notes[0].location.line, findings[0].location.line);
}

TEST(Threads, HistogramWithAtomics) {
  TestProgram program({input("a", "?xi32"), result("h", "?xi32", {"16"}, true)}, {{kBlocksOf64, k64, perThread(R"(
    %n = vx.dim %a, 0 : !vx.view<?xi32, global>
    %in = arith.cmpi ult, %i, %n : index
    %v = vx.load %a[%i] mask %in guarded : !vx.view<?xi32, global> -> i32
    %b = arith.index_castui %v : i32 to index
    %c1 = arith.constant 1 : i32
    %old = vx.atomic_rmw addi relaxed device %c1, %h[%b] mask %in : !vx.view<?xi32, global> -> i32)")}});
  std::mt19937 random(4);
  std::vector<int32_t> a(1000), expected(16, 0);
  for (int32_t& v : a)
    ++expected[size_t(v = int32_t(random() % 16))];
  std::vector<Argument> arguments{tensorOf(a)};
  EXPECT_EQ(program.runText(arguments, {.check = true, .seed = 5}), "");
  EXPECT_EQ(std::vector<int32_t>(dataOf<int32_t>(arguments[1]), dataOf<int32_t>(arguments[1]) + 16), expected);
}

TEST(Threads, WarpOperationsAndValuesAcrossRegions) {
  TestProgram program({input("a", "?xi32"), result("r", "?x4xi32", {"dim(0,0)", "4"})},
                      {{{"1", "1", "1"}, {"dim(0,0)", "1", "1"}, R"(
  %one = arith.constant 1 : index
  %nx = vx.block_dim x
  %v = vx.threads (%nx, %one, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %u = vx.load %a[%x] : !vx.view<?xi32, global> -> i32
    vx.yield %u : i32
  } : tensor<?xi32>
  vx.barrier
  vx.threads (%nx, %one, %one) ins(%v : tensor<?xi32>) {
  ^bb0(%x: index, %y: index, %z: index, %l: index, %u: i32):
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %two = arith.constant 2 : i32
    %ten = arith.constant 10 : i32
    %sum = vx.warp_reduce addi %u : i32
    %down = vx.warp_shuffle down %u, %two : i32
    %small = arith.cmpi slt, %u, %ten : i32
    %any = vx.warp_vote ballot %small -> i32
    %all = vx.warp_vote all %small -> i1
    %wide = arith.extui %all : i1 to i32
    vx.store %sum, %r[%x, %c0] : i32, !vx.view<?x4xi32, global>
    vx.store %down, %r[%x, %one] : i32, !vx.view<?x4xi32, global>
    vx.store %any, %r[%x, %c2] : i32, !vx.view<?x4xi32, global>
    vx.store %wide, %r[%x, %c3] : i32, !vx.view<?x4xi32, global>
  })"}});
  std::vector<int32_t> a(72);  // the last warp has eight threads
  std::iota(a.begin(), a.end(), 0);
  std::vector<Argument> arguments{tensorOf(a)};
  EXPECT_EQ(program.runText(arguments, {.check = true, .seed = 3}), "");
  const auto* r = dataOf<int32_t>(arguments[1]);
  for (int i = 0; i < 72; ++i) {
    int first = i / 32 * 32, last = std::min(first + 32, 72);
    int sum = 0;
    uint32_t ballot = 0;
    for (int j = first; j < last; ++j) {
      sum += j;
      ballot |= uint32_t(j < 10) << (j - first);
    }
    EXPECT_EQ(r[4 * i], sum);
    EXPECT_EQ(r[4 * i + 1], i + 2 < last ? i + 2 : i);
    EXPECT_EQ(uint32_t(r[4 * i + 2]), ballot);
    EXPECT_EQ(r[4 * i + 3], 0);
  }
}

TEST(Threads, TransposeThroughSwizzledSharedMemory) {
  for (const char* layout : {"", ", col_major", ", swizzle<3, 7, 0>", ", col_major, swizzle<3, 7, 0>"}) {
    std::string shared = std::string("!vx.view<8x8xf16, shared") + layout + ">";
    TestProgram program({input("a", "8x8xf16"), result("r", "8x8xf16", {"8", "8"})},
                        {{{"1", "1", "1"}, {"8", "8", "1"}, R"(
  %one = arith.constant 1 : index
  %nx = vx.block_dim x
  %ny = vx.block_dim y
  %s = vx.alloc : )" + shared + R"(
  vx.threads (%nx, %ny, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %v = vx.load %a[%y, %x] : !vx.view<8x8xf16, global> -> f16
    vx.store %v, %s[%y, %x] : f16, )" + shared + R"(
  }
  vx.barrier
  vx.threads (%nx, %ny, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %v = vx.load %s[%x, %y] : )" + shared + R"( -> f16
    vx.store %v, %r[%y, %x] : f16, !vx.view<8x8xf16, global>
  })"}});
    std::vector<uint16_t> a(64);
    std::iota(a.begin(), a.end(), 100);
    std::vector<Argument> arguments{tensorOf(a, {8, 8})};
    EXPECT_EQ(program.runText(arguments, {.check = true}), "") << layout;
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 8; ++j)
        EXPECT_EQ(dataOf<uint16_t>(arguments[1])[i * 8 + j], a[size_t(j * 8 + i)]) << layout;
  }
}

TEST(Threads, LocalMemoryIsPerThreadInsideAndOutsideRegions) {
  TestProgram program({input("a", "?xi32"), result("r", "?xi32", {"dim(0,0)"})}, {{kBlocksOf64, k64, R"(
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %nx = vx.block_dim x
  %keep = vx.alloc : !vx.view<2xi32, local>
  vx.threads (%nx, %one, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %vWide = arith.index_cast %x : index to i64
    %v = arith.trunci %vWide : i64 to i32
    vx.store %v, %keep[%one] : i32, !vx.view<2xi32, local>
  }
  vx.barrier
  vx.threads (%nx, %one, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %mine = vx.alloc : !vx.view<3xi32, local>
    %u = vx.load %keep[%one] : !vx.view<2xi32, local> -> i32
    vx.store %u, %mine[%zero] : i32, !vx.view<3xi32, local>
    %w = vx.load %mine[%zero] : !vx.view<3xi32, local> -> i32
    vx.store %w, %r[%x] : i32, !vx.view<?xi32, global>
  })"}});
  std::vector<int32_t> a(64);
  std::vector<Argument> arguments{tensorOf(a)};
  EXPECT_EQ(program.runText(arguments, {.check = true}), "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(dataOf<int32_t>(arguments[1])[i], i);
}

TEST(Threads, CallsRecursionAndSubviewsByLane) {
  const char* factorial = R"(
func.func @factorial(%n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %end = arith.cmpi sle, %n, %c0 : i32
  %r = scf.if %end -> i32 {
    scf.yield %c1 : i32
  } else {
    %m = arith.subi %n, %c1 : i32
    %f = func.call @factorial(%m) : (i32) -> i32
    %p = arith.muli %n, %f : i32
    scf.yield %p : i32
  }
  return %r : i32
})";
  TestProgram program({input("a", "?x4xi32"), result("r", "?xi32", {"dim(0,0)"})}, {{kBlocksOf64, k64, perThread(R"(
    %c2 = arith.constant 2 : index
    %row = vx.subview %a[%i, %c2] dropped [0] : !vx.view<?x4xi32, global> to !vx.view<2xi32, global>
    %v = vx.load %row[%one] : !vx.view<2xi32, global> -> i32
    %f = func.call @factorial(%v) : (i32) -> i32
    vx.store %f, %r[%i] : i32, !vx.view<?xi32, global>)")}},
                      factorial);
  std::vector<int32_t> a(64 * 4);
  for (size_t i = 0; i < 64; ++i)
    a[i * 4 + 3] = int32_t(i % 10);
  std::vector<Argument> arguments{tensorOf(a, {64, 4})};
  EXPECT_EQ(program.runText(arguments, {.check = true}), "");
  for (int i = 0; i < 64; ++i) {
    int expected = 1;
    for (int k = 2; k <= i % 10; ++k)
      expected *= k;
    EXPECT_EQ(dataOf<int32_t>(arguments[1])[i], expected) << i;
  }
}

TEST(Threads, StridedViewsAndLaunchSlots) {
  TestProgram program({input("a", "?x?xf32"), result("r", "?xf32", {"dim(0,0)"})}, {{kBlocksOf64, k64, perThread(R"(
    %v = vx.load %a[%i, %one] : !vx.view<?x?xf32, global> -> f32
    vx.store %v, %r[%i] : f32, !vx.view<?xf32, global>)")}});
  std::vector<float> a = randomFloats(2 * 64, 6), r(64, -1);
  // The transposed view of a [2, 64] tensor.
  auto address = [](void* pointer) { return uint64_t(reinterpret_cast<uintptr_t>(pointer)); };
  std::vector<uint64_t> slots{address(a.data()), 64, 2, 1, 64, address(r.data()), 64, 1};
  auto interpreter = Interpreter::create(program.module());
  ASSERT_TRUE(interpreter.ok());
  auto findings = interpreter->runSlots(slots);
  ASSERT_TRUE(findings.ok());
  EXPECT_TRUE(findings->empty());
  EXPECT_EQ(r, std::vector<float>(a.begin() + 64, a.end()));
  slots.push_back(0);
  EXPECT_FALSE(interpreter->runSlots(slots).ok());
}

TEST(Threads, APerThreadMatrixProductIsFast) {
  TestProgram program({input("a", "?x?xf32"), input("b", "?x?xf32"), result("r", "?x?xf32", {"dim(0,0)", "dim(1,1)"})},
                      {{{"ceildiv(dim(1,1), 16)", "ceildiv(dim(0,0), 16)", "1"}, {"16", "16", "1"}, R"(
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %nx = vx.block_dim x
  %ny = vx.block_dim y
  %bx = vx.block_id x
  %by = vx.block_id y
  %k = vx.dim %a, 1 : !vx.view<?x?xf32, global>
  vx.threads (%nx, %ny, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %jb = arith.muli %bx, %nx : index
    %j = arith.addi %jb, %x : index
    %ib = arith.muli %by, %ny : index
    %i = arith.addi %ib, %y : index
    %s = scf.for %p = %zero to %k step %one iter_args(%t = %f0) -> f32 {
      %u = vx.load %a[%i, %p] : !vx.view<?x?xf32, global> -> f32
      %v = vx.load %b[%p, %j] : !vx.view<?x?xf32, global> -> f32
      %w = arith.mulf %u, %v : f32
      %q = arith.addf %t, %w : f32
      scf.yield %q : f32
    }
    vx.store %s, %r[%i, %j] : f32, !vx.view<?x?xf32, global>
  })"}});
  constexpr int64_t n = 128;
  std::vector<float> a = randomFloats(n * n, 7), b = randomFloats(n * n, 8);
  std::vector<Argument> arguments{tensorOf(a, {n, n}), tensorOf(b, {n, n})};
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(program.runText(arguments), "");
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordProperty("seconds", std::to_string(seconds));
  std::printf("128^3 per-thread product: %.2f s\n", seconds);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < n; ++p) {
        float product = a[size_t(i * n + p)] * b[size_t(p * n + j)];
        sum += product;
      }
      ASSERT_EQ(dataOf<float>(arguments[2])[i * n + j], sum);
    }
}

}  // namespace
}  // namespace vortex::interpreter
