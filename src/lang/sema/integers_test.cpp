#include "lang/sema/integers.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace vortex::lang {
namespace {

/// The oracle: the processor's own arithmetic on eight bits, every pair of operands.
template <class T> void compareAllPairs(Scalar type) {
  for (int i = -128; i < 256; ++i)
    for (int j = -128; j < 256; ++j) {
      const T a = static_cast<T>(i), b = static_cast<T>(j);
      const auto is = [&](BinaryOp op, int exact) {
        const IntegerResult result = integerBinary(op, type, a, b);
        EXPECT_EQ(static_cast<int>(result.value), static_cast<int>(static_cast<T>(exact))) << i << " " << j;
        EXPECT_EQ(result.fits, static_cast<int>(static_cast<T>(exact)) == exact) << i << " " << j;
      };
      is(BinaryOp::Add, a + b);
      is(BinaryOp::Sub, a - b);
      is(BinaryOp::Mul, a * b);
      is(BinaryOp::Div, b == 0 ? 0 : a / b);
      is(BinaryOp::Rem, b == 0 ? 0 : a % b);
      EXPECT_EQ(static_cast<int>(integerBinary(BinaryOp::Shl, type, a, b).value),
                static_cast<int>(static_cast<T>(static_cast<unsigned>(a) << (static_cast<unsigned>(b) & 7))));
      EXPECT_EQ(static_cast<int>(integerBinary(BinaryOp::Shr, type, a, b).value), a >> (static_cast<unsigned>(b) & 7));
    }
}

TEST(Integers, AgreeWithTheProcessorOnEightBits) {
  compareAllPairs<int8_t>(Scalar::I8);
  compareAllPairs<uint8_t>(Scalar::U8);
}

TEST(Integers, PowersAreProducts) {
  for (int base = -6; base <= 6; ++base) {
    __int128 product = 1;
    bool fits = true;
    for (int exponent = 0; exponent < 40; ++exponent) {
      const IntegerResult result = integerBinary(BinaryOp::Pow, Scalar::I32, base, exponent);
      EXPECT_EQ(static_cast<int64_t>(result.value), static_cast<int64_t>(wrapInteger(Scalar::I32, product)));
      EXPECT_EQ(result.fits, fits) << base << " ** " << exponent;
      const IntegerResult next = integerBinary(BinaryOp::Mul, Scalar::I64, product, base);
      fits = fits && next.fits && wrapInteger(Scalar::I32, next.value) == next.value;
      product = wrapInteger(Scalar::I32, next.value);
    }
  }
}

TEST(Integers, WidestProductsDoNotLoseTheirSign) {
  const __int128 most = highest(Scalar::U64);
  const IntegerResult square = integerBinary(BinaryOp::Mul, Scalar::U64, most, most);
  EXPECT_EQ(static_cast<uint64_t>(square.value), 1U);
  EXPECT_FALSE(square.fits);
  const std::array<__int128, 2> args{most, most};
  EXPECT_EQ(static_cast<uint64_t>(*integerBuiltin(Builtin::MulHi, Scalar::U64, args)), UINT64_MAX - 1);
}

TEST(Integers, CeilDivRoundsUpWhateverTheSigns) {
  for (int a = -9; a <= 9; ++a)
    for (int b = -4; b <= 4; ++b) {
      const std::array<__int128, 2> args{a, b};
      const int quotient = static_cast<int>(*integerBuiltin(Builtin::CeilDiv, Scalar::I32, args));
      if (b == 0) {
        EXPECT_EQ(quotient, 0);
        continue;
      }
      const int scaled = b > 0 ? a : -a, by = b > 0 ? b : -b;
      EXPECT_GE(quotient * by, scaled);
      EXPECT_LT((quotient - 1) * by, scaled);
    }
}

TEST(Integers, FloatsSaturate) {
  EXPECT_EQ(static_cast<int>(saturateToInteger(Scalar::I8, 1e30)), 127);
  EXPECT_EQ(static_cast<int>(saturateToInteger(Scalar::I8, -1e30)), -128);
  EXPECT_EQ(static_cast<int>(saturateToInteger(Scalar::U8, -3.5)), 0);
  EXPECT_EQ(static_cast<int>(saturateToInteger(Scalar::U8, 3.9)), 3);
  EXPECT_EQ(static_cast<uint64_t>(saturateToInteger(Scalar::U64, 18446744073709551616.0)), UINT64_MAX);
  EXPECT_EQ(static_cast<int>(saturateToInteger(Scalar::I32, __builtin_nan(""))), 0);
}

}  // namespace
}  // namespace vortex::lang
