// Writes one phase: clones the operations of a cluster onto the piece of the parallel axes that a block owns.
#pragma once

#include "passes/build/piece_cloner.h"
#include "passes/build/stream_parts.h"
#include "passes/plan/clusters.h"
#include "passes/plan/entry_arguments.h"
#include "passes/plan/stream_loop.h"

namespace vortex::passes {

class PhaseBuilder : public PieceCloner {
public:
  /// `kernel`: the new phase, with an empty entry block that has the arguments of the entry.
  PhaseBuilder(ir::KernelOp source, ir::KernelOp kernel, const Axes& axes, const Clusters& clusters,
               const Temporaries& temporaries);

  /// Decodes the block id (x) into offsets and sizes of the axes. `chunks[i]` elements of axis `parallel[i]` per block.
  /// `group` > 1: of the last two axes, blocks go down `group` pieces of the first before they move to the next piece of the second, so
  /// that blocks that run together share what they read.
  /// Returns what is left of the block's id where it counts more than these pieces (`isPart`).
  mlir::Value split(llvm::ArrayRef<Axis> parallel, llvm::ArrayRef<ir::SizeAttr> chunks, int64_t group = 1,
                    bool isPart = false);
  void emitRoot(mlir::Operation* op);
  /// Writes the results of a root that other phases need.
  void storeTemporaries(mlir::Operation* op);
  /// Writes the block's piece of a tile to its copy in memory.
  void emitCopy(mlir::Value tile, const CopiedLoad& copy);
  void finish();

  /// The block's piece of a reduction goes to partials[number, …].
  void emitPartial(ir::ReduceOp reduce, mlir::Value number, unsigned argument);
  /// The block's piece of a product's depth, summed from zero, goes to partials[number, …].
  void emitPartialProduct(ir::DotOp dot, mlir::Value number, unsigned argument);
  /// A scan of one dimension that is split over blocks: what the block's piece combines to, what comes before every piece, and the piece.
  void emitScanPartial(ir::ScanOp scan, mlir::Value number, unsigned partials);
  void emitScanCarries(ir::ScanOp scan, unsigned partials, unsigned carries);
  void emitScanPiece(ir::ScanOp scan, mlir::Value number, unsigned carries);
  /// What a streamed loop, which is emitted, has of piece `number` goes to temporaries; what all pieces have left stands for the loop.
  void storeParts(mlir::scf::ForOp loop, const StreamParts& parts, mlir::Value number);
  void combineParts(const StreamLoop& stream, const StreamParts& parts);
  /// The same in one phase. The block takes its number from `state`, which was zero.
  void takeNumber(ir::ScanOp scan, unsigned state);
  void emitLookBackPiece(ir::ScanOp scan, unsigned state);
  /// Zeros, `chunk` elements per block.
  void emitClear(ir::SizeAttr extent, int64_t chunk, unsigned argument);
  /// Which piece of a split axis the block has.
  mlir::Value number(Axis axis) const { return number_.lookup(axis); }
  /// Reductions whose partial results are combined where the value is needed: temporaries with the pieces along the first dimension.
  Temporaries partials;
  /// Tiles that an earlier phase has copied: the copies are read instead.
  llvm::DenseMap<mlir::Value, CopiedLoad> copies;
  /// What is known of temporaries with pieces along their first dimension; null: there are none whose number changes from round to round.
  const EntryArguments* arguments = nullptr;
  /// Stands for the block's id; null: that itself.
  mlir::Value blockNumber;

private:
  mlir::Value provide(mlir::Value value) override;
  mlir::Operation* clone(mlir::Operation* op) override;
  /// (piece of the first axis, piece of the second) of block `number` in grouped order.
  std::pair<mlir::Value, mlir::Value> groupedPieces(mlir::Value number, mlir::Value rows, mlir::Value columns,
                                                    int64_t group);
  /// The block's piece of a value in memory, along the axes of `like`.
  mlir::Value loadTemporary(mlir::Value value, unsigned argument, mlir::Value like);
  mlir::Value loadCopy(mlir::Value value, const CopiedLoad& copy);
  /// Stores the block's piece of what `reshape` flattens, at `offset` and its place in the result.
  mlir::Operation* storeFlattened(ir::ReshapeOp reshape, mlir::Value view, mlir::Value offset, bool inbounds);
  /// Stores the block's piece of what `reshape` regroups at its place in the result.
  mlir::Operation* storeByPiece(ir::ReshapeOp reshape, ir::TileStoreOp store);
  mlir::Value numberBefore(mlir::Value whole, unsigned rows);
  mlir::Value loadParts(mlir::Value whole, unsigned rows, unsigned argument);
  mlir::Value placeCombined(mlir::Value whole, mlir::Value value, unsigned rows);
  /// How many pieces have left something in a temporary, as static extent or value.
  int64_t pieceCount(unsigned argument, mlir::Location loc, llvm::SmallVector<mlir::Value>& extents);
  mlir::Value combinePartials(mlir::Value value, unsigned argument);
  void storePartial(mlir::Value piece, llvm::ArrayRef<Axis> axes, mlir::Value number, unsigned argument);
  /// What numbered temporaries of a scan hold: its dimensions but for the scanned one, as in the block's piece.
  struct Columns {
    llvm::SmallVector<Axis> axes;
    llvm::SmallVector<int64_t> shape;
    llvm::SmallVector<mlir::Value> extents, offsets;
  };
  Columns columnsOf(ir::ScanOp scan);
  mlir::Value rowOf(mlir::Value view, mlir::Value number, mlir::Location loc);
  mlir::Value widen(mlir::Value value);
  mlir::Value narrow(mlir::Value value, mlir::Type type);

  const Clusters& clusters_;
  const Temporaries& temporaries_;
  llvm::DenseMap<Axis, mlir::Value> number_;
};

}  // namespace vortex::passes
