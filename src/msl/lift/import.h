// Cleaned LLVM IR to one func.func of arith, math, vx and cf that says what one thread does.
#pragma once

#include "ir/vx.h"
#include "msl/flatten/pointers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace vortex::msl::lift {

using flatten::Memory;

/// Arguments of the thread's function after one view per memory; all of type index.
enum class ThreadValue : unsigned {
  X,
  Y,
  Z,
  Linear,  // of the thread in its threadgroup: the only ones that differ between its threads
  GroupX,
  GroupY,
  GroupZ,  // position of the threadgroup
  GroupsX,
  GroupsY,
  GroupsZ,  // threadgroups of the grid
  GridX,
  GridY,
  GridZ,  // threads of the grid
  WidthX,
  WidthY,
  WidthZ,  // threads of this threadgroup
  BlockX,
  BlockY,
  BlockZ,  // threads of a threadgroup that is not cut off at the end of the grid
  Count
};

/// Null after a problem.
mlir::func::FuncOp importThread(front::Unit& unit, const std::vector<Memory>& memories, mlir::ModuleOp module);

/// Type of a scalar in vx; null for what vx has not.
mlir::Type importType(mlir::MLIRContext* context, llvm::Type* type);

}  // namespace vortex::msl::lift
