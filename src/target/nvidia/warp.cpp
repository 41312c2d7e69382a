// Barriers, shuffles, votes and matrix instructions.
#include "target/nvidia/emitter.h"

#include <llvm/ADT/TypeSwitch.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

namespace vortex::target::nvidia {

namespace in = llvm::Intrinsic;

llvm::CallInst* Emitter::convergent(llvm::CallInst* call) {
  call->addFnAttr(llvm::Attribute::Convergent);
  call->addFnAttr(llvm::Attribute::NoUnwind);
  return call;
}

/// A value's bits as i32 registers; narrower scalars are zero-extended.
Values Emitter::words(Value* value) {
  llvm::Type* type = value->getType();
  unsigned bits = type->getPrimitiveSizeInBits();
  if (bits < 32) {
    Value* raw = ir_.CreateBitCast(value, ir_.getIntNTy(bits));
    return {ir_.CreateZExt(raw, ir_.getInt32Ty())};
  }
  unsigned count = llvm::divideCeil(bits, 32);
  if (bits % 32 != 0)
    value = ir_.CreateZExt(ir_.CreateBitCast(value, ir_.getIntNTy(bits)), ir_.getIntNTy(count * 32));
  if (count == 1)
    return {ir_.CreateBitCast(value, ir_.getInt32Ty())};
  Value* all = ir_.CreateBitCast(value, llvm::FixedVectorType::get(ir_.getInt32Ty(), count));
  Values result;
  for (unsigned i = 0; i < count; ++i)
    result.push_back(ir_.CreateExtractElement(all, uint64_t(i)));
  return result;
}

Value* Emitter::fromWords(llvm::ArrayRef<Value*> words, llvm::Type* type) {
  unsigned bits = type->getPrimitiveSizeInBits();
  if (bits < 32)
    return ir_.CreateBitCast(ir_.CreateTrunc(words[0], ir_.getIntNTy(bits)), type);
  Value* all = words[0];
  if (words.size() > 1) {
    all = llvm::PoisonValue::get(llvm::FixedVectorType::get(ir_.getInt32Ty(), words.size()));
    for (auto [i, word] : llvm::enumerate(words))
      all = ir_.CreateInsertElement(all, word, uint64_t(i));
  }
  if (bits != words.size() * 32)
    all = ir_.CreateTrunc(ir_.CreateBitCast(all, ir_.getIntNTy(words.size() * 32)), ir_.getIntNTy(bits));
  return ir_.CreateBitCast(all, type);
}

Value* Emitter::shuffleWord(ir::ShuffleKind kind, Value* word, Value* lane, Value* mask) {
  using ir::ShuffleKind;
  in::ID id = kind == ShuffleKind::Xor    ? in::nvvm_shfl_sync_bfly_i32
              : kind == ShuffleKind::Up   ? in::nvvm_shfl_sync_up_i32
              : kind == ShuffleKind::Down ? in::nvvm_shfl_sync_down_i32
                                          : in::nvvm_shfl_sync_idx_i32;
  // The last operand bounds the lanes: `up` stops at lane 0, the others at 31. A lane beyond gives the own value.
  Value* clamp = ir_.getInt32(kind == ShuffleKind::Up ? 0 : 31);
  return ir_.CreateIntrinsic(id, {}, {mask, word, lane, clamp});
}

/// The instruction looks at five bits of the lane operand: beyond 31 is outside the warp.
Value* Emitter::shuffle(vxt::ShuffleOp op) {
  Value *input = value(op.getValue()), *lane = value(op.getLane()), *mask = warpMask(op.getMask());
  Values moved;
  for (Value* word : words(input))
    moved.push_back(shuffleWord(op.getKind(), word, lane, mask));
  Value* result = fromWords(moved, input->getType());
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(lane);
  if (known && known->getZExtValue() < 32)
    return result;
  return ir_.CreateSelect(ir_.CreateICmpULT(lane, ir_.getInt32(32)), result, input);
}

void Emitter::emitLoadMatrix(vxt::LoadMatrixOp op) {
  in::ID ids[2][3] = {{in::nvvm_ldmatrix_sync_aligned_m8n8_x1_b16, in::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16,
                       in::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16},
                      {in::nvvm_ldmatrix_sync_aligned_m8n8_x1_trans_b16,
                       in::nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16,
                       in::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16}};
  unsigned count = op.getCount();
  Value* pointer = address(op.getBase(), op.getIndex(), op.getElement());
  Value* loaded = ir_.CreateIntrinsic(ids[op.getTransposed()][llvm::Log2_32(count)], {pointer->getType()}, {pointer});
  Values all;
  for (unsigned i = 0; i < count; ++i)
    all.push_back(count == 1 ? loaded : ir_.CreateExtractValue(loaded, i));
  set(op, fromWords(all, type(op.getType())));
}

static std::string matrixElement(mlir::Type type) {
  if (type.isF16())
    return "f16";
  if (type.isBF16())
    return "bf16";
  if (type.isF32())
    return "tf32";
  if (type.isF64())
    return "f64";
  if (type.isFloat8E4M3FN())
    return "e4m3";
  if (type.isFloat8E5M2())
    return "e5m2";
  return type.isInteger(8) ? "s8" : "";
}

static std::string accumulatorElement(mlir::Type type) {
  return type.isF32() ? "f32" : type.isF16() ? "f16" : type.isF64() ? "f64" : type.isInteger(32) ? "s32" : "";
}

/// To the nearest number of 11 significant bits, ties away from zero, once the unit has ignored the other bits: half a unit in the last place kept
/// is added. Instead of `cvt.rna.tf32.f32`, which costs a third of a product's time (H200, 4096³: 135 instead of 206 TFLOP/s); integer additions
/// would turn the NaN of all ones into zero.
static Value* roundToTf32(llvm::IRBuilderBase& ir, Value* number) {
  constexpr uint32_t kSignAndExponent = 0xff800000;
  Value* power = ir.CreateAnd(ir.CreateBitCast(number, ir.getInt32Ty()), kSignAndExponent);
  Value* half = llvm::ConstantFP::get(number->getType(), 0x1p-11);
  return ir.CreateIntrinsic(in::fma, {number->getType()}, {ir.CreateBitCast(power, number->getType()), half, number});
}

/// Registers of a fragment: f32 and f64 accumulators have their own type, everything else is 32-bit words.
Values Emitter::matrixRegisters(mlir::Value fragment, bool isAccumulator) {
  Value* whole = value(fragment);
  llvm::Type* scalar = whole->getType()->getScalarType();
  if (scalar->isFloatTy() && !isAccumulator) {
    Values rounded = words(whole);
    for (Value*& word : rounded)
      word = ir_.CreateBitCast(roundToTf32(ir_, ir_.CreateBitCast(word, scalar)), word->getType());
    return rounded;
  }
  if (!scalar->isDoubleTy() && !scalar->isFloatTy())
    return words(whole);
  Values result;
  for (unsigned i = 0; i < lanesOf(fragment.getType()); ++i)
    result.push_back(whole->getType()->isVectorTy() ? ir_.CreateExtractElement(whole, uint64_t(i)) : whole);
  return result;
}

/// One instruction: its name up to the register lists, and d = a @ b + c.
Values Emitter::mma(llvm::StringRef name, llvm::ArrayRef<Values> fragments) {
  const Values& c = fragments[2];
  llvm::SmallVector<llvm::Type*> results(c.size(), c[0]->getType()), types;
  auto letter = [](llvm::Type* type) { return type->isFloatTy() ? "f" : type->isDoubleTy() ? "d" : "r"; };
  std::string text, constraints;
  unsigned next = 0;
  auto list = [&](unsigned count) {
    std::string inner;
    for (unsigned i = 0; i < count; ++i)
      inner += (i ? ", $" : "$") + std::to_string(next++);
    return "{" + inner + "}";
  };
  text = name.str() + " " + list(c.size());
  for (llvm::Type* type : results)
    constraints += std::string(constraints.empty() ? "=" : ",=") + letter(type);
  Values operands;
  for (const Values& fragment : fragments) {
    text += ", " + list(fragment.size());
    for (Value* part : fragment) {
      constraints += std::string(",") + letter(part->getType());
      types.push_back(part->getType());
      operands.push_back(part);
    }
  }
  llvm::Type* result = results.size() == 1 ? results[0] : llvm::StructType::get(ir_.getContext(), results);
  auto* assembly = llvm::InlineAsm::get(llvm::FunctionType::get(result, types, false), text + ";", constraints, false);
  Value* raw = convergent(ir_.CreateCall(assembly, operands));
  Values parts;
  for (unsigned i = 0; i < results.size(); ++i)
    parts.push_back(results.size() == 1 ? raw : ir_.CreateExtractValue(raw, i));
  return parts;
}

void Emitter::emitMma(vxt::MmaOp op) {
  std::string a = matrixElement(op.getA().getType().getElementType());
  std::string b = matrixElement(op.getB().getType().getElementType());
  std::string acc = accumulatorElement(op.getC().getType().getElementType());
  if (a.empty() || b.empty() || acc.empty())
    return fail(op);
  auto name = [&](llvm::ArrayRef<int64_t> shape) {
    return "mma.sync.aligned.m" + std::to_string(shape[0]) + "n" + std::to_string(shape[1]) + "k" +
           std::to_string(shape[2]) + ".row.col." + acc + "." + a + "." + b + "." + acc;
  };
  Values left = matrixRegisters(op.getA(), false), right = matrixRegisters(op.getB(), false),
         sums = matrixRegisters(op.getC(), true);
  Values parts;
  if (a == "f64" && op.getShape()[0] == 16 && op.getShape()[2] == 8 && state_.architecture < 90) {
    // Four of m8n8k4: rows 0–7 and 8–15 over the first half of the depth, then over the second.
    for (unsigned half : {0, 1}) {
      Values rows{sums[2 * half], sums[2 * half + 1]};
      for (unsigned depth : {0, 1})
        rows = mma(name({8, 8, 4}), {{left[2 * depth + half]}, {right[depth]}, rows});
      parts.append(rows);
    }
  } else {
    parts = mma(name(op.getShape()), {left, right, sums});
  }
  llvm::Type* whole = type(op.getType());
  if (parts[0]->getType()->isIntegerTy())
    return set(op, fromWords(parts, whole));
  Value* vector = llvm::PoisonValue::get(whole);
  for (auto [i, part] : llvm::enumerate(parts))
    vector = ir_.CreateInsertElement(vector, part, uint64_t(i));
  set(op, vector);
}

/// Pairs of 8-bit floats to f16, where the chip can; false elsewhere.
bool Emitter::emitWidenPairs(mlir::arith::ExtFOp op) {
  mlir::Type from = mlir::getElementTypeOrSelf(op.getIn().getType());
  unsigned lanes = lanesOf(op.getType());
  if (state_.architecture < 90 || !mlir::getElementTypeOrSelf(op.getType()).isF16() || lanes % 4 != 0 ||
      !(from.isFloat8E4M3FN() || from.isFloat8E5M2()))
    return false;
  std::string text = std::string("cvt.rn.f16x2.") + (from.isFloat8E4M3FN() ? "e4m3x2" : "e5m2x2") + " $0, $1;";
  auto* signature = llvm::FunctionType::get(ir_.getInt32Ty(), {ir_.getInt16Ty()}, false);
  auto* assembly = llvm::InlineAsm::get(signature, text, "=r,h", false);
  Values halves;
  for (Value* word : words(value(op.getIn())))
    for (unsigned shift : {0, 16}) {
      Value* pair = ir_.CreateTrunc(ir_.CreateLShr(word, shift), ir_.getInt16Ty());
      llvm::CallInst* call = ir_.CreateCall(assembly, {pair});
      call->setDoesNotAccessMemory();
      halves.push_back(call);
    }
  set(op, fromWords(halves, type(op.getType())));
  return true;
}

bool Emitter::emitWarp(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, bool>(op)
      .Case([&](vxt::BarrierOp) {
        convergent(ir_.CreateIntrinsic(in::nvvm_barrier0, {}, {}));
        return true;
      })
      .Case([&](vxt::GridBarrierOp barrier) {
        emitGridBarrier(barrier);
        return true;
      })
      .Case([&](vxt::WarpBarrierOp barrier) {
        convergent(ir_.CreateIntrinsic(in::nvvm_bar_warp_sync, {}, {warpMask(barrier.getMask())}));
        return true;
      })
      .Case([&](vxt::ShuffleOp op) {
        set(op, shuffle(op));
        return true;
      })
      .Case([&](vxt::VoteOp vote) {
        in::ID id = vote.getKind() == ir::VoteKind::Any   ? in::nvvm_vote_any_sync
                    : vote.getKind() == ir::VoteKind::All ? in::nvvm_vote_all_sync
                                                          : in::nvvm_vote_ballot_sync;
        set(vote, convergent(ir_.CreateIntrinsic(id, {}, {warpMask(vote.getMask()), value(vote.getPredicate())})));
        return true;
      })
      .Case([&](vxt::LoadMatrixOp load) {
        emitLoadMatrix(load);
        return true;
      })
      .Case([&](vxt::MmaOp mma) {
        emitMma(mma);
        return true;
      })
      .Default([](mlir::Operation*) { return false; });
}

}  // namespace vortex::target::nvidia
