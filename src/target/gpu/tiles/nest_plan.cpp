// What is fused into the nest, what must be in memory first.
#include "passes/phase_marks.h"
#include "target/gpu/tiles/nest.h"
#include "target/gpu/tiles/picked.h"

#include <mlir/Dialect/Utils/StaticValueUtils.h>

namespace vortex::target::gpu::tiles {

std::optional<unsigned> Nest::rowRank(mlir::Value tile) {
  std::optional<unsigned> rank;
  Closure closure;
  closure.walk(tile, identityMap(rankOf(tile)), [&](mlir::Value value, const DimMap& map) {
    if (v_.place(value))
      return false;
    if (auto reduce = value.getDefiningOp<ir::ReduceOp>(); reduce && reducesInnermost(reduce) && isIdentity(map))
      rank = std::min(rank.value_or(map.size()), static_cast<unsigned>(map.size()));
    if (auto scan = value.getDefiningOp<ir::ScanOp>();
        scan && isIdentity(map) && scan.getDim() + 1 == map.size() && map.size() == rankOf(tile))
      rank = std::min(rank.value_or(map.size() - 1), static_cast<unsigned>(map.size() - 1));
    return true;
  });
  return rank;
}

bool Nest::isFused(ir::ReduceOp op, llvm::ArrayRef<DimUse> map) const {
  return rowRank_ >= 0 && static_cast<int>(map.size()) == rowRank_ && isIdentity(map) && reducesInnermost(op);
}

/// The last dimension of a row of rank one.
bool Nest::isFused(ir::ScanOp op, llvm::ArrayRef<DimUse> map) const {
  return rowRank_ >= 0 && static_cast<int>(map.size()) == rowRank_ + 1 && isIdentity(map) &&
         op.getDim() + 1 == map.size();
}

/// Every element is computed once, and neighbouring threads read neighbours.
bool Nest::isInline(ir::ReduceOp op, llvm::ArrayRef<DimUse> map, unsigned loops) const {
  if (reducesInnermost(op))
    return false;
  for (unsigned loop = 0; loop < loops; ++loop)
    if (!llvm::any_of(map, [&](const DimUse& use) { return use.loop == static_cast<int>(loop); }))
      return false;
  return true;
}

/// Of a fused reduction: kept dimensions are the rows, reduced ones the loops after them.
DimMap Nest::operandMap(ir::ReduceOp op) const {
  DimMap map;
  int kept = 0, reduced = rowRank_;
  for (unsigned dim = 0; dim < rankOf(op.getValue()); ++dim)
    map.push_back({llvm::is_contained(op.getDims(), static_cast<int64_t>(dim)) ? reduced++ : kept++, true});
  return map;
}

Values Nest::reducedExtents(ir::ReduceOp op) {
  Values all = v_.extents(op.getValue()), reduced;
  for (int64_t dim : op.getDims())
    reduced.push_back(all[static_cast<size_t>(dim)]);
  return reduced;
}

/// Same memory as a sink, and not just the element that is being written.
bool Nest::conflicts(const Place& place, llvm::ArrayRef<DimUse> map) const {
  auto storePasses = llvm::count_if(passes_, [](const Pass& pass) { return !pass.roots.empty(); });
  return llvm::any_of(roots_, [&](const Root& root) {
    if (root.sink.base != place.base)
      return false;
    bool sameOffsets = place.offsets.size() == root.sink.offsets.size();
    for (auto [a, b] : llvm::zip(place.offsets, root.sink.offsets))
      sameOffsets &= sameValue(l, a, b);
    bool sameElement = root.sink.window == place.window && isIdentity(map) && map.size() == rankOf(root.value) &&
                       sameOffsets && storePasses <= 1;
    return !sameElement;
  });
}

/// Neighbouring threads would read elements far apart in memory, while another loop runs along its rows: worth a detour through shared
/// memory, where the block's piece fits. The dimension that loop runs along.
std::optional<unsigned> Nest::crosswiseDim(ir::TileLoadOp load, llvm::ArrayRef<DimUse> map, unsigned loops) const {
  constexpr int64_t kMostElements = 16384;
  if (map.size() < 2 || loops < 2 || llvm::cast<ir::ViewType>(load.getView().getType()).getSpace() != ir::Space::Global)
    return std::nullopt;
  int last = static_cast<int>(loops) - 1;
  bool alongRows = map.back().loop != last && map.back().loop >= 0;
  const DimUse* across = llvm::find_if(map.drop_back(), [&](const DimUse& use) { return use.loop == last; });
  auto bound = elementBound(load.getResult());
  if (!alongRows || across == map.drop_back().end() || !bound || *bound > kMostElements)
    return std::nullopt;
  return static_cast<unsigned>(across - map.begin());
}

/// The topmost tile of an expression that has to be in memory before the nest; null: none.
mlir::Value Nest::findMust(mlir::Value tile, const DimMap& map, unsigned loops) {
  mlir::Value must;
  along_.reset();
  Closure closure;
  closure.walk(tile, map, [&](mlir::Value value, const DimMap& use) {
    if (must || v_.place(value))
      return false;
    mlir::Operation* op = value.getDefiningOp();
    bool canStay = stubborn_.contains(value);
    if (!op || (op->getNumRegions() != 0 && !isPerElement(value)) || llvm::isa<ir::DotOp>(op)) {
      must = value;
    } else if (auto scan = llvm::dyn_cast<ir::ScanOp>(op)) {
      if (isFused(scan, use))
        fusedScans_.insert(scan);
      else
        must = value;
    } else if (auto load = llvm::dyn_cast<ir::TileLoadOp>(op)) {
      auto across = canStay ? std::nullopt : crosswiseDim(load, use, loops);
      if (conflicts(v_.placeOfLoad(load), use) || across) {
        must = value;
        along_ = across;
      }
    } else if (auto reduce = llvm::dyn_cast<ir::ReduceOp>(op); reduce && !isPicked(reduce, use)) {
      if (isFused(reduce, use)) {
        if (fused_.insert({reduce, 0}).second)
          must = findMust(reduce.getValue(), operandMap(reduce),
                          static_cast<unsigned>(rowRank_) + reduce.getDims().size());
        return false;
      }
      if (!canStay && !isInline(reduce, use, loops))
        must = value;
    }
    return !must;
  });
  return must;
}

mlir::Value Nest::findMustMaterialize() {
  fused_.clear();
  fusedScans_.clear();
  if (scalar_)
    return fused_.insert({scalar_, 0}),
           findMust(scalar_.getValue(), operandMap(scalar_), static_cast<unsigned>(scalar_.getDims().size()));
  for (const Root& root : roots_)
    if (mlir::Value must = findMust(root.value, identityMap(rankOf(root.value)), rankOf(root.value)))
      return must;
  return {};
}

static mlir::Operation* blame(mlir::Value tile) {
  return tile.getDefiningOp() ? tile.getDefiningOp() : tile.getParentBlock()->getParentOp();
}

/// Can be computed, or loaded across the threads' order, again wherever it is needed.
static bool canStay(mlir::Value tile) {
  mlir::Operation* op = tile.getDefiningOp();
  return op && llvm::isa<ir::ReduceOp, ir::TileLoadOp>(op);
}

void Nest::plan(llvm::ArrayRef<Root> roots, ir::ReduceOp scalar) {
  roots_ = roots;
  scalar_ = scalar;
  rowRank_ = scalar ? 0 : -1;
  for (const Root& root : roots)
    if (auto rank = rowRank(root.value))
      rowRank_ = rowRank_ < 0 ? static_cast<int>(*rank) : std::min(rowRank_, static_cast<int>(*rank));
  makePasses();
  while (mlir::Value must = findMustMaterialize()) {
    if (!materialize_(must, along_) && (!canStay(must) || !stubborn_.insert(must).second))
      return l.fail(blame(must), "a tile of this size between operations of one block");
  }
  if (fused_.empty() && fusedScans_.empty())
    rowRank_ = -1;
  most_ = 0;
  for (const Root& root : roots)
    most_ = std::max(most_, elementBound(root.value).value_or(INT64_MAX));
  auto most = l.phase->getAttrOfType<mlir::IntegerAttr>(passes::kBlockElements);
  if (most && llvm::all_of(roots, [](const Root& root) { return root.store != nullptr; }))
    most_ = std::min(most_, most.getInt());
  rows_.clear();
  if (rowRank_ > 0)
    for (unsigned dim = 0; dim < static_cast<unsigned>(rowRank_); ++dim)
      rows_.push_back(v_.extents(roots[0].value)[dim]);
  makePasses();
}

/// The deepest fused reduction an expression needs.
unsigned Nest::levelBelow(mlir::Value tile, const DimMap& map) {
  unsigned deepest = 0;
  Closure closure;
  closure.walk(tile, map, [&](mlir::Value value, const DimMap&) {
    auto inner = value.getDefiningOp<ir::ReduceOp>();
    if (v_.place(value) || !inner || !fused_.contains(inner))
      return !v_.place(value);
    deepest = std::max(deepest, levelOf(inner));
    return false;
  });
  return deepest;
}

unsigned Nest::levelOf(ir::ReduceOp op) {
  if (unsigned level = fused_.find(op)->second)
    return level;
  unsigned level = levelBelow(op.getValue(), operandMap(op)) + 1;
  return fused_.find(op)->second = level;
}

Nest::Uses Nest::usesOf(const Pass& pass) const {
  Uses uses;
  for (ir::ReduceOp reduce : pass.reduces)
    uses.push_back({reduce.getValue(), operandMap(reduce)});
  for (ir::ReduceOp sum : pass.sums)
    uses.push_back({sum.getValue(), operandMap(sum)});
  for (unsigned root : pass.roots)
    uses.push_back({roots_[root].value, identityMap(rankOf(roots_[root].value))});
  return uses;
}

static bool sameExtents(Lowering& l, const Values& a, const Values& b) {
  if (a.size() != b.size())
    return false;
  for (auto [x, y] : llvm::zip(a, b))
    if (!sameValue(l, x, y))
      return false;
  return true;
}

/// Reductions level by level, then stores; what has the same inner extents shares a pass.
void Nest::makePasses() {
  passes_.clear();
  unsigned rows = static_cast<unsigned>(std::max(rowRank_, 0)), deepest = 0;
  for (size_t i = 0; i < fused_.size(); ++i)
    deepest = std::max(deepest, levelOf((fused_.begin() + static_cast<ptrdiff_t>(i))->first));
  auto passFor = [&](size_t first, const Values& inner) -> Pass& {
    for (size_t pass = first; pass < passes_.size(); ++pass)
      if (sameExtents(l, passes_[pass].inner, inner))
        return passes_[pass];
    passes_.push_back({{}, {}, inner, {}, rows + static_cast<unsigned>(inner.size())});
    return passes_.back();
  };
  for (unsigned level = 1; level <= deepest; ++level) {
    size_t first = passes_.size();
    for (auto& [reduce, own] : fused_)
      if (own == level)
        passFor(first, reducedExtents(reduce)).reduces.push_back(reduce);
  }
  size_t first = passes_.size();
  for (auto [i, root] : llvm::enumerate(roots_)) {
    Values extents = v_.extents(root.value);
    passFor(first, Values(extents.begin() + rows, extents.end())).roots.push_back(static_cast<unsigned>(i));
  }
  for (Pass& pass : passes_)
    findScans(pass);
}

void Nest::findScans(Pass& pass) {
  auto visit = [&](auto& self, mlir::Value tile, const DimMap& map) -> void {
    llvm::SmallVector<ir::ScanOp> found;
    Closure closure;
    closure.walk(tile, map, [&](mlir::Value value, const DimMap& use) {
      if (v_.place(value))
        return false;
      if (auto reduce = value.getDefiningOp<ir::ReduceOp>(); reduce && fused_.contains(reduce))
        return false;
      auto scan = value.getDefiningOp<ir::ScanOp>();
      if (!scan || !fusedScans_.contains(scan))
        return true;
      if (use.size() == pass.loops)
        found.push_back(scan);
      return false;
    });
    for (ir::ScanOp scan : found)
      if (!llvm::is_contained(pass.scans, scan)) {
        self(self, scan.getValue(), identityMap(rankOf(scan.getValue())));
        if (!llvm::is_contained(pass.scans, scan))
          pass.scans.push_back(scan);
      }
  };
  for (auto& [value, map] : usesOf(pass))
    visit(visit, value, map);
}

void Nest::prepareExpression(mlir::Value tile) {
  rowRank_ = -1;
  roots_ = {};
  while (true) {
    fused_.clear();
    fusedScans_.clear();
    mlir::Value must = findMust(tile, identityMap(rankOf(tile)), rankOf(tile));
    if (!must)
      return;
    if (!materialize_(must, along_) && (!canStay(must) || !stubborn_.insert(must).second))
      return l.fail(blame(must), "a tile of this size between operations of one block");
  }
}

bool Nest::readsOwnSink(const Root& root) {
  roots_ = root;
  rowRank_ = -1;
  passes_.clear();
  bool reads = false;
  Closure closure;
  closure.walk(root.value, identityMap(rankOf(root.value)), [&](mlir::Value value, const DimMap& map) {
    if (const Place* place = v_.place(value))
      reads |= conflicts(*place, map);
    else if (auto load = value.getDefiningOp<ir::TileLoadOp>())
      reads |= conflicts(v_.placeOfLoad(load), map);
    else
      return true;
    return false;
  });
  roots_ = {};
  return reads;
}

//===-- what the nest touches ---------------------------------------------------------------------------------===//

void Nest::forEachAccess(llvm::function_ref<void(mlir::Value, const DimMap&, const Place&)> visit) {
  for (const Pass& pass : passes_) {
    Closure closure;
    for (auto& [value, map] : usesOf(pass))
      closure.walk(value, map, [&](mlir::Value inner, const DimMap& use) {
        if (const Place* place = v_.place(inner)) {
          visit(inner, use, *place);
          return false;
        }
        if (auto load = inner.getDefiningOp<ir::TileLoadOp>())
          visit(inner, use, v_.placeOfLoad(load));
        auto reduce = inner.getDefiningOp<ir::ReduceOp>();
        return !reduce || !fused_.contains(reduce);
      });
  }
}

/// Elements per access: 16 bytes of the widest type that is read or written along the innermost loop.
unsigned Nest::chooseLanes() {
  int64_t widest = 0;
  bool any = false;
  unsigned rows = static_cast<unsigned>(std::max(rowRank_, 0));
  auto consider = [&](const Place& place, const DimMap& map, unsigned loops) {
    if (map.empty() || loops <= rows)
      return;
    const DimUse& last = map.back();
    if (last.loop != static_cast<int>(loops) - 1 && !(last.loop == DimUse::kMixed))
      return;
    any = true;
    widest = std::max(widest, ir::vxt::scalarBytes(place.view.elementType));
  };
  unsigned loops = 0;
  for (const Pass& pass : passes_)
    loops = std::max(loops, pass.loops);
  forEachAccess([&](mlir::Value, const DimMap& map, const Place& place) { consider(place, map, loops); });
  for (const Root& root : roots_)
    consider(root.sink, identityMap(rankOf(root.value)), rankOf(root.value));
  return any ? static_cast<unsigned>(std::max<int64_t>(1, 16 / widest)) : 1;
}

/// Tiles in memory whose elements several passes need: they stay in registers. None: one pass does it all.
llvm::SmallVector<mlir::Value> Nest::keptTiles() {
  llvm::MapVector<mlir::Value, unsigned> passes;
  llvm::DenseMap<mlir::Value, size_t> lastPass;
  for (auto [number, pass] : llvm::enumerate(passes_)) {
    Closure closure;
    for (auto& [value, map] : usesOf(pass))
      closure.walk(value, map, [&](mlir::Value inner, const DimMap& use) {
        auto reduce = inner.getDefiningOp<ir::ReduceOp>();
        if (reduce && fused_.contains(reduce))
          return false;
        bool leaf = v_.place(inner) || inner.getDefiningOp<ir::TileLoadOp>();
        if (leaf && use.size() == pass.loops && isIdentity(use) && !pass.inner.empty()) {
          auto [found, isNew] = lastPass.insert({inner, number});
          if (isNew || found->second != number)
            ++passes[inner];
          found->second = number;
        }
        return !leaf;
      });
  }
  llvm::SmallVector<mlir::Value> kept;
  for (auto& [value, count] : passes)
    if (count > 1)
      kept.push_back(value);
  return kept;
}

/// Orders the nest after the accesses of other threads it depends on; its own, which may happen anywhere in it. What it both reads and writes
/// it reads only at the element that the same thread is about to write (conflicts).
Hazards::State Nest::announce() {
  Hazards::State own;
  forEachAccess([&](mlir::Value, const DimMap&, const Place& place) {
    if (llvm::none_of(roots_, [&](const Root& root) { return root.sink.base == place.base; }))
      l.hazards().read(place.base);
    own[place.base].blockRead = true;
  });
  for (const Root& root : roots_) {
    l.hazards().write(root.sink.base);
    own[root.sink.base].blockWrite = true;
  }
  return own;
}

}  // namespace vortex::target::gpu::tiles
