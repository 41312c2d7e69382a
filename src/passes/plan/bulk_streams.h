// Online softmax between two products in one phase of bulk copies: which kernels, and in which launches. Other launches run the kernel as it was
// before the rewrite of stream_reductions.h, so this works on a rewritten copy of it.
#pragma once

#include "passes/build/stream_parts.h"
#include "passes/plan/chunks.h"
#include "passes/plan/entry_arguments.h"
#include "passes/plan/stream_loop.h"

#include <memory>

namespace vortex::passes {

class BulkStreams {
public:
  /// A phase for launches of one width of operands.
  struct Way {
    llvm::StringRef plan;
    int64_t step;                            ///< elements of the streamed axis per iteration
    int64_t width, duration;                 ///< of the tile (rules.h)
    llvm::SmallVector<ir::SizeAttr> pieces;  ///< of the cluster's parallel axes
    ir::SizeAttr blocks;
    ir::SizeAttr when;  ///< not zero for launches that are no wider
  };

  /// Phases for launches of few rows and long streams, of which one runs; then one that combines what its blocks leave.
  struct PieceWay {
    llvm::StringRef name;
    ir::SizeAttr when;
    StreamParts parts;
    llvm::SmallVector<Way, 3> ways;
  };

  /// Null where the rewrite does not apply to all of the whole-tensor kernel of `module`, or no launch can copy what it reads. `module` gets the
  /// notes of the rewrite.
  static std::unique_ptr<BulkStreams> find(mlir::ModuleOp module, const TensorSchedule& schedule,
                                           const EntryArguments& arguments);

  void compareRounds(ir::SizeAttr workers);
  /// Adds ways in pieces. `workers`: cores. `addLet`: has launches compute a number.
  void addPieceWays(ir::SizeAttr workers, llvm::function_ref<ir::SizeAttr(ir::SizeAttr)> addLet);
  /// Of those ways: they become arguments.
  void addTemporaries(EntryArguments& arguments);

  ir::KernelOp kernel() const { return kernel_; }
  const Axes& axes() const { return *axes_; }
  const Clusters& clusters() const { return *clusters_; }
  const Cluster& cluster() const { return cluster_; }
  const StreamLoop& stream() const { return *stream_; }
  llvm::ArrayRef<Way> ways() const { return ways_; }  ///< narrowest first
  /// Asked before those.
  llvm::ArrayRef<PieceWay> pieceWays() const { return pieceWays_; }
  ir::SizeAttr needs() const { return needs_; }  ///< not zero for launches that can run them

private:
  BulkStreams(mlir::ModuleOp copy, const TensorSchedule& schedule, const EntryArguments& arguments);

  bool addCluster();
  bool addLoop(mlir::scf::ForOp loop);
  /// Results, or values per row, in any order and grouping of the batch's dimensions.
  bool addStore(ir::TileStoreOp store);
  /// Blocks have rows of one batch, whose numbers follow each other as the results' do: neighbours read the same keys.
  bool orderAxes();
  llvm::SmallVector<Axis> resultAxes();
  /// Rows of 16-bit floats, their elements one after another in memory, through transposes, repetitions and regrouped dimensions. `rows`: which
  /// dimension counts them.
  bool addOperand(mlir::Value operand, int64_t rows);
  bool addTile(mlir::Value tile);
  /// Adds dimensions of extent 1, drops them, or regroups the batch's.
  bool keepsRows(ir::ReshapeOp reshape) const;
  llvm::SmallVector<Axis> regroupedAxes(ir::ReshapeOp reshape) const;
  bool isScalar(mlir::Value value);
  bool requireReachable(mlir::Value view);
  bool requireApart(const Placement& placement, Axis columns);
  bool require(ir::SizeAttr condition);
  void addWay(const TensorSchedule::StreamTile& tile);
  /// Whether blocks may have several elements of dimension `dim` instead of the rows: queries that share all keys and values, and follow one another
  /// in memory as rows do.
  bool canBeRows(int64_t dim);
  bool isRepeatedAlong(mlir::Value operand, int64_t dim) const;
  ir::SizeAttr rowExtent(unsigned dim);
  llvm::SmallVector<ir::SizeAttr> piecesOf(unsigned rows, int64_t size);
  void addPieceWay(unsigned rows, llvm::StringRef name, ir::SizeAttr isBetter, ir::SizeAttr workers,
                   llvm::function_ref<ir::SizeAttr(ir::SizeAttr)> addLet);

  mlir::OwningOpRef<mlir::ModuleOp> copy_;
  const TensorSchedule& schedule_;
  const EntryArguments& arguments_;
  ir::KernelOp kernel_;
  std::unique_ptr<Axes> axes_;
  std::unique_ptr<Clusters> clusters_;
  Cluster cluster_;
  std::optional<StreamLoop> stream_;
  llvm::SmallVector<Way> ways_;
  llvm::SmallVector<PieceWay, 2> pieceWays_;
  ir::SizeAttr needs_, width_;
  llvm::DenseSet<mlir::Value> known_;  ///< not computed from others, or seen
  AxisSet regrouped_;                  ///< in what is computed of the scores
  unsigned operations_ = 0;
};

}  // namespace vortex::passes
