// The positions of a row that a thread works on: by which index, which of them exist, and loops over them.
#include "ir/index_cast.h"
#include "passes/stream_match.h"
#include "target/gpu/tiles/nest.h"

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;

//===-- positions ---------------------------------------------------------------------------------------------===//

Value Nest::itemCount(const Values& inner, unsigned lanes) {
  Value count = l.constant(1);
  for (Value extent : inner)
    count = l.mul(count, extent);
  return inner.empty() || lanes == 1 ? count : l.div(count, l.constant(lanes));
}

Nest::Position Nest::positionOf(const Pass& pass, Version version, Value item, Value exists) {
  Position position{{}, exists, false, pass.inner.empty() ? 1 : version.lanes};
  if (pass.inner.empty())
    return position;
  if (version.peeled) {
    position.inner.push_back({l.add(head_, l.mul(item, l.constant(version.lanes))), 1});
    return position;
  }
  Values extents = pass.inner;
  if (extents.size() > 1 && version.lanes > 1)
    extents.back() = l.div(extents.back(), l.constant(version.lanes));
  position.inner = digits(item, extents);
  if (version.lanes > 1) {
    Index& last = position.inner.back();
    last = {l.mul(last.base, l.constant(version.lanes)), 1};
  }
  return position;
}

/// In 32 bits where the block's tiles are known to be small: a fifth of the instructions. Still smaller ones are multiplied by 2^31 / by, rounded
/// up: exact while value · by < 2^31, two instructions, and the quotient 2^31 / by does not change from position to position.
std::pair<Value, Value> Nest::divide(Value value, Value by) {
  constexpr int64_t kMultiplied = int64_t(1) << 15;
  if (most_ >= INT32_MAX || l.constantOf(by))
    return {l.div(value, by), l.rem(value, by)};
  mlir::Type i32 = l.b.getI32Type(), i64 = l.b.getI64Type(), index = l.b.getIndexType();
  Value x = ir::fromIndex(l.b, l.loc, i32, value), y = ir::fromIndex(l.b, l.loc, i32, by), quotient;
  if (most_ > kMultiplied) {
    quotient = l.b.create<arith::DivUIOp>(l.loc, x, y);
  } else {
    auto number = [&](int64_t value) { return l.b.create<arith::ConstantIntOp>(l.loc, value, i32); };
    y = l.b.create<arith::MaxUIOp>(l.loc, y, number(1));
    Value above = l.b.create<arith::AddIOp>(l.loc, y, number(INT32_MAX));  // 2^31 + y - 1
    Value reciprocal = l.b.create<arith::DivUIOp>(l.loc, above, y);
    auto wide = [&](Value value) { return l.b.create<arith::ExtUIOp>(l.loc, i64, value); };
    Value product = l.b.create<arith::MulIOp>(l.loc, wide(x), wide(reciprocal));
    Value shift = l.b.create<arith::ConstantIntOp>(l.loc, 31, i64);
    quotient = l.b.create<arith::TruncIOp>(l.loc, i32, l.b.create<arith::ShRUIOp>(l.loc, product, shift));
  }
  Value rest = l.b.create<arith::SubIOp>(l.loc, x, l.b.create<arith::MulIOp>(l.loc, quotient, y));
  return {l.b.create<arith::IndexCastUIOp>(l.loc, index, quotient),
          l.b.create<arith::IndexCastUIOp>(l.loc, index, rest)};
}

llvm::SmallVector<Index> Nest::digits(Value linear, llvm::ArrayRef<Value> extents) {
  llvm::SmallVector<Index> result(extents.size());
  for (size_t i = extents.size(); i-- > 0;) {
    bool outermost = true;
    for (size_t j = 0; j < i; ++j)
      outermost &= l.constantOf(extents[j]) == 1;
    if (l.constantOf(extents[i]) == 1) {
      result[i] = {l.constant(0), 0};
      continue;
    }
    if (outermost) {
      result[i] = {linear, 0};
      continue;
    }
    auto [quotient, rest] = divide(linear, extents[i]);
    result[i] = {rest, 0};
    linear = quotient;
  }
  return result;
}

