// Prefix combinations along the rows of a nest: a team goes over its row in order, some items per thread at a time.
#include "ir/tile_sizes.h"
#include "target/gpu/tiles/look_back.h"
#include "target/gpu/tiles/nest.h"

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;

static constexpr int64_t kPieceAlignment = 16;  // bytes
/// Of a piece that a block holds: positions that are fetched at a time; elements of a thread that are scanned at a time, in so many positions.
static constexpr unsigned kFetched = 6, kScanned = 16, kMostScanned = 4;

Values Nest::scanStart(const Pass& pass) {
  Values carries;
  for (ir::ScanOp scan : pass.scans)
    carries.push_back(Reduction(l, scan.getKind(), elementType(scan.getValue())).neutral(1));
  return carries;
}

/// The next items of every scan the pass needs, those of all threads at one position before those at the next; the results are found by
/// whoever evaluates them at these positions.
void Nest::scanSteps(const Pass& pass, llvm::ArrayRef<Position> positions, llvm::MutableArrayRef<Value> carries) {
  for (auto [number, carry] : llvm::enumerate(carries)) {
    ir::ScanOp scan = pass.scans[number];
    if (v_.isKnown(scan.getResult(), at(positions[0])))
      continue;
    Reduction reduction(l, scan.getKind(), elementType(scan.getValue()));
    llvm::SmallVector<Values> prefixes;
    Values totals;
    for (const Position& position : positions) {
      Value own = masked(reduction, position, reduction.widen(v_.eval(scan.getValue(), at(position))));
      Values prefix;
      for (unsigned lane = 0; lane < position.lanes; ++lane) {
        Value element = extract(l, own, lane);
        prefix.push_back(lane ? reduction.combine(prefix.back(), element) : element);
      }
      totals.push_back(prefix.back());
      prefixes.push_back(std::move(prefix));
    }
    llvm::SmallVector<TeamPrefix> team = teamScan(l, team_, reduction, totals);
    for (auto [position, prefix, own] : llvm::zip(positions, prefixes, team)) {
      Value before = reduction.combine(carry, own.before);
      Values results;
      for (unsigned lane = 0; lane < position.lanes; ++lane) {
        if (scan.getExclusive())
          results.push_back(lane ? reduction.combine(before, prefix[lane - 1]) : before);
        else
          results.push_back(reduction.combine(before, prefix[lane]));
      }
      carry = reduction.combine(carry, own.total);
      v_.remember(scan.getResult(), at(position), reduction.narrow(gather(l, results)));
    }
  }
}

/// Elements from `first` up to `end`, fewer than a team has threads.
Nest::Position Nest::singlesFrom(Value first, Value end) {
  Value element = l.add(first, team_.lane);
  return {{Index{element, 0, true}}, l.both(rowExists_, isLess(l, element, end)), true, 1};
}

/// `unroll` positions from item `base` on; those past the end access nothing.
llvm::SmallVector<Nest::Position> Nest::positionsFrom(const Pass& pass, Version version, Value base, Value items,
                                                      unsigned unroll) {
  llvm::SmallVector<Position> positions;
  Value item = l.add(base, team_.lane);
  for (unsigned u = 0; u < unroll; ++u) {
    Value own = u ? l.add(item, l.mul(team_.width, l.constant(u))) : item;
    positions.push_back(positionOf(pass, version, own, l.both(rowExists_, isLess(l, own, items))));
    positions.back().predicated = true;
    for (Index& index : positions.back().inner)
      index.masked = true;
  }
  return positions;
}

void Nest::storeScanned(const Pass& pass, llvm::ArrayRef<Position> positions, llvm::MutableArrayRef<Value> carries) {
  touchAll(pass, positions);
  scanSteps(pass, positions, carries);
  for (const Position& position : positions)
    storeRoots(pass, position);
}

