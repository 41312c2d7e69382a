// Evaluates tiles element by element: a tile that is not in memory is code, run at the positions its consumers ask for.
#pragma once

#include "ir/root_view.h"
#include "target/gpu/tiles/closure.h"
#include "target/gpu/tiles/place.h"

#include <llvm/ADT/MapVector.h>
#include <mlir/Dialect/SCF/IR/SCF.h>

namespace vortex::target::gpu::tiles {

class Reduction;
struct Picked;

/// exp(x - maximum) of the elements whose maximum is taken, with the order of sums free; null: something else.
mlir::Operation* exponentialOf(ir::ReduceOp sum, ir::ReduceOp maximum);
/// All that is made of it are such sums.
bool isOnlySummed(mlir::Operation* exponential);

class Evaluator {
public:
  explicit Evaluator(Lowering& lowering) : l(lowering) {}
  Lowering& l;

  // Tiles in memory. Scopes follow control flow.
  const Place* place(mlir::Value tile) const;
  void setPlace(mlir::Value tile, Place place) { places_.back()[tile] = std::move(place); }
  void clearPlace(mlir::Value tile) { places_.back().erase(tile); }
  /// Where threads read what others have of a tile of which each reads only what it has written where it is now; nothing: it is computed again.
  void setPlaceForOthers(mlir::Value tile, std::optional<Place> place) { others_[tile] = std::move(place); }
  void clearPlaceForOthers(mlir::Value tile) { others_.erase(tile); }
  void enterScope() { places_.emplace_back(); }
  void leaveScope() { places_.pop_back(); }

  /// Elements of a tile as a scalar (lanes == 1) or vector of its element type.
  Value eval(mlir::Value tile, const At& at);
  /// Emits the loads that eval would, and nothing else: code of several positions can wait for all of its loads at once.
  void touch(mlir::Value tile, const At& at);
  /// Evaluates, outside of loops, what `tile` is computed from that is the same in all their rounds. `loops`: the index of each loop that `map`
  /// names; nothing: still to come. Not what is below a leaf, nor what `changes` for another reason.
  void primeInvariants(mlir::Value tile, const DimMap& map, llvm::ArrayRef<std::optional<Index>> loops, const At& at,
                       IsLeaf isLeaf, IsLeaf changes);
  /// What eval gives for exactly this position, while the current frame lasts.
  void remember(mlir::Value tile, const At& at, Value value) { frames_.back()[tile].push_back({at, value}); }

  bool isKnown(mlir::Value tile, const At& at) const { return bool(find(tile, at)); }
  struct Known {
    mlir::Value tile;
    At at;
    Value value;
  };
  /// What the current frame holds, in the order of its tiles' first evaluation.
  llvm::SmallVector<Known> knownInFrame() const;

  /// Values found in a frame may be used by everything emitted before it is popped: one frame per loop body or branch.
  void pushFrame() { frames_.emplace_back(); }
  void popFrame() { frames_.pop_back(); }

  /// Where a view's piece lies: for loads and stores.
  Place placeOfLoad(ir::TileLoadOp op);
  Place placeOfStore(ir::TileStoreOp op);

  /// Extents of a tile (index).
  Values extents(mlir::Value tile);

  /// Not null while code is emitted that relies on what is collected here.
  Requirements* wide = nullptr;

  /// Several threads share one position: each combines its slice of what is reduced inside the expression. Thread `number · items + item` of the
  /// block has slice `number` of position `item`; threads of numbers from `count` on have none. Reached by all threads of the block together.
  struct Slices {
    Value number, count;  ///< index
    Value item, items;
  };
  std::optional<Slices> slices;

  /// Threads that write nothing read nothing of what the others write, although their values do not matter.
  struct Writers {
    llvm::SmallDenseSet<const void*, 2> bases;  ///< of what is written
    Value writes;                               ///< i1: this thread does; null: every one
  };
  Writers writers;

private:
  using Touched = llvm::DenseMap<mlir::Value, llvm::SmallVector<At, 1>>;
  void touch(mlir::Value tile, const At& at, Touched& touched);
  Value load(const Place& place, const At& at);
  Value find(mlir::Value tile, const At& at) const;
  Value compute(mlir::Value tile, const At& at);
  Value lanesApart(mlir::Value tile, const At& at, llvm::function_ref<Value(const At&)> one);
  /// Positions of the operands that `tile` at `at` is computed from; nothing where that takes a loop or the lanes must be taken apart.
  std::optional<llvm::SmallVector<std::pair<mlir::Value, At>, 3>> operandsAt(mlir::Value tile, const At& at);
  std::optional<At> sourceOfReshape(ir::ReshapeOp op, const At& at);
  At sourceOfSlice(ir::SliceOp op, const At& at);
  Value evalSlice(ir::SliceOp op, const At& at);
  Value evalReduce(ir::ReduceOp op, const At& at);
  Value evalPicked(ir::ReduceOp op, const Picked& picked, const At& at);  // picked.cpp
  Value combineSlices(Reduction& reduction, const Slices& shared, Value own, unsigned lanes);
  Value evalConstant(mlir::arith::ConstantOp op, const At& at);
  Value evalIota(ir::IotaOp op, const At& at);
  Value evalElementwise(mlir::Operation* op, const At& at);

  // per_element.cpp
  Value evalControl(mlir::OpResult tile, const At& at);
  Values emitControl(mlir::Operation* op, const At& at);
  Values emitFor(mlir::scf::ForOp op, const At& at);
  Values emitIf(mlir::scf::IfOp op, const At& at);
  Values emitWhile(mlir::scf::WhileOp op, const At& at);
  Values emitBody(mlir::Block& block, mlir::ValueRange given, mlir::ValueRange results, const At& at);
  void give(mlir::ValueRange targets, mlir::ValueRange values, const At& at);
  Values valuesAt(mlir::ValueRange sources, const At& at);

  llvm::SmallVector<llvm::DenseMap<mlir::Value, Place>> places_{1};
  llvm::DenseMap<mlir::Value, std::optional<Place>> others_;
  Value exists_;             ///< i1: what is evaluated lies inside of what slices are taken from; null: it does
  bool isOfOthers_ = false;  ///< what is evaluated may be another thread's
  llvm::SmallVector<llvm::MapVector<mlir::Value, llvm::SmallVector<std::pair<At, Value>, 2>>> frames_{1};
};

/// Frame guard.
class Frame {
public:
  explicit Frame(Evaluator& evaluator) : evaluator_(evaluator) { evaluator_.pushFrame(); }
  ~Frame() { evaluator_.popFrame(); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

private:
  Evaluator& evaluator_;
};

using ir::rootView;

}  // namespace vortex::target::gpu::tiles
