// The code of a fused nest: its rows, and of each row the reductions and the stores. What they run over: nest_positions.cpp.
#include "target/gpu/tiles/nest.h"

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;

//===-- rows --------------------------------------------------------------------------------------------------===//

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
  placePicked();
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
