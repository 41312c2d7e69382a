// Counted loops: ranges, progressions, arrays.
#include "irgen/emitter.h"

#include <mlir/Dialect/Utils/StaticValueUtils.h>

namespace vortex::irgen {

using lang::Expr;
using lang::ExprKind;
using lang::Scalar;
using mlir::Location;
using mlir::Value;
namespace arith = mlir::arith;

/// Lists up to this length that follow no progression are unrolled; longer ones are found by a binary search of selects.
static constexpr size_t kMaxUnrolledList = 32;

void Emitter::emitForExpr(const Expr& expr) {
  Scope scope(*this);
  if (!expr.ints.empty())
    b_.create<ir::StageCommitOp>(loc(expr));
  switch (expr.args[0]->kind) {
  case ExprKind::IntList: return emitForList(expr);
  default:
    if (expr.args[0]->type->kind == lang::TypeKind::Array ||
        stripRef(expr.args[0]->type)->kind == lang::TypeKind::Array)
      return emitForArray(expr);
    return emitForRange(expr);
  }
}

/// One iteration: `value` in index or the variable's own type.
void Emitter::emitIteration(const Expr& expr, Value value, Value position, Scalar kind) {
  Scope scope(*this);
  Location at = loc(expr);
  const JumpFlags& flags = facts_.flags(&expr);
  declare(expr.variable);
  if (value.getType().isIndex())
    value = math_.fromIndex(at, value, kind);
  assign(at, expr.variable, value);
  if (expr.indexVariable) {
    declare(expr.indexVariable);
    assign(at, expr.indexVariable, math_.fromIndex(at, position, scalarOf(expr.indexVariable->type)));
  }
  if (flags.continued) {
    declare(flags.continued);
    setFlag(at, flags.continued, false);
  }
  evaluate(*expr.args[1], nullptr);
}

void Emitter::emitTrips(const Expr& expr, const Trip& trip) {
  Location at = loc(expr);
  const JumpFlags& flags = facts_.flags(&expr);
  Scalar kind = scalarOf(expr.variable->type);
  llvm::SmallVector<const Variable*> exits = loopExits(expr);
  bool divergent =
      atBlockLevel() && llvm::any_of(exits, [&](const Variable* flag) { return facts_.isDivergent(flag); });
  if (flags.broke) {
    declare(flags.broke);
    setFlag(at, flags.broke, false);
    if (divergent)
      closeRegion();
  }
  VariableSet assigned = assignedIn(&expr);
  const bool isSpread = !context_.hasThreads && !divergent && (expr.isClaimedParallel || expr.isIndependent);
  const bool leaves = !exits.empty() && !divergent;
  if (!trip.isFar && (!leaves || expr.isUnrolled)) {
    const bool skips = leaves;  // iterations of an unrolled loop after the one that leaves it
    size_t before = predicates_.size();
    if (!skips)
      predicates_.append(exits.begin(), exits.end());
    bool plain = trip.lower && !expr.indexVariable;
    Value zero = plain ? trip.lower : math_.index(at, 0);
    Value one = plain ? trip.step : math_.index(at, 1);
    mlir::scf::ForOp loop = emitFor(at, zero, plain ? trip.upper : trip.count, one, assigned, [&](Value counter) {
      auto iteration = [&] { emitIteration(expr, plain ? counter : trip.value(counter), counter, kind); };
      if (skips)
        emitIf(at, noneSet(at, exits), assigned, iteration, [] {});
      else
        iteration();
    });
    if (isSpread)
      loop->setAttr(ir::kIndependentAttr, b_.getStringAttr(expr.isClaimedParallel ? ir::kClaimed : ir::kProven));
    if (expr.isUnrolled)
      loop->setAttr("vx.unroll", b_.getUnitAttr());
    if (expr.pipelineStages > 0)
      loop->setAttr("vx.pipeline", b_.getI64IntegerAttr(expr.pipelineStages));
    predicates_.truncate(before);
    return;
  }
  if (expr.pipelineStages > 1) {
    context_.failed = true;
    mlir::emitError(at) << "`@pipeline`: the loop is left before its last iteration";
  }
  const Variable* position = facts_.newVariable("position", facts_.index(), lang::Uniformity::PerThread);
  if (atBlockLevel())
    const_cast<Variable*>(position)->uniformity = lang::Uniformity::Uniform;
  declare(position);
  assign(at, position, math_.index(at, 0));
  assigned.insert(position);
  emitWhile(
      at, assigned,
      [&] {
        Value below = b_.create<arith::CmpIOp>(at, arith::CmpIPredicate::ult, readScalar(at, position), trip.count);
        return leaves ? Value(b_.create<arith::AndIOp>(at, below, noneSet(at, exits))) : below;
      },
      [&] {
        Value counter = readScalar(at, position);
        size_t before = predicates_.size();
        if (divergent)
          predicates_.append(exits.begin(), exits.end());
        emitIteration(expr, trip.value(counter), counter, kind);
        predicates_.truncate(before);
        assign(at, position, math_.binary(at, lang::BinaryOp::Add, Scalar::Usize, counter, math_.index(at, 1)));
      });
}

//===-- ranges ----------------------------------------------------------------------------------------------------===//

/// Its iterations become threads of a grid, or launches.
static bool isOfLaunch(const Expr& loop) {
  if (loop.needsBlock || (loop.kind == ExprKind::For && (loop.isClaimedParallel || loop.isIndependent)))
    return true;
  return llvm::any_of(loop.args, [](const Expr* part) { return part && isOfLaunch(*part); });
}

void Emitter::emitForRange(const Expr& expr) {
  emitTrips(expr, rangeTrip(*expr.args[0], expr.reach, !context_.hasThreads && isOfLaunch(expr)));
}

/// Written as numbers far from 2^63.
static bool areConstant(const Expr& range) {
  return range.kind == ExprKind::Range && llvm::all_of(range.args, [](const Expr* part) {
           return !part || (part->kind == ExprKind::Int && part->intValue < (__int128(1) << 62));
         });
}

/// ceil(length / step) of numbers of 64 bits without a sign, in operations that mean the same to launches, which divide signed numbers; at most
/// 2^63 - 1.
Value Emitter::farQuotient(Location at, Value length, Value step) {
  auto number = [&](int64_t value) { return math_.index(at, value); };
  auto compare = [&](arith::CmpIPredicate predicate, Value a, Value b) -> Value {
    return b_.create<arith::CmpIOp>(at, predicate, a, b);
  };
  auto choose = [&](Value condition, Value a, Value b) -> Value {
    return b_.create<arith::SelectOp>(at, condition, a, b);
  };
  auto divide = [&](ir::IntKind kind, Value a, Value b) -> Value {
    return b_.create<ir::IntOp>(at, a.getType(), kind, a, b);
  };
  auto add = [&](Value a, Value b) -> Value { return b_.create<arith::AddIOp>(at, a, b); };
  auto isFar = [&](Value value) { return compare(arith::CmpIPredicate::slt, value, number(0)); };
  auto upToTwo = [&](Value rest) {  // of less than two steps
    Value least = choose(compare(arith::CmpIPredicate::ule, rest, step), number(1), number(2));
    return choose(compare(arith::CmpIPredicate::eq, rest, number(0)), number(0), least);
  };
  // length = 2 * half + odd
  Value half = add(divide(ir::IntKind::DivU, add(length, number(INT64_MIN)), number(2)), number(int64_t(1) << 62));
  Value odd = b_.create<arith::SubIOp>(at, length, add(half, half));
  Value quotient = divide(ir::IntKind::DivU, half, step), rest = divide(ir::IntKind::RemU, half, step);
  Value far = add(add(quotient, quotient), upToTwo(add(add(rest, rest), odd)));
  far = choose(isFar(far), number(INT64_MAX), far);
  Value count = choose(isFar(length), far, divide(ir::IntKind::CeilDivU, length, step));
  return choose(isFar(step), upToTwo(length), count);
}

/// Unsigned bounds as signed ones. An end of 2^63 or more stands for about as many iterations, which every launch refuses; where one thread runs all of
/// them it never ends.
void Emitter::cutForLaunch(Location at, Value& begin, Value& end) {
  Value zero = math_.index(at, 0), most = math_.index(at, INT64_MAX);
  auto isFar = [&](Value bound) { return b_.create<arith::CmpIOp>(at, arith::CmpIPredicate::slt, bound, zero); };
  auto isNear = [](Value bound) { return mlir::getConstantIntValue(bound).value_or(-1) >= 0; };
  Value isFarEnd = isFar(end);
  end = b_.create<arith::SelectOp>(at, isFarEnd, most, end);
  if (!isNear(begin)) {
    begin = b_.create<arith::SelectOp>(at, isFar(begin), end, begin);
    begin = b_.create<arith::SelectOp>(at, isFarEnd, zero, begin);
  }
}

/// Bounds are extended to 64 bits by their signedness, so signed comparison and steps that do not wrap serve every narrower type, and what is near.
Emitter::Trip Emitter::rangeTrip(const Expr& range, lang::Reach reach, bool isOfLaunch) {
  Location at = loc(range);
  Scalar kind = scalarOf(range.type);
  const bool isUnsigned = lang::isUnsigned(kind);
  if (lang::bitWidth(kind) < 64 || areConstant(range))
    reach = lang::Reach::Near;
  Value begin, end, step;
  std::optional<__int128> constantStep = 1;
  if (range.kind == ExprKind::Range) {
    begin = evalScalar(*range.args[0]);
    end = evalScalar(*range.args[1]);
    if (range.args.size() > 2 && range.args[2]) {
      const Expr* written = range.args[2];
      bool negated = written->kind == ExprKind::Unary && written->unaryOp == lang::UnaryOp::Neg;
      const Expr* literal = negated ? written->args[0] : written;
      constantStep = std::nullopt;
      if (literal->kind == ExprKind::Int)
        constantStep = negated ? -literal->intValue : literal->intValue;
      step = evalScalar(*written);
    }
  } else {  // a range held in a variable
    Flat parts = eval(range);
    begin = parts.leaves[0], end = parts.leaves[1], step = parts.leaves[2];
    constantStep = std::nullopt;
  }
  begin = math_.toIndex(at, begin, kind);
  end = math_.toIndex(at, end, kind);
  step = step ? math_.toIndex(at, step, kind) : math_.index(at, 1);
  Trip trip;
  // Launches count signed integers and refuse too many rounds. With another step than 1 few rounds may lead far, and the last one past 2^63.
  const bool isCounted = isOfLaunch && reach != lang::Reach::Near && constantStep != 1;
  if (isOfLaunch && isUnsigned && reach != lang::Reach::Near && !isCounted)
    cutForLaunch(at, begin, end);
  if (isOfLaunch)
    reach = lang::Reach::Near;
  auto less = [&](Value lhs, Value rhs) -> Value {
    const bool asUnsigned = isUnsigned && (reach != lang::Reach::Near || isCounted);
    return b_.create<arith::CmpIOp>(at, asUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt, lhs, rhs);
  };
  auto difference = [&](Value lhs, Value rhs) -> Value { return b_.create<arith::SubIOp>(at, lhs, rhs); };
  auto trips = [&](Value from, Value to, Value by) -> Value {  // ceil((to - from) / by), not negative
    Value length = b_.create<arith::SelectOp>(at, less(from, to), difference(to, from), math_.index(at, 0));
    return isCounted ? farQuotient(at, length, by)
                     : Value(b_.create<ir::IntOp>(at, length.getType(), ir::IntKind::CeilDivU, length, by));
  };
  trip.isFar = reach == lang::Reach::Far;
  bool up = constantStep && *constantStep > 0, down = constantStep && *constantStep < 0;
  if (up) {
    if (reach == lang::Reach::NearEnd)
      begin = b_.create<arith::SelectOp>(at, less(begin, end), begin, end);
    if (!trip.isFar && !isCounted)
      trip.lower = begin, trip.upper = end, trip.step = step;
    trip.count = trips(begin, end, step);
  } else {
    Value back = difference(math_.index(at, 0), step);
    Value downwards = trips(end, begin, back);
    if (down) {
      trip.count = downwards;
    } else {  // decided at run time
      Value isStep = b_.create<arith::CmpIOp>(at, arith::CmpIPredicate::ne, step, math_.index(at, 0));
      emitAssert(at, isStep, "E0707", {"the step of a range is 0", {}, {}});
      trip.count = trips(begin, end, step);
      if (!isUnsigned) {
        Value isUp = b_.create<arith::CmpIOp>(at, arith::CmpIPredicate::sgt, step, math_.index(at, 0));
        trip.count = b_.create<arith::SelectOp>(at, isUp, trip.count, downwards);
      }
    }
  }
  trip.value = [this, at, begin, step](Value position) -> Value {
    return b_.create<arith::AddIOp>(at, begin, b_.create<arith::MulIOp>(at, position, step));
  };
  return trip;
}

//===-- lists -----------------------------------------------------------------------------------------------------===//

/// Arithmetic progressions step, geometric ones with a power of two as factor shift.
std::optional<Emitter::Trip> Emitter::listTrip(const Expr& list, Scalar kind) {
  llvm::ArrayRef<__int128> values = list.intList;
  Location at = loc(list);
  Trip trip;
  trip.count = math_.index(at, values.size());
  __int128 step = values[1] - values[0];
  bool arithmetic = true, doubling = true, halving = true;
  for (size_t i = 1; i < values.size(); ++i) {
    arithmetic &= values[i] - values[i - 1] == step;
    doubling &= values[i - 1] > 0 && values[i] == 2 * values[i - 1];
    halving &= values[i] > 0 && values[i - 1] == 2 * values[i];
  }
  if (!arithmetic && !doubling && !halving)
    return std::nullopt;
  Value first = math_.index(at, static_cast<int64_t>(values[0]));
  if (arithmetic) {
    Value by = math_.index(at, static_cast<int64_t>(step));
    trip.value = [this, at, first, by](Value position) -> Value {
      return b_.create<arith::AddIOp>(at, first, b_.create<arith::MulIOp>(at, position, by));
    };
  } else {
    auto shift = doubling ? ir::IntKind::Shl : ir::IntKind::ShrU;
    trip.value = [this, at, first, shift](Value position) -> Value {
      return b_.create<ir::IntOp>(at, first.getType(), shift, first, position);
    };
  }
  (void)kind;
  return trip;
}

void Emitter::emitForList(const Expr& expr) {
  const Expr& list = *expr.args[0];
  Location at = loc(expr);
  if (list.intList.empty())
    return;
  lang::Scalar kind = scalarOf(expr.variable->type);
  if (list.intList.size() > 4)
    if (std::optional<Trip> trip = listTrip(list, kind))
      return emitTrips(expr, *trip);
  mlir::Type type = types_.scalar(kind);
  llvm::SmallVector<const Variable*> exits = loopExits(expr);
  if (list.intList.size() > kMaxUnrolledList || !exits.empty()) {
    Trip trip;
    trip.count = math_.index(at, list.intList.size());
    trip.value = [this, at, type, &list](Value position) {
      Value value = math_.integer(at, type, list.intList[0]);
      for (size_t i = 1; i < list.intList.size(); ++i) {
        Value here = b_.create<arith::CmpIOp>(at, arith::CmpIPredicate::eq, position, math_.index(at, i));
        value = b_.create<arith::SelectOp>(at, here, math_.integer(at, type, list.intList[i]), value);
      }
      return value;
    };
    return emitTrips(expr, trip);
  }
  for (auto [position, value] : llvm::enumerate(list.intList))
    emitIteration(expr, math_.integer(at, type, value), math_.index(at, position), kind);
}

void Emitter::emitForArray(const Expr& expr) {
  Location at = loc(expr);
  const Expr& array = *expr.args[0];
  lang::Type type = stripRef(array.type);
  Flat values = array.type->kind == lang::TypeKind::Ref ? load(at, *eval(array).ref) : eval(array);
  uint32_t width = types_.leafCount(type->elem);
  if (width != 1) {
    unsupported(expr, "a loop over an array of structs or tuples in a kernel");
    return;
  }
  if (!loopExits(expr).empty() && type->count > 0) {
    Trip trip;
    trip.count = math_.index(at, static_cast<int64_t>(type->count));
    trip.value = [this, at, leaves = values.leaves](Value position) {
      Value value = leaves[0];
      for (size_t i = 1; i < leaves.size(); ++i) {
        Value here = b_.create<arith::CmpIOp>(at, arith::CmpIPredicate::eq, position, math_.index(at, i));
        value = b_.create<arith::SelectOp>(at, here, leaves[i], value);
      }
      return value;
    };
    return emitTrips(expr, trip);
  }
  for (uint64_t i = 0; i < type->count; ++i)
    emitIteration(expr, values.leaves[i], math_.index(at, i), scalarOf(type->elem));
}

}  // namespace vortex::irgen
