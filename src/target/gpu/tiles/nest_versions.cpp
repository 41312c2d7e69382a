// The versions of a nest, and which of them a launch runs.
#include "ir/tile_sizes.h"
#include "target/gpu/tiles/nest.h"
#include "target/gpu/tiles/picked.h"
#include "target/gpu/tiles/schedule.h"
#include "target/gpu/versions.h"

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;

/// Words that a thread loads of a row before it computes, next to at most as many that it computes.
static constexpr int64_t kEarlyWords = 32;
/// Elements of a block's rows when nothing is kept, and where several reductions share the reading: as the schedule has them.
static constexpr int64_t kSweptBlock = 65536, kSharedBlock = kSweptBlock / 4;
/// Threads per core whose registers these leave.
static constexpr int64_t kSharedThreads = 768;
/// The same of one reduction: told so, ptxas loads all accesses of an iteration ahead, where it waited for the first ones before (H200, bf16 32000 × 4096
/// times a vector: 0.79 of copy then, 0.94 now; with 768 threads 0.78).
static constexpr int64_t kSweptThreads = 512;
/// Elements per thread one by one: neighbouring threads read neighbours, so short runs waste what the memory delivers.
static constexpr unsigned kSweptSingles = 8;
/// Threads per core for rows of at most one access per thread: as many bytes in flight as for longer ones.
static constexpr int64_t kNarrowThreads = 1792;
/// The same where pieces of several tensors are kept, which do not fit that few registers.
static constexpr int64_t kSeveralKeptThreads = 1024;
/// Accesses per thread of a short row from which only scalars leave (H200, sums of 64 f32: 0.88 of copy with one, 0.95 with four; bf16 0.85 and 0.92).
static constexpr unsigned kSummedPositions = 4;
/// Of a team that keeps a longer row.
static constexpr int64_t kFewestThreads = 8;
/// Of a core.
static constexpr int64_t kRegisters = 65536;
/// Elements of a swept row per thread until it has a warp: one round of accesses.
static constexpr int64_t kSweptInWarp = 32;
/// Accesses per thread of a row that is only passed on.
static constexpr unsigned kStreamed = 4;

unsigned Nest::positionsPerThread(unsigned words, unsigned lanes) {
  return static_cast<unsigned>(std::max<int64_t>(1, kKeptElements / l.threads() / words / lanes));
}

/// Words that what passes share takes per element. A byte beside (a mask) is gone before registers are short.
unsigned Nest::keptWords() {
  int64_t bytes = 0, widest = 1;
  for (mlir::Value tile : keptTiles()) {
    const int64_t own = ir::vxt::scalarBytes(elementType(tile));
    bytes += own;
    widest = std::max(widest, own);
  }
  return bytes == 0 ? 0 : static_cast<unsigned>(std::max<int64_t>(1, llvm::divideCeil(bytes - 1, widest)));
}

void Nest::emitStores(llvm::ArrayRef<Root> roots) {
  plan(roots, {});
  if (l.state.error.empty())
    emitVersions();
}

Value Nest::emitScalar(ir::ReduceOp op) {
  plan({}, op);
  if (!l.state.error.empty())
    return l.zero(op.getType());
  return emitVersions()[0];
}

/// A branch that all threads take the same way.
Values Nest::branch(Value condition, llvm::function_ref<Values()> then, llvm::function_ref<Values()> otherwise) {
  if (auto known = l.constantOf(condition))
    return *known ? then() : otherwise();
  auto framed = [&](llvm::function_ref<Values()> body) {
    Frame frame(v_);
    v_.enterScope();
    Values results = body();
    v_.leaveScope();
    return results;
  };
  return l.emitIf(condition, [&] { return framed(then); }, [&] { return framed(otherwise); });
}

Values Nest::emitVersions() {
  const Hazards::State announced = announce();
  Values results = emitChosen();
  // Barriers of reductions come before the last accesses, unless these only lead to a reduction.
  if (!roots_.empty())
    l.hazards().merge(announced);
  return results;
}

