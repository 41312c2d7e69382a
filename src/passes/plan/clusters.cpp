// Greedy, in program order: an operation joins the current cluster while at least one axis is left that every output of the cluster has
// and no operation needs whole; blocks can then work on pieces of that axis without talking to each other. Otherwise the cluster is
// closed, and values that cross go through temporaries in global memory. Softmax, norms and product + epilogue stay one phase;
// attention over [B, H, S, D] stays one phase over b, h, s.
#include "passes/plan/clusters.h"

#include "ir/root_view.h"
#include "passes/stream_reductions.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace vortex::passes {

using namespace mlir;

void Clusters::forEachOperand(Operation* op, llvm::function_ref<void(Value)> visit) {
  op->walk([&](Operation* inner) {
    for (Value operand : inner->getOperands()) {
      Operation* owner = operand.getDefiningOp() ? operand.getDefiningOp() : operand.getParentBlock()->getParentOp();
      bool inside = operand.getDefiningOp() ? op->isProperAncestor(owner) : op->isAncestor(owner);
      if (!inside)
        visit(operand);
    }
  });
}

void Clusters::forEachSource(Operation* op, llvm::function_ref<void(Value)> visit) const {
  llvm::DenseSet<Value> seen;
  SmallVector<Operation*> pending{op};
  while (!pending.empty()) {
    forEachOperand(pending.pop_back_val(), [&](Value value) {
      Operation* producer = value.getDefiningOp();
      if (!producer || !seen.insert(value).second)
        return;
      if (needsPlace(producer) || isa<ir::TileLoadOp>(producer))
        visit(value);
      if (!needsPlace(producer))
        pending.push_back(producer);
    });
  }
}

Clusters::Clusters(ir::KernelOp kernel, const Axes& axes, ClusterRules rules) : axes_(axes), rules_(rules) {
  kernel.walk([&](Operation* op) {
    if (auto store = dyn_cast<ir::TileStoreOp>(op))
      written_.insert(ir::rootView(store.getView()));
    else if (auto store = dyn_cast<ir::StoreOp>(op))
      written_.insert(ir::rootView(store.getView()));
  });
  for (Operation& op : kernel.getBody().front().without_terminator()) {
    if (!needsPlace(&op))
      continue;
    if (list.empty() || mustStartCluster(&op, list.back()) || !extend(list.back(), &op)) {
      startCluster(&op);
      extend(list.back(), &op);
    }
    list.back().roots.push_back(&op);
    cluster_[&op] = static_cast<unsigned>(list.size() - 1);
  }
  for (Cluster& cluster : list)
    finish(cluster);
}

bool Clusters::needsPlace(Operation* op) const {
  if (isa<ir::ReduceOp, ir::DotOp, ir::ScanOp, ir::TileStoreOp>(op) || op->getNumRegions() != 0)
    return true;
  if (axes_.flattens(op))
    return llvm::any_of(op->getUsers(), [](Operation* user) { return !isa<ir::TileStoreOp>(user); });
  // A load of memory that this kernel also writes stays where the program has it.
  if (auto load = dyn_cast<ir::TileLoadOp>(op))
    return written_.contains(ir::rootView(load.getView()));
  if (auto load = dyn_cast<ir::LoadOp>(op))
    return written_.contains(ir::rootView(load.getView()));
  return !isMemoryEffectFree(op);
}

bool Clusters::storesTo(Value view, const Cluster& cluster) const {
  view = ir::rootView(view);
  return llvm::any_of(cluster.roots, [&](Operation* root) {
    bool stores = false;
    root->walk([&](Operation* op) {
      if (auto store = dyn_cast<ir::TileStoreOp>(op))
        stores |= ir::rootView(store.getView()) == view;
      else if (!isa<ir::TileLoadOp, ir::LoadOp>(op) && op->getNumRegions() == 0 && !isMemoryEffectFree(op))
        stores = true;
    });
    return stores;
  });
}

