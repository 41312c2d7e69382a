// The code of a fused nest.
#include "ir/index_cast.h"
#include "passes/stream_match.h"
#include "target/gpu/tiles/nest.h"

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;

//===-- rows --------------------------------------------------------------------------------------------------===//

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

Values Nest::emitRows(Version version) {
  scalarResult_ = {};
  row_.clear();
  rowExists_ = {};
  kept_.clear();
  v_.writers = {};
  for (const Root& root : roots_)
    v_.writers.bases.insert(root.sink.base);
  Frame frame(v_);
  if (rows_.empty()) {
    findHead(version);
    emitRow(version);
    return scalarResult_ ? Values{scalarResult_} : Values{};
  }
  Value total = rowsTo_;
  if (!total) {
    total = l.constant(1);
    for (Value extent : rows_)
      total = l.mul(total, extent);
  }
  l.emitFor(rowsFrom_ ? rowsFrom_ : l.constant(0), total, team_.rows, {}, [&](Value first, mlir::ValueRange) {
    Frame inner(v_);
    firstRow_ = first;
    Value row = l.add(first, team_.row);
    if (l.constantOf(team_.rows) != 1) {
      rowExists_ = isLess(l, row, total);
      row = choose(l, rowExists_, row, l.sub(total, l.constant(1)));
      v_.writers.writes = rowExists_;
    }
    row_ = digits(row, rows_);
    kept_.clear();
    findHead(version);
    emitRow(version);
    return Values{};
  });
  row_.clear();
  rowExists_ = firstRow_ = head_ = v_.writers.writes = {};
  return {};
}

void Nest::emitRow(Version version) {
  SharedScope slots(l.shared());
  bool isFirst = true;
  if (!resident_.empty())
    placeResident(version);
  if (version.early)
    for (const Pass& pass : passes_)
      if (!pass.inner.empty())
        touchAll(pass, keptPositions(pass, version));
  for (const Pass& pass : passes_) {
    if (pass.maximum)
      emitOnlinePass(pass, version, std::exchange(isFirst, false));
    else if (!pass.reduces.empty())
      emitReducePass(pass, version, std::exchange(isFirst, false));
    if (!pass.roots.empty())
      emitStorePass(pass, version);
  }
}

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

