// Grid and block of a kernel's main phase.
#pragma once

#include "irgen/entry.h"

namespace vortex::irgen {

struct LaunchShape {
  std::array<ir::SizeAttr, 3> grid;   ///< blocks in x, y, z
  std::array<ir::SizeAttr, 3> block;  ///< threads

  std::optional<int64_t> blockSize(unsigned axis) const {
    return block[axis] ? ir::constantSize(block[axis]) : std::nullopt;
  }
};

/// Sizes from the launch (a grid as what it will be given), then from the kernel; a domain is covered by blocks of the default shape. Nothing after an error.
/// Whole-tensor kernels have an empty shape.
std::optional<LaunchShape> launchShape(const Entry& entry, const Options& options, const Locations& locations);

}  // namespace vortex::irgen
