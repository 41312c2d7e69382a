#include "passes/plan/bulk_streams.h"

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
    if (!tile.ofPieces)
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
  return llvm::all_of(regroupedAxes(reshape),
                      [&](Axis axis) { return llvm::is_contained(ArrayRef(cluster_.parallel).drop_back(), axis); });
}

/// Those of the result, if not only dimensions of extent 1 come or go.
SmallVector<Axis> BulkStreams::regroupedAxes(ir::ReshapeOp reshape) const {
  auto others = [](Value tile) {
    return llvm::count_if(cast<RankedTensorType>(tile.getType()).getShape(), [](int64_t size) { return size != 1; });
  };
  SmallVector<Axis> regrouped;
  if (others(reshape.getValue()) == others(reshape.getResult()))
    return regrouped;
  SmallVector<Axis> axes = axes_->of(reshape.getResult());
  const ir::ReshapeParts parts = ir::reshapeParts(reshape);
  for (size_t dim = parts.prefix; dim < axes.size() - parts.suffix; ++dim)
    if (reshape.getType().getShape()[dim] != 1)
      regrouped.push_back(axes[dim]);
  return regrouped;
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
  if (auto reshape = dyn_cast_if_present<ir::ReshapeOp>(op))
    for (Axis axis : regroupedAxes(reshape))
      regrouped_.insert(axis);
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
    const size_t end = from.size() - parts.suffix, to = placement.extents.size() - parts.suffix;
    for (Axis axis : ArrayRef(results).take_back(2))
      for (size_t dim = parts.prefix; dim < end; ++dim) {
        const bool isInnermost = dim + 1 == from.size() && to == parts.prefix + 1;
        if (from[dim] == axis && (axis != results.back() || !isInnermost || !requireApart(placement, axis)))
          return false;
      }
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

/// Columns of several heads in the last dimension: a tensor map has them as one dimension more.
bool BulkStreams::requireApart(const Placement& placement, Axis columns) {
  ir::SizeAttr extent = axes_->extent(columns);
  if (!extent)
    return false;
  Placement apart = placement;
  apart.extents.back() = size::make(SizeOp::FloorDiv, placement.extents.back(), extent.getExpr());
  apart.extents.push_back(extent.getExpr());
  apart.strides.back() = extent.getExpr();
  apart.strides.push_back(placement.strides.back());
  return require(ir::SizeAttr::get(kernel_.getContext(), schedule_.bulkReach(apart)));
}

void BulkStreams::addWay(const TensorSchedule::StreamTile& tile) {
  Way way{tile.plan,
          tile.step,
          tile.width,
          tile.duration,
          piecesOf(static_cast<unsigned>(resultAxes().size() - 2), tile.rows),
          {},
          {}};
  way.when = ir::sizeBinary(SizeOp::Less, width_, ir::sizeConstant(kernel_.getContext(), tile.width + 1));
  way.blocks = Chunks(kernel_.getContext(), schedule_, *axes_, *clusters_).blockCount(cluster(), way.pieces);
  if (ir::constantSize(way.when) != 0)
    ways_.push_back(std::move(way));
}

/// Of ways of one width a launch takes the one whose rounds of blocks end first. Masks leave more rows of few queries waiting for others of their block:
/// those take the one of fewest rows.
void BulkStreams::compareRounds(ir::SizeAttr workers) {
  constexpr int64_t kManyQueries = 1024;
  ir::SizeAttr isMany = ir::sizeBinary(SizeOp::Less, ir::sizeConstant(kernel_.getContext(), kManyQueries - 1),
                                       rowExtent(static_cast<unsigned>(resultAxes().size() - 2)));
  auto time = [&](const Way& way) {
    return ir::sizeBinary(SizeOp::Mul, ir::sizeBinary(SizeOp::CeilDiv, way.blocks, workers),
                          ir::sizeConstant(kernel_.getContext(), way.duration));
  };
  for (size_t i = 0; i + 1 < ways_.size(); ++i)
    if (ways_[i].width == ways_[i + 1].width)
      for (ir::SizeAttr condition : {isMany, ir::sizeBinary(SizeOp::Less, time(ways_[i]), time(ways_[i + 1]))})
        ways_[i].when = ir::sizeBinary(SizeOp::And, ways_[i].when, condition);
}

SmallVector<ir::SizeAttr> BulkStreams::piecesOf(unsigned rows, int64_t size) {
  SmallVector<ir::SizeAttr> pieces;
  for (Axis axis : cluster().parallel)
    pieces.push_back(ir::sizeConstant(kernel_.getContext(), axis == resultAxes()[rows] ? size : 1));
  return pieces;
}

//===-- pieces of the streamed axis ---------------------------------------------------------------------------===//

/// Fewer elements are not worth a second phase; pieces are multiples of all chunks.
static constexpr int64_t kLeastStreamed = 512, kLongStreamed = 4096, kPieceUnit = 128;

bool BulkStreams::isRepeatedAlong(Value operand, int64_t dim) const {
  for (Operation* op = operand.getDefiningOp();
       isa_and_nonnull<ir::TransposeOp, ir::BroadcastOp, ir::ReshapeOp, arith::ExtFOp, arith::TruncFOp>(op);
       op = op->getOperand(0).getDefiningOp()) {
    if (auto turned = dyn_cast<ir::TransposeOp>(op)) {
      dim = turned.getPermutation()[static_cast<unsigned>(dim)];
    } else if (auto repeated = dyn_cast<ir::BroadcastOp>(op)) {
      auto source = dyn_cast<RankedTensorType>(repeated.getValue().getType());
      const int64_t from = llvm::find(repeated.getDims(), dim) - repeated.getDims().begin();
      if (!source || from >= source.getRank() || source.getDimSize(static_cast<unsigned>(from)) == 1)
        return true;
      dim = from;
    } else if (auto reshape = dyn_cast<ir::ReshapeOp>(op)) {
      dim = ir::sourceDim(reshape, dim);
      if (dim < 0)
        return false;
    }
  }
  return false;
}

bool BulkStreams::canBeRows(int64_t dim) {
  if (dim < 0 || regrouped_.contains(resultAxes()[static_cast<size_t>(dim)]) ||
      !isRepeatedAlong(stream_->scoresProduct.getB(), dim) || !isRepeatedAlong(stream_->product.getB(), dim))
    return false;
  Value queries = stream_->scoresProduct.getA();
  int64_t columns = cast<RankedTensorType>(queries.getType()).getRank() - 1;
  while (Operation* op = queries.getDefiningOp()) {
    if (auto load = dyn_cast<ir::TileLoadOp>(op))
      return dim != columns && cast<RankedTensorType>(queries.getType()).getDimSize(static_cast<unsigned>(dim)) != 1;
    if (auto turned = dyn_cast<ir::TransposeOp>(op)) {
      dim = turned.getPermutation()[static_cast<unsigned>(dim)];
      columns = turned.getPermutation()[static_cast<unsigned>(columns)];
    } else if (auto reshape = dyn_cast<ir::ReshapeOp>(op)) {
      dim = ir::steppedDim(reshape, dim);
      columns = ir::sourceDim(reshape, columns);
    } else if (!isa<arith::ExtFOp, arith::TruncFOp>(op)) {
      return false;
    }
    if (dim < 0 || columns < 0)
      return false;
    queries = op->getOperand(0);
  }
  return false;
}

ir::SizeAttr BulkStreams::rowExtent(unsigned dim) { return axes_->extent(resultAxes()[dim]); }

void BulkStreams::addPieceWays(ir::SizeAttr workers, llvm::function_ref<ir::SizeAttr(ir::SizeAttr)> addLet) {
  MLIRContext* context = kernel_.getContext();
  auto size = [&](int64_t value) { return ir::sizeConstant(context, value); };
  auto binary = [](SizeOp op, ir::SizeAttr a, ir::SizeAttr b) { return ir::sizeBinary(op, a, b); };
  if (ways_.empty() || !workers || !sizeExpression(OpFoldResult(stream_->extent)))
    return;
  // Of few queries a block would have a few rows; else blocks are too few for the device.
  constexpr int64_t kFewRows = 64, kFewQueries = 16, kNarrow = 64;
  const auto rows = static_cast<unsigned>(resultAxes().size() - 2);
  ir::SizeAttr queries = rowExtent(rows);
  if (rows > 0 && canBeRows(rows - 1))
    addPieceWay(rows - 1, "pieces, heads as rows",
                binary(SizeOp::And, binary(SizeOp::Less, queries, rowExtent(rows - 1)),
                       binary(SizeOp::Less, queries, size(kFewQueries + 1))),
                workers, addLet);
  auto isLess = [&](ir::SizeAttr a, ir::SizeAttr b) { return binary(SizeOp::Less, a, b); };
  auto times = [&](int64_t count, ir::SizeAttr value) { return binary(SizeOp::Mul, size(count), value); };
  ir::SizeAttr keys = sizeExpression(OpFoldResult(stream_->extent));
  // Tiles of all widths but the first ones have the rows of the last one's.
  ir::SizeAttr blocks = ways_.back().blocks;
  ir::SizeAttr isIdle = isLess(times(2, blocks), binary(SizeOp::Add, workers, size(1)));
  // Long keys pay for the second phase also where there is a block per core, narrow ones whatever their number: two blocks of pieces share a core.
  ir::SizeAttr isOneRound = isLess(blocks, times(2, workers)), isNarrow = isLess(width_, size(kNarrow + 1));
  ir::SizeAttr isLong =
      binary(SizeOp::And, isLess(size(kLongStreamed - 1), keys), binary(SizeOp::Or, isOneRound, isNarrow));
  isLong = binary(SizeOp::And, isLong, isLess(queries, size(kFewRows + 1)));
  // The second phase costs by rows, the first saves by keys. Measured on an H100 with 1024, 2048 and 4096 rows in all: of as many keys pieces take 1.15 to 1.3
  // times as long, of twice as many 0.7 to 0.8.
  ir::SizeAttr all = queries;
  for (unsigned dim = 0; dim < rows; ++dim)
    all = binary(SizeOp::Mul, all, rowExtent(dim));
  ir::SizeAttr isLonger = isLess(times(4, all), binary(SizeOp::Add, times(3, keys), size(1)));
  addPieceWay(rows, "pieces", binary(SizeOp::And, binary(SizeOp::Or, isLong, isIdle), isLonger), workers, addLet);
}

void BulkStreams::addPieceWay(unsigned rows, StringRef name, ir::SizeAttr isBetter, ir::SizeAttr workers,
                              llvm::function_ref<ir::SizeAttr(ir::SizeAttr)> addLet) {
  MLIRContext* context = kernel_.getContext();
  auto size = [&](int64_t value) { return ir::sizeConstant(context, value); };
  auto binary = [](SizeOp op, ir::SizeAttr a, ir::SizeAttr b) { return ir::sizeBinary(op, a, b); };
  ir::SizeAttr extent = sizeExpression(OpFoldResult(stream_->extent));
  PieceWay made;
  made.name = name;
  // What comes before the rows is one dimension of a tensor map.
  constexpr int64_t kMostBefore = int64_t(1) << 31;
  ir::SizeAttr before = size(1);
  for (unsigned dim = 0; dim < rows; ++dim)
    before = binary(SizeOp::Mul, before, rowExtent(dim));
  made.when = binary(SizeOp::And, binary(SizeOp::Less, size(kLeastStreamed - 1), extent), isBetter);
  made.when = binary(SizeOp::And, made.when, binary(SizeOp::Less, before, size(kMostBefore)));
  for (const TensorSchedule::StreamTile& tile : schedule_.streamTiles) {
    Way way{tile.plan, tile.step, tile.width, tile.duration, piecesOf(rows, tile.rows), {}, {}};
    way.when = binary(SizeOp::Less, width_, size(tile.width + 1));
    way.blocks = Chunks(context, schedule_, *axes_, *clusters_).blockCount(cluster(), way.pieces);
    if (tile.ofPieces && ir::constantSize(way.when) != 0)
      made.ways.push_back(way);
  }
  if (made.ways.empty() || ir::constantSize(made.when) == 0)
    return;
  // Two blocks per core at once. Four rounds of them end evenly, but pieces should not be short for that.
  ir::SizeAttr atOnce = binary(SizeOp::Mul, size(2), workers);
  ir::SizeAttr all = binary(SizeOp::Mul, extent, made.ways.front().blocks);
  ir::SizeAttr even =
      binary(SizeOp::Max, size(kLeastStreamed), binary(SizeOp::CeilDiv, all, binary(SizeOp::Mul, size(4), atOnce)));
  ir::SizeAttr wanted = binary(SizeOp::Min, binary(SizeOp::CeilDiv, all, atOnce), even);
  made.parts.rows = rows;
  made.parts.piece = addLet(binary(SizeOp::Mul, size(kPieceUnit),
                                   binary(SizeOp::Max, size(1), binary(SizeOp::CeilDiv, wanted, size(kPieceUnit)))));
  made.parts.count = binary(SizeOp::CeilDiv, extent, made.parts.piece);
  for (Way& way : made.ways)
    way.blocks = binary(SizeOp::Mul, way.blocks, made.parts.count);
  pieceWays_.push_back(std::move(made));
}

void BulkStreams::addTemporaries(EntryArguments& arguments) {
  constexpr int64_t kRow = 64;  // bulk copies reach rows that start aligned
  auto size = [&](int64_t value) { return ir::sizeConstant(kernel_.getContext(), value); };
  for (PieceWay& pieces : pieceWays_)
    for (Value result : stream_->loop.getResults()) {
      StreamParts& parts = pieces.parts;
      SmallVector<ir::SizeAttr> extents{parts.count, size(1)};
      for (auto [dim, axis] : llvm::enumerate(axes_->of(result)))
        if (dim < parts.rows)
          extents[1] = ir::sizeBinary(SizeOp::Mul, extents[1], axes_->extent(axis));
        else
          extents.push_back(axes_->extent(axis));
      if (result == stream_->loop.getResult(stream_->accumulator))
        extents.back() =
            ir::sizeBinary(SizeOp::Mul, ir::sizeBinary(SizeOp::CeilDiv, extents.back(), size(kRow)), size(kRow));
      parts.temporaries.push_back(arguments.addTemporary(extents, getElementTypeOrSelf(result.getType())));
    }
}

}  // namespace vortex::passes