Values Nest::emitChosen() {
  unsigned kept = 0, lanes = chooseLanes();
  joined([&]() -> Values {
    kept = keptWords();
    return {};
  });
  if (kept != 0)  // else one reading is enough, and rows need not be kept
    kept = keptWords();
  team_ = wholeBlock(l);
  elements_ = longestRow();
  if (lanes == 1)
    return emitVersion({1, 0}, 0);
  if (!assumesAlignment())
    return emitAnywhere(lanes, kept);
  Requirements wide(l);
  for (const Pass& pass : passes_)
    if (!pass.inner.empty()) {
      wide.multiple(pass.inner.back(), lanes);
      wide.positive(itemCount(pass.inner, 1));
    }
  requireInside(wide);
  // Single elements would take a register for each address: rows are then read again by every pass, mostly from the caches.
  return branchOnFacts(
      wide, [&] { return emitVersion({lanes, 0}, kept); },
      [&] {
        markElsewhere();
        return emitVersion({1, 0}, 0);
      });
}

/// Elements of the longest row that a pass sweeps.
Value Nest::longestRow() {
  Value longest = l.constant(1);
  for (const Pass& pass : passes_) {
    Value count = itemCount(pass.inner, 1);
    longest = choose(l, isLess(l, longest, count), count, longest);
  }
  return longest;
}

/// All that the nest touches lies inside its tensors.
void Nest::requireInside(Requirements& wide) {
  auto require = [&](mlir::Value value, const Place& place) {
    if (place.guarded)
      wide.inside(place, v_.extents(value));
  };
  forEachAccess([&](mlir::Value value, const DimMap&, const Place& place) { require(value, place); });
  for (const Root& root : roots_)
    require(root.value, root.sink);
}

/// The wide version where its requirements hold. They are known when it is written; they stand before it.
Values Nest::branchOnFacts(Requirements& wide, llvm::function_ref<Values()> then,
                           llvm::function_ref<Values()> otherwise) {
  auto placeholder =
      l.b.create<mlir::UnrealizedConversionCastOp>(l.loc, mlir::TypeRange{l.b.getI1Type()}, mlir::ValueRange());
  Values results = branch(
      placeholder.getResult(0),
      [&] {
        v_.wide = &wide;
        std::vector<Pass> passes = passes_;
        fixShortSides(wide);
        Values side = then();
        passes_ = std::move(passes);
        v_.wide = nullptr;
        return side;
      },
      otherwise);
  mlir::OpBuilder::InsertionGuard guard(l.b);
  l.b.setInsertionPoint(placeholder);
  Value condition = wide.emit();
  placeholder.getResult(0).replaceAllUsesWith(condition ? condition
                                                        : Value(l.b.create<arith::ConstantIntOp>(l.loc, 1, 1)));
  placeholder.erase();
  return results;
}

