#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "target/cpu/math/testing/compile.h"
#include "target/cpu/math/testing/reference.h"

namespace vortex::target::cpu::math {
namespace {

const codegen::Target& target(const std::string& cpu = "native") {
  static std::map<std::string, codegen::Target>* targets = new std::map<std::string, codegen::Target>;
  auto found = targets->find(cpu);
  if (found == targets->end()) {
    auto created = codegen::createTarget({.cpu = cpu, .features = ""});
    EXPECT_TRUE(created.ok());
    found = targets->emplace(cpu, std::move(*created)).first;
  }
  return found->second;
}

std::vector<float> sample32(uint32_t step) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += step)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (float special : {0.0f,
                        -0.0f,
                        1.0f,
                        -1.0f,
                        INFINITY,
                        -INFINITY,
                        NAN,
                        0x1p-149f,
                        -0x1p-149f,
                        0x1p-126f,
                        0x1.fffffep127f,
                        88.72284f,
                        -87.33655f,
                        -103.97208f,
                        0x1.921fb6p+0f,
                        0x1.921fb6p+1f,
                        16367173.0f * 0x1p72f,
                        0.5f,
                        1.5f,
                        2.5f,
                        -0.5f})
    x.push_back(special);
  while (x.size() % 32)
    x.push_back(1);
  return x;
}

struct Accuracy {
  const char* name;
  Unary function;
  double bound;
};
void PrintTo(const Accuracy& a, std::ostream* stream) { *stream << a.name; }

class Math32 : public testing::TestWithParam<Accuracy> {};

double worstError(const Accuracy& c, const std::string& cpu, uint32_t lanes, const std::vector<float>& x, float& at) {
  llvm::LLVMContext context;
  auto* f32 = llvm::Type::getFloatTy(context);
  auto code =
      compileElements(context, target(cpu), f32, f32, lanes, [&](llvm::IRBuilderBase& b, llvm::Value* v, llvm::Value*) {
        return emitUnary(b, target(cpu).vector, c.function, v);
      });
  std::vector<float> out(x.size());
  code->entry<ElementFunction>("elements")(x.data(), x.data(), out.data(), x.size());
  double worst = 0;
  for (size_t i = 0; i < x.size(); i++) {
    const double error = ulpError32(out[i], reference(c.function, x[i]));
    if (error > worst)
      worst = error, at = x[i];
  }
  return worst;
}

TEST_P(Math32, StaysWithinItsErrorBoundOverTheWholeRange) {
  float at = 0;
  EXPECT_LE(worstError(GetParam(), "native", 8, sample32(4099), at), GetParam().bound) << at;
}

TEST_P(Math32, StaysWithinItsErrorBoundInOtherShapesAndWithoutFma) {
  const std::vector<float> x = sample32(65537);
  float at = 0;
  for (uint32_t lanes : {0u, 1u, 3u, 32u}) {
    const std::vector<float> padded(x.begin(), x.begin() + x.size() / 96 * 96);
    EXPECT_LE(worstError(GetParam(), "native", lanes, padded, at), GetParam().bound) << lanes << " lanes at " << at;
  }
  EXPECT_LE(worstError(GetParam(), "x86-64-v2", 4, x, at), GetParam().bound) << "without FMA at " << at;
}

TEST(Math32Exp, LimitedExpIsAccurateUpToItsLimitAndPassesNanOn) {
  std::vector<float> x;
  for (float value : sample32(4099))
    if (!(value > kExpLimit))
      x.push_back(value);
  x.push_back(float(kExpLimit));
  while (x.size() % 8)
    x.push_back(1);
  for (const char* cpu : {"native", "x86-64-v2"}) {
    float at = 0;
    EXPECT_LE(worstError({"limited", Unary::ExpLimited, 2}, cpu, 8, x, at), 2) << cpu << " at " << at;
  }
}

