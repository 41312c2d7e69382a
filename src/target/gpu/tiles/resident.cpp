// Rows too long for registers: read once into shared memory, where they fit that, and by every pass from there.
//
// How much shared memory a block gets is known at launch, so rows that stay in registers cost none of it. Every thread reads back only what
// it wrote itself, in all passes: no barriers.
#include "ir/tile_sizes.h"
#include "passes/plan/axes.h"
#include "target/gpu/tiles/nest.h"
#include "target/gpu/tiles/schedule.h"

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;
using SizeOp = size::Op;

static constexpr int64_t kAccess = 16;  // bytes

/// Bytes of one row of `tile`, rounded up to whole accesses, with room for one more where rows start anywhere; null: the launch cannot know.
static ir::SizeAttr rowBytes(mlir::Value tile, unsigned rowRank, bool peeled) {
  mlir::MLIRContext* context = tile.getContext();
  ir::SizeAttr bytes = ir::sizeConstant(context, ir::vxt::scalarBytes(elementType(tile)));
  const auto sizes = ir::tileSizes(tile);
  for (mlir::OpFoldResult size : llvm::ArrayRef(sizes).drop_front(rowRank)) {
    ir::SizeAttr extent = passes::sizeExpression(size);
    if (!extent)
      return nullptr;
    bytes = ir::sizeBinary(SizeOp::Mul, bytes, extent);
  }
  ir::SizeAttr access = ir::sizeConstant(context, kAccess);
  if (peeled)
    bytes = ir::sizeBinary(SizeOp::Add, bytes, access);
  return ir::sizeBinary(SizeOp::Mul, ir::sizeBinary(SizeOp::CeilDiv, bytes, access), access);
}

/// `tile` is computed in one pass and needed in others, which need no tile of `kept` that it is computed from but through it: it stands for all of
/// those. `kept` becomes what is kept then.
bool Nest::stands(mlir::Value tile, llvm::SmallVectorImpl<mlir::Value>& kept) {
  llvm::DenseSet<mlir::Value> below, beside;
  unsigned passes = 0;
  bool isFree = true;
  for (const Pass& pass : passes_) {
    bool isHere = false;
    Closure closure;
    for (auto& [value, map] : usesOf(pass))
      closure.walk(value, map, [&](mlir::Value inner, const DimMap& use) {
        if (inner == tile) {
          isFree &= isIdentity(use) && use.size() == pass.loops;
          isHere = true;
          return false;
        }
        auto reduce = inner.getDefiningOp<ir::ReduceOp>();
        beside.insert(inner);
        return !v_.place(inner) && !(reduce && fused_.contains(reduce));
      });
    passes += isHere ? 1 : 0;
  }
  Closure closure;
  closure.walk(tile, identityMap(rankOf(tile)), [&](mlir::Value inner, const DimMap&) {
    isFree &= !inner.getDefiningOp<ir::ReduceOp>() && !inner.getDefiningOp<ir::ScanOp>();
    below.insert(inner);
    return !v_.place(inner);
  });
  const auto bytesOf = [](mlir::Value value) { return ir::vxt::scalarBytes(elementType(value)); };
  int64_t saved = -bytesOf(tile);
  llvm::SmallVector<mlir::Value> left{tile};
  for (mlir::Value each : kept)
    if (below.contains(each) && !beside.contains(each))
      saved += bytesOf(each);
    else
      left.push_back(each);
  if (!isFree || passes < 2 || saved <= 0)
    return false;
  kept.assign(left.begin(), left.end());
  return true;
}

/// What passes share: loaded, or computed from several loads.
llvm::SmallVector<mlir::Value> Nest::residentTiles() {
  llvm::SmallVector<mlir::Value> kept = keptTiles(), computed;
  if (kept.size() < 2)
    return kept;
  Closure closure;
  for (auto& [value, map] : usesOf(passes_.front()))
    closure.walk(value, map, [&](mlir::Value inner, const DimMap&) {
      mlir::Operation* op = inner.getDefiningOp();
      if (v_.place(inner) || !op || !ir::isElementwise(op))
        return false;
      computed.push_back(inner);
      return true;
    });
  for (int64_t bytes : {1, 2, 4, 8})
    for (mlir::Value tile : computed)
      if (ir::vxt::scalarBytes(elementType(tile)) == bytes && stands(tile, kept))
        return kept;
  return kept;
}

/// `inRegisters`: pieces that rows have at most which never come here.
Values Nest::emitLong(Version swept, int64_t inRegisters) {
  return joined([&] { return emitFetched(swept, inRegisters); });
}

