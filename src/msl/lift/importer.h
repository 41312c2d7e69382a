#pragma once

#include "msl/lift/import.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IntrinsicInst.h>

namespace vortex::msl::lift {

class Importer {
public:
  Importer(front::Unit& unit, const std::vector<Memory>& memories, mlir::ModuleOp module);
  mlir::func::FuncOp run();

private:
  void refuse(const llvm::Instruction* at, const std::string& message);
  mlir::Location location(const llvm::Instruction& at);
  mlir::Type type(llvm::Type* type, const llvm::Instruction* at);
  mlir::Value constant(const llvm::Constant* value);
  mlir::Value value(const llvm::Value* value);
  mlir::Value threadValue(ThreadValue which);
  ir::ViewType viewType(const Memory& memory);
  llvm::SmallVector<mlir::Value> incoming(const llvm::BasicBlock* from, const llvm::BasicBlock* to);
  void importTerminator(llvm::Instruction& at);

  // import_ops.cpp
  void importInstruction(llvm::Instruction& at);
  mlir::Value binary(llvm::BinaryOperator& at);
  mlir::Value compare(llvm::CmpInst& at);
  mlir::Value cast(llvm::CastInst& at);
  mlir::Value extended(llvm::Value* number, mlir::Type to, bool isSigned, unsigned depth = 0);
  mlir::Value total(ir::IntKind kind, mlir::Value a, mlir::Value b);
  mlir::Value integer(mlir::Type type, uint64_t number);
  mlir::arith::FastMathFlags flags(const llvm::Instruction& at);

  // import_calls.cpp
  mlir::Value intrinsic(llvm::IntrinsicInst& call);
  mlir::Value classTest(llvm::IntrinsicInst& call, mlir::Value number);
  mlir::Value signedSaturation(llvm::IntrinsicInst& call, mlir::Value a, mlir::Value b);
  mlir::Value bitIntrinsic(llvm::IntrinsicInst& call, mlir::Value a);
  mlir::Value hook(llvm::CallInst& call, llvm::StringRef name);
  mlir::Value mathHook(llvm::CallInst& call, llvm::StringRef name);
  mlir::Value warpHook(llvm::CallInst& call, llvm::StringRef name);
  mlir::Value memoryHook(llvm::CallInst& call, llvm::StringRef name);
  void fence(llvm::CallInst& call);
  void barrier(llvm::CallInst& call);
  mlir::Value input(llvm::StringRef name, unsigned axis);

  front::Unit& unit_;
  bool isContractionForbidden_;
  const std::vector<Memory>& memories_;
  mlir::OpBuilder b_;
  mlir::Location loc_;
  const llvm::Instruction* at_ = nullptr;  ///< what is imported
  mlir::ModuleOp module_;
  mlir::func::FuncOp function_;
  llvm::DenseMap<const llvm::Value*, mlir::Value> values_;
  llvm::DenseMap<const llvm::BasicBlock*, mlir::Block*> blocks_;
};

}  // namespace vortex::msl::lift
