#include "target/gpu/hopper/schedule.h"

#include "ir/launch.h"
#include "ir/size_attr.h"
#include "ir/vxnv.h"
#include "passes/phase_marks.h"
#include "passes/phases.h"
#include "size/evaluate.h"
#include "target/gpu/hopper/configuration.h"
#include "target/gpu/hopper/product.h"
#include "target/gpu/tiles/schedule.h"

#include <gtest/gtest.h>
#include <mlir/Parser/Parser.h>
#include <random>

namespace vortex::target::gpu::hopper {
namespace {

const char* const kProduct = R"mlir(
vx.entry @mm : (!vx.view<?x?xbf16, global>, !vx.view<?x?xbf16, global>, !vx.view<?x?xbf16, global>) -> ()
    args [{name = "x", role = #vx.role<param>, access = #vx.access<read>}, {name = "w", role = #vx.role<param>, access = #vx.access<read>},
          {name = "", role = #vx.role<result>, access = #vx.access<write>, extents = [#vx.size<"dim(0,0)">, #vx.size<"dim(1,1)">]
}]
vx.kernel @mm.body(%x: !vx.view<?x?xbf16, global>, %w: !vx.view<?x?xbf16, global>, %out: !vx.view<?x?xbf16, global>) attributes {whole_tensor} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = vx.dim %x, 0 : !vx.view<?x?xbf16, global>
  %k = vx.dim %x, 1 : !vx.view<?x?xbf16, global>
  %n = vx.dim %w, 1 : !vx.view<?x?xbf16, global>
  %a = vx.tile_load %x[%c0, %c0] sizes(%m, %k) inbounds : !vx.view<?x?xbf16, global> -> tensor<?x?xbf16>
  %b = vx.tile_load %w[%c0, %c0] sizes(%k, %n) inbounds : !vx.view<?x?xbf16, global> -> tensor<?x?xbf16>
  %acc = vx.broadcast %zero dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
  %d = vx.dot %a, %b, %acc : tensor<?x?xbf16>, tensor<?x?xbf16> -> tensor<?x?xf32>
  %r = arith.truncf %d : tensor<?x?xf32> to tensor<?x?xbf16>
  vx.tile_store %r, %out[%c0, %c0] inbounds : tensor<?x?xbf16>, !vx.view<?x?xbf16, global>
  vx.return
})mlir";

class ScheduledProduct : public testing::Test {
protected:
  static constexpr int64_t kWorkers = 132;

  void SetUp() override { schedule(kProduct); }