static bool isScalarReduce(Operation* op) {
  auto reduce = dyn_cast<ir::ReduceOp>(op);
  return reduce && !isa<RankedTensorType>(reduce.getType());
}

/// Constants, and values from outside of `op`.
static bool isSameInAllRounds(Operation* op, Value a, Value b) {
  if (const std::optional<int64_t> constant = getConstantIntValue(a))
    return constant == getConstantIntValue(b);
  return a == b && !op->isAncestor(a.getParentRegion()->getParentOp());
}

bool readsWhatOthersWrite(Operation* op, const Axes& axes) {
  if (op->getNumRegions() == 0)
    return false;
  llvm::DenseMap<Value, SmallVector<ir::TileStoreOp>> stores;
  op->walk([&](ir::TileStoreOp store) { stores[ir::rootView(store.getView())].push_back(store); });
  const auto isOwn = [&](ir::TileLoadOp load, ir::TileStoreOp store) {
    return load.getView() == store.getView() && axes.of(load.getResult()) == axes.of(store.getValue()) &&
           llvm::all_of(llvm::zip(load.getOffsets(), store.getOffsets()),
                        [&](auto pair) { return isSameInAllRounds(op, std::get<0>(pair), std::get<1>(pair)); });
  };
  const WalkResult walked = op->walk([&](Operation* inner) {
    bool readsOthers = false;
    if (auto load = dyn_cast<ir::LoadOp>(inner))
      readsOthers = stores.contains(ir::rootView(load.getView()));
    else if (auto load = dyn_cast<ir::TileLoadOp>(inner))
      readsOthers = !llvm::all_of(stores.lookup(ir::rootView(load.getView())),
                                  [&](ir::TileStoreOp store) { return isOwn(load, store); });
    return readsOthers ? WalkResult::interrupt() : WalkResult::advance();
  });
  return walked.wasInterrupted();
}

/// Effects that are not tile loads and stores happen once, so they get a block of their own.
static bool isSerial(Operation* op, const Axes& axes) {
  if (readsWhatOthersWrite(op, axes))
    return true;
  bool serial = false;
  op->walk([&](Operation* inner) {
    serial |= !isa<ir::TileLoadOp, ir::TileStoreOp, ir::LoadOp>(inner) && inner->getNumRegions() == 0 &&
              !isMemoryEffectFree(inner) && !inner->hasTrait<OpTrait::IsTerminator>();
  });
  return serial;
}

/// A reduction that leaves the innermost dimension alone: every block would read all of its columns.
bool Clusters::splits(Operation* op) const {
  auto reduce = dyn_cast<ir::ReduceOp>(op);
  if (!reduce || !rules_.splitReductions || isScalarReduce(op))
    return false;
  int64_t rank = cast<RankedTensorType>(reduce.getValue().getType()).getRank();
  if (llvm::is_contained(reduce.getDims(), rank - 1))
    return false;
  SmallVector<Axis> axes = axes_.of(reduce.getValue());
  AxisSet distinct(axes.begin(), axes.end());
  return distinct.size() == axes.size() && llvm::all_of(axes, [&](Axis axis) { return axes_.extent(axis); });
}

static bool scansAcross(Operation* op) {
  auto scan = dyn_cast<ir::ScanOp>(op);
  return scan && static_cast<int64_t>(scan.getDim()) + 1 != cast<RankedTensorType>(scan.getType()).getRank();
}

/// A scan of one dimension leaves nothing else to split; one along an outer dimension leaves too little where there are few columns.
bool Clusters::splitsScan(Operation* op) const {
  auto scan = dyn_cast<ir::ScanOp>(op);
  if (!scan || !rules_.splitReductions)
    return false;
  SmallVector<Axis> axes = axes_.of(scan.getResult());
  if (axes.size() > 1) {
    // Sums of narrow floats are rounded once, and the piece that goes on from a sum does not know one that is wider.
    Type element = getElementTypeOrSelf(scan.getType());
    bool isNarrow = isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
    if (!rules_.fusedOnly || !scansAcross(op) || scan.getExclusive() || isNarrow)
      return false;
  }
  AxisSet distinct(axes.begin(), axes.end());
  return distinct.size() == axes.size() && llvm::all_of(axes, [&](Axis axis) { return axes_.extent(axis); }) &&
         !wholeFor(scan).contains(axes[static_cast<size_t>(scan.getDim())]);
}

