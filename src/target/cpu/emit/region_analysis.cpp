#include "target/cpu/emit/region_analysis.h"

#include "target/cpu/emit/elementwise.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/IR/Matchers.h>

namespace vortex::target::cpu::emit {

namespace arith = mlir::arith;
namespace scf = mlir::scf;

static Form affine(int64_t stride) { return stride == 0 ? kUniform : Form{Form::Kind::Affine, stride}; }

static Form join(Form a, Form b) {
  if (a.kind == Form::Kind::Unknown || a == b)
    return b;
  return b.kind == Form::Kind::Unknown ? a : kVarying;
}

RegionAnalysis::RegionAnalysis(ir::ThreadsOp region, const RegionShape& shape)
    : body_(region.getBody()), fullWarps_(shape.fullWarps), width_(shape.width) {
  for (mlir::BlockArgument argument : body_.getArguments()) {
    unsigned i = argument.getArgNumber();
    forms_[argument] = width_ == 1 ? kUniform : i < 3 ? shape.id[i] : i == 3 ? affine(1) : kVarying;
  }
  if (width_ == 1)
    return;
  do {
    changed_ = false;
    visit(body_.front());
  } while (changed_);
}

Form RegionAnalysis::form(mlir::Value value) const {
  if (width_ == 1)
    return kUniform;
  auto found = forms_.find(value);
  if (found != forms_.end())
    return found->second;
  return body_.isAncestor(value.getParentRegion()) ? Form{} : kUniform;
}

bool RegionAnalysis::allUniform(mlir::ValueRange values) const {
  return llvm::all_of(values, [&](mlir::Value value) {
    Form::Kind kind = form(value).kind;
    return kind == Form::Kind::Uniform || kind == Form::Kind::Unknown;  // optimistic until the fixpoint
  });
}

void RegionAnalysis::raise(mlir::Value value, Form to) {
  Form& current = forms_[value];
  Form joined = join(current, to);
  if (joined == current)
    return;
  current = joined;
  changed_ = true;
}

void RegionAnalysis::noteDivergent(mlir::Operation* op) {
  if (divergent_.insert(op).second)
    changed_ = true;
}

void RegionAnalysis::visit(mlir::Block& block) {
  for (mlir::Operation& op : block)
    visit(&op);
}

void RegionAnalysis::visit(mlir::Operation* op) {
  if (auto branch = mlir::dyn_cast<scf::IfOp>(op))
    return visitIf(branch);
  if (auto loop = mlir::dyn_cast<scf::ForOp>(op))
    return visitFor(loop);
  if (auto loop = mlir::dyn_cast<scf::WhileOp>(op))
    return visitWhile(loop);
  if (op->getNumResults() == 0)
    return;
  Form result = transfer(op);
  for (mlir::Value value : op->getResults())
    raise(value, result);
}

void RegionAnalysis::visitIf(scf::IfOp op) {
  bool divergent = !allUniform(op.getCondition());
  if (divergent)
    noteDivergent(op);
  for (mlir::Region& region : op->getRegions())
    if (!region.empty())
      visit(region.front());
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    Form merged = join(form(op.thenYield().getOperand(i)), form(op.elseYield().getOperand(i)));
    raise(result, divergent ? kVarying : merged);
  }
}

void RegionAnalysis::visitFor(scf::ForOp op) {
  Form lower = form(op.getLowerBound());
  Form upper = form(op.getUpperBound());
  bool uniformStep = allUniform(op.getStep());
  // Bounds that move together have the same trip count in every lane.
  bool sameTrips = uniformStep && (allUniform({op.getLowerBound(), op.getUpperBound()}) ||
                                   (lower.kind == Form::Kind::Affine && lower == upper));
  if (!sameTrips)
    noteDivergent(op);
  raise(op.getInductionVar(), uniformStep ? lower : kVarying);
  for (auto [argument, initial] : llvm::zip(op.getRegionIterArgs(), op.getInitArgs()))
    raise(argument, form(initial));
  visit(*op.getBody());
  for (auto [argument, yielded] : llvm::zip(op.getRegionIterArgs(), op.getYieldedValues()))
    raise(argument, form(yielded));
  for (auto [result, argument] : llvm::zip(op.getResults(), op.getRegionIterArgs()))
    raise(result, diverges(op) ? kVarying : form(argument));
}