  void schedule(const std::string& text) {
    mlir::DialectRegistry registry;
    ir::registerVxDialects(registry);
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context_));
    const chip::Gpu& chip = *chip::findGpu("sm_90");
    passes::TensorSchedule schedule = tiles::tensorSchedule(chip);
    addBulkTiles(schedule, chip);
    ASSERT_TRUE(mlir::succeeded(passes::makePhases(*module_, schedule)));
  }

  struct Launch {
    int64_t m, n, k;
    int64_t address = 1 << 20;
    int64_t pitch = 0;  ///< elements from one row of x to the next; 0: k
  };

  int64_t valueOf(ir::SizeAttr size, const Launch& launch) {
    int64_t pitch = launch.pitch ? launch.pitch : launch.k;
    auto argument = [&](const size::Node& node) -> int64_t {
      const int64_t extents[3][2] = {{launch.m, launch.k}, {launch.k, launch.n}, {launch.m, launch.n}};
      if (node.op == size::Op::Scalar)
        return kWorkers;
      EXPECT_LT(node.argument, 3u);
      switch (node.op) {
      case size::Op::Dim: return extents[node.argument][node.dim];
      case size::Op::Stride: return node.dim == 1 ? 1 : node.argument == 0 ? pitch : launch.n;
      default: return launch.address;
      }
    };
    return size::evaluate(size.getExpr(), argument);
  }

  struct Found {
    std::vector<std::string> first;  ///< plans of bulk phases, with a star behind those whose results threads store
    int second = 0;                  ///< phases of other products
    int written = 0;                 ///< phases that write operands
  };
  /// Those that a launch runs.
  Found phasesOf(const Launch& launch) {
    Found found;
    auto isTaken = [&](ir::CaseOp each) {
      return ir::holds(each, [&](ir::SizeAttr size) { return valueOf(size, launch); });
    };
    for (ir::KernelOp phase : ir::takenKernels(*module_, isTaken)) {
      found.written += phase.getSymName().contains(".operand.");
      phase.walk([&](ir::DotOp dot) {
        auto plan = dot->getAttrOfType<mlir::StringAttr>(passes::kUnit).str();
        if (isProduct(phase))
          found.first.push_back(phase->hasAttr(passes::kAnyPlacement) ? plan + "*" : plan);
        else
          ++found.second;
      });
    }
    return found;
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(ScheduledProduct, RunsInExactlyOneWayWhateverItsSize) {
  std::mt19937 random(1);
  auto extent = [&] {
    int64_t bits = static_cast<int64_t>(random() % 14),
            value = 1 + static_cast<int64_t>(random()) % (int64_t{1} << bits);
    return random() % 2 ? value : (value + 7) / 8 * 8;
  };
  for (int i = 0; i < 3000; ++i) {
    Launch launch{extent(), extent(), extent()};
    launch.address += random() % 4 ? 0 : 2;
    auto [bulk, others, written] = phasesOf(launch);
    // A product of one column is a sum (decision 0167).
    EXPECT_EQ(bulk.size() + static_cast<size_t>(others), launch.n == 1 ? 0u : 1u)
        << launch.m << " " << launch.n << " " << launch.k;
    const bool isAligned = launch.n % 8 == 0 && launch.address % 16 == 0;  // of the results
    if (!bulk.empty()) {
      EXPECT_EQ(bulk[0].back() == '*', !isAligned) << launch.m << " " << launch.n << " " << launch.k;
    }
    if (isAligned && (launch.m < 32 || launch.n < 16)) {
      EXPECT_TRUE(bulk.empty()) << launch.m << " " << launch.n << " " << launch.k;
    }
  }
}

TEST_F(ScheduledProduct, TakesTheTilesOfLeastCost) {
  auto planOf = [&](const Launch& launch) { return phasesOf(launch).first; };
  using Plans = std::vector<std::string>;
  EXPECT_EQ(planOf({8192, 8192, 8192}), Plans{"wgmma 128x256 stages 4"});
  EXPECT_EQ(planOf({3072, 3072, 3072}), Plans{"wgmma 128x192 stages 4"});
  EXPECT_EQ(planOf({5120, 5120, 5120}), Plans{"wgmma 128x160 stages 4"});
  EXPECT_EQ(planOf({4096, 11008, 4096}), Plans{"wgmma 128x256 stages 4"});
  EXPECT_EQ(planOf({1024, 1024, 1024}), Plans{"wgmma 64x128 stages 8"});
  // Measured on an H200.
  EXPECT_EQ(planOf({4099, 4097, 4101}), Plans{"wgmma 128x192 stages 4*"});
  EXPECT_EQ(planOf({8191, 8193, 8195}), Plans{"wgmma 128x192 stages 4*"});
  EXPECT_EQ(planOf({2047, 2049, 2051}), Plans{"wgmma 128x192 stages 4*"});
  EXPECT_EQ(planOf({1000, 1003, 999}), Plans{"wgmma 64x128 stages 8*"});
}

TEST_F(ScheduledProduct, ReadsCopiesOfWhatBulkCopiesCannotReach) {
  EXPECT_FALSE(phasesOf({4096, 4096, 4096}).first.empty());
  EXPECT_FALSE(phasesOf({4096, 4096, 4096, 1 << 20, 4104}).first.empty());  // rows apart
  EXPECT_FALSE(phasesOf({4096, 4096, 0}).second == 0);                      // no depth
  EXPECT_FALSE(phasesOf({4096, 4096, 4096, (1 << 20) + 8}).first.empty());
  EXPECT_FALSE(phasesOf({4096, 4096, 4096, 1 << 20, 4100}).first.empty());
  // Aligned, but not for them; and nothing to multiply.
  for (Launch launch : {Launch{4096, 4096, 4096, 1 << 20, -4096}, Launch{4096, 4096, 0}, Launch{0, 4096, 64}})
    EXPECT_TRUE(phasesOf(launch).first.empty()) << launch.m << " " << launch.k << " " << launch.pitch;
}

/// The product of `x as bf16`.
std::string withComputedOperand() {
  std::string text = kProduct;
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  };
  replace("@mm : (!vx.view<?x?xbf16, global>", "@mm : (!vx.view<?x?xf32, global>");
  replace("%x: !vx.view<?x?xbf16, global>", "%x: !vx.view<?x?xf32, global>");
  for (const char* dim : {"0", "1"})
    replace(std::string("%x, ") + dim + " : !vx.view<?x?xbf16, global>",
            std::string("%x, ") + dim + " : !vx.view<?x?xf32, global>");
  replace("%a = vx.tile_load %x[%c0, %c0] sizes(%m, %k) inbounds : !vx.view<?x?xbf16, global> -> tensor<?x?xbf16>",
          "%wide = vx.tile_load %x[%c0, %c0] sizes(%m, %k) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>\n"
          "  %a = arith.truncf %wide : tensor<?x?xf32> to tensor<?x?xbf16>");
  return text;
}

