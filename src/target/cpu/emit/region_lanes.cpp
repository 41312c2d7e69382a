// Divergent control of warps whose width is fixed: where most lanes idle, those that do not run one after another, with ordinary branches.
#include "base/check.h"
#include "target/cpu/emit/region_emitter.h"

#include <mlir/Dialect/Math/IR/Math.h>
#include <mlir/Interfaces/LoopLikeInterface.h>
#include <mlir/Transforms/RegionUtils.h>

namespace vortex::target::cpu::emit {

namespace scf = mlir::scf;
using llvm::Value;

/// Deeper branches are taken by no fewer lanes.
static constexpr double kLeastShare = 1.0 / 16;

namespace {

/// Instructions, roughly, of a piece of code for all lanes together and for one lane after another.
struct Costs {
  double warp = 0, lanes = 0;
};

class CostModel {
public:
  CostModel(const RegionAnalysis& analysis, const VectorFeatures& features, unsigned width)
      : analysis_(analysis), features_(features), width_(width) {}

  /// `share`: of the lanes, which run this. Half of them take each side of a branch, and are left in a loop.
  void add(mlir::Operation* op, double share) {
    if (isElementwise(op))
      return addVector(op->getResult(0).getType(), weight(op), share);
    if (mlir::isa<ir::LoadOp, ir::StoreOp>(op))
      return addAccess(op, share);
    if (mlir::isa<ir::AtomicRmwOp, ir::AtomicCasOp, ir::AtomicLoadOp, ir::AtomicStoreOp>(op))
      return addInstructions(width_ * share, share);
    if (analysis_.diverges(op))
      share = std::max(share / 2, kLeastShare);
    const double rounds = std::exchange(rounds_, mlir::isa<mlir::LoopLikeOpInterface>(op) ? rounds_ * 4 : rounds_);
    for (mlir::Region& region : op->getRegions())
      for (mlir::Operation& inner : region.getOps())
        add(&inner, share);
    rounds_ = rounds;
  }

  Costs costs;

private:
  static double weight(mlir::Operation* op) { return mlir::isa<mlir::math::MathDialect>(op->getDialect()) ? 20 : 1; }

  /// `lanes`: of one instruction for every lane that takes part.
  void addInstructions(double warp, double share, double lanes = 1) {
    costs.warp += rounds_ * warp;
    costs.lanes += rounds_ * lanes * width_ * share;
  }

  void addVector(mlir::Type type, double weight, double share) {
    const double registers = double(width_) * valueBytes(type) / features_.vectorBytes;
    addInstructions(weight * std::max(1.0, registers), share, weight);
  }

  void addAccess(mlir::Operation* op, double share) {
    auto load = mlir::dyn_cast<ir::LoadOp>(op);
    mlir::ValueRange indices = load ? mlir::ValueRange(load.getIndices()) : mlir::cast<ir::StoreOp>(op).getIndices();
    const bool isIrregular =
        llvm::any_of(indices, [&](mlir::Value index) { return analysis_.form(index).kind == Form::Kind::Varying; });
    // The address of each lane, whether it is active, the access, and a place in a vector for what it brings.
    if (isIrregular)
      return addInstructions(features_.avx512 ? width_ : 4.0 * width_, share);
    addVector(load ? load.getType() : mlir::cast<ir::StoreOp>(op).getValue().getType(), 1, share);
  }

  static double valueBytes(mlir::Type type) { return type.isIndex() ? 8 : (type.getIntOrFloatBitWidth() + 7) / 8; }

