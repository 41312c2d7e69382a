// Loads, stores, asynchronous copies. Vectors wider than 16 bytes are split by LLVM; alignment decides how wide the pieces are.
#include "target/nvidia/emitter.h"

#include "base/check.h"

#include <llvm/ADT/TypeSwitch.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

namespace vortex::target::nvidia {

static unsigned addressSpace(ir::Space space) {
  switch (space) {
  case ir::Space::Global: return kGlobal;
  case ir::Space::Shared: return kShared;
  case ir::Space::Constant: return kGlobal;  // parameters in constant space are ordinary device memory, read only
  case ir::Space::Local: return kLocal;
  }
  return kGeneric;
}

/// `.extern .shared`: its size is given at launch.
Value* Emitter::sharedBuffer() {
  constexpr llvm::StringLiteral name = "vx_shared";
  llvm::GlobalVariable* buffer = state_.module.getNamedGlobal(name);
  if (!buffer) {
    auto* type = llvm::ArrayType::get(ir_.getInt8Ty(), 0);
    buffer = new llvm::GlobalVariable(state_.module, type, false, llvm::GlobalValue::ExternalLinkage, nullptr, name,
                                      nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
    buffer->setAlignment(llvm::Align(1024));
  }
  return buffer;
}

Value* Emitter::wideIndex(mlir::Value index) {
  Value* emitted = value(index);
  return index.getType().isIndex() ? emitted : ir_.CreateZExt(emitted, ir_.getInt64Ty());
}

Value* Emitter::address(mlir::Value base, mlir::Value index, mlir::Type element) {
  Value* pointer = value(base);
  llvm::Type* scalar = memoryType(ir_.getContext(), element);
  Value* wide = wideIndex(index);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(wide); known && known->isZero())
    return pointer;
  // Shared addresses have 32 bits: a wider index is cut, which wraps the same way.
  if (mlir::cast<vxt::PtrType>(base.getType()).getSpace() == ir::Space::Shared)
    wide = ir_.CreateTrunc(wide, ir_.getInt32Ty());
  return ir_.CreateGEP(scalar, pointer, wide);
}

void Emitter::markAlias(llvm::Instruction* access, mlir::Value base) {
  while (auto offset = base.getDefiningOp<vxt::OffsetOp>())
    base = offset.getBase();
  auto found = aliasScopes_.find(base);
  if (found == aliasScopes_.end())
    return;
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, found->second.first);
  access->setMetadata(llvm::LLVMContext::MD_noalias, found->second.second);
}

static llvm::Align alignmentOf(mlir::Type type, int64_t given) {
  return llvm::Align(std::max(given, vxt::scalarBytes(mlir::getElementTypeOrSelf(type))));
}

//===-- accesses with a word to the caches: inline assembly, LLVM has no such operand ------------------------------===//

static std::string hints(vxt::Cache cache) {
  switch (cache) {
  case vxt::Cache::ReadOnlyStreaming: return ".nc.L1::no_allocate";
  case vxt::Cache::Streaming: return ".cs";
  case vxt::Cache::Global: return ".cg";
  default: return "";
  }
}

/// Pieces of 4, 8 or 16 bytes as .b32 words; other sizes go without hints.
static bool hasHintedForm(mlir::Type type, int64_t alignment) {
  int64_t bytes = vxt::valueBytes(type);
  return (bytes == 4 || bytes == 8 || bytes == 16) && alignment >= bytes;
}

Value* Emitter::hintedLoad(vxt::LoadOp op, Value* pointer, unsigned space) {
  mlir::Type loaded = op.getResult().getType();
  int64_t alignment = alignmentOf(loaded, op.getAlignment()).value();
  if (space != kGlobal || hints(op.getCache()).empty() || !hasHintedForm(loaded, alignment))
    return nullptr;
  unsigned count = vxt::valueBytes(loaded) / 4;
  std::string text = "ld.global" + hints(op.getCache()), outputs, constraints;
  for (unsigned i = 0; i < count; ++i) {
    outputs += (i ? ", $" : "$") + std::to_string(i);
    constraints += "=r,";
  }
  text += (count == 1 ? ".b32 " + outputs : ".v" + std::to_string(count) + ".b32 {" + outputs + "}") + ", [$" +
          std::to_string(count) + "];";
  bool readOnly = op.getCache() == vxt::Cache::ReadOnlyStreaming;
  constraints += readOnly ? "l" : "l,~{memory}";
  llvm::SmallVector<llvm::Type*> parts(count, ir_.getInt32Ty());
  llvm::Type* result = count == 1 ? parts[0] : llvm::StructType::get(ir_.getContext(), parts);
  auto* assembly =
      llvm::InlineAsm::get(llvm::FunctionType::get(result, {pointer->getType()}, false), text, constraints, !readOnly);
  Value* raw = ir_.CreateCall(assembly, {pointer});
  Values all;
  for (unsigned i = 0; i < count; ++i)
    all.push_back(count == 1 ? raw : ir_.CreateExtractValue(raw, i));
  return loadedFrom(all, loaded);
}

