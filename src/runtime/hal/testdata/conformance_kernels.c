// Bodies of the conformance suite's kernels as CPU entry points. The calling convention is artifact.h's; parameters and phases
// of each kernel are in conformance_kernels.cpp.
#include <stdint.h>

struct Block {
  uint32_t id[3], grid[3], block[3];
  uint32_t worker;
  void *scratch;
  void (*print)(void *context, uint32_t fault, const uint64_t *values, uint32_t count);
  uint32_t (*meet)(void *context);
  void *context;
};

static float asFloat(uint64_t slot) {
  union {
    uint32_t bits;
    float value;
  } convert = {(uint32_t)slot};
  return convert.value;
}

// scale(x: f32[n], factor: f32) -> y: f32[n]. Slots: x 0..2, factor 3, y 4..6. 256 elements a block.
uint32_t scale(const uint64_t *slots, const struct Block *block) {
  const float *x = (const float *)slots[0];
  float *y = (float *)slots[4];
  const float factor = asFloat(slots[3]);
  const int64_t n = (int64_t)slots[1], stride = (int64_t)slots[2], begin = (int64_t)block->id[0] * 256;
  for (int64_t i = begin; i < n && i < begin + 256; ++i)
    y[i] = x[i * stride] * factor;
  return 0;
}

// update(a: inout i64[n], factor: i64, addend: i64): a = a * factor + addend. Slots: a 0..2, factor 3, addend 4. 64 a block.
uint32_t update(const uint64_t *slots, const struct Block *block) {
  int64_t *a = (int64_t *)slots[0];
  const int64_t n = (int64_t)slots[1], stride = (int64_t)slots[2], begin = (int64_t)block->id[0] * 64;
  for (int64_t i = begin; i < n && i < begin + 64; ++i)
    a[i * stride] = (int64_t)((uint64_t)a[i * stride] * slots[3] + slots[4]);
  return 0;
}

// total(x: i32[n]) -> sum: i64, temporary partial: i64[blocks]. Slots: x 0..2, sum 3, partial 4..6. Phase 0 goes through
// scratch of 128 values a block, phase 1 adds the partial sums.
uint32_t total_partial(const uint64_t *slots, const struct Block *block) {
  const int32_t *x = (const int32_t *)slots[0];
  int64_t *partial = (int64_t *)slots[4], *local = (int64_t *)block->scratch;
  const int64_t n = (int64_t)slots[1], begin = (int64_t)block->id[0] * 128;
  if (((uintptr_t)local & 63) != 0)
    return 1;
  for (int64_t i = 0; i < 128; ++i)
    local[i] = begin + i < n ? x[begin + i] : 0;
  for (int64_t width = 64; width > 0; width /= 2)
    for (int64_t i = 0; i < width; ++i)
      local[i] += local[i + width];
  partial[block->id[0]] = local[0];
  return 0;
}

uint32_t total_final(const uint64_t *slots, const struct Block *block) {
  (void)block;
  int64_t *sum = (int64_t *)slots[3];
  const int64_t *partial = (const int64_t *)slots[4];
  for (int64_t i = 0; i < (int64_t)slots[5]; ++i)
    *sum += partial[i]; // starts at zero: the result asks for it
  return 0;
}

// check(x: i32[n]) -> seen: i32[n]. One block an element: fault 1 below zero, fault 2 above 100. Slots: x 0..2, seen 3..5.
uint32_t check(const uint64_t *slots, const struct Block *block) {
  const int32_t value = ((const int32_t *)slots[0])[block->id[0]];
  ((int32_t *)slots[3])[block->id[0]] = 1;
  return value < 0 ? 1 : value > 100 ? 2 : 0;
}

// until(a: inout i64[n], limit: i64), temporary goes_on: i64[1]. Slots: a 0..2, limit 3, lets 4 and 5, goes_on 6..8. Fault 1 where a[0] is
// -1; 64 elements a block are doubled.
uint32_t until_asks(const uint64_t *slots, const struct Block *block) {
  const int64_t first = *(const int64_t *)slots[0];
  (void)block;
  *(int64_t *)slots[6] = first < (int64_t)slots[3];
  return first == -1;
}

uint32_t until_doubles(const uint64_t *slots, const struct Block *block) {
  int64_t *a = (int64_t *)slots[0];
  const int64_t n = (int64_t)slots[1], begin = (int64_t)block->id[0] * 64;
  for (int64_t i = begin; i < n && i < begin + 64; ++i)
    a[i] *= 2;
  return 0;
}

// coordinates(shape as three i32 scalars) -> out: u32[z, y, x]: the block's position as each sees it. Slots: 0, 1, 2, out 3..9.
uint32_t coordinates(const uint64_t *slots, const struct Block *block) {
  uint32_t *out = (uint32_t *)slots[3];
  const uint32_t *id = block->id, *grid = block->grid;
  out[((uint64_t)id[2] * grid[1] + id[1]) * grid[0] + id[0]] = id[0] + 1000 * id[1] + 1000000 * id[2] + block->block[0] * 0x10000000u;
  return 0;
}

// transpose(x: f32[m, n]) -> y: f32[n, m]. Slots: x 0..4, y 5..9. A block a row of y.
uint32_t transpose(const uint64_t *slots, const struct Block *block) {
  const float *x = (const float *)slots[0];
  float *y = (float *)slots[5];
  const int64_t m = (int64_t)slots[1], rowStride = (int64_t)slots[3], columnStride = (int64_t)slots[4];
  for (int64_t i = 0; i < m; ++i)
    y[block->id[0] * m + i] = x[i * rowStride + block->id[0] * columnStride];
  return 0;
}

// talk(n: i32): each of n blocks prints format 1 with its index and twice the index.
uint32_t talk(const uint64_t *slots, const struct Block *block) {
  (void)slots;
  const uint64_t values[2] = {block->id[0], 2 * (uint64_t)block->id[0]};
  if (block->print)
    block->print(block->context, 1, values, 2);
  return 0;
}

// sparse() -> y: f32[1000], written nowhere.
uint32_t sparse(const uint64_t *slots, const struct Block *block) {
  (void)slots, (void)block;
  return 0;
}