/// What the operands of a scan need whole.
AxisSet Clusters::wholeFor(ir::ScanOp scan) const {
  AxisSet whole;
  if (Operation* producer = scan.getValue().getDefiningOp(); producer && !needsPlace(producer))
    addLazyWhole(producer, whole);
  return whole;
}

/// The tile a root sweeps over.
static Value sweptTile(Operation* op) {
  if (auto reduce = dyn_cast<ir::ReduceOp>(op))
    return reduce.getValue();
  if (auto scan = dyn_cast<ir::ScanOp>(op))
    return scan.getValue();
  auto store = dyn_cast<ir::TileStoreOp>(op);
  auto regrouped = store ? store.getValue().getDefiningOp<ir::ReshapeOp>() : ir::ReshapeOp();
  if (regrouped && regrouped->hasAttr(kByPieceAttribute))
    return regrouped.getValue();
  return store ? Value(store.getValue()) : Value();
}

static bool isPrefix(ArrayRef<Axis> part, ArrayRef<Axis> whole) {
  return part.size() <= whole.size() && whole.take_front(part.size()) == part;
}

/// One sweep over the rows of the cluster can compute `op` too: reductions give one value per row, and everything else follows from the
/// row's values at the same position.
bool Clusters::isFusable(Operation* op, const Cluster& cluster) const {
  if (cluster.roots.empty())
    return true;
  Value swept = sweptTile(op);
  if (isa<ir::DotOp>(op) || scansAcross(op) || op->getNumRegions() != 0)
    return false;
  bool fusable = true;
  // A product shares its phase with stores of its own elements only: others would decide how its rows and columns are split.
  for (Operation* root : cluster.roots)
    if (auto product = dyn_cast<ir::DotOp>(root))
      fusable &= isa<ir::TileStoreOp>(op) && axes_.of(product.getResult()) == axes_.of(swept);
  auto rowsOf = [&](Operation* root) {
    SmallVector<Axis> rows;
    if (auto reduce = dyn_cast<ir::ReduceOp>(root))
      rows = axes_.of(reduce.getResult());
    else if (auto scan = dyn_cast<ir::ScanOp>(root))
      rows = axes_.of(scan.getResult()), rows.pop_back();
    return rows;
  };
  // All reductions and scans of a sweep have the same rows.
  for (Operation* root : cluster.roots)
    if (isa<ir::ReduceOp, ir::ScanOp>(root) && isa<ir::ReduceOp, ir::ScanOp>(op))
      fusable &= rowsOf(root) == rowsOf(op);
  forEachSource(op, [&](Value value) {
    Operation* producer = value.getDefiningOp();
    if (!llvm::is_contained(cluster.roots, producer))
      return;
    if (isa<ir::DotOp>(producer)) {
      fusable &= isa<ir::TileStoreOp>(op) && axes_.of(value) == axes_.of(swept);
    } else if (auto reduce = dyn_cast<ir::ReduceOp>(producer)) {
      SmallVector<Axis> rows = axes_.of(value);
      fusable &= swept && isPrefix(rows, axes_.of(reduce.getValue())) && isPrefix(rows, axes_.of(swept));
    } else if (isa<ir::ScanOp>(producer)) {
      bool direct = isa<ir::TileStoreOp>(op) && swept == value;
      fusable &= scansAcross(producer) ? direct : swept && axes_.of(value) == axes_.of(swept);
    } else if (producer->getNumRegions() != 0) {
      // What a streamed loop leaves is stored by its own blocks, in any order of dimensions.
      auto isOfSwept = [&](Axis axis) { return llvm::is_contained(axes_.of(swept), axis); };
      bool fits = producer->hasAttr(kStreamedAttr) ? swept && llvm::all_of(axes_.of(value), isOfSwept)
                                                   : swept && axes_.of(value) == axes_.of(swept);
      fusable &= isa<ir::TileStoreOp>(op) && fits;
    }
  });
  return fusable;
}

