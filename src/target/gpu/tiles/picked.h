// Reductions that pick one element.
#pragma once

#include "target/gpu/tiles/closure.h"

#include <optional>

namespace vortex::target::gpu::tiles {

/// What a reduction along one dimension combines is its neutral element but where the position along the dimension is `position`:
/// `select(arange(N) == label, x, 0.0).sum(dim = -1)`.
struct Picked {
  mlir::Value element;  ///< as large as what is reduced
  mlir::Value
      position;  ///< an integer tile as large, the same along the dimension; equal to the place in as many bits as it has
  mlir::Value other;  ///< a scalar: what is combined with the element
};

/// Nothing where the reduction is another.
std::optional<Picked> pickedBy(ir::ReduceOp op);

}  // namespace vortex::target::gpu::tiles
