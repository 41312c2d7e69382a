// Rows that start anywhere: short ones, longer ones in pieces, and windows of a tensor whose rows start less than a piece apart.
#include "target/gpu/tiles/nest.h"

#include <mlir/Dialect/Utils/StaticValueUtils.h>

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;

/// Elements of a thread in rows that start anywhere and that no warp fills: as many single accesses as are as good as one of 16 bytes.
static constexpr unsigned kShortPositions = 8;
/// Where rows are only summed (H200, 61 f32: 0.47 of copy with 4, 0.59 with 16; bf16 0.28 with 8, 0.49). Functions of their elements take the registers.
static constexpr unsigned kSummedSingles = 16;
/// Threads per core whose registers hold what shifted windows share, and the places of it.
static constexpr int64_t kShiftedThreads = 512;

/// A tensor whose rows are those of the nest: what is written, else what is read.
std::optional<Place> Nest::peelReference(unsigned lanes) {
  size_t rank = static_cast<size_t>(rowRank_) + 1;
  std::optional<Place> reference;
  auto consider = [&](const Place& place, llvm::ArrayRef<DimUse> map) {
    const View& view = place.view;
    if (!reference && view.space == ir::Space::Global && view.rank() == rank && map.size() == rank && isIdentity(map) &&
        lanes * ir::vxt::scalarBytes(view.elementType) <= 16)
      reference = place;
  };
  for (const Root& root : roots_)
    consider(root.sink, identityMap(rankOf(root.value)));
  forEachAccess([&](mlir::Value, const DimMap& map, const Place& place) { consider(place, map); });
  return reference;
}

/// The leading `rank` dimensions are the rows; -1: there are none.
void Nest::setRows(int rank) {
  rowRank_ = rank;
  rows_.clear();
  for (int dim = 0; dim < rank; ++dim)
    rows_.push_back(v_.extents(roots_[0].value)[static_cast<size_t>(dim)]);
  makePasses();
}

/// The phase does nothing else, so that all of its registers are the nest's: versions may ask for more blocks.
bool Nest::isWholePhase() {
  size_t stores = 0;
  bool multiplies = false;
  l.phase.walk([&](mlir::Operation* op) {
    stores += llvm::isa<ir::TileStoreOp, ir::StoreOp>(op) ? 1 : 0;
    multiplies |= llvm::isa<ir::DotOp>(op);
  });
  return !multiplies && stores == roots_.size() &&
         llvm::all_of(roots_, [](const Root& root) { return root.store != nullptr; });
}

/// Of elements of rows.
bool Nest::hasFunctions() {
  return anyComputed(
      [](const Pass& pass, mlir::Operation* op) { return ir::isFloatFunction(op) && !pass.inner.empty(); });
}

/// Rows that start anywhere: short ones are shared out over parts of warps, longer ones are peeled where all tensors' rows lie alike; else
/// everything goes element by element.
Values Nest::emitAnywhere(unsigned lanes, unsigned kept) {
  if (std::optional<Place> source = shiftedSource())
    return emitShifted(*source, [&] { return emitVersion({1, 0}, 0); });
  const bool elementwise = rowRank_ < 0,
             hasScans = llvm::any_of(passes_, [](const Pass& pass) { return !pass.scans.empty(); });
  bool possible = !passes_.empty() && (!hasScans || (passes_.size() == 1 && passes_[0].reduces.empty()));
  for (const Root& root : roots_)
    possible &= root.sink.view.space == ir::Space::Global && (!elementwise || rankOf(root.value) > 0) &&
                (!elementwise || rankOf(root.value) == rankOf(roots_[0].value));
  for (const Pass& pass : passes_)
    possible &= elementwise ? passes_.size() == 1 && !reducesInside(pass) : pass.inner.size() <= 1;
  if (!possible)
    return emitVersion({1, 0}, 0);
  if (elementwise)
    setRows(static_cast<int>(rankOf(roots_[0].value)) - 1);
  auto longer = [&] { return emitPeeled(lanes, kept, elementwise); };
  const unsigned positions = std::min(lanes, kShortPositions);
  if (elementwise || rowRank_ <= 0 || positions < 2 || hasScans || l.assumptions().longRows || !isWholePhase())
    return longer();
  const bool isSummed = kept == 0 && !hasFunctions();
  const unsigned each = isSummed ? kSummedSingles : positions;
  // Short rows with gaps between them are rare, and not worth code of their own beside that of groups.
  if (std::optional<Packed> packed = packedRows(each, isSummed))
    return branch(arePacked(*packed), [&] { return emitPacked(*packed, each); }, longer);
  return branch(fits({1, 0}, l.constant(positions * ir::vxt::kWarpThreads)), [&] { return emitShort(each); }, longer);
}

