// How much of each split axis a block takes.
#pragma once

#include "passes/plan/clusters.h"
#include "passes/plan/rules.h"

namespace vortex::passes {

/// Partial results per block, then their combination.
bool isSplit(const Cluster& cluster);

/// The cluster's product, null without one.
ir::DotOp findDot(const Cluster& cluster);
/// All that it multiplies, inside of control flow, too.
llvm::SmallVector<ir::DotOp> productsOf(const Cluster& cluster);

class Chunks {
public:
  using Sizes = llvm::SmallVector<ir::SizeAttr>;
  Chunks(mlir::MLIRContext* context, const TensorSchedule& schedule, const Axes& axes, const Clusters& clusters)
      : context_(context), schedule_(schedule), axes_(axes), clusters_(clusters) {}

  /// One size per parallel axis of the cluster.
  Sizes choose(const Cluster& cluster) {
    if (looksBack(cluster))
      return {size(heldScanElements(cluster))};
    if (cluster.kind == Cluster::Kind::SplitScan && cluster.parallel.size() > 1)
      return chooseScanPieces(cluster);
    return isSplit(cluster) ? chooseSplits(cluster) : chooseChunks(cluster, size(1), innerElements(cluster));
  }
  /// Of a cluster that combines `depth` partial results per element of its results. `inner`: results for each place along its axes.
  Sizes chooseCombining(const Cluster& cluster, ir::SizeAttr depth, ir::SizeAttr inner);
  /// Elements of the widest tile along axes that are not split.
  ir::SizeAttr innerElements(const Cluster& cluster);
  /// A scan whose blocks wait for those before them.
  bool looksBack(const Cluster& cluster);
  /// Of a scan along an outer dimension: not zero where its columns alone would not occupy the device.
  ir::SizeAttr hasFewColumns(const Cluster& cluster, llvm::ArrayRef<ir::SizeAttr> chunks);
  ir::SizeAttr blockCount(const Cluster& cluster, llvm::ArrayRef<ir::SizeAttr> chunks);
  /// The cluster writes rows that it reduces, too: their blocks take as many rows as they keep.
  bool keepsRows(const Cluster& cluster);
  /// Of the pieces that `choose` makes of a cluster, elements along the parallel axes together at most; nothing: not known (products, splits).
  std::optional<int64_t> mostElements(const Cluster& cluster);

  /// How many blocks the device runs at the same time; null: sizes do not depend on it.
  ir::SizeAttr workers;

private:
  Sizes chooseChunks(const Cluster& cluster, ir::SizeAttr depth, ir::SizeAttr inner);
  /// How many blocks a product is cut into along its rows and columns.
  struct DotGrid {
    ir::SizeAttr rows, columns;
  };
  DotGrid evenGrid(const Cluster& cluster, ir::DotOp dot);
  ir::SizeAttr evenChunk(const Cluster& cluster, ir::DotOp dot, Axis axis);
  Sizes chooseSplits(const Cluster& cluster);
  int64_t heldScanElements(const Cluster& cluster);
  Sizes chooseScanPieces(const Cluster& cluster);
  int64_t streamedElementBytes(const Cluster& cluster);
  int64_t narrowBytes(const Cluster& cluster);
  bool writesOnlyRows(const Cluster& cluster);
  ir::SizeAttr rowsAtOnce(const Cluster& cluster, ir::SizeAttr inner);
  int64_t mostPerBlock(const Cluster& cluster);
  ir::SizeAttr elementsPerBlock(const Cluster& cluster, ir::SizeAttr inner);
  int64_t squareSide(const Cluster& cluster);
  ir::SizeAttr squarePiece(const Cluster& cluster, const AxisSet& squares, Axis axis);
  AxisSet squareAxes(const Cluster& cluster);
  ir::SizeAttr balancedRows(Axis axis);
  ir::SizeAttr dotChunk(const Cluster& cluster, ir::DotOp dot, Axis axis);
  bool isInnermost(const Cluster& cluster, Axis axis);
  ir::SizeAttr size(int64_t value) { return ir::sizeConstant(context_, value); }

  mlir::MLIRContext* context_;
  const TensorSchedule& schedule_;
  const Axes& axes_;
  const Clusters& clusters_;
};

}  // namespace vortex::passes
