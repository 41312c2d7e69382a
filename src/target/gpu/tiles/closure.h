// What code the elements of a tile need: the operations between it and tiles in memory, and how their indices follow from loop indices.
#pragma once

#include "ir/vx.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallVector.h>
#include <optional>

namespace vortex::target::gpu::tiles {

/// How one dimension of a tile is indexed inside a loop nest.
struct DimUse {
  static constexpr int kFixed = -1;  ///< no loop index takes part
  static constexpr int kMixed = -2;  ///< computed from loop indices in some other way
  int loop = kFixed;                 ///< loop number, outermost 0
  bool exact = true;                 ///< the loop's index itself, not shifted
  bool operator==(const DimUse&) const = default;
};
using DimMap = llvm::SmallVector<DimUse, 4>;
DimMap identityMap(unsigned rank);
/// Dimension i is indexed by loop i, for all of them.
bool isIdentity(llvm::ArrayRef<DimUse> map);
bool usesLoop(llvm::ArrayRef<DimUse> map, int loop);

bool isTile(mlir::Value value);
unsigned rankOf(mlir::Value value);
mlir::Type elementType(mlir::Value tile);
/// "[32, 64] of f32"; `?`: an extent that is not known when the kernel is compiled.
std::string describe(mlir::Value tile);
/// Combines along the last dimension (among others).
bool reducesInnermost(ir::ReduceOp op);

/// On control flow around tiles: every element runs it by itself, inside the loops over elements (analysis::isElementControl).
inline constexpr llvm::StringLiteral kPerElement = "vx.per_element";
/// `tile` is a result of such control flow.
bool isPerElement(mlir::Value tile);

/// Tiles that are in memory or at hand are leaves.
using IsLeaf = llvm::function_ref<bool(mlir::Value)>;

/// The tiles an element of `tile` is computed from, with their maps; reduced dimensions are kMixed.
llvm::SmallVector<std::pair<mlir::Value, DimMap>> operandUses(mlir::Value tile, const DimMap& map);

/// Visits the operations needed to evaluate `tile`, consumers first, each (tile, map) once. The visitor says whether to go on to the operands.
class Closure {
public:
  using Visitor = llvm::function_ref<bool(mlir::Value tile, const DimMap& map)>;
  void walk(mlir::Value tile, const DimMap& map, Visitor visit);

private:
  llvm::DenseMap<mlir::Value, llvm::SmallVector<DimMap, 1>> seen_;
};

/// An upper bound of an index value, if it follows from constants and minima.
std::optional<int64_t> upperBound(mlir::Value value);
/// Of the number of elements of a tile.
std::optional<int64_t> elementBound(mlir::Value tile);

}  // namespace vortex::target::gpu::tiles
