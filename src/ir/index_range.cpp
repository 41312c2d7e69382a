#include "ir/index_range.h"

#include "ir/vx.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <optional>

namespace vortex::ir {

namespace arith = mlir::arith;
using mlir::Value;

namespace {

constexpr unsigned kMostDepth = 12;
constexpr int64_t kMostPositions = int64_t(1) << 31;  ///< threads of a block, blocks along an axis
constexpr int64_t kMostExtent = int64_t(1) << 62;

/// Of what an integer of this type holds.
IndexRange rangeOfType(mlir::Type type) {
  auto integer = llvm::dyn_cast<mlir::IntegerType>(type);
  if (!integer || integer.getWidth() >= 64)
    return {};
  const int64_t half = int64_t(1) << (integer.getWidth() - 1);
  return {-half, half - 1};
}

/// The exact results lie in here: nothing is known where they do not fit the type.
IndexRange fitted(mlir::Type type, __int128 low, __int128 high) {
  const IndexRange all = rangeOfType(type);
  return low < all.low || high > all.high ? all : IndexRange{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

IndexRange rangeOf(Value value, unsigned depth);

IndexRange rangeOfArgument(mlir::BlockArgument argument, unsigned depth) {
  mlir::Operation* parent = argument.getOwner()->getParentOp();
  if (llvm::isa<ThreadsOp>(parent) && argument.getArgNumber() < 4)
    return {0, kMostPositions};
  auto loop = llvm::dyn_cast<mlir::scf::ForOp>(parent);
  if (!loop || argument != loop.getInductionVar())
    return rangeOfType(argument.getType());
  const IndexRange begin = rangeOf(loop.getLowerBound(), depth), end = rangeOf(loop.getUpperBound(), depth);
  const IndexRange step = rangeOf(loop.getStep(), depth);
  // What follows the last number below the end must not wrap.
  const __int128 last = static_cast<__int128>(end.high) - 1 + step.high;
  if (step.low < 1 || (step.high > 1 && last > rangeOfType(argument.getType()).high))
    return rangeOfType(argument.getType());
  return {begin.low, std::max(begin.low, end.high - 1)};
}

IndexRange rangeOfUnsigned(Value from, mlir::Type to, unsigned depth) {
  const IndexRange range = rangeOf(from, depth);
  auto narrow = llvm::dyn_cast<mlir::IntegerType>(from.getType());
  if (range.low >= 0)
    return fitted(to, range.low, range.high);
  return narrow && narrow.getWidth() < 63 ? fitted(to, 0, (__int128(1) << narrow.getWidth()) - 1) : rangeOfType(to);
}

IndexRange rangeOfQuotient(mlir::Type type, IntKind kind, IndexRange a, IndexRange b) {
  if (a.low < 0 || b.low < 0)
    return rangeOfType(type);
  switch (kind) {
  case IntKind::DivU:
  case IntKind::DivS:
  case IntKind::CeilDivU: return {0, a.high};
  case IntKind::RemU:
  case IntKind::RemS: return {0, std::min(a.high, std::max<int64_t>(b.high - 1, 0))};
  default: return rangeOfType(type);
  }
}

IndexRange rangeOf(Value value, unsigned depth) {
  const mlir::Type type = value.getType();
  if (auto constant = mlir::getConstantIntValue(value))
    return {*constant, *constant};
  if (depth == 0)
    return rangeOfType(type);
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value))
    return rangeOfArgument(argument, depth - 1);
  mlir::Operation* op = value.getDefiningOp();
  auto operand = [&](unsigned i) { return rangeOf(op->getOperand(i), depth - 1); };
  const IndexRange all = rangeOfType(type);
  return llvm::TypeSwitch<mlir::Operation*, IndexRange>(op)
      .Case<BlockIdOp, GridDimOp, BlockDimOp>([&](auto) { return IndexRange{0, kMostPositions}; })
      .Case([&](DimOp) { return IndexRange{0, kMostExtent}; })
      .Case([&](arith::AddIOp) {
        const IndexRange a = operand(0), b = operand(1);
        return fitted(type, __int128(a.low) + b.low, __int128(a.high) + b.high);
      })
      .Case([&](arith::SubIOp) {
        const IndexRange a = operand(0), b = operand(1);
        return fitted(type, __int128(a.low) - b.high, __int128(a.high) - b.low);
      })
      .Case([&](arith::MulIOp) {
        const IndexRange a = operand(0), b = operand(1);
        const __int128 corners[] = {__int128(a.low) * b.low, __int128(a.low) * b.high, __int128(a.high) * b.low,
                                    __int128(a.high) * b.high};
        return fitted(type, *std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
      })
      .Case([&](arith::MinSIOp) {
        const IndexRange a = operand(0), b = operand(1);
        return IndexRange{std::min(a.low, b.low), std::min(a.high, b.high)};
      })
      .Case([&](arith::MaxSIOp) {
        const IndexRange a = operand(0), b = operand(1);
        return IndexRange{std::max(a.low, b.low), std::max(a.high, b.high)};
      })
      .Case([&](arith::MinUIOp) {  // of two that are not negative the smaller one, else the one that is not
        const IndexRange a = operand(0), b = operand(1);
        if (a.low < 0 && b.low < 0)
          return all;
        return a.low < 0   ? IndexRange{0, b.high}
               : b.low < 0 ? IndexRange{0, a.high}
                           : IndexRange{std::min(a.low, b.low), std::min(a.high, b.high)};
      })
      .Case([&](arith::MaxUIOp) {
        const IndexRange a = operand(0), b = operand(1);
        return a.low < 0 || b.low < 0 ? all : IndexRange{std::max(a.low, b.low), std::max(a.high, b.high)};
      })
      .Case([&](arith::SelectOp) {
        const IndexRange a = operand(1), b = operand(2);
        return IndexRange{std::min(a.low, b.low), std::max(a.high, b.high)};
      })
      .Case([&](IntOp total) { return rangeOfQuotient(type, total.getKind(), operand(0), operand(1)); })
      .Case<arith::DivUIOp>([&](auto) { return rangeOfQuotient(type, IntKind::DivU, operand(0), operand(1)); })
      .Case<arith::RemUIOp>([&](auto) { return rangeOfQuotient(type, IntKind::RemU, operand(0), operand(1)); })
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>([&](auto) {
        const IndexRange a = operand(0);
        return fitted(type, a.low, a.high);
      })
      .Case<arith::IndexCastUIOp, arith::ExtUIOp>(
          [&](auto) { return rangeOfUnsigned(op->getOperand(0), type, depth - 1); })
      .Default(all);
}

}  // namespace

IndexRange indexRange(Value value) { return rangeOf(value, kMostDepth); }

}  // namespace vortex::ir