/// Rows of at most what the block holds are read once. Each thread keeps a fixed number of positions, and a row gets as few threads as that
/// takes: as many bytes are in flight for short rows as for long ones. Rows that fill the block exactly need no predicates. Longer ones are
/// swept.
Values Nest::emitVersion(Version swept, unsigned kept) {
  unsigned lanes = swept.lanes;
  int64_t least = swept.peeled ? 2 * int64_t(lanes) : 1;  // as many as elements outside the aligned pieces
  auto withTeam = [&](int64_t perThread, int64_t fewest, Version version) {
    Team block = team_;
    Value elements = elements_;
    if (version.peeled && version.positions)  // the others have threads of their own
      elements = l.mul(l.div(elements, l.constant(lanes)), l.constant(lanes));
    if (rowRank_ > 0)
      team_ = makeTeam(l, elements, perThread, std::max(fewest, least),
                       version.positions ? perThread : std::min(perThread, kSweptInWarp));
    Values results = emitRows(version);
    team_ = block;
    return results;
  };
  bool onlyPasses = llvm::none_of(passes_, [](const Pass& pass) { return !pass.reduces.empty(); });
  if (kept == 0) {
    auto sweeping = [&] {
      return joined([&] {
        const bool isShared = fused_.size() > 1;
        if (lanes > 1 && (isShared || (rowRank_ > 0 && !onlyPasses)))
          markBlocks(std::max<int64_t>(1, (isShared ? kSharedThreads : kSweptThreads) / l.threads()));
        return withTeam(onlyPasses && rowRank_ > 0 ? int64_t(kStreamed) * lanes
                        : lanes > 1                ? (isShared ? kSharedBlock : kSweptBlock) / l.threads()
                                                   : kSweptSingles,
                        8, swept);
      });
    };
    const bool readsAgain = !keptTiles().empty();
    if (lanes == 1 || rowRank_ <= 0 || (!readsAgain && (onlyPasses || !isWholePhase())))
      return sweeping();
    // Short rows are kept, by few threads each: what a thread does once for a row costs more than positions that do not exist.
    auto narrow = [&] {
      Version few = swept;
      few.positions = kSummedPositions;
      few.early = readsEarly(kSummedPositions);
      markBlocks(std::max<int64_t>(1, kSeveralKeptThreads / l.threads()), true);
      return withTeam(int64_t(kSummedPositions) * lanes, 1, few);
    };
    // Of 16-bit elements a row takes few registers, and reading it once costs more instructions than two passes over what is there.
    auto beyond = [&] {
      if (!readsAgain || !readsNarrow() || !isWholePhase())
        return sweeping();
      Version held = swept;
      held.positions = positionsPerThread(keptWords(), lanes);
      return branch(
          fits(swept, l.mul(team_.width, l.constant(held.positions))),
          [&] {
            markBlocks(residentBlocks(), true);
            return withTeam(int64_t(held.positions) * lanes, kFewestThreads, held);
          },
          sweeping);
    };
    if (swept.peeled && isWholePhase())  // shorter ones were not peeled
      return beyond();
    return branch(fits(swept, l.constant(readsAgain && !swept.peeled ? kFewestThreads : ir::vxt::kWarpThreads)), narrow,
                  beyond);
  }
  if (l.assumptions().longRows) {
    markBlocks(std::max<int64_t>(1, 1024 / l.threads()));
    return emitLong(swept, 0);
  }
  Version full = swept;
  full.positions = positionsPerThread(kept, lanes);
  full.full = true;
  full.early = readsEarly(full.positions);
  Value capacity = l.mul(team_.width, l.constant(full.positions));
  int64_t blocks = residentBlocks(), fewer = blocks - (swept.peeled && isSmall() ? 1 : 0);
  // Quotients of whole vectors at a time take what one block more would leave, and so do two weights per element (H200, layer norm of bf16 rows of 8192:
  // 0.80 of copy with one block more, 0.90 now).
  const bool takesMore = hasQuotients() || loadsOf(passes_.back()) > 2;
  const int64_t filling = std::max<int64_t>(1, blocks - (readsNarrow() && takesMore ? 1 : 0));
  bool hasNarrow = full.positions > 1 && rowRank_ > 0;
  auto keeping = [&](unsigned positions, int64_t residents, int64_t fewest) {
    Version version = full;
    version.full = false;
    version.positions = positions;
    version.early = readsEarly(positions);
    markBlocks(std::max<int64_t>(1, residents), true);
    return withTeam(int64_t(positions) * lanes, fewest, version);
  };
  auto keep = [&] { return keeping(full.positions, fewer, hasNarrow ? kFewestThreads : 1); };
  auto longRows = [&] {
    markBlocks(std::min<int64_t>(fewer, 4));  // more is in flight than of a kept row
    unsigned most = hasNarrow ? moreThan(full.positions) : full.positions;
    return emitLong(swept, int64_t(most) * l.threads());
  };
  auto longer = [&] { return branch(fits(swept, capacity), keep, longRows); };
  if (!hasNarrow)
    return swept.peeled ? longer() : branch(fillsBlock(full), [&] { return fill(full, filling); }, longer);
  // Rows with at most as many pieces as a warp has threads: one each, and more threads.
  auto narrow = [&] { return keeping(1, narrowThreads() / l.threads(), 1); };
  // Rows a little longer than what a power of two of threads keeps: half as many positions again, as long as registers last, and half as many
  // threads share what every warp does once.
  unsigned more = moreThan(full.positions);
  int64_t registers = more * lanes + (readsNarrow() ? 32 : 40);
  auto wide = [&] { return keeping(more, kRegisters / l.threads() / llvm::alignTo(registers, 8), kFewestThreads); };
  auto between = [&] { return branch(needsMore(swept, full.positions, more), wide, longer); };
  auto shorter = [&] {
    const bool areElsewhere =
        swept.peeled && isWholePhase() && llvm::all_of(passes_, [](const Pass& pass) { return pass.scans.empty(); });
    return areElsewhere ? between() : branch(fits(swept, l.constant(ir::vxt::kWarpThreads)), narrow, between);
  };
  if (swept.peeled)
    return shorter();
  // Of 16-bit elements, predicates cost what memory leaves: rows that fill a power of two of threads need none either (H200, softmax with a mask of rows of
  // 4096: 0.84 of copy with them, 1.00 without). Where registers are short, one block less costs more than predicates do of rows longer than a warp's accesses.
  auto inTeams = [&] {
    markBlocks(std::min<int64_t>(filling, isSmall() ? filling : 3));
    return withTeam(int64_t(full.positions) * lanes, kFewestThreads, full);
  };
  const int64_t widest = takesMore ? kFewestThreads : l.threads() / 2;
  auto partly = [&] { return readsNarrow() ? branch(fillsTeams(full, widest), inTeams, shorter) : shorter(); };
  return branch(fillsBlock(full), [&] { return fill(full, filling); }, partly);
}