static bool isVectorOfBools(mlir::Type type) {
  return mlir::isa<mlir::VectorType>(type) && mlir::getElementTypeOrSelf(type).isInteger(1);
}

/// Bools are compared where they are in their words: one instruction each, where taking the byte out first is another.
Value* Emitter::loadedFrom(llvm::ArrayRef<Value*> words, mlir::Type type) {
  const unsigned lanes = lanesOf(type);
  if (!isVectorOfBools(type) || lanes % 4 != 0)
    return fromMemory(ir_, type, fromWords(words, memoryType(ir_.getContext(), type, lanes)));
  Value* all = llvm::PoisonValue::get(this->type(type));
  for (unsigned lane = 0; lane < lanes; ++lane) {
    Value* byte = ir_.CreateAnd(words[lane / 4], ir_.getInt32(0xFFU << (lane % 4 * 8)));
    all = ir_.CreateInsertElement(all, ir_.CreateICmpNE(byte, ir_.getInt32(0)), uint64_t(lane));
  }
  return all;
}

/// LLVM would store the words of a vector of bytes one by one.
static bool isRunOfBytes(mlir::Type type) {
  return vxt::scalarBytes(mlir::getElementTypeOrSelf(type)) == 1 && vxt::valueBytes(type) > 4;
}

bool Emitter::hintedStore(vxt::StoreOp op, Value* pointer) {
  mlir::Type stored = op.getValue().getType();
  if (op.getBase().getType().getSpace() != ir::Space::Global ||
      (hints(op.getCache()).empty() && !isRunOfBytes(stored)) ||
      !hasHintedForm(stored, alignmentOf(stored, op.getAlignment()).value()))
    return false;
  Values parts = words(toMemory(ir_, stored, value(op.getValue())));
  std::string inputs, constraints = "l";
  llvm::SmallVector<llvm::Type*> types{pointer->getType()};
  for (unsigned i = 0; i < parts.size(); ++i) {
    inputs += (i ? ", $" : "$") + std::to_string(i + 1);
    constraints += ",r";
    types.push_back(ir_.getInt32Ty());
  }
  std::string text = "st.global" + hints(op.getCache()) +
                     (parts.size() == 1 ? ".b32 [$0], " + inputs + ";"
                                        : ".v" + std::to_string(parts.size()) + ".b32 [$0], {" + inputs + "};");
  auto* assembly = llvm::InlineAsm::get(llvm::FunctionType::get(ir_.getVoidTy(), types, false), text,
                                        constraints + ",~{memory}", true);
  parts.insert(parts.begin(), pointer);
  ir_.CreateCall(assembly, parts);
  return true;
}

//===-- loads and stores ----------------------------------------------------------------------------------------===//

Value* Emitter::load(vxt::LoadOp op, Value* pointer) {
  mlir::Type loaded = op.getResult().getType();
  unsigned space = addressSpace(op.getBase().getType().getSpace());
  if (Value* hinted = hintedLoad(op, pointer, space))
    return hinted;
  const llvm::Align alignment = alignmentOf(loaded, op.getAlignment());
  const bool isInWords = isVectorOfBools(loaded) && lanesOf(loaded) % 4 == 0 && alignment.value() >= 4;
  llvm::Type* inMemory = isInWords ? llvm::FixedVectorType::get(ir_.getInt32Ty(), lanesOf(loaded) / 4)
                                   : memoryType(ir_.getContext(), loaded, lanesOf(loaded));
  llvm::LoadInst* access = ir_.CreateAlignedLoad(inMemory, pointer, alignment);
  if (op.getCache() == vxt::Cache::ReadOnly || op.getCache() == vxt::Cache::ReadOnlyStreaming)
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(ir_.getContext(), {}));
  markAlias(access, op.getBase());
  return isInWords ? loadedFrom(words(access), loaded) : fromMemory(ir_, loaded, access);
}

void Emitter::store(vxt::StoreOp op, Value* pointer) {
  if (hintedStore(op, pointer))
    return;
  mlir::Type stored = op.getValue().getType();
  markAlias(ir_.CreateAlignedStore(toMemory(ir_, stored, value(op.getValue())), pointer,
                                   alignmentOf(stored, op.getAlignment())),
            op.getBase());
}

