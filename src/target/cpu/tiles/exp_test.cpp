// exp of arguments whose bounds are known, and of those that only look so: against double, with infinities, NaN and large arguments.
#include "target/cpu/tiles/testing/tensors.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

namespace vortex::target::cpu::tiles::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

/// All pairs of these are arguments.
const std::vector<float> kValues = {0,     -0.0f, 1,     -1,   0.5f,  42.9f,  43.1f, 44,     60,  88,
                                    88.7f, 89,    1e30f, kInf, -3,    -44,    -80,   -87.2f, -88, -95,
                                    -100,  -103,  -104,  -110, -1e6f, -3e38f, -kInf, kNan};

struct Case {
  const char* name;
  const char* argument;  ///< %v from %a and %b, tensor<?xf32>
  std::function<float(float, float)> expected;
};

const Case kCases[] = {
    {"negative magnitude", "%m = math.absf %a : tensor<?xf32>\n%v = arith.negf %m : tensor<?xf32>",
     [](float a, float) { return -std::fabs(a); }},
    {"negative square", "%m = arith.mulf %a, %a : tensor<?xf32>\n%v = arith.negf %m : tensor<?xf32>",
     [](float a, float) { return -(a * a); }},
    {"difference from the larger", "%m = arith.maximumf %b, %a : tensor<?xf32>\n%v = arith.subf %a, %m : tensor<?xf32>",
     [](float a, float b) { return std::isnan(a) || std::isnan(b) ? kNan : a - std::max(a, b); }},
    {"difference from the larger number",
     "%m = arith.maxnumf %b, %a : tensor<?xf32>\n%v = arith.subf %a, %m : tensor<?xf32>",
     [](float a, float b) { return a - std::fmax(a, b); }},
    {"smaller minus other", "%m = arith.minimumf %b, %a : tensor<?xf32>\n%v = arith.subf %m, %a : tensor<?xf32>",
     [](float a, float b) { return std::isnan(a) || std::isnan(b) ? kNan : std::min(a, b) - a; }},
    {"smaller number minus other", "%m = arith.minnumf %b, %a : tensor<?xf32>\n%v = arith.subf %m, %a : tensor<?xf32>",
     [](float a, float b) { return std::fmin(a, b) - a; }},
    {"limited by a constant",
     "%s = arith.constant 43.0 : f32\n"
     "%c1 = vx.broadcast %s dims [] sizes(%n) : f32 -> tensor<?xf32>\n"
     "%v = arith.minimumf %a, %c1 : tensor<?xf32>",
     [](float a, float) { return std::isnan(a) ? kNan : std::min(a, 43.0f); }},
    {"smaller number of two",
     "%q = arith.mulf %b, %b : tensor<?xf32>\n%g = arith.negf %q : tensor<?xf32>\n"
     "%v = arith.minnumf %a, %g : tensor<?xf32>",
     [](float a, float b) { return std::fmin(a, -(b * b)); }},
    {"difference from the smaller",
     "%m = arith.minimumf %b, %a : tensor<?xf32>\n%v = arith.subf %a, %m : tensor<?xf32>",
     [](float a, float b) { return std::isnan(a) || std::isnan(b) ? kNan : a - std::min(a, b); }},
    {"the argument itself", "%v = arith.addf %a, %a : tensor<?xf32>", [](float a, float) { return a + a; }},
};

void expectUlps(float actual, float argument, const std::string& what) {
  if (std::isnan(argument)) {
    ASSERT_TRUE(std::isnan(actual)) << what << " gave " << actual;
    return;
  }
  const double exact = std::exp(double(argument));
  if (exact > double(std::numeric_limits<float>::max())) {
    ASSERT_EQ(actual, kInf) << what;
    return;
  }
  int exponent = 0;
  std::frexp(exact, &exponent);
  ASSERT_NEAR(actual, exact, 2 * std::ldexp(1.0, std::max(exponent - 24, -149))) << what;
}

TEST(ExpOfBoundedArguments, EveryCaseIsWithinTwoUlps) {
  std::vector<float> a, b;
  for (float x : kValues)
    for (float y : kValues)
      a.push_back(x), b.push_back(y);
  for (const Case& entry : kCases) {
    TensorKernel kernel(
        {{"x", "?xf32"}, {"y", "?xf32"}, {"o", "?xf32", true}},
        std::string("%c0 = arith.constant 0 : index\n%n = vx.dim %x, 0 : !vx.view<?xf32, global>\n"
                    "%a = vx.tile_load %x[%c0] sizes(%n) inbounds : !vx.view<?xf32, global> -> tensor<?xf32>\n"
                    "%b = vx.tile_load %y[%c0] sizes(%n) inbounds : !vx.view<?xf32, global> -> tensor<?xf32>\n") +
            entry.argument +
            "\n%e = math.exp %v : tensor<?xf32>\n"
            "vx.tile_store %e, %o[%c0] inbounds : tensor<?xf32>, !vx.view<?xf32, global>");
    std::vector<float> out(a.size());
    ASSERT_EQ(kernel.run({Arg::tensor(a), Arg::tensor(b), Arg::tensor(out)}), 0u);
    for (size_t i = 0; i < a.size(); ++i)
      expectUlps(out[i], entry.expected(a[i], b[i]),
                 std::string(entry.name) + " of " + std::to_string(a[i]) + ", " + std::to_string(b[i]));
  }
}