/// Counted in 32 bits: an address is then one instruction away from a register that its predicate needs anyhow.
void Nest::addPredicated(Kept& kept, const Pass& pass, Version version) {
  mlir::Type i32 = l.b.getI32Type(), index = l.b.getIndexType();
  auto narrow = [&](Value value) { return ir::fromIndex(l.b, l.loc, i32, value); };
  auto wide = [&](Value value) -> Value { return l.b.create<arith::IndexCastUIOp>(l.loc, index, value); };
  Value items = narrow(version.peeled ? peeledItems(pass, version) : itemCount(pass.inner, version.lanes));
  Value lane = narrow(team_.lane), width = narrow(team_.width);
  // Zero, as no block has so many rows, but not known to be: addresses that do not change from row to row would be computed before the loop
  // and crowd out the row. Of single elements of one tensor they are few, and dearer than the row.
  if (firstRow_ && (version.lanes > 1 || !isSmall()))
    lane = l.add(lane, narrow(l.b.create<arith::ShRUIOp>(l.loc, firstRow_, l.constant(32))));
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
  if (version.full)
    for (unsigned k = 0; k < version.positions; ++k)
      kept.positions.push_back(
          positionOf(pass, version, l.add(team_.lane, l.mul(team_.width, l.constant(k))), Value()));
  else
    addPredicated(kept, pass, version);
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

//===-- reductions --------------------------------------------------------------------------------------------===//

Value Nest::masked(Reduction& reduction, const Position& position, Value value) {
  if (!position.exists)
    return value;
  auto vector = llvm::dyn_cast<mlir::VectorType>(value.getType());
  unsigned lanes = vector ? static_cast<unsigned>(vector.getNumElements()) : 1;
  return choose(l, position.exists, value, reduction.neutral(lanes));
}

void Nest::emitReducePass(const Pass& pass, Version version, bool isFirst) {
  llvm::SmallVector<Reduction> reductions;
  for (ir::ReduceOp op : pass.reduces)
    reductions.push_back(Reduction(l, op.getKind(), elementType(op.getValue())));
  auto element = [&](size_t r, const Position& position) {
    ir::ReduceOp op = pass.reduces[r];
    Value value = v_.eval(op.getValue(), reduceAt(op, position));
    return masked(reductions[r], position, reductions[r].widen(value));
  };
  // One choice per position instead of one per element.
  auto foldedElement = [&](size_t r, const Position& position) {
    ir::ReduceOp op = pass.reduces[r];
    Value value = v_.eval(op.getValue(), reduceAt(op, position));
    return masked(reductions[r], position, reductions[r].fold(reductions[r].widen(value)));
  };
  llvm::SmallVector<Values> partial(pass.reduces.size());
  Values carries = scanStart(pass);
  if (version.positions && (version.full || version.lanes == 1 || !pass.scans.empty())) {
    llvm::ArrayRef<Position> positions = keptPositions(pass, version);
    touchAll(pass, positions);
    scanSteps(pass, positions, carries);
    for (const Position& position : positions) {
      for (size_t r = 0; r < reductions.size(); ++r)
        partial[r].push_back(position.predicated ? foldedElement(r, position) : element(r, position));
    }
  } else if (version.positions) {
    llvm::ArrayRef<Position> positions = keptPositions(pass, version);
    touchAll(pass, positions);
    primeInvariants(pass);
    Values neutrals;
    for (Reduction& reduction : reductions)
      neutrals.push_back(reduction.neutral(1));
    auto all = [&](const Position& here) {
      Values values;
      for (size_t r = 0; r < reductions.size(); ++r)
        values.push_back(foldedElement(r, here));
      return values;
    };
    for (const Position& position : positions)
      for (auto [r, value] : llvm::enumerate(whereExists(pass, position, all, neutrals)))
        partial[r].push_back(value);
  } else {
    primeInvariants(pass);
    startFetching(pass);
    unsigned unroll = unrollOf(pass, version.lanes, false), apart = fetching_.empty() ? unroll : std::min(unroll, 2u);
    Values carried;
    for (Reduction& reduction : reductions)
      carried.append(apart, reduction.neutral(version.lanes));
    size_t sums = carried.size();
    carried.append(carries);
    carried = sweep(pass, version, unroll, carried, [&](llvm::ArrayRef<Position> positions, Values& next) {
      touchAll(pass, positions);
      scanSteps(pass, positions, llvm::MutableArrayRef(next).drop_front(sums));
      keepResident(positions);
      for (auto [number, position] : llvm::enumerate(positions)) {
        const size_t u = number % apart;
        Values sums;
        for (size_t r = 0; r < reductions.size(); ++r)
          sums.push_back(next[r * apart + u]);
        auto combined = [&](const Position& here) {
          Values values;
          for (size_t r = 0; r < reductions.size(); ++r)
            values.push_back(reductions[r].combine(element(r, here), sums[r]));
          return values;
        };
        for (auto [r, value] : llvm::enumerate(whereExists(pass, position, combined, sums, false)))
          next[r * apart + u] = value;
      }
    });
    for (size_t r = 0; r < reductions.size(); ++r)
      partial[r].append(carried.begin() + static_cast<ptrdiff_t>(r * apart),
                        carried.begin() + static_cast<ptrdiff_t>((r + 1) * apart));
    if (version.peeled) {
      Frame frame(v_);
      Position single = singlePosition(pass, version);
      touchAll(pass, single);
      keepResident(single);
      for (size_t r = 0; r < reductions.size(); ++r)
        partial[r] = {reductions[r].combine(reductions[r].fold(partial[r]), element(r, single))};
    }
    endFetching();
  }
  llvm::SmallVector<TeamValue> values;
  for (size_t r = 0; r < reductions.size(); ++r)
    values.push_back({&reductions[r], reductions[r].fold(partial[r])});
  Values totals = teamReduce(l, team_, values, isFirst);
  for (size_t r = 0; r < reductions.size(); ++r) {
    ir::ReduceOp op = pass.reduces[r];
    Value result = reductions[r].result(totals[r], reducedExtents(op));
    if (op == scalar_)
      scalarResult_ = result;
    else
      v_.remember(op.getResult(), At{row_, 1}, result);
  }
}

//===-- stores ------------------------------------------------------------------------------------------------===//

/// Values first, so that nothing is read after it was overwritten.
void Nest::storeRoots(const Pass& pass, const Position& position) {
  At here = at(position);
  Values values;
  for (unsigned root : pass.roots)
    values.push_back(v_.eval(roots_[root].value, here));
  Value mask = rowExists_ && position.exists ? l.both(rowExists_, position.exists)
               : rowExists_                  ? rowExists_
                                             : position.exists;
  for (auto [root, value] : llvm::zip(pass.roots, values))
    storeElements(l, roots_[root].sink, here, value, mask, v_.wide, false);
}

/// Rows that end in one element: the first thread of the team writes it.
void Nest::emitSingles(const Pass& pass) {
  Value isFirst = l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::eq, team_.lane, l.constant(0));
  Value row = std::exchange(v_.writers.writes, l.both(rowExists_, isFirst));
  storeRoots(pass, Position{{}, isFirst});
  v_.writers.writes = row;
}