  const RegionAnalysis& analysis_;
  const VectorFeatures& features_;
  unsigned width_;
  double rounds_ = 1;  ///< of the loops around
};

}  // namespace

bool RegionEmitter::runsByLane(mlir::Operation* op) const {
  if (!shape_.isFixed || shape_.width == 1 || hasWarpOps(*op))
    return false;
  CostModel model(analysis_, e_.features, shape_.width);
  model.add(op, 1);
  const double overhead = 4.0 * shape_.width;
  return model.costs.lanes + overhead < 0.75 * model.costs.warp;
}

//===-- vectors in memory -------------------------------------------------------------------------------------===//

static llvm::Type* storedType(Value* vector) {
  llvm::Type* element = vector->getType()->getScalarType();
  return element->isIntegerTy(1) ? llvm::Type::getInt8Ty(vector->getContext()) : element;
}

/// Booleans are bytes.
static llvm::AllocaInst* spill(llvm::IRBuilder<>& ir, Value* vector) {
  auto* type = llvm::cast<llvm::FixedVectorType>(vector->getType());
  Value* stored = ir.CreateZExtOrBitCast(vector, llvm::FixedVectorType::get(storedType(vector), type));
  llvm::AllocaInst* slot = entryAlloca(ir, stored->getType());
  ir.CreateStore(stored, slot);
  return slot;
}

static Value* reload(llvm::IRBuilder<>& ir, llvm::AllocaInst* slot, Value* number, llvm::Type* type) {
  llvm::Type* stored = slot->getAllocatedType()->getScalarType();
  Value* loaded = ir.CreateLoad(stored, ir.CreateGEP(stored, slot, number));
  return ir.CreateTruncOrBitCast(loaded, type);
}

void RegionEmitter::spillLanes(mlir::Operation* op) {
  const auto keep = [&](const Lane& lane) {
    if (lane.kind == Lane::Kind::Varying && !section_.slots.contains(lane.value))
      section_.slots[lane.value] = spill(ir_, lane.value);
  };
  // Only these: vectors of what `op` computes itself, from where it was emitted before, do not reach here.
  llvm::SetVector<mlir::Value> outside(op->operand_begin(), op->operand_end());
  mlir::getUsedValuesDefinedAbove(op->getRegions(), outside);
  for (mlir::Value value : outside) {
    if (auto found = values_.find(value); found != values_.end())
      keep(found->second);
    if (auto found = views_.find(value); found != views_.end()) {
      for (const Lane& extent : found->second.extents)
        keep(extent);
      keep(found->second.offset);
      keep(found->second.instance);
    }
  }
}

/// A value of the warp, from outside of the section that runs for one lane.
bool RegionEmitter::isFromOutside(mlir::Value value) const {
  if (!section_.op)
    return false;
  mlir::Operation* owner = value.getDefiningOp();
  return !section_.op->isAncestor(owner ? owner : value.getParentRegion()->getParentOp());
}

Lane RegionEmitter::ofLane(const Lane& lane) {
  if (lane.isUniform())
    return lane;
  if (lane.isAffine()) {
    Value* number = ir_.CreateTrunc(section_.number, lane.value->getType());
    return Lane::uniform(ir_.CreateAdd(lane.value, ir_.CreateMul(lane.stride, number)));
  }
  llvm::AllocaInst* slot = section_.slots.lookup(lane.value);
  VORTEX_CHECK(slot);
  return Lane::uniform(reload(ir_, slot, section_.number, lane.value->getType()->getScalarType()));
}

/// Emits what runs for lane `number` only.
void RegionEmitter::withLane(mlir::Operation* op, Value* number, llvm::function_ref<void()> body) {
  section_.op = op;
  section_.number = number;
  const unsigned width = std::exchange(shape_.width, 1);
  math_.setWidth(1);
  ++loops_;
  withMask(nullptr, true, body);
  --loops_;
  math_.setWidth(width);
  shape_.width = width;
  section_.op = nullptr;
}

void RegionEmitter::emitByLane(mlir::Operation* op) {
  // Lanes that a branch has nothing to do for take its other values without running.
  auto branch = mlir::dyn_cast<scf::IfOp>(op);
  const bool skips = branch && (!branch.elseBlock() || branch.elseBlock()->without_terminator().empty());
  Value* mask = mask_ ? mask_ : fullMask();
  if (skips)
    mask = math_.andMask(mask, vector(branch.getCondition()));
  llvm::SmallVector<llvm::AllocaInst*> results;
  for (mlir::OpResult result : op->getResults())
    results.push_back(spill(ir_, skips ? vector(branch.elseYield().getOperand(result.getResultNumber()))
                                       : e_.zero(result.getType(), shape_.width)));
  section_.slots.clear();
  spillLanes(op);
  emitForActiveLanes(ir_, mask, [&](Value* number) {
    withLane(op, number, [&] {
      if (skips)
        emitBlock(*branch.thenBlock());
      else
        emitOp(op);
      for (auto [i, slot] : llvm::enumerate(results)) {
        Value* value = lane(skips ? branch.thenYield().getOperand(i) : op->getResult(i)).value;
        llvm::Type* stored = storedType(value);
        ir_.CreateStore(ir_.CreateZExtOrBitCast(value, stored), ir_.CreateGEP(stored, slot, number));
      }
    });
  });
  for (auto [result, slot] : llvm::zip(op->getResults(), results)) {
    Value* all = ir_.CreateLoad(slot->getAllocatedType(), slot);
    set(result, Lane::varying(ir_.CreateTruncOrBitCast(all, valueType(e_.context(), result.getType(), shape_.width))));
  }
}

}  // namespace vortex::target::cpu::emit
