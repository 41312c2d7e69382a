// Tiles that are already in memory: per-thread values between regions.
#include "target/cpu/emit/tile_emitter.h"

#include "target/cpu/emit/emitter.h"

namespace vortex::target::cpu::emit {
namespace {

class MemoryTiles : public TileEmitter {
public:
  explicit MemoryTiles(Emitter &emitter) : e_(emitter) {}

  void emit(mlir::Operation *op) override { e_.fail(op, "tiles"); }

  TileBuffer materialize(mlir::Value tile) override {
    auto found = buffers_.find(tile);
    if (found != buffers_.end())
      return found->second;
    e_.fail(tile.getDefiningOp() ? tile.getDefiningOp() : tile.getParentBlock()->getParentOp(), "tiles");
    return e_.allocateFor(nullptr, tile);
  }

  void materializeInto(mlir::Value tile, const TileBuffer &destination) override {
    TileBuffer source = materialize(tile);
    if (source.pointer != destination.pointer)
      e_.copyTile(source, destination);
  }

  void bind(mlir::Value tile, TileBuffer buffer) override { buffers_[tile] = std::move(buffer); }
  void flushReads(mlir::Operation *) override {}
  void enterScope() override {}
  void leaveScope() override {}

private:
  Emitter &e_;
  llvm::DenseMap<mlir::Value, TileBuffer> buffers_;
};

} // namespace

std::unique_ptr<TileEmitter> makeTileEmitter(Emitter &emitter) { return std::make_unique<MemoryTiles>(emitter); }

} // namespace vortex::target::cpu::emit