/// 1 + exp(x) hides tiny results of exp; a product, or a second use, does not.
TEST(ExpOfBoundedArguments, TinyResultsCountUnlessTheyAreAddedToAConstant) {
  TensorKernel kernel({{"x", "?xf32"}, {"s", "?xf32", true}, {"o", "?xf32", true}, {"p", "?xf32", true}}, R"(
  %c0 = arith.constant 0 : index
  %n = vx.dim %x, 0 : !vx.view<?xf32, global>
  %one = arith.constant 1.0 : f32
  %small = arith.constant 1.0e-38 : f32
  %ones = vx.broadcast %one dims [] sizes(%n) : f32 -> tensor<?xf32>
  %smalls = vx.broadcast %small dims [] sizes(%n) : f32 -> tensor<?xf32>
  %t = vx.tile_load %x[%c0] sizes(%n) inbounds : !vx.view<?xf32, global> -> tensor<?xf32>
  %d = arith.addf %t, %t : tensor<?xf32>
  %e1 = math.exp %t : tensor<?xf32>
  %sum = arith.addf %ones, %e1 : tensor<?xf32>
  %e2 = math.exp %d : tensor<?xf32>
  %other = arith.addf %e2, %smalls : tensor<?xf32>
  %n2 = arith.negf %t : tensor<?xf32>
  %e3 = math.exp %n2 : tensor<?xf32>
  %sum3 = arith.addf %e3, %ones : tensor<?xf32>
  %product = arith.mulf %e3, %sum3 : tensor<?xf32>
  vx.tile_store %sum, %s[%c0] inbounds : tensor<?xf32>, !vx.view<?xf32, global>
  vx.tile_store %other, %o[%c0] inbounds : tensor<?xf32>, !vx.view<?xf32, global>
  vx.tile_store %product, %p[%c0] inbounds : tensor<?xf32>, !vx.view<?xf32, global>)");
  std::vector<float> x = kValues, sum(x.size()), other(x.size()), product(x.size());
  ASSERT_EQ(kernel.run({Arg::tensor(x), Arg::tensor(sum), Arg::tensor(other), Arg::tensor(product)}), 0u);
  auto near = [](float actual, double expected) {
    if (std::isnan(expected))
      return std::isnan(actual);
    if (expected > double(std::numeric_limits<float>::max()))
      return actual == kInf;
    return std::abs(actual - expected) <= 5e-7 * expected + 0x1p-148;
  };
  for (size_t i = 0; i < x.size(); ++i) {
    const double value = x[i];
    EXPECT_TRUE(near(sum[i], 1 + std::exp(value))) << value << ": " << sum[i];
    EXPECT_TRUE(near(other[i], std::exp(2 * value) + double(1e-38f))) << value << ": " << other[i];
    const double e = std::exp(-value);
    EXPECT_TRUE(near(product[i], e * (e + 1))) << value << ": " << product[i];
  }
}

/// Rows minus the maxima of rows are bounded; rows minus the maxima of columns are not, though the types agree.
TEST(ExpOfBoundedArguments, MaximaOfOtherElementsAreNoBound) {
  for (bool sameDims : {true, false}) {
    const std::string dims = sameDims ? "1" : "0";
    TensorKernel kernel(
        {{"x", "?x?xf32"}, {"o", "?x?xf32", true}},
        "%c0 = arith.constant 0 : index\n%m = vx.dim %x, 0 : !vx.view<?x?xf32, global>\n"
        "%n = vx.dim %x, 1 : !vx.view<?x?xf32, global>\n"
        "%t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>\n"
        "%max = vx.reduce maxf %t dims [" +
            dims +
            "] : tensor<?x?xf32> -> tensor<?xf32>\n"
            "%maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>\n"
            "%d = arith.subf %t, %maxb : tensor<?x?xf32>\n%e = math.exp %d : tensor<?x?xf32>\n"
            "vx.tile_store %e, %o[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>");
    const int64_t n = 37;
    std::vector<float> x = randomFloats(n * n, 3), out(n * n);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        x[i * n + j] += float(i * 2) - float(j * 2);  // differences up to 70
    ASSERT_EQ(kernel.run({Arg::tensor(x, {n, n}), Arg::tensor(out, {n, n})}), 0u);
    for (int64_t i = 0; i < n; ++i) {
      float top = -kInf;
      for (int64_t k = 0; k < n; ++k)
        top = std::max(top, sameDims ? x[i * n + k] : x[k * n + i]);
      for (int64_t j = 0; j < n; ++j)
        expectUlps(out[i * n + j], x[i * n + j] - top, std::to_string(i) + ", " + std::to_string(j));
    }
  }
}

}  // namespace
}  // namespace vortex::target::cpu::tiles::testing
