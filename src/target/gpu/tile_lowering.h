// The seam between block-level lowering and tile code (target/gpu/tiles).
//
// The block lowering walks a kernel in order. It handles scalars, views, scf, regions and memory of single elements itself and passes every
// other op with a tensor operand or result here. How a tile is spread over the threads, and whether it is evaluated at once or as part of
// a later loop, is decided here.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <mlir/IR/Operation.h>

namespace vortex::target::gpu {

class Lowering;

class TileLowering {
public:
  virtual ~TileLowering() = default;

  /// Hardware threads (a multiple of 32, ≤ 1024) for a phase that uses tiles; `logicalThreads`: of its vx.threads regions, if it has any
  /// and if known. Called before anything is lowered.
  virtual int64_t chooseThreads(mlir::Operation* phase, std::optional<int64_t> logicalThreads) = 0;

  /// Control flow is about to be lowered: memory for tiles that its regions hand on, where that outlives them.
  virtual void reserveResults(mlir::Operation*) {}
  /// Everything of `op`, of a block that is not a thread's, is lowered.
  virtual void lowered(mlir::Operation*) {}

  /// Lowers all of the phase in its own way; false: it is lowered op by op.
  virtual bool lowerPhase() { return false; }

  /// Called for each op with tiles, in program order. Results that are scalars (element, full reductions) are set with
  /// Lowering::setScalar, the same value in every thread. What it cannot do goes to Lowering::fail.
  virtual void lower(mlir::Operation* op) = 0;

  /// Rank-1 tiles of block extent enter and leave regions as one value per slot (Lowering::slots): element logicalId(slot). Slots past the
  /// logical count hold anything.
  virtual llvm::SmallVector<mlir::Value> threadValues(mlir::Value tile) = 0;
  virtual void bindThreadValues(mlir::Value tile, llvm::ArrayRef<mlir::Value> values) = 0;

  /// Tiles through control flow: the registers of this thread that hold `tile`, in the form that `target` (block argument or result) is
  /// going to have; the first call for a target chooses the form, later ones (other side of a branch, next iteration) follow it.
  virtual llvm::SmallVector<mlir::Value> registersFor(mlir::Value tile, mlir::Value target) = 0;
  /// `target` is held by these registers from now on. Forms may be shared: `like` is a target whose form was chosen (may equal `target`).
  virtual void bindRegisters(mlir::Value target, mlir::Value like, llvm::ArrayRef<mlir::Value> registers) = 0;

  /// Memory that holds what flows to the target has accesses that no barrier orders yet.
  virtual bool isPending(mlir::Value) { return false; }

  /// Called before effects of the block lowering on memory (regions, scalar stores, atomics, scf with effects inside): lazily evaluated
  /// tiles that read memory must be evaluated first.
  virtual void flushReads(mlir::Operation* effect) = 0;
  /// Stores that wait to be emitted together are emitted: memory that they read or write is about to be given to others.
  virtual void flushStores() = 0;

  /// An #vx.swizzle for a shared allocation whose layout the program leaves open; null: row-major.
  virtual mlir::Attribute chooseSwizzle(mlir::Operation*) { return {}; }

  /// Control flow whose tiles are going to be evaluated where they are used: nothing to lower at its place.
  virtual bool defers(mlir::Operation*) { return false; }

  /// Around the regions of block-level scf ops: tiles made inside are not used after leave, except through registersFor before it.
  virtual void enterScope() = 0;
  virtual void leaveScope() = 0;
};

}  // namespace vortex::target::gpu
