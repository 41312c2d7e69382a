// Launches of a kernel in small sizes, for walks of its threads.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "lang/flow/value/lanes.h"
#include "lang/sema/program.h"

namespace vortex::lang::flow {

/// One launch: sizes that satisfy the kernel's launch checks.
struct SampleLaunch {
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  /// By DimVarId; nothing for dimension variables that a `let` binds.
  std::vector<std::optional<int64_t>> dims;
  /// Parameters that are given a number: integers and bools.
  std::vector<std::pair<const Variable*, int64_t>> scalars;

  int64_t threads() const { return block[0] * block[1] * block[2]; }
  int64_t blocks() const { return grid[0] * grid[1] * grid[2]; }
  /// "with N = 64, n = 3": the dimension variables of parameters and the scalars that are chosen; empty if there are none.
  std::string describe(const Function& kernel) const;
};

/// Launches with extents from a few small numbers, smaller ones first, at most `limit`. `shapes`: blocks that the kernel is launched with where it
/// has none of its own; `grid`: what launches give it, where that is constant. One thread of a whole-tensor kernel. None where sizes follow from what only a run knows.
std::vector<SampleLaunch> sampleLaunches(const Function& kernel, const std::vector<BlockShape>& shapes,
                                         const BlockShape& grid, size_t limit);

/// The same launch with small numbers for the scalars that it leaves open. None where there are none, or where the grid is given by arguments.
std::vector<SampleLaunch> withScalars(const Function& kernel, const SampleLaunch& launch);

/// A size of a launch as written: numbers, extents and arithmetic of them; nothing where it depends on anything else.
std::optional<int64_t> evaluateSize(const Expr& expr, const std::vector<std::optional<int64_t>>& dims);
/// The extent; nothing where it depends on what is not known.
std::optional<int64_t> evaluateDim(const DimExpr& expr, const std::vector<std::optional<int64_t>>& dims);

}  // namespace vortex::lang::flow
