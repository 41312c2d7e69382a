// One fused loop nest: stores and reductions that run over the same rows.
//
//   for each row (the leading `rowRank` dimensions)
//     one pass over the row per level of reductions; all reductions of a level share it
//     one pass per kind of store
//
// A row's values that are dear and needed in a later pass too are kept in a row buffer. Without reductions there are no rows: the
// nest has one loop per dimension.
#pragma once

#include "target/cpu/tiles/closure.h"
#include "target/cpu/tiles/vector_loop.h"

namespace vortex::target::cpu::tiles {

/// A tile and where it goes.
struct Root {
  mlir::Value value;
  Place sink;
  mlir::Operation* store = nullptr;  ///< null: the sink is scratch memory
};

class Group {
public:
  /// `materialize` brings a tile into memory, before the nest.
  Group(Evaluator& evaluator, std::function<void(mlir::Value)> materialize)
      : v_(evaluator), e_(evaluator.e), materialize_(std::move(materialize)) {}

  void emitStores(llvm::ArrayRef<Root> roots);
  /// A reduction of all dimensions.
  llvm::Value* emitScalar(ir::ReduceOp op);
  /// Brings everything into memory that must be there to evaluate `tile` at any index.
  void prepareExpression(mlir::Value tile);

  /// The same for the consumers of a product that is at hand, element by element, and for its operands.
  void prepareEpilogue(ir::DotOp dot, llvm::ArrayRef<Root> roots);

  /// Row dimensions that a fused nest of this root has; nothing: no reductions to fuse.
  std::optional<unsigned> rowRank(mlir::Value tile);
  /// Evaluating `root` into its sink reads memory of the sink at other positions than the one being written.
  bool readsOwnSink(const Root& root);

private:
  /// What is computed in one sweep over the dimensions after the rows.
  struct Pass {
    llvm::SmallVector<ir::ReduceOp, 2> reduces;
    llvm::SmallVector<unsigned, 2> roots;
    Values inner;                          ///< extents of the inner loops; empty: one element per row
    llvm::DenseSet<mlir::Value> elements;  ///< evaluated at each element of the pass, with the loops' own indices
    llvm::SmallVector<mlir::Value> kept;   ///< of those, written to row buffers
    unsigned loops = 0;                    ///< rows included
  };

  // plan
  void plan(llvm::ArrayRef<Root> roots, ir::ReduceOp scalar);
  mlir::Value findMustMaterialize();
  mlir::Value findMust(mlir::Value tile, const DimMap& map, unsigned loops);
  bool isFused(ir::ReduceOp op, llvm::ArrayRef<DimUse> map) const;
  bool isInline(ir::ReduceOp op, llvm::ArrayRef<DimUse> map, unsigned loops) const;
  DimMap operandMap(ir::ReduceOp op) const;
  Values reducedExtents(ir::ReduceOp op);
  unsigned levelOf(ir::ReduceOp op);
  void collectFused(mlir::Value tile, const DimMap& map);
  void makePasses();
  void chooseKept();
  bool isCheap(mlir::Value tile) const;
  bool conflicts(const Place& place, llvm::ArrayRef<DimUse> map) const;
  unsigned passValues(const Pass& pass, llvm::SmallVectorImpl<std::pair<mlir::Value, DimMap>>& values) const;

  // emission
  Values emitVersions();
  llvm::Value* guardsHold();
  Values emitNest();
  void emitRows(unsigned dim);
  void emitRow();
  const Pass* dearestPass();
  void prefetchNextRow(const Pass& pass, llvm::Value* i, unsigned lanes);
  void prefetchLoads(const Pass& pass, const At& at);
  void emitReducePass(const Pass& pass);
  void emitStorePass(const Pass& pass);
  void emitStoreLoops(const Pass& pass, const Values& inner);
  // across.cpp
  std::optional<unsigned> dimAcross(const Pass& pass);
  llvm::Value* runsAcross(const Pass& pass, unsigned along, unsigned lanes);
  bool readsAlong(const Pass& pass, unsigned along);
  void emitAcross(const Pass& pass, unsigned along, unsigned lanes);
  void storeAcross(const Pass& pass, unsigned along, const At& at, uint64_t count);
  void emitSquares(const Pass& pass, const Values& inner, unsigned lanes);
  unsigned storeLanes(const Pass& pass);
  void emitStoreVectors(const Pass& pass, llvm::Value* count);
  /// streamLanes: around the caches, for addresses aligned to vectors of so many elements; 0: not.
  void storeRoots(const Pass& pass, const At& at, unsigned streamLanes);
  unsigned passCost(const Pass& pass);
  void primeInvariants(const Pass& pass);
  Values collapse(const Pass& pass, llvm::Value*& isFlat);
  llvm::Value* streamingHead(const Pass& pass, unsigned lanes, llvm::Value* count, llvm::Value*& streaming);
  llvm::Value* wantsStreaming();
  At rowPosition() const;
  At position(llvm::Value* last, unsigned lanes, llvm::Value* mask) const;

  Evaluator& v_;
  Emitter& e_;
  std::function<void(mlir::Value)> materialize_;
  llvm::ArrayRef<Root> roots_;
  ir::ReduceOp scalar_;
  ir::DotOp dot_;                                  ///< at hand
  int rowRank_ = -1;                               ///< -1: nothing fused
  Values rows_;                                    ///< extents
  llvm::MapVector<ir::ReduceOp, unsigned> fused_;  ///< with level
  std::vector<Pass> passes_;
  const Pass* dearest_ = nullptr;  ///< asks for the next row
  llvm::DenseMap<mlir::Value, Place> buffers_;
  llvm::Value* streaming_ = nullptr;
  Values indices_;  ///< of the loops around the code being emitted
  llvm::Value* scalarResult_ = nullptr;
};

}  // namespace vortex::target::cpu::tiles
