// The same two kernels as bench/kernels/*.vx, as an OpenCL programmer writes them.

__attribute__((reqd_work_group_size(256, 1, 1)))
__kernel void reduce(__global const float *data, __global float *partial) {
  __local float tile[256];
  uint local_id = get_local_id(0);
  tile[local_id] = data[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint stride = 128; stride > 0; stride /= 2) {
    if (local_id < stride)
      tile[local_id] += tile[local_id + stride];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (local_id == 0)
    partial[get_group_id(0)] = tile[0];
}

__attribute__((reqd_work_group_size(32, 32, 1)))
__kernel void transpose(__global const float *in, __global float *out, uint n) {
  __local float tile[32][33];
  uint x = get_local_id(0), y = get_local_id(1);
  uint column = get_group_id(0) * 32, row = get_group_id(1) * 32;
  tile[y][x] = in[(row + y) * n + column + x];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[(column + y) * n + row + x] = tile[x][y];
}
