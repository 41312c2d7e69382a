// Which plan a product has, and what follows for its phase.
#include "ir/tile_sizes.h"
#include "target/gpu/dot/plan.h"
#include "target/gpu/dot/product.h"

namespace vortex::target::gpu::dot {

namespace vxt = ir::vxt;

static int64_t boundOf(mlir::Value tile, unsigned dim) {
  auto type = llvm::cast<mlir::RankedTensorType>(tile.getType());
  if (!type.isDynamicDim(dim))
    return type.getDimSize(dim);
  auto size = ir::tileSizes(tile)[dim];
  if (auto value = llvm::dyn_cast_if_present<mlir::Value>(size))
    return tiles::upperBound(value).value_or(0);
  return 0;
}

static Problem problemOf(ir::DotOp dot) {
  unsigned rank = tiles::rankOf(dot.getResult());
  mlir::Type element = tiles::elementType(dot.getA()), result = tiles::elementType(dot.getResult());
  Problem problem;
  problem.elementBits = element.getIntOrFloatBitWidth();
  problem.isFloat = llvm::isa<mlir::FloatType>(element);
  problem.accBytes = static_cast<unsigned>(std::max<int64_t>(problem.isFloat ? 4 : 1, vxt::scalarBytes(result)));
  problem.tf32 = dot->hasAttr("vx.tf32");
  problem.rows = boundOf(dot.getResult(), rank - 2);
  problem.columns = boundOf(dot.getResult(), rank - 1);
  problem.depth = boundOf(dot.getA(), rank - 1);
  return problem;
}

Plan planFor(const chip::Gpu& chip, ir::DotOp dot, int64_t threads) {
  if (auto text = dot->getAttrOfType<mlir::StringAttr>("vx.plan"))
    if (auto plan = parsePlan(text.str()); plan && (threads == 0 || plan->threads() == threads))
      return *plan;
  Problem problem = problemOf(dot);
  problem.threads = static_cast<unsigned>(threads);
  return choosePlan(chip, problem);
}

void schedulePlans(passes::TensorSchedule& schedule, mlir::ModuleOp module, const chip::Gpu& chip) {
  constexpr int64_t kGroup = 8;  // rows of blocks that share their columns in L2
  std::optional<Plan> largest;
  Problem problem;
  module.walk([&](ir::DotOp dot) {
    Plan plan = choosePlan(chip, problemOf(dot));
    if (largest && plan.rows * plan.columns <= largest->rows * largest->columns)
      return;
    largest = plan;
    problem = problemOf(dot);
  });
  if (!largest)
    return;
  schedule.dotRows = schedule.dotRowStep = largest->rows;
  schedule.dotColumns = largest->columns;
  schedule.dotGroup = kGroup;
  schedule.dotPlan = largest->str();
  schedule.dotSplitBlocks = 2 * chip.cores;
  // A piece should take longer than the launch of the phase that adds them: about 2 µs.
  schedule.dotSplitDepth = largest->unit == Unit::Mma ? 512 : 128;
  // The fma unit copies element by element whatever the alignment and is not slower for it.
  schedule.dotAlignment = largest->unit == Unit::Mma ? 16 : 0;
  // Measured on an H200 in f16: operands of 300×300 that lie anyhow take 11.7 µs in place and 13.1 copied, 512×512 18.3 and 11.6.
  schedule.dotCopyElements = schedule.dotAlignment > 0 ? 100'000 : 0;
  if (std::optional<Plan> thin = chooseThinPlan(chip, problem)) {
    schedule.thinDotRows = thin->rows;
    schedule.thinDotColumns = thin->columns;
    schedule.thinDotPlan = thin->str();
  }
  std::optional<Plan> small = chooseSmallPlan(chip, problem, *largest);
  if (!small)
    return;
  schedule.smallDotRows = small->rows;
  schedule.smallDotColumns = small->columns;
  schedule.smallDotBelow = std::max(1u, chip.cores * largest->blocks / 2);
  schedule.smallDotPlan = small->str();
}

std::optional<int64_t> threadsFor(const chip::Gpu& chip, mlir::Operation* phase) {
  std::optional<int64_t> threads;
  phase->walk([&](ir::DotOp dot) {
    int64_t wanted = planFor(chip, dot, 0).threads();
    threads = std::max(threads.value_or(0), wanted);
  });
  return threads;
}

}  // namespace vortex::target::gpu::dot
