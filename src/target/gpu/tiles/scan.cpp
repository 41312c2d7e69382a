#include "target/gpu/tiles/tiles_state.h"

namespace vortex::target::gpu::tiles {

void Tiles::emitScanAcross(ir::ScanOp op, const Root& root) {
  constexpr int64_t kUnroll = 4;
  nest().prepareExpression(op.getValue());
  Closure closure;
  closure.walk(op.getValue(), identityMap(rankOf(op.getValue())), [&](mlir::Value value, const DimMap&) {
    if (const Place* place = v_.place(value))
      l.hazards().read(place->base);
    else if (auto load = value.getDefiningOp<ir::TileLoadOp>())
      l.hazards().read(rootView(load.getView()));
    return !v_.place(value);
  });
  l.hazards().write(root.sink.base);
  Values extents = v_.extents(op.getValue());
  unsigned along = static_cast<unsigned>(op.getDim());
  Value items = l.constant(1);
  for (auto [dim, extent] : llvm::enumerate(extents))
    if (dim != along)
      items = l.mul(items, extent);
  Reduction reduction(l, op.getKind(), elementType(op.getValue()));
  l.emitFor(l.threadId(), items, l.constant(l.threads()), {}, [&](Value item, mlir::ValueRange) {
    Frame frame(v_);
    At here;
    here.index.resize(extents.size());
    Value rest = item;
    for (size_t dim = extents.size(); dim-- > 0;)
      if (dim != along) {
        here.index[dim] = {l.rem(rest, extents[dim]), 0};
        rest = l.div(rest, extents[dim]);
      }
    auto at = [&](Value i) {
      At position = here;
      position.index[along] = {i, 0};
      return position;
    };
    auto step = [&](Value i, Value carry) {
      Value own = reduction.combine(carry, reduction.widen(v_.eval(op.getValue(), at(i))));
      storeElements(l, root.sink, at(i), reduction.narrow(op.getExclusive() ? carry : own), {}, nullptr, false);
      return own;
    };
    Value unroll = l.constant(kUnroll), whole = l.mul(l.div(extents[along], unroll), unroll);
    Values carry = l.emitFor(l.constant(0), whole, unroll, reduction.neutral(1), [&](Value i, mlir::ValueRange inside) {
      Frame inner(v_);
      Value next = inside[0];
      for (int64_t u = 0; u < kUnroll; ++u)
        v_.touch(op.getValue(), at(l.add(i, l.constant(u))));
      for (int64_t u = 0; u < kUnroll; ++u)
        next = step(l.add(i, l.constant(u)), next);
      return Values{next};
    });
    l.emitFor(whole, extents[along], l.constant(1), carry, [&](Value i, mlir::ValueRange inside) {
      Frame inner(v_);
      return Values{step(i, inside[0])};
    });
    return Values{};
  });
}

}  // namespace vortex::target::gpu::tiles
