// The functions of GPUs on the CPU: the same code, with every special function unit replaced by the exact result moved as far as its bound allows,
// up, down and at random. What holds here holds on every chip that keeps the bounds.
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <random>

#include "base/fresh_seed.h"
#include "base/narrow_float.h"
#include "target/cpu/math/testing/compile.h"
#include "target/cpu/math/testing/reference.h"
#include "target/nvidia/functions.h"

namespace vortex::target::nvidia {
namespace {

using cpu::math::reference;
using cpu::math::ulpError32;
using math::Form;
using math::Unary;

enum class Adversary { Up, Down, Random };
Adversary adversary;
double tanhError = 0x1p-11;

double direction(float x) {
  const uint32_t hash = (std::bit_cast<uint32_t>(x) * 2654435761u) >> 16;
  return adversary == Adversary::Up ? 1 : adversary == Adversary::Down ? -1 : (hash & 0xff) / 127.5 - 1;
}

/// The float farthest from `exact` within `bound`, absolute.
float moved(float x, double exact, double bound) {
  if (!std::isfinite(exact) || exact == 0)
    return static_cast<float>(exact);
  auto result = static_cast<float>(exact + direction(x) * bound);
  if (std::fabs(double(result) - exact) > bound)
    result = std::nextafter(result, static_cast<float>(exact));
  return result;
}
float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

float ex2(float x) { return moved(x, std::exp2(double(x)), std::exp2(double(x) - 22.5)); }
float ex2Flushing(float x) { return flushed(ex2(flushed(x))); }
float reciprocal(float x) {
  x = flushed(x);
  return flushed(moved(x, 1 / double(x), std::fabs(1 / double(x)) * 0x1p-23));
}
float root(float x) { return moved(x, std::sqrt(double(x)), std::sqrt(double(x)) * 0x1p-23); }
float rootFlushing(float x) { return root(flushed(x)); }
float inverseRoot(float x) { return moved(x, 1 / std::sqrt(double(x)), std::exp2(-22.9) / std::sqrt(double(x))); }
float inverseRootFlushing(float x) { return inverseRoot(flushed(x)); }
float log2Unit(float x) { return moved(x, std::log2(double(x)), 0x1p-22); }
float tanhUnit(float x) { return moved(x, std::tanh(double(x)), std::fabs(std::tanh(double(x))) * tanhError); }
float quotient(float x, float y) { return moved(x, double(x) / y, std::fabs(double(x) / y) * 0x1p-22); }
float saturated(float x, float y, float z) {
  const double sum = double(x) * y + z;
  return std::isnan(sum) ? 0 : static_cast<float>(std::fmin(std::fmax(sum, 0.0), 1.0));
}
/// Sums in [2^23, 2^24): rounded down to an integer.
float roundedDown(float x, float y, float z) { return static_cast<float>(floorl(static_cast<long double>(x) * y + z)); }

void* hostFunction(llvm::CallInst* call) {
  auto address = [](auto* function) { return reinterpret_cast<void*>(function); };
  if (auto* text = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand())) {
    llvm::StringRef name = text->getAsmString();
    return name.starts_with("fma.rn.sat")    ? address(saturated)
           : name.starts_with("tanh.approx") ? address(tanhUnit)
           : name.starts_with("div.full")    ? address(quotient)
                                             : nullptr;
  }
  switch (call->getIntrinsicID()) {
  case llvm::Intrinsic::nvvm_ex2_approx_f: return address(ex2);
  case llvm::Intrinsic::nvvm_ex2_approx_ftz_f: return address(ex2Flushing);
  case llvm::Intrinsic::nvvm_rcp_approx_ftz_f: return address(reciprocal);
  case llvm::Intrinsic::nvvm_sqrt_approx_f: return address(root);
  case llvm::Intrinsic::nvvm_sqrt_approx_ftz_f: return address(rootFlushing);
  case llvm::Intrinsic::nvvm_rsqrt_approx_f: return address(inverseRoot);
  case llvm::Intrinsic::nvvm_rsqrt_approx_ftz_f: return address(inverseRootFlushing);
  case llvm::Intrinsic::nvvm_lg2_approx_f: return address(log2Unit);
  case llvm::Intrinsic::nvvm_fma_rm_f: return address(roundedDown);
  default: return nullptr;
  }
}

void replaceUnits(llvm::IRBuilderBase& b) {
  for (llvm::Instruction& each : llvm::instructions(b.GetInsertBlock()->getParent()))
    if (auto* call = llvm::dyn_cast<llvm::CallInst>(&each))
      if (void* function = hostFunction(call))
        call->setCalledFunction(
            call->getFunctionType(),
            llvm::ConstantExpr::getIntToPtr(b.getInt64(reinterpret_cast<uint64_t>(function)), b.getPtrTy()));
}

using Code = std::function<llvm::Value*(llvm::IRBuilder<>&, llvm::Value* x, llvm::Value* y)>;

std::vector<float> run(const Code& code, const std::vector<float>& x, const std::vector<float>& y = {}) {
  llvm::LLVMContext context;
  auto target = cpu::codegen::createTarget({});
  auto* f32 = llvm::Type::getFloatTy(context);
  auto compiled = cpu::math::compileElements(
      context, *target, f32, f32, 0, [&](llvm::IRBuilderBase& b, llvm::Value* first, llvm::Value* second) {
        llvm::Value* result = code(static_cast<llvm::IRBuilder<>&>(b), first, second);
        replaceUnits(b);
        return result;
      });
  std::vector<float> out(x.size());
  compiled->entry<cpu::math::ElementFunction>("elements")(x.data(), y.empty() ? x.data() : y.data(), out.data(),
                                                          x.size());
  return out;
}

std::vector<float> runUnary(Unary function, const Form& form, const std::vector<float>& x) {
  return run(
      [&](llvm::IRBuilder<>& b, llvm::Value* v, llvm::Value*) { return emitUnary(b, function, v, form, tanhError); },
      x);
}

constexpr Adversary kAdversaries[] = {Adversary::Up, Adversary::Down, Adversary::Random};

struct Bound {
  const char* name;
  Unary function;
  double ulp;  ///< with any units within their bounds
};
class FullAccuracy : public testing::TestWithParam<Bound> {};

TEST_P(FullAccuracy, HoldsForAnyUnitsWithinTheirBounds) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 2039)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (float special : {0.0f,       -0.0f,      INFINITY,    -INFINITY,       NAN,
                        0x1p-149f,  -0x1p-149f, 0x1p-126f,   0x1.fffffep127f, -0x1.fffffep127f,
                        1.0f,       -1.0f,      0.99999994f, 88.72284f,       -103.97208f,
                        -87.33655f, 0.9f,       4.0f,        2.0f / 3,        4.0f / 3})
    x.push_back(special);
  for (Adversary each : kAdversaries) {
    adversary = each;
    std::vector<float> out = runUnary(GetParam().function, {}, x);
    double worst = 0;
    float at = 0;
    for (size_t i = 0; i < x.size(); ++i)
      if (double error = ulpError32(out[i], reference(GetParam().function, x[i])); error > worst)
        worst = error, at = x[i];
    EXPECT_LE(worst, GetParam().ulp) << at << ", adversary " << int(each);
    for (size_t i = 0; i < x.size(); ++i)
      if (out[i] == 0)
        ASSERT_EQ(std::signbit(out[i]), std::signbit(reference(GetParam().function, x[i]))) << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(All, FullAccuracy,
                         testing::Values(Bound{"exp", Unary::Exp, 3.5}, Bound{"exp2", Unary::Exp2, 2.9},
                                         Bound{"tanh", Unary::Tanh, 2}, Bound{"sigmoid", Unary::Sigmoid, 5},
                                         Bound{"erf", Unary::Erf, 4}, Bound{"log", Unary::Log, 2},
                                         Bound{"erfc", Unary::Erfc, 6}, Bound{"log2", Unary::Log2, 2},
                                         Bound{"rsqrt", Unary::Rsqrt, 2.7}),
                         [](const auto& info) { return std::string(info.param.name); });

//===-- narrow forms ------------------------------------------------------------------------------------------===//

/// Of the format: 11 bits is f16, 8 is bf16. |got − exact| in units of the exact result's last place, as rounded to the format.
double narrowError(float got, double exact, unsigned bits) {
  const int smallest = bits == 11 ? -24 : -133;
  const double limit = bits == 11 ? 65520 : 0x1.ffp127;
  if (std::isnan(got) || std::isnan(exact))
    return std::isnan(got) == std::isnan(exact) ? 0 : INFINITY;
  int exponent;
  std::frexp(exact, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - int(bits), smallest));
  double rounded = std::nearbyint(double(got) / unit) * unit;
  if (std::fabs(double(got)) >= limit || std::fabs(exact) >= limit) {
    const bool isNear = std::fabs(double(got)) >= limit * (1 - 0x1p-14) && std::fabs(exact) >= limit * (1 - 0x1p-14);
    return isNear && std::signbit(got) == std::signbit(exact) ? 0 : INFINITY;
  }
  return std::fabs(rounded - exact) / unit;
}

