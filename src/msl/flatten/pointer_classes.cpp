#include "msl/flatten/pointer_classes.h"

#include "msl/flatten/clean.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>

#include <numeric>

namespace vortex::msl::flatten {

using llvm::Value;

/// `t`, of "kernel(float*)::t". The values that a variable starts with are "__const.kernel.t", with a mangled kernel.
static std::string writtenName(const llvm::GlobalVariable& global) {
  llvm::StringRef symbol = global.getName();
  if (symbol.consume_front("__const."))
    return symbol.substr(symbol.rfind('.') + 1).str();
  const std::string name = llvm::demangle(symbol);
  const size_t scope = name.rfind("::");
  return scope == std::string::npos ? name : name.substr(scope + 2);
}

/// Of a variable: a call that became part of the kernel, and what was taken apart, have their number or "i" behind a dot. Clang's own are left
/// without a name.
static std::string writtenName(const llvm::AllocaInst& slot) {
  llvm::StringRef name = slot.getName();
  if (name.starts_with("ref.tmp") || name.starts_with("agg.") || name.starts_with("retval") ||
      name.starts_with("coerce"))
    return "";
  return name.split('.').first.str();
}

/// Of an array, also as the only member of a struct; else null.
static llvm::Type* elementOf(llvm::Type* type) {
  if (type->isStructTy() && type->getStructNumElements() == 1 && type->getStructElementType(0)->isArrayTy())
    type = type->getStructElementType(0);
  if (!type->isArrayTy())
    return nullptr;
  while (type->isArrayTy())
    type = type->getArrayElementType();
  return type;
}

PointerClasses::PointerClasses(front::Unit& unit, const Kernel& kernel)
    : unit_(unit), kernel_(kernel), zeros_(*unit.entry) {}

bool PointerClasses::refuse(const llvm::Instruction* at, const std::string& message) {
  unit_.problems.push_back(problemAt(unit_, at, message));
  return false;
}

const Value* PointerClasses::root(const Value* pointer) const {
  for (auto found = parent_.find(pointer); found != parent_.end() && found->second != pointer;
       found = parent_.find(pointer))
    pointer = found->second;
  return pointer;
}

void PointerClasses::join(const Value* a, const Value* b) {
  if (llvm::isa<llvm::ConstantPointerNull, llvm::UndefValue>(a) ||
      llvm::isa<llvm::ConstantPointerNull, llvm::UndefValue>(b))
    return;
  a = root(a);
  b = root(b);
  if (a != b)
    parent_[a] = b;
}

void PointerClasses::addMemories() {
  unsigned pointer = 0;
  auto add = [&](const Value* value, Memory memory) {
    memoryIndex_[value] = static_cast<unsigned>(memories.size());
    memories.push_back(std::move(memory));
    values.push_back(value);
  };
  for (const Parameter& parameter : kernel_.parameters) {
    if (parameter.kind == ParameterKind::Input)
      continue;
    auto kind = parameter.kind == ParameterKind::Buffer ? Memory::Kind::Buffer : Memory::Kind::Threadgroup;
    Memory memory{kind, parameter.name, parameter.index};
    memory.elementBytes = parameter.elementBytes;
    add(unit_.entry->getArg(pointer++), memory);
  }
  const llvm::DataLayout& layout = unit_.module->getDataLayout();
  auto addVariable = [&](const Value* value, Memory::Kind kind, std::string name, llvm::Type* type, uint64_t bytes) {
    Memory memory{kind, std::move(name), 0, bytes};
    if (llvm::Type* element = elementOf(type))
      memory.elementBytes = layout.getTypeAllocSize(element);
    add(value, std::move(memory));
  };
  for (llvm::GlobalVariable& global : unit_.module->globals()) {
    bool isShared = global.getAddressSpace() == 3;
    if (!global.use_empty() && !global.getName().starts_with("llvm."))
      addVariable(&global, isShared ? Memory::Kind::Shared : Memory::Kind::Local, writtenName(global),
                  global.getValueType(), layout.getTypeAllocSize(global.getValueType()));
  }
  for (llvm::Instruction& each : llvm::instructions(*unit_.entry))
    if (auto* slot = llvm::dyn_cast<llvm::AllocaInst>(&each))
      if (auto bytes = slot->getAllocationSize(layout))
        addVariable(slot, Memory::Kind::Local, writtenName(*slot), slot->getAllocatedType(), bytes->getFixedValue());
}

void PointerClasses::addAccess(const Value* pointer, llvm::Type* type, bool writes, Access kind) {
  PointerClass& of = this->of(pointer);
  llvm::Type* scalar = scalarOf(type);
  of.unitBytes = std::gcd(of.unitBytes, unit_.module->getDataLayout().getTypeStoreSize(scalar).getFixedValue());
  of.uses[scalar] += 1;
  of.isWritten |= writes;
  if (kind == Access::Plain || (of.computes && kind == Access::Atomic))
    return;
  const bool isMixed = of.computes && of.atomic != scalar;
  of.atomic = isMixed && of.atomic->isIntegerTy() ? of.atomic : scalar;
  of.computes |= kind == Access::Arithmetic;
}

/// A pointer that is always null points to this: no access lies in it.
void PointerClasses::addNull(PointerClass& of) {
  of.memories.push_back(static_cast<unsigned>(memories.size()));
  memories.push_back({Memory::Kind::Local, "nullptr", 0, 8});
  values.push_back(nullptr);
}

std::vector<llvm::AtomicRMWInst*> PointerClasses::mixedUpdates() {
  std::vector<llvm::AtomicRMWInst*> found;
  for (llvm::Instruction& each : llvm::instructions(*unit_.entry))
    if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&each);
        update && update->isFloatingPointOperation() && of(update->getPointerOperand()).elem->isIntegerTy())
      found.push_back(update);
  return found;
}