/// A root of the cluster is needed in memory, whole.
bool Clusters::readsApart(Operation* op, const Cluster& cluster) const {
  bool reads = false;
  llvm::DenseSet<Operation*> seen;
  SmallVector<Operation*> pending{op};
  while (!pending.empty()) {
    Operation* current = pending.pop_back_val();
    forEachOperand(current, [&](Value value) {
      Operation* producer = value.getDefiningOp();
      if (!producer)
        return;
      bool whole = current->hasAttr(kApartAttribute) || axes_.flattens(producer);
      reads |= whole && llvm::is_contained(cluster.roots, producer);
      if (!needsPlace(producer) && seen.insert(producer).second)
        pending.push_back(producer);
    });
  }
  return reads;
}

Value Clusters::flattenedBy(Operation* root) const {
  if (axes_.flattens(root))
    return axes_.beforeFlattening(root->getResult(0));
  auto store = dyn_cast<ir::TileStoreOp>(root);
  Operation* reshape = store ? store.getValue().getDefiningOp() : nullptr;
  return axes_.flattens(reshape) && !isRoot(reshape) ? axes_.beforeFlattening(store.getValue()) : Value();
}

Value Clusters::flattened(const Cluster& cluster) const {
  for (Operation* root : cluster.roots)
    if (Value tile = flattenedBy(root))
      return tile;
  return {};
}

/// A product that needs nothing of the cluster and would lose its columns in it.
bool Clusters::isUnrelatedProduct(Operation* op, const Cluster& cluster) const {
  if (rules_.fusedOnly || !isa<ir::DotOp>(op) || !cluster.hasOutput ||
      cluster.shared.contains(axes_.of(op->getResult(0)).back()))
    return false;
  bool related = false;
  forEachSource(op, [&](Value value) { related |= llvm::is_contained(cluster.roots, value.getDefiningOp()); });
  return !related;
}

