// The seam between block-level emission and tile code.
//
// The block emitter walks a kernel in order. It handles scalars, views, scf, regions and memory of single elements itself and passes every
// other op with a tensor operand or result here. Whether a tile is evaluated at once, or later as part of a fused loop nest, is decided
// here; what the block emitter needs in memory it asks for with materialize.
#pragma once

#include "target/cpu/emit/view.h"

#include <memory>
#include <mlir/IR/Operation.h>

namespace vortex::target::cpu::emit {

class Emitter;

class TileEmitter {
public:
  virtual ~TileEmitter() = default;

  /// Called for each op with tiles, in program order. Results that are scalars (element, full reductions) are set with
  /// Emitter::setScalar. What it cannot do goes to Emitter::fail.
  virtual void emit(mlir::Operation* op) = 0;

  /// The tile in memory, valid until the scratch scope that is current now ends. Memory may be shared with other values: read-only.
  virtual TileBuffer materialize(mlir::Value tile) = 0;

  /// Writes the tile into `destination`, which may be memory that the tile itself is computed from (a loop-carried tile).
  virtual void materializeInto(mlir::Value tile, const TileBuffer& destination) = 0;

  /// `tile` (result of a region, an scf op, or a block argument) is this memory from now on.
  virtual void bind(mlir::Value tile, TileBuffer buffer) = 0;

  /// Called before effects of the block emitter on memory (regions, scalar stores, atomics, scf with effects inside): lazily
  /// evaluated tiles that read memory must be evaluated first.
  virtual void flushReads(mlir::Operation* effect) = 0;

  /// Stores that wait to be emitted together are emitted: memory that they read or write is about to be given to others.
  virtual void flushStores() = 0;

  /// Around the regions of block-level scf ops: tiles made inside are not used after leave, except through
  /// materializeInto before it. The kernel's body is left the same way, without being entered.
  virtual void enterScope() = 0;
  virtual void leaveScope() = 0;
};

}  // namespace vortex::target::cpu::emit
