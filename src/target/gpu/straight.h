// Code of threads that runs straight through: what can be executed for several threads or iterations at a time.
#pragma once

#include "ir/vx.h"

#include <llvm/ADT/DenseSet.h>
#include <mlir/Dialect/SCF/IR/SCF.h>

namespace vortex::target::gpu {

struct Traffic {
  int64_t loadedBytes = 0, operations = 0;
};

/// What the views that `op` or something inside it writes are windows of.
llvm::DenseSet<mlir::Value> writtenRoots(mlir::Operation* op);

/// Adds what one run through the block does. False: it is not straight (a loop, a wait for others, an end, shared memory), or loads what is in
/// `written`.
bool addTraffic(mlir::Block& block, const llvm::DenseSet<mlir::Value>& written, Traffic& traffic);

/// Replaces a branch of straight code and loops of known length: the accesses of both sides under masks, everything else as it is, in front of it.
void turnIntoMasks(mlir::scf::IfOp branch);

}  // namespace vortex::target::gpu
