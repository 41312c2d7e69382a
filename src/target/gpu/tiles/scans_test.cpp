// Scans of vectors over several blocks that wait for each other, on the machine: blocks start in any order and take turns.
#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "ir/launch.h"
#include "ir/size_attr.h"
#include "size/evaluate.h"
#include "target/gpu/testing/machine.h"
#include "target/gpu/tiles/testing/lower.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

namespace vortex::target::gpu::tiles::testing {
namespace {

using gpu::testing::Launch;

std::string scanText(const std::string& type, const std::string& kind, bool exclusive, const std::string& after) {
  std::string view = "!vx.view<?x" + type + ", global>", tile = "tensor<?x" + type + ">";
  return "vx.entry @test : (" + view + ", " + view + R"() -> () args [
  {name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "o", role = #vx.role<param>, access = #vx.access<readwrite>}]
vx.kernel @test.body(%x: )" +
         view + ", %o: " + view + R"() attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %n = vx.dim %x, 0 : )" +
         view + "\n  %t = vx.tile_load %x[%c0] sizes(%n) inbounds : " + view + " -> " + tile + "\n  %s = vx.scan " +
         kind + " %t dim 0" + (exclusive ? " exclusive : " : " : ") + tile + "\n" + after +
         "  vx.tile_store %r, %o[%c0] inbounds : " + tile + ", " + view + "\n  vx.return\n}\n";
}

/// Runs all phases of a launch.
class ScanSteps : public ir::LaunchActions {
public:
  ScanSteps(Lowered& lowered, mlir::TypeRange types, Launch& launch)
      : lowered_(lowered), types_(types), launch_(launch) {}
  bool run(ir::KernelOp phase) override {
    auto phases = lowered_.vx->getOps<ir::KernelOp>();
    auto kernels = lowered_.vxt->getOps<ir::vxt::KernelOp>();
    ir::vxt::KernelOp kernel = *std::next(kernels.begin(), std::distance(phases.begin(), llvm::find(phases, phase)));
    for (auto [axis, size] : llvm::enumerate(phase.getGrid()->getAsRange<ir::SizeAttr>()))
      launch_.grid[axis] = valueOf(size);
    std::string error = gpu::testing::run(kernel, launch_);
    EXPECT_EQ(error, "");
    return error.empty();
  }
  void set(unsigned argument, int64_t value) override {
    launch_.slots[slotOf(argument)] = static_cast<uint64_t>(value);
  }
  void exchange(unsigned, unsigned) override { FAIL(); }
  int64_t read(unsigned) override { return 0; }
  int64_t valueOf(ir::SizeAttr size) override {
    return size::evaluate(size.getExpr(), [&](const size::Node& argument) {
      return static_cast<int64_t>(launch_.slots[ir::slotOf(argument, types_)]);
    });
  }

private:
  size_t slotOf(unsigned argument) {
    return ir::slotOf(size::Node{.op = size::Op::Scalar, .argument = argument}, types_);
  }
  Lowered& lowered_;
  mlir::TypeRange types_;
  Launch& launch_;
};

/// One scan, compiled; blocks hold `held` bytes.
class Scan {
public:
  Scan(const std::string& text, int64_t held, bool aligned)
      : lowered_(lower(context_, text, {.unitStrides = aligned, .alignedRows = aligned},
                       [&](passes::TensorSchedule& schedule) { schedule.heldScanBytes = held; })) {
    EXPECT_EQ(lowered_.error, "");
  }

  size_t phases() { return static_cast<size_t>(llvm::range_size(lowered_.vx->getOps<ir::KernelOp>())); }

  /// `stride`: of the argument, in elements. Temporaries are garbage first.
  template <typename T> std::vector<T> run(const std::vector<T>& x, int64_t stride, unsigned seed, unsigned together) {
    const int64_t count = static_cast<int64_t>(x.size()) / std::abs(stride);
    std::vector<T> result(static_cast<size_t>(count) + 1);
    std::memset(result.data(), 0xCD, result.size() * sizeof(T));
    Launch launch;
    launch.seed = seed;
    launch.together = together;
    auto add = [&](const void* data, int64_t bytes, uint64_t start, int64_t step, int64_t extent) {
      launch.slots.push_back(start);
      launch.slots.push_back(static_cast<uint64_t>(extent));
      launch.slots.push_back(static_cast<uint64_t>(step));
      launch.memory.push_back({static_cast<const char*>(data), static_cast<size_t>(bytes)});
    };
    const T* first = stride < 0 && count > 0 ? x.data() - (count - 1) * stride : x.data();
    add(x.data(), static_cast<int64_t>(x.size() * sizeof(T)), reinterpret_cast<uint64_t>(first), stride, count);
    add(result.data(), count * static_cast<int64_t>(sizeof(T)), reinterpret_cast<uint64_t>(result.data()), 1, count);
    auto entry = *lowered_.vx->getOps<ir::EntryOp>().begin();
    mlir::TypeRange types = llvm::cast<mlir::FunctionType>(entry.getFunctionType()).getInputs();
    ScanSteps steps(lowered_, types, launch);
    std::vector<std::vector<uint64_t>> temporaries;
    for (size_t i = 2; i < types.size(); ++i) {
      auto extents = llvm::cast<mlir::DictionaryAttr>(entry.getArgs()[i]).getAs<mlir::ArrayAttr>("extents");
      int64_t words = steps.valueOf(llvm::cast<ir::SizeAttr>(extents[0]));
      temporaries.emplace_back(static_cast<size_t>(words), 0xFBFBFBFBFBFBFBFB);
      add(temporaries.back().data(), words * 8, reinterpret_cast<uint64_t>(temporaries.back().data()), 1, words);
    }
    ir::walkLaunch(*lowered_.vx, steps);
    result.pop_back();
    return result;
  }

private:
  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  Lowered lowered_;
};

template <typename T> std::vector<T> sums(const std::vector<T>& x, int64_t stride, bool exclusive) {
  std::vector<T> result;
  const int64_t count = static_cast<int64_t>(x.size()) / std::abs(stride);
  std::conditional_t<std::is_floating_point_v<T>, double,
                     std::make_unsigned_t<std::conditional_t<std::is_floating_point_v<T>, int, T>>>
      sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    auto before = sum;
    sum += static_cast<decltype(sum)>(x[static_cast<size_t>(stride > 0 ? i * stride : (count - 1 - i) * -stride)]);
    result.push_back(static_cast<T>(exclusive ? before : sum));
  }
  return result;
}

template <typename T> std::vector<T> randomVector(size_t count, std::mt19937& random) {
  std::vector<T> x(count);
  for (T& value : x)
    value = static_cast<T>(static_cast<int>(random() % 2001) - 1000) / (std::is_floating_point_v<T> ? T(7) : T(1));
  return x;
}

template <typename T> void expectClose(const std::vector<T>& ours, const std::vector<T>& reference, double scale) {
  ASSERT_EQ(ours.size(), reference.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>)
      ASSERT_NEAR(ours[i], reference[i], scale * std::sqrt(static_cast<double>(i + 1))) << i;
    else
      ASSERT_EQ(ours[i], reference[i]) << i;
  }
}

/// Of one type, for many lengths, any number of blocks at a time: right, and the same bits every time.
template <typename T> void checkSums(const std::string& type, const std::string& kind, double scale) {
  std::mt19937 random(base::freshSeed());
  for (bool exclusive : {false, true}) {
    std::string text = scanText(type, kind, exclusive,
                                "  %r = arith." + std::string(kind == "addf" ? "addf" : "addi") +
                                    " %s, %s : tensor<?x" + type + ">\n");
    for (bool aligned : {true, false}) {
      Scan scan(text, 512 * sizeof(T), aligned);
      EXPECT_EQ(scan.phases(), 2u);
      for (size_t length :
           {size_t(0), size_t(1), size_t(2), size_t(511), size_t(512), size_t(513), size_t(3947), size_t(512 * 35)}) {
        if ((exclusive || !aligned || type != "f32" || base::kIsSanitized) && length > 4000)
          continue;
        SCOPED_TRACE(type + " of " + std::to_string(length) + (aligned ? " aligned" : ""));
        const int64_t stride = aligned ? 1 : length % 2 == 0 ? -1 : 3;
        std::vector<T> x = randomVector<T>(length * static_cast<size_t>(std::abs(stride)), random);
        std::vector<T> reference = sums(x, stride, exclusive);
        for (T& value : reference)
          value = static_cast<T>(value + value);
        auto first = scan.run(x, stride, static_cast<unsigned>(random()), 1 + random() % 12);
        expectClose(first, reference, scale);
        if (::testing::Test::HasFatalFailure())
          return;
        auto second = scan.run(x, stride, static_cast<unsigned>(random()), 2 + random() % 30);
        ASSERT_TRUE(length == 0 || std::memcmp(first.data(), second.data(), first.size() * sizeof(T)) == 0);
      }
    }
  }
}

TEST(LookBack, SumsOfF32) { checkSums<float>("f32", "addf", 1e-3); }
TEST(LookBack, SumsOfF64InTwoWords) { checkSums<double>("f64", "addf", 1e-10); }
TEST(LookBack, SumsOfI32Wrap) { checkSums<int32_t>("i32", "addi", 0); }
TEST(LookBack, SumsOfI64InTwoWords) { checkSums<int64_t>("i64", "addi", 0); }
TEST(LookBack, SumsOfI8Wrap) { checkSums<int8_t>("i8", "addi", 0); }

TEST(LookBack, NarrowFloatsAreRoundedOnce) {
  std::mt19937 random(base::freshSeed());
  Scan scan(scanText("bf16", "addf", false, "  %r = arith.negf %s : tensor<?xbf16>\n"), 1024, true);
  std::vector<uint16_t> x(5003);
  std::vector<double> exact;
  double sum = 0;
  for (uint16_t& value : x) {
    value = static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(random() % 64)) >> 16);
    exact.push_back(sum += std::bit_cast<float>(uint32_t(value) << 16));  // whole numbers below 2^24
  }
  auto first = scan.run(x, 1, 5, 7);
  for (size_t i = 0; i < x.size(); ++i) {
    uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(-exact[i]));
    bits += 0x7FFF + (bits >> 16 & 1);
    ASSERT_EQ(first[i], bits >> 16) << i;
  }
}

