// Products whose operands bulk copies can take from memory as they lie: which they are, and in which launches.
#pragma once

#include "passes/chunks.h"
#include "passes/phase_builder.h"

namespace vortex::passes {

/// A product in persistent phases, of which a launch takes one.
struct BulkPlan {
  struct Phase {
    const TensorSchedule::BulkTile* tile;
    llvm::SmallVector<ir::SizeAttr> pieces;  ///< of the cluster's parallel axes
    ir::SizeAttr tiles, cost;
    ir::SizeAttr blocks;  ///< 0 in launches for which another phase costs less
  };
  llvm::SmallVector<Phase> phases;
  ir::SizeAttr used;    ///< 1 for launches that can and should run one of them, else 0
  ir::SizeAttr isFull;  ///< 1 for launches with tiles for so many workers that splitting the depth does not pay
};

class BulkProducts {
public:
  /// `types`: of all arguments, temporaries included. `temporaries`: values that cross phases.
  BulkProducts(const TensorSchedule& schedule, const Axes& axes, const Clusters& clusters,
               llvm::ArrayRef<mlir::Type> types, const Temporaries& temporaries)
      : schedule_(schedule), axes_(axes), clusters_(clusters), types_(types), temporaries_(temporaries) {}

  /// `workers`: blocks that the device runs at once. Nothing where no launch can run the product so.
  std::optional<BulkPlan> plan(const Cluster& cluster, ir::DotOp dot, ir::SizeAttr workers);

private:
  /// What a launch must have for the roots of `cluster`, a product and stores, to run as one phase of bulk copies; null: no launch can.
  ///
  /// The operands are whole tensors in memory (also transposed) of one 16-bit float type; what is stored has the product's axes and follows from
  /// it, other tensors and scalars of the launch, element by element.
  ir::SizeAttr needs(const Cluster& cluster, ir::DotOp dot);
  BulkPlan::Phase planPhase(const Cluster& cluster, const TensorSchedule::BulkTile& tile, ir::SizeAttr workers);
  bool require(ir::SizeAttr condition);
  bool requireReachable(unsigned argument);
  bool requireWhole(unsigned argument, llvm::ArrayRef<Axis> axes);
  bool addOperand(mlir::Value operand, bool isA);
  bool addStore(ir::TileStoreOp store);
  bool addResult(mlir::Type element, unsigned argument, mlir::Value value);
  bool addTile(mlir::Value tile);
  bool isScalar(mlir::Value value);

  const TensorSchedule& schedule_;
  const Axes& axes_;
  const Clusters& clusters_;
  llvm::ArrayRef<mlir::Type> types_;
  const Temporaries& temporaries_;
  ir::DotOp dot_;
  ir::SizeAttr needs_;
  llvm::DenseSet<mlir::Value> seen_;
  unsigned operations_ = 0;
};

}  // namespace vortex::passes
