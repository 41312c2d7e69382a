#include "msl/flatten/constants.h"

#include "base/text.h"
#include "msl/flatten/clean.h"

#include <cmath>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <map>

namespace vortex::msl::flatten {
namespace {

llvm::Constant* valueOf(llvm::Type* type, double value) {
  if (type->isIntegerTy())
    return llvm::ConstantInt::get(type, static_cast<uint64_t>(static_cast<int64_t>(value)));
  if (type->isFloatingPointTy())
    return llvm::ConstantFP::get(type, value);
  return llvm::Constant::getNullValue(type);
}

/// NaN is a float like others.
bool takes(const front::FunctionConstant& constant, double value) {
  if (constant.least > constant.most)
    return false;
  return constant.isInteger ? value >= constant.least && value <= constant.most && value == std::trunc(value) : true;
}

std::string misfitOf(const front::FunctionConstant& constant, double value) {
  const std::string name = base::concat("the function constant `", constant.name, "`");
  if (constant.least > constant.most)
    return name + " is no number: values of its type cannot be given";
  const auto number = [](double of) { return std::to_string(static_cast<int64_t>(of)); };
  const bool isWhole = value == std::trunc(value) && std::abs(value) < 0x1p63;
  return base::concat(name, " is an integer from ", number(constant.least), " to ", number(constant.most), ", not ",
                      isWhole ? number(value) : base::concat(value));
}

/// `is_function_constant_defined` of `global`.
void setDefined(llvm::Module& module, const llvm::GlobalVariable& global, bool isDefined) {
  llvm::Function* hook = module.getFunction("__vx_constant_defined");
  if (!hook)
    return;
  for (llvm::User* user : llvm::make_early_inc_range(hook->users()))
    if (auto* call = llvm::dyn_cast<llvm::CallInst>(user);
        call && call->getArgOperand(0)->stripPointerCasts() == &global) {
      call->replaceAllUsesWith(llvm::ConstantInt::get(call->getType(), isDefined));
      call->eraseFromParent();
    }
}

/// The memory of a variable; what is never set is 0.
class Image {
public:
  explicit Image(llvm::GlobalVariable& global)
      : global_(global), layout_(global.getDataLayout()), bytes_(layout_.getTypeAllocSize(global.getValueType())) {}

  /// False: it lies outside, or is not all numbers.
  bool put(llvm::Constant* value, uint64_t offset) {
    llvm::Type* type = value->getType();
    if (offset + layout_.getTypeStoreSize(type) > bytes_.size())
      return false;
    if (llvm::isa<llvm::UndefValue>(value))
      return true;
    if (unsigned count = countOf(type)) {
      for (unsigned i = 0; i < count; ++i)
        if (llvm::Constant* element = value->getAggregateElement(i);
            !element || !put(element, offset + placeOf(type, i)))
          return false;
      return true;
    }
    llvm::APInt bits;
    if (auto* integer = llvm::dyn_cast<llvm::ConstantInt>(value))
      bits = integer->getValue();
    else if (auto* number = llvm::dyn_cast<llvm::ConstantFP>(value))
      bits = number->getValueAPF().bitcastToAPInt();
    else
      return false;
    const uint64_t size = layout_.getTypeStoreSize(type);
    llvm::StoreIntToMemory(bits.zext(static_cast<unsigned>(size * 8)), bytes_.data() + offset,
                           static_cast<unsigned>(size));
    return true;
  }

  void finish() {
    global_.setInitializer(get(global_.getValueType(), 0));
    global_.setConstant(true);
  }