TEST(LookBack, NanAndInfinityReachAllThatFollows) {
  Scan scan(scanText("f32", "maxf", false, "  %r = arith.negf %s : tensor<?xf32>\n"), 2048, true);
  std::vector<float> x(4000, -1.0f);
  x[0] = -INFINITY;
  x[1300] = INFINITY;
  x[2900] = NAN;
  auto ours = scan.run(x, 1, 3, 5);
  for (size_t i = 0; i < x.size(); ++i) {
    if (i >= 2900)
      ASSERT_TRUE(std::isnan(ours[i])) << i;
    else
      ASSERT_EQ(ours[i], i >= 1300 ? -INFINITY : i >= 1 ? 1.0f : INFINITY) << i;
  }
}

TEST(LookBack, ContinuesPastAThousandPieces) {
  if (base::kIsSanitized)
    GTEST_SKIP() << "takes minutes";
  std::mt19937 random(base::freshSeed());
  Scan scan(scanText("i32", "addi", false, "  %r = arith.addi %s, %s : tensor<?xi32>\n"), 64, true);
  std::vector<int32_t> x = randomVector<int32_t>(16 * 1040 + 3, random), reference = sums(x, 1, false);
  for (int32_t& value : reference)
    value *= 2;
  expectClose(scan.run(x, 1, 11, 3), reference, 0);
}

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing
