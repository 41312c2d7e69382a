// a / (1 + exp(−x)) → a·σ(x)    1 ± tanh(u) → 2σ(±2u)    1 − σ(x) → σ(−x)    1 ± erf(u) → erfc(∓u)    (c·x)·(d·y) → (c·d)·(x·y)
// a / b → a·(1/b) where b is repeated or constant, and neither b nor 1/b is subnormal
#include "passes/narrow_rewrites.h"

#include "analysis/float_bounds.h"
#include "analysis/narrow_uses.h"
#include "ir/tile_sizes.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

namespace vortex::passes {

namespace arith = mlir::arith;
namespace math = mlir::math;
using analysis::floatConstant;
using mlir::Value;

namespace {

class Rewriting {
public:
  explicit Rewriting(mlir::ModuleOp module) : module_(module), b_(module.getContext()) {}

  void run() {
    llvm::SmallVector<mlir::Operation*> ops;
    module_.walk([&](mlir::Operation* op) {
      if (llvm::isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp>(op) && allowsContraction(op))
        ops.push_back(op);
    });
    pending_.insert(ops.begin(), ops.end());
    for (mlir::Operation* op : ops)
      if (pending_.erase(op))
        visit(op);
  }

private:
  void visit(mlir::Operation* op) {
    Value result = op->getResult(0);
    if (!mlir::getElementTypeOrSelf(result.getType()).isF32() || !uses_.usesOf(result))
      return;
    b_.setInsertionPoint(op);
    Value better = llvm::TypeSwitch<mlir::Operation*, Value>(op)
                       .Case([&](arith::AddFOp add) { return ofSum(add); })
                       .Case([&](arith::SubFOp sub) { return ofDifference(sub); })
                       .Case([&](arith::MulFOp mul) { return ofProduct(mul); })
                       .Case([&](arith::DivFOp div) { return ofQuotient(div); })
                       .Default(Value());
    if (!better)
      return;
    result.replaceAllUsesWith(better);
    eraseDead(op);
    uses_ = {};
  }

  /// What is left of the old form would count as a use.
  void eraseDead(mlir::Operation* op) {
    llvm::SetVector<mlir::Operation*> left;
    left.insert(op);
    while (!left.empty()) {
      op = left.pop_back_val();
      if (!mlir::isOpTriviallyDead(op))
        continue;
      for (Value operand : op->getOperands())
        if (mlir::Operation* source = operand.getDefiningOp())
          left.insert(source);
      pending_.erase(op);
      op->erase();
    }
  }

  template <class Op, class... Args> Value make(Value like, Args... args) {
    return b_.create<Op>(like.getLoc(), args..., arith::FastMathFlags::contract);
  }
  Value negated(Value x) {
    if (auto negate = x.getDefiningOp<arith::NegFOp>())
      return negate.getOperand();
    return make<arith::NegFOp>(x, x);
  }
  Value product(Value x, Value y) { return make<arith::MulFOp>(x, x, y); }

  /// `number` in the way that `like`, a constant, is written; null: not known how.
  Value constantLike(Value like, double number) {
    mlir::Location loc = like.getLoc();
    if (auto broadcast = like.getDefiningOp<ir::BroadcastOp>()) {
      if (llvm::isa<mlir::RankedTensorType>(broadcast.getValue().getType()))
        return {};
      auto copy = llvm::cast<ir::BroadcastOp>(b_.clone(*broadcast));
      mlir::OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPoint(copy);
      copy->setOperand(0, b_.create<arith::ConstantOp>(loc, b_.getF32FloatAttr(float(number))));
      return copy;
    }
    auto tile = llvm::dyn_cast<mlir::RankedTensorType>(like.getType());
    if (!tile)
      return b_.create<arith::ConstantOp>(loc, b_.getF32FloatAttr(float(number)));
    return b_.create<arith::ConstantOp>(loc, mlir::DenseElementsAttr::get(tile, float(number)));
  }

  /// x = factor · rest; the factor's own value, or null with 1.
  struct Scaled {
    double factor = 1;
    Value constant, rest;
  };
  Scaled scaled(Value x) {
    if (auto mul = x.getDefiningOp<arith::MulFOp>(); mul && allowsContraction(mul))
      for (auto [constant, rest] : {std::pair{mul.getLhs(), mul.getRhs()}, {mul.getRhs(), mul.getLhs()}})
        if (auto factor = floatConstant(constant))
          return {*factor, constant, rest};
    return {1, {}, x};
  }

  /// 2x: exact, so it may go into a constant factor.
  Value doubled(Value x, Value one) {
    Scaled parts = scaled(x);
    Value constant = constantLike(parts.constant ? parts.constant : one, 2 * parts.factor);
    return constant ? product(constant, parts.rest) : make<arith::AddFOp>(x, x, x);
  }