/// In order: the elements before the first aligned piece, the pieces, and those after them.
void Nest::emitPeeledScan(const Pass& pass, Version version, unsigned unroll, Values carries) {
  primeInvariants(pass);
  Value length = pass.inner[0], head = l.min(head_, length);
  Value inPieces = l.mul(peeledItems(pass, version), l.constant(version.lanes));
  {
    Frame frame(v_);
    storeScanned(pass, singlesFrom(l.constant(0), head), carries);
  }
  carries = sweep(pass, version, unroll, carries,
                  [&](llvm::ArrayRef<Position> positions, Values& next) { storeScanned(pass, positions, next); });
  Frame frame(v_);
  storeScanned(pass, singlesFrom(l.add(head, inPieces), length), carries);
}

bool Nest::continuesBlocks(const Pass& pass) {
  return llvm::any_of(pass.scans, [](ir::ScanOp scan) { return scan.getState() != Value(); });
}

/// Where the block keeps the piece of a scan that others continue.
Place Nest::placeOfPiece(mlir::Value tile, int64_t bound, Version version) {
  const int64_t bytes = bound * ir::vxt::scalarBytes(elementType(tile)) + (version.peeled ? kPieceAlignment : 0);
  Place held;
  held.view.elementType = elementType(tile);
  held.view.space = ir::Space::Shared;
  held.view.pointer = l.sharedPointer(l.shared().take(bytes, kPieceAlignment, "the block's piece of a scan"));
  held.view.extents = v_.extents(tile);
  held.view.strides = {l.constant(1)};
  held.base = held.window = held.key = tile.getAsOpaquePointer();
  held.aligned = version.peeled;
  if (version.peeled) {  // the first aligned piece starts where one does in shared memory
    Value before = l.b.create<arith::SubIOp>(l.loc, l.constant(0), head_);
    held.view.base = l.b.create<arith::AndIOp>(l.loc, before, l.constant(version.lanes - 1));
  }
  return held;
}

/// Read once into shared memory, so that registers do not limit how much is under way while blocks wait for each other. Each thread reads back
/// what it wrote.
void Nest::emitHeldScan(const Pass& pass, Version version) {
  ir::ScanOp scan = pass.scans[0];
  mlir::Value tile = scan.getValue(), kept = tile;
  if (auto wide = tile.getDefiningOp<arith::ExtFOp>())
    kept = wide.getIn();
  auto size = llvm::dyn_cast_if_present<mlir::Value>(ir::tileSizes(tile)[0]);
  auto bound = size ? upperBound(size) : std::nullopt;
  if (!bound || pass.inner.size() != 1 || pass.scans.size() != 1)
    return l.fail(scan, "a scan over blocks of unknown size");
  markBlocks(kScanBlocks);
  SharedScope scope(l.shared());
  v_.enterScope();
  Place held = placeOfPiece(kept, *bound, version);
  Reduction reduction(l, scan.getKind(), elementType(tile));
  auto fetch = [&](llvm::ArrayRef<Position> positions, Values& sums) {
    for (const Position& position : positions)
      v_.touch(kept, at(position));
    for (auto [position, sum] : llvm::zip(positions, sums)) {
      storeElements(l, held, at(position), v_.eval(kept, at(position)), position.exists, v_.wide, false);
      Value own = reduction.fold(reduction.widen(v_.eval(tile, at(position))));
      sum = reduction.combine(sum, masked(reduction, position, own));
    }
  };
  Values sums(kFetched, reduction.neutral(1));
  if (version.peeled) {
    Frame frame(v_);
    Value head = l.min(head_, pass.inner[0]);
    Value inPieces = l.mul(peeledItems(pass, version), l.constant(version.lanes));
    fetch({singlesFrom(l.constant(0), head), singlesFrom(l.add(head, inPieces), pass.inner[0])}, sums);
  }
  sums = sweep(pass, version, kFetched, sums, fetch);
  Value total = teamReduce(l, team_, {TeamValue{&reduction, reduction.fold(sums)}}, true)[0];
  Values carries{lookBack(l, scan, reduction, total)};
  v_.setPlace(kept, held);
  unsigned unroll = std::clamp(kScanned / version.lanes, 1u, kMostScanned);
  if (version.peeled)
    emitPeeledScan(pass, version, unroll, carries);
  else
    sweep(pass, version, unroll, carries,
          [&](llvm::ArrayRef<Position> positions, Values& next) { storeScanned(pass, positions, next); });
  v_.leaveScope();
}

}  // namespace vortex::target::gpu::tiles