std::vector<float> everyValue(unsigned bits) {
  std::vector<float> all;
  for (uint32_t word = 0; word < 65536; ++word)
    all.push_back(bits == 11 ? static_cast<float>(base::decodeNarrow(base::kF16, static_cast<uint16_t>(word)))
                             : std::bit_cast<float>(word << 16));
  return all;
}

struct Narrow {
  const char* name;
  Unary function;
  Form form;
  double ulp = 0.53;
};
class NarrowForm : public testing::TestWithParam<Narrow> {};

TEST_P(NarrowForm, IsRightForEveryArgumentOfTheFormat) {
  const Narrow& c = GetParam();
  const std::vector<float> x = everyValue(c.form.narrowBits);
  tanhError = c.form.narrowBits == 11 ? 0x1.8p-17 : 0x1p-11;
  for (Adversary each : kAdversaries) {
    adversary = each;
    std::vector<float> out = runUnary(c.function, c.form, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = reference(c.function, x[i]);
      ASSERT_LE(narrowError(out[i], exact, c.form.narrowBits), c.ulp)
          << x[i] << " gives " << out[i] << ", not " << exact;
      if (out[i] == 0)
        ASSERT_EQ(std::signbit(out[i]), std::signbit(exact)) << x[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, NarrowForm,
    testing::Values(Narrow{"exp_f16", Unary::Exp, {11, true}}, Narrow{"exp_f16_unflushed", Unary::Exp, {11}},
                    Narrow{"exp_bf16", Unary::Exp, {8}}, Narrow{"exp2_f16", Unary::Exp2, {11, true}},
                    Narrow{"exp2_bf16", Unary::Exp2, {8}}, Narrow{"sigmoid_f16", Unary::Sigmoid, {11, true}},
                    Narrow{"sigmoid_f16_unflushed", Unary::Sigmoid, {11}}, Narrow{"sigmoid_bf16", Unary::Sigmoid, {8}},
                    Narrow{"erfc_f16", Unary::Erfc, {11, true}}, Narrow{"erfc_bf16", Unary::Erfc, {8}},
                    Narrow{"tanh_f16", Unary::Tanh, {11}}, Narrow{"tanh_bf16", Unary::Tanh, {8}, 0.63},
                    Narrow{"log_bf16", Unary::Log, {.narrowBits = 8, .isFarFromOne = true}},
                    Narrow{"log2_bf16", Unary::Log2, {.narrowBits = 8, .isFarFromOne = true}},
                    Narrow{"sqrt_f16", Unary::Sqrt, {.narrowBits = 11, .isNormal = true}},
                    Narrow{"sqrt_bf16", Unary::Sqrt, {8}},
                    Narrow{"rsqrt_f16", Unary::Rsqrt, {.narrowBits = 11, .isNormal = true}},
                    Narrow{"rsqrt_bf16", Unary::Rsqrt, {8}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(NarrowDivision, IsRightForEveryDividendAndChosenDivisors) {
  for (unsigned bits : {11u, 8u}) {
    const std::vector<float> all = everyValue(bits);
    for (size_t i = 0; i < all.size(); i += 255) {  // 257 divisors, subnormals, infinity and NaN among them
      const std::vector<float> divisor(all.size(), all[i]);
      adversary = kAdversaries[i % 3];
      const Form form{.narrowBits = bits, .isNormal = bits == 11};
      auto out = run([&](llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y) { return emitDivision(b, x, y, form); },
                     all, divisor);
      for (size_t at = 0; at < all.size(); ++at) {
        const double exact = double(all[at]) / all[i];
        ASSERT_LE(narrowError(out[at], exact, bits), 0.53) << all[at] << " / " << all[i] << " gives " << out[at];
        ASSERT_TRUE(std::isnan(exact) || std::signbit(out[at]) == std::signbit(exact)) << all[at] << " / " << all[i];
      }
    }
  }
}

/// Dividends and divisors of every size, quotients near the middle between two floats among them.
std::pair<std::vector<float>, std::vector<float>> quotientsOfEverySize() {
  std::vector<float> x, y;
  uint64_t state = base::freshSeed();
  auto next = [&] {
    return state = state * 6364136223846793005u + 1442695040888963407u, static_cast<uint32_t>(state >> 32);
  };
  auto scaled = [&](float value, int range) {
    return std::ldexp(value, static_cast<int>(next() % (2 * range)) - range);
  };
  for (int i = 0; i < 400'000; ++i) {
    const float divisor = 1 + static_cast<float>(next() % (1u << 23)) * 0x1p-23f;
    const double middle = 1 + (next() % (1u << 23)) * 0x1p-23 + 0x1p-24;
    x.push_back(scaled(std::nextafter(static_cast<float>(middle * divisor), i % 3 == 0 ? 0.0f
                                                                            : i % 3 == 1
                                                                                ? 9.0f
                                                                                : static_cast<float>(middle * divisor)),
                       40));
    y.push_back(scaled(divisor, 24));
    x.push_back(std::bit_cast<float>(next()));
    y.push_back(i % 2 != 0 ? std::bit_cast<float>(next()) : scaled(divisor, 24));
  }
  const float special[] = {0.0f,      -0.0f,      INFINITY,  -INFINITY,       NAN,
                           0x1p-149f, -0x1p-149f, 0x1p-126f, 0x1.fffffep127f, 1.0f,
                           -3.0f,     0x1p-98f,   0x1p78f,   0x1p-48f,        0x1p24f};
  for (float a : special)
    for (float b : special)
      x.push_back(a), y.push_back(b);
  return {x, y};
}

TEST(Quotients, AreCorrectlyRoundedWithAnyUnitsWithinTheirBounds) {
  auto [x, y] = quotientsOfEverySize();
  for (Adversary each : kAdversaries) {
    adversary = each;
    for (bool isSplat : {false, true}) {
      auto out = run(
          [&](llvm::IRBuilder<>& b, llvm::Value* dividend, llvm::Value* divisor) {
            auto pair = [&](llvm::Value* first, llvm::Value* second) {
              llvm::Value* vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getFloatTy(), 2));
              return b.CreateInsertElement(b.CreateInsertElement(vector, first, uint64_t(0)), second, uint64_t(1));
            };
            llvm::Value* one = llvm::ConstantFP::get(b.getFloatTy(), 1);
            llvm::Value* quotients = emitQuotients(b, pair(dividend, dividend),
                                                   isSplat ? b.CreateVectorSplat(2, divisor) : pair(one, divisor));
            return b.CreateExtractElement(quotients, uint64_t(1));
          },
          x, y);
      for (size_t at = 0; at < x.size(); ++at) {
        const float exact = x[at] / y[at];
        ASSERT_TRUE(std::isnan(exact) ? std::isnan(out[at])
                                      : std::bit_cast<uint32_t>(out[at]) == std::bit_cast<uint32_t>(exact))
            << x[at] << " / " << y[at] << " gives " << out[at];
      }
    }
  }
}

}  // namespace
}  // namespace vortex::target::nvidia