bool Clusters::mustStartCluster(Operation* op, const Cluster& cluster) const {
  if (readsApart(op, cluster) || isUnrelatedProduct(op, cluster))
    return true;
  Value own = flattenedBy(op), other = flattened(cluster);
  auto multiplies = [](Operation* root) {
    return root->walk([](ir::DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
  };
  bool isProduct = multiplies(op) || llvm::any_of(cluster.roots, multiplies);
  if ((own && other && axes_.of(own) != axes_.of(other)) || ((own || other) && isProduct))
    return true;
  if (cluster.kind == Cluster::Kind::SplitScan && isa<ir::TileStoreOp>(op))
    return axes_.of(sweptTile(op)) != axes_.of(cluster.roots[0]->getResult(0)) || !isFusable(op, cluster) ||
           storesTo(cast<ir::TileStoreOp>(op).getView(), cluster);
  if (cluster.kind != Cluster::Kind::Parallel || isScalarReduce(op) || isSerial(op, axes_) || splits(op) ||
      splitsScan(op))
    return true;
  if (rules_.fusedOnly && (!isFusable(op, cluster) || losesBlocks(op, cluster)))
    return true;
  if (auto load = dyn_cast<ir::TileLoadOp>(op))
    return storesTo(load.getView(), cluster);
  if (auto load = dyn_cast<ir::LoadOp>(op))
    return storesTo(load.getView(), cluster);
  if (op->getNumRegions() != 0) {
    bool conflict = false;
    op->walk([&](Operation* inner) {
      if (auto load = dyn_cast<ir::TileLoadOp>(inner))
        conflict |= written_.contains(ir::rootView(load.getView()));
      if (auto store = dyn_cast<ir::TileStoreOp>(inner))
        conflict |= !cluster.roots.empty();
    });
    return conflict;
  }
  auto store = dyn_cast<ir::TileStoreOp>(op);
  if (!store)
    return false;
  // In place only where every block reads exactly the elements it writes.
  for (Operation* root : cluster.roots) {
    auto load = dyn_cast<ir::TileLoadOp>(root);
    if (!load || ir::rootView(load.getView()) != ir::rootView(store.getView()))
      continue;
    auto sameOffset = [](Value a, Value b) {
      return a == b || (getConstantIntValue(a) && getConstantIntValue(a) == getConstantIntValue(b));
    };
    bool same = load.getView() == store.getView() && axes_.of(load.getResult()) == axes_.of(store.getValue());
    for (auto [a, b] : llvm::zip(load.getOffsets(), store.getOffsets()))
      same &= sameOffset(a, b);
    if (!same)
      return true;
  }
  return storesTo(store.getView(), cluster);
}

void Clusters::addLazyWhole(Operation* op, AxisSet& whole) const {
  llvm::DenseSet<Operation*> seen;
  SmallVector<Operation*> pending{op};
  while (!pending.empty()) {
    Operation* current = pending.pop_back_val();
    for (Axis axis : axes_.wholeAxes(current))
      whole.insert(axis);
    forEachOperand(current, [&](Value value) {
      Operation* producer = value.getDefiningOp();
      if (producer && !needsPlace(producer) && seen.insert(producer).second)
        pending.push_back(producer);
    });
  }
}

/// A product's rows could be split, and cannot any more. Storing its result in another phase costs less.
bool Clusters::losesRows(const Cluster& cluster, const Cluster& next) const {
  auto isSplit = [](const Cluster& with, Axis axis) {
    return with.shared.contains(axis) && !with.whole.contains(axis);
  };
  return llvm::any_of(cluster.roots, [&](Operation* root) {
    if (!isa<ir::DotOp>(root))
      return false;
    SmallVector<Axis> axes = axes_.of(root->getResult(0));
    Axis rows = axes[axes.size() - 2];
    return isSplit(cluster, rows) && !isSplit(next, rows);
  });
}

/// False when joining would leave no axis to split. An empty cluster takes anything.
bool Clusters::extend(Cluster& cluster, Operation* op) const {
  Cluster next = cluster;
  if (isScalarReduce(op) && cluster.roots.empty()) {
    cluster.kind = Cluster::Kind::ScalarReduce;
    for (Axis axis : axes_.of(cast<ir::ReduceOp>(op).getValue()))
      cluster.shared.insert(axis);
    addLazyWhole(op, cluster.whole);
    for (Axis axis : axes_.wholeAxes(op))
      cluster.whole.erase(axis);
    return true;
  }
  if (isSerial(op, axes_)) {
    cluster.kind = Cluster::Kind::Serial;
    return cluster.roots.empty();
  }
  if (cluster.kind == Cluster::Kind::SplitScan)
    return true;
  if (splitsScan(op)) {
    auto scan = cast<ir::ScanOp>(op);
    SmallVector<Axis> axes = axes_.of(scan.getResult());
    AxisSet whole = wholeFor(scan);
    cluster.kind = Cluster::Kind::SplitScan;
    cluster.parallel.push_back(axes[static_cast<size_t>(scan.getDim())]);
    for (Axis axis : axes)
      if (axis != cluster.parallel[0] && !whole.contains(axis))
        cluster.parallel.push_back(axis);
    return true;
  }
  if (splits(op)) {
    cluster.kind = Cluster::Kind::SplitReduce;
    for (Axis axis : axes_.of(op->getResult(0)))
      cluster.shared.insert(axis);
    addLazyWhole(op, cluster.whole);
    return true;
  }
  addLazyWhole(op, next.whole);
  auto addOutput = [&](Value output) {
    AxisSet own;
    for (Axis axis : axes_.of(output))
      if (axes_.extent(axis) && (!next.hasOutput || next.shared.contains(axis)))
        own.insert(axis);
    next.shared = own;
    next.hasOutput = true;
  };
  op->walk([&](Operation* inner) {
    if (auto store = dyn_cast<ir::TileStoreOp>(inner))
      addOutput(axes_.beforeFlattening(store.getValue()));
    else if (axes_.flattens(inner))
      addOutput(axes_.beforeFlattening(inner->getResult(0)));
    else if (isa<ir::ReduceOp, ir::DotOp, ir::ScanOp>(inner))
      addOutput(inner->getResult(0));
  });
  if (op->getNumRegions() != 0)
    for (Value result : op->getResults())
      if (isa<RankedTensorType>(result.getType()))
        addOutput(result);
  if (!rules_.fusedOnly && isa<ir::TileStoreOp>(op) && losesRows(cluster, next))
    return false;
  bool splits = !next.hasOutput || llvm::any_of(next.shared, [&](Axis axis) { return !next.whole.contains(axis); });
  if (!splits && !cluster.roots.empty())
    return false;
  if (!splits)
    next.kind = Cluster::Kind::Serial;
  cluster = next;
  return true;
}

/// The first reduced axis that nothing else needs whole, then those of the result.
void Clusters::finishSplit(Cluster& cluster) const {
  auto reduce = cast<ir::ReduceOp>(cluster.roots[0]);
  SmallVector<Axis> axes = axes_.of(reduce.getValue());
  AxisSet others;
  if (Operation* producer = reduce.getValue().getDefiningOp(); producer && !needsPlace(producer))
    addLazyWhole(producer, others);
  for (int64_t dim : reduce.getDims())
    if (cluster.parallel.empty() && !others.contains(axes[static_cast<size_t>(dim)]))
      cluster.parallel.push_back(axes[static_cast<size_t>(dim)]);
  if (cluster.parallel.empty()) {
    cluster.kind = Cluster::Kind::Parallel;
    cluster.hasOutput = true;
  }
  for (Axis axis : axes_.of(reduce.getResult()))
    if (!others.contains(axis))
      cluster.parallel.push_back(axis);
  if (cluster.parallel.empty())
    cluster.kind = Cluster::Kind::Serial;
}

void Clusters::finish(Cluster& cluster) const {
  if (cluster.kind == Cluster::Kind::Serial || cluster.kind == Cluster::Kind::SplitScan)
    return;
  // The order of the last output's dimensions: row-major neighbours stay in one block.
  Value output;
  for (Operation* root : cluster.roots)
    root->walk([&](Operation* op) {
      if (auto store = dyn_cast<ir::TileStoreOp>(op))
        output = axes_.beforeFlattening(store.getValue());
      else if (axes_.flattens(op))
        output = axes_.beforeFlattening(op->getResult(0));
      else if (isa<ir::DotOp, ir::ScanOp>(op) || (isa<ir::ReduceOp>(op) && cluster.kind == Cluster::Kind::Parallel))
        output = op->getResult(0);
      else if (auto reduce = dyn_cast<ir::ReduceOp>(op))
        output = reduce.getValue();
    });
  if (cluster.kind == Cluster::Kind::SplitReduce)
    return finishSplit(cluster);
  Value flat = flattened(cluster);
  if (flat)
    output = flat;
  if (output)
    for (Axis axis : axes_.of(output)) {
      bool isSplit = cluster.shared.contains(axis) && !cluster.whole.contains(axis) && axes_.extent(axis);
      if (flat && !isSplit)
        break;  // what follows would not lie together
      if (isSplit && !llvm::is_contained(cluster.parallel, axis))
        cluster.parallel.push_back(axis);
    }
  // Neighbours lie along the last dimension that has any.
  while (cluster.parallel.size() > 1 && ir::constantSize(axes_.extent(cluster.parallel.back())) == 1)
    cluster.parallel.pop_back();
  if (cluster.parallel.empty())
    cluster.kind = Cluster::Kind::Serial;
}

}  // namespace vortex::passes
