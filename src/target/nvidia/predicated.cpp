// Guarded accesses as predicated instructions instead of branches: neighbouring accesses stay in one basic block, where ptxas issues the loads
// together. Measured without it: a transposition through shared memory waited for each of its four loads in turn.
//
// They are inline assembly with side effects. LLVM would otherwise be free to move a load above a branch that its predicate says nothing about.
#include "target/nvidia/emitter.h"

#include <llvm/IR/InlineAsm.h>

namespace vortex::target::nvidia {

namespace arith = mlir::arith;

/// One instruction covers the access: 1 to 8 bytes, or 16 of a vector, sufficiently aligned.
bool Emitter::hasPredicatedForm(mlir::Type type, mlir::Value base, int64_t alignment) {
  ir::Space space = mlir::cast<vxt::PtrType>(base.getType()).getSpace();
  if (space == ir::Space::Local)
    return false;
  int64_t bytes = vxt::valueBytes(type);
  if (!mlir::isa<mlir::VectorType>(type))
    return bytes <= 8;
  return (bytes == 4 || bytes == 8 || bytes == 16) && alignment >= bytes;
}

static std::string spaceOf(mlir::Value base) {
  return mlir::cast<vxt::PtrType>(base.getType()).getSpace() == ir::Space::Shared ? ".shared" : ".global";
}

namespace {
/// How an access is cut into registers.
struct Registers {
  unsigned count;
  llvm::Type* type;    ///< of each
  const char* letter;  ///< its constraint
  std::string suffix;  ///< ".v2.b32"
  const char* zero;    ///< move of its width
};
}  // namespace

static Registers registersFor(llvm::IRBuilder<>& ir, mlir::Type type) {
  int64_t bytes = vxt::valueBytes(type);
  if (bytes == 1)
    return {1, ir.getInt16Ty(), "h", ".u8", "mov.b16"};
  if (bytes == 2)
    return {1, ir.getInt16Ty(), "h", ".b16", "mov.b16"};
  if (bytes == 8 && !mlir::isa<mlir::VectorType>(type))
    return {1, ir.getInt64Ty(), "l", ".b64", "mov.b64"};
  unsigned words = bytes / 4;
  return {words, ir.getInt32Ty(), "r", words == 1 ? ".b32" : ".v" + std::to_string(words) + ".b32", "mov.b32"};
}

static std::string operandList(unsigned first, unsigned count) {
  std::string list;
  for (unsigned i = 0; i < count; ++i)
    list += (i ? ", $" : "$") + std::to_string(first + i);
  return count == 1 ? list : "{" + list + "}";
}

Value* Emitter::predicatedLoad(mlir::Type type, mlir::Value base, Value* pointer, Value* mask, llvm::StringRef hints) {
  Registers r = registersFor(ir_, type);
  std::string text, constraints;
  for (unsigned i = 0; i < r.count; ++i) {
    text += std::string(r.zero) + " $" + std::to_string(i) + ", 0; ";
    constraints += std::string("=") + r.letter + ",";
  }
  text += "@$" + std::to_string(r.count + 1) + " ld" + spaceOf(base) + hints.str() + r.suffix + " " +
          operandList(0, r.count) + ", [$" + std::to_string(r.count) + "];";
  llvm::SmallVector<llvm::Type*> parts(r.count, r.type);
  llvm::Type* result = r.count == 1 ? r.type : llvm::StructType::get(ir_.getContext(), parts);
  auto* assembly = llvm::InlineAsm::get(llvm::FunctionType::get(result, {pointer->getType(), ir_.getInt1Ty()}, false),
                                        text, constraints + "l,b,~{memory}", true);
  Value* raw = ir_.CreateCall(assembly, {pointer, mask});
  llvm::Type* memory = memoryType(ir_.getContext(), type, lanesOf(type));
  if (r.count == 1 && !r.type->isIntegerTy(32)) {
    unsigned bits = memory->getPrimitiveSizeInBits();
    Value* cut = ir_.CreateTrunc(raw, ir_.getIntNTy(bits));
    return fromMemory(ir_, type, ir_.CreateBitCast(cut, memory));
  }
  Values all;
  for (unsigned i = 0; i < r.count; ++i)
    all.push_back(r.count == 1 ? raw : ir_.CreateExtractValue(raw, i));
  return loadedFrom(all, type);
}

void Emitter::predicatedStore(mlir::Type type, mlir::Value base, Value* pointer, Value* stored, Value* mask,
                              llvm::StringRef hints) {
  Registers r = registersFor(ir_, type);
  Values operands{pointer};
  if (r.count == 1 && !r.type->isIntegerTy(32)) {
    Value* bits = ir_.CreateBitCast(stored, ir_.getIntNTy(stored->getType()->getPrimitiveSizeInBits()));
    operands.push_back(ir_.CreateZExt(bits, r.type));
  } else {
    operands.append(words(stored));
  }
  operands.push_back(mask);
  std::string constraints = "l";
  llvm::SmallVector<llvm::Type*> types{pointer->getType()};
  for (unsigned i = 0; i < r.count; ++i) {
    constraints += std::string(",") + r.letter;
    types.push_back(r.type);
  }
  types.push_back(ir_.getInt1Ty());
  std::string text = "@$" + std::to_string(r.count + 1) + " st" + spaceOf(base) + hints.str() + r.suffix + " [$0], " +
                     operandList(1, r.count) + ";";
  auto* assembly = llvm::InlineAsm::get(llvm::FunctionType::get(ir_.getVoidTy(), types, false), text,
                                        constraints + ",b,~{memory}", true);
  ir_.CreateCall(assembly, operands);
}

/// Few cheap operations around at most eight accesses: worth doing in every lane.
bool Emitter::isPredicable(mlir::Block* block, unsigned& accesses) {
  unsigned count = 0;
  for (mlir::Operation& op : *block) {
    if (op.hasTrait<mlir::OpTrait::IsTerminator>())
      continue;
    if (++count > 32)
      return false;
    if (auto load = mlir::dyn_cast<vxt::LoadOp>(op)) {
      mlir::Type type = load.getResult().getType();
      ++accesses;
      if (!hasPredicatedForm(
              type, load.getBase(),
              std::max<int64_t>(load.getAlignment(), vxt::scalarBytes(mlir::getElementTypeOrSelf(type)))))
        return false;
      continue;
    }
    if (auto store = mlir::dyn_cast<vxt::StoreOp>(op)) {
      mlir::Type type = store.getValue().getType();
      ++accesses;
      if (!hasPredicatedForm(
              type, store.getBase(),
              std::max<int64_t>(store.getAlignment(), vxt::scalarBytes(mlir::getElementTypeOrSelf(type)))))
        return false;
      continue;
    }
    if (mlir::isa<vxt::OffsetOp, vxt::SharedOp, vxt::ThreadIdOp, vxt::BlockIdOp, vxt::GridDimOp>(op))
      continue;
    bool isDear = mlir::isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
                            arith::RemFOp, arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op);
    if (auto total = mlir::dyn_cast<ir::IntOp>(op))
      isDear = total.getKind() != ir::IntKind::Shl && total.getKind() != ir::IntKind::ShrS &&
               total.getKind() != ir::IntKind::ShrU;
    if (isDear || op.getName().getDialectNamespace() == "math" || !isElementwise(&op))
      return false;
  }
  return true;
}

