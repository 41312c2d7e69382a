#include "target/gpu/dot/core.h"

namespace vortex::target::gpu::dot {

namespace vxt = ir::vxt;

FragmentAddress::At FragmentAddress::move(Value stage, uint64_t x, uint64_t k) {
  if (stage != stage_) {
    stage_ = stage;
    pointers_.clear();
  }
  uint64_t moved = tile_.offset(x, k);
  uint64_t flipped = tile_.swizzle.mask == 0 ? 0 : moved & possible_;
  Value& pointer = pointers_[flipped];
  if (!pointer) {
    Numbers n(l_);
    Value place = n.bitXor(thread_, n.constant(static_cast<int64_t>(flipped)));
    pointer = l_.b.create<vxt::OffsetOp>(l_.loc, stage.getType(), stage, place, element_);
  }
  return {pointer, static_cast<int64_t>(moved - flipped)};
}

Value placeIn(const SharedTile& tile, Numbers& n, Value x, Value k) {
  Value inner = tile.depthInner ? k : x, outer = tile.depthInner ? x : k;
  Value at = n.add(n.mul(outer, tile.pitch), inner);
  if (tile.swizzle.mask == 0)
    return at;
  Value moved = n.bitAnd(n.shiftRight(at, tile.swizzle.shift), static_cast<int64_t>(tile.swizzle.mask));
  return n.bitXor(at, n.shiftLeft(moved, tile.swizzle.base));
}

WarpPlace warpPlace(Numbers& n, const Plan& plan) {
  Lowering& l = n.l;
  Value thread = l.b.create<vxt::ThreadIdOp>(l.loc, l.b.getI32Type());
  Value warp = n.shiftRight(thread, 5);
  unsigned across = plan.rows / plan.warpRows;
  unsigned bits = static_cast<unsigned>(__builtin_ctz(across));
  return {n.mul(n.bitAnd(warp, across - 1), plan.warpRows), n.mul(n.shiftRight(warp, bits), plan.warpColumns),
          n.bitAnd(thread, 31)};
}

}  // namespace vortex::target::gpu::dot
