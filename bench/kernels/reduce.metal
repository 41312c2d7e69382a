#include <metal_stdlib>
using namespace metal;

/// reduce.vx in Metal.
kernel void reduce(device const float* data [[buffer(0)]], device float* partial [[buffer(1)]],
                   uint at [[thread_position_in_grid]], uint local [[thread_position_in_threadgroup]],
                   uint group [[threadgroup_position_in_grid]]) {
  threadgroup float tile[256];
  tile[local] = data[at];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint stride = 128; stride > 0; stride /= 2) {
    if (local < stride)
      tile[local] += tile[local + stride];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (local == 0)
    partial[group] = tile[0];
}