bool Emitter::emitPredicated(mlir::scf::IfOp op) {
  unsigned accesses = 0;
  if (!isPredicable(op.thenBlock(), accesses) || (op.elseBlock() && !isPredicable(op.elseBlock(), accesses)) ||
      accesses == 0 || accesses > 8)
    return false;
  Value *condition = value(op.getCondition()), *outer = predicate_;
  auto side = [&](mlir::Block* block, Value* holds) {
    predicate_ = outer ? ir_.CreateAnd(outer, holds) : holds;
    emitBlock(*block);
    predicate_ = outer;
    return all(block->getTerminator()->getOperands());
  };
  Values whenTrue = side(op.thenBlock(), condition), whenFalse;
  if (op.elseBlock())
    whenFalse = side(op.elseBlock(), ir_.CreateNot(condition));
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    auto load = op.thenBlock()->getTerminator()->getOperand(i).getDefiningOp<vxt::LoadOp>();
    auto* constant = llvm::dyn_cast<llvm::Constant>(whenFalse[i]);
    // What is not loaded is zero.
    const bool isChosen = load && load->getBlock() == op.thenBlock() && constant && constant->isNullValue();
    set(result, isChosen ? whenTrue[i] : ir_.CreateSelect(condition, whenTrue[i], whenFalse[i]));
  }
  return true;
}

}  // namespace vortex::target::nvidia
