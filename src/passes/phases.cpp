// The way of a whole-tensor kernel to its phases: it is cut at the control flow that the launch runs (plan/launch_control), each piece is planned
// (plan/planner), and what the plan says is built (build/build_phases).
#include "passes/phases.h"

#include "ir/launch.h"
#include "passes/build/build_phases.h"
#include "passes/check_fused.h"
#include "passes/covered_results.h"
#include "passes/element_control.h"
#include "passes/join_statements.h"
#include "passes/narrow_operands.h"
#include "passes/plan/launch_control.h"
#include "passes/plan/planner.h"
#include "passes/rows_first.h"
#include "passes/separate_operands.h"
#include "passes/sink_reshapes.h"
#include "passes/small_reductions.h"
#include "passes/split_reshapes.h"
#include "passes/stream_reductions.h"
#include "passes/tile_products.h"
#include "passes/unit_dims.h"
#include "passes/vector_products.h"
#include "passes/vector_ways.h"
#include "size/text.h"

namespace vortex::passes {
namespace {

using namespace mlir;

struct PhasesPass : PassWrapper<PhasesPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PhasesPass)
  PhasesPass(TensorSchedule rules, PlanObserver observer) : rules(std::move(rules)), observer(std::move(observer)) {}
  PhasesPass(const PhasesPass& other) : PassWrapper(other), rules(other.rules), observer(other.observer) {}
  StringRef getArgument() const override { return "vx-phases"; }
  StringRef getDescription() const override {
    return "plans whole-tensor kernels as phases of independent blocks, and builds those";
  }
  void runOnOperation() override {
    if (elements.hasValue())
      rules.elementsPerBlock = elements;
    if (squareSide.hasValue())
      rules.squareSide = squareSide;
    if (reductionBlocks.hasValue())
      rules.reductionBlocks = reductionBlocks;
    if (fusedOnly.hasValue())
      rules.fusedOnly = fusedOnly;
    if (sumsVectors.hasValue())
      rules.sumsVectors = sumsVectors;
    if (printsPlan)
      observer = [](StringRef text) { llvm::outs() << text; };
    if (failed(makePhases(getOperation(), rules, observer)))
      signalPassFailure();
  }
  TensorSchedule rules;
  PlanObserver observer;
  Option<int64_t> elements{*this, "elements", llvm::cl::desc("elements one block touches")};
  Option<int64_t> squareSide{*this, "square-side", llvm::cl::desc("side of the squares of transposes")};
  Option<int64_t> reductionBlocks{*this, "reduction-blocks", llvm::cl::desc("blocks of partial reductions")};
  Option<bool> fusedOnly{*this, "fused-only", llvm::cl::desc("phases share only what stays in registers")};
  Option<bool> sumsVectors{*this, "sums-vectors",
                           llvm::cl::desc("products with one row or column are sums, by a launch")};
  Option<bool> printsPlan{*this, "print-plan", llvm::cl::desc("writes the plan to the standard output"),
                          llvm::cl::init(false)};
};

