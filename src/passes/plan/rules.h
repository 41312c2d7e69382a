// What a target wants of plans: sizes and ways of whole-tensor work.
#pragma once

#include "ir/size_attr.h"
#include "ir/vx.h"

#include <functional>
#include <string>
#include <vector>

namespace vortex::passes {

/// How a tensor of a launch lies in memory.
struct Placement {
  size::Expr address;
  llvm::SmallVector<size::Expr> extents, strides;  ///< strides in elements
  int64_t elementBytes = 0;
};

/// How a target cuts and multiplies matrix products that share a phase. Elements unless said.
struct ProductRules {
  /// Rows and columns of the output a block of a matrix product computes.
  int64_t dotRows = 120, dotColumns = 512;
  /// Blocks along the rows get equal numbers of rows, multiples of this, at most dotRows.
  int64_t dotRowStep = 6;
  /// Where blocks of dotRows × dotColumns do not occupy the device's workers evenly, they are smaller: about as many blocks as a multiple of
  /// the workers, none below these rows and columns nor (on average) so many multiplications. Order and grouping of sums do not depend on it.
  /// 0 rows: never.
  int64_t dotLeastRows = 0, dotLeastColumns = 0, dotLeastWork = 0;
  /// Blocks along the columns get multiples of this.
  int64_t dotColumnStep = 1;
  /// Blocks of a product go down this many pieces of the rows before they move along the columns: they share what they read. 1: row by row.
  int64_t dotGroup = 1;
  /// The target's own words about its products, left on each of them as the attribute `vx.plan`; empty: none.
  std::string dotPlan;
  /// Another tile size and plan for launches where blocks of dotRows × dotColumns would be fewer than `smallDotBelow`: then more, smaller
  /// blocks occupy the target. Both versions are compiled, the launch runs one. 0 rows: none.
  int64_t smallDotRows = 0, smallDotColumns = 0, smallDotBelow = 0;
  std::string smallDotPlan;
  /// Products of few blocks and a long depth are split along it, into about this many blocks in all: each piece leaves partial sums in memory,
  /// a second phase adds them in the order of the depth. 0: never. `dotSplitDepth`: steps that a piece has at least.
  int64_t dotSplitBlocks = 0, dotSplitDepth = 512;
  /// Products of at most so many rows are split in blocks of a size of their own. 0: in the small ones, as all others.
  /// `dotThinDepth`: steps that their pieces have at least; of twice as many such products are split whose second operand lies anyhow.
  int64_t thinDotRows = 0, thinDotColumns = 0, dotThinDepth = 512;
  std::string thinDotPlan;
  /// Operands whose rows do not start at multiples of this many bytes are copied into rows that do, before the product: reading them as they lie
  /// is slow, and needs code of its own. 0: never. Products of operands of fewer than `dotCopyElements` have such code: a launch costs more. 0: none.
  int64_t dotAlignment = 0, dotCopyElements = 0;
};

/// Sizes a target chooses for whole-tensor work. Elements unless said. What it says of products is for those of which `productRules` says nothing.
struct TensorSchedule : ProductRules {
  /// For the products of one phase, with what is known of their elements and extents. Empty: all products have the same rules.
  std::function<ProductRules(llvm::ArrayRef<ir::DotOp>)> productRules;
  /// The same rules, with those of these products.
  TensorSchedule forProducts(llvm::ArrayRef<ir::DotOp> products) const {
    TensorSchedule own = *this;
    if (productRules && !products.empty())
      static_cast<ProductRules&>(own) = productRules(products);
    return own;
  }

  /// What one block of elementwise or row work touches: large enough to hide the launch of a block, small enough for a core's cache.
  int64_t elementsPerBlock = 16384;
  /// Elements per iteration where softmax and product are computed together (stream_reductions.h). 0: never.
  int64_t streamedStep = 0;
  /// Least elements along the innermost dimension, so that neighbouring blocks do not share cache lines.
  int64_t minInner = 64;

