// The f64 functions for devices without a C library, run here and compared with the C library's long double functions.
#include "target/interface/math/wide.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "target/cpu/math/testing/compile.h"

namespace vortex::target::cpu::math {
namespace {

using Inputs = std::vector<std::pair<double, double>>;

std::vector<double> run(const Emit& emit, const Inputs& inputs) {
  llvm::LLVMContext context;
  auto target = codegen::createTarget({});
  auto code =
      compileElements(context, *target, llvm::Type::getDoubleTy(context), llvm::Type::getDoubleTy(context), 0, emit);
  std::vector<double> x, y, out(inputs.size());
  for (auto [a, b] : inputs) {
    x.push_back(a);
    y.push_back(b);
  }
  code->entry<ElementFunction>("elements")(x.data(), y.data(), out.data(), inputs.size());
  return out;
}

double ulps(double actual, long double exact) {
  auto rounded = static_cast<double>(exact);
  if (std::isnan(actual) || std::isnan(rounded))
    return std::isnan(actual) == std::isnan(rounded) ? 0 : INFINITY;
  if (actual == rounded)
    return 0;
  double unit = std::nextafter(std::fabs(rounded), INFINITY) - std::fabs(rounded);
  if (std::isinf(actual) || std::isinf(rounded))
    return std::isinf(actual) == std::isinf(rounded)                       ? INFINITY
           : std::fabs(actual) > 1.79e308 || std::fabs(rounded) > 1.79e308 ? 1
                                                                           : INFINITY;
  return static_cast<double>(std::fabs(static_cast<long double>(actual) - exact) / unit);
}

const double kSpecial[] = {0.0,
                           -0.0,
                           1.0,
                           -1.0,
                           0.5,
                           -0.5,
                           2.0,
                           3.0,
                           -3.0,
                           INFINITY,
                           -INFINITY,
                           NAN,
                           1e-310,
                           -5e-324,
                           1e-30,
                           0.7,
                           0.2,
                           22.0,
                           710.0,
                           -745.0,
                           1e300,
                           1e22,
                           6381956970095103.0 * 0x1p797};

Inputs inputs(double low, double high, bool logarithmic) {
  std::mt19937_64 rng(7);
  std::uniform_real_distribution<double> place(low, high);
  Inputs all;
  for (double a : kSpecial)
    for (double b : kSpecial)
      all.push_back({a, b});
  for (int i = 0; i < 20000; ++i) {
    auto one = [&] { return logarithmic ? std::copysign(std::exp2(place(rng)), rng() % 2 ? 1.0 : -1.0) : place(rng); };
    double a = one();
    all.push_back({a, one()});
  }
  return all;
}

void expectUnary(Unary function, long double (*exact)(long double), const Inputs& at, double bound) {
  auto out =
      run([&](llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value*) { return emitWideUnary(b, function, x); }, at);
  for (size_t i = 0; i < at.size(); ++i) {
    ASSERT_LE(ulps(out[i], exact(at[i].first)), bound) << at[i].first << " gives " << out[i];
    if (out[i] == 0)
      ASSERT_EQ(std::signbit(out[i]), std::signbit(static_cast<double>(exact(at[i].first)))) << at[i].first;
  }
}

void expectBinary(Binary function, long double (*exact)(long double, long double), const Inputs& at, double bound) {
  auto out = run(
      [&](llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y) { return emitWideBinary(b, function, x, y); }, at);
  for (size_t i = 0; i < at.size(); ++i)
    ASSERT_LE(ulps(out[i], exact(at[i].first, at[i].second)), bound)
        << at[i].first << ", " << at[i].second << " gives " << out[i];
}

TEST(WideFunctions, ExponentialsKeepTheirBounds) {
  for (const Inputs& at : {inputs(-50, 9, true), inputs(-20, 20, false)}) {
    expectUnary(Unary::Expm1, std::expm1, at, 4);
    expectUnary(Unary::Sinh, std::sinh, at, 4);
    expectUnary(Unary::Cosh, std::cosh, at, 4);
    expectUnary(Unary::Tanh, std::tanh, at, 4);
    expectUnary(Unary::Log1p, std::log1p, at, 4);
    expectUnary(Unary::Cbrt, std::cbrt, at, 4);
    expectUnary(Unary::Erf, std::erf, at, 16);
    expectUnary(Unary::Erfc, std::erfc, at, 64);
  }
}

TEST(WideFunctions, TrigonometryIsAccurateForEveryArgument) {
  for (const Inputs& at : {inputs(-40, 1023, true), inputs(-100, 100, false), inputs(20, 40, true)}) {
    expectUnary(Unary::Sin, std::sin, at, 4);
    expectUnary(Unary::Cos, std::cos, at, 4);
    expectUnary(Unary::Tan, std::tan, at, 4);
  }
}

TEST(WideFunctions, InverseFunctionsKeepTheirBounds) {
  for (const Inputs& at : {inputs(-40, 40, true), inputs(-1, 1, false)}) {
    expectUnary(Unary::Atan, std::atan, at, 4);
    expectUnary(Unary::Asin, std::asin, at, 4);
    expectUnary(Unary::Acos, std::acos, at, 4);
    expectBinary(Binary::Atan2, std::atan2, at, 4);
  }
}

TEST(WideFunctions, PowersKeepTheirBound) {
  for (const Inputs& at : {inputs(-20, 20, true), inputs(-4, 4, false), inputs(-1074, 1023, true)})
    expectBinary(Binary::Pow, std::pow, at, 16);
}

TEST(WideFunctions, HalvesRoundAwayFromZero) {
  Inputs halves;
  for (int64_t whole : {int64_t(0), int64_t(1), int64_t(2), int64_t(3), int64_t(1) << 31, (int64_t(1) << 51) + 1,
                        (int64_t(1) << 52) - 1, int64_t(1) << 52, (int64_t(1) << 53) - 1})
    for (double half : {whole + 0.5, std::nextafter(whole + 0.5, 0.0), std::nextafter(whole + 0.5, 1e300)})
      for (double x : {half, -half})
        halves.push_back({x, 0.0});
  for (const Inputs& at : {halves, inputs(-40, 60, true), inputs(-1074, 1023, true), inputs(-4, 4, false)})
    expectUnary(Unary::Round, std::round, at, 0);
}

TEST(WideFunctions, RemaindersAreExact) {
  for (const Inputs& at : {inputs(-20, 20, true), inputs(-1074, 1023, true)})
    expectBinary(Binary::Mod, std::fmod, at, 0);
}

}  // namespace
}  // namespace vortex::target::cpu::math