TEST(Math32Exp, ExpThatIsNotTinyIsAccurateDownToItsLeastResult) {
  std::vector<float> large, small;
  for (float value : sample32(4099))
    (value < -86.6f ? small : large).push_back(value);
  for (std::vector<float>* x : {&large, &small})
    x->resize(x->size() / 8 * 8);
  for (const char* cpu : {"native", "x86-64-v2"}) {
    float at = 0;
    EXPECT_LE(worstError({"not tiny", Unary::ExpNotTiny, 2}, cpu, 8, large, at), 2) << cpu << " at " << at;
    llvm::LLVMContext context;
    auto* f32 = llvm::Type::getFloatTy(context);
    auto code =
        compileElements(context, target(cpu), f32, f32, 8, [&](llvm::IRBuilderBase& b, llvm::Value* v, llvm::Value*) {
          return emitUnary(b, target(cpu).vector, Unary::ExpNotTiny, v);
        });
    std::vector<float> out(small.size());
    code->entry<ElementFunction>("elements")(small.data(), small.data(), out.data(), small.size());
    for (float result : out)
      ASSERT_TRUE(result >= 0 && result < 0x1p-124f) << result;
  }
}

/// What docs/library.md promises.
constexpr Accuracy kPromises[] = {
#define VORTEX_ACCURACY(id, name, op, f, bound) {name, Unary::id, bound},
    VORTEX_FLOAT_FUNCTIONS(VORTEX_ACCURACY)
#undef VORTEX_ACCURACY
        {"roundEven", Unary::RoundEven, 0}};
INSTANTIATE_TEST_SUITE_P(All, Math32, testing::ValuesIn(kPromises),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Math32Binary, PowIsAccurateAndHasItsSpecialCases) {
  std::mt19937 random(7);
  std::vector<float> x, y;
  const float specials[] = {0.0f, -0.0f, 1.0f, -1.0f,     INFINITY,   -INFINITY, NAN,   0.5f,   -0.5f,      2,
                            -2,   3,     -3,   0x1p-149f, -0x1p-140f, 0x1p127f,  1e10f, -1e10f, 16777217.0f};
  for (float a : specials)
    for (float b : specials)
      x.push_back(a), y.push_back(b);
  for (int i = 0; i < 400000; i++) {
    x.push_back(std::exp(std::uniform_real_distribution<float>(-30, 30)(random)));
    y.push_back(std::uniform_real_distribution<float>(-4, 4)(random));
    x.push_back(std::uniform_real_distribution<float>(0.99f, 1.01f)(random));
    y.push_back(std::uniform_real_distribution<float>(-9000, 9000)(random));
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    y.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  }
  while (x.size() % 8)
    x.push_back(1), y.push_back(1);
  llvm::LLVMContext context;
  auto* f32 = llvm::Type::getFloatTy(context);
  auto code =
      compileElements(context, target(), f32, f32, 8, [](llvm::IRBuilderBase& b, llvm::Value* a, llvm::Value* c) {
        return emitBinary(b, target().vector, Binary::Pow, a, c);
      });
  std::vector<float> out(x.size());
  code->entry<ElementFunction>("elements")(x.data(), y.data(), out.data(), x.size());
  for (size_t i = 0; i < x.size(); i++) {
    const double exact = std::pow(double(x[i]), double(y[i]));
    ASSERT_LE(ulpError32(out[i], exact), 1) << x[i] << " ^ " << y[i] << " = " << out[i] << ", not " << exact;
    if (exact == 0) {
      ASSERT_EQ(std::signbit(out[i]), std::signbit(exact)) << x[i] << " ^ " << y[i];
    }
  }
}

