// What a tensor of the program takes in the shared memory of a block.
#pragma once

#include "layout/swizzle.h"

namespace vortex::layout {

struct SharedTensor {
  int64_t bytes = 0;
  int64_t alignment = 16;
};

/// A swizzle permutes whole groups, so it asks for whole ones and a base that does not disturb them. Else a tensor of 128 bytes begins where a
/// row of all banks does.
SharedTensor sharedTensor(int64_t elements, int64_t elementBytes, const XorSwizzle& swizzle);

}  // namespace vortex::layout
