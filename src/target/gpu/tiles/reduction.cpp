#include "target/gpu/tiles/reduction.h"

#include "ir/index_cast.h"
#include "target/gpu/tiles/place.h"

#include <mlir/Dialect/Math/IR/Math.h>

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;
namespace vxt = ir::vxt;

static constexpr int64_t kWarp = vxt::kWarpThreads;

bool Reduction::isNarrow() const {
  auto real = llvm::dyn_cast<mlir::FloatType>(type_);
  return real && real.getWidth() < 32;
}

mlir::Type Reduction::accumulatorType() const { return isNarrow() ? mlir::Type(l_.b.getF32Type()) : type_; }

Value Reduction::neutral(unsigned lanes) {
  mlir::TypedAttr attribute = ir::neutralElement(kind_, type_);
  if (isNarrow()) {
    llvm::APFloat value = llvm::cast<mlir::FloatAttr>(attribute).getValue();
    bool lost = false;
    value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &lost);
    attribute = mlir::FloatAttr::get(l_.b.getF32Type(), value);
  }
  return splat(l_, l_.b.create<arith::ConstantOp>(l_.loc, attribute), lanes);
}

static mlir::Type sameShape(mlir::Type like, mlir::Type element) {
  auto vector = llvm::dyn_cast<mlir::VectorType>(like);
  return vector ? mlir::Type(vector.clone(element)) : element;
}

Value Reduction::widen(Value value) {
  if (!isNarrow())
    return value;
  return l_.b.create<arith::ExtFOp>(l_.loc, sameShape(value.getType(), l_.b.getF32Type()), value);
}

Value Reduction::narrow(Value accumulated) {
  if (!isNarrow())
    return accumulated;
  return l_.b.create<arith::TruncFOp>(l_.loc, sameShape(accumulated.getType(), type_), accumulated);
}

Value Reduction::result(Value accumulated, llvm::ArrayRef<Value> extents) {
  Value count = l_.constant(1), narrowed = narrow(accumulated);
  for (Value extent : extents)
    count = l_.mul(count, extent);
  if (kind_ != ir::Combine::AddF || l_.constantOf(count).value_or(0) > 0)
    return narrowed;
  return choose(l_, isEqual(l_, count, l_.constant(0)), l_.zero(narrowed.getType()), narrowed);
}

/// A product that may be contracted is, into the sum it belongs to: the order of the sum is free, so its additions always may.
Value Reduction::combine(Value a, Value b) {
  if (kind_ == ir::Combine::AddF)
    return l_.b.create<arith::AddFOp>(l_.loc, a, b, arith::FastMathFlags::contract);
  return l_.combine(kind_, a, b);
}

Value Reduction::fold(llvm::ArrayRef<Value> accumulators) {
  Values left(accumulators);
  if (llvm::isa<mlir::VectorType>(left[0].getType())) {
    Value all = left[0];
    for (Value next : llvm::drop_begin(accumulators))
      all = combine(next, all);
    left = {all};
  }
  auto pairwise = [&](bool halves) {
    while (left.size() > 1) {
      Values next;
      size_t half = left.size() / 2;
      for (size_t i = 0; i < half; ++i)
        next.push_back(halves ? combine(left[i], left[i + half]) : combine(left[2 * i], left[2 * i + 1]));
      if (left.size() % 2)
        next.push_back(left.back());
      left = next;
    }
  };
  pairwise(false);
  auto vector = llvm::dyn_cast<mlir::VectorType>(left[0].getType());
  if (!vector)
    return left[0];
  Value lanes = left[0];
  left.clear();
  for (int64_t lane = 0; lane < vector.getNumElements(); ++lane)
    left.push_back(extract(l_, lanes, static_cast<unsigned>(lane)));
  pairwise(true);
  return left[0];
}

//===-- teams -------------------------------------------------------------------------------------------------===//

Team wholeBlock(Lowering& l) {
  return {l.constant(l.threads()), l.constant(1), l.threadId(), l.constant(0), l.threads(), l.threads()};
}

