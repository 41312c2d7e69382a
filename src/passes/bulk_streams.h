// Online softmax between two products in one phase of bulk copies: which kernels, and in which launches. Other launches run the kernel as it was
// before the rewrite of stream_reductions.h, so this works on a rewritten copy of it.
#pragma once

#include "passes/chunks.h"
#include "passes/entry_arguments.h"
#include "passes/stream_loop.h"

#include <memory>

namespace vortex::passes {

class BulkStreams {
public:
  /// A phase for launches of one width of operands.
  struct Way {
    llvm::StringRef plan;
    int64_t step;                            ///< elements of the streamed axis per iteration
    llvm::SmallVector<ir::SizeAttr> pieces;  ///< of the cluster's parallel axes
    ir::SizeAttr blocks;
    ir::SizeAttr when;  ///< not zero for launches that are no wider
  };

  /// Null where the rewrite does not apply to all of the whole-tensor kernel of `module`, or no launch can copy what it reads. `module` gets the
  /// notes of the rewrite.
  static std::unique_ptr<BulkStreams> find(mlir::ModuleOp module, const TensorSchedule& schedule,
                                           const EntryArguments& arguments);

  ir::KernelOp kernel() const { return kernel_; }
  const Axes& axes() const { return *axes_; }
  const Clusters& clusters() const { return *clusters_; }
  const Cluster& cluster() const { return cluster_; }
  llvm::ArrayRef<Way> ways() const { return ways_; }  ///< narrowest first
  ir::SizeAttr needs() const { return needs_; }       ///< not zero for launches that can run them

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
  bool isScalar(mlir::Value value);
  bool requireReachable(mlir::Value view);
  bool require(ir::SizeAttr condition);
  void addWay(const TensorSchedule::StreamTile& tile);

  mlir::OwningOpRef<mlir::ModuleOp> copy_;
  const TensorSchedule& schedule_;
  const EntryArguments& arguments_;
  ir::KernelOp kernel_;
  std::unique_ptr<Axes> axes_;
  std::unique_ptr<Clusters> clusters_;
  Cluster cluster_;
  std::optional<StreamLoop> stream_;
  llvm::SmallVector<Way> ways_;
  ir::SizeAttr needs_, width_;
  llvm::DenseSet<mlir::Value> known_;  ///< not computed from others, or seen
  unsigned operations_ = 0;
};

}  // namespace vortex::passes
