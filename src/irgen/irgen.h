// Typed program → vx.
#pragma once

#include "lang/sema/program.h"
#include "source/source.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <array>
#include <optional>
#include <vector>

namespace vortex::irgen {

/// What a launch fixes beyond the kernel itself. Every distinct value is a different module.
struct Options {
  /// Launches are given the numbers of blocks (`.launch(grid = …)`), whatever the kernel says. Kernels without a grid of their own always take it.
  bool isGridGiven = false;
  /// `.launch(block = …)`: overrides the kernel's own. Unused axes are 1.
  std::optional<std::array<int64_t, 3>> block;
  /// Values of dimension variables by DimVarId (missing: decided at launch; those of lang::specialisedDims must be given). The module checks them as launch constraints.
  std::vector<std::optional<int64_t>> dims;
  /// What the interpreter is to report: the user's `+ - *` of integers are operations that must not wrap, and rounds of loops that may never end
  /// are told (ir/vx_checked_ops.td); `vx.unwritten` stands on the value of a tile that was declared without one, `vx.watched` on reads of elements,
  /// which are executed also where nothing uses the value.
  bool forChecks = false;
};

/// Position among the launch's arguments (the leaves of the parameters in order) of what `fieldPath` names in parameter `param`.
uint32_t launchArgument(const lang::Function& kernel, uint32_t param, const std::vector<uint32_t>& fieldPath);

/// Loads the dialects a generated module uses.
void loadDialects(mlir::MLIRContext& context);

/// A verified module: one vx.entry, and the kernel's phases in order. The entry's arguments are the kernel's parameters (structs flattened
/// to their fields, "cache.pages"), then its results, then temporaries. Null after an MLIR error diagnostic when the program uses what is
/// not supported yet.
mlir::OwningOpRef<mlir::ModuleOp> generateKernel(const lang::Function& kernel, const lang::Program& program,
                                                 const source::SourceManager& sources, mlir::MLIRContext& context,
                                                 const Options& options = {});

}  // namespace vortex::irgen
