// Walking the elements of a tile, and what the tile operations share.
#pragma once

#include "interpreter/program.h"

namespace vortex::interpreter {

using Shape = llvm::SmallVector<int64_t, 4>;

/// Calls f(row-major number, index) for every element while it returns true.
template <typename F> bool walk(llvm::ArrayRef<int64_t> shape, F f) {
  Shape index(shape.size(), 0);
  size_t count = elementCount(shape);
  for (size_t number = 0; number < count; ++number) {
    if (!f(number, llvm::ArrayRef<int64_t>(index)))
      return false;
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
  return true;
}

/// Shapes the result register: dynamic extents come from operands starting at `firstSize`.
bool newTile(Machine& machine, const Node& node, size_t firstSize, Shape& shape);
/// Reports extents that do not fit each other; false.
bool reportShape(Machine& machine, const Node& node, llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

/// vx.reduce, vx.scan, vx.dot.
NodeFunction findCombiningFunction(mlir::Operation* op);

}  // namespace vortex::interpreter
