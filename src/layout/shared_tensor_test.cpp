#include "layout/shared_tensor.h"

#include <gtest/gtest.h>

#include <set>

namespace vortex::layout {
namespace {

TEST(SharedTensor, ASwizzledTensorHoldsEveryPlaceThatItsElementsMoveTo) {
  for (int64_t rows : {1, 3, 8, 32, 33})
    for (int64_t columns : {1, 4, 12, 32, 64, 96})
      for (unsigned bytes : {1u, 2u, 4u, 8u}) {
        const int64_t shape[] = {rows, columns};
        const XorSwizzle swizzle = solveTileSwizzle(shape, bytes);
        const SharedTensor tensor = sharedTensor(rows * columns, bytes, swizzle);
        std::set<uint64_t> places;
        for (uint64_t i = 0; i < static_cast<uint64_t>(rows * columns); ++i)
          places.insert(swizzle.apply(i));
        EXPECT_EQ(places.size(), static_cast<size_t>(rows * columns));
        EXPECT_LE((*places.rbegin() + 1) * bytes, static_cast<uint64_t>(tensor.bytes));
        EXPECT_EQ(tensor.alignment, swizzle.mask != 0 ? 1024 : rows * columns * bytes >= 128 ? 128 : 16);
      }
}

}  // namespace
}  // namespace vortex::layout
