// Warp operations as shuffles and reductions of 32-lane vectors.
#include "base/check.h"
#include "target/cpu/emit/atomics.h"
#include "target/cpu/emit/region_emitter.h"
#include "target/interface/math/convert.h"

#include <numeric>

namespace vortex::target::cpu::emit {

using llvm::Value;

static llvm::Constant* neutralLanes(llvm::LLVMContext& context, ir::Combine kind, mlir::Type type, unsigned lanes) {
  // -0 is the neutral element of float addition: it leaves -0 sums alone.
  if (kind == ir::Combine::AddF)
    return constantValue(context, mlir::FloatAttr::get(type, -0.0), lanes);
  return constantValue(context, ir::neutralElement(kind, type), lanes);
}

/// Butterfly xor W/2, …, 2, 1: the same in every lane, so only the lower half is kept after each step.
Value* RegionEmitter::reduceLanes(ir::Combine kind, mlir::Type type, Value* vector, Value* mask) {
  if (mask)
    vector = ir_.CreateSelect(mask, vector, neutralLanes(e_.context(), kind, type, shape_.width));
  auto format = narrowFormat(type);
  auto half = [&](Value* whole, unsigned first, unsigned count) {
    llvm::SmallVector<int> lanes(count);
    std::iota(lanes.begin(), lanes.end(), int(first));
    return ir_.CreateShuffleVector(whole, lanes);
  };
  for (unsigned distance = shape_.width / 2; distance >= 1; distance /= 2) {
    Value *low = half(vector, 0, distance), *high = half(vector, distance, distance);
    if (format) {  // each step rounds to the element type
      Value* wide = emitCombine(ir_, kind, math::emitWiden(ir_, e_.features, *format, low),
                                math::emitWiden(ir_, e_.features, *format, high), false);
      vector = math::emitNarrow(ir_, e_.features, *format, wide);
    } else {
      vector = emitCombine(ir_, kind, low, high, false);
    }
  }
  return ir_.CreateExtractElement(vector, uint64_t(0));
}

void RegionEmitter::emitWarpReduce(ir::WarpReduceOp op) {
  VORTEX_CHECK(shape_.width == 32);
  set(op.getResult(), Lane::uniform(reduceLanes(op.getKind(), op.getValue().getType(), vector(op.getValue()), mask_)));
}

void RegionEmitter::emitWarpVote(ir::WarpVoteOp op) {
  VORTEX_CHECK(shape_.width == 32);
  Value* predicate = vector(op.getPredicate());
  Value* active = math_.andMask(mask_, predicate);
  switch (op.getKind()) {
  case ir::VoteKind::Any: return set(op.getResult(), Lane::uniform(anyLane(ir_, active)));
  case ir::VoteKind::All: {
    Value* missing = math_.andMask(mask_, ir_.CreateNot(predicate));
    return set(op.getResult(), Lane::uniform(ir_.CreateNot(anyLane(ir_, missing))));
  }
  case ir::VoteKind::Ballot: return set(op.getResult(), Lane::uniform(maskBits(ir_, active)));
  }
}

/// Lane numbers to read from; lanes outside the warp and inactive ones are replaced by the own lane.
void RegionEmitter::emitWarpShuffle(ir::WarpShuffleOp op) {
  VORTEX_CHECK(shape_.width == 32);
  Lane distance = lane(op.getLane()), source = lane(op.getValue());
  if (source.isUniform())
    return set(op.getResult(), source);
  Value* values = math_.vector(source);
  llvm::Type* i32 = ir_.getInt32Ty();
  Value* own = math_.iota(i32);
  Value* other = math_.vector(distance);
  switch (op.getKind()) {
  case ir::ShuffleKind::Xor: other = ir_.CreateXor(own, other); break;
  case ir::ShuffleKind::Up: other = ir_.CreateSub(own, other); break;
  case ir::ShuffleKind::Down: other = ir_.CreateAdd(own, other); break;
  case ir::ShuffleKind::Index: break;
  }
  if (form(op.getResult()).isUniform())  // one lane that exists, for all
    return set(op.getResult(), Lane::uniform(ir_.CreateExtractElement(values, distance.value)));
  Value* exists = ir_.CreateICmpULT(other, splat(ir_, ir_.getInt32(32), 32));
  other = ir_.CreateSelect(exists, other, own);
  Value* shuffled = nullptr;
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(other)) {
    llvm::SmallVector<int> lanes;
    for (unsigned i = 0; i < 32; ++i)
      lanes.push_back(int(llvm::cast<llvm::ConstantInt>(constant->getAggregateElement(i))->getZExtValue()));
    shuffled = ir_.CreateShuffleVector(values, lanes);
    exists = mask_ ? ir_.CreateShuffleVector(mask_, lanes) : nullptr;
  } else {
    // Lanes chosen at run time: through memory, which is the fastest way without a full permute instruction.
    auto permute = [&](Value* vector, llvm::Type* element) {
      llvm::AllocaInst* slot = entryAlloca(ir_, vector->getType());
      ir_.CreateStore(vector, slot);
      Value* result = llvm::PoisonValue::get(vector->getType());
      for (unsigned i = 0; i < 32; ++i) {
        Value* index = ir_.CreateExtractElement(other, uint64_t(i));
        result =
            ir_.CreateInsertElement(result, ir_.CreateLoad(element, ir_.CreateGEP(element, slot, index)), uint64_t(i));
      }
      return result;
    };
    bool isBool = values->getType()->getScalarType()->isIntegerTy(1);
    llvm::Type* bytes = llvm::FixedVectorType::get(ir_.getInt8Ty(), 32);
    auto permuteBools = [&](Value* bools) {
      return ir_.CreateICmpNE(permute(ir_.CreateZExt(bools, bytes), ir_.getInt8Ty()),
                              llvm::Constant::getNullValue(bytes));
    };
    shuffled = isBool ? permuteBools(values) : permute(values, values->getType()->getScalarType());
    exists = mask_ ? permuteBools(mask_) : nullptr;
  }
  if (exists)
    shuffled = ir_.CreateSelect(exists, shuffled, values);
  set(op.getResult(), Lane::varying(shuffled));
}

}  // namespace vortex::target::cpu::emit
