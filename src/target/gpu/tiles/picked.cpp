// A sum of what is zero everywhere but at one place is the element there: one access instead of a comparison, a choice and an addition for each.
#include "target/gpu/tiles/picked.h"

#include "ir/index_cast.h"
#include "target/gpu/tiles/evaluator.h"
#include "target/gpu/tiles/nest.h"
#include "target/gpu/tiles/reduction.h"

#include <mlir/IR/Matchers.h>

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;

/// Of elements that are picked from a row that is read anyway (H200, of copy, swept and picked: bf16 rows of 4096 0.71 and 0.86, f32 1.00 and 0.98).
static constexpr int64_t kNarrowBytes = 2;

static unsigned widthOf(mlir::Value tile) {
  mlir::Type type = elementType(tile);
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

/// The places along loop `dim` themselves, in as many bits as the tile's type has.
static bool areNumbers(mlir::Value tile, const DimMap& map, unsigned dim) {
  mlir::Operation* op = tile.getDefiningOp();
  if (auto iota = llvm::dyn_cast_if_present<ir::IotaOp>(op))
    return map[static_cast<unsigned>(iota.getDim())] == DimUse{static_cast<int>(dim), true};
  const bool narrows = llvm::isa_and_present<arith::TruncIOp, arith::IndexCastOp, arith::IndexCastUIOp>(op) &&
                       widthOf(tile) <= widthOf(op->getOperand(0));
  if (!narrows && !llvm::isa_and_present<ir::BroadcastOp, ir::ReshapeOp>(op))
    return false;
  auto operands = operandUses(tile, map);
  return operands.size() == 1 && areNumbers(operands[0].first, operands[0].second, dim);
}

static bool dependsOn(mlir::Value tile, const DimMap& map, unsigned dim) {
  bool depends = false;
  Closure closure;
  closure.walk(tile, map, [&](mlir::Value inner, const DimMap& use) {
    mlir::Operation* op = inner.getDefiningOp();
    const bool isLeaf = !op || op->getNumRegions() != 0 || operandUses(inner, use).empty();
    depends |= isLeaf && usesLoop(use, static_cast<int>(dim));
    return !depends;
  });
  return depends;
}

/// The scalar that a tile repeats.
static mlir::Value repeated(mlir::Value tile) {
  auto broadcast = tile.getDefiningOp<ir::BroadcastOp>();
  return broadcast && !isTile(broadcast.getValue()) ? broadcast.getValue() : mlir::Value();
}

static bool isNeutral(ir::Combine kind, mlir::Value scalar) {
  mlir::Attribute attribute;
  if (!scalar || !mlir::matchPattern(scalar, mlir::m_Constant(&attribute)))
    return false;
  return attribute == ir::neutralElement(kind, scalar.getType()) ||
         (kind == ir::Combine::AddF && mlir::matchPattern(scalar, mlir::m_AnyZeroFloat()));
}

std::optional<Picked> pickedBy(ir::ReduceOp op) {
  auto choice = op.getValue().getDefiningOp<arith::SelectOp>();
  auto compare = choice ? choice.getCondition().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!compare || op.getDims().size() != 1)
    return std::nullopt;
  const auto predicate = compare.getPredicate();
  const bool isSame = predicate == arith::CmpIPredicate::eq;
  if (!isSame && predicate != arith::CmpIPredicate::ne)
    return std::nullopt;
  mlir::Value element = isSame ? choice.getTrueValue() : choice.getFalseValue();
  mlir::Value other = repeated(isSame ? choice.getFalseValue() : choice.getTrueValue());
  if (!isNeutral(op.getKind(), other))
    return std::nullopt;
  const auto dim = static_cast<unsigned>(op.getDims()[0]);
  const DimMap map = identityMap(rankOf(op.getValue()));
  mlir::Value sides[] = {compare.getLhs(), compare.getRhs()};
  if (!areNumbers(sides[0], map, dim))
    std::swap(sides[0], sides[1]);
  if (!areNumbers(sides[0], map, dim) || dependsOn(sides[1], map, dim))
    return std::nullopt;
  return Picked{element, sides[1], other};
}

/// Whether rows are read even where picked elements are accessed alone.
bool Nest::sweepsRows() const {
  bool sweeps = scalar_ != nullptr;
  for (const Root& root : roots_) {
    sweeps |= static_cast<int>(rankOf(root.value)) > rowRank_;
    Closure closure;
    closure.walk(root.value, identityMap(rankOf(root.value)), [&](mlir::Value inner, const DimMap& use) {
      if (v_.place(inner))
        return false;
      auto reduce = inner.getDefiningOp<ir::ReduceOp>();
      sweeps |= reduce && isFused(reduce, use) && !pickedBy(reduce);
      return !sweeps;
    });
  }
  return sweeps;
}

