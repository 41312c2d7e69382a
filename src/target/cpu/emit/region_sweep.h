// Which loops of a thread region run outside of its warps, and what each part of the region needs of the earlier ones.
#pragma once

#include "ir/vx.h"
#include "target/cpu/emit/region_analysis.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Value.h>
#include <mlir/Dialect/SCF/IR/SCF.h>

#include <optional>

namespace vortex::target::cpu::emit {

/// A loop, or operations between two of them.
struct Segment {
  mlir::scf::ForOp loop;
  llvm::SmallVector<mlir::Operation*> ops;
  llvm::SmallVector<mlir::Operation*> again;   ///< of earlier segments, in their order: computed once more
  llvm::SmallVector<mlir::Operation*> bounds;  ///< computed before the loop, outside of the warps
  llvm::SetVector<mlir::Value> loaded;         ///< of earlier segments: kept in memory
};

struct Sweep {
  llvm::SmallVector<Segment> segments;
  llvm::SetVector<mlir::Value> kept;  ///< results of operations that later segments load
};

/// Nothing: the region has no such loop, or its order may be seen. `threads`: of the region.
std::optional<Sweep> planSweep(ir::ThreadsOp region, const RegionAnalysis& analysis, const RegionShape& shape,
                               llvm::Value* threads);

}  // namespace vortex::target::cpu::emit
