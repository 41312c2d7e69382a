// The emitter of one body function.
#pragma once

#include "target/cpu/tiles/group.h"
#include "target/cpu/tiles/tiles.h"

namespace vortex::target::cpu::tiles {

class Tiles : public emit::TileEmitter {
public:
  explicit Tiles(Emitter& emitter) : e_(emitter), v_(emitter) {}

  void emit(mlir::Operation* op) override;
  TileBuffer materialize(mlir::Value tile) override;
  void materializeInto(mlir::Value tile, const TileBuffer& destination) override;
  void bind(mlir::Value tile, TileBuffer buffer) override;
  void flushReads(mlir::Operation* effect) override;
  void flushStores() override;
  void enterScope() override;
  void leaveScope() override;

private:
  /// What waits in one block of the kernel.
  struct Scope {
    llvm::SmallVector<ir::TileStoreOp> stores;  ///< in order, not emitted yet
    llvm::SmallVector<ir::TileLoadOp> loads;    ///< emitted as parts of expressions, unless in memory
  };

  void emitStore(ir::TileStoreOp op);
  void emitElement(ir::ElementOp op);
  void emitStreamed(ir::ReduceOp reduce);
  /// Something at or after `op` in its block evaluates the load.
  bool isReadAfter(ir::TileLoadOp load, mlir::Operation* op) const;
  bool sharesLoops(const Root& a, const Root& b);
  void keepReadAfter(llvm::ArrayRef<Root> roots);
  void emitRoots(llvm::ArrayRef<Root> roots);
  void toMemory(mlir::Value tile);
  void evaluateInto(mlir::Value tile, const TileBuffer& destination);

  // dot.cpp
  /// The product that `roots` consume element by element and nothing else does; null: none.
  ir::DotOp epilogueDot(llvm::ArrayRef<Root> roots);
  void emitDot(ir::DotOp op, llvm::ArrayRef<Root> roots);
  void emitPack(ir::TileStoreOp op);
  void emitPackTile(ir::TileStoreOp op);
  void emitIntegerDot(ir::DotOp op, llvm::ArrayRef<Root> roots);
  // scan.cpp
  void emitScan(ir::ScanOp op, const Place& sink);

  Group group() {
    return Group(v_, [this](mlir::Value tile) { toMemory(tile); });
  }

  Emitter& e_;
  Evaluator v_;
  llvm::SmallVector<Scope> scopes_{1};
};

}  // namespace vortex::target::cpu::tiles
