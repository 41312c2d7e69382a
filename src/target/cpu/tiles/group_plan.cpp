// What is fused into the nest, what must be in memory first.
#include "target/cpu/tiles/group.h"

namespace vortex::target::cpu::tiles {

using llvm::Value;

static bool reducesInnermost(ir::ReduceOp op) { return op.getDims().back() + 1 == int64_t(rankOf(op.getValue())); }

/// A reduction of its own has the rows that it leaves: what it reads by fewer rows is in memory before.
std::optional<unsigned> Group::rowRank(mlir::Value tile) {
  if (auto own = tile.getDefiningOp<ir::ReduceOp>(); own && !v_.place(tile) && reducesInnermost(own))
    return rankOf(tile);
  std::optional<unsigned> rank;
  Closure closure(v_);
  closure.walk(tile, identityMap(rankOf(tile)), [&](mlir::Value value, const DimMap& map) {
    auto reduce = value.getDefiningOp<ir::ReduceOp>();
    if (reduce && !v_.place(value) && reducesInnermost(reduce) && isIdentity(map))
      rank = std::min(rank.value_or(map.size()), unsigned(map.size()));
    return true;
  });
  return rank;
}

bool Group::isFused(ir::ReduceOp op, llvm::ArrayRef<DimUse> map) const {
  return rowRank_ >= 0 && int(map.size()) == rowRank_ && isIdentity(map) && reducesInnermost(op);
}

/// Every element is computed once, by vectors of neighbours that are kept apart.
bool Group::isInline(ir::ReduceOp op, llvm::ArrayRef<DimUse> map, unsigned loops) const {
  if (reducesInnermost(op))
    return false;
  for (unsigned loop = 0; loop < loops; ++loop)
    if (!llvm::any_of(map, [&](const DimUse& use) { return use.loop == int(loop); }))
      return false;
  return true;
}

/// Of a fused reduction: kept dimensions are the rows, reduced ones the loops after them.
DimMap Group::operandMap(ir::ReduceOp op) const {
  DimMap map;
  int kept = 0, reduced = rowRank_;
  for (unsigned dim = 0; dim < rankOf(op.getValue()); ++dim)
    map.push_back({llvm::is_contained(op.getDims(), int64_t(dim)) ? reduced++ : kept++, true});
  return map;
}

Values Group::reducedExtents(ir::ReduceOp op) {
  Values all = v_.extents(op.getValue()), reduced;
  for (int64_t dim : op.getDims())
    reduced.push_back(all[dim]);
  return reduced;
}

/// Same memory as a sink, and not just the element that is being written.
bool Group::conflicts(const Place& place, llvm::ArrayRef<DimUse> map) const {
  unsigned storePasses = llvm::count_if(passes_, [](const Pass& pass) { return !pass.roots.empty(); });
  return llvm::any_of(roots_, [&](const Root& root) {
    if (root.sink.base != place.base)
      return false;
    bool sameElement = root.sink.window == place.window && isIdentity(map) && map.size() == rankOf(root.value) &&
                       place.offsets == root.sink.offsets && storePasses <= 1;
    return !sameElement;
  });
}

/// The topmost tile of an expression that has to be in memory before the nest; null: none.
mlir::Value Group::findMust(mlir::Value tile, const DimMap& map, unsigned loops) {
  mlir::Value must;
  Closure closure(v_);
  closure.walk(tile, map, [&](mlir::Value value, const DimMap& use) {
    if (must || v_.place(value))
      return false;
    mlir::Operation* op = value.getDefiningOp();
    if (dot_ && op == dot_)
      return false;
    if (!op || op->getNumRegions() != 0 || mlir::isa<ir::DotOp, ir::ScanOp>(op)) {
      must = value;
    } else if (auto load = mlir::dyn_cast<ir::TileLoadOp>(op)) {
      if (conflicts(v_.placeOfLoad(load), use))
        must = value;
    } else if (auto reduce = mlir::dyn_cast<ir::ReduceOp>(op)) {
      if (isFused(reduce, use)) {
        if (fused_.insert({reduce, 0}).second)
          must = findMust(reduce.getValue(), operandMap(reduce), rowRank_ + reduce.getDims().size());
        return false;
      }
      if (!isInline(reduce, use, loops))
        must = value;
    } else if (auto reshape = mlir::dyn_cast<ir::ReshapeOp>(op)) {
      if (!reshapeSplits(reshape))
        must = value;
    } else if (auto broadcast = mlir::dyn_cast<ir::BroadcastOp>(op)) {
      mlir::Value source = broadcast.getValue();
      if (rankOf(source) == 0 || v_.place(source))
        return true;
      // Computed again for each value of the missing loops, unless it can be done outside the innermost one.
      DimMap from = closure.operands(value, use)[0].second;
      bool repeats = loops > 0 && usesLoop(from, loops - 1);
      bool everyLoop = true;
      for (unsigned loop = 0; loop < loops; ++loop)
        everyLoop &= llvm::any_of(from, [&](const DimUse& dim) { return dim.loop == int(loop); });
      if (repeats && !everyLoop && !isCheap(source))
        must = source;
    }
    return !must;
  });
  return must;
}

bool Group::isCheap(mlir::Value tile) const {
  return costOf(v_, tile, [&](mlir::Value value) {
           auto reduce = value.getDefiningOp<ir::ReduceOp>();
           return reduce && fused_.contains(reduce);
         }) < kExpensive;
}

mlir::Value Group::findMustMaterialize() {
  fused_.clear();
  if (scalar_)
    return fused_.insert({scalar_, 0}), findMust(scalar_.getValue(), operandMap(scalar_), scalar_.getDims().size());
  for (const Root& root : roots_)
    if (mlir::Value must = findMust(root.value, identityMap(rankOf(root.value)), rankOf(root.value)))
      return must;
  return {};
}

void Group::plan(llvm::ArrayRef<Root> roots, ir::ReduceOp scalar) {
  roots_ = roots;
  scalar_ = scalar;
  rowRank_ = -1;
  if (scalar)
    rowRank_ = 0;
  for (const Root& root : roots)
    if (auto rank = rowRank(root.value))
      rowRank_ = rowRank_ < 0 ? int(*rank) : std::min(rowRank_, int(*rank));
  makePasses();
  while (mlir::Value must = findMustMaterialize()) {
    materialize_(must);
    if (!v_.place(must))
      return e_.fail(must.getDefiningOp() ? must.getDefiningOp() : must.getParentBlock()->getParentOp(), "this tile");
  }
  if (fused_.empty())
    rowRank_ = -1;
  rows_.clear();
  if (rowRank_ > 0)
    for (unsigned dim = 0; dim < unsigned(rowRank_); ++dim)
      rows_.push_back(v_.extents(roots[0].value)[dim]);
  makePasses();
  chooseKept();
}

unsigned Group::levelOf(ir::ReduceOp op) {
  unsigned& level = fused_.find(op)->second;
  if (level != 0)
    return level;
  unsigned deepest = 0;
  Closure closure(v_);
  closure.walk(op.getValue(), operandMap(op), [&](mlir::Value value, const DimMap&) {
    auto inner = value.getDefiningOp<ir::ReduceOp>();
    if (v_.place(value) || !inner || !fused_.contains(inner))
      return !v_.place(value);
    deepest = std::max(deepest, levelOf(inner));
    return false;
  });
  return fused_.find(op)->second = deepest + 1;
}

unsigned Group::passValues(const Pass& pass, llvm::SmallVectorImpl<std::pair<mlir::Value, DimMap>>& values) const {
  for (ir::ReduceOp reduce : pass.reduces)
    values.push_back({reduce.getValue(), operandMap(reduce)});
  for (unsigned root : pass.roots)
    values.push_back({roots_[root].value, identityMap(rankOf(roots_[root].value))});
  return values.size();
}

/// Reductions level by level, then stores; what has the same inner extents shares a pass.
void Group::makePasses() {
  passes_.clear();
  unsigned rows = std::max(rowRank_, 0), deepest = 0;
  for (auto& [reduce, level] : fused_)
    deepest = std::max(deepest, levelOf(reduce));
  for (unsigned level = 1; level <= deepest; ++level) {
    size_t first = passes_.size();
    for (auto& [reduce, own] : fused_) {
      if (own != level)
        continue;
      Values inner = reducedExtents(reduce);
      size_t pass = first;
      while (pass < passes_.size() && passes_[pass].inner != inner)
        ++pass;
      if (pass == passes_.size())
        passes_.push_back({{}, {}, inner, {}, {}, rows + unsigned(inner.size())});
      passes_[pass].reduces.push_back(reduce);
    }
  }
  size_t first = passes_.size();
  for (auto [i, root] : llvm::enumerate(roots_)) {
    Values extents = v_.extents(root.value);
    Values inner(extents.begin() + rows, extents.end());
    size_t pass = first;
    while (pass < passes_.size() && passes_[pass].inner != inner)
      ++pass;
    if (pass == passes_.size())
      passes_.push_back({{}, {}, inner, {}, {}, rows + unsigned(inner.size())});
    passes_[pass].roots.push_back(i);
  }
}

/// Dear values of a pass that a later one needs again go to row buffers.
void Group::chooseKept() {
  for (Pass& pass : passes_) {
    llvm::SmallVector<std::pair<mlir::Value, DimMap>> values;
    passValues(pass, values);
    Closure elements(v_);
    for (auto& [value, map] : values)
      elements.walk(value, map, [&](mlir::Value inner, const DimMap& use) {
        auto reduce = inner.getDefiningOp<ir::ReduceOp>();
        if (v_.place(inner) || (reduce && fused_.contains(reduce)))
          return false;
        if (use.size() == pass.loops && isIdentity(use))
          pass.elements.insert(inner);
        return true;
      });
  }
  for (size_t later = 1; later < passes_.size(); ++later) {
    llvm::SmallVector<std::pair<mlir::Value, DimMap>> values;
    passValues(passes_[later], values);
    Closure closure(v_);
    for (auto& [value, map] : values)
      closure.walk(value, map, [&](mlir::Value inner, const DimMap& use) {
        auto reduce = inner.getDefiningOp<ir::ReduceOp>();
        if (v_.place(inner) || (reduce && fused_.contains(reduce)))
          return false;
        if (use.size() != passes_[later].loops || !isIdentity(use) || isCheap(inner))
          return true;
        for (size_t earlier = 0; earlier < later; ++earlier) {
          Pass& maker = passes_[earlier];
          if (maker.inner != passes_[later].inner || !maker.elements.contains(inner))
            continue;
          if (!llvm::is_contained(maker.kept, inner))
            maker.kept.push_back(inner);
          return false;
        }
        return true;
      });
  }
}

void Group::prepareExpression(mlir::Value tile) {
  rowRank_ = -1;
  while (true) {
    fused_.clear();
    mlir::Value must = findMust(tile, identityMap(rankOf(tile)), rankOf(tile));
    if (!must)
      return;
    materialize_(must);
    if (!v_.place(must))
      return;
  }
}

void Group::prepareEpilogue(ir::DotOp dot, llvm::ArrayRef<Root> roots) {
  rowRank_ = -1;
  roots_ = roots;
  passes_.clear();
  auto find = [&]() -> mlir::Value {
    fused_.clear();
    for (mlir::Value operand : {dot.getA(), dot.getB()})
      if (mlir::Value must = findMust(operand, DimMap(rankOf(operand), DimUse{DimUse::kMixed, false}), 0))
        return must;
    unsigned rank = rankOf(dot.getResult());
    if (mlir::Value must = findMust(dot.getAcc(), identityMap(rank), rank))
      return must;
    dot_ = dot;
    for (const Root& root : roots)
      if (mlir::Value must = findMust(root.value, identityMap(rank), rank))
        return must;
    return {};
  };
  while (mlir::Value must = find()) {
    dot_ = {};
    materialize_(must);
    if (!v_.place(must))
      return;
  }
}

bool Group::readsOwnSink(const Root& root) {
  roots_ = root;
  rowRank_ = -1;
  passes_.clear();
  bool reads = false;
  Closure closure(v_);
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

}  // namespace vortex::target::cpu::tiles
