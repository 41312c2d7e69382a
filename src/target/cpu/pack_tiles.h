// Operands of tile code's products, packed once for all blocks of a launch.
#pragma once

#include "ir/vx.h"
#include "target/cpu/gemm/plan.h"

#include <mlir/IR/BuiltinOps.h>

namespace vortex::target::cpu {

/// The operands become `select(direct, operand, packed operand)` where each is a function of windows of the launch's arguments that start at
/// the same multiple of the tile's rows (of A) or columns (of B), which may be anything that blocks compute, and whose depth is the same for
/// all blocks. A phase per operand packs all of it before, and a tile behind the views' ends: windows that start past them read that one.
/// `direct` says at run time that too few blocks share a packed tile. False: B cannot be packed, or never pays; nothing is changed.
bool packTileOperands(mlir::ModuleOp module, ir::EntryOp entry, ir::KernelOp kernel, ir::DotOp dot,
                      const gemm::Plan& plan, mlir::Type compute, llvm::StringRef name);

}  // namespace vortex::target::cpu
