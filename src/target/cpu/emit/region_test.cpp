// Thread regions: shapes of blocks, values between regions, element types.
#include "target/cpu/emit/testing/run_kernel.h"

#include "base/narrow_float.h"

#include <cmath>
#include <gtest/gtest.h>

namespace vortex::target::cpu::emit::testing {
namespace {

template <typename T> std::vector<T> randoms(size_t count, unsigned seed, double low = -10, double high = 10) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> distribution(low, high);
  std::vector<T> values(count);
  for (T& value : values)
    value = T(distribution(engine));
  return values;
}

const char* kVectorAdd = R"(
  %c256 = arith.constant 256 : index
  %b = vx.block_id x
  %nx = vx.block_dim x
  %one = arith.constant 1 : index
  %base = arith.muli %b, %nx : index
  vx.threads (%nx, %one, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %base, %x : index
    %u = vx.load %a[%i] guarded : !vx.view<?xf32, global> -> f32
    %v = vx.load %c[%i] guarded : !vx.view<?xf32, global> -> f32
    %s = arith.addf %u, %v : f32
    vx.store %s, %o[%i] guarded : f32, !vx.view<?xf32, global>
    vx.yield
  })";

TEST(Region, AddsVectorsOfAnyLength) {
  for (const char* block : {"256;1;1", "100;1;1", "7;1;1", "scalar(3);1;1"}) {
    std::string width = std::string(block).substr(0, std::string(block).find(';'));
    TestKernel kernel(
        module("%a: !vx.view<?xf32, global>, %c: !vx.view<?xf32, global>, %o: !vx.view<?xf32, global>, %n: index",
               "ceildiv(dim(2,0), " + width + ");1;1", block, kVectorAdd));
    ASSERT_EQ(kernel.error(), "");
    for (int64_t n : {1, 5, 32, 255, 256, 257, 1000}) {
      auto a = randoms<float>(n, 1), c = randoms<float>(n, 2);
      std::vector<float> out(n + 64, 77.f);
      ASSERT_EQ(
          kernel.run({Arg::tensor(a), Arg::tensor(c), Arg::strided(out.data(), {n}, {1}), Arg::scalar(uint64_t(33))}),
          0u);
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(out[i], a[i] + c[i]) << i << " of " << n << " block " << block;
      for (int64_t i = n; i < n + 64; ++i)
        ASSERT_EQ(out[i], 77.f) << "written past the end";
    }
  }
}

