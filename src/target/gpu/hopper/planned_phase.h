// Phases that hold what their planner matched, and nothing else.
#pragma once

#include "base/check.h"
#include "target/gpu/tile_lowering.h"

namespace vortex::target::gpu::hopper {

/// Lowers its operations together, so no other code asks it for values of single tiles.
class PlannedPhase : public TileLowering {
public:
  void lower(mlir::Operation*) override { unplanned(); }
  void leaveScope() override { unplanned(); }
  llvm::SmallVector<mlir::Value> threadValues(mlir::Value) override { unplanned(); }
  void bindThreadValues(mlir::Value, llvm::ArrayRef<mlir::Value>) override { unplanned(); }
  llvm::SmallVector<mlir::Value> registersFor(mlir::Value, mlir::Value) override { unplanned(); }
  void bindRegisters(mlir::Value, mlir::Value, llvm::ArrayRef<mlir::Value>) override { unplanned(); }
  void flushReads(mlir::Operation*) override { unplanned(); }
  void flushStores() override {}
  void enterScope() override { unplanned(); }

private:
  [[noreturn]] static void unplanned() { VORTEX_UNREACHABLE("the phase is lowered as a whole"); }
};

}  // namespace vortex::target::gpu::hopper
