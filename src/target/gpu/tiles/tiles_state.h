// The tile code of one phase.
#pragma once

#include "target/gpu/dot/collector.h"
#include "target/gpu/thread_tiles.h"
#include "target/gpu/tiles/lifetimes.h"
#include "target/gpu/tiles/nest.h"
#include "target/gpu/tiles/tiles.h"

namespace vortex::target::gpu::tiles {

class Tiles : public TileLowering {
public:
  explicit Tiles(Lowering& lowering) : l(lowering), v_(lowering), collector_(v_), threads_(lowering) {
    scopes_.emplace_back();
    findPerThread(lowering.phase);
  }

  int64_t chooseThreads(mlir::Operation* phase, std::optional<int64_t> logicalThreads) override;
  void lower(mlir::Operation* op) override;
  Values threadValues(mlir::Value tile) override;
  void bindThreadValues(mlir::Value tile, llvm::ArrayRef<Value> values) override;
  Values registersFor(mlir::Value tile, mlir::Value target) override;
  void bindRegisters(mlir::Value target, mlir::Value like, llvm::ArrayRef<Value> registers) override;
  bool isPending(mlir::Value target) override;
  void flushReads(mlir::Operation* effect) override;
  void flushStores() override;
  mlir::Attribute chooseSwizzle(mlir::Operation* alloc) override;
  bool defers(mlir::Operation* op) override { return op->hasAttr(kPerElement); }
  void reserveResults(mlir::Operation* op) override;
  void lowered(mlir::Operation* op) override;
  void enterScope() override;
  void leaveScope() override;

private:
  /// A tile that becomes the next value of a carried one, or what a branch hands on, when the block ends.
  struct Yield {
    mlir::Value tile, target;
    Place to;
    std::optional<Place> aside = {};  ///< its elements, where others need the memory that it lies in
  };
  /// What waits in one block of the kernel.
  struct Scope {
    llvm::SmallVector<ir::TileStoreOp> stores;  ///< in order, not emitted yet
    llvm::SmallVector<ir::TileLoadOp> loads;    ///< emitted as parts of expressions, unless in memory
    std::vector<Yield> yields;
    llvm::SmallVector<mlir::Value> ended;  ///< tiles that only `stores` may still need
  };

  Nest nest();
  void lowerStore(ir::TileStoreOp op);
  void lowerElement(ir::ElementOp op);
  /// Something at or after `op` in its block evaluates the load.
  bool isReadAfter(ir::TileLoadOp load, mlir::Operation* op) const;
  bool sharesLoops(const Root& a, const Root& b);
  void keepReadAfter(llvm::ArrayRef<Root> roots);
  void emitRoots(llvm::ArrayRef<Root> roots);
  /// Gives the tile a place in shared memory, in the current scope; false: it is too large.
  bool toMemory(mlir::Value tile, std::optional<unsigned> along = {});
  bool turnToMemory(mlir::Value tile, unsigned along);
  std::optional<SharedMemory::Piece> reserve(mlir::Value tile);
  /// Memory for a tile, or for what flows to `target`.
  std::optional<Place> allocate(mlir::Value tile, mlir::Value target);
  std::optional<Place> reservedPlace(mlir::Value tile, mlir::Value target);
  void failCarried(mlir::Value tile, mlir::Value target);
  void evaluateInto(mlir::Value tile, const Place& destination);
  void copy(mlir::Value tile, const Place& from, const Place& to);
  void retire(mlir::Value tile);

  // yields.cpp
  void emitYields();
  void emitYield(Yield& yield);
  bool reads(const Yield& yield, const void* base);
  void keepAside(Yield& yield);
  void spillThreadValues(mlir::Value tile, const Place& to);
  bool isThreadwise(mlir::Value tile);

  // per_element.cpp
  void markPerElement(mlir::Operation* phase);

  // per_thread.cpp
  void findPerThread(ir::KernelOp phase);
  Values perThreadValues(mlir::Value tile);
  void lowerPerThread(mlir::Operation* op);

  // scan.cpp
  /// Prefix combinations along a dimension that is not the last: every thread runs along it on its own.
  void emitScanAcross(ir::ScanOp op, const Root& root);

  Lowering& l;
  Evaluator v_;
  dot::Collector collector_;
  ThreadTiles threads_;
  llvm::DenseSet<mlir::Value> perThread_;  ///< tiles that live in `threads_`
  std::optional<TileLifetimes> lifetimes_;
  llvm::SmallVector<Scope> scopes_;
  llvm::DenseMap<mlir::Value, Values> threadTiles_;
  llvm::DenseMap<mlir::Value, SharedMemory::Piece> reserved_;
  llvm::DenseMap<mlir::Value, Place> carried_;  ///< buffers of tiles that flow through control flow
};

}  // namespace vortex::target::gpu::tiles