Team makeTeam(Lowering& l, Value elements, int64_t perThread, int64_t least, int64_t inWarp) {
  int64_t threads = l.threads();
  if (!llvm::isPowerOf2_64(static_cast<uint64_t>(threads)))
    return wholeBlock(l);
  least = std::min(least, threads);
  mlir::Type i32 = l.b.getI32Type(), index = l.b.getIndexType();
  // As many threads as rows need of which the block has too few are all of them, so 32 bits hold the elements that count.
  Value few = ir::fromIndex(l.b, l.loc, i32, l.min(elements, l.constant(threads * perThread)));
  auto needed = [&](int64_t each) { return l.div(l.add(few, l.i32(each - 1)), l.i32(each)); };
  Value width = needed(perThread);
  if (inWarp != perThread)
    width = l.b.create<arith::MaxUIOp>(l.loc, width, l.b.create<arith::MinUIOp>(l.loc, needed(inWarp), l.i32(kWarp)));
  width = l.b.create<arith::MaxUIOp>(l.loc, width, l.i32(least));
  Value zeros = l.b.create<mlir::math::CountLeadingZerosOp>(l.loc, l.sub(width, l.i32(1)));
  Value bits = l.sub(l.i32(32), zeros);
  width = l.b.create<arith::ShLIOp>(l.loc, l.i32(1), bits);
  Value thread = ir::fromIndex(l.b, l.loc, i32, l.threadId());
  auto wide = [&](Value value) -> Value { return l.b.create<arith::IndexCastUIOp>(l.loc, index, value); };
  Value rows = l.b.create<arith::ShRUIOp>(l.loc, l.i32(threads), bits);
  Value lane = l.b.create<arith::AndIOp>(l.loc, thread, l.sub(width, l.i32(1)));
  Value row = l.b.create<arith::ShRUIOp>(l.loc, thread, bits);
  return {wide(width), wide(rows), wide(lane), wide(row), least};
}

/// Bits that a shuffle can move: types it does not take are reinterpreted or widened.
static Value shuffle(Lowering& l, ir::ShuffleKind kind, Value value, Value lane) {
  mlir::OpBuilder& b = l.b;
  mlir::Type type = value.getType();
  if (type.isInteger(1)) {
    Value wide = b.create<arith::ExtUIOp>(l.loc, b.getI32Type(), value);
    return b.create<arith::TruncIOp>(l.loc, type, Value(b.create<vxt::ShuffleOp>(l.loc, kind, wide, lane, Value())));
  }
  return b.create<vxt::ShuffleOp>(l.loc, kind, value, lane, Value());
}

/// Bool takes a byte in memory; everything else is stored as it is.
static void storeShared(Lowering& l, Value value, const SharedMemory::Piece& piece, Value index, Value mask) {
  l.b.create<vxt::StoreOp>(l.loc, value, l.sharedPointer(piece), index, mask, 0, vxt::Cache::Default);
}
static Value loadShared(Lowering& l, mlir::Type type, const SharedMemory::Piece& piece, Value index) {
  return l.b.create<vxt::LoadOp>(l.loc, type, l.sharedPointer(piece), index, Value(), 0, vxt::Cache::Default);
}

static SharedMemory::Piece slotsFor(Lowering& l, mlir::Type type) {
  return l.shared().take(l.threads() / kWarp * vxt::scalarBytes(type), 16, "what warps combine");
}

/// Of the 32 values of a warp, or of the groups of `width` lanes inside it.
static Value warpReduce(Lowering& l, Reduction& reduction, Value value, Value width, int64_t least) {
  auto known = l.constantOf(width);
  for (int64_t step = kWarp / 2; step >= 1; step /= 2) {
    if (known && step >= *known)
      continue;
    Value other = shuffle(l, ir::ShuffleKind::Xor, value, l.i32(step));
    Value combined = reduction.combine(value, other);
    bool always = known || step < least;
    value = always ? combined : choose(l, isLess(l, l.constant(step), width), combined, value);
  }
  return value;
}

Value warpReduce(Lowering& l, Reduction& reduction, Value value) {
  return warpReduce(l, reduction, value, l.constant(kWarp), kWarp);
}

static Values acrossWarps(Lowering& l, const Team& team, llvm::ArrayRef<TeamValue> values, bool isFirst) {
  llvm::SmallVector<SharedMemory::Piece> pieces;
  for (const TeamValue& value : values)
    pieces.push_back(slotsFor(l, value.value.getType()));
  if (isFirst)
    l.hazards().barrier();  // the slots have been read
  Value isWriter = l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::eq, l.lane(), l.constant(0));
  for (auto [value, piece] : llvm::zip(values, pieces))
    storeShared(l, value.value, piece, l.warp(), isWriter);
  l.hazards().barrier();
  // Groups of as many lanes as the block has warps read all slots of their team, so that the last steps are few.
  int64_t group = static_cast<int64_t>(llvm::PowerOf2Ceil(static_cast<uint64_t>(l.threads() / kWarp)));
  Value warps = l.div(team.width, l.constant(kWarp)), firstWarp = l.mul(team.row, warps), exists;
  auto known = l.constantOf(warps);
  bool repeats = known && llvm::isPowerOf2_64(static_cast<uint64_t>(*known));
  Value slot = l.rem(l.lane(), l.constant(repeats ? *known : group));
  if (!repeats) {
    exists = isLess(l, slot, warps);
    slot = choose(l, exists, slot, l.constant(0));
  }
  slot = l.add(firstWarp, slot);
  Values results;
  for (auto [value, piece] : llvm::zip(values, pieces)) {
    Value own = loadShared(l, value.value.getType(), piece, slot);
    if (exists)
      own = choose(l, exists, own, value.reduction->neutral(1));
    results.push_back(warpReduce(l, *value.reduction, own, repeats ? warps : l.constant(group), kWarp));
  }
  for (const auto& piece : pieces)
    l.hazards().read(piece.root);
  return results;
}

