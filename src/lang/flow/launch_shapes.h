// Blocks and grids that kernels are launched with, and what the launches of a program get wrong.
#pragma once

#include <map>

#include "diag/diagnostic.h"
#include "lang/flow/value/lanes.h"
#include "lang/sema/analyze.h"

namespace vortex::lang::flow {

/// How a kernel is launched, as far as its own text and the launches of the program say.
struct LaunchShapes {
  std::vector<BlockShape> blocks;  ///< the first is the kernel's own, where it has one
  bool hasUsualBlock = false;      ///< the first is what is taken where nobody says
  BlockShape grid;                 ///< blocks per axis, where they are constant
  bool usesOwnBlock = false;       ///< the kernel has one, and no launch gives another
  bool usesOwnGrid = false;        ///< no launch gives another grid
  bool isGridGiven = false;        ///< some launches may give others than `grid`
  std::array<bool, 3> asksBlocks{},
      asksGrid{};  ///< the kernel asks along the axis which block it is, how many there are

  std::span<const BlockShape> writtenBlocks() const { return std::span(blocks).subspan(hasUsualBlock ? 1 : 0); }
};

/// What launches give that the program does not make.
struct OutsideSizes {
  bool haveGrid = false;
  std::optional<std::array<int64_t, 3>> block{};  ///< code is made for no other
};

/// Of a kernel whose grid is inferred.
LaunchShapes launchShapes(const Function& kernel, const Program& program, const OutsideSizes& outside = {});

/// Reports E0462 and E0465; returns the kernels that launches give a grid, with where the first one does.
std::map<const Function*, const Expr*> checkLaunches(const Program& program, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
