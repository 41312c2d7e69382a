// Which plan a product has, and what follows for its phase.
#include "ir/tile_sizes.h"
#include "passes/phase_marks.h"
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

std::optional<Plan> planFor(const chip::Gpu& chip, ir::DotOp dot, int64_t threads) {
  Problem problem = problemOf(dot);
  if (auto text = dot->getAttrOfType<mlir::StringAttr>(passes::kUnit))
    if (auto plan = parsePlan(text.str()); plan && (threads == 0 || plan->threads() == threads)) {
      if (suits(chip, *plan, problem))
        return plan;
      threads = plan->threads();  // that of another product of the kernel, of other elements
    }
  problem.threads = static_cast<unsigned>(threads);
  return choosePlan(chip, problem);
}

passes::ProductRules productRules(const chip::Gpu& chip, llvm::ArrayRef<ir::DotOp> products) {
  constexpr int64_t kGroup = 8;  // rows of blocks that share their columns in L2
  passes::ProductRules rules;
  std::optional<Plan> largest;
  Problem problem;
  for (ir::DotOp dot : products) {
    // Sums of more bytes have smaller tiles, in which others fit.
    const Problem own = problemOf(dot);
    const auto isBefore = [&](const Plan& plan) {
      return std::pair(own.accBytes, plan.rows * plan.columns) >
             std::pair(problem.accBytes, largest->rows * largest->columns);
    };
    std::optional<Plan> plan = choosePlan(chip, own);
    if (!plan || (largest && !isBefore(*plan)))
      continue;
    largest = plan;
    problem = own;
  }
  if (!largest)
    return rules;
  rules.dotRows = rules.dotRowStep = largest->rows;
  rules.dotColumns = largest->columns;
  rules.dotGroup = kGroup;
  rules.dotPlan = largest->str();
  rules.dotSplitBlocks = 2 * chip.cores;
  // A piece should take longer than the launch of the phase that adds them: about 2 µs.
  rules.dotSplitDepth = largest->unit == Unit::Mma ? 512 : 128;
  // The fma unit copies element by element whatever the alignment and is not slower for it.
  rules.dotAlignment = largest->unit == Unit::Mma ? 16 : 0;
  // Measured on an H200 in f16: operands of 300×300 that lie anyhow take 11.7 µs in place and 13.1 copied, 512×512 18.3 and 11.6.
  rules.dotCopyElements = rules.dotAlignment > 0 ? 100'000 : 0;
  if (std::optional<Plan> thin = chooseThinPlan(chip, problem)) {
    rules.thinDotRows = thin->rows;
    rules.thinDotColumns = thin->columns;
    rules.thinDotPlan = thin->str();
    // A step takes 1.6 µs there (an H200, 16-bit elements): two of them.
    rules.dotThinDepth = 2 * static_cast<int64_t>(thin->depth);
  }
  std::optional<Plan> small = chooseSmallPlan(chip, problem, *largest);
  if (!small)
    return rules;
  rules.smallDotRows = small->rows;
  rules.smallDotColumns = small->columns;
  rules.smallDotBelow = std::max(1u, chip.cores * largest->blocks / 2);
  rules.smallDotPlan = small->str();
  return rules;
}

std::optional<int64_t> threadsFor(const chip::Gpu& chip, mlir::Operation* phase) {
  std::optional<int64_t> threads;
  phase->walk([&](ir::DotOp dot) {
    if (std::optional<Plan> plan = planFor(chip, dot, 0))
      threads = std::max<int64_t>(threads.value_or(0), plan->threads());
  });
  return threads;
}

//===-- shared operands ---------------------------------------------------------------------------------------------===//

/// A tile's users beyond transposes that multiply it; whether its last dimension is the columns of what they take.
static void forEachProduct(mlir::Value tile, bool turned, llvm::function_ref<void(mlir::OpOperand&, bool)> visit) {
  for (mlir::OpOperand& use : tile.getUses()) {
    if (auto product = llvm::dyn_cast<ir::DotOp>(use.getOwner())) {
      if (&use != &product.getAccMutable())
        visit(use, turned);
    } else if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(use.getOwner())) {
      llvm::ArrayRef<int64_t> order = transpose.getPermutation();
      auto rank = static_cast<int64_t>(order.size());
      if (rank >= 2 && order[order.size() - 1] == rank - 2 && order[order.size() - 2] == rank - 1)
        forEachProduct(transpose.getResult(), !turned, visit);
    }
  }
}

static void forEachTile(mlir::Value view, llvm::function_ref<void(ir::TileLoadOp)> visit) {
  for (mlir::Operation* user : view.getUsers()) {
    if (auto load = llvm::dyn_cast<ir::TileLoadOp>(user))
      visit(load);
    else if (auto window = llvm::dyn_cast<ir::SubviewOp>(user))
      forEachTile(window.getResult(), visit);
  }
}

ir::SwizzleAttr chooseSwizzle(Lowering& l, ir::AllocOp alloc) {
  ir::ViewType type = alloc.getResult().getType();
  if (type.getSwizzle() || type.isColMajor() || type.getRank() < 2 || alloc->hasAttr("vx.fixed_layout"))
    return {};
  auto rows = static_cast<uint64_t>(type.getShape()[type.getRank() - 2]),
       columns = static_cast<uint64_t>(type.getShape().back());
  auto bytes = static_cast<unsigned>(type.elementBytes());
  if (!llvm::isPowerOf2_64(rows) || !llvm::isPowerOf2_64(columns) || !llvm::isPowerOf2_32(bytes) || bytes > 8)
    return {};
  std::vector<layout::LaneAccess> accesses;
  forEachTile(alloc.getResult(), [&](ir::TileLoadOp load) {
    forEachProduct(load.getResult(), false, [&](mlir::OpOperand& use, bool turned) {
      auto product = llvm::cast<ir::DotOp>(use.getOwner());
      bool isA = &use == &product.getAMutable();
      if (std::optional<Plan> plan = planFor(l.state.chip, product, l.threads()); plan && plan->unit == Unit::Mma)
        for (const layout::LaneAccess& access :
             tileAccesses(isA, isA != turned, bytes, llvm::Log2_64(rows), llvm::Log2_64(columns)))
          accesses.push_back(access);
    });
  });
  if (accesses.empty())
    return {};
  layout::XorSwizzle best =
      layout::solveXorSwizzle(llvm::Log2_64(rows), llvm::Log2_64(columns), llvm::Log2_32(16 / bytes), bytes, accesses)
          .swizzle;
  if (best.mask == 0)
    return {};
  return ir::SwizzleAttr::get(alloc.getContext(), best.shift, static_cast<int64_t>(best.mask), best.base);
}

}  // namespace vortex::target::gpu::dot
