// Operands of products that a phase before writes where bulk copies can take them: which can be, and in which launches that pays.
#pragma once

#include "passes/plan/chunks.h"
#include "passes/plan/entry_arguments.h"

namespace vortex::passes {

/// An operand that is computed, or lies across the depth where the matrix unit reads along it. It goes to rows that bulk copies can take.
struct WrittenOperand {
  mlir::Value tile;
  unsigned depth = 0;  ///< of the tile's dimensions
  bool isA = false;
  CopiedLoad copy{};  ///< turned: the depth is innermost; else the dimensions are the tile's
  /// Of each element, where it is computed: operations, and bytes that are read for it.
  int64_t operations = 0, sourceBytes = 0;

  bool isTurned() const { return !copy.permutation.empty(); }
};

/// Those of one product.
class WrittenOperands {
public:
  /// `temporaries`: values that cross phases.
  WrittenOperands(const TensorSchedule& schedule, const Axes& axes, const Clusters& clusters, EntryArguments& arguments,
                  const Temporaries& temporaries)
      : schedule_(schedule), axes_(axes), clusters_(clusters), arguments_(arguments), temporaries_(temporaries) {}

  void clear() { all_.clear(); }
  llvm::ArrayRef<WrittenOperand> all() const { return all_; }

  /// Neither in memory nor read there turned, repeated or in part.
  bool isComputed(mlir::Value tile) const;
  /// False: no phase can write it. `isTurned`: with its depth innermost.
  bool addLoaded(ir::TileLoadOp load, unsigned depth, bool isA);
  bool addComputed(mlir::Value tile, unsigned depth, bool isA, bool isTurned);
  /// Gives them memory.
  void addTemporaries();
  /// Not zero for launches in which what is only turned is multiplied often enough, and what is computed is read so often that computing it in each
  /// block that does takes longer. `workers`: blocks that the device runs at once.
  ir::SizeAttr pay(const Cluster& cluster, ir::DotOp dot, ir::SizeAttr workers) const;

private:
  bool findWork(WrittenOperand& operand) const;
  bool add(WrittenOperand operand, bool isTurned);
  int64_t elementBytes(mlir::Value tile) const;

  const TensorSchedule& schedule_;
  const Axes& axes_;
  const Clusters& clusters_;
  EntryArguments& arguments_;
  const Temporaries& temporaries_;
  llvm::SmallVector<WrittenOperand, 2> all_;
};

}  // namespace vortex::passes
