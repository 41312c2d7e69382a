// In which ways launches may run a product: sizes of blocks, pieces of its depth, copies of its operands. Decided before any phase is built.
#pragma once

#include "passes/plan/bulk_products.h"

#include <optional>

namespace vortex::passes {

/// Blocks that multiply pieces of the depth, in one of several sizes, then a phase that adds their sums and does what follows the product.
struct DepthSplit {
  struct Blocks {
    const char* name;
    ir::SizeAttr when;                       ///< of launches that the sizes before are not for; null: all
    llvm::SmallVector<ir::SizeAttr> pieces;  ///< of the cluster's parallel axes
    TensorSchedule schedule;
  };
  Axis depth{};
  ir::SizeAttr when;
  ir::SizeAttr step, count;  ///< elements per piece of the depth, number of pieces: for blocks of all sizes
  unsigned partials = 0;     ///< the argument of the sums
  llvm::SmallVector<Blocks, 2> blocks;
};

/// The ways of one product beside the plain one, in the order in which launches ask.
struct ProductWays {
  std::optional<BulkPlan> bulk;
  ir::SizeAttr bulkWhen;  ///< of launches that prefer it to all others
  std::optional<DepthSplit> split;
  std::optional<DepthSplit> thin;  ///< reads operands as they lie: of few rows, or small ones of a long depth
  llvm::SmallVector<AlignedCopy, 2> copies;
  /// Of launches whose operands are so small that no way of reading them is worth a copy; null: of none.
  ir::SizeAttr isTiny;
};

class Products {
public:
  /// `temporaries`: values that cross phases.
  Products(const TensorSchedule& schedule, const Axes& axes, const Clusters& clusters, EntryArguments& arguments,
           const Temporaries& temporaries)
      : context_(arguments.context()), schedule_(schedule), axes_(axes), clusters_(clusters), arguments_(arguments),
        bulk_(schedule, axes, clusters, arguments, temporaries) {}

  /// What the product of a cluster has, none without one; its temporaries become arguments. `workers`: blocks that the device runs at once.
  ProductWays plan(const Cluster& cluster, ir::SizeAttr workers);

  mlir::MLIRContext* context() const { return context_; }
  /// Not zero for launches that have too few of so many blocks, or fill half of one at most; null: there is one size of blocks only.
  ir::SizeAttr isSmall(ir::DotOp dot, ir::SizeAttr blocks);
  /// Of the blocks of such launches.
  TensorSchedule small() const;

private:
  ir::SizeAttr paysToSplit(const Cluster& cluster, ir::DotOp dot);
  ir::SizeAttr paysToSplit(const Cluster& cluster, ir::DotOp dot, int64_t leastDepth);
  void addBulk(const Cluster& cluster, ir::SizeAttr workers, ProductWays& ways);
  void addSplit(const Cluster& cluster, ProductWays& ways);
  void addThin(const Cluster& cluster, ProductWays& ways);
  void addPieces(ir::DotOp dot, ir::SizeAttr blocks, ir::SizeAttr most, DepthSplit& split);
  void addBlocks(const Cluster& cluster, ir::DotOp dot, DepthSplit& split);
  void addCopies(const Cluster& cluster, ProductWays& ways);
  ir::DotOp splittable(const Cluster& cluster);
  ir::TileLoadOp copyableLoad(mlir::Value operand);
  ir::SizeAttr isAligned(unsigned argument);
  ir::SizeAttr elements(ir::TileLoadOp load);
  TensorSchedule thin() const;
  ir::SizeAttr alignedRow(ir::SizeAttr elements);
  int64_t fewBlocks() const { return schedule_.dotSplitBlocks / 4 + 1; }
  ir::SizeAttr blockCount(const Cluster& cluster, const TensorSchedule& schedule);
  ir::SizeAttr size(int64_t value) { return ir::sizeConstant(context_, value); }
  ir::SizeAttr combine(size::Op op, ir::SizeAttr a, ir::SizeAttr b) { return ir::sizeBinary(op, a, b); }

  mlir::MLIRContext* context_;
  const TensorSchedule& schedule_;
  const Axes& axes_;
  const Clusters& clusters_;
  EntryArguments& arguments_;
  BulkProducts bulk_;
};

}  // namespace vortex::passes
