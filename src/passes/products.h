// In which ways launches may run a product: sizes of blocks, pieces of its depth, copies of its operands. Decided before any phase is built.
#pragma once

#include "passes/bulk_products.h"

#include <optional>

namespace vortex::passes {

/// Blocks that multiply pieces of the depth, then a phase that adds their sums and does what follows the product.
struct DepthSplit {
  Axis depth{};
  llvm::SmallVector<ir::SizeAttr> pieces;  ///< of the cluster's parallel axes
  ir::SizeAttr step, count;                ///< elements per piece of the depth, number of pieces
  unsigned partials = 0;                   ///< the argument of the sums
  const char* name = "";                   ///< of the way
  ir::SizeAttr when;                       ///< of launches that the ways before it are not for
  TensorSchedule schedule;                 ///< of the pieces
};

/// Copies of operands in aligned rows, made before the product.
struct AlignedCopies {
  llvm::SmallVector<std::pair<ir::TileLoadOp, unsigned>> loads;  ///< with the arguments of the copies
  ir::SizeAttr when;                                             ///< of launches that do not split the depth
};

/// The ways of one product beside the plain one, in the order in which launches ask.
struct ProductWays {
  std::optional<BulkPlan> bulk;
  ir::SizeAttr bulkWhen;                    ///< of launches that prefer it to all others
  llvm::SmallVector<DepthSplit, 2> splits;  ///< in the order in which launches ask
  std::optional<AlignedCopies> copies;
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

  /// Not zero for launches that have too few of so many blocks; null: there is one size of blocks only.
  ir::SizeAttr isSmall(ir::SizeAttr blocks);
  /// Of the blocks of such launches.
  TensorSchedule small() const;

private:
  ir::SizeAttr paysToSplit(const Cluster& cluster, ir::DotOp dot);
  void addBulk(const Cluster& cluster, ir::SizeAttr workers, ProductWays& ways);
  void addSplits(const Cluster& cluster, ProductWays& ways);
  DepthSplit split(const Cluster& cluster, ir::DotOp dot, TensorSchedule schedule);
  void addCopies(const Cluster& cluster, ProductWays& ways);
  ir::DotOp splittable(const Cluster& cluster);
  ir::TileLoadOp copyableLoad(mlir::Value operand);
  ir::SizeAttr isMisaligned(ir::TileLoadOp load);
  TensorSchedule thin() const;
  int64_t fewBlocks() const { return schedule_.dotSplitBlocks / 4 + 1; }
  ir::SizeAttr smallBlocks(const Cluster& cluster);
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