//===-- rows that start anywhere ------------------------------------------------------------------------------===//

/// The reference's first element of the row is aligned `head_` elements later.
void Nest::findHead(Version version) {
  if (!version.peeled)
    return;
  View view = reference_->view;
  view.strides.back() = l.constant(1);
  Values indices;
  for (size_t dim = 0; dim + 1 < view.rank(); ++dim)
    indices.push_back(row_[dim].base);
  indices.push_back(l.constant(0));
  if (!reference_->offsets.empty())
    for (auto [index, offset] : llvm::zip(indices, reference_->offsets))
      index = l.add(offset, index);
  Value before = l.b.create<arith::SubIOp>(l.loc, l.constant(0), l.offset(view, indices));
  head_ = l.b.create<arith::AndIOp>(l.loc, before, l.constant(version.lanes - 1));
}

/// Aligned pieces inside the row.
Value Nest::peeledItems(const Pass& pass, Version version) {
  Value length = pass.inner[0], rest = l.sub(length, l.min(head_, length));
  return l.div(rest, l.constant(version.lanes));
}

/// The elements that no piece holds, before the first and after the last: one for each thread of the team, which has that many.
Nest::Position Nest::singlePosition(const Pass& pass, Version version) {
  Value inPieces = l.mul(peeledItems(pass, version), l.constant(version.lanes));
  Value exists = isLess(l, team_.lane, l.sub(pass.inner[0], inPieces));
  Value element = choose(l, isLess(l, team_.lane, head_), team_.lane, l.add(team_.lane, inPieces));
  return {{Index{element, 0, true}}, l.both(rowExists_, exists), true, 1};
}

/// Cheaper to do again than to keep in registers: a few simple operations on what was loaded (a kept row of 16-bit elements would take twice the
/// registers as f32).
static bool isCheap(mlir::Value tile, unsigned depth = 3) {
  mlir::Operation* op = tile.getDefiningOp();
  if (!op || llvm::isa<ir::TileLoadOp, ir::BroadcastOp, ir::ReduceOp>(op))
    return true;
  if (depth == 0 || !ir::isElementwise(op) || ir::isFloatFunction(op) ||
      llvm::isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemFOp, arith::RemSIOp, arith::RemUIOp>(op))
    return false;
  return llvm::all_of(op->getOperands(),
                      [&](mlir::Value operand) { return !isTile(operand) || isCheap(operand, depth - 1); });
}

/// What `pass` has computed at a position and later passes ask for there.
llvm::DenseSet<mlir::Value> Nest::neededAfter(const Pass& pass, const llvm::DenseSet<mlir::Value>& computed) {
  llvm::DenseSet<mlir::Value> needed;
  for (const Pass* later = &pass + 1; later < passes_.data() + passes_.size(); ++later) {
    Closure closure;
    for (auto& [value, map] : usesOf(*later))
      closure.walk(value, map, [&](mlir::Value inner, const DimMap&) {
        if (v_.place(inner))
          return false;
        if (computed.contains(inner) && !isCheap(inner)) {
          needed.insert(inner);
          return false;
        }
        auto reduce = inner.getDefiningOp<ir::ReduceOp>();
        return !reduce || !fused_.contains(reduce);
      });
  }
  return needed;
}

