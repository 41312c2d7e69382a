#include "interpreter/memory.h"

namespace vortex::interpreter {

void Buffer::allocate(size_t elements, bool track) {
  storage.assign(std::max<size_t>(elements * elementBytes, 1), kPoison);
  base = storage.data();
  written.assign(track ? elements : 0, 0);
}

llvm::SmallVector<int64_t, 4> rowMajorStrides(llvm::ArrayRef<int64_t> extents) {
  llvm::SmallVector<int64_t, 4> strides(extents.size(), 1);
  for (size_t dim = extents.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * extents[dim];
  return strides;
}

llvm::SmallVector<int64_t, 4> columnMajorStrides(llvm::ArrayRef<int64_t> extents) {
  llvm::SmallVector<int64_t, 4> strides(extents.size(), 1);
  for (size_t dim = 1; dim < extents.size(); ++dim)
    strides[dim] = strides[dim - 1] * extents[dim - 1];
  return strides;
}

}  // namespace vortex::interpreter
