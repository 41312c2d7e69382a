// Reductions inside an expression: all of it by one thread, or by several that share a position.
#include "target/gpu/tiles/evaluator.h"
#include "target/gpu/tiles/picked.h"
#include "target/gpu/tiles/reduction.h"

namespace vortex::target::gpu::tiles {

namespace vxt = ir::vxt;

/// One loop per reduced dimension; threads that share the position take turns along the innermost.
Value Evaluator::evalReduce(ir::ReduceOp op, const At& at) {
  if (std::optional<Picked> picked = pickedBy(op))
    return evalPicked(op, *picked, at);
  std::optional<Slices> shared = std::exchange(slices, std::nullopt);  // what is below is this thread's alone
  const int64_t kUnroll = std::clamp<int64_t>(64 / at.lanes, 4, shared ? 8 : 16);
  Reduction reduction(l, op.getKind(), elementType(op.getValue()));
  Values sizes = extents(op.getValue());
  llvm::SmallVector<unsigned> reduced;
  At from{{}, at.lanes, at.mask};
  llvm::SmallVector<std::optional<Index>> known(sizes.size());  // of what is not reduced
  unsigned kept = 0;
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    if (llvm::is_contained(op.getDims(), static_cast<int64_t>(dim)))
      reduced.push_back(dim);
    else
      known[dim] = at.index[kept++];
    from.index.push_back(known[dim].value_or(Index{l.constant(0), 0}));
  }
  auto never = [](mlir::Value) { return false; };
  primeInvariants(op.getValue(), identityMap(static_cast<unsigned>(sizes.size())), known, from, never, never);
  auto element = [&](Value i, unsigned dim) {
    At here = from;
    here.index[dim].base = i;
    return here;
  };
  Value turn = shared ? shared->number : l.constant(0), turns = shared ? shared->count : l.constant(1);
  auto innermost = [&](unsigned dim, Value carried) {
    Value unroll = l.constant(kUnroll);
    Value whole = l.mul(l.div(sizes[dim], unroll), unroll);
    Value first = l.mul(turn, unroll), step = l.mul(turns, unroll);
    Values sum = l.emitFor(first, whole, step, carried, [&](Value i, mlir::ValueRange inside) {
      Frame frame(*this);
      Value total = inside[0];
      for (int64_t u = 0; u < kUnroll; ++u)
        touch(op.getValue(), element(l.add(i, l.constant(u)), dim));
      for (int64_t u = 0; u < kUnroll; ++u)
        total = reduction.combine(total, reduction.widen(eval(op.getValue(), element(l.add(i, l.constant(u)), dim))));
      return Values{total};
    });
    return l.emitFor(l.add(whole, turn), sizes[dim], turns, sum, [&](Value i, mlir::ValueRange inside) {
      Frame frame(*this);
      return Values{reduction.combine(inside[0], reduction.widen(eval(op.getValue(), element(i, dim))))};
    });
  };
  auto loop = [&](auto& self, unsigned level, Value carried) -> Values {
    unsigned dim = reduced[level];
    if (level + 1 == reduced.size())
      return innermost(dim, carried);
    return l.emitFor(l.constant(0), sizes[dim], l.constant(1), carried, [&](Value i, mlir::ValueRange inside) {
      Frame frame(*this);
      from.index[dim].base = i;
      return self(self, level + 1, inside[0]);
    });
  };
  Value total = loop(loop, 0, reduction.neutral(at.lanes))[0];
  if (shared)
    total = combineSlices(reduction, *shared, total, at.lanes);
  slices = shared;
  Values all;
  for (unsigned dim : reduced)
    all.push_back(sizes[dim]);
  return reduction.result(total, all);
}

/// In the order of the slices, by the threads that have the first one; the others' result does not matter.
Value Evaluator::combineSlices(Reduction& reduction, const Slices& shared, Value own, unsigned lanes) {
  SharedScope scope(l.shared());
  int64_t bytes = vxt::scalarBytes(reduction.accumulatorType());
  SharedMemory::Piece piece = l.shared().take(l.threads() * lanes * bytes, 16, "slices of a reduction");
  int64_t access = lanes > 1 ? std::min<int64_t>(16, lanes * bytes) : 0;
  Value each = l.constant(lanes), noMask;
  l.hazards().barrier();  // what was here before has been read
  l.b.create<vxt::StoreOp>(l.loc, own, l.sharedPointer(piece), l.mul(l.threadId(), each), noMask, access,
                           vxt::Cache::Default);
  l.hazards().barrier();
  Value isFirst = isLess(l, shared.number, l.constant(1)), end = choose(l, isFirst, shared.count, l.constant(0));
  Values total = l.emitFor(l.constant(1), end, l.constant(1), own, [&](Value slice, mlir::ValueRange inside) {
    Value place = l.mul(l.add(l.mul(slice, shared.items), shared.item), each);
    Value other = l.b.create<vxt::LoadOp>(l.loc, own.getType(), l.sharedPointer(piece), place, noMask, access,
                                          vxt::Cache::Default);
    return Values{reduction.combine(inside[0], other)};
  });
  l.hazards().read(piece.root);
  return total[0];
}

}  // namespace vortex::target::gpu::tiles
