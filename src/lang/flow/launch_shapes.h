// Blocks and grids that kernels are launched with, and what the launches of a program get wrong.
#pragma once

#include <map>

#include "diag/diagnostic.h"
#include "lang/flow/value/lanes.h"
#include "lang/sema/program.h"

namespace vortex::lang::flow {

/// How a kernel is launched, as far as its own text and the launches of the program say.
struct LaunchShapes {
  std::vector<BlockShape> blocks;  ///< the first is the kernel's own, where it has one
  bool hasUsualBlock = false;      ///< the first is what is taken where nobody says
  BlockShape grid;                 ///< blocks per axis, where they are constant
  bool usesOwnGrid = false;        ///< no launch of the program gives another grid

  std::span<const BlockShape> writtenBlocks() const { return std::span(blocks).subspan(hasUsualBlock ? 1 : 0); }
};

/// Of a kernel whose grid is inferred.
LaunchShapes launchShapes(const Function& kernel, const Program& program);

/// Reports E0462 and E0465; returns the kernels that launches give a grid, with where the first one does.
std::map<const Function*, const Expr*> checkLaunches(const Program& program, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
