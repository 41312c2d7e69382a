#include "analysis/narrow_uses.h"

#include "analysis/float_bounds.h"
#include "ir/vx.h"

#include <algorithm>
#include <cmath>
#include <llvm/ADT/TypeSwitch.h>

namespace vortex::analysis {

namespace arith = mlir::arith;
namespace mm = mlir::math;

unsigned significantBits(mlir::Type element) { return llvm::cast<mlir::FloatType>(element).getFPMantissaWidth(); }

static std::optional<NarrowUses> rounding(mlir::Type element) {
  unsigned bits = significantBits(element);
  if (bits > 11)
    return std::nullopt;
  return NarrowUses{bits, element.isF16()};
}

/// Results up to 1 may be a little larger as computed.
static bool isAtMostOne(mlir::Value value) {
  constexpr double kOne = 1.01;
  return upperBound(value) <= kOne && lowerBound(value) >= -kOne;
}

static bool haveOneSign(mlir::Value a, mlir::Value b) {
  return (lowerBound(a) >= 0 && lowerBound(b) >= 0) || (upperBound(a) <= 0 && upperBound(b) <= 0);
}

static std::optional<NarrowUses> withoutFlush(std::optional<NarrowUses> uses) {
  if (uses)
    uses->mayFlush = false;
  return uses;
}

std::optional<NarrowUses> NarrowAnalysis::ofSum(mlir::Operation* add) {
  return haveOneSign(add->getOperand(0), add->getOperand(1)) ? usesOf(add->getResult(0)) : std::nullopt;
}

std::optional<NarrowUses> NarrowAnalysis::usesBy(mlir::OpOperand& use) {
  mlir::Operation* op = use.getOwner();
  auto result = [&] { return usesOf(op->getResult(0)); };
  return llvm::TypeSwitch<mlir::Operation*, std::optional<NarrowUses>>(op)
      .Case([&](arith::TruncFOp) { return rounding(mlir::getElementTypeOrSelf(op->getResult(0).getType())); })
      .Case([&](arith::MulFOp) {
        auto uses = result();
        return uses && uses->mayFlush && !isAtMostOne(op->getOperand(1 - use.getOperandNumber())) ? withoutFlush(uses)
                                                                                                  : uses;
      })
      .Case<arith::DivFOp, mm::SqrtOp, mm::RsqrtOp>([&](auto) { return withoutFlush(result()); })
      .Case<arith::NegFOp, mm::AbsFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp>(
          [&](auto) { return result(); })
      .Case<ir::BroadcastOp, ir::TransposeOp, ir::ReshapeOp, ir::SliceOp>([&](auto) { return result(); })
      .Case([&](mm::CopySignOp) { return use.getOperandNumber() == 0 ? result() : std::nullopt; })
      .Case([&](arith::SelectOp) { return use.getOperandNumber() > 0 ? result() : std::nullopt; })
      .Case([&](arith::AddFOp) { return ofSum(op); })
      .Case([&](ir::ReduceOp reduce) -> std::optional<NarrowUses> {
        ir::Combine kind = reduce.getKind();
        bool isSum = kind == ir::Combine::AddF && haveOneSign(reduce.getValue(), reduce.getValue());
        return isSum || kind == ir::Combine::MaxF || kind == ir::Combine::MinF ? result() : std::nullopt;
      })
      .Default([](mlir::Operation*) { return std::nullopt; });
}

std::optional<NarrowUses> NarrowAnalysis::usesOf(mlir::Value value) {
  if (!mlir::getElementTypeOrSelf(value.getType()).isF32() || value.use_empty())
    return std::nullopt;
  auto [at, isNew] = known_.try_emplace(value, std::nullopt);
  if (!isNew)
    return at->second;
  NarrowUses all;
  for (mlir::OpOperand& use : value.getUses()) {
    std::optional<NarrowUses> one = usesBy(use);
    if (!one)
      return std::nullopt;
    all.bits = std::max(all.bits, one->bits);
    all.mayFlush &= one->mayFlush;
  }
  return known_[value] = all;
}

}  // namespace vortex::analysis
