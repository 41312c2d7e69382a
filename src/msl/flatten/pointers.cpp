#include "msl/flatten/pointers.h"

#include "msl/flatten/clean.h"
#include "msl/flatten/constants.h"
#include "msl/flatten/pointer_classes.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/ReplaceConstant.h>

namespace vortex::msl::flatten {

using llvm::Value;

namespace {

constexpr uint64_t kNull = uint64_t(1) << 63;  ///< the offset of null

struct Place {
  Value* choice = nullptr;  ///< i32 into PointerClass::memories; null where there is one
  Value* offset = nullptr;  ///< i64 in units
};

class Lowering {
public:
  Lowering(front::Unit& unit, PointerClasses& classes)
      : unit_(unit), classes_(classes), layout_(unit.module->getDataLayout()), b_(unit.context) {}

  bool run() {
    llvm::Function& entry = *unit_.entry;
    fillTables();
    llvm::ReversePostOrderTraversal<llvm::Function*> order(&entry);
    std::vector<llvm::Instruction*> all;
    for (llvm::BasicBlock* block : order)
      for (llvm::Instruction& each : *block)
        all.push_back(&each);
    for (llvm::Instruction* each : all)
      if (auto* number = llvm::dyn_cast<llvm::PtrToIntInst>(each); number && isOfDistance(*number))
        distances_.insert(number);
    for (llvm::Instruction* each : all)
      if (auto* phi = llvm::dyn_cast<llvm::PHINode>(each); phi && phi->getType()->isPointerTy())
        beginPhi(*phi);
    for (llvm::Instruction* each : all) {
      b_.SetInsertPoint(each);
      lower(*each);
      if (!unit_.problems.empty())
        return false;
    }
    finishPhis();
    for (llvm::Instruction* each : dead_)
      each->dropAllReferences();
    for (llvm::Instruction* each : dead_)
      each->eraseFromParent();
    return true;
  }

private:
  void refuse(const llvm::Instruction* at, const std::string& message) {
    unit_.problems.push_back(problemAt(unit_, at, message));
  }

  /// A table of constants is a local array that the kernel fills first; few are left after folding.
  void fillTables() {
    constexpr uint64_t kMostUnits = 4096;
    b_.SetInsertPoint(&*unit_.entry->getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    for (size_t i = 0; i < classes_.memories.size(); ++i) {
      const auto* global = llvm::dyn_cast_or_null<llvm::GlobalVariable>(classes_.values[i]);
      const Memory& memory = classes_.memories[i];
      if (!global || memory.kind != Memory::Kind::Local)
        continue;
      uint64_t units = memory.bytes / memory.unitBytes;
      if (!global->hasInitializer() || units > kMostUnits)
        return refuse(nullptr,
                      "the table `" + memory.name + "` is larger than " + std::to_string(kMostUnits) + " elements");
      const auto values = elementsOf(*global, memory.elem, memory.unitBytes);
      if (!values)
        return refuse(nullptr, "the table `" + memory.name + "` is not all numbers");
      for (uint64_t unit = 0; unit < units; ++unit)
        if ((*values)[unit])
          emitStore(static_cast<unsigned>(i), (*values)[unit], b_.getInt64(unit), b_.getTrue());
    }
  }

  Place place(Value* pointer) {
    if (auto known = places_.find(pointer); known != places_.end())
      return known->second;
    if (llvm::isa<llvm::ConstantPointerNull>(pointer))
      return {b_.getInt32(0), b_.getInt64(kNull)};
    if (llvm::isa<llvm::UndefValue>(pointer))
      return {b_.getInt32(0), b_.getInt64(0)};
    int memory = classes_.memoryOf(pointer);
    if (memory < 0) {
      refuse(llvm::dyn_cast<llvm::Instruction>(pointer), "what this pointer points to is not known");
      return {b_.getInt32(0), b_.getInt64(0)};
    }
    const auto& all = classes_.of(pointer).memories;
    auto position = std::find(all.begin(), all.end(), static_cast<unsigned>(memory)) - all.begin();
    return {b_.getInt32(static_cast<uint32_t>(position)), b_.getInt64(0)};
  }

  void beginPhi(llvm::PHINode& phi) {
    b_.SetInsertPoint(&phi);
    places_[&phi] = {b_.CreatePHI(b_.getInt32Ty(), phi.getNumIncomingValues()),
                     b_.CreatePHI(b_.getInt64Ty(), phi.getNumIncomingValues())};
    phis_.push_back(&phi);
  }

  void finishPhis() {
    for (llvm::PHINode* phi : phis_) {
      Place into = places_[phi];
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        Place from = place(phi->getIncomingValue(i));
        llvm::cast<llvm::PHINode>(into.choice)->addIncoming(from.choice, phi->getIncomingBlock(i));
        llvm::cast<llvm::PHINode>(into.offset)->addIncoming(from.offset, phi->getIncomingBlock(i));
      }
      dead_.push_back(phi);
    }
  }