/// Whether the nest may access a single element of what the reduction picks from: not what is written in between, nor what is computed along rows.
/// And whether it should: of a row that is read anyway, wide elements are compared faster than one of them is read again.
bool Nest::isPicked(ir::ReduceOp op, const DimMap& map) const {
  std::optional<Picked> picked = op == scalar_ ? std::nullopt : pickedBy(op);
  if (!picked)
    return false;
  bool isPossible = true, isNarrow = true;
  Closure closure;
  auto visit = [&](mlir::Value inner, const DimMap& use) {
    mlir::Operation* producer = inner.getDefiningOp();
    const Place* place = v_.place(inner);
    auto load = llvm::dyn_cast_if_present<ir::TileLoadOp>(producer);
    if (place || load) {
      const void* base = place ? place->base : rootView(load.getView()).getAsOpaquePointer();
      isPossible &= llvm::none_of(roots_, [&](const Root& root) { return root.sink.base == base; });
      isNarrow &= !usesLoop(use, DimUse::kMixed) || ir::vxt::scalarBytes(elementType(inner)) <= kNarrowBytes;
      return false;
    }
    auto reduce = llvm::dyn_cast_if_present<ir::ReduceOp>(producer);
    if (reduce && reduce != op) {
      isPossible &= isFused(reduce, use);
      return false;
    }
    isPossible &= producer && producer->getNumRegions() == 0 && !llvm::isa<ir::ScanOp, ir::DotOp>(producer);
    return isPossible;
  };
  closure.walk(op, map, visit);
  return isPossible && (isNarrow || !isFused(op, map) || !sweepsRows());
}

/// Where the place is asked for: the same all along the dimension.
static At placeOf(Lowering& l, ir::ReduceOp op, const At& at) {
  At from = at;
  from.index.insert(from.index.begin() + op.getDims()[0], Index{l.constant(0), 0});
  return from;
}

/// Before the first pass over the row, so that they are known when it has ended.
void Nest::placePicked() {
  for (const Pass& pass : passes_) {
    Closure closure;
    for (auto& [value, map] : usesOf(pass))
      closure.walk(value, map, [&](mlir::Value inner, const DimMap& use) {
        auto reduce = inner.getDefiningOp<ir::ReduceOp>();
        if (v_.place(inner) || (reduce && fused_.contains(reduce)))
          return false;
        auto picked = reduce && use.size() == row_.size() && isIdentity(use) ? pickedBy(reduce) : std::nullopt;
        if (picked && levelBelow(picked->position, operandMap(reduce)) == 0)
          v_.eval(picked->position, placeOf(l, reduce, At{row_, 1}));
        return !picked;
      });
  }
}

Value Evaluator::evalPicked(ir::ReduceOp op, const Picked& picked, const At& at) {
  const auto dim = static_cast<unsigned>(op.getDims()[0]);
  const unsigned bits = widthOf(picked.position);
  const At from = placeOf(l, op, at);
  for (unsigned i = 0; i < at.index.size() && at.lanes > 1; ++i)
    if (at.index[i].step != 0 && dependsOn(picked.position, identityMap(rankOf(op.getValue())), i < dim ? i : i + 1))
      return lanesApart(op.getResult(), at, [&](const At& one) { return eval(op.getResult(), one); });
  Reduction reduction(l, op.getKind(), elementType(op.getValue()));
  const Values extents = this->extents(op.getValue());
  Value extent = extents[dim], other = splat(l, reduction.widen(l.scalar(picked.other)), at.lanes);
  Value position = eval(picked.position, from.lanes > 1 ? from.lane(l, 0) : from);
  if (!position.getType().isIndex())
    position = l.b.create<arith::IndexCastUIOp>(l.loc, l.b.getIndexType(), position);
  auto elementAt = [&](Value place, Value exists) {
    Frame frame(*this);
    At here = from;
    here.index[dim] = {place, 0, true};
    here.mask = l.both(from.condition(), exists);
    const bool wasOfOthers = std::exchange(isOfOthers_, true);
    Value element = eval(picked.element, here);
    isOfOthers_ = wasOfOthers;
    return reduction.widen(element);
  };
  Value exists = isLess(l, position, extent), element = elementAt(position, exists);
  // Zeros of both signs add up to +0.
  element = choose(l, isLess(l, l.constant(1), extent), reduction.combine(element, other), element);
  Value total = choose(l, exists, element, other);
  if (bits < 64) {  // such numbers come again
    Value again = l.constant(int64_t(1) << bits);
    total = l.emitFor(l.add(position, again), extent, again, total, [&](Value place, mlir::ValueRange sum) {
      return Values{reduction.combine(sum[0], elementAt(place, {}))};
    })[0];
  }
  return reduction.result(total, extent);
}

}  // namespace vortex::target::gpu::tiles
