#include "target/cpu/tiles/evaluator.h"

#include "ir/guarded_slice.h"
#include "ir/reshape_parts.h"
#include "ir/tile_sizes.h"
#include "target/cpu/tiles/closure.h"
#include "target/cpu/tiles/reduction.h"
#include "target/cpu/tiles/vector_loop.h"

#include <llvm/ADT/TypeSwitch.h>
#include <llvm/Support/SaveAndRestore.h>
#include <mlir/Dialect/Utils/StaticValueUtils.h>

namespace vortex::target::cpu::tiles {

using llvm::Value;

static mlir::RankedTensorType tileType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
Lane laneIndex(Emitter& e, Value* i, unsigned lanes) {
  return lanes == 1 ? Lane::uniform(i) : Lane::affine(i, e.i64(1));
}

unsigned chooseLanes(Emitter& e, llvm::ArrayRef<mlir::Type> elementTypes) {
  if (!e.unitStrides)
    return 1;  // neighbouring elements are rarely neighbours in memory, and the code is rarely run
  uint64_t widest = 0;
  for (mlir::Type type : elementTypes)
    if (!type.isIndex() && !type.isInteger(1))
      widest =
          std::max<uint64_t>(widest, mlir::isa<mlir::FloatType>(type) ? std::max<uint64_t>(4, emit::elementBytes(type))
                                                                      : emit::elementBytes(type));
  return std::clamp<unsigned>(e.features.lanes(widest ? widest : 4), 2, 32);
}

//===-- memory ------------------------------------------------------------------------------------------------===//

const Place* Evaluator::place(mlir::Value tile) const {
  for (const auto& scope : llvm::reverse(places_))
    if (auto found = scope.find(tile); found != scope.end())
      return &found->second;
  return nullptr;
}

static Place placeInView(Emitter& e, mlir::Value view, mlir::ValueRange offsets, bool inbounds) {
  Place place;
  place.view = e.view(view);
  for (mlir::Value offset : offsets)
    place.offsets.push_back(e.scalar(offset));
  place.guarded = !inbounds;
  place.base = rootView(view).getAsOpaquePointer();
  place.window = view.getAsOpaquePointer();
  return place;
}

Place Evaluator::placeOfLoad(ir::TileLoadOp op) {
  Place place = placeInView(e, op.getView(), op.getOffsets(), op.getInbounds());
  if (op.getOther())
    place.other = e.scalar(op.getOther());
  return place;
}

Place Evaluator::placeOfStore(ir::TileStoreOp op) {
  return placeInView(e, op.getView(), op.getOffsets(), op.getInbounds());
}

Values Evaluator::extents(mlir::Value tile) {
  if (const Place* known = place(tile); known && known->offsets.empty() && !known->view.extents.empty())
    return known->view.extents;
  Values result;
  auto type = tileType(tile);
  for (auto [dim, size] : llvm::enumerate(ir::tileSizes(tile))) {
    if (!type.isDynamicDim(dim)) {
      result.push_back(e.i64(type.getDimSize(dim)));
    } else if (auto attribute = mlir::dyn_cast_if_present<mlir::Attribute>(size)) {
      result.push_back(e.i64(mlir::cast<mlir::IntegerAttr>(attribute).getInt()));
    } else if (auto value = mlir::dyn_cast_if_present<mlir::Value>(size)) {
      result.push_back(e.scalar(value));
    } else {  // made by a region: its operands know
      Value* extent = nullptr;
      if (mlir::Operation* op = tile.getDefiningOp(); op && ir::isElementwise(op))
        for (mlir::Value operand : op->getOperands())
          if (!extent && isTile(operand))
            extent = extents(operand)[dim];
      if (!extent) {
        e.fail(tile.getDefiningOp() ? tile.getDefiningOp() : tile.getParentBlock()->getParentOp(),
               "a tile of unknown extent");
        extent = e.i64(0);
      }
      result.push_back(extent);
    }
  }
  return result;
}

//===-- elements ----------------------------------------------------------------------------------------------===//

Value* Evaluator::find(mlir::Value tile, const At& at) const {
  for (const auto& frame : llvm::reverse(frames_))
    if (auto found = frame.find(tile); found != frame.end())
      for (const auto& [known, value] : found->second)
        if (known == at)
          return value;
  return nullptr;
}

Value* Evaluator::eval(mlir::Value tile, const At& at) {
  if (at.lanes > 1 && at.isUniform()) {  // the same element in all lanes
    At one{at.index, 1, nullptr};
    llvm::SaveAndRestore exists(exists_, exists_ ? emit::anyLane(e.ir, exists_) : nullptr);
    return emit::splat(e.ir, eval(tile, one), at.lanes);
  }
  if (Value* known = find(tile, at))
    return known;
  Value* value = compute(tile, at);
  remember(tile, at, value);
  return value;
}

Value* Evaluator::compute(mlir::Value tile, const At& at) {
  if (const Place* known = place(tile))
    return loadElements(e, *known, at, inside, exists_);
  mlir::Operation* op = tile.getDefiningOp();
  LaneMath math(e.ir, at.lanes);
  auto failed = [&](const char* what) -> Value* {
    e.fail(op ? op : tile.getParentBlock()->getParentOp(), what);
    return llvm::PoisonValue::get(emit::valueType(e.context(), tile.getType(), at.lanes));
  };
  if (!op)
    return failed("this tile");
  return llvm::TypeSwitch<mlir::Operation*, Value*>(op)
      .Case([&](ir::TileLoadOp load) { return loadElements(e, placeOfLoad(load), at, inside, exists_); })
      .Case([&](ir::BroadcastOp broadcast) -> Value* {
        mlir::Value source = broadcast.getValue();
        if (!isTile(source))
          return emit::splat(e.ir, e.scalar(source), at.lanes);
        At from{{}, at.lanes, at.mask};
        for (auto [dim, target] : llvm::enumerate(broadcast.getDims())) {
          bool stretched = tileType(source).getDimSize(dim) == 1;
          from.index.push_back(stretched ? Lane::uniform(e.i64(0)) : at.index[target]);
        }
        return eval(source, from);
      })
      .Case([&](ir::IotaOp iota) {
        Value* index = math.vector(at.index[iota.getDim()]);
        llvm::Type* type = emit::valueType(e.context(), tile.getType(), at.lanes);
        return e.ir.CreateZExtOrTrunc(index, type);
      })
      .Case([&](ir::TransposeOp transpose) {
        At from{at.index, at.lanes, at.mask};
        for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
          from.index[source] = at.index[dim];
        return eval(transpose.getValue(), from);
      })
      .Case([&](ir::SliceOp slice) { return evalSlice(slice, at); })
      .Case([&](ir::ReshapeOp reshape) { return eval(reshape.getValue(), sourceOfReshape(reshape, at)); })
      .Case([&](ir::ReduceOp reduce) { return evalReduce(reduce, at); })
      .Case([&](mlir::arith::ConstantOp) { return evalConstant(op, at); })
      .Default([&](mlir::Operation*) -> Value* {
        if (!emit::isElementwise(op))
          return failed("this tile operation here");
        Values operands;
        for (mlir::Value operand : op->getOperands())
          operands.push_back(isTile(operand) ? eval(operand, at) : emit::splat(e.ir, e.scalar(operand), at.lanes));
        Value* value = emit::emitElementwise(e.ir, e.features, op, operands, at.lanes);
        return value ? value : failed("this operation on tiles");
      });
}

Value* Evaluator::evalConstant(mlir::Operation* op, const At& at) {
  mlir::Attribute value = mlir::cast<mlir::arith::ConstantOp>(op).getValue();
  if (mlir::isa<mlir::SplatElementsAttr>(value))
    return emit::constantValue(e.context(), value, at.lanes);
  auto dense = mlir::cast<mlir::DenseElementsAttr>(value);
  mlir::Type type = dense.getElementType();
  llvm::SmallVector<llvm::Constant*> elements;
  for (mlir::Attribute element : dense.getValues<mlir::Attribute>()) {
    llvm::Constant* constant = emit::constantValue(e.context(), element);
    if (type.isInteger(1))
      constant = llvm::ConstantInt::get(e.ir.getInt8Ty(), constant->isOneValue());
    elements.push_back(constant);
  }
  auto* array =
      llvm::ConstantArray::get(llvm::ArrayType::get(emit::memoryType(e.context(), type), elements.size()), elements);
  TileBuffer buffer{type, nullptr, {}};
  buffer.pointer = new llvm::GlobalVariable(e.state.module, array->getType(), true, llvm::GlobalValue::InternalLinkage,
                                            array, "vx.constant");
  for (int64_t extent : dense.getType().getShape())
    buffer.extents.push_back(e.i64(extent));
  Place place = placeOf(e, buffer);
  place.padded = false;
  return loadElements(e, place, at, true);
}

//===-- slices ------------------------------------------------------------------------------------------------===//

/// Outside: 0. What is found there belongs to nobody else, as nothing was read.
Value* Evaluator::evalSlice(ir::SliceOp op, const At& at) {
  LaneMath math(e.ir, at.lanes);
  At from{{}, at.lanes, at.mask};
  unsigned kept = 0;
  for (auto [dim, offset] : llvm::enumerate(op.getOffsets())) {
    bool dropped = llvm::is_contained(op.getDropped(), int64_t(dim));
    bool atStart = mlir::getConstantIntValue(offset) == 0;
    Lane begin = Lane::uniform(e.scalar(offset));
    from.index.push_back(dropped ? begin : atStart ? at.index[kept] : math.add(at.index[kept], begin));
    kept += !dropped;
  }
  if (ir::guardedDims(op).empty())
    return eval(op.getValue(), from);
  Values bounds = extents(op.getValue());
  Lane inside = Lane::uniform(e.ir.getTrue());
  for (int64_t dim : ir::guardedDims(op))
    inside = math.andLanes(inside, math.compare(llvm::CmpInst::ICMP_ULT, from.index[dim], Lane::uniform(bounds[dim])));
  Value* condition = inside.isUniform() ? inside.value : math.vector(inside);
  Value* all = condition;
  if (exists_) {
    bool isVector = all->getType()->isVectorTy() || exists_->getType()->isVectorTy();
    auto wide = [&](Value* value) { return isVector ? emit::splat(e.ir, value, at.lanes) : value; };
    all = math.andMask(wide(exists_), wide(all));
  }
  llvm::SaveAndRestore exists(exists_, all);
  Frame frame(*this);
  Value* value = eval(op.getValue(), from);
  return e.ir.CreateSelect(condition, value, llvm::Constant::getNullValue(value->getType()));
}

//===-- reshape -----------------------------------------------------------------------------------------------===//

bool reshapeSplits(ir::ReshapeOp op) {
  ir::ReshapeParts parts = ir::reshapeParts(op);
  return parts.suffix > 0 || tileType(op.getValue()).getRank() <= int64_t(parts.prefix + parts.suffix + 1);
}

At Evaluator::sourceOfReshape(ir::ReshapeOp op, const At& at) {
  ir::ReshapeParts parts = ir::reshapeParts(op);
  LaneMath math(e.ir, at.lanes);
  unsigned fromRank = tileType(op.getValue()).getRank(), toRank = at.index.size();
  Values toExtents = extents(op.getResult()), fromExtents = extents(op.getValue());
  At from{{}, at.lanes, at.mask};
  from.index.append(at.index.begin(), at.index.begin() + parts.prefix);
  Lane linear = Lane::uniform(e.i64(0));
  for (unsigned dim = parts.prefix; dim < toRank - parts.suffix; ++dim)
    linear = math.add(math.mul(linear, Lane::uniform(toExtents[dim])), at.index[dim]);
  unsigned middle = fromRank - parts.prefix - parts.suffix;
  if (middle == 1) {
    from.index.push_back(linear);
  } else if (middle > 1) {  // several source dimensions: digits of the linear index
    llvm::SmallVector<Lane> digits(middle, Lane::uniform(e.i64(0)));
    Lane rest = linear;
    for (unsigned i = middle; i-- > 0;) {
      if (i == 0) {
        digits[0] = rest;
        break;
      }
      Value* extent =
          emit::splat(e.ir, e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umax, fromExtents[parts.prefix + i], e.i64(1)),
                      rest.isUniform() ? 1 : at.lanes);
      Value* number = rest.isUniform() ? rest.value : math.vector(rest);
      auto make = [&](Value* value) { return rest.isUniform() ? Lane::uniform(value) : Lane::varying(value); };
      digits[i] = make(e.ir.CreateURem(number, extent));
      rest = make(e.ir.CreateUDiv(number, extent));
    }
    from.index.append(digits);
  }
  from.index.append(at.index.end() - parts.suffix, at.index.end());
  return from;
}