  void lower(llvm::Instruction& at) {
    if (auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(&at))
      places_[&at] = lowerStep(*step);
    else if (llvm::isa<llvm::AddrSpaceCastInst, llvm::FreezeInst>(at) && at.getType()->isPointerTy())
      places_[&at] = place(at.getOperand(0));
    else if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&at); select && at.getType()->isPointerTy()) {
      Place yes = place(select->getTrueValue()), no = place(select->getFalseValue());
      places_[&at] = {b_.CreateSelect(select->getCondition(), yes.choice, no.choice),
                      b_.CreateSelect(select->getCondition(), yes.offset, no.offset)};
    } else if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&at))
      replace(at, lowerLoad(*load));
    else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&at))
      lowerStore(*store);
    else if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&at))
      return replace(at, lowerUpdate(*update));
    else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&at))
      return replace(at, lowerExchange(*exchange));
    else if (auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&at);
             compare && compare->getOperand(0)->getType()->isPointerTy())
      return replace(at, lowerComparison(*compare));
    else if (auto* number = llvm::dyn_cast<llvm::PtrToIntInst>(&at))
      return replace(at, b_.CreateZExtOrTrunc(lowerNumber(*number), at.getType()));
    else if (!llvm::isa<llvm::AllocaInst>(at))
      return;
    if (!llvm::isa<llvm::LoadInst>(at))
      dead_.push_back(&at);
  }

  /// Pointers to different memories are not equal; how they are ordered is not specified.
  Value* lowerComparison(llvm::ICmpInst& compare) {
    const Place a = place(compare.getOperand(0)), b = place(compare.getOperand(1));
    Value* offsets = b_.CreateICmp(compare.getPredicate(), a.offset, b.offset);
    if (!compare.isEquality() || classes_.of(compare.getOperand(0)).memories.size() == 1)
      return offsets;
    Value* memories = b_.CreateICmp(compare.getPredicate(), a.choice, b.choice);
    return compare.getPredicate() == llvm::ICmpInst::ICMP_EQ ? b_.CreateAnd(memories, offsets)
                                                             : b_.CreateOr(memories, offsets);
  }

  /// A side of a difference of pointers into one memory, and nothing else.
  bool isOfDistance(const llvm::PtrToIntInst& number) {
    const PointerClass* of = &classes_.of(number.getOperand(0));
    return of->memories.size() == 1 && llvm::all_of(number.users(), [&](const llvm::User* user) {
             auto* difference = llvm::dyn_cast<llvm::BinaryOperator>(user);
             return difference && difference->getOpcode() == llvm::Instruction::Sub &&
                    llvm::all_of(difference->operands(), [&](Value* side) {
                      auto* other = llvm::dyn_cast<llvm::PtrToIntInst>(side);
                      return other && &classes_.of(other->getOperand(0)) == of;
                    });
           });
  }

  /// Numbers of different memories differ, those of null alone are 0; memories begin at multiples of every alignment.
  Value* lowerNumber(llvm::PtrToIntInst& number) {
    constexpr unsigned kMemoryBits = 44;
    const Place at = place(number.getPointerOperand());
    const PointerClass& of = classes_.of(number.getPointerOperand());
    Value* bytes = b_.CreateMul(at.offset, b_.getInt64(of.unitBytes));
    if (distances_.contains(&number))
      return bytes;
    Value* start = nullptr;
    for (unsigned i = 0; i < of.memories.size(); ++i) {
      Value* own = b_.getInt64((uint64_t(of.memories[i]) + 1) << kMemoryBits);
      start = start ? b_.CreateSelect(b_.CreateICmpEQ(at.choice, b_.getInt32(i)), own, start) : own;
    }
    Value* isNull = b_.CreateICmpEQ(at.offset, b_.getInt64(kNull));
    return start ? b_.CreateSelect(isNull, b_.getInt64(0), b_.CreateAdd(start, bytes)) : bytes;
  }

  void replace(llvm::Instruction& at, Value* value) {
    if (value)
      at.replaceAllUsesWith(value);
    dead_.push_back(&at);
  }

  Place lowerStep(llvm::GetElementPtrInst& step) {
    Place base = place(step.getPointerOperand());
    auto unit = static_cast<int64_t>(classes_.of(&step).unitBytes);
    unsigned width = layout_.getIndexTypeSizeInBits(step.getType());
    llvm::MapVector<Value*, llvm::APInt> factors;
    llvm::APInt constant(width, 0);
    if (!llvm::cast<llvm::GEPOperator>(step).collectOffset(layout_, width, factors, constant)) {
      refuse(&step, "this pointer arithmetic is not supported");
      return base;
    }
    Value* offset = base.offset;
    for (const auto& [index, factor] : factors) {
      Value* wide = b_.CreateSExtOrTrunc(index, b_.getInt64Ty());
      int64_t bytes = factor.getSExtValue();
      Value* units = bytes % unit == 0
                         ? b_.CreateMul(wide, b_.getInt64(static_cast<uint64_t>(bytes / unit)))
                         : b_.CreateExactSDiv(b_.CreateMul(wide, b_.getInt64(static_cast<uint64_t>(bytes))),
                                              b_.getInt64(static_cast<uint64_t>(unit)));
      offset = b_.CreateAdd(offset, units);
    }
    if (!constant.isZero())
      offset = b_.CreateAdd(offset, b_.getInt64(static_cast<uint64_t>(constant.getSExtValue() / unit)));
    return {base.choice, offset};
  }

  //===-- accesses ------------------------------------------------------------===//

  std::string typeName(llvm::Type* type) const {
    std::string text;
    llvm::raw_string_ostream out(text);
    type->print(out);
    return text;
  }

  Value* call(const std::string& name, llvm::Type* result, llvm::ArrayRef<Value*> operands) {
    llvm::SmallVector<llvm::Type*> types;
    for (Value* operand : operands)
      types.push_back(operand->getType());
    auto callee = unit_.module->getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
    auto* function = llvm::cast<llvm::Function>(callee.getCallee());
    function->setDoesNotThrow();
    function->addFnAttr(llvm::Attribute::WillReturn);
    return b_.CreateCall(callee, operands);
  }

  /// One access for each memory that may be meant; the results merged.
  template <class Access> Value* each(Value* pointer, Place at, Access access) {
    const auto& memories = classes_.of(pointer).memories;
    if (memories.size() == 1)
      return access(memories[0], b_.getTrue());
    Value* result = nullptr;
    for (unsigned i = 0; i < memories.size(); ++i) {
      Value* isThis = b_.CreateICmpEQ(at.choice, b_.getInt32(i));
      Value* value = access(memories[i], isThis);
      bool hasValue = value && !value->getType()->isVoidTy();
      result = result && hasValue ? b_.CreateSelect(isThis, value, result) : value;
    }
    return result;
  }

  Value* emitLoad(Value* pointer, Place at, Value* offset, llvm::Type* elem) {
    return each(pointer, at, [&](unsigned memory, Value* mask) {
      return call("__vx_load." + typeName(elem), elem, {b_.getInt32(memory), offset, mask});
    });
  }
  Value* emitStore(unsigned memory, Value* value, Value* offset, Value* mask) {
    return call("__vx_store." + typeName(value->getType()), b_.getVoidTy(), {value, b_.getInt32(memory), offset, mask});
  }

  Value* shifted(Value* offset, uint64_t by) { return by == 0 ? offset : b_.CreateAdd(offset, b_.getInt64(by)); }

  /// A scalar at `units` behind the place.
  Value* loadScalar(Value* pointer, Place at, llvm::Type* type, uint64_t units) {
    PointerClass& of = classes_.of(pointer);
    uint64_t bytes = layout_.getTypeStoreSize(type).getFixedValue(), count = bytes / of.unitBytes;
    if (count == 1) {
      Value* value = emitLoad(pointer, at, shifted(at.offset, units), of.elem);
      return convert(value, type);
    }
    llvm::Type* wide = b_.getIntNTy(static_cast<unsigned>(bytes * 8));
    Value* result = nullptr;
    for (uint64_t i = 0; i < count; ++i) {
      Value* part = emitLoad(pointer, at, shifted(at.offset, units + i), of.elem);
      part = b_.CreateZExt(convert(part, b_.getIntNTy(static_cast<unsigned>(of.unitBytes * 8))), wide);
      part = b_.CreateShl(part, i * of.unitBytes * 8);
      result = result ? b_.CreateOr(result, part) : part;
    }
    return convert(result, type);
  }

  void storeScalar(Value* pointer, Place at, Value* value, uint64_t units) {
    PointerClass& of = classes_.of(pointer);
    auto store = [&](Value* part, uint64_t unit) {
      each(pointer, at, [&](unsigned memory, Value* mask) {
        return emitStore(memory, convert(part, of.elem), shifted(at.offset, unit), mask);
      });
    };
    uint64_t bytes = layout_.getTypeStoreSize(value->getType()).getFixedValue(), count = bytes / of.unitBytes;
    if (count == 1)
      return store(value, units);
    Value* bits = convert(value, b_.getIntNTy(static_cast<unsigned>(bytes * 8)));
    for (uint64_t i = 0; i < count; ++i)
      store(b_.CreateTrunc(b_.CreateLShr(bits, i * of.unitBytes * 8),
                           b_.getIntNTy(static_cast<unsigned>(of.unitBytes * 8))),
            units + i);
  }

  /// Bits as another type; an i1 is a byte in memory.
  Value* convert(Value* value, llvm::Type* type) {
    if (value->getType() == type)
      return value;
    if (type->isIntegerTy(1))
      return b_.CreateTrunc(convert(value, b_.getInt8Ty()), type);
    if (value->getType()->isIntegerTy(1))
      return convert(b_.CreateZExt(value, b_.getInt8Ty()), type);
    return b_.CreateBitCast(value, type);
  }

  Value* lowerLoad(llvm::LoadInst& load) {
    Value* pointer = load.getPointerOperand();
    Place at = place(pointer);
    if (load.isAtomic() || isVolatileWord(load, pointer, load.getType()))
      return atomicAccess(load, pointer, at, load.getType(), [&](unsigned memory, Value* mask, llvm::Type* elem) {
        return call("__vx_atomic_load." + typeName(elem), elem, {b_.getInt32(memory), at.offset, mask});
      });
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(load.getType());
    if (load.getType()->isAggregateType()) {
      refuse(&load, "a struct that is loaded as a whole is not supported here");
      return nullptr;
    }
    if (!vector)
      return loadScalar(pointer, at, load.getType(), 0);
    Value* result = llvm::PoisonValue::get(vector);
    uint64_t step = layout_.getTypeStoreSize(vector->getElementType()) / classes_.of(pointer).unitBytes;
    for (unsigned i = 0; i < vector->getNumElements(); ++i)
      result = b_.CreateInsertElement(result, loadScalar(pointer, at, vector->getElementType(), i * step), i);
    return result;
  }

  void lowerStore(llvm::StoreInst& store) {
    Value *pointer = store.getPointerOperand(), *value = store.getValueOperand();
    Place at = place(pointer);
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    if (store.isAtomic() || isVolatileWord(store, pointer, value->getType())) {
      atomicAccess(store, pointer, at, value->getType(), [&](unsigned memory, Value* mask, llvm::Type* elem) {
        return call("__vx_atomic_store." + typeName(elem), b_.getVoidTy(),
                    {convert(value, elem), b_.getInt32(memory), at.offset, mask});
      });
    } else if (value->getType()->isAggregateType()) {
      refuse(&store, "a struct that is stored as a whole is not supported here");
    } else if (!vector) {
      storeScalar(pointer, at, value, 0);
    } else {
      uint64_t step = layout_.getTypeStoreSize(vector->getElementType()) / classes_.of(pointer).unitBytes;
      for (unsigned i = 0; i < vector->getNumElements(); ++i)
        storeScalar(pointer, at, b_.CreateExtractElement(value, i), i * step);
    }
  }

  /// Volatile accesses that a loop may wait by are atomic ones: plain ones would move out of it.
  template <class Access> bool isVolatileWord(Access& at, Value* pointer, llvm::Type* type) {
    constexpr unsigned kDevice = 1, kThreadgroup = 3;
    const unsigned space = pointer->getType()->getPointerAddressSpace();
    const bool isScalar = type->isIntegerTy() || type->isFloatingPointTy();
    const uint64_t bytes = isScalar ? layout_.getTypeStoreSize(type).getFixedValue() : 0;
    return at.isVolatile() && (bytes == 4 || bytes == 8) && (space == kDevice || space == kThreadgroup) &&
           classes_.of(pointer).elem == type;
  }

  /// `access` has the bits of `type` as the memory's elements, which are as large.
  template <class Access>
  Value* atomicAccess(llvm::Instruction& at, Value* pointer, Place place, llvm::Type* type, Access access) {
    llvm::Type* elem = classes_.of(pointer).elem;
    if (const uint64_t bits = layout_.getTypeStoreSizeInBits(type); bits != 32 && bits != 64) {
      refuse(&at, type->isIntegerTy() && bits == 8
                      ? "an atomic operation on `bool` is not supported: atomic elements have 32 or 64 bits"
                      : "an atomic operation is on elements of 32 or 64 bits");
      return nullptr;
    }
    if (layout_.getTypeStoreSize(elem) != layout_.getTypeStoreSize(type)) {
      refuse(&at, "an atomic operation on memory that is also accessed as smaller elements is not supported");
      return nullptr;
    }
    Value* value = each(pointer, place, [&](unsigned memory, Value* mask) { return access(memory, mask, elem); });
    return value->getType()->isVoidTy() ? value : convert(value, type);
  }

  static const char* kindOf(llvm::AtomicRMWInst::BinOp operation) {
    using Op = llvm::AtomicRMWInst;
    switch (operation) {
    case Op::Add:
    case Op::Sub: return "addi";
    case Op::FAdd:
    case Op::FSub: return "addf";
    case Op::And: return "and";
    case Op::Or: return "or";
    case Op::Xor: return "xor";
    case Op::Max: return "maxs";
    case Op::Min: return "mins";
    case Op::UMax: return "maxu";
    case Op::UMin: return "minu";
    case Op::FMax: return "maxf";
    case Op::FMin: return "minf";
    case Op::Xchg: return "exchange";
    default: return nullptr;
    }
  }

  Value* lowerUpdate(llvm::AtomicRMWInst& update) {
    Value *pointer = update.getPointerOperand(), *value = update.getValOperand();
    Place at = place(pointer);
    const char* kind = kindOf(update.getOperation());
    if (!kind) {
      refuse(&update, "this atomic operation is not supported");
      return nullptr;
    }
    if (update.getOperation() == llvm::AtomicRMWInst::Sub)
      value = b_.CreateNeg(value);
    if (update.getOperation() == llvm::AtomicRMWInst::FSub)
      value = b_.CreateFNeg(value);
    return atomicAccess(update, pointer, at, value->getType(), [&](unsigned memory, Value* mask, llvm::Type* elem) {
      return call(std::string("__vx_atomic.") + kind + "." + typeName(elem), elem,
                  {convert(value, elem), b_.getInt32(memory), at.offset, mask});
    });
  }

  Value* lowerExchange(llvm::AtomicCmpXchgInst& exchange) {
    Value *pointer = exchange.getPointerOperand(), *expected = exchange.getCompareOperand();
    Place at = place(pointer);
    Value* old =
        atomicAccess(exchange, pointer, at, expected->getType(), [&](unsigned memory, Value* mask, llvm::Type* elem) {
          return call("__vx_cas." + typeName(elem), elem,
                      {convert(expected, elem), convert(exchange.getNewValOperand(), elem), b_.getInt32(memory),
                       at.offset, mask});
        });
    if (!old)
      return nullptr;
    Value* pair = b_.CreateInsertValue(llvm::PoisonValue::get(exchange.getType()), old, 0);
    return b_.CreateInsertValue(pair, b_.CreateICmpEQ(old, expected), 1);
  }

  front::Unit& unit_;
  PointerClasses& classes_;
  const llvm::DataLayout& layout_;
  llvm::IRBuilder<> b_;
  llvm::DenseMap<Value*, Place> places_;
  std::vector<llvm::PHINode*> phis_;
  llvm::SmallPtrSet<const llvm::PtrToIntInst*, 8> distances_;
  std::vector<llvm::Instruction*> dead_;
};

