// Tiles of kernels that only hand per-thread values from region to region: rank-1 tiles of block extent, one register per slot. Back ends
// without tile code use it; every operation on other tiles is refused.
#pragma once

#include "target/gpu/lowering.h"

namespace vortex::target::gpu {

class ThreadTiles : public TileLowering {
public:
  explicit ThreadTiles(Lowering& lowering) : lowering_(lowering) {}

  int64_t chooseThreads(mlir::Operation*, std::optional<int64_t>) override { return 0; }
  void lower(mlir::Operation* op) override;
  Values threadValues(Value tile) override;
  void bindThreadValues(Value tile, llvm::ArrayRef<Value> values) override { values_[tile] = Values(values); }
  Values registersFor(Value tile, Value) override { return threadValues(tile); }
  void bindRegisters(Value target, Value, llvm::ArrayRef<Value> registers) override {
    values_[target] = Values(registers);
  }
  void flushReads(mlir::Operation*) override {}
  void flushStores() override {}
  void enterScope() override {}
  void leaveScope() override {}

private:
  Lowering& lowering_;
  llvm::DenseMap<Value, Values> values_;
};

}  // namespace vortex::target::gpu
