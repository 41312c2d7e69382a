// Control flow around whole tensors that the launch runs: the steps of vx.launch, with pieces of the kernel between.
#pragma once

#include "ir/launch.h"
#include "passes/plan/rules.h"

#include <vector>

namespace vortex::passes {

/// A part of a whole-tensor kernel that is scheduled by itself, or a loop or branch around such parts.
struct ControlStep {
  std::optional<mlir::Location> origin{};         ///< of the loop or branch
  ir::KernelOp piece;                             ///< whole-tensor, or a grid of threads; null: a loop or branch
  std::optional<ir::LaunchBuilder::Round> round;  ///< of a loop
  ir::SizeAttr condition;                         ///< of a branch
  std::vector<ControlStep> steps, otherwise;      ///< of a loop or of a branch's sides
  llvm::SmallVector<std::pair<unsigned, unsigned>> exchanges;  ///< of temporaries, after each round or behind `steps`
  std::optional<std::pair<unsigned, unsigned>> read{};         ///< alone: this let gets the value of this temporary
};

/// Cuts a whole-tensor kernel at the loops and branches that the launch is to run: those around tiles that blocks could not carry (every block
/// would need the whole tile, or more of it than it has room for), and those around loops that the program marks as parallel. Loops whose
/// iterations do not meet become grids of threads, unless they are inside what stays in a piece. Conditions and bounds that are no expressions
/// over its arguments are computed by pieces and read back. Values that cross pieces are temporaries of the entry; a loop writes what it carries
/// beside what it reads, and exchanges the two. Before: the kernel. After, unless the kernel is returned alone: pieces in its place, whose
/// arguments are those of the entry so far. `workers`: set to an argument of role let, if a piece has products and the schedule asks for the
/// number of workers. Fails, with a diagnostic, where the extents of such a temporary are not known before the launch.
mlir::FailureOr<std::vector<ControlStep>>
cutAtControl(ir::EntryOp entry, ir::KernelOp kernel, const TensorSchedule& schedule, std::optional<unsigned>& workers);

}  // namespace vortex::passes
