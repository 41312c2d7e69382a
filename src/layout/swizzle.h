// Shared-memory layouts without bank conflicts, solved from the accesses.
#pragma once

#include "layout/memory_access.h"

namespace vortex::layout {

/// offset ^= ((offset >> shift) & mask) << base, in elements of the row-major tile; the meaning of #vx.swizzle. mask 0: none.
struct XorSwizzle {
  unsigned shift = 0;
  uint64_t mask = 0;
  unsigned base = 0;
  uint64_t apply(uint64_t offset) const { return offset ^ (((offset >> shift) & mask) << base); }
  friend bool operator==(const XorSwizzle&, const XorSwizzle&) = default;
};

/// One access of a warp: where lane bits move (flat coordinates of the tile), `bytes` contiguous bytes per lane.
struct LaneAccess {
  Columns lanes;
  unsigned bytes = 4;
};
/// The access a register layout makes with vectors of `elements`.
LaneAccess accessOf(const Layout& registers, unsigned elements, unsigned elementBytes);

/// Words per bank of the access's worst phase when the tile (row-major flat coordinates) is stored through the swizzle.
unsigned bankDegree(const LaneAccess& access, const XorSwizzle& swizzle, unsigned elementBytes);

struct SwizzleChoice {
  XorSwizzle swizzle;
  std::vector<unsigned> degrees;  ///< per access; all 1: free of conflicts
};
/// The swizzle of a row-major tile of 2^rowBits × 2^columnBits elements with the smallest sum of degrees over the accesses, then the
/// smallest mask; it moves whole vectors of 2^vectorBits elements, and bits above the row only into bits inside it, so rows stay rows. Exact: every
/// candidate's degree is a rank.
SwizzleChoice solveXorSwizzle(unsigned rowBits, unsigned columnBits, unsigned vectorBits, unsigned elementBytes,
                              std::span<const LaneAccess> accesses);

/// The swizzle of `@shared(layout = .bank_conflict_free)` for a row-major tile of these extents, any numbers: with it, 32 neighbours along a row
/// and 32 rows of one column lie in different banks (as far as the tile has them). Exact, by enumeration of the accesses. No swizzle where none is needed (padded rows) or possible (one dimension).
XorSwizzle solveTileSwizzle(std::span<const int64_t> shape, unsigned elementBytes);

struct SharedLayout {
  Layout memory;                ///< Offset → coordinate, a bijection
  unsigned vectorElements = 1;  ///< contiguous elements that both sides hold in one thread
};
/// A memory layout in which two register layouts (bijections on their lanes) write and read vectors without bank conflicts: offset bits are
/// the common vector, what fills a bank's word, the bank, the rest; word and rest are a common complement of both sets of lanes, so that no
/// two lanes of a phase need different words of one bank (arXiv 2505.23819).
SharedLayout solveSharedLayout(const Layout& a, const Layout& b, unsigned elementBytes);

}  // namespace vortex::layout
