// Block sizes of a matrix product, chosen from register and cache sizes.
#pragma once

#include <cstdint>
#include <optional>

#include "target/cpu/codegen/target.h"

namespace vortex::target::cpu::gemm {

struct CacheSizes {
  uint64_t l1Bytes = 32 << 10;  ///< data cache of one core
  uint64_t l2Bytes = 512 << 10;
  uint64_t l3Bytes = 16 << 20;  ///< shared
};

/// Extents known while compiling; empty = known only at run time.
struct KnownExtents {
  std::optional<uint64_t> m, n, k;
};

/// C tile of one block: up to `mc` rows × `nc` columns. The micro-kernel keeps mr × (nrVectors · lanes) accumulators in
/// registers.
struct Plan {
  uint32_t elementBytes = 4;  ///< compute type: 4 (f32) or 8 (f64)
  uint32_t lanes = 8;         ///< of one vector register
  uint32_t mr = 6;
  uint32_t nrVectors = 2;
  uint32_t kc = 256;    ///< depth of one pass over K
  uint32_t mc = 120;    ///< multiple of mr
  uint32_t nc = 512;    ///< multiple of nr()
  uint32_t unroll = 4;  ///< micro-kernel steps of k per iteration

  /// Up to these a product runs on the direct path, without a global copy of B: m ≤ directRows, n ≤ directColumns or
  /// m·n·k ≤ directWork.
  uint64_t directRows = 132, directColumns = 4, directWork = 128 * 128 * 128;
  /// Fewer rows than this are multiplied straight from B's storage.
  uint64_t packedRows = 4;
  /// Block tile and depth of the direct path.
  uint32_t directMc = 132, directNc = 512, directKc = 1024;  ///< multiples of mr, nr() and lanes

  uint32_t nr() const { return nrVectors * lanes; }
  bool usesDirect(uint64_t m, uint64_t n, uint64_t k) const {
    return m <= directRows || n <= directColumns || m * n * k <= directWork;
  }
  /// Elements of the packed copy of one B matrix: panels of nr columns, zero-padded, each k × nr.
  uint64_t packedElements(uint64_t n, uint64_t k) const { return (n + nr() - 1) / nr() * nr() * k; }
  /// Blocks along rows and columns of the packed path; the direct path uses directMc and directNc in the same way.
  uint64_t rowBlocks(uint64_t m) const { return (m + mc - 1) / mc; }
  uint64_t columnBlocks(uint64_t n) const { return (n + nc - 1) / nc; }
  /// Block scratch of either path, bytes; the block's scratch pointer must be 64-byte aligned. `accumulates`: partial
  /// sums have no storage of their own (Problem::partialAddress empty).
  uint64_t scratchBytes(bool accumulates) const;
};

/// elementBytes: 4 or 8.
Plan choosePlan(const VectorFeatures& features, const CacheSizes& caches, uint32_t elementBytes,
                const KnownExtents& extents = {});

}  // namespace vortex::target::cpu::gemm
