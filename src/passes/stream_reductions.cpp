#include "passes/stream_reductions.h"

#include "base/maximum_sum.h"
#include "ir/location.h"
#include "ir/tile_sizes.h"
#include "passes/build/piece_cloner.h"
#include "passes/plan/clusters.h"
#include "passes/separate_operands.h"
#include "passes/stream_match.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <limits>

namespace vortex::passes {

using namespace mlir;

namespace {

/// What MaximumSum asks for, on tiles of one shape.
class RowOps {
public:
  using Value = mlir::Value;
  RowOps(OpBuilder& builder, Location loc, Value like, ArrayRef<Value> sizes, bool isBase2)
      : b_(builder), loc_(loc), like_(like), sizes_(sizes), isBase2_(isBase2) {}

  Value sub(Value a, Value b) { return b_.create<arith::SubFOp>(loc_, a, b, arith::FastMathFlags::contract); }
  Value mul(Value a, Value b) { return b_.create<arith::MulFOp>(loc_, a, b, arith::FastMathFlags::contract); }
  Value add(Value a, Value b) { return b_.create<arith::AddFOp>(loc_, a, b, arith::FastMathFlags::contract); }
  Value neg(Value a) { return b_.create<arith::NegFOp>(loc_, a); }
  Value abs(Value a) { return b_.create<math::AbsFOp>(loc_, a); }
  Value less(Value a, Value b) { return b_.create<arith::CmpFOp>(loc_, arith::CmpFPredicate::OLT, a, b); }
  Value equal(Value a, Value b) { return b_.create<arith::CmpFOp>(loc_, arith::CmpFPredicate::OEQ, a, b); }
  Value select(Value condition, Value a, Value b) { return b_.create<arith::SelectOp>(loc_, condition, a, b); }
  Value exp(Value a) {
    if (isBase2_)
      return b_.create<math::Exp2Op>(loc_, a, arith::FastMathFlags::contract);
    return b_.create<math::ExpOp>(loc_, a, arith::FastMathFlags::contract);
  }
  Value number(double value) {
    auto type = cast<RankedTensorType>(like_.getType());
    Value scalar = b_.create<arith::ConstantOp>(loc_, b_.getFloatAttr(type.getElementType(), value));
    return b_.create<ir::BroadcastOp>(loc_, type, scalar, b_.getDenseI64ArrayAttr({}), sizes_);
  }

private:
  OpBuilder& b_;
  Location loc_;
  Value like_;
  ArrayRef<Value> sizes_;
  bool isBase2_;
};

/// Dynamic extents of a tile, in order.
SmallVector<Value> dynamicSizes(OpBuilder& builder, Value tile) {
  SmallVector<Value> sizes;
  auto type = cast<RankedTensorType>(tile.getType());
  for (auto [dim, size] : llvm::enumerate(ir::tileSizeValues(builder, tile.getLoc(), tile)))
    if (type.isDynamicDim(static_cast<unsigned>(dim)))
      sizes.push_back(size);
  return sizes;
}

/// Clones what varies along the axis onto a chunk of it; everything else is used as it is.
class ChunkCloner : public PieceCloner {
public:
  ChunkCloner(ir::KernelOp kernel, const Axes& axes, Axis axis, Block* body, Value offset, Value size)
      : PieceCloner(kernel, axes), axis_(axis) {
    builder.setInsertionPointToEnd(body);
    offset_[axis] = offset;
    size_[axis] = size;
  }
  /// From now on `value` is `piece`.
  void set(Value value, Value piece) { mapping_.map(value, piece); }
  Operation* cloneOne(Operation* op) { return clone(op); }
  using PieceCloner::sizes;
  using PieceCloner::slicedType;

private:
  Value provide(Value value) override { return llvm::is_contained(axes_.of(value), axis_) ? Value() : value; }

  Axis axis_;
};

class Rewriter {
public:
  Rewriter(ir::KernelOp kernel, const Axes& axes, const StreamMatcher& matcher, const Stream& stream, int64_t step)
      : kernel_(kernel), axes_(axes), matcher_(matcher), stream_(stream), step_(step), b_(kernel.getContext()),
        loc_(stream_.maximum.getLoc()), rows_(stream_.maximum.getResult()) {}

  void run() {
    b_.setInsertionPoint(stream_.last);
    extent_ = ir::tileSizeValues(b_, loc_, stream_.scores)[stream_.dim];
    rowSizes_ = dynamicSizes(b_, rows_);
    emitLoop();
    finishRows();
    finishProducts();
    eraseDead();
    moveDependents();
  }

private:
  RowOps rowOps(OpBuilder& builder) { return {builder, loc_, rows_, rowSizes_, stream_.isBase2}; }

