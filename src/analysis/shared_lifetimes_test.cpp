// Random nests of scopes, loops and branches against a walk of every execution path: an allocation is needed from its first write to its
// last read, whatever way the loops and branches go.
#include "analysis/shared_lifetimes.h"

#include "layout/byte_ranges.h"

#include <gtest/gtest.h>
#include <llvm/ADT/DenseSet.h>
#include <mlir/Parser/Parser.h>

#include <map>
#include <random>
#include <set>
#include <string>

namespace vortex::analysis {
namespace {

constexpr const char* kHead = R"(
vx.entry @k : (!vx.view<?xf32, global>) -> () args [{name = "x", role = #vx.role<param>, access = #vx.access<readwrite>}]
vx.kernel @k.main(%x: !vx.view<?xf32, global>) grid [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] block [#vx.size<"1">, #vx.size<"1">, #vx.size<"1">] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = vx.dim %x, 0 : !vx.view<?xf32, global>
  %f = arith.constant 1.0 : f32
  %b = arith.cmpi ult, %c0, %n : index
)";

class Writer {
public:
  explicit Writer(unsigned seed) : random_(seed) {}
  std::string program() { return kHead + body({}, 3) + "  vx.return\n}\n"; }

private:
  std::string body(std::vector<std::pair<std::string, int>> visible, int depth) {
    std::string text;
    for (int i = 0, count = 2 + static_cast<int>(random_() % 5); i < count; ++i)
      switch (random_() % (depth > 0 ? 6 : 4)) {
      case 0: {
        int extent = 4 << random_() % 5;
        std::string name = "%a" + std::to_string(next_++), type = std::to_string(extent) + "xf32, shared>";
        text += name + " = vx.alloc : !vx.view<" + type + "\n";
        visible.push_back({name, extent});
        break;
      }
      case 1:
      case 2:
      case 3:
        if (!visible.empty()) {
          const auto& [name, extent] = visible[random_() % visible.size()];
          std::string type = "!vx.view<" + std::to_string(extent) + "xf32, shared>";
          if (random_() % 2)
            text += "vx.store %f, " + name + "[%c0] : f32, " + type + "\n";
          else
            text += "%v" + std::to_string(next_++) + " = vx.load " + name + "[%c0] : " + type + " -> f32\n";
        }
        break;
      case 4:
        text += "scf.for %i" + std::to_string(next_++) + " = %c0 to %n step %c1 {\n" + body(visible, depth - 1) + "}\n";
        break;
      case 5:
        text += "scf.if %b {\n" + body(visible, depth - 1) + "} else {\n" + body(visible, depth - 1) + "}\n";
        break;
      }
    return text;
  }

  std::mt19937 random_;
  int next_ = 0;
};

/// One run: loops go round `turns` times, branches as `choices` says. Every execution of an alloc is an instance of its own.
struct Execution {
  int turns;
  std::mt19937 choices;
  struct Instance {
    mlir::Operation* alloc;
    int begin, end;
  };
  std::vector<Instance> instances;
  std::map<mlir::Operation*, size_t> current;
  int clock = 0;

  void execute(mlir::Block& block) {
    for (mlir::Operation& op : block) {
      ++clock;
      if (mlir::isa<ir::AllocOp>(op)) {
        current[&op] = instances.size();
        instances.push_back({&op, clock, clock});
      } else if (auto load = mlir::dyn_cast<ir::LoadOp>(op)) {
        touch(load.getView());
      } else if (auto store = mlir::dyn_cast<ir::StoreOp>(op)) {
        touch(store.getView());
      } else if (mlir::isa<mlir::scf::ForOp>(op)) {
        for (int turn = 0; turn < turns; ++turn)
          execute(op.getRegion(0).front());
      } else if (mlir::isa<mlir::scf::IfOp>(op)) {
        mlir::Region& side = op.getRegion(choices() % 2);
        if (!side.empty())
          execute(side.front());
      }
    }
  }
  void touch(mlir::Value view) {
    if (mlir::Operation* alloc = view.getDefiningOp())
      instances[current.at(alloc)].end = clock;
  }
};

/// As the back ends do it.
void place(mlir::Block& block, const SharedLifetimes& lifetimes, layout::ByteRanges& ranges,
           std::map<mlir::Operation*, int64_t>& offsets, std::set<mlir::Operation*>& done) {
  std::vector<mlir::Operation*> own;
  for (mlir::Operation& op : block) {
    if (auto alloc = mlir::dyn_cast<ir::AllocOp>(op)) {
      offsets[&op] = ranges.allocate(alloc.getResult().getType().numElements() * 4, 16);
      own.push_back(&op);
    }
    for (mlir::Region& region : op.getRegions())
      for (mlir::Block& inner : region)
        place(inner, lifetimes, ranges, offsets, done);
    for (mlir::Operation* ended : lifetimes.endingAfter(&op)) {
      ranges.free(offsets.at(ended));
      done.insert(ended);
    }
  }
  for (mlir::Operation* alloc : own)
    if (done.insert(alloc).second)
      ranges.free(offsets.at(alloc));
}

int64_t bytesOf(mlir::Operation* alloc) {
  return mlir::cast<ir::AllocOp>(alloc).getResult().getType().numElements() * 4;
}

TEST(SharedLifetimes, NoByteIsNeededTwiceAtATimeOnAnyPath) {
  mlir::MLIRContext context;
  context.getOrLoadDialect<ir::VxDialect>();
  unsigned shared = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::string text = Writer(seed).program();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    auto phase = *module->getOps<ir::KernelOp>().begin();
    SharedLifetimes lifetimes(phase);
    layout::ByteRanges ranges;
    std::map<mlir::Operation*, int64_t> offsets;
    std::set<mlir::Operation*> done;
    place(phase.getBody().front(), lifetimes, ranges, offsets, done);
    for (unsigned path = 0; path < 8; ++path) {
      Execution run{static_cast<int>(path % 3), std::mt19937(path), {}, {}};
      run.execute(phase.getBody().front());
      for (size_t i = 0; i < run.instances.size(); ++i)
        for (size_t j = i + 1; j < run.instances.size(); ++j) {
          const auto &a = run.instances[i], &b = run.instances[j];
          bool overlapInBytes = offsets[a.alloc] < offsets[b.alloc] + bytesOf(b.alloc) &&
                                offsets[b.alloc] < offsets[a.alloc] + bytesOf(a.alloc);
          bool overlapInTime = a.begin <= b.end && b.begin <= a.end;
          shared += overlapInBytes && a.alloc != b.alloc;
          EXPECT_FALSE(overlapInBytes && overlapInTime) << "seed " << seed << " path " << path << "\n" << text;
        }
    }
  }
  EXPECT_GT(shared, 1000u);  // bytes are really used again
}

std::string kernelOf(const std::string& body) { return kHead + body + "  vx.return\n}\n"; }

int64_t peakOf(mlir::MLIRContext& context, const std::string& body) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kernelOf(body), &context);
  EXPECT_TRUE(module) << body;
  auto phase = *module->getOps<ir::KernelOp>().begin();
  SharedLifetimes lifetimes(phase);
  layout::ByteRanges ranges;
  std::map<mlir::Operation*, int64_t> offsets;
  std::set<mlir::Operation*> done;
  place(phase.getBody().front(), lifetimes, ranges, offsets, done);
  return ranges.peak();
}

TEST(SharedLifetimes, ATileThatIsStoredLaterKeepsItsSourceAlive) {
  mlir::MLIRContext context;
  context.getOrLoadDialect<ir::VxDialect>();
  const std::string first = R"(%a = vx.alloc : !vx.view<64xf32, shared>
    vx.store %f, %a[%c0] : f32, !vx.view<64xf32, shared>
    %t = vx.tile_load %a[%c0] : !vx.view<64xf32, shared> -> tensor<64xf32>
    %u = arith.addf %t, %t : tensor<64xf32>
  )",
                    second = R"(%d = vx.alloc : !vx.view<64xf32, shared>
    vx.store %f, %d[%c0] : f32, !vx.view<64xf32, shared>
  )",
                    use = "vx.tile_store %u, %x[%c0] : tensor<64xf32>, !vx.view<?xf32, global>\n";
  EXPECT_EQ(peakOf(context, first + use + second), 256);
  EXPECT_EQ(peakOf(context, first + second + use), 512);
}

