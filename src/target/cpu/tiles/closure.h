// What code the elements of a tile need: the operations between it and tiles in memory, and how their indices follow from loop indices.
#pragma once

#include "target/cpu/tiles/evaluator.h"

namespace vortex::target::cpu::tiles {

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

/// Visits the operations needed to evaluate `tile`, consumers first, each (tile, map) once. The visitor says whether to go on to the operands.
/// Tiles in memory are visited and not entered.
class Closure {
public:
  explicit Closure(Evaluator& evaluator) : evaluator_(evaluator) {}
  using Visitor = llvm::function_ref<bool(mlir::Value tile, const DimMap& map)>;
  void walk(mlir::Value tile, const DimMap& map, Visitor visit);
  /// The operands of `tile` with their maps; reduced dimensions are kMixed.
  llvm::SmallVector<std::pair<mlir::Value, DimMap>> operands(mlir::Value tile, const DimMap& map);

private:
  Evaluator& evaluator_;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<DimMap, 1>> seen_;
};

/// Rough cost of one element in simple vector operations. `known`: tiles that are at hand, cost 0.
unsigned costOf(Evaluator& evaluator, mlir::Value tile, llvm::function_ref<bool(mlir::Value)> known = {});
/// An element that costs more than this is kept in memory when it is needed twice.
constexpr unsigned kExpensive = 7;

/// Element types of everything in the closure, up to tiles in memory.
llvm::SmallVector<mlir::Type> elementTypes(Evaluator& evaluator, llvm::ArrayRef<mlir::Value> tiles);

}  // namespace vortex::target::cpu::tiles
