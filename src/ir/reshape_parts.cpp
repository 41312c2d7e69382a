#include "ir/reshape_parts.h"

#include "ir/tile_sizes.h"

namespace vortex::ir {

ReshapeParts reshapeParts(ReshapeOp op) {
  auto from = tileSizes(op.getValue()), to = tileSizes(op.getResult());
  ReshapeParts parts{0, 0};
  size_t most = std::min(from.size(), to.size());
  while (parts.prefix < most && isSameSize(from[parts.prefix], to[parts.prefix]))
    ++parts.prefix;
  while (parts.prefix + parts.suffix < most &&
         isSameSize(from[from.size() - 1 - parts.suffix], to[to.size() - 1 - parts.suffix]))
    ++parts.suffix;
  return parts;
}

static int64_t across(ReshapeParts parts, int64_t fromRank, int64_t toRank, int64_t dim) {
  if (dim < int64_t{parts.prefix})
    return dim;
  return dim >= fromRank - int64_t{parts.suffix} ? dim - fromRank + toRank : -1;
}

int64_t sourceDim(ReshapeOp op, int64_t dim) {
  return across(reshapeParts(op), op.getType().getRank(), op.getValue().getType().getRank(), dim);
}

int64_t steppedDim(ReshapeOp op, int64_t dim) {
  const ReshapeParts parts = reshapeParts(op);
  const int64_t end = op.getType().getRank() - int64_t{parts.suffix};
  const int64_t sourceEnd = op.getValue().getType().getRank() - int64_t{parts.suffix};
  const bool isOne = sourceEnd - int64_t{parts.prefix} == 1;
  return dim + 1 == end && dim >= int64_t{parts.prefix} && isOne ? sourceEnd - 1 : sourceDim(op, dim);
}

int64_t resultDim(ReshapeOp op, int64_t dim) {
  return across(reshapeParts(op), op.getValue().getType().getRank(), op.getType().getRank(), dim);
}

}  // namespace vortex::ir
