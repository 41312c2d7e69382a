#include "target/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "target/cpu/gemm/testing/strided.h"

namespace vortex::target::cpu::gemm {
namespace {

const codegen::Target& hostTarget() {
  static const codegen::Target* target = new codegen::Target(std::move(*codegen::createTarget()));
  return *target;
}

struct Extents {
  uint64_t m, n, k;
};

/// Values with few bits, exact in every element type, so that only the order of additions matters.
struct Matrix {
  uint64_t rows, columns;
  Contiguous contiguous;
  uint64_t gap;  ///< extra elements between lines
  std::vector<double> values;
  std::vector<uint8_t> bytes;

  uint64_t rowStride() const {
    return contiguous == Contiguous::Row ? 1 : contiguous == Contiguous::Column ? columns + gap : 2 * columns + gap;
  }
  uint64_t columnStride() const {
    return contiguous == Contiguous::Column ? 1 : contiguous == Contiguous::Row ? rows + gap : 2;
  }

  Matrix(uint64_t rows, uint64_t columns, Contiguous contiguous, Element element, std::mt19937& random)
      : rows(rows), columns(columns), contiguous(contiguous), gap(3), values(rows * columns) {
    const uint64_t size = element == Element::F64 ? 8 : element == Element::F32 ? 4 : 2;
    bytes.assign((rows * rowStride() + columns * columnStride() + 1) * size, 0xff);  // NaN wherever nothing is stored
    for (uint64_t i = 0; i < rows; i++)
      for (uint64_t j = 0; j < columns; j++) {
        const double value = (int(random() % 127) - 63) / 32.0;
        values[i * columns + j] = value;
        uint8_t* at = bytes.data() + (i * rowStride() + j * columnStride()) * size;
        const float single = static_cast<float>(value);
        const _Float16 half = static_cast<_Float16>(single);
        const uint16_t brain = static_cast<uint16_t>(std::bit_cast<uint32_t>(single) >> 16);
        const void* from = element == Element::F64   ? static_cast<const void*>(&value)
                           : element == Element::F32 ? &single
                           : element == Element::F16 ? static_cast<const void*>(&half)
                                                     : &brain;
        std::memcpy(at, from, size);
      }
  }
};

template <typename T> void check(const Kernels& kernels, const Configuration& c, const Extents& e, const char* what) {
  std::mt19937 random(static_cast<uint32_t>(e.m * 31 + e.n * 7 + e.k));
  const Matrix a(e.m, e.k, c.a, c.element, random), b(e.k, e.n, c.b, c.element, random);
  const uint64_t stride = e.n + 5;
  const T guard = 12345;
  std::vector<T> out((e.m + 1) * stride, guard);
  std::vector<double> start(e.m * e.n, 0);
  for (uint64_t i = 0; i < e.m; i++)
    for (uint64_t j = 0; j < e.n; j++)
      if (c.initial)
        out[i * stride + j] = static_cast<T>(start[i * e.n + j] = double(random() % 16));
  kernels.run({a.bytes.data(), b.bytes.data(), out.data(), nullptr, e.m, e.n, e.k, a.rowStride(), a.columnStride(),
               b.rowStride(), b.columnStride(), stride});
  for (uint64_t i = 0; i < e.m; i++) {
    for (uint64_t j = 0; j < e.n; j++) {
      double sum = start[i * e.n + j], magnitude = std::fabs(sum);
      for (uint64_t k = 0; k < e.k; k++) {
        double left = a.values[i * e.k + k];
        if (c.silu)
          left /= 1 + std::exp(-left);
        sum += left * b.values[k * e.n + j];
        magnitude += std::fabs(left * b.values[k * e.n + j]);
      }
      if (c.scale)
        sum = 2 * sum + double(j), magnitude = 2 * magnitude + double(j);
      const double tolerance = (sizeof(T) == 4 ? 0x1p-22 : 0x1p-51) * (1 + std::sqrt(double(e.k))) * magnitude;
      ASSERT_NEAR(double(out[i * stride + j]), sum, tolerance + 1e-30)
          << what << " " << e.m << "x" << e.n << "x" << e.k << " at " << i << ", " << j;
    }
    for (uint64_t j = e.n; j < stride; j++)
      ASSERT_EQ(out[i * stride + j], guard) << "written outside: " << what << " row " << i << " column " << j;
  }
}

constexpr Extents kExtents[] = {{1, 1, 1},      {1, 64, 33},   {5, 3, 40},    {17, 17, 17},   {1, 777, 200},
                                {100, 1, 500},  {30, 4, 1100}, {140, 65, 63}, {100, 99, 98},  {7, 16, 300},
                                {13, 70, 0},    {97, 101, 0},  {97, 101, 1},  {150, 70, 600}, {37, 700, 20},
                                {200, 40, 257}, {9, 40, 2500}, {66, 64, 64}};

void checkAll(const Configuration& c, const char* what, bool forcePacked = false) {
  Plan plan = choosePlan(hostTarget().vector, {}, c.element == Element::F64 ? 8 : 4);
  if (forcePacked)
    plan.directRows = plan.directColumns = plan.directWork = 0, plan.kc = 40, plan.mc = 2 * plan.mr,
    plan.nc = 3 * plan.nr();
  const Kernels kernels = compile(hostTarget(), plan, c);
  for (const Extents& e : kExtents) {
    if (c.element == Element::F64)
      check<double>(kernels, c, e, what);
    else
      check<float>(kernels, c, e, what);
    if (testing::Test::HasFatalFailure())
      return;
  }
}

TEST(Gemm, MatchesAnF64ProductForAllLayouts) {
  for (Contiguous a : {Contiguous::Column, Contiguous::Row, Contiguous::None})
    for (Contiguous b : {Contiguous::Column, Contiguous::Row, Contiguous::None})
      for (bool packed : {false, true}) {
        checkAll({.a = a, .b = b}, packed ? "packed layouts" : "layouts", packed);
        if (HasFatalFailure())
          return;
      }
}

TEST(Gemm, MatchesForAllElementTypes) {
  for (Element element : {Element::F64, Element::F16, Element::BF16})
    for (Contiguous b : {Contiguous::Column, Contiguous::Row})
      for (bool packed : {false, true}) {
        checkAll({.element = element, .b = b}, packed ? "packed elements" : "elements", packed);
        if (HasFatalFailure())
          return;
      }
}

TEST(Gemm, FusesProducerEpilogueAndInitialValue) {
  for (bool packed : {false, true}) {
    checkAll({.silu = true}, "silu", packed);
    checkAll({.initial = true}, "initial", packed);
    checkAll({.initial = true, .scale = true}, "initial, scale", packed);
    checkAll({.scale = true, .partialInScratch = true}, "scale", packed);
    checkAll({.b = Contiguous::Row, .silu = true, .scale = true, .partialInScratch = true}, "silu, scale", packed);
    if (HasFatalFailure())
      return;
  }
}

TEST(Gemm, KnownExtentsGiveTheSameResults) {
  for (const Extents& e : {Extents{1, 300, 50}, Extents{300, 1, 50}, Extents{17, 17, 17}, Extents{120, 96, 128}}) {
    const Configuration c{.known = {e.m, e.n, e.k}};
    check<float>(compile(hostTarget(), choosePlan(hostTarget().vector, {}, 4, c.known), c), c, e, "known");
  }
}

TEST(Gemm, ResultsDoNotDependOnTheGrid) {
  const Configuration c;
  const Plan plan = choosePlan(hostTarget().vector, {}, 4);
  const Kernels kernels = compile(hostTarget(), plan, c);
  std::mt19937 random(1);
  const uint64_t m = 133, n = 290, k = 700;
  const Matrix a(m, k, c.a, c.element, random), b(k, n, c.b, c.element, random);
  AlignedBytes packed(plan.packedElements(n, k) * 4), scratch(plan.scratchBytes(true));
  std::vector<float> reference;
  for (uint64_t rows : {1u, 2u, 5u})
    for (uint64_t columns : {1u, 3u}) {
      if ((m + rows - 1) / rows > plan.mc || (n + columns - 1) / columns > plan.nc)
        continue;
      std::vector<float> out(m * n);
      const Arguments arguments{
          a.bytes.data(), b.bytes.data(), out.data(), packed.data(), m, n, k, a.rowStride(), 1, b.rowStride(), 1, n};
      kernels.packB(&arguments, 0, 7), kernels.packB(&arguments, 7, (n + plan.nr() - 1) / plan.nr());
      for (uint64_t r = rows; r-- > 0;)
        for (uint64_t s = 0; s < columns; s++)
          kernels.packedBlock(&arguments, scratch.data(), r, rows, s, columns);
      if (reference.empty())
        reference = out;
      EXPECT_EQ(out, reference) << rows << " x " << columns;
    }
}

TEST(Gemm, PlansOfOtherProcessorsAreCorrectOnThisOne) {
  for (const char* cpu : {"x86-64-v2", "skylake-avx512"})
    for (bool packed : {false, true}) {
      auto other = codegen::createTarget({.cpu = cpu, .features = ""});
      ASSERT_TRUE(other.ok());
      Plan plan = choosePlan(other->vector, {}, 4);
      if (packed)
        plan.directRows = plan.directColumns = plan.directWork = 0;
      const Configuration c;
      const Kernels kernels = compile(hostTarget(), plan, c);
      for (const Extents& e : {Extents{1, 70, 90}, Extents{40, 3, 33}, Extents{29, 67, 500}, Extents{150, 90, 70}})
        check<float>(kernels, c, e, cpu);
    }
}

TEST(Gemm, CompilesForOtherProcessors) {
  for (const char* cpu : {"x86-64-v2", "haswell", "znver4", "skylake-avx512"}) {
    auto target = codegen::createTarget({.cpu = cpu, .features = ""});
    ASSERT_TRUE(target.ok());
    for (uint32_t bytes : {4u, 8u}) {
      const Plan plan = choosePlan(target->vector, {}, bytes);
      const Configuration c{.element = bytes == 8 ? Element::F64 : Element::F16};
      const Kernels kernels = compile(*target, plan, c);
      if (target->runsOnHost && bytes == 4)
        check<float>(kernels, c, {70, 130, 300}, cpu);
    }
  }
}

}  // namespace
}  // namespace vortex::target::cpu::gemm
