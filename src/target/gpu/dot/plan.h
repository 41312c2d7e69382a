// How one block computes a matrix product: sizes chosen by a cost model from numbers of the chip, in one place.
#pragma once

#include "chip/chip.h"
#include "layout/swizzle.h"

#include <array>
#include <optional>
#include <string>

namespace vortex::target::gpu::dot {

/// Which unit multiplies.
enum class Unit : uint8_t {
  Fma,        ///< ordinary arithmetic: f32, integers
  Simdgroup,  ///< matrices of 8 by 8 that 32 threads hold (simdgroup_matrix): f32, f16, bf16
  Mma,  ///< matrix instructions of one warp (mma.sync m16n8): f16, bf16, 8-bit floats and integers, f64, f32 as tf32 where allowed
};

/// One operand's tile in shared memory: 2^across rows of A (columns of B) by 2^depth steps of the contracted dimension.
struct SharedTile {
  unsigned across = 0, depth = 0;  ///< log2
  unsigned elementBytes = 1;
  bool depthInner = true;      ///< the contracted dimension is contiguous
  unsigned pitch = 0;          ///< elements from one row of the tile to the next
  layout::XorSwizzle swizzle;  ///< of element offsets; rows are not padded then

  unsigned innerBits() const { return depthInner ? depth : across; }
  unsigned outerBits() const { return depthInner ? across : depth; }
  uint64_t elements() const { return uint64_t(pitch) << outerBits(); }
  uint64_t bytes() const { return elements() * elementBytes; }
  /// Elements in 16 bytes.
  unsigned chunk() const { return 16 / elementBytes; }
  /// Element offset of a coordinate.
  uint64_t offset(uint64_t x, uint64_t k) const;
};

/// Sizes of the schedule. Powers of two.
struct Plan {
  Unit unit = Unit::Fma;
  unsigned rows = 0, columns = 0, depth = 0;  ///< what a block multiplies per step
  unsigned warpRows = 0, warpColumns = 0;     ///< the part of a warp
  unsigned laneRows = 0;  ///< Fma: lanes of a warp along the rows (4 or 8); 32 / laneRows along the columns
  unsigned stages = 0;    ///< steps in shared memory at once
  unsigned blocks = 1;    ///< resident per core at once: registers are limited to allow it

  unsigned warps() const { return rows / warpRows * (columns / warpColumns); }
  unsigned threads() const { return 32 * warps(); }
  unsigned laneColumns() const { return 32 / laneRows; }
  unsigned threadRows() const { return warpRows / laneRows; }             ///< Fma
  unsigned threadColumns() const { return warpColumns / laneColumns(); }  ///< Fma
  unsigned fragments() const { return warpRows * warpColumns / 64; }      ///< Simdgroup: of a warp's sums
  /// "mma 128x256x32 warp 64x64 lanes 0 stages 4 blocks 1"
  std::string str() const;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// The plan str() wrote; none if it is no plan.
std::optional<Plan> parsePlan(const std::string& text);

/// What is known before the launch. Extents: upper bounds, 0: none.
struct Problem {
  unsigned elementBits = 32;  ///< of the operands
  bool isFloat = true;
  unsigned accBytes = 4;
  bool tf32 = false;  ///< f32 operands may be rounded to tf32
  int64_t rows = 0, columns = 0, depth = 0;
  unsigned threads = 0;  ///< fixed by the rest of the kernel; 0: free
};

/// The plan with the least modelled time per multiplication among those that fit the chip; none: its blocks have too little shared memory for
/// any. 21 KiB suffice for all types, 11 for those of up to 4 bytes.
std::optional<Plan> choosePlan(const chip::Gpu& chip, const Problem& problem);

/// For launches where blocks of `usual` would leave cores idle: the best plan with tiles of at most 64 × 128; none where the usual ones are small.
std::optional<Plan> chooseSmallPlan(const chip::Gpu& chip, const Problem& problem, const Plan& usual);

/// For launches of at most kThinRows rows: the best plan whose tiles have so few; none if that is no better.
constexpr unsigned kThinRows = 32;
std::optional<Plan> chooseThinPlan(const chip::Gpu& chip, const Problem& problem);

bool usesMatrixUnit(const chip::Gpu& chip, const Problem& problem);
/// It has room for its tiles and elements that its unit takes.
bool suits(const chip::Gpu& chip, const Plan& plan, const Problem& problem);

/// Shared tiles of a plan. `depthInner`: how the operand lies in global memory.
SharedTile sharedTile(const Plan& plan, bool isA, unsigned elementBytes, bool depthInner);
uint64_t sharedBytes(const Plan& plan, unsigned elementBytes);

/// Rows and columns of a simdgroup's matrix.
constexpr unsigned kSimdgroupSide = 8;

//===-- matrix fragments -----------------------------------------------------------------------------------------===//

/// How the registers of a matrix instruction come from shared memory.
enum class FragmentLoad : uint8_t {
  Matrix,            ///< ldmatrix: the depth is contiguous
  TransposedMatrix,  ///< ldmatrix.trans: 16-bit elements that lie across
  TransposedBytes,   ///< the same for pairs of 8-bit elements, taken apart in registers
  Elements,          ///< one by one: 32-bit elements that lie across, 64-bit ones
};
FragmentLoad fragmentLoad(unsigned elementBytes, bool depthInner);
/// Where the bits of a lane's number move what it reads (Elements) or points at (the others).
struct LanePlace {
  unsigned x, k;
};
std::array<LanePlace, 5> fragmentLanes(FragmentLoad load, bool isA, unsigned elementBytes);
/// What warps do with an operand's tile of `rows` × `columns` elements (log2) in memory: matrix fragments and copies of 16 bytes.
std::vector<layout::LaneAccess> tileAccesses(bool isA, bool depthInner, unsigned elementBytes, unsigned rows,
                                             unsigned columns);
/// Depth of one matrix instruction on elements of that size.
inline unsigned matrixDepth(unsigned elementBytes) { return elementBytes == 8 ? 8 : 32 / elementBytes; }

//===-- access patterns, for the swizzle solver and for tests ----------------------------------------------------===//

/// Elements per shared access of the fma unit's fragments.
unsigned fmaPiece(unsigned elementBytes);
/// Row (column) pieces of lane `lane` of a warp: the lane's place in the warp's lane grid.
unsigned fmaLaneRow(const Plan& plan, unsigned lane);
unsigned fmaLaneColumn(const Plan& plan, unsigned lane);
/// Byte offsets of the lanes of one warp in each shared access that the kernel makes, with the bytes per lane.
struct SharedAccess {
  const char* what;
  std::vector<uint64_t> lanes;
  unsigned bytes;
};
std::vector<SharedAccess> sharedAccesses(const Plan& plan, bool isA, const SharedTile& tile);

/// Rows of the product in shared memory: elements from one to the next.
unsigned resultPitch(const Plan& plan, unsigned elementBytes);
std::vector<SharedAccess> resultAccesses(const Plan& plan, unsigned elementBytes, unsigned pitch);

}  // namespace vortex::target::gpu::dot
