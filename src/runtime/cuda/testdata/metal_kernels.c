// What the GPU's code of Metal kernels in the tests of src/metal does. Slots are as in artifact.h: a tensor is pointer, extent, stride.
#include <stdint.h>

// metal_saxpy(x: f32[n], y: inout f32[n], a: f32[1], grid[3], block[3]): y[i] += a * x[i] for each thread of the grid. Slots: x 0..2, y 3..5, a 6..8,
// the grid's threads 9..11, a threadgroup's 12..14.
uint32_t vx_metal_saxpy_main(const uint64_t *slots, const void *block) {
  const float *x = (const float *)slots[0], *a = (const float *)slots[6];
  float *y = (float *)slots[3];
  const uint64_t first = *(const uint32_t *)block * slots[12];
  for (uint64_t i = first; i < slots[9] && i < first + slots[12]; ++i)
    if (i < slots[1] && i < slots[4])
      y[i] += *a * x[i];
  return 0;
}

// The same for tensors that lie anywhere.
uint32_t vx_metal_saxpy_main_general(const uint64_t *slots, const void *block) {
  return vx_metal_saxpy_main(slots, block);
}