/// As many threads of one warp as take so many elements of a row each.
Team Nest::shortTeam(unsigned positions) {
  Team team = makeTeam(l, longestRow(), positions, 1, positions);
  if (llvm::isPowerOf2_64(static_cast<uint64_t>(l.threads())))
    team.most = ir::vxt::kWarpThreads;
  return team;
}

/// Elements one by one: neighbouring threads read neighbours, and neighbouring teams rows that lie together.
Values Nest::emitShort(unsigned positions) {
  Version version;
  version.positions = positions;
  version.early = true;
  markBlocks(std::max<int64_t>(1, (positions > 4 ? 1024 : 1536) / l.threads()), true);  // 64 registers, or 40
  Team block = team_;
  team_ = shortTeam(positions);
  Values results = emitRows(version);
  team_ = block;
  return results;
}

/// A number and what is added to it.
static std::pair<mlir::Value, int64_t> withoutConstant(mlir::Value value) {
  auto add = value.getDefiningOp<arith::AddIOp>();
  auto known = add ? mlir::getConstantIntValue(add.getRhs()) : std::nullopt;
  return known ? std::pair(add.getLhs(), *known) : std::pair(value, int64_t(0));
}

/// Tensors of which several windows are read whose rows start less than a piece apart (differences of neighbours, filters): no two of those lie
/// alike. Their neighbouring elements are one thread's, who loads once what the windows share.
bool Nest::findShifted(Requirements& wide, unsigned lanes) {
  bool isShifted = false;
  llvm::DenseMap<const void*, llvm::SmallVector<mlir::Value>> starts;
  forEachAccess([&](mlir::Value value, const DimMap&, const Place& place) {
    auto load = value.getDefiningOp<ir::TileLoadOp>();
    if (!load || v_.place(value) || load.getOffsets().empty())
      return;
    mlir::Value start = load.getOffsets().back();
    auto [from, shift] = withoutConstant(start);
    for (mlir::Value other : starts[place.base]) {
      auto [otherFrom, otherShift] = withoutConstant(other);
      if (from == otherFrom && (shift - otherShift) % static_cast<int64_t>(lanes) != 0) {
        wide.apart(place.base);
        isShifted = true;
      }
    }
    starts[place.base].push_back(start);
  });
  return isShifted;
}

Values Nest::emitPeeled(unsigned lanes, unsigned kept, bool elementwise) {
  Value elements = elements_;
  auto unpeeled = [&] {
    if (elementwise)
      setRows(-1);
    reference_.reset();
    elements_ = elements;
    return emitVersion({1, 0}, 0);
  };
  reference_ = peelReference(lanes);
  if (!reference_)
    return unpeeled();
  Requirements wide(l, *reference_, lanes, row_);
  for (const Pass& pass : passes_)
    if (!pass.inner.empty()) {
      wide.positive(pass.inner.back());
      if (elementwise)
        elements_ = pass.inner.back();
    }
  requireInside(wide);
  const bool isShifted = elementwise && findShifted(wide, lanes);
  Version swept{lanes, 0};
  swept.peeled = true;
  auto peeled = [&] {
    if (isShifted)
      markBlocks(std::max<int64_t>(1, kShiftedThreads / l.threads()));
    return emitVersion(swept, kept);
  };
  return branchOnFacts(wide, peeled, unpeeled);
}

}  // namespace vortex::target::gpu::tiles
