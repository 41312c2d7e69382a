// vxt.kernel → one LLVM function for NVPTX.
//
// The function has one by-value parameter: launch slots, the report's address, tensor maps (artifact/device_report.h). Everything is straight
// IRBuilder code walked in order; scf becomes basic blocks.
#pragma once

#include "ir/vxnv.h"
#include "target/interface/loops.h"
#include "target/nvidia/scalars.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/Twine.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <mlir/Dialect/Func/IR/FuncOps.h>

namespace vortex::target::nvidia {

namespace vxt = ir::vxt;
using llvm::Value;

/// Address spaces of NVPTX.
enum AddressSpace : unsigned { kGeneric = 0, kGlobal = 1, kShared = 3, kConstant = 4, kLocal = 5 };

struct ModuleState {
  llvm::Module& module;
  uint32_t slotCount;
  unsigned architecture = 80;  ///< compute capability times ten
  double tanhError = 1;        ///< chip::Gpu's
  std::string error = {};      ///< first op that could not be emitted, with its location
};

class Emitter {
public:
  Emitter(ModuleState& state, vxt::KernelOp kernel);
  void run();
  /// A device function that stays one, emitted at its first call.
  static llvm::Function* functionOf(ModuleState& state, mlir::func::CallOp call);

private:
  // emitter.cpp
  size_t mapCount();
  void createFunction();
  void emitArguments();
  void annotate();
  void emitBlock(mlir::Block& block);
  void emitOp(mlir::Operation* op);
  void emitFor(mlir::scf::ForOp op);
  void emitIf(mlir::scf::IfOp op);
  void emitWhile(mlir::scf::WhileOp op);
  void emitCall(mlir::func::CallOp op);
  void emitId(mlir::Operation* op, llvm::Intrinsic::ID intrinsic);
  void fail(mlir::Operation* op);
  Value* value(mlir::Value vxtValue);
  Values all(mlir::ValueRange values);
  void set(mlir::Value vxtValue, Value* emitted) { values_[vxtValue] = emitted; }
  void setAll(mlir::ValueRange targets, llvm::ArrayRef<Value*> emitted);
  llvm::Type* type(mlir::Type vxtType) { return valueType(ir_.getContext(), vxtType, lanesOf(vxtType)); }

  // vectors.cpp
  bool emitVector(mlir::Operation* op);

  // memory.cpp
  void emitMemory(mlir::Operation* op);
  Value* address(mlir::Value base, mlir::Value index, mlir::Type element);
  Value* wideIndex(mlir::Value index);
  void emitLoad(vxt::LoadOp op);
  void emitStore(vxt::StoreOp op);
  Value* load(vxt::LoadOp op, Value* pointer);
  Value* loadedFrom(llvm::ArrayRef<Value*> words, mlir::Type type);
  void store(vxt::StoreOp op, Value* pointer);
  Value* hintedLoad(vxt::LoadOp op, Value* pointer, unsigned space);
  bool hintedStore(vxt::StoreOp op, Value* pointer);
  void emitAsyncCopy(vxt::AsyncCopyOp op);
  /// Metadata that tells accesses of different arguments apart.
  void markAlias(llvm::Instruction* access, mlir::Value base);
  Value* sharedBuffer();

  // predicated.cpp
  bool hasPredicatedForm(mlir::Type type, mlir::Value base, int64_t alignment);
  Value* predicatedLoad(mlir::Type type, mlir::Value base, Value* pointer, Value* mask, llvm::StringRef hints);
  void predicatedStore(mlir::Type type, mlir::Value base, Value* pointer, Value* stored, Value* mask,
                       llvm::StringRef hints);
  bool isPredicable(mlir::Block* block, unsigned& accesses);
  bool emitPredicated(mlir::scf::IfOp op);
  /// The op's mask and the predicate of the code around it; null: always.
  Value* guardOf(mlir::Value mask);

  // atomics.cpp
  bool emitAtomic(mlir::Operation* op);
  void emitFence(vxt::FenceOp op);
  Value* atomicAsm(llvm::StringRef instruction, mlir::Value base, Value* pointer, llvm::ArrayRef<Value*> operands,
                   llvm::Type* result);
  Value* casLoop(ir::Combine kind, mlir::Type type, mlir::Value base, Value* pointer, Value* operand,
                 llvm::StringRef qualifiers);

  // warp.cpp
  bool emitWarp(mlir::Operation* op);
  Value* shuffle(vxt::ShuffleOp op);
  Value* shuffleWord(ir::ShuffleKind kind, Value* word, Value* lane, Value* mask);
  Value* warpMask(mlir::Value mask) { return mask ? value(mask) : ir_.getInt32(-1); }
  void emitLoadMatrix(vxt::LoadMatrixOp op);
  void emitMma(vxt::MmaOp op);
  Values mma(llvm::StringRef name, llvm::ArrayRef<Values> fragments);
  Values matrixRegisters(mlir::Value fragment, bool isAccumulator);
  bool emitWidenPairs(mlir::arith::ExtFOp op);
  llvm::CallInst* convergent(llvm::CallInst* call);
  Values words(Value* value);
  Value* fromWords(llvm::ArrayRef<Value*> words, llvm::Type* type);

  // grid_barrier.cpp
  void emitGridBarrier(vxt::GridBarrierOp op);

  // hopper.cpp
  bool emitHopper(mlir::Operation* op);
  Value* sharedAddress(mlir::Value pointer);
  Value* mapAddress(int64_t map);
  void emitBulkLoad(ir::vxnv::BulkLoadOp op);
  void emitBulkStore(ir::vxnv::BulkStoreOp op);
  void emitBarrierWait(ir::vxnv::BarrierWaitOp op);
  void emitStoreMatrix(ir::vxnv::StoreMatrixOp op);
  void emitNamedBarrier(ir::vxnv::NamedBarrierOp op);
  void emitWgmma(ir::vxnv::WgmmaOp op);
  void emitWgmma(ir::vxnv::WgmmaRegistersOp op);
  template <typename Product> void emitProduct(Product op, llvm::ArrayRef<Value*> a, const std::string& across);
  Values sumsAsm(const std::string& text, mlir::ValueRange sums, bool isRead, llvm::ArrayRef<Value*> others);

  // report.cpp
  void emitAssert(vxt::AssertOp op);
  void emitPrint(vxt::PrintOp op);
  Value* reportField(uint64_t offset);

  ModuleState& state_;
  vxt::KernelOp kernel_;
  llvm::Function* function_ = nullptr;
  llvm::IRBuilder<> ir_;
  NvidiaScalars scalars_;
  Value* predicate_ = nullptr;  ///< of the accesses being emitted; null: always
  llvm::DenseMap<mlir::Value, Value*> values_;
  llvm::DenseMap<mlir::Value, std::pair<llvm::MDNode*, llvm::MDNode*>>
      aliasScopes_;  ///< alias.scope, noalias per argument
};

}  // namespace vortex::target::nvidia
