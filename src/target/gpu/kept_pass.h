// One of several loops over a row, with what they share in registers.
#pragma once

#include "ir/vx.h"

#include <llvm/ADT/SetVector.h>

namespace vortex::target::gpu {

/// Iterations that are done together; shorter rows gain nothing from registers.
constexpr int64_t kRowTogether = 4;

/// What an iteration needs of an earlier pass.
struct Kept {
  mlir::Operation* again;  ///< of this pass
  size_t pass;             ///< which has it
  mlir::Operation* made;   ///< there
};

struct RowPass {
  mlir::scf::ForOp loop;
  llvm::SmallVector<Kept> kept;
  llvm::SetVector<mlir::Operation*> given;  ///< what later passes need of this one
  llvm::DenseSet<mlir::Operation*> needed;  ///< what an iteration still computes
  llvm::SmallVector<mlir::Value>
      values;  ///< in its region: whether the row is kept, then what is given, by value and iteration
  llvm::SmallVector<mlir::Value> left;  ///< the same behind its region, if it leaves that

  ir::ThreadsOp region() { return loop->getParentOfType<ir::ThreadsOp>(); }
};

/// Writes `iterations` out in front of the loop, for rows that are no longer; others take the loop. `given` (i1): all passes that this one takes values
/// from kept the row. `rows`: by value of pass.kept and iteration. Sets pass.values.
void writeKept(RowPass& pass, int64_t iterations, llvm::ArrayRef<mlir::Value> given,
               llvm::ArrayRef<llvm::ArrayRef<mlir::Value>> rows);

}  // namespace vortex::target::gpu
