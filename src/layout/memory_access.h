// What one access of a warp to memory costs. The counting functions take addresses, so they are exact for any index function; the layout
// functions answer the same questions by ranks.
#pragma once

#include "layout/layout.h"

namespace vortex::layout {

inline constexpr unsigned kBanks = 32, kBankBytes = 4, kSectorBytes = 32, kWarpLanes = 32;

/// Distinct 32-byte sectors that a warp touches when lane i accesses `bytes` bytes at byteAddresses[i]. Lanes that are masked off are left out.
unsigned countSectors(std::span<const uint64_t> byteAddresses, unsigned bytes);

struct BankUse {
  unsigned wavefronts = 0;  ///< passes through the banks
  unsigned least = 0;       ///< passes any access of this width needs
  unsigned degree = 0;      ///< worst phase: distinct words that one bank must deliver
  bool conflictFree() const { return degree <= 1; }
};
/// Shared-memory access of a warp: lane i accesses `bytes` (1, 2, 4, 8 or 16) at byteOffsets[i], aligned to `bytes`. Wide accesses run in
/// phases: 8 bytes per half warp, 16 per quarter; lanes of a phase that read the same word share it.
BankUse countBanks(std::span<const uint64_t> byteOffsets, unsigned bytes);

/// How a register layout meets a row-major (last dimension contiguous) memory.
struct VectorAccess {
  unsigned elements = 1;  ///< power of two: elements that one thread accesses at once
  Columns registers;      ///< register bit combinations that move to element 1, 2, 4, … of the vector
};
/// The widest vector of at most `maxBytes`: elements that one thread holds and that are neighbours in `memory` (a layout of Offset bits).
VectorAccess widestVector(const Layout& registers, const Layout& memory, unsigned elementBytes, unsigned maxBytes = 16);
/// The memory layout of a row-major tensor of these log2 extents.
Layout rowMajor(std::vector<unsigned> dims);

/// Byte offset of every lane's first element of register `reg` in warp `warp`.
std::vector<uint64_t> laneOffsets(const Layout& registers, const Layout& memory, unsigned elementBytes, Bits reg = 0,
                                  Bits warp = 0);
/// By ranks: words per bank that a phase of lanes with these byte-offset images needs. `lanes`: offsets of the lane bits.
unsigned bankDegree(std::span<const Bits> laneByteOffsets, unsigned bytes);

}  // namespace vortex::layout
