#include "target/interface/math/convert.h"
#include "target/interface/math/float_code.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "target/cpu/math/testing/compile.h"
#include "target/cpu/math/testing/reference.h"

namespace vortex::target::cpu::math {
namespace {

struct Format {
  Narrow format;
  int exponentBits, mantissaBits;
  bool hasInfinity;
  int bits() const { return 1 + exponentBits + mantissaBits; }
};
constexpr Format kFormats[] = {{Narrow::F16, 5, 10, true},
                               {Narrow::BF16, 8, 7, true},
                               {Narrow::F8E4M3, 4, 3, false},
                               {Narrow::F8E5M2, 5, 2, true}};

/// The definition of the format, in f64.
double decode(const Format& f, uint32_t bits) {
  const uint32_t mantissaMask = (1u << f.mantissaBits) - 1, exponentMask = (1u << f.exponentBits) - 1;
  const uint32_t mantissa = bits & mantissaMask, exponent = bits >> f.mantissaBits & exponentMask;
  const double sign = bits >> (f.bits() - 1) ? -1 : 1;
  const int bias = (1 << (f.exponentBits - 1)) - 1;
  if (f.hasInfinity && exponent == exponentMask)
    return mantissa ? NAN : sign * INFINITY;
  if (!f.hasInfinity && exponent == exponentMask && mantissa == mantissaMask)
    return NAN;
  if (exponent == 0)
    return sign * std::ldexp(mantissa, 1 - bias - f.mantissaBits);
  return sign * std::ldexp(mantissa + (1u << f.mantissaBits), static_cast<int>(exponent) - bias - f.mantissaBits);
}

/// Nearest even by search over all finite values of one sign (monotone in the bits).
uint32_t encodeMagnitude(const Format& f, double magnitude) {
  uint32_t high = (1u << (f.bits() - 1)) - 1, low = 0;
  while (!std::isfinite(decode(f, high)))
    high--;
  const uint32_t largest = high;
  const double beyond = decode(f, largest) + (decode(f, largest) - decode(f, largest - 1)) / 2;
  if (magnitude >= decode(f, largest))
    return magnitude < beyond || (magnitude == beyond && largest % 2 == 0) ? largest : largest + 1;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (decode(f, middle) <= magnitude ? low : high) = middle;
  }
  const double toLow = magnitude - decode(f, low), toHigh = decode(f, high) - magnitude;
  return toLow < toHigh ? low : toHigh < toLow ? high : low % 2 == 0 ? low : high;
}

template <typename In, typename Out>
std::vector<Out> run(llvm::Type* in, llvm::Type* out, const codegen::Target& target, std::vector<In> x,
                     std::vector<In> y, const Emit& emit) {
  const size_t count = x.size();
  while (x.size() % 8)
    x.push_back(In(1)), y.push_back(In(1));
  y.resize(x.size(), In(1));
  std::vector<Out> result(x.size());
  auto code = compileElements(in->getContext(), target, in, out, 8, emit);
  code->entry<ElementFunction>("elements")(x.data(), y.data(), result.data(), x.size());
  result.resize(count);
  return result;
}

template <typename Storage> void checkFormat(const Format& f, const char* cpu) {
  auto target = codegen::createTarget({.cpu = cpu, .features = ""});
  ASSERT_TRUE(target.ok());
  llvm::LLVMContext context;
  llvm::Type *f32 = llvm::Type::getFloatTy(context), *storage = llvm::IntegerType::get(context, sizeof(Storage) * 8);
  std::vector<Storage> all;
  for (uint32_t bits = 0; bits < (1u << f.bits()); bits++)
    all.push_back(static_cast<Storage>(bits));
  const auto widened =
      run<Storage, float>(storage, f32, *target, all, {}, [&](llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value*) {
        return emitWiden(b, target->vector, f.format, x);
      });
  std::vector<float> inputs;
  for (size_t i = 0; i < all.size(); i++) {
    const double exact = decode(f, all[i]);
    ASSERT_TRUE(std::isnan(exact) ? std::isnan(widened[i])
                                  : double(widened[i]) == exact && std::signbit(widened[i]) == std::signbit(exact))
        << i;
    if (std::isfinite(widened[i]))  // the value, its neighbours, and the half-way points with theirs
      for (float v : {widened[i], std::nextafter(widened[i], 1e30f), std::nextafter(widened[i], -1e30f)}) {
        const double half = (decode(f, all[i] + 1 < all.size() ? all[i] + 1 : all[i]) + exact) / 2;
        inputs.push_back(v);
        if (std::isfinite(half) && i % 7 < 5)
          inputs.insert(inputs.end(),
                        {float(half), std::nextafter(float(half), 1e30f), std::nextafter(float(half), -1e30f)});
      }
  }
  inputs.insert(inputs.end(), {INFINITY, -INFINITY, NAN, 1e38f, -1e38f, 0x1p-149f, 1e-30f, 448, 449, 464, 465, 57344,
                               61440, 65519, 65520, 65536});
  const auto narrowed =
      run<float, Storage>(f32, storage, *target, inputs, {}, [&](llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value*) {
        return emitNarrow(b, target->vector, f.format, x);
      });
  const uint32_t signMask = 1u << (f.bits() - 1);
  for (size_t i = 0; i < inputs.size(); i++) {
    if (std::isnan(inputs[i])) {
      ASSERT_TRUE(std::isnan(decode(f, narrowed[i])));
      continue;
    }
    if (f.bits() == 16 && i % 4)
      continue;  // the search is slow
    const uint32_t want = encodeMagnitude(f, std::fabs(inputs[i])) | (std::signbit(inputs[i]) ? signMask : 0);
    ASSERT_EQ(uint32_t(narrowed[i]), want) << inputs[i] << " " << cpu;
  }
}

TEST(Convert, NarrowFormatsRoundToNearestEven) {
  for (const char* cpu : {"native", "x86-64-v2"})
    for (const Format& f : kFormats) {
      if (f.bits() == 16)
        checkFormat<uint16_t>(f, cpu);
      else
        checkFormat<uint8_t>(f, cpu);
    }
}

TEST(Convert, NarrowingAnF64RoundsOnce) {
  auto target = codegen::createTarget();
  llvm::LLVMContext context;
  std::mt19937_64 random(11);
  for (const Format& f : kFormats) {
    llvm::Type *f64 = llvm::Type::getDoubleTy(context), *i16 = llvm::Type::getInt16Ty(context);
    std::vector<double> x;
    for (int i = 0; i < 2000; i++) {  // ties of the format, moved by less than f32 can see
      const uint32_t bits = static_cast<uint32_t>(random() % (1u << (f.bits() - 1)));
      const double low = decode(f, bits), high = decode(f, bits + 1);
      if (!std::isfinite(low) || !std::isfinite(high))
        continue;
      const double tie = (low + high) / 2;
      for (double v : {tie, tie * (1 + 0x1p-40), tie * (1 - 0x1p-40), low * (1 + 0x1p-30)})
        x.push_back(random() % 2 ? v : -v);
    }
    x.insert(x.end(), {1e300, -1e300, 1e-300, 0.0, double(INFINITY)});
    const auto got =
        run<double, uint16_t>(f64, i16, *target, x, {}, [&](llvm::IRBuilderBase& b, llvm::Value* v, llvm::Value*) {
          return b.CreateZExt(emitNarrow(b, target->vector, f.format, v), withScalar(v->getType(), i16));
        });
    for (size_t i = 0; i < x.size(); i++)
      ASSERT_EQ(got[i], encodeMagnitude(f, std::fabs(x[i])) | (std::signbit(x[i]) ? 1u << (f.bits() - 1) : 0)) << x[i];
  }
}

template <typename Float, typename Int> void checkFloatToInt() {
  auto target = codegen::createTarget();
  llvm::LLVMContext context;
  llvm::Type* in = sizeof(Float) == 4 ? llvm::Type::getFloatTy(context) : llvm::Type::getDoubleTy(context);
  llvm::Type* out = llvm::IntegerType::get(context, sizeof(Int) * 8);
  std::vector<Float> x = {0,         Float(-0.9), Float(0.9),  Float(1.5),   Float(-1.5), INFINITY,
                          -INFINITY, NAN,         Float(1e30), Float(-1e30), Float(123.9)};
  for (int bits : {7, 8, 15, 16, 24, 31, 32, 63, 64})
    for (double sign : {1.0, -1.0}) {
      const Float v = Float(sign * std::ldexp(1.0, bits));
      x.insert(x.end(), {v, std::nextafter(v, Float(0)), std::nextafter(v, Float(2) * v), v - 1, v + 1});
    }
  const auto got = run<Float, Int>(in, out, *target, x, {}, [&](llvm::IRBuilderBase& b, llvm::Value* v, llvm::Value*) {
    return emitFloatToInt(b, v, withScalar(v->getType(), out), std::is_signed_v<Int>);
  });
  for (size_t i = 0; i < x.size(); i++) {
    const long double whole = std::trunc(static_cast<long double>(x[i]));
    Int want;
    if (std::isnan(x[i]))
      want = 0;
    else if (whole <= static_cast<long double>(std::numeric_limits<Int>::min()))
      want = std::numeric_limits<Int>::min();
    else if (whole >= static_cast<long double>(std::numeric_limits<Int>::max()))
      want = std::numeric_limits<Int>::max();
    else
      want = static_cast<Int>(whole);
    ASSERT_EQ(got[i], want) << double(x[i]) << " to " << sizeof(Int) * 8
                            << (std::is_signed_v<Int> ? " signed" : " unsigned");
  }
}

TEST(Convert, FloatToIntegerSaturatesAndNanIsZero) {
  checkFloatToInt<float, int8_t>(), checkFloatToInt<float, uint8_t>(), checkFloatToInt<float, int16_t>(),
      checkFloatToInt<float, uint16_t>();
  checkFloatToInt<float, int32_t>(), checkFloatToInt<float, uint32_t>(), checkFloatToInt<float, int64_t>(),
      checkFloatToInt<float, uint64_t>();
  checkFloatToInt<double, int8_t>(), checkFloatToInt<double, uint8_t>(), checkFloatToInt<double, int16_t>(),
      checkFloatToInt<double, uint16_t>();
  checkFloatToInt<double, int32_t>(), checkFloatToInt<double, uint32_t>(), checkFloatToInt<double, int64_t>(),
      checkFloatToInt<double, uint64_t>();
}

template <typename Int> void checkIntegers() {
  using Wide = __int128;
  auto target = codegen::createTarget();
  llvm::LLVMContext context;
  llvm::Type* type = llvm::IntegerType::get(context, sizeof(Int) * 8);
  constexpr bool isSigned = std::is_signed_v<Int>;
  const Int values[] = {
      0, 1, 2, 3, 7, 31, 33, 100, Int(-1), Int(-7), std::numeric_limits<Int>::min(), std::numeric_limits<Int>::max()};
  std::vector<Int> x, y;
  for (Int a : values)
    for (Int b : values)
      x.push_back(a), y.push_back(b);
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; i++) {  // quotients at and just below integers are the hard ones
    const Int divisor = static_cast<Int>(random() >> (random() % 64)),
              factor = static_cast<Int>(random() >> (random() % 64));
    x.push_back(static_cast<Int>(static_cast<uint64_t>(divisor) * static_cast<uint64_t>(factor) - random() % 2)),
        y.push_back(divisor);
  }
  for (IntOp op : {IntOp::Div, IntOp::Mod, IntOp::Shl, IntOp::Shr}) {
    const auto got =
        run<Int, Int>(type, type, *target, x, y, [&](llvm::IRBuilderBase& b, llvm::Value* p, llvm::Value* q) {
          return emitInt(b, op, p, q, isSigned);
        });
    for (size_t i = 0; i < x.size(); i++) {
      const int count = static_cast<int>(static_cast<std::make_unsigned_t<Int>>(y[i]) % (sizeof(Int) * 8));
      const Wide want = op == IntOp::Div   ? (y[i] == 0 ? Wide(0) : Wide(x[i]) / Wide(y[i]))
                        : op == IntOp::Mod ? (y[i] == 0 ? Wide(0) : Wide(x[i]) % Wide(y[i]))
                        : op == IntOp::Shl ? Wide(x[i]) * (Wide(1) << count)
                                           : Wide(x[i]) >> count;
      ASSERT_EQ(got[i], static_cast<Int>(want)) << int(op) << ": " << int64_t(x[i]) << ", " << int64_t(y[i]);
    }
  }
}

TEST(Convert, IntegerOperationsAreTotal) {
  checkIntegers<int8_t>(), checkIntegers<uint8_t>(), checkIntegers<int16_t>(), checkIntegers<uint16_t>();
  checkIntegers<int32_t>(), checkIntegers<uint32_t>(), checkIntegers<int64_t>(), checkIntegers<uint64_t>();
}

}  // namespace
}  // namespace vortex::target::cpu::math