  /// For targets with bulk tensor copies: block tiles of products that run as one persistent phase of at most one block per worker. A launch takes
  /// the one of least cost: startCycles + waves · (steps of the depth · stepCycles + tileCycles).
  struct BulkTile {
    int64_t rows = 0, columns = 0;
    std::string plan;
    int64_t stepBytes = 1;  ///< of the depth per step
    /// `partCycles`: of a step whose sums are added to those before. 0: not for such products.
    int64_t stepCycles = 0, partCycles = 0, tileCycles = 0, startCycles = 0;
    int64_t anyhowStepCycles = 0, anyhowTileCycles = 0;  ///< the same where threads store the results; 0: they never do
    bool isForTileCode = false;                          ///< blocks of tile code that have this size may run so
  };
  std::vector<BulkTile> bulkTiles;
  /// What it takes there to compute an operand in each block that reads it, against writing it once in a phase of its own.
  struct OperandCosts {
    int64_t launchCycles = 0, bytesPerCycle = 1;  ///< of that phase, which is bound by memory
    int64_t elementSlots = 0,
            slotsPerCycle =
                1;  ///< instructions of an element in a block, beside those that compute it; what a core issues
  } operandCosts;
  /// For the same targets: rows and chunks of block tiles of online softmax between two products, whose operands have rows of at most `width` elements. Narrowest first, of one width the one of most rows.
  struct StreamTile {
    int64_t rows = 0, step = 0, width = 0;
    int64_t duration = 1;  ///< of a block, relative to those of other tiles of the width
    std::string plan;
    bool ofPieces = false;  ///< for launches of few rows, whose blocks have pieces of the streamed axis; two on a core
  };
  std::vector<StreamTile> streamTiles;
  /// Not zero for the launches in which copies can reach all of such a tensor.
  std::function<size::Expr(const Placement&)> bulkReach;
  /// Products of fewer rows or columns run otherwise, those of fewer than `bulkSide` also where splitting their depth pays, and those of kernels with
  /// more launch slots.
  int64_t bulkRows = 0, bulkColumns = 0, bulkSide = 0;
  uint32_t bulkSlots = 0;

  // For targets that run thousands of small blocks. Zero or false: not done.
  /// Where two axes are innermost in memory (transposes), blocks take squares of this side.
  /// `squareBytes`: what such a square takes at most, with a word more per row; 0: anything.
  int64_t squareSide = 0, squareBytes = 0;
  /// Blocks of tensors with fewer elements than `smallTensor` touch only `smallElementsPerBlock`, to occupy more cores.
  int64_t smallTensor = 0, smallElementsPerBlock = 0;
  /// Reductions of leading dimensions, and of everything, run as partial results over about this many blocks and a combining phase.
  int64_t reductionBlocks = 0;
  /// Bytes of the widest tensor per block of elementwise work along one axis.
  int64_t streamedBytesPerBlock = 0;
  /// Elements per block of rows that are only reduced.
  int64_t sweptElementsPerBlock = 0;
  /// Elements of rows that a block keeps at the same time, one by one its teams of threads: blocks take the largest power of two of rows that
  /// has no more. 0: blocks take elementsPerBlock elements.
  int64_t keptElementsPerBlock = 0;
  /// Bytes that a block holds of a vector that is scanned. Blocks then wait for what comes before their pieces (ir/look_back.h): only for
  /// targets on which a block that has started goes on whatever others do. 0: a phase for the pieces' totals, one for their prefixes.
  int64_t heldScanBytes = 0;
  /// Vectors whose elements have fewer bytes in memory are not held.
  int64_t heldScanLeast = 1;
  /// Only what one sweep over the rows of a block computes in registers shares a phase; everything else crosses in global memory.
  bool fusedOnly = false;
  /// Products with one row are sums, as those with one column are everywhere, and a launch decides it where the extents are its own (vector_ways.h).
  bool sumsVectors = false;

  /// Products have ways that depend on how many blocks run at once.
  bool asksForWorkers() const { return dotLeastRows > 0 || !bulkTiles.empty(); }
};

}  // namespace vortex::passes