  llvm::Constant* get(llvm::Type* type, uint64_t offset) const {
    llvm::SmallVector<llvm::Constant*> elements;
    for (unsigned i = 0; i < countOf(type); ++i)
      elements.push_back(get(elementType(type, i), offset + placeOf(type, i)));
    if (auto* record = llvm::dyn_cast<llvm::StructType>(type))
      return llvm::ConstantStruct::get(record, elements);
    if (auto* array = llvm::dyn_cast<llvm::ArrayType>(type))
      return llvm::ConstantArray::get(array, elements);
    if (type->isVectorTy())
      return llvm::ConstantVector::get(elements);
    if (!type->isIntegerTy() && !type->isFloatingPointTy())
      return llvm::Constant::getNullValue(type);
    const auto size = static_cast<unsigned>(layout_.getTypeStoreSize(type));
    llvm::APInt bits(size * 8, 0);
    llvm::LoadIntFromMemory(bits, bytes_.data() + offset, size);
    bits = bits.trunc(static_cast<unsigned>(type->getPrimitiveSizeInBits()));
    return type->isIntegerTy()
               ? llvm::Constant::getIntegerValue(type, bits)
               : llvm::ConstantFP::get(type->getContext(), llvm::APFloat(type->getFltSemantics(), bits));
  }

private:
  static unsigned countOf(llvm::Type* type) {
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
      return vector->getNumElements();
    if (auto* array = llvm::dyn_cast<llvm::ArrayType>(type))
      return static_cast<unsigned>(array->getNumElements());
    auto* record = llvm::dyn_cast<llvm::StructType>(type);
    return record ? record->getNumElements() : 0;
  }

  uint64_t placeOf(llvm::Type* type, unsigned index) const {
    if (auto* record = llvm::dyn_cast<llvm::StructType>(type))
      return layout_.getStructLayout(record)->getElementOffset(index);
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    return index * (vector ? layout_.getTypeStoreSize(vector->getElementType())
                           : layout_.getTypeAllocSize(type->getArrayElementType()));
  }

  static llvm::Type* elementType(llvm::Type* type, unsigned index) {
    if (auto* record = llvm::dyn_cast<llvm::StructType>(type))
      return record->getElementType(index);
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    return vector ? vector->getElementType() : type->getArrayElementType();
  }

  llvm::GlobalVariable& global_;
  const llvm::DataLayout& layout_;
  std::vector<uint8_t> bytes_;
};

/// Nothing is left of the function but stores of numbers.
bool evaluate(llvm::Function& function) {
  std::map<llvm::GlobalVariable*, Image> images;
  for (llvm::Instruction& each : llvm::instructions(function)) {
    auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&each);
    if (llvm::isa<llvm::ReturnInst>(each) || (intrinsic && intrinsic->isAssumeLikeIntrinsic()))
      continue;
    auto* store = llvm::dyn_cast<llvm::StoreInst>(&each);
    auto* value = store ? llvm::dyn_cast<llvm::Constant>(store->getValueOperand()) : nullptr;
    if (!value)
      return false;
    const llvm::DataLayout& layout = function.getDataLayout();
    llvm::APInt offset(layout.getIndexTypeSizeInBits(store->getPointerOperandType()), 0);
    auto* global = llvm::dyn_cast<llvm::GlobalVariable>(
        store->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true));
    if (!global || offset.isNegative() ||
        !images.try_emplace(global, *global).first->second.put(value, offset.getZExtValue()))
      return false;
  }
  for (auto& [global, image] : images)
    image.finish();
  return true;
}

/// The code for one variable each: Clang calls it from the constructor of the module.
std::vector<llvm::Function*> initialisers(llvm::Module& module) {
  std::vector<llvm::Function*> found;
  for (llvm::Function& function : module)
    if (function.getName().starts_with("_GLOBAL__sub_I_"))
      for (llvm::Instruction& each : llvm::instructions(function))
        if (auto* call = llvm::dyn_cast<llvm::CallInst>(&each); call && call->getCalledFunction())
          found.push_back(call->getCalledFunction());
  return found;
}

bool hasNoValue(const front::Unit& unit, llvm::StringRef symbol) {
  const llvm::GlobalVariable* global = unit.module->getNamedGlobal(symbol);
  return global && global->isDeclaration();
}