  /// 1 + x or 1 − x.
  Value besideOne(Value one, Value x, bool isDifference) {
    mlir::Operation* op = x.getDefiningOp();
    if (!op || !allowsContraction(op) || floatConstant(one) != 1.0)
      return {};
    if (llvm::isa<math::ErfOp>(op))
      return make<ir::ErfcOp>(x, isDifference ? op->getOperand(0) : negated(op->getOperand(0)));
    if (llvm::isa<ir::SigmoidOp>(op) && isDifference)
      return make<ir::SigmoidOp>(x, negated(op->getOperand(0)));
    if (!llvm::isa<math::TanhOp>(op))
      return {};
    Value two = constantLike(one, 2);
    Value argument = two ? doubled(op->getOperand(0), one) : Value();
    return argument ? product(two, make<ir::SigmoidOp>(x, isDifference ? negated(argument) : argument)) : Value();
  }

  Value ofSum(arith::AddFOp add) {
    Value result = besideOne(add.getLhs(), add.getRhs(), false);
    return result ? result : besideOne(add.getRhs(), add.getLhs(), false);
  }
  Value ofDifference(arith::SubFOp sub) { return besideOne(sub.getLhs(), sub.getRhs(), true); }

  /// Constants of both sides in one; none where they cancel.
  Value ofProduct(arith::MulFOp mul) {
    Scaled a = scaled(mul.getLhs()), b = scaled(mul.getRhs());
    if (auto factor = floatConstant(mul.getLhs()))
      a = {*factor, mul.getLhs(), {}};
    else if (auto other = floatConstant(mul.getRhs()))
      b = {*other, mul.getRhs(), {}};
    if (!a.constant || !b.constant || (!a.rest && !b.rest))
      return {};
    double factor = a.factor * b.factor;
    if (std::fabs(factor) < 0x1p-100 || std::fabs(factor) > 0x1p100)
      return {};
    Value rest = !a.rest ? b.rest : !b.rest ? a.rest : product(a.rest, b.rest);
    if (factor == 1)
      return rest;
    Value constant = constantLike(a.constant, factor);
    return constant ? product(constant, rest) : Value();
  }

  /// y where `x` is 1 + exp(−y).
  Value ofLogistic(Value x) {
    auto add = x.getDefiningOp<arith::AddFOp>();
    if (!add || !allowsContraction(add))
      return {};
    for (auto [one, power] : {std::pair{add.getLhs(), add.getRhs()}, {add.getRhs(), add.getLhs()}})
      if (auto exp = power.getDefiningOp<math::ExpOp>(); exp && allowsContraction(exp) && floatConstant(one) == 1.0)
        return negated(exp.getOperand());
    return {};
  }

  Value ofQuotient(arith::DivFOp div) {
    Value a = div.getLhs(), b = div.getRhs();
    if (Value argument = ofLogistic(b)) {
      Value sigmoid = make<ir::SigmoidOp>(b, argument);
      return floatConstant(a) == 1.0 ? sigmoid : product(a, sigmoid);
    }
    if (auto divisor = floatConstant(b)) {
      Value reciprocal = *divisor != 0 && analysis::isNormal(b) ? constantLike(b, 1 / *divisor) : Value();
      return reciprocal ? product(a, reciprocal) : Value();
    }
    auto broadcast = b.getDefiningOp<ir::BroadcastOp>();
    if (!broadcast || floatConstant(a) || !analysis::isNormal(b))
      return {};
    return product(a, repeatedReciprocal(broadcast));
  }

  Value repeatedReciprocal(ir::BroadcastOp broadcast) {
    Value divisor = broadcast.getValue();
    mlir::Location loc = broadcast.getLoc();
    Value one = b_.create<arith::ConstantOp>(loc, b_.getF32FloatAttr(1));
    if (auto tile = llvm::dyn_cast<mlir::RankedTensorType>(divisor.getType())) {
      llvm::SmallVector<Value> sizes, all = ir::tileSizeValues(b_, loc, divisor);
      for (int64_t dim = 0; dim < tile.getRank(); ++dim)
        if (tile.isDynamicDim(dim))
          sizes.push_back(all[dim]);
      one = b_.create<ir::BroadcastOp>(loc, tile, one, llvm::ArrayRef<int64_t>{}, sizes);
    }
    Value reciprocal = make<arith::DivFOp>(divisor, one, divisor);
    mlir::Operation* repeated = b_.clone(*broadcast);
    repeated->setOperand(0, reciprocal);
    return repeated->getResult(0);
  }

  mlir::ModuleOp module_;
  mlir::OpBuilder b_;
  analysis::NarrowAnalysis uses_;
  llvm::DenseSet<mlir::Operation*> pending_;  ///< not visited and not erased
};

}  // namespace

void rewriteNarrow(mlir::ModuleOp module) { Rewriting(module).run(); }

}  // namespace vortex::passes
