// Reductions of leading dimensions with fewer columns than the block has threads: several threads share a column, each takes its slice of the
// rows, and the slices are combined in order.
#include "ir/index_cast.h"
#include "target/gpu/tiles/nest.h"
#include "target/gpu/tiles/picked.h"

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;

/// Slices of one column at most: so many values are combined one after another.
static constexpr int64_t kMostSlices = 32;

/// Elements of the pass are reduced inside their expression, in loops.
bool Nest::reducesInside(const Pass& pass) {
  if (!pass.scans.empty())
    return false;
  bool reduces = false, possible = true;
  Closure closure;
  for (auto& [value, map] : usesOf(pass))
    closure.walk(value, map, [&](mlir::Value inner, const DimMap&) {
      if (v_.place(inner))
        return false;
      auto reduce = inner.getDefiningOp<ir::ReduceOp>();
      if (reduce && pickedBy(reduce))
        return true;
      reduces |= bool(reduce);
      possible &= !reduce || !elementType(reduce.getValue()).isInteger(1);
      return !reduce;
    });
  return reduces && possible;
}

/// One position for each thread with a slice of it, where threads are at least twice as many as positions; else as every sweep.
void Nest::emitColumns(const Pass& pass, Version version) {
  Value items = itemCount(pass.inner, version.lanes), threads = l.constant(l.threads());
  Value isFew =
      l.both(isLess(l, l.constant(0), items), isLess(l, l.mul(items, l.constant(2)), l.add(threads, l.constant(1))));
  auto split = [&]() -> Values {
    mlir::Type i32 = l.b.getI32Type();
    auto narrow = [&](Value value) { return ir::fromIndex(l.b, l.loc, i32, value); };
    auto wide = [&](Value value) -> Value {
      return l.b.create<arith::IndexCastUIOp>(l.loc, l.b.getIndexType(), value);
    };
    auto quotient = [&](Value value) { return wide(l.b.create<arith::DivUIOp>(l.loc, narrow(value), narrow(items))); };
    Value number = quotient(l.threadId()), item = l.sub(l.threadId(), l.mul(number, items));
    v_.slices = {number, l.min(quotient(threads), l.constant(kMostSlices)), item, items};
    storeRoots(pass, positionOf(pass, version, item, isLess(l, number, l.constant(1))));
    v_.slices.reset();
    return {};
  };
  branch(isFew, split, [&]() -> Values {
    emitSwept(pass, version, {});
    return {};
  });
}

}  // namespace vortex::target::gpu::tiles