  Value zeros(Value like) {
    auto type = cast<RankedTensorType>(like.getType());
    Value zero = b_.create<arith::ConstantOp>(loc_, b_.getZeroAttr(type.getElementType()));
    return b_.create<ir::BroadcastOp>(loc_, type, zero, b_.getDenseI64ArrayAttr({}), dynamicSizes(b_, like));
  }

  void emitLoop() {
    RowOps ops = rowOps(b_);
    SmallVector<Value> start{ops.number(-std::numeric_limits<double>::infinity())};
    for (ir::ReduceOp sum : stream_.sums)
      start.push_back(zeros(sum.getResult()));
    for (ir::DotOp dot : stream_.dots)
      start.push_back(zeros(dot.getResult()));
    Value zero = b_.create<arith::ConstantIndexOp>(loc_, 0), step = b_.create<arith::ConstantIndexOp>(loc_, step_);
    loop_ = b_.create<scf::ForOp>(loc_, zero, extent_, step, start);
    loop_->setAttr(kStreamedAttr, b_.getUnitAttr());
    emitBody();
  }

  void emitBody() {
    OpBuilder inner(b_.getContext());
    Block* body = loop_.getBody();
    if (!body->empty())
      body->back().erase();
    inner.setInsertionPointToEnd(body);
    Value left = inner.create<arith::SubIOp>(loc_, extent_, loop_.getInductionVar());
    Value size = inner.create<arith::MinUIOp>(loc_, left, loop_.getStep());
    ChunkCloner chunk(kernel_, axes_, stream_.axis, body, loop_.getInductionVar(), size);
    RowOps ops = rowOps(chunk.builder);
    base::MaximumSum<RowOps> algebra(ops);
    ValueRange carried = loop_.getRegionIterArgs();
    Value scores = chunk.get(stream_.scores);
    Value largest = chunk.cloneOne(stream_.maximum)->getResult(0);
    Value bound = chunk.builder.create<arith::MaximumFOp>(loc_, carried[0], largest);
    Value shift = algebra.shift(bound), scale = algebra.shifted(carried[0], shift);
    Value repeated = repeat(chunk.builder, shift, scores, chunk.sizes(stream_.scores));
    Value weights = emitWeights(chunk, scores, repeated);
    for (Operation* power : stream_.exponentials)
      chunk.set(power->getResult(0), weights);
    SmallVector<Value> next{bound};
    for (auto [number, sum] : llvm::enumerate(stream_.sums)) {
      Value part = chunk.builder.create<ir::ReduceOp>(loc_, sum.getType(), ir::Combine::AddF,
                                                      linearPiece(chunk, sum.getValue(), false), sum.getDims());
      next.push_back(ops.add(ops.mul(carried[1 + number], scale), part));
    }
    for (auto [number, dot] : llvm::enumerate(stream_.dots)) {
      Value acc = carried[1 + stream_.sums.size() + number];
      Value scales = repeat(chunk.builder, scale, acc, dynamicSizes(chunk.builder, acc));
      next.push_back(chunk.builder.create<ir::DotOp>(dot.getLoc(), dot.getType(), linearPiece(chunk, dot.getA(), true),
                                                     chunk.get(dot.getB()), ops.mul(acc, scales)));
    }
    chunk.builder.create<scf::YieldOp>(loc_, next);
  }

  /// `row` along the last dimension of a tile like `tile`.
  Value repeat(OpBuilder& builder, Value row, Value tile, ArrayRef<Value> sizes) {
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(row.getType()).getRank()));
    return builder.create<ir::BroadcastOp>(loc_, tile.getType(), row, builder.getDenseI64ArrayAttr(dims), sizes);
  }

  /// As accurate as the program's own exponential.
  Value emitWeights(ChunkCloner& chunk, Value scores, Value shift) {
    Operation* power = stream_.exponentials.front();
    Operation* difference = power->getOperand(0).getDefiningOp();
    OpBuilder& b = chunk.builder;
    Value shifted = b.create<arith::SubFOp>(difference->getLoc(), scores, shift, arith::FastMathFlags::contract);
    OperationState state(power->getLoc(), power->getName(), shifted, scores.getType());
    state.attributes = llvm::to_vector(power->getAttrs());
    state.propertiesAttr = power->getPropertiesAsAttribute();
    return b.create(state)->getResult(0);
  }

  /// What is summed, without the factors that come after the sum.
  Value linearPiece(ChunkCloner& chunk, Value value, bool isProduct) {
    Value piece = chunk.get(stream_.exponentials.front()->getResult(0));
    const Linear chain = *matcher_.linear(stream_, value, isProduct);
    for (const Linear::Step& step : chain.steps) {
      Value before = step.op->getOperand(step.through), after = step.op->getResult(0);
      chunk.set(before, piece);
      if (!step.isOutside)
        piece = chunk.cloneOne(step.op)->getResult(0);
      chunk.set(after, piece);
    }
    return piece;
  }