/// Conditions and guards are tested once for each warp where all lanes pass; here some, all or none pass each of them.
TEST(Region, ConditionsAndBoundsOfMemoryAreEachTheirOwn) {
  TestKernel kernel(module("%x: !vx.view<?xi32, global>, %o: !vx.view<?xi32, global>, %n: index", "3;1;1", "64;1;1", R"(
  %c64 = arith.constant 64 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant 1 : index
  %five = arith.constant 5 : i32
  %b = vx.block_id x
  %base = arith.muli %b, %c64 : index
  vx.threads (%c64, %one, %one) {
  ^bb0(%a: index, %y: index, %z: index, %l: index):
    %at = arith.addi %base, %l : index
    %in = arith.cmpi slt, %at, %n : index
    %v = scf.if %in -> (i32) {
      %p = arith.subi %at, %c16 : index
      %e = vx.load %x[%p] guarded : !vx.view<?xi32, global> -> i32
      scf.yield %e : i32
    } else {
      scf.yield %five : i32
    }
    %w = arith.addi %v, %five : i32
    scf.if %in {
      vx.store %w, %o[%at] guarded : i32, !vx.view<?xi32, global>
    }
    vx.yield
  })"));
  ASSERT_EQ(kernel.error(), "");
  for (const int64_t n : {0, 40, 64, 100, 192, 1000})
    for (const int64_t elements : {1, 31, 48, 112, 300})
      for (const int64_t results : {1, 32, 100, 128, 300}) {
        auto x = randoms<int32_t>(static_cast<size_t>(elements), 1);
        std::vector<int32_t> out(static_cast<size_t>(results) + 64, 77), expected = out;
        for (int64_t at = 0; at < std::min({n, results, int64_t{192}}); ++at)
          expected[static_cast<size_t>(at)] =
              5 + (at >= 16 && at - 16 < elements ? x[static_cast<size_t>(at - 16)] : 0);
        ASSERT_EQ(kernel.run({Arg::tensor(x), Arg::strided(out.data(), {results}, {1}), Arg::scalar(uint64_t(n))}), 0u);
        ASSERT_EQ(out, expected) << n << " of " << elements << " into " << results;
      }
}

TEST(Region, ThreadsKnowTheirPlaceInBlocksOfAnyShape) {
  for (const char* barrier : {"", "    vx.warp_barrier\n"})
    for (auto [nx, ny, nz] : {std::array{1, 3, 3},
                              {1, 8, 8},
                              {1, 1, 5},
                              {1, 33, 2},
                              {2, 1, 3},
                              {3, 5, 1},
                              {3, 1, 40},
                              {8, 2, 2},
                              {9, 1, 2},
                              {32, 1, 2},
                              {1, 2, 1},
                              {5, 2, 3}}) {
      const int64_t threads = int64_t(nx) * ny * nz;
      const std::string block = std::to_string(nx) + ";" + std::to_string(ny) + ";" + std::to_string(nz);
      TestKernel kernel(module("%o: !vx.view<?x3xi64, global>", "1;1;1", block, R"(
  %nx = vx.block_dim x
  %ny = vx.block_dim y
  %nz = vx.block_dim z
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  vx.threads (%nx, %ny, %nz) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
)" + std::string(barrier) + R"(
    %rows = arith.muli %z, %ny : index
    %row = arith.addi %rows, %y : index
    %before = arith.muli %row, %nx : index
    %at = arith.addi %before, %x : index
    %vx = arith.index_cast %x : index to i64
    %vy = arith.index_cast %y : index to i64
    %vz = arith.index_cast %z : index to i64
    vx.store %vx, %o[%at, %c0] guarded : i64, !vx.view<?x3xi64, global>
    vx.store %vy, %o[%l, %c1] guarded : i64, !vx.view<?x3xi64, global>
    vx.store %vz, %o[%at, %c2] guarded : i64, !vx.view<?x3xi64, global>
    vx.yield
  })"));
      ASSERT_EQ(kernel.error(), "");
      std::vector<int64_t> out(threads * 3, -1);
      ASSERT_EQ(kernel.run({Arg::tensor(out, {threads, 3})}), 0u);
      for (int64_t i = 0; i < threads; ++i) {
        ASSERT_EQ(out[3 * i], i % nx) << i << " of " << block << barrier;
        ASSERT_EQ(out[3 * i + 1], i / nx % ny) << i << " of " << block << barrier;
        ASSERT_EQ(out[3 * i + 2], i / nx / ny) << i << " of " << block << barrier;
      }
    }
}

TEST(Region, ReadsAndWritesStridedViews) {
  TestKernel kernel(
      module("%a: !vx.view<?xf32, global>, %c: !vx.view<?xf32, global>, %o: !vx.view<?xf32, global>, %n: index",
             "ceildiv(dim(2,0), 256);1;1", "256;1;1", kVectorAdd));
  int64_t n = 300;
  auto a = randoms<float>(3 * n, 1), c = randoms<float>(n, 2);
  std::vector<float> out(2 * n, 77.f);
  kernel.run({Arg::strided(a.data(), {n}, {3}), Arg::strided(c.data() + n - 1, {n}, {-1}),
              Arg::strided(out.data(), {n}, {2}), Arg::scalar(uint64_t(0))});
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(out[2 * i], a[3 * i] + c[n - 1 - i]);
    ASSERT_EQ(out[2 * i + 1], 77.f);
  }
}

