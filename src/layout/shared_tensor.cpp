#include "layout/shared_tensor.h"

#include <bit>

namespace vortex::layout {

SharedTensor sharedTensor(int64_t elements, int64_t elementBytes, const XorSwizzle& swizzle) {
  if (swizzle.mask == 0)
    return {elements * elementBytes, elements * elementBytes >= 128 ? 128 : 16};
  const int64_t group = int64_t{1} << (swizzle.base + static_cast<unsigned>(std::bit_width(swizzle.mask)));
  return {(elements + group - 1) / group * group * elementBytes, 1024};
}

}  // namespace vortex::layout
