// One vxt.kernel → one Metal kernel. Vectors of vxt are scalars here, one variable per lane: Metal's GPUs are scalar, and vxt's vectors may be
// wider than four elements.
#pragma once

#include "ir/vxt.h"
#include "target/metal/functions.h"
#include "target/metal/instructions.h"
#include "target/metal/scalars.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Module.h>
#include <mlir/Dialect/Func/IR/FuncOps.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <string>
#include <vector>

namespace vortex::target::metal {

namespace vxt = ir::vxt;

using Texts = llvm::SmallVector<std::string>;

class KernelWriter {
public:
  KernelWriter(vxt::KernelOp kernel, Functions& functions);
  /// `tensors`: first slots of those that it takes.
  std::string write(const std::vector<uint32_t>& tensors);
  std::string error;          ///< first op that Metal has not, with its location
  bool usesWideBits = false;  ///< the text calls vx_f64_bits

private:
  // writer.cpp
  void writeBlock(mlir::Block& block);
  void writeOp(mlir::Operation* op);
  bool writeWideBits(mlir::Operation* op);
  void writeElementwise(mlir::Operation* op);
  void writeLanes(mlir::Operation* op, llvm::Function& function);
  void writeCall(mlir::func::CallOp call);
  std::string writeFunction(mlir::func::FuncOp function);
  void writeFor(mlir::scf::ForOp op);
  void writeIf(mlir::scf::IfOp op);
  void writeWhile(mlir::scf::WhileOp op);
  void nested(llvm::function_ref<void()> body);
  std::string signature(const std::vector<uint32_t>& tensors);
  void fail(mlir::Operation* op, const std::string& why = {});

  void line(const std::string& text) { body_ += std::string(2 * depth_, ' ') + text + "\n"; }
  std::string freshName() { return "v" + std::to_string(names_++); }
  /// `T name = text;`
  std::string declare(const std::string& type, const std::string& text);
  /// One variable per lane of the type, without values.
  Texts declareAll(mlir::Type type);
  std::string typeOf(mlir::Type type);  ///< of one lane; pointers as `device uchar*`
  llvm::Type* llvmType(mlir::Type type) { return gpu::valueType(context_, type); }

  const Texts& lanes(mlir::Value value);
  std::string text(mlir::Value value, unsigned lane = 0);
  void set(mlir::Value value, Texts texts) { values_[value] = std::move(texts); }
  void set(mlir::Value value, std::string text) { values_[value] = {std::move(text)}; }
  /// Variables of `types` that get `values` at the end of each way to them.
  void assign(const std::vector<Texts>& variables, mlir::ValueRange values);
  std::string asSigned(mlir::Value value);

  // writer_memory.cpp
  bool writeMemory(mlir::Operation* op);
  std::string address(mlir::Value base, mlir::Value index, mlir::Type element);
  void writeLoad(vxt::LoadOp op);
  void writeStore(vxt::StoreOp op);
  /// Runs `body` under the condition; empty: always.
  void guarded(const std::string& condition, llvm::function_ref<void()> body);

  // writer_atomics.cpp
  bool writeAtomic(mlir::Operation* op);
  /// `reinterpret_cast<device atomic_uint*>(…)`; empty: not a width that Metal has atomics of.
  std::string atomicPlace(mlir::Operation* op, mlir::Value base, mlir::Value index, mlir::Type type);
  void writeRmw(vxt::AtomicRmwOp op);
  void writeCas(vxt::AtomicCasOp op);
  std::string bitsOf(const std::string& text, mlir::Type type);
  std::string fromBits(const std::string& text, mlir::Type type);
  void writeAssert(vxt::AssertOp op);
  void writePrint(vxt::PrintOp op);
  /// Two words of the report.
  void writeReport(const std::string& place, const std::string& value);

  // writer_vectors.cpp
  bool writeVector(mlir::Operation* op);
  Texts bitcast(const Texts& from, mlir::Type fromType, mlir::Type toType);

  // writer_warp.cpp
  bool writeWarp(mlir::Operation* op);
  void writeShuffle(vxt::ShuffleOp op);

  // writer_matrices.cpp
  bool writeMatrices(mlir::Operation* op);
  std::string matrixPlace(mlir::Value base, mlir::Value index, mlir::Value fragment);

  vxt::KernelOp kernel_;
  Functions& functions_;
  llvm::LLVMContext context_;
  llvm::Module module_;
  MetalScalars scalars_;
  llvm::DenseMap<mlir::Value, Texts> values_;
  llvm::DenseMap<mlir::Value, llvm::Constant*> constants_;  ///< of scalars
  llvm::DenseMap<mlir::Operation*, std::string> called_;    ///< names of functions in the file
  std::string body_;
  unsigned depth_ = 1, names_ = 0;
  bool usesReport_ = false, usesShared_ = false;
};

}  // namespace vortex::target::metal
