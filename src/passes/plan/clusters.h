// Groups the operations of a whole-tensor kernel into phases whose blocks are independent.
#pragma once

#include "passes/plan/axes.h"

#include <vector>

namespace vortex::passes {

/// Operations that run in one grid launch. `roots` are the operations with a place of their own (reductions, products, scans, stores,
/// effects, control flow), in program order; everything else is recomputed where it is needed.
struct Cluster {
  enum class Kind {
    Parallel,      ///< blocks take pieces of the parallel axes
    ScalarReduce,  ///< one reduction of everything to a scalar: partial results per block, then a combining phase
    SplitReduce,  ///< one reduction of leading dimensions: partial results for pieces of them, combined by whoever needs the result
    SplitScan,  ///< a scan of a vector, or along an outer dimension, the first parallel one: combinations of pieces, what comes before each, the pieces
    Serial,     ///< one block does it all
  };
  Kind kind = Kind::Parallel;
  std::vector<mlir::Operation*> roots;
  AxisSet whole;   ///< axes some operation needs whole
  AxisSet shared;  ///< axes of every output
  bool hasOutput = false;
  /// Axes split over blocks, outermost first.
  llvm::SmallVector<Axis> parallel;
};

/// What may share a phase, see TensorSchedule.
struct ClusterRules {
  bool fusedOnly = false;
  bool splitReductions = false;
};

/// A loop or branch in which a tile is read from elements that other blocks may write there: each has to see all that was written before.
bool readsWhatOthersWrite(mlir::Operation* op, const Axes& axes);

class Clusters {
public:
  Clusters(ir::KernelOp kernel, const Axes& axes, ClusterRules rules = {});

  std::vector<Cluster> list;
  bool isRoot(mlir::Operation* op) const { return cluster_.contains(op); }
  unsigned clusterOf(mlir::Operation* root) const { return cluster_.lookup(root); }
  /// The tile that one of the roots writes flattened; null: none does. Blocks then take pieces that lie together in memory.
  mlir::Value flattened(const Cluster& cluster) const;
  /// Calls `visit` for the values an operation uses from outside itself, through regions.
  static void forEachOperand(mlir::Operation* op, llvm::function_ref<void(mlir::Value)> visit);
  /// Calls `visit` for the values of other roots that `op` is computed from, through recomputed operations, and for recomputed loads.
  void forEachSource(mlir::Operation* op, llvm::function_ref<void(mlir::Value)> visit) const;

private:
  void startCluster(mlir::Operation* op);
  bool needsPlace(mlir::Operation* op) const;
  bool mustStartCluster(mlir::Operation* op, const Cluster& cluster) const;
  bool storesTo(mlir::Value view, const Cluster& cluster) const;
  bool extend(Cluster& cluster, mlir::Operation* op) const;
  bool isFusable(mlir::Operation* op, const Cluster& cluster) const;
  bool readsApart(mlir::Operation* op, const Cluster& cluster) const;
  mlir::Value flattenedBy(mlir::Operation* root) const;
  bool isUnrelatedProduct(mlir::Operation* op, const Cluster& cluster) const;
  bool losesBlocks(mlir::Operation* op, const Cluster& cluster) const;
  bool losesRows(const Cluster& cluster, const Cluster& next) const;
  bool splits(mlir::Operation* op) const;
  bool splitsScan(mlir::Operation* op) const;
  AxisSet wholeFor(ir::ScanOp scan) const;
  void addLazyWhole(mlir::Operation* op, AxisSet& whole) const;
  void finish(Cluster& cluster) const;
  void finishSplit(Cluster& cluster) const;

  const Axes& axes_;
  ClusterRules rules_;
  llvm::DenseSet<mlir::Value> written_;  ///< views this kernel stores to
  llvm::DenseMap<mlir::Operation*, unsigned> cluster_;
};

}  // namespace vortex::passes
