#include "interpreter/number.h"

#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>

namespace vortex::interpreter {
namespace {

const std::pair<Format, const llvm::fltSemantics*> kNarrow[] = {{Format::F16, &llvm::APFloat::IEEEhalf()},
                                                                {Format::BF16, &llvm::APFloat::BFloat()},
                                                                {Format::E4M3, &llvm::APFloat::Float8E4M3FN()},
                                                                {Format::E5M2, &llvm::APFloat::Float8E5M2()}};

llvm::APFloat reference(const llvm::fltSemantics& semantics, double value) {
  llvm::APFloat result(value);
  bool lossy = false;
  result.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &lossy);
  return result;
}

TEST(Number, EveryNarrowValueDecodesExactly) {
  for (auto [format, semantics] : kNarrow) {
    unsigned width = llvm::APFloat::semanticsSizeInBits(*semantics);
    for (uint64_t bits = 0; bits < (uint64_t(1) << width); ++bits) {
      llvm::APFloat exact(*semantics, llvm::APInt(width, bits));
      double value = decode(format, bits);
      if (exact.isNaN()) {
        EXPECT_TRUE(std::isnan(value)) << bits;
        continue;
      }
      EXPECT_EQ(value, exact.convertToDouble()) << bits;
      EXPECT_EQ(encode(format, value), bits);
    }
  }
}

TEST(Number, EncodingRoundsAsIeeeDoes) {
  std::mt19937_64 random(1);
  for (auto [format, semantics] : kNarrow)
    for (int i = 0; i < 200000; ++i) {
      int exponent = int(random() % 60) - 40 + (format == Format::BF16 ? int(random() % 240) - 120 : 0);
      // Few mantissa bits make ties likely.
      double value = std::ldexp(double(random() % 4096), exponent) * (random() % 2 ? 1 : -1);
      if (random() % 4 == 0)
        value = std::nextafter(value, random() % 2 ? INFINITY : -INFINITY);
      llvm::APFloat exact = reference(*semantics, value);
      uint64_t bits = encode(format, value);
      if (exact.isNaN())
        EXPECT_TRUE(std::isnan(decode(format, bits))) << value;
      else
        EXPECT_EQ(bits, exact.bitcastToAPInt().getZExtValue()) << value;
    }
}

TEST(Number, IntegersRoundOnce) {
  std::mt19937_64 random(2);
  auto check = [](Format format, const llvm::fltSemantics& semantics, uint64_t value, bool isSigned) {
    llvm::APFloat exact(semantics);
    exact.convertFromAPInt(llvm::APInt(64, value), isSigned, llvm::APFloat::rmNearestTiesToEven);
    if (!exact.isNaN())
      EXPECT_EQ(encodeInteger(format, value, isSigned), exact.bitcastToAPInt().getZExtValue()) << value;
  };
  for (int i = 0; i < 100000; ++i) {
    // Just above and below ties of f32 and the narrow formats.
    uint64_t value = (random() >> (random() % 64)) << (random() % 40);
    value += random() % 3 - 1;
    for (bool isSigned : {false, true}) {
      check(Format::F32, llvm::APFloat::IEEEsingle(), value, isSigned);
      check(Format::F64, llvm::APFloat::IEEEdouble(), value, isSigned);
      check(Format::BF16, llvm::APFloat::BFloat(), value, isSigned);
      check(Format::F16, llvm::APFloat::IEEEhalf(), value, isSigned);
    }
  }
}

TEST(Number, FloatToIntegerSaturates) {
  EXPECT_EQ(toInteger(300, 8, true), 255u);
  EXPECT_EQ(toInteger(300, 8, false), 127u);
  EXPECT_EQ(toInteger(-300, 8, false), 128u);
  EXPECT_EQ(toInteger(-1.5, 8, true), 0u);
  EXPECT_EQ(toInteger(-1.5, 8, false), 255u);
  EXPECT_EQ(toInteger(NAN, 32, false), 0u);
  EXPECT_EQ(toInteger(INFINITY, 64, false), uint64_t(INT64_MAX));
  EXPECT_EQ(toInteger(-INFINITY, 64, false), uint64_t(INT64_MIN));
  EXPECT_EQ(toInteger(1e30, 64, true), ~uint64_t(0));
}

TEST(Number, DivisionIsTotal) {
  using enum ir::IntKind;
  EXPECT_EQ(totalInteger(DivS, 8, 0x80, 0xff), 0x80u);  // MIN / -1 wraps
  EXPECT_EQ(totalInteger(RemS, 8, 0x80, 0xff), 0u);
  EXPECT_EQ(totalInteger(DivS, 64, uint64_t(INT64_MIN), ~uint64_t(0)), uint64_t(INT64_MIN));
  EXPECT_EQ(totalInteger(DivU, 32, 7, 0), 0u);
  EXPECT_EQ(totalInteger(RemS, 32, uint32_t(-7), 2), uint32_t(-1));
  EXPECT_EQ(totalInteger(Shl, 32, 1, 33), 2u);
  EXPECT_EQ(totalInteger(ShrS, 8, 0x80, 9), 0xc0u);
  EXPECT_EQ(totalInteger(CeilDivU, 32, 0xffffffff, 2), 0x80000000u);
}

TEST(Number, AtomicMaximumIgnoresNan) {
  Element f32{Format::F32, 32};
  uint64_t nan = encode(Format::F32, NAN), one = encode(Format::F32, 1);
  EXPECT_EQ(combine(ir::Combine::MaxF, f32, nan, one, true), one);
  EXPECT_TRUE(std::isnan(decode(Format::F32, combine(ir::Combine::MaxF, f32, nan, one, false))));
  EXPECT_EQ(combine(ir::Combine::MaxF, f32, encode(Format::F32, -0.0), 0), 0u);
}

}  // namespace
}  // namespace vortex::interpreter
