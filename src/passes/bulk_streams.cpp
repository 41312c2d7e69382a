#include "passes/bulk_streams.h"

#include "ir/reshape_parts.h"
#include "ir/tile_sizes.h"
#include "passes/sink_reshapes.h"
#include "passes/stream_match.h"
#include "passes/stream_reductions.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

/// Of what makes a pair of weights from a pair of products, and of what finishes a pair of results: unrolled 64 times.
static constexpr unsigned kMostPairOperations = 62;
/// Of the streamed loop in the copy, until a way gives it its own.
static constexpr int64_t kStep = 64;

BulkStreams::BulkStreams(ModuleOp copy, const TensorSchedule& schedule, const EntryArguments& arguments)
    : copy_(copy), schedule_(schedule), arguments_(arguments) {
  streamReductions(copy, kStep);
  kernel_ = *copy.getOps<ir::KernelOp>().begin();
  sinkReshapes(kernel_);
  axes_ = std::make_unique<Axes>(kernel_, schedule.fusedOnly);
  clusters_ =
      std::make_unique<Clusters>(kernel_, *axes_, ClusterRules{schedule.fusedOnly, schedule.reductionBlocks > 0});
}

std::unique_ptr<BulkStreams> BulkStreams::find(ModuleOp module, const TensorSchedule& schedule,
                                               const EntryArguments& arguments) {
  if (schedule.streamTiles.empty() || ir::argumentSlots(arguments.types()).back() > schedule.bulkSlots)
    return nullptr;
  int64_t products = 0;
  module.walk([&](ir::DotOp) { ++products; });
  if (products < 2)
    return nullptr;
  std::unique_ptr<BulkStreams> found(new BulkStreams(module.clone(), schedule, arguments));
  if (!found->addCluster())
    return nullptr;
  for (const TensorSchedule::StreamTile& tile : schedule.streamTiles)
    found->addWay(tile);
  auto rewritten = *found->copy_->getOps<ir::EntryOp>().begin();
  if (Attribute notes = rewritten->getAttr(kNotesAttr))
    (*module.getOps<ir::EntryOp>().begin())->setAttr(kNotesAttr, notes);
  return found;
}

bool BulkStreams::addCluster() {
  if (clusters_->list.size() != 1 || clusters_->list.front().kind != Cluster::Kind::Parallel)
    return false;
  cluster_ = clusters_->list.front();
  width_ = ir::sizeConstant(kernel_.getContext(), 1);
  for (Operation* root : cluster().roots)
    if (auto loop = dyn_cast<scf::ForOp>(root); loop && !addLoop(loop))
      return false;
  if (!stream_)
    return false;
  for (Operation* root : cluster().roots)
    if (!isa<scf::ForOp>(root) && !(isa<ir::TileStoreOp>(root) && addStore(cast<ir::TileStoreOp>(root))))
      return false;
  return true;
}

SmallVector<Axis> BulkStreams::resultAxes() { return axes_->of(stream_->loop.getResult(stream_->accumulator)); }

bool BulkStreams::orderAxes() {
  SmallVector<Axis> rows = resultAxes();
  rows.pop_back();
  if (rows.size() != cluster_.parallel.size() ||
      !std::is_permutation(rows.begin(), rows.end(), cluster_.parallel.begin()))
    return false;
  cluster_.parallel = rows;
  return true;
}

bool BulkStreams::require(ir::SizeAttr condition) {
  needs_ = needs_ ? ir::sizeBinary(SizeOp::And, needs_, condition) : condition;
  return ir::constantSize(needs_) != 0;
}

bool BulkStreams::requireReachable(Value view) {
  auto argument = dyn_cast<BlockArgument>(view);
  return argument && argument.getOwner()->getParentOp() == kernel_ &&
         require(ir::SizeAttr::get(kernel_.getContext(),
                                   schedule_.bulkReach(arguments_.placementOf(argument.getArgNumber()))));
}

bool BulkStreams::addLoop(scf::ForOp loop) {
  std::optional<StreamLoop> stream = loop->hasAttr(kStreamedAttr) ? matchStream(loop) : std::nullopt;
  if (!stream || stream_ || stream->exponentials.getType() != stream->scores.getType() ||
      stream->weights.getType() != stream->scores.getType())
    return false;
  Value results = stream->product.getResult();
  auto rank = cast<RankedTensorType>(results.getType()).getRank();
  Type element = getElementTypeOrSelf(stream->product.getA().getType());
  if (!getElementTypeOrSelf(results.getType()).isF32() || !getElementTypeOrSelf(stream->scores.getType()).isF32() ||
      (!element.isF16() && !element.isBF16()))
    return false;
  for (Value operand : {stream->scoresProduct.getA(), stream->scoresProduct.getB(), stream->product.getB()})
    if (getElementTypeOrSelf(operand.getType()) != element)
      return false;
  stream_ = stream;
  if (!orderAxes())
    return false;
  known_.insert(stream->scoresProduct.getResult());
  known_.insert(loop->result_begin(), loop->result_end());
  bool fits = addOperand(stream->scoresProduct.getA(), rank - 2) &&
              addOperand(stream->scoresProduct.getB(), rank - 1) && addOperand(stream->product.getB(), rank - 2) &&
              addTile(stream->scores);
  known_.insert(stream->exponentials);
  for (const StreamLoop::Sum& sum : stream->sums)
    fits = fits && addTile(sum.terms);
  return fits && addTile(stream->weights);
}