Values Nest::emitFetched(Version swept, int64_t inRegisters) {
  constexpr int64_t kReserved = 4096;      // for reductions
  constexpr int64_t kFewRows = 48 * 1024;  // bytes of rows of which a core holds four
  llvm::SmallVector<mlir::Value> tiles = residentTiles();
  auto context = l.b.getContext();
  auto constant = [&](int64_t value) { return ir::sizeConstant(context, value); };
  ir::SizeAttr total = constant(0), longest = constant(0);
  int64_t leastBytes = 0;
  bool known = rowRank_ >= 0;
  for (const Pass& pass : passes_)
    known &= pass.scans.empty();
  for (mlir::Value tile : tiles) {
    ir::SizeAttr bytes = known ? rowBytes(tile, static_cast<unsigned>(rowRank_), swept.peeled) : nullptr;
    known &= bytes != nullptr;
    if (!known)
      break;
    total = ir::sizeBinary(SizeOp::Add, total, bytes);
    int64_t kept = inRegisters * swept.lanes * ir::vxt::scalarBytes(elementType(tile)) + (swept.peeled ? kAccess : 0);
    leastBytes += kept;
    longest = ir::sizeBinary(SizeOp::Max, longest, ir::sizeBinary(SizeOp::Less, constant(kept), bytes));
  }
  if (!known || tiles.empty())
    return emitRows(swept);
  int64_t limit = static_cast<int64_t>(l.state.chip.sharedBytesPerBlock) - kReserved;
  // Fewer rows at a time than registers would allow: their blocks need the threads of the missing ones.
  const bool isLong = l.assumptions().longRows;
  const bool areLongApart =
      rowRank_ > 0 && limit >= kFewRows && l.threadsAreFree() && (isLong || l.threads() < kLongRowThreads);
  if (areLongApart)
    l.addLongRows(ir::sizeBinary(SizeOp::Less, constant(kFewRows), total));
  // Not worth much code where it is only for launches that have short rows beside the long ones.
  auto elsewhere = [&] {
    if (!areLongApart || isLong)
      return emitRows(swept);
    markElsewhere();
    return emitRows({1, 0});
  };
  if (areLongApart && !isLong && leastBytes >= kFewRows)
    return elsewhere();
  ir::SizeAttr used = ir::sizeBinary(SizeOp::Mul, longest, ir::sizeBinary(SizeOp::Less, total, constant(limit)));
  Value base = l.sharedTail(ir::sizeBinary(SizeOp::Mul, total, used)), offset = l.constant(0);
  llvm::SmallVector<Resident, 1> resident;
  for (mlir::Value tile : tiles) {
    Place shared;
    Values extents = v_.extents(tile);
    int64_t size = ir::vxt::scalarBytes(elementType(tile));
    shared.view.elementType = elementType(tile);
    shared.view.space = ir::Space::Shared;
    shared.view.pointer = l.b.create<ir::vxt::OffsetOp>(l.loc, base.getType(), base, offset, l.b.getI8Type());
    shared.view.extents = extents;
    shared.view.strides.assign(extents.size(), l.constant(0));
    Value stride = l.constant(1);
    for (size_t dim = extents.size(); dim-- > static_cast<size_t>(rowRank_);) {
      shared.view.strides[dim] = stride;
      stride = l.mul(stride, extents[dim]);
    }
    shared.base = shared.window = shared.key = tile.getAsOpaquePointer();
    const Place* inMemory = v_.place(tile);
    std::optional<Place> source = inMemory ? std::optional(*inMemory) : std::nullopt;
    if (auto load = tile.getDefiningOp<ir::TileLoadOp>(); load && !source)
      source = v_.placeOfLoad(load);
    resident.push_back({tile, source, shared});
    resident.back().shared.aligned = swept.peeled;
    Value bytes = l.add(l.mul(stride, l.constant(size)), l.constant(kAccess - 1 + (swept.peeled ? kAccess : 0)));
    offset = l.add(offset, l.mul(l.div(bytes, l.constant(kAccess)), l.constant(kAccess)));
  }
  return branch(
      isLess(l, offset, l.constant(limit)),
      [&] {
        resident_ = resident;
        Values results = emitRows(swept);
        for (Resident& each : resident_)
          v_.clearPlaceForOthers(each.tile);
        resident_.clear();
        return results;
      },
      elsewhere);
}

/// Where the rows of one iteration lie; they are still outside.
void Nest::placeResident(Version version) {
  if (version.peeled && firstRow_)
    l.hazards().barrier();  // the row before starts elsewhere: what one thread writes now, another one may still read
  for (Resident& each : resident_) {
    v_.clearPlaceForOthers(each.tile);
    if (each.source)
      v_.setPlace(each.tile, *each.source);
    else
      v_.clearPlace(each.tile);
    each.isFetched = false;
    if (version.peeled) {  // the first aligned piece starts where one does in shared memory
      Value before = l.b.create<arith::SubIOp>(l.loc, l.constant(0), head_);
      each.shared.view.base = l.b.create<arith::AndIOp>(l.loc, before, l.constant(version.lanes - 1));
    }
  }
}

/// The first pass that reads a tile leaves it in shared memory for the others.
void Nest::startFetching(const Pass& pass) {
  for (Resident& each : resident_) {
    bool isRead = false;
    Closure closure;
    for (auto& [value, map] : usesOf(pass))
      closure.walk(value, map, [&](mlir::Value inner, const DimMap& use) {
        isRead |= inner == each.tile && isIdentity(use) && use.size() == pass.loops;
        auto reduce = inner.getDefiningOp<ir::ReduceOp>();
        return !v_.place(inner) && !(reduce && fused_.contains(reduce));
      });
    if (isRead && !each.isFetched)
      fetching_.push_back(&each);
  }
}

/// What has been loaded at these positions.
void Nest::keepResident(llvm::ArrayRef<Position> positions) {
  for (Resident* each : fetching_)
    for (const Position& position : positions)
      storeElements(l, each->shared, at(position), v_.eval(each->tile, at(position)), position.exists, v_.wide, false);
}

void Nest::endFetching() {
  for (Resident* each : fetching_) {
    each->isFetched = true;
    v_.setPlace(each->tile, each->shared);
    v_.setPlaceForOthers(each->tile, each->source);
  }
  fetching_.clear();
}

}  // namespace vortex::target::gpu::tiles