void PointerClasses::addStep(llvm::GetElementPtrInst& step) {
  const llvm::DataLayout& layout = unit_.module->getDataLayout();
  unsigned width = layout.getIndexTypeSizeInBits(step.getType());
  llvm::MapVector<Value*, llvm::APInt> factors;
  llvm::APInt constant(width, 0);
  PointerClass& of = this->of(&step);
  if (!llvm::cast<llvm::GEPOperator>(step).collectOffset(layout, width, factors, constant))
    return;
  of.unitBytes = std::gcd(of.unitBytes, constant.abs().getZExtValue());
  // Byte addresses are multiples of what their index is shifted or multiplied by.
  constexpr unsigned kLargest = 3;  // elements have 8 bytes at most
  for (const auto& [index, factor] : factors) {
    of.unitBytes = std::gcd(of.unitBytes, factor.abs().getZExtValue() << std::min(zeros_.of(index), kLargest));
  }
}

/// A pointer is loaded from or stored at `place`.
bool PointerClasses::refusePointerInMemory(const llvm::Instruction& at, const Value* place) {
  const int found = memoryOf(llvm::getUnderlyingObject(place, 0));
  if (found < 0)
    return refuse(&at, "a pointer in memory (in an argument buffer or an array of pointers) is not supported");
  const Memory& memory = memories[static_cast<unsigned>(found)];
  const std::string name = memory.name.empty() ? "this variable" : "`" + memory.name + "`";
  if (memory.kind == Memory::Kind::Buffer)
    return refuse(&at,
                  name + " is an argument buffer: it holds pointers, which is not supported; what they point to can be "
                         "parameters of the kernel, each with its own [[buffer(n)]]");
  return refuse(
      &at, name + " holds pointers of which one is chosen when the kernel runs, which is not supported; `?:`, `if` or "
                  "`switch` can choose between variables");
}

/// First round: which pointers meet.
bool PointerClasses::visit(llvm::Instruction& at) {
  bool isPointer = at.getType()->isPtrOrPtrVectorTy();
  if (at.getType()->isVectorTy() && isPointer)
    return refuse(&at, "vectors of pointers are not supported");
  if (auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(&at))
    join(step, step->getPointerOperand());
  else if (auto* cast = llvm::dyn_cast<llvm::AddrSpaceCastInst>(&at))
    join(cast, cast->getPointerOperand());
  else if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&at); phi && isPointer)
    for (Value* incoming : phi->incoming_values())
      join(phi, incoming);
  else if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&at); select && isPointer) {
    join(select, select->getTrueValue());
    join(select, select->getFalseValue());
  } else if (auto* frozen = llvm::dyn_cast<llvm::FreezeInst>(&at); frozen && isPointer)
    join(frozen, frozen->getOperand(0));
  else if (auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&at);
           compare && compare->getOperand(0)->getType()->isPointerTy())
    join(compare->getOperand(0), compare->getOperand(1));
  else if (isPointer && llvm::isa<llvm::LoadInst>(at))
    return refusePointerInMemory(llvm::cast<llvm::LoadInst>(at), llvm::getLoadStorePointerOperand(&at));
  else if (isPointer && llvm::isa<llvm::IntToPtrInst>(at))
    return refuse(&at, "a pointer made from an integer is not supported");
  else if (isPointer && !llvm::isa<llvm::AllocaInst>(at))
    return refuse(&at, "what this pointer points to is not known");
  if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&at); store && store->getValueOperand()->getType()->isPointerTy())
    return refusePointerInMemory(at, store->getPointerOperand());
  return true;
}

