#include "analysis/same_passes.h"

#include "ir/root_view.h"

#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/Math/IR/Math.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/Dialect/Utils/StaticValueUtils.h>

namespace vortex::analysis {

namespace arith = mlir::arith;
namespace math = mlir::math;
namespace scf = mlir::scf;
using mlir::Value;

namespace {

/// Sums are compared term by term.
constexpr size_t kMostTerms = 16;

bool isCostly(mlir::Operation* op) {
  return ir::isFloatFunction(op) && mlir::isa<mlir::FloatType>(op->getResult(0).getType()) &&
         !mlir::isa<math::AbsFOp, math::CeilOp, math::FloorOp, math::RoundOp, math::RoundEvenOp, math::TruncOp,
                    math::SqrtOp, math::RsqrtOp, math::FmaOp, math::CopySignOp>(op);
}

}  // namespace

bool isCostlyIn(Value value, mlir::Block& block) {
  mlir::Operation* op = value.getDefiningOp();
  return op && op->getBlock() == &block && ir::isElementwise(op) &&
         (isCostly(op) || llvm::any_of(op->getOperands(), [&](Value part) { return isCostlyIn(part, block); }));
}

SamePasses::SamePasses(ir::KernelOp kernel) : kernel_(kernel) {
  kernel.walk([&](mlir::Operation* op) {
    if (!mlir::isa<ir::LoadOp, ir::DimOp, ir::SubviewOp>(op))
      for (Value operand : op->getOperands())
        if (mlir::isa<ir::ViewType>(operand.getType()))
          written_.insert(ir::rootView(operand));
  });
}

bool SamePasses::isConstant(ir::LoadOp load) {
  auto parameter = mlir::dyn_cast<mlir::BlockArgument>(ir::rootView(load.getView()));
  return parameter && parameter.getOwner() == &kernel_.getBody().front() && !written_.contains(parameter);
}

bool SamePasses::compare(scf::ForOp earlier, scf::ForOp later) {
  same_.clear();
  auto one = earlier->getParentOfType<ir::ThreadsOp>(), other = later->getParentOfType<ir::ThreadsOp>();
  const auto isSameExtent = [](Value a, Value b) {
    const auto known = mlir::getConstantIntValue(a);
    return a == b || (known && known == mlir::getConstantIntValue(b));
  };
  if (!one || !other || !isSameExtent(one.getNx(), other.getNx()) || !isSameExtent(one.getNy(), other.getNy()) ||
      !isSameExtent(one.getNz(), other.getNz()))
    return false;
  const auto arguments = [](ir::ThreadsOp region) { return region.getBody().getArguments(); };
  for (auto [a, b] : llvm::zip(arguments(one).take_front(4), arguments(other).take_front(4)))
    same_[{a, b}] = true;
  for (auto [a, input] : llvm::zip(arguments(one).drop_front(4), one.getInputs()))
    for (auto [b, again] : llvm::zip(arguments(other).drop_front(4), other.getInputs()))
      if (input == again)
        same_[{a, b}] = true;
  if (!isSame(earlier.getLowerBound(), later.getLowerBound()) ||
      !isSame(earlier.getUpperBound(), later.getUpperBound()) || !isSame(earlier.getStep(), later.getStep()))
    return false;
  same_[{earlier.getInductionVar(), later.getInductionVar()}] = true;
  return true;
}

bool SamePasses::isSame(Value a, Value b) {
  if (a == b)
    return true;  // from before both
  if (auto known = same_.find({a, b}); known != same_.end())
    return known->second;
  const bool isAlike = isSameOp(a, b);
  same_[{a, b}] = isAlike;
  return isAlike;
}

bool SamePasses::isSameOp(Value a, Value b) {
  auto first = mlir::dyn_cast<mlir::OpResult>(a), second = mlir::dyn_cast<mlir::OpResult>(b);
  if (!first || !second)
    return false;
  auto choice = mlir::dyn_cast<scf::IfOp>(first.getOwner()), other = mlir::dyn_cast<scf::IfOp>(second.getOwner());
  if (choice && other)
    return isSame(choice.getCondition(), other.getCondition()) &&
           isSame(choice.thenYield().getOperand(first.getResultNumber()),
                  other.thenYield().getOperand(second.getResultNumber())) &&
           isSame(choice.elseYield().getOperand(first.getResultNumber()),
                  other.elseYield().getOperand(second.getResultNumber()));
  return isSame(first.getOwner(), second.getOwner());
}

/// What is added up, as arithmetic wraps in any order.
static llvm::SmallVector<Value> termsOf(arith::AddIOp sum) {
  llvm::SmallVector<Value> open{sum.getLhs(), sum.getRhs()}, terms;
  while (!open.empty()) {
    const Value value = open.pop_back_val();
    if (auto inner = value.getDefiningOp<arith::AddIOp>())
      open.append({inner.getLhs(), inner.getRhs()});
    else
      terms.push_back(value);
  }
  return terms;
}

bool SamePasses::isSameSum(arith::AddIOp a, arith::AddIOp b) {
  llvm::SmallVector<Value> left = termsOf(a), right = termsOf(b);
  if (left.size() != right.size() || left.size() > kMostTerms)
    return false;
  for (Value term : left) {
    auto* found = llvm::find_if(right, [&](Value other) { return isSame(term, other); });
    if (found == right.end())
      return false;
    right.erase(found);
  }
  return true;
}

/// Operations of one result whose value follows from their operands.
bool SamePasses::isSame(mlir::Operation* a, mlir::Operation* b) {
  if (a->getName() != b->getName() || a->getAttrDictionary() != b->getAttrDictionary() || a->getNumResults() != 1 ||
      a->getResultTypes() != b->getResultTypes() || a->getNumOperands() != b->getNumOperands())
    return false;
  if (auto sum = mlir::dyn_cast<arith::AddIOp>(a))
    return isSameSum(sum, mlir::cast<arith::AddIOp>(b));
  if (auto load = mlir::dyn_cast<ir::LoadOp>(a)) {
    if (!isConstant(load))
      return false;
  } else if (!ir::isElementwise(a) && !mlir::isa<ir::SubviewOp, ir::DimOp>(a) &&
             !a->hasTrait<mlir::OpTrait::ConstantLike>()) {
    return false;
  }
  return llvm::all_of(llvm::zip(a->getOperands(), b->getOperands()),
                      [&](auto pair) { return isSame(std::get<0>(pair), std::get<1>(pair)); });
}

}  // namespace vortex::analysis
