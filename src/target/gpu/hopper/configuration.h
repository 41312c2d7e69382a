// Block tiles of products on warpgroup matrix units: one producer warpgroup, two or three consumers of 64 rows each.
#pragma once

#include "chip/chip.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace vortex::target::gpu::hopper {

inline constexpr unsigned kDepthBytes = 128;    ///< of both operands per stage: a row of the 128-byte swizzle
inline constexpr unsigned kStagedBytes = 4096;  ///< per consumer warp: two boxes of results on their way to memory

struct Configuration {
  unsigned rows = 0, columns = 0;  ///< of the block tile
  unsigned stages = 0;             ///< in shared memory at once
  /// Core cycles that 128 bytes of depth take; 0: no product runs so.
  unsigned stepCycles = 0;
  /// The same where sums of each step are added to those before; 0: consumers lack the registers for both.
  unsigned partCycles = 0;
  /// The same where threads store results that lie anyhow; 0: no such product runs so.
  unsigned anyhowCycles = 0;

  /// Of 16-bit elements; 192 rows leave consumers too few registers for much more than sums.
  bool isForTileCode() const { return rows != 192; }
  /// Boxes of columns that lie across hold 64: so many cannot be shared.
  unsigned consumers() const { return rows == 192 ? 3 : rows == 64 && columns == 64 ? 1 : 2; }
  unsigned threads() const { return 128 * (1 + consumers()); }
  /// Of a producer thread and of a consumer thread; together what so many threads of 168 (128) registers have.
  unsigned producerRegisters() const { return consumers() == 3 ? 32 : 40; }
  unsigned consumerRegisters() const { return consumers() == 3 ? 160 : 232; }
  /// Tiles of 64 rows are shared along their columns, others along their rows.
  unsigned consumerColumns() const { return rows == 64 ? columns / consumers() : columns; }
  /// "wgmma 128x256 stages 4"
  std::string str() const;
  friend bool operator==(const Configuration&, const Configuration&) = default;
};

/// The configuration str() wrote; none if it is no configuration.
std::optional<Configuration> parseConfiguration(const std::string& text);

/// Those that products choose from, on a chip that has the unit; none elsewhere.
std::span<const Configuration> configurations(const chip::Gpu& chip);

/// Block tiles of online softmax between two products, as many consumers of 64 rows as fit.
struct StreamConfiguration {
  unsigned width = 0;  ///< of both products' other operands at most: the depth of the first, columns of the second
  unsigned consumers = 0;
  unsigned keys = 0;      ///< of the streamed axis, per chunk
  unsigned duration = 0;  ///< of a block, relative to those of other tiles of the width
  unsigned producerRegisters = 0, consumerRegisters = 0;
  bool ofPieces = false;  ///< for blocks of few queries, each of which has a piece of the streamed axis

  unsigned rows() const { return 64 * consumers; }
  unsigned threads() const { return 128 * (1 + consumers); }
  /// That a core has registers for.
  unsigned blocksPerCore() const { return consumers == 1 ? 2 : 1; }
  /// "wgmma stream 128x128 width 128"
  std::string str() const;
  friend bool operator==(const StreamConfiguration&, const StreamConfiguration&) = default;
};

std::optional<StreamConfiguration> parseStreamConfiguration(const std::string& text);

/// Those of one kind narrowest first; none on chips without the unit.
std::span<const StreamConfiguration> streamConfigurations(const chip::Gpu& chip);

}  // namespace vortex::target::gpu::hopper