TEST(Region, CoversTwoAndThreeDimensionalBlocks) {
  const char* body = R"(
  %bx = vx.block_id x
  %by = vx.block_id y
  %nx = vx.block_dim x
  %ny = vx.block_dim y
  %nz = vx.block_dim z
  %x0 = arith.muli %bx, %nx : index
  %y0 = arith.muli %by, %ny : index
  %c1000 = arith.constant 1000 : index
  vx.threads (%nx, %ny, %nz) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %x0, %x : index
    %j = arith.addi %y0, %y : index
    %s = arith.muli %l, %c1000 : index
    %t = arith.addi %s, %i : index
    %qWide = arith.index_cast %t : index to i64
    %q = arith.trunci %qWide : i64 to i32
    vx.store %q, %o[%z, %j, %i] guarded : i32, !vx.view<?x?x?xi32, global>
    vx.yield
  })";
  for (auto [bx, by, bz] : {std::tuple(16, 16, 1),
                            {32, 8, 1},
                            {8, 4, 3},
                            {4, 8, 2},
                            {1, 64, 1},
                            {24, 3, 2},
                            {10, 7, 1},
                            {64, 2, 2},
                            {3, 1, 5}}) {
    std::string sizes = std::to_string(bx) + ";" + std::to_string(by) + ";" + std::to_string(bz);
    TestKernel kernel(module(
        "%o: !vx.view<?x?x?xi32, global>",
        "ceildiv(dim(0,2), " + std::to_string(bx) + ");ceildiv(dim(0,1), " + std::to_string(by) + ");1", sizes, body));
    ASSERT_EQ(kernel.error(), "");
    int64_t nx = 45, ny = 37, nz = bz;
    std::vector<int32_t> out(nx * ny * nz, -1);
    kernel.run({Arg::tensor(out, {nz, ny, nx})});
    for (int64_t z = 0; z < nz; ++z)
      for (int64_t y = 0; y < ny; ++y)
        for (int64_t x = 0; x < nx; ++x) {
          int64_t linear = x % bx + bx * (y % by + by * z);
          ASSERT_EQ(out[(z * ny + y) * nx + x], linear * 1000 + x) << sizes << " at " << x << "," << y << "," << z;
        }
  }
}

TEST(Region, CarriesValuesAcrossBarriers) {
  // Each thread keeps a value in a "register" while a shared array is rotated.
  const char* body = R"(
  %nx = vx.block_dim x
  %one = arith.constant 1 : index
  %tmp = vx.alloc "tmp" : !vx.view<100xf32, shared>
  %r = vx.threads (%nx, %one, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %v = vx.load %a[%x] : !vx.view<?xf32, global> -> f32
    %w = arith.addf %v, %v : f32
    vx.store %w, %tmp[%x] : f32, !vx.view<100xf32, shared>
    vx.yield %v : f32
  } : tensor<?xf32>
  vx.barrier
  vx.threads (%nx, %one, %one) ins(%r : tensor<?xf32>) {
  ^bb0(%x: index, %y: index, %z: index, %l: index, %v: f32):
    %n1 = arith.addi %x, %one : index
    %k = arith.remui %n1, %nx : index
    %w = vx.load %tmp[%k] : !vx.view<100xf32, shared> -> f32
    %s = arith.subf %w, %v : f32
    vx.store %s, %a[%x] : f32, !vx.view<?xf32, global>
    vx.yield
  })";
  for (int64_t n : {100, 32, 1, 77}) {
    TestKernel kernel(
        module("%a: !vx.view<?xf32, global>", "1;1;1", n == 77 ? "dim(0,0);1;1" : std::to_string(n) + ";1;1", body));
    ASSERT_EQ(kernel.error(), "");
    auto a = randoms<float>(n, 3), before = a;
    kernel.run({Arg::tensor(a)});
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(a[i], 2 * before[(i + 1) % n] - before[i]);
  }
}

template <typename T, typename F> void checkType(const std::string& type, const std::string& op, F expected) {
  std::string view = "!vx.view<?x" + type + ", global>";
  std::string body = R"(
  %nx = vx.block_dim x
  %one = arith.constant 1 : index
  %b = vx.block_id x
  %base = arith.muli %b, %nx : index
  vx.threads (%nx, %one, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %i = arith.addi %base, %x : index
    %u = vx.load %a[%i] guarded : VIEW -> TYPE
    %v = vx.load %c[%i] guarded : VIEW -> TYPE
    %s = OP %u, %v : TYPE
    vx.store %s, %o[%i] guarded : TYPE, VIEW
    vx.yield
  })";
  auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at; (at = body.find(from)) != std::string::npos;)
      body.replace(at, from.size(), to);
  };
  replace("VIEW", view);
  replace("TYPE", type);
  replace("OP", op);
  TestKernel kernel(
      module("%a: " + view + ", %c: " + view + ", %o: " + view, "ceildiv(dim(2,0), 64);1;1", "64;1;1", body));
  ASSERT_EQ(kernel.error(), "");
  for (int64_t n : {3, 64, 100}) {
    std::mt19937 engine(n);
    std::vector<T> a(n), c(n), out(n + 8);
    for (int64_t i = 0; i < n; ++i) {
      a[i] = T(engine());
      c[i] = T(engine());
    }
    std::vector<T> untouched = out;
    kernel.run({Arg::tensor(a), Arg::tensor(c), Arg::strided(out.data(), {n}, {1})});
    for (int64_t i = 0; i < n; ++i)
      ASSERT_TRUE(expected(a[i], c[i], out[i]))
          << type << " " << op << " " << double(a[i]) << " " << double(c[i]) << " → " << double(out[i]);
    for (int64_t i = n; i < n + 8; ++i)
      ASSERT_EQ(out[i], untouched[i]);
  }
}

