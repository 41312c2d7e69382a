// Products whose operands bulk copies can take from memory as they lie: which they are, and in which launches.
#pragma once

#include "passes/build/phase_builder.h"
#include "passes/plan/written_operands.h"

#include <optional>

namespace vortex::passes {

/// What an operand of a product is made of by nothing but transposes, repetition along its batch and conversions that leave its numbers as they are.
struct OperandSource {
  mlir::Value tile;
  mlir::Type element;             ///< of the tile
  bool isUnsigned = false;        ///< integers that are widened without a sign
  int64_t rows = 0, columns = 0;  ///< dimensions of the tile that are the operand's last two
};
/// `isSource`: where the way ends, besides loads and what is computed.
OperandSource sourceOf(ir::DotOp dot, bool isA, llvm::function_ref<bool(mlir::Value)> isSource);

/// What phases of bulk copies do, to whole tensors and to windows of tile code (tile_products.h).
///
/// Most operations of what finishes a pair of sums. It is unrolled 64 times; the code should not grow beyond a few thousand operations.
inline constexpr unsigned kMostFinishing = 62;
/// The product's sums begin at 0.
bool beginsAtZero(ir::DotOp dot);
/// As operands of the matrix unit, by what lies in memory.
bool isMultiplied(mlir::Type type, ir::DotOp dot);
bool isStorable(mlir::Type element);

/// An operand that products read in aligned rows: its own, or those of a copy made before.
struct AlignedCopy {
  mlir::Value tile;        ///< loaded
  CopiedLoad copy;         ///< stands for the load's tensor in launches that make none
  ir::SizeAttr isAligned;  ///< not zero for those
};

/// A product in a persistent phase, in tiles of one of several sizes.
struct BulkPlan {
  struct Tile {
    llvm::StringRef plan;
    llvm::SmallVector<ir::SizeAttr> pieces;  ///< of the cluster's parallel axes
    ir::SizeAttr count, blocks, cost;
  };
  /// A launch takes the one of least cost. The others: threads store the results, which lie anyhow as what is read beside the operands does; none: only
  /// launches where copies store them can run the product so.
  llvm::SmallVector<Tile> tiles, anyhowTiles;
  llvm::SmallVector<WrittenOperand, 2> written;
  ir::SizeAttr needs;   ///< not zero for launches that can run it, as far as its operands are concerned
  ir::SizeAttr stores;  ///< not zero where copies can store the results
  ir::SizeAttr pays;    ///< not zero for launches that are large enough
  ir::SizeAttr isFull;  ///< not zero for launches with tiles for so many workers that splitting the depth does not pay
};

class BulkProducts {
public:
  /// `temporaries`: values that cross phases.
  BulkProducts(const TensorSchedule& schedule, const Axes& axes, const Clusters& clusters, EntryArguments& arguments,
               const Temporaries& temporaries)
      : schedule_(schedule), axes_(axes), clusters_(clusters), arguments_(arguments), temporaries_(temporaries),
        written_(schedule, axes, clusters, arguments, temporaries) {}

  /// `workers`: blocks that the device runs at once. `copies`: of operands, made before where they lie anyhow. Nothing where no launch can run the
  /// product so.
  std::optional<BulkPlan> plan(const Cluster& cluster, ir::DotOp dot, ir::SizeAttr workers,
                               llvm::ArrayRef<AlignedCopy> copies);

private:
  /// Finds what a launch must have for the roots of `cluster`, a product and stores, to run as one phase of bulk copies. False: no launch can.
  ///
  /// The operands are whole tensors in memory (also transposed), or computed from some element by element, of one type: 16-bit floats; or 8-bit floats,
  /// 8-bit integers, f32 under tf32, whose depth is innermost in memory, or is made so by a copy. What is stored has the product's axes and follows from it, other tensors and scalars of the launch, element by
  /// element.
  bool findNeeds(const Cluster& cluster);
  BulkPlan::Tile planTile(const Cluster& cluster, const TensorSchedule::BulkTile& tile, int64_t stepCycles,
                          int64_t tileCycles, ir::SizeAttr workers);
  bool require(ir::SizeAttr condition);
  void requireStores(ir::SizeAttr condition);
  ir::SizeAttr isReachable(unsigned argument);
  ir::SizeAttr isReachable(const AlignedCopy& copy);
  bool requireWhole(unsigned argument, llvm::ArrayRef<Axis> axes);
  struct Elements {
    mlir::Type type;  ///< in memory
    bool isUnsigned = false;
    friend bool operator==(const Elements&, const Elements&) = default;
  };
  std::optional<Elements> addOperand(bool isA);
  bool addOperands();
  bool addStore(ir::TileStoreOp store);
  bool addResult(mlir::Type element, unsigned argument, mlir::Value value);
  bool addTile(mlir::Value tile);
  bool isScalar(mlir::Value value);

  const TensorSchedule& schedule_;
  const Axes& axes_;
  const Clusters& clusters_;
  EntryArguments& arguments_;
  const Temporaries& temporaries_;
  ir::DotOp dot_;
  llvm::ArrayRef<AlignedCopy> copies_;
  bool readsCopies_ = false;  ///< of all operands
  ir::SizeAttr needs_, stores_;
  llvm::DenseSet<mlir::Value> seen_;
  unsigned operations_ = 0;
  Elements elements_;  ///< of the operands
  WrittenOperands written_;
};

}  // namespace vortex::passes
