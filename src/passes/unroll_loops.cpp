#include "passes/unroll_loops.h"

#include "ir/vx.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace vortex::passes {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using mlir::Value;

namespace {

/// Of a loop that nobody asked to unroll.
constexpr int64_t kMostIterations = 64;
/// Operations of all that such loops become, per loop nest and per module; and of all that the program asks for. LLVM takes about 20 µs for each.
constexpr int64_t kMostInNest = 4096, kMostChosen = 16384, kMostAsked = 65536;

/// Of arithmetic on constants, which nobody has folded yet.
std::optional<int64_t> evaluate(Value value, int depth = 0) {
  if (std::optional<int64_t> known = mlir::getConstantIntValue(value))
    return known;
  mlir::Operation* op = value.getDefiningOp();
  constexpr int kDeepest = 16;
  if (!op || depth == kDeepest || op->getNumResults() != 1 || op->getNumRegions() != 0 || !mlir::isPure(op))
    return std::nullopt;
  llvm::SmallVector<mlir::Attribute> operands;
  for (Value operand : op->getOperands()) {
    std::optional<int64_t> known = evaluate(operand, depth + 1);
    if (!known || !operand.getType().isIntOrIndex())
      return std::nullopt;
    operands.push_back(mlir::IntegerAttr::get(operand.getType(), *known));
  }
  llvm::SmallVector<mlir::OpFoldResult> folded;
  if (operands.empty() || mlir::failed(op->fold(operands, folded)) || folded.size() != 1)
    return std::nullopt;
  auto result = llvm::dyn_cast_if_present<mlir::IntegerAttr>(llvm::dyn_cast_if_present<mlir::Attribute>(folded[0]));
  return result ? std::optional(result.getValue().getSExtValue()) : std::nullopt;
}

struct Counter {
  int64_t begin = 0, step = 1, iterations = 0;
};

std::optional<Counter> counterOf(scf::ForOp loop) {
  std::optional<int64_t> begin = evaluate(loop.getLowerBound()), end = evaluate(loop.getUpperBound()),
                         step = evaluate(loop.getStep());
  if (!begin || !end || !step || *step <= 0)
    return std::nullopt;
  __int128 length = static_cast<__int128>(*end) - *begin;
  __int128 iterations = length <= 0 ? 0 : (length + *step - 1) / *step;
  return Counter{*begin, *step, static_cast<int64_t>(iterations)};
}

bool isThreadArray(Value view) {
  auto type = llvm::dyn_cast<ir::ViewType>(view.getType());
  return type && type.getSpace() == ir::Space::Local;
}

/// Arrays that are values are selects by comparisons of the index with every number; others are memory of the thread.
bool indexesArray(scf::ForOp loop) {
  llvm::SetVector<mlir::Operation*> slice;
  mlir::ForwardSliceOptions inside;
  inside.filter = [&](mlir::Operation* op) { return loop->isProperAncestor(op); };
  mlir::getForwardSlice(loop.getInductionVar(), &slice, inside);
  auto follows = [&](Value value) {
    return value == loop.getInductionVar() || (value.getDefiningOp() && slice.contains(value.getDefiningOp()));
  };
  auto isNumber = [&](Value condition) {
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    return compare && compare.getPredicate() == arith::CmpIPredicate::eq && follows(compare.getLhs()) &&
           mlir::matchPattern(compare.getRhs(), mlir::m_Constant());
  };
  int64_t selects = 0;
  for (mlir::Operation* op : slice) {
    if (auto load = llvm::dyn_cast<ir::LoadOp>(op); load && isThreadArray(load.getView()))
      return true;
    if (auto store = llvm::dyn_cast<ir::StoreOp>(op);
        store && isThreadArray(store.getView()) && llvm::any_of(store.getIndices(), follows))
      return true;
    if (auto select = llvm::dyn_cast<arith::SelectOp>(op); select && isNumber(select.getCondition()))
      ++selects;
  }
  return selects > 1;
}

class Unroller {
public:
  mlir::LogicalResult run(mlir::ModuleOp module) {
    llvm::SmallVector<scf::ForOp> outermost;
    module.walk<mlir::WalkOrder::PreOrder>([&](scf::ForOp loop) {
      outermost.push_back(loop);
      return mlir::WalkResult::skip();
    });
    for (scf::ForOp loop : outermost)
      if (mlir::failed(visit(loop)))
        return mlir::failure();
    return mlir::success();
  }

private:
  /// Outer loops first: bounds of inner ones may be computed from their counters.
  mlir::LogicalResult visit(scf::ForOp loop) {
    std::optional<Counter> counter = counterOf(loop);
    const bool isAsked = loop->hasAttr(kUnrollAttr);
    if (isAsked && !counter)
      return loop.emitError("`@unroll`: the number of iterations is not known when the kernel is compiled");
    if (!isAsked && !isWorthIt(loop, counter))
      return visitInner(*loop.getBody());
    const int64_t size = counter->iterations * sizeOf(loop);
    if (isAsked ? (asked_ += size) > kMostAsked : (chosen_ += size) > kMostChosen) {
      if (isAsked)
        return loop.emitError("`@unroll`: ") << counter->iterations << " iterations of about " << sizeOf(loop)
                                             << " operations; a kernel has at most " << kMostAsked;
      return visitInner(*loop.getBody());
    }
    llvm::SmallVector<scf::ForOp> inner = expand(loop, *counter);
    for (scf::ForOp each : inner)
      if (mlir::failed(visit(each)))
        return mlir::failure();
    return mlir::success();
  }