//===-- reductions inside an expression -----------------------------------------------------------------------===//

/// One loop per reduced dimension. When neighbouring elements are combined, the innermost loop runs over vectors.
Value* Evaluator::evalReduce(ir::ReduceOp op, const At& at) {
  mlir::Type type = tileType(op.getValue()).getElementType();
  Reduction reduction(e, op.getKind(), type);
  Values sizes = extents(op.getValue());
  llvm::SmallVector<unsigned> reduced;
  At from{{}, at.lanes, at.mask};
  unsigned kept = 0;
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    bool isReduced = llvm::is_contained(op.getDims(), int64_t(dim));
    if (isReduced)
      reduced.push_back(dim);
    from.index.push_back(isReduced ? Lane::uniform(e.i64(0)) : at.index[kept++]);
  }
  bool alongLanes = at.lanes == 1 && reduced.back() + 1 == sizes.size();
  LoopShape shape;
  if (alongLanes)
    shape = {chooseLanes(e, elementTypes(*this, {op.getValue()})),
             e.unitStrides ? copiesFor(costOf(*this, op.getValue())) : 1u};
  Values sums = alongLanes ? reduction.start(shape.lanes, shape.copies) : Values{reduction.neutral(at.lanes)};
  auto loop = [&](auto& self, unsigned level, Values carried) -> Values {
    unsigned dim = reduced[level];
    bool last = level + 1 == reduced.size();
    if (last && alongLanes)
      return emitVectorLoop(e, sizes[dim], shape, carried, [&](Value* i, Value* mask, unsigned lanes, Values& next) {
        Frame frame(*this);
        At here{from.index, lanes, mask};
        here.index[dim] = laneIndex(e, i, lanes);
        reduction.accumulate(next, reduction.widen(eval(op.getValue(), here)), shape.lanes, mask);
      });
    return emitCounted(e, sizes[dim], carried, [&](Value* i, llvm::ArrayRef<Value*> inside) {
      Frame frame(*this);
      from.index[dim] = Lane::uniform(i);
      if (!last)
        return self(self, level + 1, Values(inside.begin(), inside.end()));
      return Values{reduction.combine(inside[0], reduction.widen(eval(op.getValue(), from)))};
    });
  };
  sums = loop(loop, 0, sums);
  Values counts;
  for (unsigned dim : reduced)
    counts.push_back(sizes[dim]);
  return reduction.orEmpty(alongLanes ? reduction.finish(sums) : reduction.narrow(sums[0]), counts);
}

}  // namespace vortex::target::cpu::tiles