/// `body` at a position that may not exist, as a branch: warps that are past the end of the row altogether pass by. What later passes need
/// of it they find; `otherwise` stands for the results elsewhere.
Values Nest::whereExists(const Pass& pass, const Position& position, PositionBody body, Values otherwise, bool keeps) {
  if (!position.predicated)
    return body(position);
  Position here = position;
  here.exists = {};
  here.predicated = false;
  llvm::SmallVector<Evaluator::Known> found;
  Value rowExists = rowExists_, writes = v_.writers.writes;
  Values results = l.emitIf(
      position.exists,
      [&] {
        Frame frame(v_);
        rowExists_ = v_.writers.writes = {};
        Values values = body(here);
        rowExists_ = rowExists;
        v_.writers.writes = writes;
        if (!keeps)
          return values;
        llvm::DenseSet<mlir::Value> computed;
        for (const Evaluator::Known& known : v_.knownInFrame())
          if (known.at.isMasked())
            computed.insert(known.tile);
        llvm::DenseSet<mlir::Value> needed = neededAfter(pass, computed);
        for (const Evaluator::Known& known : v_.knownInFrame())
          if (known.at.isMasked() && known.at.lanes == here.lanes && needed.contains(known.tile)) {
            found.push_back(known);
            values.push_back(known.value);
          }
        return values;
      },
      [&] {
        Values values = otherwise;
        for (const Evaluator::Known& known : found)
          values.push_back(l.zero(known.value.getType()));
        return values;
      });
  for (auto [known, value] : llvm::zip(found, llvm::ArrayRef(results).drop_front(otherwise.size()))) {
    known.at.mask = position.exists;
    v_.remember(known.tile, known.at, value);
  }
  results.truncate(otherwise.size());
  return results;
}

//===-- sweeps ------------------------------------------------------------------------------------------------===//

/// Zero, as no block has so many rows, but not known to be: addresses that do not change from row to row would be computed before the loop over rows
/// and crowd out the row.
Value Nest::unknownZero() { return l.b.create<arith::ShRUIOp>(l.loc, firstRow_, l.constant(32)); }

/// Counted in 32 bits: an address is then one instruction away from a register that its predicate needs anyhow.
void Nest::addPredicated(Kept& kept, const Pass& pass, Version version) {
  mlir::Type i32 = l.b.getI32Type(), index = l.b.getIndexType();
  auto narrow = [&](Value value) { return ir::fromIndex(l.b, l.loc, i32, value); };
  auto wide = [&](Value value) -> Value { return l.b.create<arith::IndexCastUIOp>(l.loc, index, value); };
  Value items = narrow(version.peeled ? peeledItems(pass, version) : itemCount(pass.inner, version.lanes));
  Value lane = narrow(team_.lane), width = narrow(team_.width);
  // Of single elements of one tensor addresses are few, and dearer than the row.
  if (firstRow_ && (version.lanes > 1 || !isSmall()))
    lane = l.add(lane, narrow(unknownZero()));
  for (unsigned k = 0; k < version.positions; ++k) {
    Value item = k ? l.add(lane, k > 1 ? l.mul(width, l.i32(k)) : width) : lane;
    Value exists = l.both(rowExists_, l.less(item, items));
    if (pass.inner.size() == 1) {
      Value element = l.b.create<arith::MulIOp>(l.loc, item, l.i32(version.lanes));
      if (version.peeled)
        element = l.add(element, narrow(head_));
      kept.positions.push_back({{Index{wide(element), version.lanes > 1 ? 1 : 0, true}}, exists, true, version.lanes});
    } else {
      kept.positions.push_back(positionOf(pass, version, wide(item), exists));
      kept.positions.back().predicated = true;
      for (Index& each : kept.positions.back().inner)
        each.masked = true;
    }
  }
  if (version.peeled)
    kept.positions.push_back(singlePosition(pass, version));
}

/// The same values in every pass, so that what one has computed the next ones find.
llvm::ArrayRef<Nest::Position> Nest::keptPositions(const Pass& pass, Version version) {
  for (const Kept& kept : kept_) {
    bool same = kept.inner.size() == pass.inner.size();
    for (auto [a, b] : llvm::zip(kept.inner, pass.inner))
      same &= sameValue(l, a, b);
    if (same)
      return kept.positions;
  }
  Kept kept{pass.inner, {}};
  if (version.full) {
    Value lane = firstRow_ && !l.constantOf(team_.width) ? l.add(team_.lane, unknownZero()) : team_.lane;
    for (unsigned k = 0; k < version.positions; ++k)
      kept.positions.push_back(positionOf(pass, version, l.add(lane, l.mul(team_.width, l.constant(k))), Value()));
  } else {
    addPredicated(kept, pass, version);
  }
  kept_.push_back(std::move(kept));
  return kept_.back().positions;
}