TEST(Region, HandlesEveryElementType) {
  auto adds = [](auto a, auto b, auto out) { return out == decltype(a)(a + b); };
  checkType<uint8_t>("i8", "arith.addi", adds);
  checkType<uint16_t>("i16", "arith.addi", adds);
  checkType<uint32_t>("i32", "arith.muli", [](uint32_t a, uint32_t b, uint32_t out) { return out == a * b; });
  checkType<uint64_t>("i64", "arith.subi", [](uint64_t a, uint64_t b, uint64_t out) { return out == a - b; });
  checkType<int32_t>("i32", "vx.int divs", [](int32_t a, int32_t b, int32_t out) {
    return out == (b == 0 ? 0 : b == -1 ? int32_t(0u - uint32_t(a)) : a / b);
  });
  checkType<uint64_t>("i64", "vx.int shl", [](uint64_t a, uint64_t b, uint64_t out) { return out == a << (b & 63); });
  checkType<double>("f64", "arith.mulf", [](double a, double b, double out) { return out == a * b; });
  checkType<float>("f32", "arith.maximumf", [](float a, float b, float out) { return out == std::max(a, b); });
  auto rounds = [](base::NarrowFormat format) {
    return [format](uint16_t a, uint16_t b, uint16_t out) {
      double exact = base::decodeNarrow(format, a) + base::decodeNarrow(format, b),
             got = base::decodeNarrow(format, out);
      uint16_t rounded = base::encodeNarrow(format, float(exact));
      return out == rounded || (std::isnan(got) && std::isnan(base::decodeNarrow(format, rounded)));
    };
  };
  checkType<uint16_t>("f16", "arith.addf", rounds(base::kF16));
  checkType<uint16_t>("bf16", "arith.addf", rounds(base::kBF16));
  checkType<uint8_t>("f8E4M3FN", "arith.addf", rounds(base::kF8E4M3));
  checkType<uint8_t>("f8E5M2", "arith.addf", rounds(base::kF8E5M2));
}

TEST(Region, MasksBoolsOneBytePerElement) {
  const char* body = R"(
  %nx = vx.block_dim x
  %one = arith.constant 1 : index
  vx.threads (%nx, %one, %one) {
  ^bb0(%x: index, %y: index, %z: index, %l: index):
    %u = vx.load %a[%x] guarded : !vx.view<?xi1, global> -> i1
    %v = vx.load %c[%x] guarded : !vx.view<?xi1, global> -> i1
    %s = arith.xori %u, %v : i1
    vx.store %s, %o[%x] guarded : i1, !vx.view<?xi1, global>
    vx.yield
  })";
  TestKernel kernel(module("%a: !vx.view<?xi1, global>, %c: !vx.view<?xi1, global>, %o: !vx.view<?xi1, global>",
                           "1;1;1", "128;1;1", body));
  ASSERT_EQ(kernel.error(), "");
  int64_t n = 101;
  std::vector<uint8_t> a(n), c(n), out(n + 40, 9);
  for (int64_t i = 0; i < n; ++i) {
    a[i] = i * 7 % 3 == 0;
    c[i] = i * 5 % 4 == 0;
  }
  kernel.run({Arg::tensor(a), Arg::tensor(c), Arg::strided(out.data(), {n}, {1})});
  for (int64_t i = 0; i < n + 40; ++i)
    ASSERT_EQ(out[i], i < n ? a[i] ^ c[i] : 9);
}

}  // namespace
}  // namespace vortex::target::cpu::emit::testing
