// Tile and whole-tensor kernels in floats, against loops in double.
#include "interpreter/number.h"
#include "interpreter/test_program.h"

#include <cmath>
#include <random>

namespace vortex::interpreter {
namespace {

std::vector<float> uniformFloats(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(-2, 2);
  std::vector<float> values(count);
  for (float& value : values)
    value = distribution(random);
  return values;
}

TEST(Tiles, SoftmaxByRowsInBlocks) {
  TestProgram program({input("a", "?x?xf32"), result("r", "?x?xf32", {"dim(0,0)", "dim(0,1)"})},
                      {{{"ceildiv(dim(0,0), 4)", "1", "1"}, {"1", "1", "1"}, R"(
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %low = arith.constant 0xFF800000 : f32
  %bx = vx.block_id x
  %row = arith.muli %bx, %c4 : index
  %n = vx.dim %a, 1 : !vx.view<?x?xf32, global>
  %t = vx.tile_load %a[%row, %c0] sizes(%n) other %low : f32 : !vx.view<?x?xf32, global> -> tensor<4x?xf32>
  %m = vx.reduce maxf %t dims [1] : tensor<4x?xf32> -> tensor<4xf32>
  %mb = vx.broadcast %m dims [0] sizes(%n) : tensor<4xf32> -> tensor<4x?xf32>
  %d = arith.subf %t, %mb : tensor<4x?xf32>
  %e = math.exp %d : tensor<4x?xf32>
  %s = vx.reduce addf %e dims [1] : tensor<4x?xf32> -> tensor<4xf32>
  %sb = vx.broadcast %s dims [0] sizes(%n) : tensor<4xf32> -> tensor<4x?xf32>
  %q = arith.divf %e, %sb : tensor<4x?xf32>
  vx.tile_store %q, %r[%row, %c0] : tensor<4x?xf32>, !vx.view<?x?xf32, global>)"}});
  constexpr size_t rows = 10, columns = 33;
  std::vector<float> a = uniformFloats(rows * columns, 1);
  std::vector<Argument> arguments{tensorOf(a, {rows, columns})};
  EXPECT_EQ(program.runText(arguments, {.check = true, .seed = 9}), "");
  for (size_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (size_t j = 0; j < columns; ++j)
      sum += std::exp(double(a[i * columns + j]));
    for (size_t j = 0; j < columns; ++j)
      EXPECT_NEAR(dataOf<float>(arguments[1])[i * columns + j], std::exp(double(a[i * columns + j])) / sum, 1e-7);
  }
}

/// Elements of such views lie before the first.
TEST(Tiles, ViewsWithNegativeStrides) {
  TestProgram program({input("a", "?x?xf32"), result("r", "?x?xf32", {"dim(0,0)", "dim(0,1)"})},
                      {{{"1", "1", "1"}, {"1", "1", "1"}, R"(
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %other = arith.constant 7.0 : f32
  %m = vx.dim %a, 0 : !vx.view<?x?xf32, global>
  %n = vx.dim %a, 1 : !vx.view<?x?xf32, global>
  %t = vx.tile_load %a[%c0, %c1] sizes(%m, %n) other %other : f32 : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  vx.tile_store %t, %r[%c0, %c0] : tensor<?x?xf32>, !vx.view<?x?xf32, global>)"}});
  constexpr int64_t rows = 3, columns = 5;
  std::vector<float> a = uniformFloats(rows * columns, 4);
  std::vector<Argument> arguments{Argument::tensor(a.data() + rows * columns - 1, {rows, columns}, {-columns, -1})};
  EXPECT_EQ(program.runText(arguments, {}), "");
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      EXPECT_EQ(dataOf<float>(arguments[1])[i * columns + j],
                j + 1 < columns ? a[size_t((rows - 1 - i) * columns + columns - 2 - j)] : 7.0f);
}

TEST(Tiles, HalfPrecisionProductAccumulatesInF32WithTiledLoop) {
  TestProgram program({input("a", "?x?xf16"), input("b", "?x?xf16"), result("r", "?x?xf32", {"dim(0,0)", "dim(1,1)"})},
                      {{{"ceildiv(dim(1,1), 8)", "ceildiv(dim(0,0), 8)", "1"}, {"1", "1", "1"}, R"(
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %bx = vx.block_id x
  %by = vx.block_id y
  %i = arith.muli %by, %c8 : index
  %j = arith.muli %bx, %c8 : index
  %k = vx.dim %a, 1 : !vx.view<?x?xf16, global>
  %sum = scf.for %p = %c0 to %k step %c8 iter_args(%acc = %zero) -> tensor<8x8xf32> {
    %x = vx.tile_load %a[%i, %p] : !vx.view<?x?xf16, global> -> tensor<8x8xf16>
    %y = vx.tile_load %b[%p, %j] : !vx.view<?x?xf16, global> -> tensor<8x8xf16>
    %d = vx.dot %x, %y, %acc : tensor<8x8xf16>, tensor<8x8xf16> -> tensor<8x8xf32>
    scf.yield %d : tensor<8x8xf32>
  }
  vx.tile_store %sum, %r[%i, %j] : tensor<8x8xf32>, !vx.view<?x?xf32, global>)"}});
  constexpr size_t m = 17, n = 9, depth = 21;
  auto halves = [](size_t count, unsigned seed) {
    std::vector<uint16_t> values;
    for (float value : uniformFloats(count, seed))
      values.push_back(uint16_t(encode(Format::F16, value)));
    return values;
  };
  std::vector<uint16_t> a = halves(m * depth, 1), b = halves(depth * n, 2);
  std::vector<Argument> arguments{tensorOf(a, {m, depth}), tensorOf(b, {depth, n})};
  EXPECT_EQ(program.runText(arguments, {.check = true}), "");
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t p = 0; p < depth; ++p)
        sum += decode(Format::F16, a[i * depth + p]) * decode(Format::F16, b[p * n + j]);
      EXPECT_NEAR(dataOf<float>(arguments[2])[i * n + j], sum, 1e-5);
    }
}

TEST(Tiles, NarrowArithmeticRoundsAfterEveryOperation) {
  for (auto [name, format] :
       {std::pair("f16", Format::F16), {"bf16", Format::BF16}, {"f8E4M3FN", Format::E4M3}, {"f8E5M2", Format::E5M2}}) {
    std::string type = std::string("tensor<?x") + name + ">", view = std::string("?x") + name;
    bool isByte = format == Format::E4M3 || format == Format::E5M2;
    TestProgram program({input("a", view), result("r", view, {"dim(0,0)"})}, {{{}, {}, R"(
  %c0 = arith.constant 0 : index
  %n = vx.dim %a, 0 : !vx.view<)" + view + R"(, global>
  %t = vx.tile_load %a[%c0] sizes(%n) : !vx.view<)" + view + ", global> -> " + type + R"(
  %p = arith.mulf %t, %t : )" + type + R"(
  %s = arith.addf %p, %t : )" + type + R"(
  vx.tile_store %s, %r[%c0] : )" + type + ", !vx.view<" + view + ", global>"}});
    std::vector<uint8_t> a;
    for (float value : uniformFloats(100, 3)) {
      uint64_t bits = encode(format, value);
      a.push_back(uint8_t(bits));
      if (!isByte)
        a.push_back(uint8_t(bits >> 8));
    }
    std::vector<Argument> arguments{tensorOf(a, {100})};
    EXPECT_EQ(program.runText(arguments), "");
    auto value = [&](const uint8_t* bytes, size_t i) {
      return decode(format, isByte ? bytes[i] : uint64_t(bytes[2 * i]) | uint64_t(bytes[2 * i + 1]) << 8);
    };
    for (size_t i = 0; i < 100; ++i) {
      double x = value(a.data(), i), product = decode(format, encode(format, x * x));
      EXPECT_EQ(value(dataOf<uint8_t>(arguments[1]), i), decode(format, encode(format, product + x)))
          << name << " " << x;
    }
  }
}

TEST(Tiles, EmptyReductionsGiveTheNeutralElement) {
  TestProgram program({input("a", "?xf32"), result("r", "3xf32", {"3"})}, {{{}, {}, R"(
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = vx.dim %a, 0 : !vx.view<?xf32, global>
  %t = vx.tile_load %a[%c0] sizes(%n) : !vx.view<?xf32, global> -> tensor<?xf32>
  %s = vx.reduce addf %t dims [0] : tensor<?xf32> -> f32
  %m = vx.reduce maxf %t dims [0] : tensor<?xf32> -> f32
  %p = vx.reduce mulf %t dims [0] : tensor<?xf32> -> f32
  vx.store %s, %r[%c0] : f32, !vx.view<3xf32, global>
  vx.store %m, %r[%c1] : f32, !vx.view<3xf32, global>
  vx.store %p, %r[%c2] : f32, !vx.view<3xf32, global>)"}});
  std::vector<float> a;
  std::vector<Argument> arguments{tensorOf(a, {0})};
  EXPECT_EQ(program.runText(arguments), "");
  const auto* r = dataOf<float>(arguments[1]);
  EXPECT_EQ(r[0], 0.0f);
  EXPECT_FALSE(std::signbit(r[0]));
  EXPECT_EQ(r[1], -INFINITY);
  EXPECT_EQ(r[2], 1.0f);
}

TEST(Tiles, OneElementTilesAreNotScalars) {
  TestProgram program({input("a", "?xi32"), result("r", "?xi32", {"dim(0,0)"})}, {{{}, {}, R"(
  %c0 = arith.constant 0 : index
  %n = vx.dim %a, 0 : !vx.view<?xi32, global>
  %t = vx.tile_load %a[%c0] sizes(%n) : !vx.view<?xi32, global> -> tensor<?xi32>
  %i = vx.iota 0 sizes(%n) -> tensor<?xi32>
  %u = arith.addi %t, %i : tensor<?xi32>
  %b = vx.broadcast %u dims [1] sizes(%n, %n) : tensor<?xi32> -> tensor<?x?xi32>
  %s = vx.reduce addi %b dims [0] : tensor<?x?xi32> -> tensor<?xi32>
  vx.tile_store %s, %r[%c0] inbounds : tensor<?xi32>, !vx.view<?xi32, global>)"}});
  for (int32_t n : {1, 2, 5}) {
    std::vector<int32_t> a(size_t(n), 10);
    std::vector<Argument> arguments{tensorOf(a)};
    EXPECT_EQ(program.runText(arguments), "");
    for (int32_t i = 0; i < n; ++i)
      EXPECT_EQ(dataOf<int32_t>(arguments[1])[i], n * (10 + i));
  }
}

TEST(Tiles, ExtentsThatDoNotFitAreFound) {
  TestProgram program({input("a", "?xi32"), input("b", "?xi32")}, {{{}, {}, R"(
  %c0 = arith.constant 0 : index
  %n = vx.dim %a, 0 : !vx.view<?xi32, global>
  %m = vx.dim %b, 0 : !vx.view<?xi32, global>
  %t = vx.tile_load %a[%c0] sizes(%n) : !vx.view<?xi32, global> -> tensor<?xi32>
  %u = vx.tile_load %b[%c0] sizes(%m) : !vx.view<?xi32, global> -> tensor<?xi32>
  %s = arith.addi %t, %u : tensor<?xi32>)"}});
  std::vector<int32_t> a(3), b(4);
  std::vector<Argument> arguments{tensorOf(a), tensorOf(b)};
  EXPECT_NE(program.runText(arguments).find("the extents [3] and [4] do not fit"), std::string::npos);
}

}  // namespace
}  // namespace vortex::interpreter