void RegionAnalysis::visitWhile(scf::WhileOp op) {
  for (auto [argument, initial] : llvm::zip(op.getBeforeArguments(), op.getInits()))
    raise(argument, form(initial));
  visit(*op.getBeforeBody());
  scf::ConditionOp condition = op.getConditionOp();
  if (!allUniform(condition.getCondition()))
    noteDivergent(op);
  for (auto [argument, forwarded] : llvm::zip(op.getAfterArguments(), condition.getArgs()))
    raise(argument, form(forwarded));
  visit(*op.getAfterBody());
  for (auto [argument, yielded] : llvm::zip(op.getBeforeArguments(), op.getYieldOp().getOperands()))
    raise(argument, form(yielded));
  for (auto [result, forwarded] : llvm::zip(op.getResults(), condition.getArgs()))
    raise(result, diverges(op) ? kVarying : form(forwarded));
}

Form RegionAnalysis::access(mlir::Value view, mlir::ValueRange indices, mlir::Value mask) const {
  bool perThread = mlir::cast<ir::ViewType>(view.getType()).getSpace() == ir::Space::Local;
  return !perThread && form(view).isUniform() && allUniform(indices) && (!mask || allUniform(mask)) ? kUniform
                                                                                                    : kVarying;
}

static std::optional<int64_t> constantOf(mlir::Value value) {
  llvm::APInt constant;
  if (mlir::matchPattern(value, mlir::m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

Form RegionAnalysis::transfer(mlir::Operation* op) const {
  auto stride = [&](unsigned i) -> std::optional<int64_t> {
    Form operand = form(op->getOperand(i));
    if (operand.kind == Form::Kind::Varying)
      return std::nullopt;
    return operand.stride;
  };
  auto combine = [&](int64_t sign) {
    auto a = stride(0), b = stride(1);
    return a && b ? affine(*a + sign * *b) : kVarying;
  };
  auto elementwise = [&]() -> Form { return allUniform(op->getOperands()) ? kUniform : kVarying; };
  auto shuffle = [&](ir::WarpShuffleOp warp) {
    auto lane = constantOf(warp.getLane());
    bool exists = lane && *lane >= 0 && *lane < 32 && (*lane == 0 || fullWarps_);
    return warp.getKind() == ir::ShuffleKind::Index && exists ? kUniform : kVarying;
  };
  return llvm::TypeSwitch<mlir::Operation*, Form>(op)
      .Case([&](arith::AddIOp) { return combine(1); })
      .Case([&](arith::SubIOp) { return combine(-1); })
      .Case([&](arith::MulIOp) {
        auto a = stride(0), b = stride(1);
        auto factor = constantOf(op->getOperand(1));
        if (allUniform(op->getOperands()))
          return kUniform;
        return a && b && *b == 0 && factor ? affine(*a * *factor) : kVarying;
      })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp>([&](auto cast) {
        auto isWide = [](mlir::Type type) { return type.isIndex() || type.isInteger(64); };
        return isWide(cast.getIn().getType()) && isWide(cast.getType()) ? form(cast.getIn()) : elementwise();
      })
      .Case([&](ir::LoadOp load) { return access(load.getView(), load.getIndices(), load.getMask()); })
      .Case([&](ir::AtomicLoadOp load) { return access(load.getView(), load.getIndices(), load.getMask()); })
      .Case<ir::AtomicRmwOp, ir::AtomicCasOp>([&](auto) { return kVarying; })
      .Case([&](ir::SubviewOp) { return elementwise(); })
      .Case([&](ir::AllocOp) { return kVarying; })
      .Case<ir::WarpReduceOp, ir::WarpVoteOp>([&](auto) { return kUniform; })
      .Case([&](ir::WarpShuffleOp warp) { return shuffle(warp); })
      .Default([&](mlir::Operation*) { return elementwise(); });
}

}  // namespace vortex::target::cpu::emit
