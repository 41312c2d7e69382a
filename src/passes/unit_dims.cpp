#include "passes/unit_dims.h"

#include "ir/reshape_parts.h"
#include "ir/tile_sizes.h"

namespace vortex::passes {

using namespace mlir;

namespace {

/// The sizes that are not the constant 1. Nothing: some are not known.
std::optional<SmallVector<OpFoldResult>> others(Value tile) {
  SmallVector<OpFoldResult> found;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tile.getType()).getShape();
  for (auto [size, extent] : llvm::zip(ir::tileSizes(tile), shape)) {
    if (!size)
      return std::nullopt;
    if (extent != 1)
      found.push_back(size);
  }
  return found;
}

/// Dimensions of its source that are neither before nor behind all that changes.
bool isRegrouped(ir::ReshapeOp reshape) {
  const ir::ReshapeParts parts = ir::reshapeParts(reshape);
  ArrayRef<int64_t> shape = reshape.getValue().getType().getShape().drop_front(parts.prefix).drop_back(parts.suffix);
  return llvm::any_of(shape, [](int64_t extent) { return extent != 1; });
}

/// One dimension after the other.
class Splitter {
public:
  explicit Splitter(ir::ReshapeOp reshape)
      : reshape_(reshape), b_(reshape), value_(reshape.getValue()),
        shape_(reshape.getValue().getType().getShape().begin(), reshape.getValue().getType().getShape().end()) {}

  Value run(ArrayRef<OpFoldResult> sizes) {
    for (OpFoldResult size : sizes)
      if (auto value = dyn_cast<Value>(size))
        sizes_.push_back(value);
    ArrayRef<int64_t> to = reshape_.getType().getShape();
    size_t dim = 0;
    while (dim < shape_.size() || dim < to.size()) {
      const bool isUnit = dim < shape_.size() && shape_[dim] == 1, isWanted = dim < to.size() && to[dim] == 1;
      if (isUnit && !isWanted) {
        shape_.erase(shape_.begin() + static_cast<ptrdiff_t>(dim));
        step();
      } else if (isWanted && !isUnit) {
        shape_.insert(shape_.begin() + static_cast<ptrdiff_t>(dim), 1);
        step();
      } else {
        ++dim;
      }
    }
    return value_;
  }

private:
  void step() {
    auto type = RankedTensorType::get(shape_, reshape_.getType().getElementType());
    value_ = b_.create<ir::ReshapeOp>(reshape_.getLoc(), type, value_, sizes_);
  }

  ir::ReshapeOp reshape_;
  OpBuilder b_;
  Value value_;
  SmallVector<int64_t> shape_;
  SmallVector<Value> sizes_;
};

}  // namespace

void splitUnitReshapes(ir::KernelOp kernel) {
  SmallVector<ir::ReshapeOp> reshapes;
  kernel.walk([&](ir::ReshapeOp reshape) { reshapes.push_back(reshape); });
  for (ir::ReshapeOp reshape : reshapes) {
    auto from = others(reshape.getValue()), to = others(reshape.getResult());
    if (!from || !to || *from != *to || !isRegrouped(reshape))
      continue;
    reshape.getResult().replaceAllUsesWith(Splitter(reshape).run(*to));
    reshape.erase();
  }
}

}  // namespace vortex::passes
