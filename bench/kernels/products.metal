#include <metal_stdlib>
using namespace metal;

/// C = A·B, sizes multiples of 16: 16 × 16 threads for as many elements of C, by way of tiles in threadgroup memory.
kernel void tiled(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]], device float* c [[buffer(2)]],
                  constant uint3& sizes [[buffer(3)]], uint2 thread_at [[thread_position_in_threadgroup]],
                  uint2 group [[threadgroup_position_in_grid]]) {
  threadgroup float left[16][16], right[16][16];
  const uint row = group.y * 16 + thread_at.y, column = group.x * 16 + thread_at.x;
  float sum = 0;
  for (uint k = 0; k < sizes.y; k += 16) {
    left[thread_at.y][thread_at.x] = a[row * sizes.y + k + thread_at.x];
    right[thread_at.y][thread_at.x] = b[(k + thread_at.y) * sizes.z + column];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < 16; ++i)
      sum = fma(left[thread_at.y][i], right[i][thread_at.x], sum);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  c[row * sizes.z + column] = sum;
}

/// The same, a simdgroup for 16 × 16 elements.
kernel void fragments(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]],
                      device float* c [[buffer(2)]], constant uint3& sizes [[buffer(3)]],
                      uint2 group [[threadgroup_position_in_grid]]) {
  simdgroup_float8x8 sums[2][2], left[2], right[2];
  for (uint i = 0; i < 2; ++i)
    for (uint j = 0; j < 2; ++j)
      sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint k = 0; k < sizes.y; k += 8) {
    for (uint i = 0; i < 2; ++i) {
      simdgroup_load(left[i], a + (group.y * 16 + i * 8) * sizes.y + k, sizes.y);
      simdgroup_load(right[i], b + k * sizes.z + group.x * 16 + i * 8, sizes.z);
    }
    for (uint i = 0; i < 2; ++i)
      for (uint j = 0; j < 2; ++j)
        simdgroup_multiply_accumulate(sums[i][j], left[i], right[j], sums[i][j]);
  }
  for (uint i = 0; i < 2; ++i)
    for (uint j = 0; j < 2; ++j)
      simdgroup_store(sums[i][j], c + (group.y * 16 + i * 8) * sizes.z + group.x * 16 + j * 8, sizes.z);
}
