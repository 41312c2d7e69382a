#include "passes/sink_reshapes.h"

#include "ir/reshape_parts.h"
#include "ir/tile_sizes.h"
#include "passes/plan/axes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace vortex::passes {

using namespace mlir;

namespace {

bool regroups(ir::ReshapeOp reshape) {
  auto others = [](Value tile) {
    return llvm::count_if(cast<RankedTensorType>(tile.getType()).getShape(), [](int64_t size) { return size != 1; });
  };
  return others(reshape.getValue()) != others(reshape.getResult());
}

class Sinker {
public:
  explicit Sinker(ir::TileStoreOp store) : b_(store), loc_(store.getLoc()) {}

  /// The tile as the result of a reshape that regroups; null: it is none.
  ir::ReshapeOp pull(Value tile) {
    Operation* op = tile.getDefiningOp();
    if (!op || !isTile(tile))
      return {};
    if (auto known = found_.find(tile); known != found_.end())
      return known->second;
    ir::ReshapeOp made;
    if (auto reshape = dyn_cast<ir::ReshapeOp>(op))
      made = regroups(reshape) ? reshape : ir::ReshapeOp();
    else if (auto turned = dyn_cast<ir::TransposeOp>(op))
      made = pullThrough(turned);
    else if (ir::isElementwise(op))
      made = pullThrough(op);
    return found_[tile] = made;
  }

private:
  ir::ReshapeOp reshaped(Value source, Value like) {
    auto type = cast<RankedTensorType>(like.getType()).clone(getElementTypeOrSelf(source.getType()));
    return b_.create<ir::ReshapeOp>(loc_, type, source, dynamicSizes(like));
  }

  ir::ReshapeOp pullThrough(ir::TransposeOp turned) {
    ir::ReshapeOp inner = pull(turned.getValue());
    if (!inner || !hasSizes(inner.getValue()) || !hasSizes(turned.getResult()))
      return {};
    const ir::ReshapeParts parts = ir::reshapeParts(inner);
    auto from = cast<RankedTensorType>(inner.getValue().getType());
    auto to = cast<RankedTensorType>(inner.getResult().getType());
    int64_t prefix = parts.prefix, toEnd = to.getRank() - parts.suffix, fromEnd = from.getRank() - parts.suffix;
    if (prefix == toEnd)
      return {};
    SmallVector<int64_t> permutation;
    ArrayRef<int64_t> order = turned.getPermutation();
    for (size_t i = 0; i < order.size(); ++i) {
      if (order[i] < prefix || order[i] >= toEnd) {
        permutation.push_back(order[i] < prefix ? order[i] : order[i] - toEnd + fromEnd);
        continue;
      }
      for (int64_t dim = prefix; dim < toEnd; ++dim, ++i)
        if (i >= order.size() || order[i] != dim)
          return {};
      --i;
      for (int64_t dim = prefix; dim < fromEnd; ++dim)
        permutation.push_back(dim);
    }
    SmallVector<int64_t> shape;
    for (int64_t dim : permutation)
      shape.push_back(from.getDimSize(static_cast<unsigned>(dim)));
    auto source =
        b_.create<ir::TransposeOp>(loc_, from.clone(shape), inner.getValue(), b_.getDenseI64ArrayAttr(permutation));
    return reshaped(source, turned.getResult());
  }

  ir::ReshapeOp pullThrough(Operation* op) {
    ir::ReshapeOp inner;
    for (Value operand : op->getOperands())
      if (!inner)
        inner = pull(operand);
    if (!inner || !hasSizes(inner.getValue()) || !hasSizes(op->getResult(0)))
      return {};
    OperationState state(op->getLoc(), op->getName());
    for (Value operand : op->getOperands())
      state.operands.push_back(isTile(operand) ? regrouped(operand, inner.getValue()) : operand);
    auto type = cast<RankedTensorType>(inner.getValue().getType());
    state.types.push_back(type.clone(getElementTypeOrSelf(op->getResult(0))));
    state.attributes = llvm::to_vector(op->getAttrs());
    state.propertiesAttr = op->getPropertiesAsAttribute();
    return reshaped(b_.create(state)->getResult(0), op->getResult(0));
  }

  /// `tile`, with the extents of `like`.
  Value regrouped(Value tile, Value like) {
    if (auto own = pull(tile); own && sameSizes(own.getValue(), like))
      return own.getValue();
    auto repeated = tile.getDefiningOp<ir::BroadcastOp>();
    if (!repeated || isTile(repeated.getValue()))
      return reshaped(tile, like);
    auto type = cast<RankedTensorType>(like.getType()).clone(getElementTypeOrSelf(tile.getType()));
    return b_.create<ir::BroadcastOp>(loc_, type, repeated.getValue(), b_.getDenseI64ArrayAttr({}), dynamicSizes(like));
  }

  static SmallVector<Value> dynamicSizes(Value tile) {
    SmallVector<Value> sizes;
    for (OpFoldResult size : ir::tileSizes(tile))
      if (auto value = dyn_cast_if_present<Value>(size))
        sizes.push_back(value);
    return sizes;
  }

  static bool hasSizes(Value tile) {
    return llvm::all_of(ir::tileSizes(tile), [](OpFoldResult size) { return bool(size); });
  }

  static bool sameSizes(Value a, Value b) {
    return llvm::equal(cast<RankedTensorType>(a.getType()).getShape(),
                       cast<RankedTensorType>(b.getType()).getShape()) &&
           ir::tileSizes(a) == ir::tileSizes(b);
  }

  OpBuilder b_;
  Location loc_;
  llvm::DenseMap<Value, ir::ReshapeOp> found_;
};

}  // namespace

void sinkReshapes(ir::KernelOp kernel) {
  Block& body = kernel.getBody().front();
  for (auto store : llvm::make_early_inc_range(body.getOps<ir::TileStoreOp>())) {
    ir::ReshapeOp reshape = Sinker(store).pull(store.getValue());
    if (!reshape)
      continue;
    OpBuilder builder(store);
    auto own = cast<ir::ReshapeOp>(builder.clone(*reshape));
    own->setAttr(kByPieceAttribute, builder.getUnitAttr());
    store.getValueMutable().assign(own.getResult());
  }
  for (Operation& op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

static bool haveSameSizes(Value a, Value b) {
  return a.getType() == b.getType() &&
         llvm::all_of(llvm::zip_equal(ir::tileSizes(a), ir::tileSizes(b)),
                      [](auto sizes) { return ir::isSameSize(std::get<0>(sizes), std::get<1>(sizes)); });
}

void dropReshapesBack(ir::KernelOp kernel) {
  kernel.walk([](ir::ReshapeOp reshape) {
    for (auto step = reshape; step; step = step.getValue().getDefiningOp<ir::ReshapeOp>())
      if (haveSameSizes(step.getValue(), reshape))
        reshape.getResult().replaceAllUsesWith(step.getValue());
    if (reshape->use_empty())
      reshape.erase();
  });
}

}  // namespace vortex::passes
