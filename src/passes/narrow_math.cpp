// Two steps: rewrite, then mark. A form's error is a bound over all back ends (target/nvidia/functions.cpp, target/interface/math); the errors
// of what a result is computed from add up, and where the sum is above the promise all of its operations keep their full accuracy.
#include "passes/narrow_math.h"

#include "passes/narrow_rewrites.h"

#include "analysis/float_bounds.h"
#include "analysis/narrow_uses.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>

namespace vortex::passes {

namespace arith = mlir::arith;
namespace math = mlir::math;
using mlir::Value;

bool allowsContraction(mlir::Operation* op) {
  auto fast = llvm::dyn_cast_if_present<arith::ArithFastMathInterface>(op);
  return fast && fast.getFastMathFlagsAttr() &&
         arith::bitEnumContainsAll(fast.getFastMathFlagsAttr().getValue(), arith::FastMathFlags::contract);
}

namespace {

struct Choice {
  unsigned bits = 0;
  bool mayFlush = false;
  double error = 0;  ///< relative, of the narrow form
};

mlir::Type elementOf(Value value) { return mlir::getElementTypeOrSelf(value.getType()); }

double promise(unsigned bits) { return bits > 8 ? 0x1p-16 : 0x1p-13; }

bool isFarFromOne(mlir::Operation* log, unsigned bits) {
  Value x = log->getOperand(0);
  if (analysis::lowerBound(x) >= 1.4)  // log2: 0.48
    return true;
  auto widened = x.getDefiningOp<arith::ExtFOp>();
  return bits <= 8 && (elementOf(x).isBF16() || (widened && elementOf(widened.getIn()).isBF16()));
}

/// Of the less accurate form; nothing: there is none.
std::optional<double> errorOf(mlir::Operation* op, unsigned bits) {
  auto isShort = [&] {
    return analysis::upperBound(op->getOperand(0)) <= 20 && analysis::lowerBound(op->getOperand(0)) >= -20;
  };
  return llvm::TypeSwitch<mlir::Operation*, std::optional<double>>(op)
      // Rounding x · log2(e): |x| · 2^-24, and |x| ≤ 104 where the result is not 0 or infinite.
      .Case<math::ExpOp, math::Exp2Op, ir::SigmoidOp>(
          [&](auto) { return isShort() ? 3.6e-6 : 104 * 0x1p-24 + 0x1p-22; })
      .Case([&](ir::ErfcOp) { return bits > 8 ? 0x1p-18 : 0x1p-15; })
      .Case([&](math::TanhOp) { return bits > 8 ? 0x1.8p-17 : 0x1p-13; })
      .Case<math::LogOp, math::Log2Op>(
          [&](auto) { return isFarFromOne(op, bits) ? std::optional(bits > 8 ? 0x1p-21 : 0x1p-14) : std::nullopt; })
      .Case<math::SqrtOp, math::RsqrtOp, arith::DivFOp>([](auto) { return 0x1p-22; })
      .Default([](mlir::Operation*) { return std::nullopt; });
}

class Marking {
public:
  explicit Marking(mlir::ModuleOp module) : module_(module) {}

  void run() {
    module_.walk([&](mlir::Operation* op) { choose(op); });
    while (limitErrors()) {
    }
    for (auto& [op, choice] : choices_)
      mark(op, choice);
  }

private:
  void choose(mlir::Operation* op) {
    if (op->getNumResults() != 1 || !allowsContraction(op))
      return;
    mlir::Type element = elementOf(op->getResult(0));
    Choice choice;
    if (element.isF16() || element.isBF16()) {  // rounded at once
      choice.bits = analysis::significantBits(element);
      choice.mayFlush = element.isF16();
    } else if (auto uses = element.isF32() ? uses_.usesOf(op->getResult(0)) : std::nullopt) {
      choice.bits = uses->bits;
      choice.mayFlush = uses->mayFlush;
    } else {
      return;
    }
    if (auto error = errorOf(op, choice.bits)) {
      choice.error = *error;
      choices_.insert({op, choice});
    }
  }

  /// Relative, of the values that `value` is computed from since the last rounding to 16 bits, and its own.
  double errorIn(Value value) {
    mlir::Operation* op = value.getDefiningOp();
    if (!op || !elementOf(value).isF32() || llvm::isa<arith::ExtFOp>(op))
      return 0;
    auto [at, isNew] = errors_.try_emplace(value, 0);
    if (!isNew)
      return at->second;
    double sum = 0, largest = 0;
    for (Value operand : op->getOperands()) {
      double error = errorIn(operand);
      sum += error;
      largest = std::max(largest, error);
    }
    bool adds = llvm::isa<arith::MulFOp, arith::DivFOp>(op);
    auto own = choices_.find(op);
    return errors_[value] = (adds ? sum : largest) + (own == choices_.end() ? 0 : own->second.error);
  }

  void drop(Value value) {
    mlir::Operation* op = value.getDefiningOp();
    if (!op || !elementOf(value).isF32() || llvm::isa<arith::ExtFOp>(op) || !dropped_.insert(op).second)
      return;
    choices_.erase(op);
    for (Value operand : op->getOperands())
      drop(operand);
  }

  /// True: some operations have lost their less accurate form.
  bool limitErrors() {
    size_t before = choices_.size();
    errors_.clear();
    module_.walk([&](arith::TruncFOp end) {
      if (unsigned bits = analysis::significantBits(elementOf(end.getResult()));
          bits <= 11 && errorIn(end.getIn()) > promise(bits))
        drop(end.getIn());
    });
    return choices_.size() != before;
  }

  static void mark(mlir::Operation* op, const Choice& choice) {
    mlir::Builder b(op->getContext());
    op->setAttr(ir::kNarrowAttr, b.getI64IntegerAttr(choice.bits));
    if (choice.mayFlush)
      op->setAttr(ir::kMayFlushAttr, b.getUnitAttr());
    bool isRoot = llvm::isa<math::SqrtOp, math::RsqrtOp>(op);
    if ((isRoot || llvm::isa<arith::DivFOp>(op)) && (analysis::isNormal(op->getOperand(isRoot ? 0 : 1)) ||
                                                     (isRoot && analysis::lowerBound(op->getOperand(0)) >= 0x1p-100)))
      op->setAttr(ir::kNormalAttr, b.getUnitAttr());
    if (llvm::isa<math::LogOp, math::Log2Op>(op))
      op->setAttr(ir::kFarFromOneAttr, b.getUnitAttr());
  }

  mlir::ModuleOp module_;
  analysis::NarrowAnalysis uses_;
  llvm::MapVector<mlir::Operation*, Choice> choices_;
  llvm::DenseMap<Value, double> errors_;
  llvm::DenseSet<mlir::Operation*> dropped_;
};

struct NarrowMathPass : mlir::PassWrapper<NarrowMathPass, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NarrowMathPass)
  llvm::StringRef getArgument() const override { return "vx-narrow-math"; }
  llvm::StringRef getDescription() const override { return "cheaper functions where results are rounded to 16 bits"; }
  void runOnOperation() override {
    rewriteNarrow(getOperation());
    Marking(getOperation()).run();
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> createNarrowMathPass() { return std::make_unique<NarrowMathPass>(); }

}  // namespace vortex::passes