/// A power of two of threads, a warp or more, keeps the longest row with `more` positions each, and does not with `positions`.
Value Nest::needsMore(Version version, unsigned positions, unsigned more) {
  Value items = l.div(elements_, l.constant(version.lanes)), any;
  for (int64_t width = ir::vxt::kWarpThreads; width <= l.threads(); width *= 2) {
    Value here =
        l.both(isLess(l, l.constant(width * positions), items), isLess(l, items, l.constant(width * more + 1)));
    any = any ? Value(l.b.create<arith::OrIOp>(l.loc, any, here)) : here;
  }
  return l.both(any, fits(version, l.constant(l.threads() * more)));
}

unsigned Nest::moreThan(unsigned positions) { return positions + positions / 2; }

/// Every row has exactly as many pieces as the block has positions.
Value Nest::fillsBlock(Version version) {
  Value all, capacity = l.mul(team_.width, l.constant(version.positions));
  for (const Pass& pass : passes_)
    if (!pass.inner.empty()) {
      Value exact = isEqual(l, itemCount(pass.inner, version.lanes), capacity);
      all = all ? l.both(all, exact) : exact;
    }
  return all;
}

/// The same of a power of two of threads, at most `widest`.
Value Nest::fillsTeams(Version version, int64_t widest) {
  Value all;
  for (const Pass& pass : passes_) {
    if (pass.inner.empty())
      continue;
    Value items = itemCount(pass.inner, version.lanes), any;
    for (int64_t width = kFewestThreads; width <= widest; width *= 2) {
      Value here = isEqual(l, items, l.constant(width * version.positions));
      any = any ? Value(l.b.create<arith::OrIOp>(l.loc, any, here)) : here;
    }
    all = all ? l.both(all, any) : any;
  }
  return all;
}

Values Nest::fill(Version version, int64_t blocks) {
  markBlocks(blocks);
  return emitRows(version);
}

/// Rows are not empty and have at most so many pieces of `lanes` elements.
Value Nest::fits(Version version, Value pieces) {
  Value all;
  for (const Pass& pass : passes_) {
    if (pass.inner.empty())
      continue;
    Value items = itemCount(pass.inner, version.lanes);
    Value here = version.peeled ? isLess(l, items, l.add(pieces, l.constant(1)))
                                : isLess(l, l.sub(items, l.constant(1)), pieces);  // and not empty
    all = all ? l.both(all, here) : here;
  }
  return all;
}