/// Shared and local memory belong to a block: phases could not pass it on.
bool allocates(ir::KernelOp kernel) {
  return kernel.walk([](ir::AllocOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Code of scalars alone needs no phases: one block runs it in order.
bool holdsTiles(ir::KernelOp kernel) {
  const auto isOnTiles = [](Operation* op) {
    return llvm::any_of(op->getResults(), isTile) || llvm::any_of(op->getOperands(), isTile);
  };
  return kernel.walk([&](Operation* op) { return isOnTiles(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

void runAsOneBlock(ir::KernelOp kernel) {
  Attribute one = ir::sizeConstant(kernel.getContext(), 1);
  auto ones = ArrayAttr::get(kernel.getContext(), {one, one, one});
  kernel.setWholeTensor(false);
  kernel.setGridAttr(ones);
  kernel.setBlockAttr(ones);
}

/// The steps of control flow, and the pieces between them.
class Pieces {
public:
  Pieces(ModuleOp module, ir::EntryOp entry, const TensorSchedule& rules, const PlanObserver& observer)
      : module_(module), entry_(entry), rules_(rules), observer_(observer), launch_(ir::createLaunch(entry)) {}

  LogicalResult run(const std::vector<ControlStep>& steps, std::optional<unsigned> workers) {
    if (workers) {
      launch_.let(entry_.getLoc(), *workers, ir::sizeClusters(entry_.getContext()));
      lets_.workers = ir::sizeScalar(entry_.getContext(), *workers);
    }
    lets_.areAllSet = steps.size() == 1 && steps[0].piece;
    if (failed(schedule(steps)))
      return failure();
    for (auto kernel : module_.getOps<ir::KernelOp>())
      addArguments(kernel);
    return success();
  }

private:
  /// Of the entry, where pieces that were scheduled later brought some.
  void addArguments(ir::KernelOp kernel) {
    ArrayRef<Type> types = entry_.getFunctionType().getInputs();
    for (unsigned i = kernel.getNumArguments(); i < types.size(); ++i)
      kernel.insertArgument(i, types[i], {}, kernel.getLoc());
  }

  LogicalResult schedule(const std::vector<ControlStep>& steps) {
    return success(llvm::all_of(steps, [&](const ControlStep& step) { return succeeded(schedule(step)); }));
  }

  LogicalResult schedule(const ControlStep& step) {
    bool isFine = true;
    auto all = [&](const std::vector<ControlStep>& steps) { isFine &= succeeded(schedule(steps)); };
    if (step.piece)
      return schedule(step.piece);
    const Location origin = step.origin.value_or(entry_.getLoc());
    auto round = [&] {
      all(step.steps);
      for (auto [a, b] : step.exchanges)
        launch_.exchange(origin, a, b);
    };
    if (step.read)
      launch_.read(origin, step.read->first, step.read->second);
    else if (step.round)
      launch_.loop(origin, *step.round, round);
    else
      launch_.branch(origin, step.condition, round, [&] { all(step.otherwise); });
    return success(isFine);
  }

  LogicalResult addPhase(ir::KernelOp kernel, StringRef suffix) {
    kernel.setSymName(nextName(suffix));
    launch_.phase(kernel);
    return success();
  }

  LogicalResult schedule(ir::KernelOp piece) {
    addArguments(piece);
    if (!piece.getWholeTensor())
      return addPhase(piece, "iterate");
    if (!holdsTiles(piece)) {
      runAsOneBlock(piece);
      return addPhase(piece, "serial");
    }
    joinStatements(piece);
    if (!rules_.fusedOnly)
      flattenBetween(piece);
    sumVectorProducts(piece, rules_.sumsVectors);
    return rules_.sumsVectors ? scheduleWays(piece) : scheduleSums(piece);
  }

  /// For launches that have vectors where the program has matrices.
  LogicalResult scheduleWays(ir::KernelOp piece) {
    addWorkers(piece);
    SmallVector<VectorWay, 2> ways = addVectorWays(piece);
    bool isFine = true;
    SmallVector<ir::LaunchBuilder::Way> cases;
    for (const VectorWay& way : ways)
      cases.push_back({.name = way.name, .needs = way.needs, .emit = [&] {
                         observeCase(way.name, " needs ", way.needs);
                         addArguments(way.kernel);
                         isFine &= succeeded(scheduleSums(way.kernel));
                       }});
    cases.push_back({.name = "matrices", .emit = [&] {
                       if (!ways.empty())
                         observeCase("matrices");
                       addArguments(piece);
                       isFine &= succeeded(scheduleSums(piece));
                     }});
    launch_.choose(piece.getLoc(), cases);
    return success(isFine);
  }

  /// What products ask of a launch comes before all temporaries, so it is an argument before any way is planned.
  void addWorkers(ir::KernelOp piece) {
    const bool hasProducts = piece.walk([](ir::DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (lets_.workers || !hasProducts || !rules_.asksForWorkers())
      return;
    EntryArguments arguments(entry_);
    const unsigned number = arguments.addLet("workers");
    arguments.assign();
    if (number < piece.getNumArguments())
      piece.insertArgument(number, arguments.types()[number], {}, piece.getLoc());
    addArguments(piece);
    launch_.let(entry_.getLoc(), number, ir::sizeClusters(entry_.getContext()));
    lets_.workers = ir::sizeScalar(entry_.getContext(), number);
  }

  LogicalResult scheduleSums(ir::KernelOp piece) {
    ir::SizeAttr areCheaper = rules_.reductionBlocks > 0 ? areColumnsCheaper(piece) : ir::SizeAttr();
    const std::optional<int64_t> known = areCheaper ? ir::constantSize(areCheaper) : 0;
    if (known) {
      if (*known)
        reduceColumnsFirst(piece);
      else if (rules_.reductionBlocks > 0)
        reduceRowsFirst(piece);
      return plan(piece);
    }
    ir::KernelOp other = piece.clone();
    module_.insert(piece, other);
    reduceRowsFirst(piece);
    reduceColumnsFirst(other);
    bool isFine = true;
    ir::SizeAttr areDearer = ir::sizeBinary(size::Op::Less, areCheaper, ir::sizeConstant(entry_.getContext(), 1));
    launch_.choose(piece.getLoc(), {{.name = "rows first",
                                     .when = areDearer,
                                     .emit =
                                         [&] {
                                           observeCase("rows first", " when ", areDearer);
                                           isFine &= succeeded(plan(piece));
                                         }},
                                    {.name = "columns first", .emit = [&] {
                                       observeCase("columns first");
                                       addArguments(other);
                                       isFine &= succeeded(plan(other));
                                     }}});
    return success(isFine);
  }

  LogicalResult plan(ir::KernelOp piece) {
    if (!rules_.bulkTiles.empty())
      convertBeforeRepeating(piece);
    separateOperands(piece);
    auto plan = planKernel(module_, entry_, piece, rules_, lets_);
    if (!plan)
      return failure();
    observe(*plan);
    buildPhases(*plan, entry_, launch_, [this](StringRef kind) { return nextName(kind); });
    piece.erase();
    return success();
  }

  void observe(const KernelPlan& plan) {
    if (!observer_)
      return;
    std::string text;
    llvm::raw_string_ostream out(text);
    print(out, plan);
    observer_(text);
  }

  /// Of what is chosen before a piece is planned.
  void observeCase(StringRef name, StringRef word = "", ir::SizeAttr condition = {}) {
    if (observer_)
      observer_("case \"" + name.str() + "\"" + word.str() + (condition ? size::print(condition.getExpr()) : "") +
                "\n");
  }

  std::string nextName(StringRef kind) { return (entry_.getSymName() + "." + kind + "." + Twine(phases_++)).str(); }

  ModuleOp module_;
  ir::EntryOp entry_;
  const TensorSchedule& rules_;
  const PlanObserver& observer_;
  ir::LaunchBuilder launch_;
  KnownLets lets_;
  unsigned phases_ = 0;
};

/// Steps of a launch nest as loops and branches of the program do; a loop that asks phases whether it goes on has a branch in it.
LogicalResult checkNesting(Block& steps, unsigned nesting = 0) {
  for (Operation& op : steps) {
    if (op.getNumRegions() == 0)
      continue;
    const unsigned inside = nesting + !isa<ir::CaseOp>(op);
    if (inside == kMostNesting)
      return op.emitError(
                 "loops and branches around whole tensors are nested too deep: the steps of a launch nest up to ")
             << kMostNesting - 1 << " levels deep, and a loop whose condition is computed from tensors takes two";
    for (Region& region : op.getRegions())
      for (Block& block : region)
        if (failed(checkNesting(block, inside)))
          return failure();
  }
  return success();
}

LogicalResult makeSteps(ModuleOp module, ir::EntryOp entry, ir::KernelOp kernel, const TensorSchedule& rules,
                        const PlanObserver& observer) {
  std::optional<unsigned> workers;
  auto steps = cutAtControl(entry, kernel, rules, workers);
  if (failed(steps))
    return failure();
  if (failed(Pieces(module, entry, rules, observer).run(*steps, workers)))
    return failure();
  return checkNesting(ir::findLaunch(module).getSteps().front());
}

}  // namespace

LogicalResult makePhases(ModuleOp module, const TensorSchedule& rules, const PlanObserver& observer) {
  narrowOperands(module);
  SmallVector<ir::KernelOp> kernels;
  for (auto kernel : module.getOps<ir::KernelOp>())
    if (kernel.getWholeTensor())
      kernels.push_back(kernel);
  if (kernels.empty()) {
    runTileProductsInBulk(module, rules);
    return success();
  }
  auto entries = module.getOps<ir::EntryOp>();
  VORTEX_CHECK(!entries.empty() && kernels.size() == 1 && llvm::hasSingleElement(module.getOps<ir::KernelOp>()),
               "a whole-tensor kernel is the only one of its module");
  if (allocates(kernels[0])) {
    runAsOneBlock(kernels[0]);
    return success();
  }
  dropCoveredZeros(*entries.begin(), kernels[0]);
  dropReshapesBack(kernels[0]);
  mergeReductions(kernels[0]);
  unrollSmallReductions(kernels[0], !rules.fusedOnly);
  splitUnitReshapes(kernels[0]);
  splitReshapes(kernels[0]);
  prepareElementControl(*entries.begin(), kernels[0]);
  if (rules.streamedStep > 0)
    streamReductions(module, rules.streamedStep);
  if (failed(makeSteps(module, *entries.begin(), kernels[0], rules, observer)))
    return failure();
  return checkFused(module);
}

std::unique_ptr<Pass> createPhasesPass(TensorSchedule rules, PlanObserver observer) {
  return std::make_unique<PhasesPass>(std::move(rules), std::move(observer));
}

}  // namespace vortex::passes