  mlir::LogicalResult visitInner(mlir::Block& block) {
    llvm::SmallVector<scf::ForOp> loops;
    block.walk<mlir::WalkOrder::PreOrder>([&](scf::ForOp loop) {
      loops.push_back(loop);
      return mlir::WalkResult::skip();
    });
    for (scf::ForOp each : loops)
      if (mlir::failed(visit(each)))
        return mlir::failure();
    return mlir::success();
  }

  static bool isWorthIt(scf::ForOp loop, const std::optional<Counter>& counter) {
    return counter && loop->getParentOfType<ir::ThreadsOp>() && counter->iterations <= kMostIterations &&
           counter->iterations * sizeOf(loop) <= kMostInNest && indexesArray(loop);
  }

  /// Operations of one iteration, with inner loops of known length as often as they run.
  static int64_t sizeOf(scf::ForOp loop) {
    int64_t size = 0;
    loop.getBody()->walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation* op) {
      auto inner = llvm::dyn_cast<scf::ForOp>(op);
      std::optional<Counter> counter = inner ? counterOf(inner) : std::nullopt;
      if (!counter || counter->iterations > kMostIterations) {
        ++size;
        return mlir::WalkResult::advance();
      }
      size += counter->iterations * sizeOf(inner);
      return mlir::WalkResult::skip();
    });
    return std::min(size, kMostAsked + 1);
  }

  /// The loops that were directly inside, once per iteration.
  static llvm::SmallVector<scf::ForOp> expand(scf::ForOp loop, const Counter& counter) {
    mlir::OpBuilder b(loop);
    llvm::SmallVector<Value> carried(loop.getInitArgs());
    llvm::SmallVector<scf::ForOp> inner;
    for (int64_t i = 0; i < counter.iterations; ++i) {
      mlir::IRMapping mapping;  // a fresh one: arguments of inner blocks that it knows are not cloned
      mapping.map(loop.getRegionIterArgs(), carried);
      auto number = b.getIntegerAttr(loop.getInductionVar().getType(), counter.begin + i * counter.step);
      mapping.map(loop.getInductionVar(), b.create<arith::ConstantOp>(loop.getLoc(), number).getResult());
      for (mlir::Operation& op : loop.getBody()->without_terminator())
        b.clone(op, mapping)->walk<mlir::WalkOrder::PreOrder>([&](scf::ForOp each) {
          inner.push_back(each);
          return mlir::WalkResult::skip();
        });
      for (auto [into, value] : llvm::zip(carried, loop.getYieldedValues()))
        into = mapping.lookupOrDefault(value);
    }
    loop.replaceAllUsesWith(carried);
    loop.erase();
    return inner;
  }

  int64_t asked_ = 0, chosen_ = 0;
};

struct UnrollLoopsPass : mlir::PassWrapper<UnrollLoopsPass, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(UnrollLoopsPass)
  llvm::StringRef getArgument() const override { return "vx-unroll-loops"; }
  llvm::StringRef getDescription() const override {
    return "loops that the program unrolls, and those that index arrays of a thread";
  }
  void runOnOperation() override {
    if (mlir::failed(unrollLoops(getOperation())))
      signalPassFailure();
  }
};

}  // namespace

mlir::LogicalResult unrollLoops(mlir::ModuleOp module) { return Unroller().run(module); }

std::unique_ptr<mlir::Pass> createUnrollLoopsPass() { return std::make_unique<UnrollLoopsPass>(); }

}  // namespace vortex::passes