/// Arithmetic on floats as a loop that exchanges the integer with their bits.
void exchangeInstead(llvm::AtomicRMWInst& update) {
  llvm::BasicBlock *before = update.getParent(), *after = before->splitBasicBlock(&update);
  auto* loop = llvm::BasicBlock::Create(update.getContext(), "", before->getParent(), after);
  llvm::IRBuilder<> b(before->getTerminator());
  b.SetCurrentDebugLocation(update.getDebugLoc());
  llvm::Type *type = update.getType(), *bits = b.getIntNTy(type->getPrimitiveSizeInBits());
  Value *pointer = update.getPointerOperand(), *value = update.getValOperand();
  const llvm::Align align = update.getAlign();
  llvm::LoadInst* first = b.CreateAlignedLoad(bits, pointer, align);
  first->setAtomic(llvm::AtomicOrdering::Monotonic);
  before->getTerminator()->setSuccessor(0, loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* seen = b.CreatePHI(bits, 2);
  seen->addIncoming(first, before);
  Value* old = b.CreateBitCast(seen, type);
  Value* made = update.getOperation() == llvm::AtomicRMWInst::FSub   ? b.CreateFSub(old, value)
                : update.getOperation() == llvm::AtomicRMWInst::FAdd ? b.CreateFAdd(old, value)
                : update.getOperation() == llvm::AtomicRMWInst::FMax ? b.CreateMaxNum(old, value)
                                                                     : b.CreateMinNum(old, value);
  Value* pair = b.CreateAtomicCmpXchg(pointer, seen, b.CreateBitCast(made, bits), align,
                                      llvm::AtomicOrdering::Monotonic, llvm::AtomicOrdering::Monotonic);
  seen->addIncoming(b.CreateExtractValue(pair, 0), loop);
  b.CreateCondBr(b.CreateExtractValue(pair, 1), after, loop);
  update.replaceAllUsesWith(old);
  update.eraseFromParent();
}

}  // namespace

std::vector<Memory> lowerPointers(front::Unit& unit, const Kernel& kernel) {
  llvm::SmallVector<llvm::Constant*> globals;
  for (llvm::GlobalVariable& global : unit.module->globals())
    globals.push_back(&global);
  llvm::convertUsersOfConstantsToInstructions(globals, unit.entry);
  compareNumbers(*unit.entry);
  std::optional<PointerClasses> classes(std::in_place, unit, kernel);
  if (!classes->build())
    return {};
  if (const auto mixed = classes->mixedUpdates(); !mixed.empty()) {
    for (llvm::AtomicRMWInst* update : mixed)
      exchangeInstead(*update);
    classes.emplace(unit, kernel);
    if (!classes->build())
      return {};
  }
  if (!Lowering(unit, *classes).run())
    return {};
  return std::move(classes->memories);
}

}  // namespace vortex::msl::flatten