/// How many blocks share a core's registers, in the entry point that this code becomes part of (versions.h).
void Nest::markBlocks(int64_t blocks, bool branches) {
  auto mark = l.b.create<arith::ConstantIndexOp>(l.loc, blocks);
  mark->setAttr(kBlocksMark, l.b.getI64IntegerAttr(blocks));
  if (branches)
    mark->setAttr(kBranchesMark, l.b.getUnitAttr());
}

/// Rows that start anywhere are no worse off in entry points for these, and rows too long for this one have one of their own.
void Nest::markElsewhere() { l.b.create<arith::ConstantIndexOp>(l.loc, 0)->setAttr(kElsewhereMark, l.b.getUnitAttr()); }

/// Blocks per core that registers are shared out for: 40 to 64 per thread for one tensor in and one out, 64 to 80 for more. A kept row of 16-bit
/// elements takes half the registers: one block more (measured on an H200, softmax 0.91 → 0.96 of copy), unless several rows need those.
int64_t Nest::residentBlocks() {
  if (l.threads() > 256)
    return std::max<int64_t>(1, (isSmall() ? 1536 : 1024) / l.threads());
  return (isSmall() ? 4 : 3) + (readsNarrow() && keptTiles().size() <= 1 ? 1 : 0);
}

/// One tensor in, one out.
bool Nest::isSmall() {
  llvm::DenseSet<mlir::Value> loads;
  forEachAccess([&](mlir::Value value, const DimMap&, const Place&) { loads.insert(value); });
  return loads.size() + roots_.size() <= 2;
}

/// Some element of a loop comes from such an operation.
bool Nest::anyComputed(llvm::function_ref<bool(const Pass&, mlir::Operation*)> holds) {
  bool found = false;
  for (const Pass& pass : passes_) {
    Closure closure;
    for (auto& [value, map] : usesOf(pass))
      closure.walk(value, map, [&](mlir::Value inner, const DimMap& use) {
        mlir::Operation* op = inner.getDefiningOp();
        found |= op && use.size() == pass.loops && holds(pass, op);
        return !v_.place(inner);
      });
  }
  return found;
}

/// It computes quotients of full accuracy.
bool Nest::hasQuotients() {
  return anyComputed(
      [](const Pass&, mlir::Operation* op) { return llvm::isa<arith::DivFOp>(op) && !op->hasAttr(ir::kNarrowAttr); });
}

/// Threads per core for rows of at most one access per thread.
int64_t Nest::narrowThreads() { return keptTiles().size() <= 1 ? kNarrowThreads : kSeveralKeptThreads; }

/// All that the nest reads has elements of at most 16 bits.
bool Nest::readsNarrow() {
  bool all = true;
  forEachAccess([&](mlir::Value value, const DimMap&, const Place&) {
    mlir::Type element = mlir::getElementTypeOrSelf(value.getType());
    all &= element.isIntOrFloat() && element.getIntOrFloatBitWidth() <= 16;
  });
  return all;
}

/// What only later passes need of a row (weights) fits the registers next to the row itself: its loads then run with the others. Not for 16-bit
/// elements, where one more block does more (RMSNorm 0.92 → 0.95 of copy).
bool Nest::readsEarly(unsigned positions) {
  if (readsNarrow())
    return false;
  llvm::DenseSet<mlir::Value> loads;
  for (const Pass& pass : passes_) {
    Closure closure;
    for (auto& [value, map] : usesOf(pass))
      closure.walk(value, map, [&](mlir::Value inner, const DimMap& use) {
        bool leaf = v_.place(inner) || inner.getDefiningOp<ir::TileLoadOp>();
        if (leaf && usesLoop(use, static_cast<int>(pass.loops) - 1))
          loads.insert(inner);
        auto reduce = inner.getDefiningOp<ir::ReduceOp>();
        return !leaf && !(reduce && fused_.contains(reduce));
      });
  }
  constexpr int64_t kWordsPerAccess = 4;
  return static_cast<int64_t>(loads.size() * positions) * kWordsPerAccess <= kEarlyWords;
}

