// Evaluates tiles element by element: a tile that is not in memory is code, run at the index vectors its consumers ask for.
#pragma once

#include "ir/vx.h"
#include "target/cpu/tiles/place.h"

namespace vortex::target::cpu::tiles {

inline bool isTile(mlir::Value value) { return mlir::isa<mlir::RankedTensorType>(value.getType()); }
/// Scalars have rank 0.
inline unsigned rankOf(mlir::Value value) {
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

class Evaluator {
public:
  explicit Evaluator(Emitter& e) : e(e) {}
  Emitter& e;

  // Tiles in memory. Scopes follow the scratch memory's.
  const Place* place(mlir::Value tile) const;
  void setPlace(mlir::Value tile, Place place) { places_.back()[tile] = std::move(place); }
  void enterScope() { places_.emplace_back(); }
  void leaveScope() { places_.pop_back(); }

  /// Elements of a tile in value form, <lanes x T>, a scalar when lanes == 1.
  llvm::Value* eval(mlir::Value tile, const At& at);
  /// What eval gives for exactly this position, while the current frame lasts.
  void remember(mlir::Value tile, const At& at, llvm::Value* value) { frames_.back()[tile].push_back({at, value}); }

  /// Values found in a frame may be used by everything emitted before it is popped: one frame per loop body or branch.
  void pushFrame() { frames_.emplace_back(); }
  void popFrame() { frames_.pop_back(); }

  /// Where a view's piece lies: for loads and stores.
  Place placeOfLoad(ir::TileLoadOp op);
  Place placeOfStore(ir::TileStoreOp op);

  /// Extents of a tile as LLVM values.
  Values extents(mlir::Value tile);

  /// Guards of accesses to views are known to hold in the code being emitted.
  bool inside = false;

private:
  llvm::Value* find(mlir::Value tile, const At& at) const;
  llvm::Value* compute(mlir::Value tile, const At& at);
  llvm::Value* evalReduce(ir::ReduceOp op, const At& at);
  llvm::Value* evalConstant(mlir::Operation* op, const At& at);
  At sourceOfReshape(ir::ReshapeOp op, const At& at);
  llvm::Value* evalSlice(ir::SliceOp op, const At& at);

  llvm::Value* exists_ =
      nullptr;  ///< i1 or <lanes x i1>: what is evaluated lies inside of what slices are taken from; null: it does
  llvm::SmallVector<llvm::DenseMap<mlir::Value, Place>> places_{1};
  llvm::SmallVector<llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<At, llvm::Value*>, 2>>> frames_{1};
};

/// Elements that are neighbours in the result are neighbours in the source: one element at a time need not be looked for.
bool reshapeSplits(ir::ReshapeOp op);

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

/// i64 index of a loop.
inline Lane uniformIndex(llvm::Value* i) { return Lane::uniform(i); }
/// i, i + 1, …; uniform when lanes == 1.
Lane laneIndex(Emitter& e, llvm::Value* i, unsigned lanes);

/// Lanes of vector code whose widest elements are `tiles` (floats narrower than f32 are computed in f32; index and bool do not count).
unsigned chooseLanes(Emitter& e, llvm::ArrayRef<mlir::Type> elementTypes);

}  // namespace vortex::target::cpu::tiles
