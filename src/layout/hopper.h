// What bulk tensor copies leave in shared memory, and where warpgroup matrix instructions look for it. Sources: PTX ISA, "Tensor swizzling
// modes", "Asynchronous warpgroup level matrix shared memory layout" (canonical layouts, descriptor) and "wgmma.mma_async" (fragments).
#pragma once

#include "layout/layout.h"

#include <cstdint>
#include <span>

namespace vortex::layout {

/// Swizzles repeat after so many bytes: boxes and operands begin at multiples of them.
inline constexpr uint32_t kSwizzleAlignment = 1024;
/// Bytes of depth that one warpgroup matrix instruction takes, whatever the type.
inline constexpr uint32_t kMatrixDepthBytes = 32;
/// Rows of a warpgroup's product.
inline constexpr uint32_t kWarpgroupRows = 64;

/// Where the byte at `address` of an unswizzled picture lies: the number of a 16-byte piece in its 128 bytes is XORed with that of the 128 bytes,
/// in as many bits as number the pieces of `swizzleBytes` (0: none, 32, 64, 128). Its own inverse.
constexpr uint32_t swizzled(uint32_t address, uint32_t swizzleBytes) {
  const uint32_t mask = swizzleBytes == 0 ? 0 : swizzleBytes / 16 - 1;
  return address ^ ((address >> 7 & mask) << 4);
}

/// Bytes from the start of a copied box to its element `at`; extents and coordinates innermost first. Rows of a swizzled box have exactly
/// swizzleBytes.
uint32_t placeInBox(std::span<const uint32_t> box, uint32_t elementBytes, uint32_t swizzleBytes,
                    std::span<const uint32_t> at);

/// The fields of a warpgroup matrix instruction's operand in shared memory.
struct MatrixDescriptor {
  uint32_t address = 0;  ///< in the block's shared memory, below 256 KiB
  uint32_t leadingBytes =
      0;  ///< multiples of 16 below 256 KiB, as strideBytes; what they mean depends on the layout: see addressRead
  uint32_t strideBytes = 0;
  uint32_t swizzleBytes = 0;
  friend bool operator==(const MatrixDescriptor&, const MatrixDescriptor&) = default;

  uint64_t encode() const;
  static MatrixDescriptor decode(uint64_t bits);
};

/// Which index of an operand runs along the rows of its boxes. "Across" is the index that the product keeps: rows of A, columns of B.
enum class Major : uint8_t { Depth, Across };

/// Where the instruction reads the element at (across, depth) of its operand.
uint32_t addressRead(const MatrixDescriptor& descriptor, Major major, uint32_t elementBytes, uint32_t across,
                     uint32_t depth);

/// An operand of a product as boxes of one tensor map, one after the other. A box is as wide as the swizzle (16 bytes without one); the other
/// index, at most 256, is whole in each.
struct OperandTile {
  uint32_t elementBytes = 2;
  Major major = Major::Depth;  ///< Across: 16-bit elements only
  uint32_t swizzleBytes = 128;
  uint32_t across = 0, depth = 0;  ///< extents; across a multiple of 8, depth of 32 bytes, rows of boxes of their width

  uint32_t boxColumns() const { return (swizzleBytes ? swizzleBytes : 16) / elementBytes; }
  uint32_t boxRows() const { return major == Major::Depth ? across : depth; }
  uint32_t boxBytes() const { return boxColumns() * boxRows() * elementBytes; }
  uint32_t boxes() const { return (major == Major::Depth ? depth : across) / boxColumns(); }
  uint32_t bytes() const { return boxes() * boxBytes(); }
  /// Bytes from the tile's start to an element, as the copies leave it.
  uint32_t place(uint32_t acrossAt, uint32_t depthAt) const;
  /// Of the part that instruction number `step` along the depth reads, from `firstAcross` on: a multiple of 8, of boxColumns() if Across. The tile
  /// begins at `address`.
  MatrixDescriptor descriptor(uint32_t address, uint32_t step, uint32_t firstAcross = 0) const;
  uint32_t steps() const { return depth * elementBytes / kMatrixDepthBytes; }
};

/// Accumulators of 64 rows × 8 columns in a warpgroup; a product of n columns has n/8 of them, side by side, in registers that follow one
/// another.
Layout warpgroupAccumulators();
/// A in registers, 64 rows × 32 bytes of depth, as mmaA.
Layout warpgroupA(unsigned elementBits);

}  // namespace vortex::layout
