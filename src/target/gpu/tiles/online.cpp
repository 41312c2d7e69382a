// Maximum and sum of exponentials in one reading of a row (base/maximum_sum.h): where a row is not kept in registers, a pass that takes a
// maximum and the next one, which sums exp(x - maximum) of the same elements, become one.
//
// Each thread carries one bound and one sum. It takes a few accesses' worth of elements at a time and rescales the sum once for all of
// them, so that the second exponential costs little; threads are then scaled to the row's maximum and added in the fixed order of every
// reduction.
#include "base/maximum_sum.h"
#include "passes/narrow_rewrites.h"
#include "passes/stream_match.h"
#include "target/gpu/tiles/nest.h"

#include <limits>

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;

namespace {

/// What MaximumSum asks for, on scalars of a thread.
class ScalarOps {
public:
  using Value = mlir::Value;
  ScalarOps(Lowering& l, mlir::Type type, bool isBase2) : l_(l), type_(type), isBase2_(isBase2) {}

  Value sub(Value a, Value b) { return l_.b.create<arith::SubFOp>(l_.loc, a, b, kFast); }
  Value mul(Value a, Value b) { return l_.b.create<arith::MulFOp>(l_.loc, a, b, kFast); }
  Value add(Value a, Value b) { return l_.b.create<arith::AddFOp>(l_.loc, a, b, kFast); }
  Value equal(Value a, Value b) { return l_.b.create<arith::CmpFOp>(l_.loc, arith::CmpFPredicate::OEQ, a, b); }
  Value select(Value condition, Value a, Value b) { return l_.select(condition, a, b); }
  Value exp(Value a) {
    if (isBase2_)
      return l_.b.create<mlir::math::Exp2Op>(l_.loc, a, kFast);
    return l_.b.create<mlir::math::ExpOp>(l_.loc, a, kFast);
  }
  Value number(double value) { return l_.b.create<arith::ConstantOp>(l_.loc, l_.b.getFloatAttr(type_, value)); }

private:
  static constexpr arith::FastMathFlags kFast = arith::FastMathFlags::contract;
  Lowering& l_;
  mlir::Type type_;
  bool isBase2_;
};

}  // namespace

mlir::Operation* exponentialOf(ir::ReduceOp sum, ir::ReduceOp maximum) {
  mlir::Operation* power = sum.getValue().getDefiningOp();
  mlir::Type type = elementType(sum.getValue());
  if (sum.getKind() != ir::Combine::AddF || sum.getDims() != maximum.getDims() || !(type.isF32() || type.isF64()) ||
      !llvm::isa_and_present<mlir::math::ExpOp, mlir::math::Exp2Op>(power))
    return nullptr;
  auto difference = power->getOperand(0).getDefiningOp<arith::SubFOp>();
  bool isShifted = difference && difference.getLhs() == maximum.getValue() &&
                   passes::withoutRepetition(difference.getRhs()) == maximum.getResult();
  return isShifted && passes::allowsContraction(difference) && passes::allowsContraction(power) ? power : nullptr;
}

bool isOnlySummed(mlir::Operation* exponential) {
  if (!llvm::isa<mlir::math::ExpOp, mlir::math::Exp2Op>(exponential) || !elementType(exponential->getResult(0)).isF32())
    return false;
  auto difference = exponential->getOperand(0).getDefiningOp<arith::SubFOp>();
  mlir::Value bound = difference ? passes::withoutRepetition(difference.getRhs()) : mlir::Value();
  auto maximum = bound ? bound.getDefiningOp<ir::ReduceOp>() : ir::ReduceOp();
  return maximum && maximum.getKind() == ir::Combine::MaxF &&
         llvm::all_of(exponential->getUsers(), [&](mlir::Operation* user) {
           auto sum = llvm::dyn_cast<ir::ReduceOp>(user);
           return sum && exponentialOf(sum, maximum) == exponential;
         });
}

/// Joins `next` to `pass` where all it computes are such sums of one maximum.
bool Nest::join(Pass& pass, const Pass& next) {
  auto isPlain = [](const Pass& each) {
    return each.roots.empty() && each.scans.empty() && !each.maximum && !each.inner.empty() && !each.reduces.empty();
  };
  if (!isPlain(pass) || !isPlain(next) || pass.loops != next.loops)
    return false;
  for (auto [a, b] : llvm::zip(pass.inner, next.inner))
    if (!sameValue(l, a, b))
      return false;
  for (ir::ReduceOp maximum : pass.reduces) {
    if (maximum.getKind() != ir::Combine::MaxF)
      continue;
    mlir::Operation* power = exponentialOf(next.reduces[0], maximum);
    bool all = power && llvm::all_of(next.reduces, [&](ir::ReduceOp sum) {
                 mlir::Operation* other = exponentialOf(sum, maximum);
                 return other && other->getName() == power->getName();
               });
    if (!all)
      continue;
    pass.maximum = maximum;
    pass.isBase2 = llvm::isa<mlir::math::Exp2Op>(power);
    pass.sums = next.reduces;
    return true;
  }
  return false;
}