bool BulkStreams::addOperand(Value operand, int64_t rows) {
  auto rank = cast<RankedTensorType>(operand.getType()).getRank();
  int64_t columns = rows == rank - 1 ? rank - 2 : rank - 1;
  Type element = getElementTypeOrSelf(operand.getType());
  // Transposes of narrow floats widen them and round them again.
  for (Operation* op = operand.getDefiningOp();
       isa_and_nonnull<ir::TransposeOp, ir::BroadcastOp, ir::ReshapeOp, arith::ExtFOp, arith::TruncFOp>(op);
       op = operand.getDefiningOp()) {
    if (!isa<RankedTensorType>(op->getOperand(0).getType()))
      return false;
    if (auto turned = dyn_cast<ir::TransposeOp>(op)) {
      rows = turned.getPermutation()[static_cast<unsigned>(rows)];
      columns = turned.getPermutation()[static_cast<unsigned>(columns)];
    } else if (auto repeated = dyn_cast<ir::BroadcastOp>(op)) {
      auto source = [&](int64_t dim) { return llvm::find(repeated.getDims(), dim) - repeated.getDims().begin(); };
      auto type = cast<RankedTensorType>(repeated.getValue().getType());
      rows = source(rows);
      columns = source(columns);
      if (rows >= type.getRank() || columns >= type.getRank() || type.getDimSize(static_cast<unsigned>(rows)) == 1)
        return false;
    } else if (auto reshape = dyn_cast<ir::ReshapeOp>(op)) {
      rows = ir::sourceDim(reshape, rows);
      columns = ir::sourceDim(reshape, columns);
      if (rows < 0 || columns < 0)
        return false;
    }
    operand = op->getOperand(0);
  }
  auto load = operand.getDefiningOp<ir::TileLoadOp>();
  rank = cast<RankedTensorType>(operand.getType()).getRank();
  if (!load || columns != rank - 1 || getElementTypeOrSelf(operand.getType()) != element ||
      !requireReachable(load.getView()))
    return false;
  // The tile is all of the argument: copies end with the tensor, not with the tile.
  Placement placement = arguments_.placementOf(cast<BlockArgument>(load.getView()).getArgNumber());
  bool isStreamed = load->getParentOp() == stream_->loop;
  for (auto [dim, size] : llvm::enumerate(ir::tileSizes(operand))) {
    bool isRows = static_cast<int64_t>(dim) == rows;
    Value offset = load.getOffsets()[dim];
    if (isRows && isStreamed ? offset != stream_->loop.getInductionVar() : getConstantIntValue(offset) != 0)
      return false;
    ir::SizeAttr extent = sizeExpression(isRows && isStreamed ? OpFoldResult(stream_->extent) : size);
    ir::SizeAttr own = ir::SizeAttr::get(kernel_.getContext(), placement.extents[dim]);
    if (!extent || !require(ir::sizeBinary(SizeOp::Equal, own, extent)))
      return false;
  }
  ir::SizeAttr last = ir::SizeAttr::get(kernel_.getContext(), placement.extents.back());
  width_ = ir::sizeBinary(SizeOp::Max, width_, last);
  return true;
}

bool BulkStreams::keepsRows(ir::ReshapeOp reshape) const {
  auto others = [](Value tile) {
    return llvm::count_if(cast<RankedTensorType>(tile.getType()).getShape(), [](int64_t size) { return size != 1; });
  };
  if (others(reshape.getValue()) == others(reshape.getResult()))
    return true;
  SmallVector<Axis> axes = axes_->of(reshape.getResult());
  ArrayRef<int64_t> shape = reshape.getType().getShape();
  const ir::ReshapeParts parts = ir::reshapeParts(reshape);
  ArrayRef<Axis> batch = ArrayRef(cluster_.parallel).drop_back();
  for (size_t dim = parts.prefix; dim < axes.size() - parts.suffix; ++dim)
    if (shape[dim] != 1 && !llvm::is_contained(batch, axes[dim]))
      return false;
  return true;
}