TEST_F(ScheduledProduct, WritesComputedOperandsOnceWhereTheyAreReadOften) {
  schedule(withComputedOperand());
  for (const Launch& large :
       {Launch{4096, 4096, 4096}, Launch{512, 512, 512}, Launch{4099, 4097, 4101}, Launch{256, 8192, 4096}}) {
    const Found found = phasesOf(large);
    EXPECT_EQ(found.first.size(), 1u) << large.m << " " << large.n << " " << large.k;
    EXPECT_EQ(found.written, 1);
    EXPECT_EQ(found.second, 0);
  }
  // A launch more would cost more than it saves; too few rows for bulk copies.
  for (const Launch& small :
       {Launch{64, 64, 64}, Launch{100, 100, 100}, Launch{200, 200, 100}, Launch{16, 4096, 4096}}) {
    const Found found = phasesOf(small);
    EXPECT_TRUE(found.first.empty()) << small.m << " " << small.n << " " << small.k;
    EXPECT_EQ(found.written, 0);
    EXPECT_EQ(found.second, 1);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto extent = [&] { return 2 + static_cast<int64_t>(random()) % (int64_t{1} << (1 + random() % 13)); };
    const Launch launch{extent(), extent(), extent()};
    const Found found = phasesOf(launch);
    EXPECT_EQ(found.first.size() + static_cast<size_t>(found.second), 1u)
        << launch.m << " " << launch.n << " " << launch.k;
    EXPECT_EQ(found.written, static_cast<int>(found.first.size()));
  }
}

TEST(Configurations, FitTheChip) {
  const chip::Gpu& chip = *chip::findGpu("sm_90");
  for (const Configuration& each : configurations(chip)) {
    uint64_t columns = (each.columns + 63) / 64 * 64;  // lying across
    uint64_t ring = uint64_t(each.stages) * (each.rows + columns) * kDepthBytes;
    uint64_t staging = each.consumers() * 4 * kStagedBytes, barriers = 16 * each.stages;
    EXPECT_LE(ring + staging + barriers, chip.sharedBytesPerBlock) << each.str();
    EXPECT_EQ(parseConfiguration(each.str()), each);
    EXPECT_EQ(each.consumerColumns() % 32, 0u) << each.str();
  }
  EXPECT_TRUE(configurations(*chip::findGpu("sm_80")).empty());
  EXPECT_FALSE(parseConfiguration("wgmma 128x256 stages 5"));
}

}  // namespace
}  // namespace vortex::target::gpu::hopper