Value* Emitter::guardOf(mlir::Value mask) {
  if (!mask)
    return predicate_;
  return predicate_ ? ir_.CreateAnd(predicate_, value(mask)) : value(mask);
}

void Emitter::emitLoad(vxt::LoadOp op) {
  mlir::Type loaded = op.getResult().getType();
  Value* pointer = address(op.getBase(), op.getIndex(), mlir::getElementTypeOrSelf(loaded));
  Value* guard = guardOf(op.getMask());
  if (!guard)
    return set(op, load(op, pointer));
  if (hasPredicatedForm(loaded, op.getBase(), alignmentOf(loaded, op.getAlignment()).value())) {
    bool isGlobal = op.getBase().getType().getSpace() == ir::Space::Global;
    std::string how = !isGlobal ? "" : op.getCache() == vxt::Cache::ReadOnly ? ".nc" : hints(op.getCache());
    return set(op, predicatedLoad(loaded, op.getBase(), pointer, guard, how));
  }
  Value* zero = llvm::Constant::getNullValue(type(loaded));
  set(op, target::emitIf(ir_, guard, [&] { return Values{load(op, pointer)}; }, [&] { return Values{zero}; })[0]);
}

void Emitter::emitStore(vxt::StoreOp op) {
  mlir::Type stored = op.getValue().getType();
  Value* pointer = address(op.getBase(), op.getIndex(), mlir::getElementTypeOrSelf(stored));
  Value* guard = guardOf(op.getMask());
  if (!guard)
    return store(op, pointer);
  if (hasPredicatedForm(stored, op.getBase(), alignmentOf(stored, op.getAlignment()).value())) {
    bool isGlobal = op.getBase().getType().getSpace() == ir::Space::Global;
    return predicatedStore(stored, op.getBase(), pointer, toMemory(ir_, stored, value(op.getValue())), guard,
                           isGlobal ? hints(op.getCache()) : "");
  }
  target::emitIf(ir_, guard, [&] { store(op, pointer); });
}

void Emitter::emitAsyncCopy(vxt::AsyncCopyOp op) {
  Value* to = address(op.getDestination(), op.getDestinationIndex(), op.getElement());
  Value* from = address(op.getSource(), op.getSourceIndex(), op.getElement());
  namespace in = llvm::Intrinsic;
  bool partial = op.getSourceBytes() != nullptr;
  llvm::Intrinsic::ID id = in::not_intrinsic;
  switch (op.getBytes()) {
  case 4: id = partial ? in::nvvm_cp_async_ca_shared_global_4_s : in::nvvm_cp_async_ca_shared_global_4; break;
  case 8: id = partial ? in::nvvm_cp_async_ca_shared_global_8_s : in::nvvm_cp_async_ca_shared_global_8; break;
  default: id = partial ? in::nvvm_cp_async_cg_shared_global_16_s : in::nvvm_cp_async_cg_shared_global_16; break;
  }
  Values operands{to, from};
  if (partial)
    operands.push_back(value(op.getSourceBytes()));
  ir_.CreateIntrinsic(id, {}, operands);
}

void Emitter::emitMemory(mlir::Operation* op) {
  namespace in = llvm::Intrinsic;
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](vxt::SharedOp shared) {
        set(shared, ir_.CreateConstInBoundsGEP1_32(ir_.getInt8Ty(), sharedBuffer(), shared.getOffset()));
      })
      .Case([&](vxt::LocalOp local) {
        auto* type = llvm::ArrayType::get(memoryType(ir_.getContext(), local.getElement()), local.getCount());
        uint64_t align = std::max<uint64_t>(local.getAlignment(), vxt::scalarBytes(local.getElement()));
        // Generic pointers to the stack; NVPTX finds the space itself, and what is indexed by constants becomes registers.
        set(local, target::entryAlloca(ir_, type, align));
      })
      .Case(
          [&](vxt::OffsetOp offset) { set(offset, address(offset.getBase(), offset.getIndex(), offset.getElement())); })
      .Case([&](vxt::AddressOp address) {
        set(address, ir_.CreatePtrToInt(value(address.getBase()), type(address.getResult().getType())));
      })
      .Case([&](vxt::LoadOp load) { emitLoad(load); })
      .Case([&](vxt::StoreOp store) { emitStore(store); })
      .Case([&](vxt::AsyncCopyOp copy) { emitAsyncCopy(copy); })
      .Case([&](vxt::AsyncCommitOp) { ir_.CreateIntrinsic(in::nvvm_cp_async_commit_group, {}, {}); })
      .Case([&](vxt::AsyncWaitOp wait) {
        ir_.CreateIntrinsic(in::nvvm_cp_async_wait_group, {}, {ir_.getInt32(wait.getPending())});
      });
}

}  // namespace vortex::target::nvidia