void PointerClasses::chooseElements() {
  llvm::LLVMContext& context = unit_.context;
  for (PointerClass& each : classes_) {
    if (each.unitBytes == 0)
      each.unitBytes = 1;
    while (each.unitBytes > 8)  // steps of whole structs, of which nothing is accessed
      each.unitBytes /= 2;
    unsigned best = 0;
    for (auto [type, count] : each.uses)
      if (type->getPrimitiveSizeInBits() == each.unitBytes * 8 && count > best) {
        best = count;
        each.elem = type;
      }
    if (each.atomic && each.atomic->getPrimitiveSizeInBits() == each.unitBytes * 8)
      each.elem = each.atomic;
    if (!each.elem)
      each.elem = llvm::IntegerType::get(context, static_cast<unsigned>(each.unitBytes * 8));
    for (unsigned memory : each.memories) {
      memories[memory].unitBytes = static_cast<unsigned>(each.unitBytes);
      memories[memory].elem = each.elem;
      memories[memory].isWritten = each.isWritten;
    }
  }
}

bool PointerClasses::build() {
  addMemories();
  for (llvm::Instruction& each : llvm::instructions(*unit_.entry))
    if (!visit(each))
      return false;
  auto classOf = [&](const Value* pointer) -> PointerClass& {
    auto [found, isNew] = classIndex_.try_emplace(root(pointer), static_cast<int>(classes_.size()));
    if (isNew)
      classes_.emplace_back();
    return classes_[static_cast<unsigned>(found->second)];
  };
  for (unsigned i = 0; i < values.size(); ++i)
    classOf(values[i]).memories.push_back(i);
  for (llvm::Instruction& each : llvm::instructions(*unit_.entry)) {
    if (each.getType()->isPointerTy())
      classOf(&each);
    for (const llvm::Use& use : each.operands())
      if (use->getType()->isPointerTy())
        classOf(use);
  }
  for (llvm::Instruction& each : llvm::instructions(*unit_.entry)) {
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&each))
      addAccess(load->getPointerOperand(), load->getType(), false, load->isAtomic() ? Access::Atomic : Access::Plain);
    else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&each))
      addAccess(store->getPointerOperand(), store->getValueOperand()->getType(), true,
                store->isAtomic() ? Access::Atomic : Access::Plain);
    else if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&each))
      addAccess(update->getPointerOperand(), update->getType(), true,
                update->getOperation() == llvm::AtomicRMWInst::Xchg ? Access::Atomic : Access::Arithmetic);
    else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&each))
      addAccess(exchange->getPointerOperand(), exchange->getCompareOperand()->getType(), true, Access::Arithmetic);
    else if (auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(&each))
      addStep(*step);
  }
  for (PointerClass& each : classes_)
    if (each.memories.empty() && !each.uses.empty())
      addNull(each);
  chooseElements();
  return true;
}

void compareNumbers(llvm::Function& function) {
  const auto numberOf = [](Value* pointer) {
    auto* made = llvm::dyn_cast<llvm::ConstantExpr>(pointer);
    return made && made->getOpcode() == llvm::Instruction::IntToPtr ? made->getOperand(0) : nullptr;
  };
  for (llvm::Instruction& each : llvm::make_early_inc_range(llvm::instructions(function))) {
    auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&each);
    if (!compare || !llvm::any_of(compare->operands(), numberOf))
      continue;
    llvm::IRBuilder<> b(compare);
    const auto number = [&](Value* pointer) {
      Value* known = numberOf(pointer);
      return known ? b.CreateZExtOrTrunc(known, b.getInt64Ty()) : b.CreatePtrToInt(pointer, b.getInt64Ty());
    };
    Value *left = number(compare->getOperand(0)), *right = number(compare->getOperand(1));
    compare->replaceAllUsesWith(b.CreateICmp(compare->getPredicate(), left, right));
    compare->eraseFromParent();
  }
}

}  // namespace vortex::msl::flatten