/// Known without reading memory.
bool BulkStreams::isScalar(Value value) {
  Operation* op = value.getDefiningOp();
  if (!op || isa<ir::DimOp>(op))
    return true;
  return (op->hasTrait<OpTrait::ConstantLike>() || ir::isElementwise(op)) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isScalar(operand); });
}

bool BulkStreams::addTile(Value tile) {
  if (!isa<RankedTensorType>(tile.getType()))
    return isScalar(tile);
  if (!known_.insert(tile).second)
    return true;
  Operation* op = tile.getDefiningOp();
  if (auto load = dyn_cast_if_present<ir::TileLoadOp>(op))
    return load.getInbounds() && requireReachable(load.getView()) &&
           llvm::all_of(load.getOffsets(), [&](Value offset) { return isScalar(offset); });
  bool isPlain = op && op->getNumRegions() == 0 &&
                 (ir::isElementwise(op) || isa<ir::BroadcastOp, ir::TransposeOp, ir::IotaOp, arith::ConstantOp>(op) ||
                  (isa<ir::ReshapeOp>(op) && keepsRows(cast<ir::ReshapeOp>(op))));
  return isPlain && ++operations_ <= kMostPairOperations &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return addTile(operand); });
}

bool BulkStreams::addStore(ir::TileStoreOp store) {
  Value value = store.getValue();
  auto argument = dyn_cast<BlockArgument>(store.getView());
  if (!argument || !llvm::all_of(store.getOffsets(), [](Value offset) { return getConstantIntValue(offset) == 0; }))
    return false;
  const Placement placement = arguments_.placementOf(argument.getArgNumber());
  for (auto [own, axis] : llvm::zip(placement.extents, axes_->of(value))) {
    ir::SizeAttr extent = axes_->extent(axis);
    if (!extent || !require(ir::sizeBinary(SizeOp::Equal, ir::SizeAttr::get(kernel_.getContext(), own), extent)))
      return false;
  }
  const SmallVector<Axis> results = resultAxes();
  auto reshape = value.getDefiningOp<ir::ReshapeOp>();
  if (reshape && reshape->hasAttr(kByPieceAttribute)) {
    SmallVector<Axis> from = axes_->of(reshape.getValue());
    const ir::ReshapeParts parts = ir::reshapeParts(reshape);
    for (Axis axis : ArrayRef(results).take_back(2))
      for (size_t dim = parts.prefix; dim < from.size() - parts.suffix; ++dim)
        if (from[dim] == axis)
          return false;
    value = reshape.getValue();
  }
  SmallVector<Axis> own;
  for (auto [axis, size] : llvm::zip(axes_->of(value), cast<RankedTensorType>(value.getType()).getShape()))
    if (size != 1 || llvm::is_contained(results, axis))
      own.push_back(axis);
  Type element = getElementTypeOrSelf(value.getType());
  const unsigned bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  StreamLoop& stream = *stream_;
  if (own.size() == results.size() && own.back() == results.back() &&
      std::is_permutation(own.begin(), own.end(), results.begin()))
    return (bits == 16 || bits == 32) && requireReachable(argument) &&
           StreamMatcher::dependsOn(value, {stream.loop.getResult(stream.accumulator)}) && addTile(value);
  // Of rows: stored by threads, which need to know the innermost stride only.
  llvm::DenseSet<Value> rows(stream.loop->result_begin(), stream.loop->result_end());
  rows.erase(stream.loop.getResult(stream.accumulator));
  return own.size() + 1 == results.size() && bits >= 8 &&
         std::is_permutation(own.begin(), own.end(), results.begin()) &&
         require(ir::SizeAttr::get(kernel_.getContext(), size::make(SizeOp::Equal, placement.strides.back(), 1))) &&
         StreamMatcher::dependsOn(value, rows) && addTile(value);
}

void BulkStreams::addWay(const TensorSchedule::StreamTile& tile) {
  MLIRContext* context = kernel_.getContext();
  auto size = [&](int64_t value) { return ir::sizeConstant(context, value); };
  SmallVector<Axis> axes = resultAxes();
  Way way{tile.plan, tile.step, {}, {}, ir::sizeBinary(SizeOp::Less, width_, size(tile.width + 1))};
  for (Axis axis : cluster().parallel)
    way.pieces.push_back(size(axis == axes[axes.size() - 2] ? tile.rows : 1));
  way.blocks = Chunks(context, schedule_, *axes_, *clusters_).blockCount(cluster(), way.pieces);
  if (ir::constantSize(way.when) != 0)
    ways_.push_back(std::move(way));
}

}  // namespace vortex::passes