TEST(Math32Binary, MinMaxModTreatNanAsDocumented) {
  const float values[] = {0, 1, -1, 5.5f, -7.25f, INFINITY, -INFINITY, NAN};
  std::vector<float> x, y;
  for (float a : values)
    for (float b : values)
      x.push_back(a), y.push_back(b);
  std::vector<float> out(x.size());
  llvm::LLVMContext context;
  auto* f32 = llvm::Type::getFloatTy(context);
  auto check = [&](Binary function, auto expected) {
    auto code =
        compileElements(context, target(), f32, f32, 8, [&](llvm::IRBuilderBase& b, llvm::Value* p, llvm::Value* q) {
          return emitBinary(b, target().vector, function, p, q);
        });
    code->template entry<ElementFunction>("elements")(x.data(), y.data(), out.data(), x.size());
    for (size_t i = 0; i < x.size(); i++) {
      const float want = expected(x[i], y[i]);
      EXPECT_TRUE(out[i] == want || (std::isnan(out[i]) && std::isnan(want)))
          << int(function) << ": " << x[i] << ", " << y[i];
    }
  };
  auto anyNan = [](float a, float b) { return std::isnan(a) || std::isnan(b); };
  check(Binary::Min, [](float a, float b) { return std::fmin(a, b); });
  check(Binary::Max, [](float a, float b) { return std::fmax(a, b); });
  check(Binary::MinNan, [&](float a, float b) { return anyNan(a, b) ? NAN : std::fmin(a, b); });
  check(Binary::MaxNan, [&](float a, float b) { return anyNan(a, b) ? NAN : std::fmax(a, b); });
  check(Binary::Mod, [](float a, float b) { return std::fmod(a, b); });
  check(Binary::Atan2, [](float a, float b) { return static_cast<float>(std::atan2(double(a), double(b))); });
}

TEST(Math64, ExponentialsAndLogarithmsStayWithinTwoUlp) {
  std::vector<double> x;
  std::mt19937_64 random(3);
  for (int i = 0; i < 500000; i++) {
    x.push_back(std::uniform_real_distribution<double>(-760, 720)(random));
    x.push_back(std::uniform_real_distribution<double>(0.5, 2)(random));
    x.push_back(std::bit_cast<double>(random()));
    x.push_back(std::bit_cast<double>(random() >> 12));  // subnormal
  }
  for (double special : {0.0, -0.0, 1.0, -1.0, double(INFINITY), -double(INFINITY), double(NAN), 709.782712893384,
                         -745.2, 2.0, 1024.0, 0.5})
    x.push_back(special);
  struct Case {
    Unary function;
    long double (*exact)(long double);
  };
  std::vector<double> out(x.size());
  for (const Case& c : {Case{Unary::Exp, expl}, Case{Unary::Exp2, exp2l}, Case{Unary::Log, logl},
                        Case{Unary::Log2, log2l}, Case{Unary::Log10, log10l}}) {
    for (const char* cpu : {"native", "x86-64-v2"}) {
      llvm::LLVMContext context;
      auto* f64 = llvm::Type::getDoubleTy(context);
      auto code =
          compileElements(context, target(cpu), f64, f64, 4, [&](llvm::IRBuilderBase& b, llvm::Value* v, llvm::Value*) {
            return emitUnary(b, target(cpu).vector, c.function, v);
          });
      code->entry<ElementFunction>("elements")(x.data(), x.data(), out.data(), x.size());
      double worst = 0, at = 0;
      for (size_t i = 0; i < x.size(); i++)
        if (double error = ulpError64(out[i], c.exact(x[i])); error > worst)
          worst = error, at = x[i];
      EXPECT_LE(worst, 2) << int(c.function) << " at " << at << " " << cpu;
      RecordProperty("ulp", std::to_string(worst));
    }
  }
}

TEST(Math64, OtherFunctionsCallTheCLibrary) {
  std::vector<double> x = {0.0, -0.0, 0.5, -1.25, 3, 100, 1e10, -1e-300}, out(8);
  for (Unary function : {Unary::Sin, Unary::Cos, Unary::Tan, Unary::Tanh, Unary::Erf, Unary::Expm1, Unary::Log1p}) {
    llvm::LLVMContext context;
    auto* f64 = llvm::Type::getDoubleTy(context);
    auto code =
        compileElements(context, target(), f64, f64, 4, [&](llvm::IRBuilderBase& b, llvm::Value* v, llvm::Value*) {
          return emitUnary(b, target().vector, function, v);
        });
    code->entry<ElementFunction>("elements")(x.data(), x.data(), out.data(), x.size());
    for (size_t i = 0; i < x.size(); i++) {
      const double want = reference(function, x[i]);
      EXPECT_TRUE(out[i] == want || (std::isnan(want) && std::isnan(out[i]))) << int(function) << " " << x[i];
    }
  }
}

}  // namespace
}  // namespace vortex::target::cpu::math
