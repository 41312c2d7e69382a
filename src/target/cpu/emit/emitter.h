// State of emitting one body function of a kernel, shared by all parts of the emitter.
//
// A body function gets (slots, block, scratch, one noalias pointer per tensor argument) and returns 0 or 1 + fault. Views, ids and
// extents are loaded in its entry block. Block-level scalars are plain LLVM values in `scalars`; they are the uniform
// values of the block.
#pragma once

#include "artifact/artifact.h"
#include "target/cpu/codegen/target.h"
#include "target/cpu/emit/elementwise.h"
#include "target/cpu/emit/loops.h"
#include "target/cpu/emit/scratch.h"
#include "target/cpu/emit/tile_emitter.h"
#include "target/cpu/emit/types.h"
#include "target/cpu/emit/view.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/Twine.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <mlir/IR/BuiltinTypes.h>
#include <mlir/IR/Operation.h>

namespace vortex::analysis {
class SharedLifetimes;
}
namespace vortex::ir {
class KernelOp;
class EntryOp;
}  // namespace vortex::ir

namespace vortex::target::cpu::emit {

class Emitter;

/// What all functions of one module share.
struct ModuleState {
  llvm::Module& module;
  const codegen::Target& target;
  ir::EntryOp& entry;
  artifact::Kernel& kernel;  ///< params are filled; faults and notes grow while emitting
  std::string error;         ///< first construct that could not be emitted, with its location
  std::unique_ptr<TileEmitter> (*makeTiles)(Emitter& emitter) = nullptr;
};

class Emitter {
public:
  Emitter(ModuleState& state, ir::KernelOp& kernel, llvm::Function* function, bool unitStrides);
  ~Emitter();

  /// The whole body; the function is complete afterwards.
  void run();

  llvm::IRBuilder<> ir;
  ModuleState& state;
  ir::KernelOp& kernel;
  llvm::Function* function;
  const VectorFeatures& features;
  const bool unitStrides;  ///< innermost strides are innermostStride(): one, but for fields of structs
  std::unique_ptr<Scratch> scratch;
  std::unique_ptr<TileEmitter> tiles;

  llvm::LLVMContext& context() { return ir.getContext(); }
  llvm::Value* i64(int64_t value) { return ir.getInt64(value); }

  /// A block-uniform scalar. Constants are emitted on demand.
  llvm::Value* scalar(mlir::Value value);
  void setScalar(mlir::Value value, llvm::Value* emitted) { scalars_[value] = emitted; }
  const View& view(mlir::Value value);
  void setView(mlir::Value value, View view) { views_[value] = std::move(view); }

  /// Emits the ops of a block-level block without its terminator.
  void emitBlock(mlir::Block& block);
  void emitOp(mlir::Operation* op);

  /// Run-time value of a size over the launch slots, computed once in the entry block (dominates everything).
  llvm::Value* size(size::Expr expr);
  /// A size over the launch slots that `index` never exceeds: exact when it is computed from extents, scalar arguments, constants and block
  /// sizes; one side of a minimum. Null when no such bound is visible.
  size::Expr upperBound(mlir::Value index);
  /// Logical threads of the block along an axis.
  size::Expr blockSize(unsigned axis) const { return blockSize_[axis]; }

  /// Uninitialised memory for a tile in the current scratch scope. `dynamicExtents`: the index values of the `?` extents, in order; each must
  /// have an upper bound, else fail(op).
  TileBuffer allocateTile(mlir::Operation* op, mlir::RankedTensorType type, llvm::ArrayRef<mlir::Value> dynamicExtents);
  /// The same with given bounds.
  TileBuffer allocateTile(mlir::Type elementType, llvm::ArrayRef<llvm::Value*> extents,
                          llvm::ArrayRef<size::Expr> bounds);

  /// Memory for `tile` itself, with the extents found on its producers.
  TileBuffer allocateFor(mlir::Operation* op, mlir::Value tile);
  /// Copies all elements; the buffers have the same extents and do not overlap.
  void copyTile(const TileBuffer& from, const TileBuffer& to);

  /// The construct at `op` is not supported: recorded with its location; emission goes on with poison and the result is discarded.
  void fail(mlir::Operation* op, const llvm::Twine& message);

  /// Index of a fault raised at `op`, for returnFault and prints.
  uint32_t addFault(mlir::Operation* op, llvm::StringRef id, llvm::StringRef message);
  /// Ends the block's function with this fault where `condition` (i1) holds, after what `before` emits.
  void returnFaultIf(llvm::Value* condition, uint32_t fault, llvm::function_ref<void()> before = {});
  /// The same with what the function returns.
  void returnIf(llvm::Value* condition, uint32_t code, llvm::function_ref<void()> before = {});
  /// CpuBlock::meet; the block ends where another one has failed.
  void emitMeeting();
  /// The entry that describes the values of a vx.print or vx.assert.
  uint32_t addValues(mlir::Operation* op, llvm::StringRef text, mlir::ValueRange values,
                     llvm::ArrayRef<bool> isUnsigned);
  /// CpuBlock::print with these raw 64-bit values, once.
  void emitPrint(uint32_t fault, llvm::ArrayRef<llvm::Value*> bits);
  llvm::Value* printBits(mlir::Type type, llvm::Value* value, bool isUnsigned);

  /// Value of an element type's neutral zero, scalar.
  llvm::Value* zero(mlir::Type type, unsigned lanes = 1) {
    return llvm::Constant::getNullValue(valueType(context(), type, lanes));
  }
  /// Address that is always readable: `pointer` where `condition`, else 16 bytes of zeros. For branch-free guarded scalar loads.
  llvm::Value* pointerOrZeros(llvm::Value* condition, llvm::Value* pointer);

  llvm::Value* blockPointer(uint64_t offset);  ///< a pointer of CpuBlock
  llvm::Value* slotsArgument() const { return function->getArg(0); }
  llvm::Value* blockArgument() const { return function->getArg(1); }
  llvm::Value* blockId[3] = {};
  llvm::Value* gridDim[3] = {};
  llvm::Value* blockDim[3] = {};

private:
  llvm::Value* emitSize(const size::Node& node, const std::array<llvm::Value*, 3>& operands);
  void emitEntry();
  void emitScfFor(mlir::Operation* op);
  void emitScfIf(mlir::Operation* op);
  void emitScfWhile(mlir::Operation* op);
  void emitMemory(mlir::Operation* op);
  void emitAlloc(mlir::Operation* op);
  llvm::Value* placeShared(mlir::Operation* alloc, uint64_t bytes);
  void emitSubview(mlir::Operation* op);
  void emitDebug(mlir::Operation* op);

  llvm::DenseMap<mlir::Value, llvm::Value*> scalars_;
  llvm::DenseMap<mlir::Value, View> views_;
  std::unordered_map<const size::Node*, llvm::Value*> sizes_;
  std::unique_ptr<analysis::SharedLifetimes> lifetimes_;
  llvm::DenseMap<mlir::Operation*, Scratch::Piece> sharedPieces_;
  llvm::Instruction* entryEnd_ = nullptr;  ///< sizes are emitted before it
  size::Expr blockSize_[3];
};

}  // namespace vortex::target::cpu::emit
