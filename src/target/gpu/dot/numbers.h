// 32-bit arithmetic with folding: places in shared memory and inside block tiles.
#pragma once

#include "target/gpu/lowering.h"

namespace vortex::target::gpu::dot {

class Numbers {
public:
  explicit Numbers(Lowering& lowering) : l(lowering) {}

  Value constant(int64_t value) { return l.i32(value); }
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, int64_t y);
  Value bitAnd(Value x, int64_t mask);
  Value bitOr(Value x, Value y);
  Value bitXor(Value x, Value y);
  Value shiftLeft(Value x, unsigned by);
  Value shiftRight(Value x, unsigned by);
  Value min(Value x, Value y);   ///< signed
  Value max(Value x, Value y);   ///< signed
  Value less(Value x, Value y);  ///< signed, i1
  Value select(Value condition, Value x, Value y);
  /// x limited to 0 … limit.
  Value clamp(Value x, int64_t limit) { return min(max(x, constant(0)), constant(limit)); }
  Value widen(Value x);  ///< non-negative i32 → index
  /// index → i32, limited to `limit` (signed).
  Value narrow(Value x, int64_t limit);
  /// Four words: the sixteen bytes that start `shift` bytes, whole elements, into low:high, vectors of sixteen bytes each.
  Values cut(Value low, Value high, Value shift, unsigned elementBytes);

  Lowering& l;
};

}  // namespace vortex::target::gpu::dot