/// `body` with passes joined that can be.
Values Nest::joined(llvm::function_ref<Values()> body) {
  std::vector<Pass> apart = passes_;
  for (size_t i = 0; i + 1 < passes_.size(); ++i)
    if (join(passes_[i], passes_[i + 1]))
      passes_.erase(passes_.begin() + static_cast<ptrdiff_t>(i) + 1);
  Values results = body();
  passes_ = std::move(apart);
  return results;
}

/// A few accesses at a time: the plain reductions, then the sums for the bound that these elements raise.
Values Nest::onlineStep(const Pass& pass, llvm::ArrayRef<Position> positions, const Values& carried,
                        llvm::MutableArrayRef<Reduction> reductions) {
  const size_t plain = pass.reduces.size();
  auto fold = [&](size_t first, size_t count, llvm::function_ref<ir::ReduceOp(size_t)> op) {
    llvm::SmallVector<Values> parts(count);
    for (const Position& position : positions) {
      auto all = [&](const Position& here) {
        Values values;
        for (size_t r = 0; r < count; ++r) {
          Reduction& reduction = reductions[first + r];
          Value value = reduction.widen(v_.eval(op(r).getValue(), reduceAt(op(r), here)));
          values.push_back(position.predicated ? reduction.fold(value) : value);
        }
        return values;
      };
      Values neutrals;
      for (size_t r = 0; r < count && position.predicated; ++r)
        neutrals.push_back(reductions[first + r].neutral(1));
      for (auto [r, value] : llvm::enumerate(whereExists(pass, position, all, neutrals, false)))
        parts[r].push_back(value);
    }
    Values folded;
    for (size_t r = 0; r < count; ++r)
      folded.push_back(reductions[first + r].fold(parts[r]));
    return folded;
  };
  const size_t bound = static_cast<size_t>(llvm::find(pass.reduces, pass.maximum) - pass.reduces.begin());
  ScalarOps ops(l, reductions[bound].accumulatorType(), pass.isBase2);
  base::MaximumSum<ScalarOps> algebra(ops);
  Values next;
  for (auto [r, value] : llvm::enumerate(fold(0, plain, [&](size_t r) { return pass.reduces[r]; })))
    next.push_back(reductions[r].combine(carried[r], value));
  Value shift = algebra.shift(next[bound]), scale = algebra.shifted(carried[bound], shift);
  Frame frame(v_);
  v_.remember(ir::ReduceOp(pass.maximum).getResult(), At{row_, 1}, shift);
  for (auto [s, value] : llvm::enumerate(fold(plain, pass.sums.size(), [&](size_t s) { return pass.sums[s]; })))
    next.push_back(ops.add(ops.mul(carried[plain + s], scale), value));
  return next;
}

void Nest::emitOnlinePass(const Pass& pass, Version version, bool isFirst) {
  const size_t plain = pass.reduces.size();
  const size_t bound = static_cast<size_t>(llvm::find(pass.reduces, pass.maximum) - pass.reduces.begin());
  llvm::SmallVector<Reduction> reductions;
  for (ir::ReduceOp op : pass.reduces)
    reductions.push_back(Reduction(l, op.getKind(), elementType(op.getValue())));
  for (ir::ReduceOp op : pass.sums)
    reductions.push_back(Reduction(l, op.getKind(), elementType(op.getValue())));
  Values carried;
  for (Reduction& reduction : reductions)
    carried.push_back(reduction.neutral(1));
  primeInvariants(pass);
  startFetching(pass);
  carried = sweep(pass, version, onlineUnroll(pass), carried, [&](llvm::ArrayRef<Position> positions, Values& next) {
    touchAll(pass, positions);
    keepResident(positions);
    next = onlineStep(pass, positions, next, reductions);
  });
  if (version.peeled) {
    Frame frame(v_);
    Position single = singlePosition(pass, version);
    touchAll(pass, single);
    keepResident(single);
    carried = onlineStep(pass, single, carried, reductions);
  }
  endFetching();
  llvm::SmallVector<TeamValue> values;
  for (size_t r = 0; r < plain; ++r)
    values.push_back({&reductions[r], carried[r]});
  Values totals = teamReduce(l, team_, values, isFirst);
  ScalarOps ops(l, reductions[bound].accumulatorType(), pass.isBase2);
  base::MaximumSum<ScalarOps> algebra(ops);
  Value shift = algebra.shift(totals[bound]), scale = algebra.shifted(carried[bound], shift);
  values.clear();
  for (size_t s = plain; s < reductions.size(); ++s)
    values.push_back({&reductions[s], ops.mul(carried[s], scale)});
  Value exists = isLess(l, l.constant(0), itemCount(pass.inner, 1));
  for (auto [s, sum] : llvm::enumerate(teamReduce(l, team_, values, false)))
    totals.push_back(choose(l, exists, algebra.closed(totals[bound], sum), sum));
  for (auto [r, total] : llvm::enumerate(totals)) {
    ir::ReduceOp op = r < plain ? pass.reduces[r] : pass.sums[r - plain];
    v_.remember(op.getResult(), At{row_, 1}, reductions[r].result(total, reducedExtents(op)));
  }
}

/// A rescaling costs as much as an element: at least 16 share one.
unsigned Nest::onlineUnroll(const Pass& pass) { return std::max(1u, 4 / std::max(1u, loadsOf(pass))); }

}  // namespace vortex::target::gpu::tiles