Values teamReduce(Lowering& l, const Team& team, llvm::ArrayRef<TeamValue> values, bool isFirst) {
  Values inWarp;
  llvm::SmallVector<TeamValue> next;
  for (const TeamValue& value : values) {
    inWarp.push_back(warpReduce(l, *value.reduction, value.value, team.width, team.least));
    next.push_back({value.reduction, inWarp.back()});
  }
  auto known = l.constantOf(team.width);
  if (team.most <= kWarp || (known && *known <= kWarp))
    return inWarp;
  if (known)
    return acrossWarps(l, team, next, isFirst);
  return l.emitIf(
      isLess(l, l.constant(kWarp), team.width), [&] { return acrossWarps(l, team, next, isFirst); },
      [&] { return inWarp; });
}

//===-- prefixes ----------------------------------------------------------------------------------------------===//

/// Inclusive, over the lanes of a warp or of the groups inside it.
static Value warpScan(Lowering& l, Reduction& reduction, Value value, Value position, Value width) {
  auto known = l.constantOf(width);
  for (int64_t step = 1; step < kWarp; step *= 2) {
    if (known && step >= *known)
      break;
    Value other = shuffle(l, ir::ShuffleKind::Up, value, l.i32(step));
    Value combined = reduction.combine(other, value);
    value = choose(l, isLess(l, position, l.constant(step)), value, combined);
  }
  return value;
}

llvm::SmallVector<TeamPrefix> teamScan(Lowering& l, const Team& team, Reduction& reduction,
                                       llvm::ArrayRef<Value> values) {
  Value warp = l.constant(kWarp);
  Value group = l.min(team.width, warp);
  Value position = l.rem(l.lane(), group);
  Value neutral = reduction.neutral(1);
  Value isFirst = l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::eq, position, l.constant(0));
  auto toI32 = [&](Value index) { return ir::fromIndex(l.b, l.loc, l.b.getI32Type(), index); };
  Value lastLane = toI32(l.add(l.sub(l.lane(), position), l.sub(group, l.constant(1))));
  Values inclusives, inWarps;  // what comes before in the warp, then the warps' totals
  for (Value value : values)
    inclusives.push_back(warpScan(l, reduction, value, position, group));
  for (Value inclusive : inclusives)
    inWarps.push_back(choose(l, isFirst, neutral, shuffle(l, ir::ShuffleKind::Up, inclusive, l.i32(1))));
  size_t count = values.size();
  auto across = [&]() -> Values {
    SharedScope scope(l.shared());
    llvm::SmallVector<SharedMemory::Piece> pieces;
    for (Value value : values)
      pieces.push_back(slotsFor(l, value.getType()));
    l.hazards().barrier();
    Value isLast = l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::eq, l.lane(), l.constant(kWarp - 1));
    for (auto [inclusive, piece] : llvm::zip(inclusives, pieces))
      storeShared(l, inclusive, piece, l.warp(), isLast);
    l.hazards().barrier();
    Value warps = l.div(team.width, warp), firstWarp = l.mul(team.row, warps);
    Value exists = isLess(l, l.lane(), warps);
    Value slot = l.add(firstWarp, choose(l, exists, l.lane(), l.constant(0)));
    Value own = l.sub(l.warp(), firstWarp);
    Value isFirstWarp = l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::eq, own, l.constant(0));
    Value previous = toI32(choose(l, isFirstWarp, l.constant(0), l.sub(own, l.constant(1))));
    Value lastWarp = toI32(l.sub(warps, l.constant(1)));
    Values before, totals;
    for (auto [inWarp, piece] : llvm::zip(inWarps, pieces)) {
      Value loaded = choose(l, exists, loadShared(l, inWarp.getType(), piece, slot), neutral);
      Value sums = warpScan(l, reduction, loaded, l.lane(), l.constantOf(warps) ? warps : warp);
      Value lower = choose(l, isFirstWarp, neutral, shuffle(l, ir::ShuffleKind::Index, sums, previous));
      before.push_back(reduction.combine(lower, inWarp));
      totals.push_back(shuffle(l, ir::ShuffleKind::Index, sums, lastWarp));
      l.hazards().read(piece.root);
    }
    before.append(totals);
    return before;
  };
  auto inside = [&]() -> Values {
    Values all(inWarps);
    for (Value inclusive : inclusives)
      all.push_back(shuffle(l, ir::ShuffleKind::Index, inclusive, lastLane));
    return all;
  };
  auto known = l.constantOf(team.width);
  Values all = !known ? l.emitIf(isLess(l, warp, team.width), across, inside) : *known > kWarp ? across() : inside();
  llvm::SmallVector<TeamPrefix> results;
  for (size_t i = 0; i < count; ++i)
    results.push_back({all[i], all[count + i]});
  return results;
}

}  // namespace vortex::target::gpu::tiles