/// Branches and loops that every element runs by itself run where their results are stored.
TEST(SharedLifetimes, ATileOfElementControlKeepsItsSourceAlive) {
  mlir::MLIRContext context;
  context.getOrLoadDialect<ir::VxDialect>();
  const std::string first = R"(%a = vx.alloc : !vx.view<64xf32, shared>
    vx.store %f, %a[%c0] : f32, !vx.view<64xf32, shared>
    %t = vx.tile_load %a[%c0] : !vx.view<64xf32, shared> -> tensor<64xf32>
  )",
                    second = R"(%d = vx.alloc : !vx.view<64xf32, shared>
    vx.store %f, %d[%c0] : f32, !vx.view<64xf32, shared>
  )",
                    use = "vx.tile_store %u, %x[%c0] : tensor<64xf32>, !vx.view<?xf32, global>\n";
  for (const char* control : {R"(%u = scf.if %b -> (tensor<64xf32>) {
      %v = arith.negf %t : tensor<64xf32>
      scf.yield %v : tensor<64xf32>
    } else {
      scf.yield %t : tensor<64xf32>
    }
  )",
                              R"(%u = scf.for %i = %c0 to %n step %c1 iter_args(%s = %t) -> (tensor<64xf32>) {
      %v = arith.addf %s, %s : tensor<64xf32>
      scf.yield %v : tensor<64xf32>
    }
  )"}) {
    EXPECT_EQ(peakOf(context, first + control + use + second), 256);
    EXPECT_EQ(peakOf(context, first + control + second + use), 512);
  }
}