  void finishRows() {
    b_.setInsertionPointAfter(loop_);
    RowOps ops = rowOps(b_);
    base::MaximumSum<RowOps> algebra(ops);
    if (auto known = getConstantIntValue(extent_); !known || *known == 0) {
      Value zero = b_.create<arith::ConstantIndexOp>(loc_, 0);
      isEmpty_ = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::eq, extent_, zero);
    }
    Value maximum = loop_.getResult(0);
    for (auto [number, sum] : llvm::enumerate(stream_.sums)) {
      Value total = loop_.getResult(1 + static_cast<unsigned>(number));
      Value closed = algebra.closed(maximum, total);
      if (isEmpty_)
        closed = b_.create<arith::SelectOp>(loc_, isEmpty_, total, closed);
      replace(sum.getResult(), closed);
      closed_.insert(closed);
    }
    replace(stream_.maximum.getResult(), maximum);
  }

  void replace(Value old, Value value) {
    old.replaceAllUsesWith(value);
    final_.insert(value);
    end_ = &*std::prev(b_.getInsertionPoint());
  }

  /// Sums of products, and the factors that are constant along the axis.
  void finishProducts() {
    for (auto [number, dot] : llvm::enumerate(stream_.dots)) {
      Value acc = loop_.getResult(1 + static_cast<unsigned>(stream_.sums.size() + number)), result = acc;
      const Linear chain = *matcher_.linear(stream_, dot.getA(), true);
      bool isClosed = llvm::any_of(chain.steps, [&](const Linear::Step& step) {
        return step.isOutside && StreamMatcher::dependsOn(step.op->getOperand(1 - step.through), closed_);
      });
      if (!isClosed)
        result = closedProduct(acc);
      for (const Linear::Step& step : chain.steps)
        if (step.isOutside) {
          Value factor = step.op->getOperand(1 - step.through);
          makeAvailable(factor);
          b_.setInsertionPointAfter(end_);
          Value wide = rowwise(factor, acc);
          bool isProduct = isa<arith::MulFOp>(step.op);
          result = isProduct ? Value(b_.create<arith::MulFOp>(loc_, result, wide, arith::FastMathFlags::contract))
                             : Value(b_.create<arith::DivFOp>(loc_, result, wide, arith::FastMathFlags::contract));
          end_ = result.getDefiningOp();
        }
      b_.setInsertionPointAfter(end_);
      if (isEmpty_ && result != acc) {
        result = b_.create<arith::SelectOp>(loc_, isEmpty_, acc, result);
        end_ = result.getDefiningOp();
      }
      dot.getResult().replaceAllUsesWith(result);
      final_.insert(result);
    }
  }

  /// NaN in rows whose maximum is infinite, as a factor would give that is computed from their sums.
  Value closedProduct(Value acc) {
    b_.setInsertionPointAfter(end_);
    RowOps ops = rowOps(b_);
    Value maximum = loop_.getResult(0), nothing = ops.sub(maximum, maximum);
    Value wide = repeat(b_, nothing, acc, dynamicSizes(b_, acc));
    Value closed = b_.create<arith::AddFOp>(loc_, acc, wide, arith::FastMathFlags::contract);
    end_ = closed.getDefiningOp();
    return closed;
  }

  /// Moves what the value is computed from behind the loop where that depends on its results.
  void makeAvailable(Value value) {
    Operation* op = value.getDefiningOp();
    if (!op || op->getBlock() != loop_->getBlock() || !op->isBeforeInBlock(end_) || loop_->isBeforeInBlock(op) ||
        !StreamMatcher::dependsOn(value, final_))
      return;
    Clusters::forEachOperand(op, [&](Value operand) { makeAvailable(operand); });
    op->moveAfter(end_);
    end_ = op;
    final_.insert(op->result_begin(), op->result_end());
  }

  /// `value`, constant along its last dimension, for tiles like `tile`.
  Value rowwise(Value value, Value tile) {
    auto own = dyn_cast<RankedTensorType>(value.getType());
    if (!own)
      return value;
    auto type = cast<RankedTensorType>(tile.getType()).clone(own.getElementType());
    Operation* op = value.getDefiningOp();
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto splat = cast<SplatElementsAttr>(constant.getValue()).getSplatValue<Attribute>();
      Value scalar = b_.create<arith::ConstantOp>(loc_, cast<TypedAttr>(splat));
      return b_.create<ir::BroadcastOp>(loc_, type, scalar, b_.getDenseI64ArrayAttr({}), dynamicSizes(b_, tile));
    }
    if (auto broadcast = dyn_cast<ir::BroadcastOp>(op))
      return b_.create<ir::BroadcastOp>(loc_, type, broadcast.getValue(), broadcast.getDimsAttr(),
                                        dynamicSizes(b_, tile));
    OperationState state(op->getLoc(), op->getName());
    for (Value operand : op->getOperands())
      state.operands.push_back(rowwise(operand, tile));
    state.types.push_back(type);
    state.attributes = llvm::to_vector(op->getAttrs());
    state.propertiesAttr = op->getPropertiesAsAttribute();
    return b_.create(state)->getResult(0);
  }

  void eraseDead() {
    for (Operation& op : llvm::make_early_inc_range(llvm::reverse(*loop_->getBlock())))
      if (isOpTriviallyDead(&op)) {
        end_ = &op == end_ ? op.getPrevNode() : end_;
        op.erase();
      }
  }

  /// In program order.
  void moveDependents() {
    llvm::DenseSet<Value> late(final_.begin(), final_.end());
    for (Operation& op : llvm::make_early_inc_range(*loop_->getBlock())) {
      if (&op == loop_)
        return;
      bool depends = false;
      Clusters::forEachOperand(&op, [&](Value value) { depends |= late.contains(value); });
      if (!depends)
        continue;
      late.insert(op.result_begin(), op.result_end());
      op.moveAfter(end_);
      end_ = &op;
    }
  }

  ir::KernelOp kernel_;
  const Axes& axes_;
  const StreamMatcher& matcher_;
  Stream stream_;
  int64_t step_;
  OpBuilder b_;
  Location loc_;
  Value rows_;  ///< shape of what is carried per row
  Value extent_, isEmpty_;
  SmallVector<Value> rowSizes_;
  scf::ForOp loop_;
  Operation* end_ = nullptr;              ///< of what follows from the loop
  llvm::DenseSet<Value> final_, closed_;  ///< values after the loop; sums among them
};