void Nest::emitStorePass(const Pass& pass, Version version) {
  if (pass.inner.empty())
    return emitSingles(pass);
  if (continuesBlocks(pass))
    return emitHeldScan(pass, version);
  Values carries = scanStart(pass);
  auto store = [&](const Position& here) {
    storeRoots(pass, here);
    return Values{};
  };
  if (version.positions) {
    llvm::ArrayRef<Position> positions = keptPositions(pass, version);
    if (!pass.scans.empty())
      return storeScanned(pass, positions, carries);
    if (version.lanes == 1) {
      for (const Position& position : positions)
        storeRoots(pass, position);
      return;
    }
    // What only this pass loads is usually small and at hand: few positions at a time, to leave the registers to what is kept.
    // Predicates take some of those, too.
    size_t together = version.full ? 2 : 1;
    if (!version.full)
      primeInvariants(pass);
    for (; !positions.empty(); positions = positions.drop_front(std::min(together, positions.size()))) {
      llvm::ArrayRef<Position> group = positions.take_front(together);
      touchAll(pass, group);
      for (const Position& position : group)
        whereExists(pass, position, store, {}, false);
    }
    return;
  }
  if (rowRank_ < 0 && !version.peeled && reducesInside(pass))
    return emitColumns(pass, version);
  emitSwept(pass, version, carries);
}

void Nest::emitSwept(const Pass& pass, Version version, const Values& carries) {
  unsigned unroll = unrollOf(pass, version.lanes, true);
  if (version.peeled && !pass.scans.empty())
    return emitPeeledScan(pass, version, unroll, carries);
  auto store = [&](const Position& here) {
    storeRoots(pass, here);
    return Values{};
  };
  primeInvariants(pass);
  sweep(pass, version, unroll, carries, [&](llvm::ArrayRef<Position> positions, Values& next) {
    if (!pass.scans.empty())
      return storeScanned(pass, positions, next);
    touchAll(pass, positions);
    for (const Position& position : positions)
      whereExists(pass, position, store, {}, false);
  });
  if (version.peeled) {
    Frame frame(v_);
    storeRoots(pass, singlePosition(pass, version));
  }
}

}  // namespace vortex::target::gpu::tiles