/// Blocks whose sides are as long as the schedule makes them, all but those at the edges, know them while they are compiled.
void Nest::fixShortSides(Requirements& wide) {
  constexpr int64_t kLongest = 256;
  if (rowRank_ >= 0)
    return;
  for (Pass& pass : passes_) {
    if (pass.roots.empty() || pass.inner.size() < 2)
      continue;
    for (auto [dim, size] : llvm::enumerate(ir::tileSizes(roots_[pass.roots[0]].value))) {
      auto value = llvm::dyn_cast_if_present<mlir::Value>(size);
      auto bound = value ? upperBound(value) : std::nullopt;
      if (!bound || *bound > kLongest || l.constantOf(pass.inner[dim]))
        continue;
      wide.equal(pass.inner[dim], *bound);
      pass.inner[dim] = l.constant(*bound);
    }
  }
}

/// Every tensor the nest touches is known to have aligned rows: this version of the phase is for launches where that holds.
bool Nest::assumesAlignment() {
  bool all = true;
  auto consider = [&](const Place& place) {
    all &= place.view.space != ir::Space::Global || place.view.rank() == 0 || place.view.alignedRows;
  };
  forEachAccess([&](mlir::Value, const DimMap&, const Place& place) { consider(place); });
  for (const Root& root : roots_)
    consider(root.sink);
  return all;
}

/// Tiles in memory whose elements differ along the sweep.
unsigned Nest::loadsOf(const Pass& pass) {
  llvm::DenseSet<mlir::Value> loads;
  Closure closure;
  for (auto& [value, map] : usesOf(pass))
    closure.walk(value, map, [&](mlir::Value inner, const DimMap& use) {
      auto reduce = inner.getDefiningOp<ir::ReduceOp>();
      if (reduce && fused_.contains(reduce))
        return false;
      bool leaf = v_.place(inner) || inner.getDefiningOp<ir::TileLoadOp>();
      if (leaf && usesLoop(use, static_cast<int>(pass.loops) - 1))
        loads.insert(inner);
      return !leaf;
    });
  return loads.size();
}

/// Positions at a time: about eight accesses in flight per thread, and no more elements than registers are for.
unsigned Nest::unrollOf(const Pass& pass, unsigned lanes, bool stores) {
  constexpr unsigned kMostWork = 160;  // operations of one unrolled body: more take longer to assemble than they save
  bool loops = false;
  unsigned work = 1;
  Closure closure;
  for (auto& [value, map] : usesOf(pass))
    closure.walk(value, map, [&](mlir::Value inner, const DimMap& use) {
      auto reduce = inner.getDefiningOp<ir::ReduceOp>();
      if (reduce && fused_.contains(reduce))
        return false;
      loops |= ((reduce && !pickedBy(reduce)) || isPerElement(inner)) && !v_.place(inner);
      bool leaf = v_.place(inner) || inner.getDefiningOp<ir::TileLoadOp>();
      mlir::Operation* op = inner.getDefiningOp();
      if (op && !leaf && ir::isElementwise(op) && usesLoop(use, static_cast<int>(pass.loops) - 1))
        work += ir::isFloatFunction(op) ? 10 : 1;
      return !leaf;
    });
  if (!pass.scans.empty() || (stores && loops))
    return 1;
  unsigned wanted = 8 / std::max(1u, loadsOf(pass));
  // Of rows too long to keep, one or two accesses at a time from shared memory, where they are near.
  if (rowRank_ > 0 && fetching_.empty() && !keptTiles().empty())
    wanted = std::min(wanted, 2u);
  return std::clamp(std::min({wanted, 32 / lanes, kMostWork / (work * lanes)}), 1u, 8u);
}

}  // namespace vortex::target::gpu::tiles