void note(const front::Unit& unit, llvm::Function& function, std::vector<Unevaluated>& left) {
  llvm::DebugLoc at;
  std::string needed;
  for (llvm::Instruction& each : llvm::instructions(function))
    for (llvm::Value* operand : each.operands())
      if (auto* global = llvm::dyn_cast<llvm::GlobalVariable>(operand->stripPointerCasts()))
        for (const front::FunctionConstant& constant : unit.constants)
          if (global->getName() == constant.symbol && global->isDeclaration())
            needed = constant.symbol;
  for (llvm::Instruction& each : llvm::instructions(function)) {
    if (!at)
      at = each.getDebugLoc();
    for (llvm::Value* operand : each.operands())
      if (auto* global = llvm::dyn_cast<llvm::GlobalVariable>(operand->stripPointerCasts()))
        left.push_back({global->getName().str(), at, needed});
  }
}

}  // namespace

std::vector<Unevaluated> setConstants(front::Unit& unit, const Request& request) {
  for (const front::FunctionConstant& constant : unit.constants) {
    auto* global = unit.module->getNamedGlobal(constant.symbol);
    if (!global)
      continue;
    auto given = request.constants.find(constant.index);
    const bool isGiven = given != request.constants.end();
    const double value = isGiven ? given->second : 0.0;
    if (isGiven && !takes(constant, value)) {
      unit.problems.push_back(constant.misfit);
      unit.problems.back().message = misfitOf(constant, value);
      return {};
    }
    setDefined(*unit.module, *global, isGiven);
    const bool hasValue = isGiven || request.isCheck;
    global->setInitializer(hasValue ? valueOf(global->getValueType(), value) : nullptr);
    global->setConstant(true);
    global->setLinkage(hasValue ? llvm::GlobalValue::InternalLinkage : llvm::GlobalValue::ExternalLinkage);
  }
  std::vector<Unevaluated> left;
  for (llvm::Function* function : initialisers(*unit.module)) {
    straighten(*function);  // only stores of numbers are left then
    if (!evaluate(*function))
      note(unit, *function, left);
  }
  return left;
}

void refuseMissing(front::Unit& unit, const std::vector<Unevaluated>& left) {
  const auto isUsed = [&](const std::string& symbol) {
    const llvm::GlobalVariable* global = unit.module->getNamedGlobal(symbol);
    return global && !global->use_empty();
  };
  for (const front::FunctionConstant& constant : unit.constants) {
    const bool isMade = llvm::any_of(left, [&](const Unevaluated& each) {
      return each.needed == constant.symbol && each.symbol != constant.symbol && isUsed(each.symbol);
    });
    if (!isMade && !(hasNoValue(unit, constant.symbol) && isUsed(constant.symbol)))
      continue;
    unit.problems.push_back(constant.misfit);
    unit.problems.back().message =
        base::concat("the kernel uses the function constant `", constant.name,
                     "`, which has no value: give `[[function_constant(", constant.index, ")]]` one");
    return;
  }
}

std::optional<std::vector<llvm::Constant*>> elementsOf(const llvm::GlobalVariable& global, llvm::Type* elem,
                                                       uint64_t elemBytes) {
  const llvm::DataLayout& layout = global.getDataLayout();
  auto* initial = const_cast<llvm::Constant*>(global.getInitializer());
  std::optional<Image> image;  // LLVM reads no bfloat out of vectors
  std::vector<llvm::Constant*> all;
  for (uint64_t at = 0; at + elemBytes <= layout.getTypeAllocSize(global.getValueType()); at += elemBytes) {
    llvm::Constant* value = llvm::ConstantFoldLoadFromConst(initial, elem, llvm::APInt(64, at), layout);
    if (!value && !image && !image.emplace(const_cast<llvm::GlobalVariable&>(global)).put(initial, 0))
      return std::nullopt;
    if (!value)
      value = image->get(elem, at);
    all.push_back(llvm::isa<llvm::UndefValue>(value) ? nullptr : value);
  }
  return all;
}

}  // namespace vortex::msl::flatten
