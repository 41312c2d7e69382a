// What is known of an index from how it is computed.
#pragma once

#include "mlir/IR/Value.h"

#include <cstdint>
#include <limits>

namespace vortex::ir {

/// Bounds of an integer as a signed number; full: nothing is known.
struct IndexRange {
  int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
};

/// Of an index or an integer of at most 64 bits, wrapping included. Extents of tensors are taken to be below 2^62.
IndexRange indexRange(mlir::Value value);

inline bool isNotNegative(mlir::Value value) { return indexRange(value).low >= 0; }

}  // namespace vortex::ir