void addNote(ir::EntryOp entry, StringRef note) {
  SmallVector<Attribute> notes;
  if (auto before = entry->getAttrOfType<ArrayAttr>(kNotesAttr))
    llvm::append_range(notes, before);
  notes.push_back(StringAttr::get(entry.getContext(), note));
  entry->setAttr(kNotesAttr, ArrayAttr::get(entry.getContext(), notes));
}

/// One rewrite; false: there is none.
bool streamOne(ir::KernelOp kernel, ir::EntryOp entry, int64_t step, llvm::DenseSet<Operation*>& tried) {
  Axes axes(kernel);
  StreamMatcher matcher(kernel, axes);
  for (auto maximum : kernel.getBody().front().getOps<ir::ReduceOp>()) {
    if (tried.contains(maximum))
      continue;
    auto found = matcher.match(maximum);
    std::string at = ir::describeLocation(maximum) + ": ";
    if (auto* stream = std::get_if<Stream>(&found)) {
      tried.clear();
      Rewriter(kernel, axes, matcher, *stream, step).run();
      addNote(entry, at + "softmax and product are computed together, scores are not stored");
      return true;
    }
    tried.insert(maximum);
    if (const std::string& reason = std::get<std::string>(found); !reason.empty())
      addNote(entry, at + "softmax and product are computed one after the other: " + reason);
  }
  return false;
}

struct StreamReductionsPass : PassWrapper<StreamReductionsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StreamReductionsPass)
  explicit StreamReductionsPass(int64_t step) { this->step = step; }
  StreamReductionsPass(const StreamReductionsPass& other) : PassWrapper(other) { step = other.step; }
  StringRef getArgument() const override { return "vx-stream-reductions"; }
  StringRef getDescription() const override { return "softmax of products, multiplied, in one pass"; }
  void runOnOperation() override { streamReductions(getOperation(), step); }
  Option<int64_t> step{*this, "step", llvm::cl::desc("elements per iteration"), llvm::cl::init(64)};
};

}  // namespace

void streamReductions(ModuleOp module, int64_t step) {
  auto entries = module.getOps<ir::EntryOp>();
  if (!llvm::hasSingleElement(entries))
    return;
  for (auto kernel : module.getOps<ir::KernelOp>()) {
    auto count = [&](auto op) { return llvm::range_size(kernel.getBody().front().getOps<decltype(op)>()); };
    if (!kernel.getWholeTensor() || count(ir::DotOp()) < 2 || count(ir::ReduceOp()) == 0)
      continue;
    separateOperands(kernel);
    llvm::DenseSet<Operation*> tried;
    while (streamOne(kernel, *entries.begin(), step, tried)) {
    }
  }
}

std::unique_ptr<Pass> createStreamReductionsPass(int64_t step) { return std::make_unique<StreamReductionsPass>(step); }

}  // namespace vortex::passes