TEST(SharedLifetimes, TheLastBranchThatNeedsMemoryEndsIt) {
  mlir::MLIRContext context;
  context.getOrLoadDialect<ir::VxDialect>();
  const std::string
      first = "%a = vx.alloc : !vx.view<64xf32, shared>\n",
      use = "vx.store %f, %a[%c0] : f32, !vx.view<64xf32, shared>\n",
      second = "%d = vx.alloc : !vx.view<64xf32, shared>\nvx.store %f, %d[%c0] : f32, !vx.view<64xf32, shared>\n";
  EXPECT_EQ(peakOf(context, first + "scf.if %b {\n" + use + second + "}\n"), 256);
  EXPECT_EQ(peakOf(context, first + "scf.if %b {\n" + use + "} else {\n" + second + "}\n"), 256);
  EXPECT_EQ(peakOf(context, first + "scf.if %b {\n" + use + second + "} else {\n" + use + "}\n"), 512);
  EXPECT_EQ(peakOf(context, first + "scf.for %i = %c0 to %n step %c1 {\nscf.if %b {\n" + use + second + "}\n}\n"), 512);
}

TEST(SharedLifetimes, CopiesInFlightAreDrainedUnlessAWaitOfTheScopeCoversThem) {
  mlir::MLIRContext context;
  context.getOrLoadDialect<ir::VxDialect>();
  auto drains = [&](const std::string& between) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        kernelOf(
            "%a = vx.alloc : !vx.view<64xf32, shared>\n"
            "vx.stage_copy %x[%c0] to %a : !vx.view<?xf32, global> to !vx.view<64xf32, shared>\nvx.stage_commit\n" +
            between + "%v = vx.load %a[%c0] : !vx.view<64xf32, shared> -> f32\n"),
        &context);
    EXPECT_TRUE(module);
    auto phase = *module->getOps<ir::KernelOp>().begin();
    SharedLifetimes lifetimes(phase);
    bool result = false;
    phase.walk([&](ir::AllocOp alloc) {
      EXPECT_TRUE(lifetimes.of(alloc).isStaged);
      result = lifetimes.of(alloc).needsDrain;
    });
    return result;
  };
  EXPECT_FALSE(drains("vx.stage_wait 0\nvx.barrier\n"));
  EXPECT_TRUE(drains("vx.stage_wait 1\nvx.barrier\n"));
  EXPECT_TRUE(drains("scf.if %b {\nvx.stage_wait 0\n}\n"));
}

}  // namespace
}  // namespace vortex::analysis