At Nest::at(const Position& position) const {
  At at{row_, position.lanes, position.predicated ? position.exists : Value()};
  at.index.append(position.inner);
  return at;
}

At Nest::reduceAt(ir::ReduceOp op, const Position& position) const {
  At at{{}, position.lanes, position.predicated ? position.exists : Value()};
  unsigned kept = 0, reduced = 0;
  for (unsigned dim = 0; dim < rankOf(op.getValue()); ++dim)
    at.index.push_back(llvm::is_contained(op.getDims(), static_cast<int64_t>(dim)) ? position.inner[reduced++]
                                                                                   : row_[kept++]);
  return at;
}

void Nest::touchAll(const Pass& pass, llvm::ArrayRef<Position> positions) {
  for (const Position& position : positions) {
    for (ir::ReduceOp op : llvm::concat<const ir::ReduceOp>(pass.reduces, pass.sums))
      v_.touch(op.getValue(), reduceAt(op, position));
    for (unsigned root : pass.roots)
      v_.touch(roots_[root].value, at(position));
  }
}

/// Runs over the items of a row, `unroll` positions at a time while there are so many.
Values Nest::sweep(const Pass& pass, Version version, unsigned unroll, Values carried, SweepBody body) {
  Value items = version.peeled ? peeledItems(pass, version) : itemCount(pass.inner, version.lanes);
  Value zero = l.constant(0);
  Value step = l.mul(team_.width, l.constant(unroll));
  if (!pass.scans.empty())  // in order, all threads together: as often for every row, wherever its pieces start
    return l.emitFor(zero, itemCount(pass.inner, version.lanes), step, carried,
                     [&](Value base, mlir::ValueRange inside) {
                       Frame frame(v_);
                       Values next(inside);
                       body(positionsFrom(pass, version, base, items, unroll), next);
                       return next;
                     });
  Value begin = zero;
  if (unroll > 1) {
    carried.push_back(zero);
    carried = l.emitFor(
        zero, l.sub(items, l.sub(step, l.constant(1))), step, carried, [&](Value base, mlir::ValueRange inside) {
          Frame frame(v_);
          Values next(inside.drop_back());
          llvm::SmallVector<Position> positions;
          Value item = l.add(base, team_.lane);
          for (unsigned u = 0; u < unroll; ++u)
            positions.push_back(
                positionOf(pass, version, u ? l.add(item, l.mul(team_.width, l.constant(u))) : item, {}));
          body(positions, next);
          next.push_back(l.add(base, step));
          return next;
        });
    begin = carried.pop_back_val();
  }
  // Where nothing but this one pass is to be done, others hide what a few accesses take.
  if (unroll == 1 || (rowRank_ < 0 && !version.peeled))
    return l.emitFor(l.add(begin, team_.lane), items, team_.width, carried, [&](Value item, mlir::ValueRange inside) {
      Frame frame(v_);
      Values next(inside);
      body(positionOf(pass, version, item, {}), next);
      return next;
    });
  // What is left takes as many accesses at a time, those past the end masked.
  Values rest = l.emitIf(
      isLess(l, begin, items),
      [&] {
        Frame frame(v_);
        Values next(carried);
        body(positionsFrom(pass, version, begin, items, unroll), next);
        return next;
      },
      [&] { return Values(carried); });
  return carried.empty() ? Values{} : rest;
}

/// Evaluates what does not change inside a row before its sweep.
void Nest::primeInvariants(const Pass& pass) {
  const llvm::SmallVector<std::optional<Index>> rows(row_.begin(), row_.end());
  auto isFused = [&](mlir::Value inner) {
    auto reduce = inner.getDefiningOp<ir::ReduceOp>();
    return reduce && fused_.contains(reduce);
  };
  auto needsMaximum = [&](mlir::Value inner) {
    return pass.maximum && passes::StreamMatcher::dependsOn(inner, {ir::ReduceOp(pass.maximum).getResult()});
  };
  for (auto& [value, map] : usesOf(pass))
    v_.primeInvariants(value, map, rows, At{{}, 1}, isFused, needsMaximum);
}

}  // namespace vortex::target::gpu::tiles
