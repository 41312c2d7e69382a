// Kernels take vectors by value, which the ABI passes in several ways. The entry builds each in memory and passes it as Clang would; inlining and
// SROA leave nothing of that.
#include "msl/front/bridge.h"

#include <clang/AST/DeclTemplate.h>
#include <clang/CodeGen/CGFunctionInfo.h>
#include <clang/CodeGen/CodeGenABITypes.h>
#include <llvm/IR/IRBuilder.h>

namespace vortex::msl::front {

using clang::CodeGen::ABIArgInfo;

namespace {

class Bridge {
public:
  Bridge(clang::ASTContext& context, llvm::Module& module)
      : context_(context), module_(module), b_(module.getContext()) {}

  llvm::Function* build(const FoundKernel& kernel, llvm::Function* callee, const clang::CodeGen::CGFunctionInfo& abi) {
    llvm::SmallVector<llvm::Type*> types;
    for (const Parameter& parameter : kernel.kernel.parameters)
      if (parameter.kind != ParameterKind::Input)
        types.push_back(b_.getPtrTy(parameter.kind == ParameterKind::Threadgroup ? 3 : 1));
    auto* entry = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                         llvm::Function::ExternalLinkage, "__vx_entry", module_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "", entry));
    unsigned pointer = 0, position = 0;
    for (const Parameter& parameter : kernel.kernel.parameters) {
      const clang::ParmVarDecl* decl = kernel.decl->getParamDecl(position);
      const ABIArgInfo& how = (abi.arg_begin() + position)->info;
      ++position;
      if (parameter.kind == ParameterKind::Input) {
        pass(input(parameter, decl->getType()), how);
        continue;
      }
      llvm::Value* value = entry->getArg(pointer);
      if (isConstant(decl->getType())) {
        entry->addParamAttr(pointer, llvm::Attribute::NoAlias);
        entry->addParamAttr(pointer, llvm::Attribute::ReadOnly);
      }
      value->setName(parameter.name);
      arguments_.push_back(value);
      ++pointer;
    }
    if (arguments_.size() != callee->arg_size())
      return nullptr;
    auto* call = b_.CreateCall(callee, arguments_);
    call->setCallingConv(callee->getCallingConv());
    b_.CreateRetVoid();
    return entry;
  }

private:
  /// In memory that nobody writes while the kernel runs: what was loaded stays, also across barriers.
  static bool isConstant(clang::QualType type) {
    const clang::QualType of = type->getPointeeType();
    return !of.isNull() && of.getAddressSpace() == clang::LangAS::sycl_global_device;
  }

  /// The input in memory, as Clang lays its type out.
  llvm::Value* input(const Parameter& parameter, clang::QualType type) {
    unsigned count = 1;
    clang::QualType elem = type;
    if (auto* record = type->getAsCXXRecordDecl()) {
      auto* instance = llvm::cast<clang::ClassTemplateSpecializationDecl>(record);
      elem = instance->getTemplateArgs()[0].getAsType();
      count = static_cast<unsigned>(instance->getTemplateArgs()[1].getAsIntegral().getZExtValue());
    }
    llvm::Type* scalar = b_.getIntNTy(static_cast<unsigned>(context_.getTypeSize(elem)));
    auto bytes = static_cast<uint64_t>(context_.getTypeSizeInChars(type).getQuantity());
    auto* slot = b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), bytes));
    slot->setAlignment(llvm::Align(16));
    auto hook = module_.getOrInsertFunction("__vx_input_" + parameter.input, b_.getInt32Ty(), b_.getInt32Ty());
    auto* function = llvm::cast<llvm::Function>(hook.getCallee());
    function->setDoesNotAccessMemory();
    function->setDoesNotThrow();
    function->addFnAttr(llvm::Attribute::WillReturn);
    for (unsigned axis = 0; axis < count; ++axis) {
      llvm::Value* value = b_.CreateTrunc(b_.CreateCall(hook, {b_.getInt32(axis)}), scalar);
      b_.CreateStore(value, b_.CreateConstGEP1_64(scalar, slot, axis));
    }
    return slot;
  }

  void pass(llvm::Value* slot, const ABIArgInfo& how) {
    switch (how.getKind()) {
    case ABIArgInfo::Direct:
    case ABIArgInfo::Extend: {
      llvm::Type* type = how.getCoerceToType();
      auto* fields = llvm::dyn_cast<llvm::StructType>(type);
      if (!fields || how.isExtend() || !how.getCanBeFlattened()) {
        arguments_.push_back(b_.CreateLoad(type, slot));
        return;
      }
      for (unsigned i = 0; i < fields->getNumElements(); ++i)
        arguments_.push_back(b_.CreateLoad(fields->getElementType(i), b_.CreateStructGEP(fields, slot, i)));
      return;
    }
    case ABIArgInfo::Indirect:
    case ABIArgInfo::IndirectAliased: arguments_.push_back(slot); return;
    default: return;
    }
  }

  clang::ASTContext& context_;
  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  llvm::SmallVector<llvm::Value*> arguments_;
};

}  // namespace

llvm::Function* makeEntry(clang::CodeGen::CodeGenModule& codegen, clang::ASTContext& context, const FoundKernel& kernel,
                          llvm::Function* function) {
  llvm::SmallVector<clang::CanQualType> types;
  for (const clang::ParmVarDecl* decl : kernel.decl->parameters())
    types.push_back(context.getCanonicalParamType(decl->getType()));
  const auto& abi = clang::CodeGen::arrangeFreeFunctionCall(
      codegen, context.VoidTy, types, clang::FunctionType::ExtInfo(), clang::CodeGen::RequiredArgs::All);
  return Bridge(context, *function->getParent()).build(kernel, function, abi);
}

}  // namespace vortex::msl::front
