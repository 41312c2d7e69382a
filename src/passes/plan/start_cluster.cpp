// Where a new cluster begins: it takes loads along that the one before it has no use for, and joins none whose blocks it would be lost in.
#include "passes/plan/clusters.h"

namespace vortex::passes {

using namespace mlir;

/// `op` needs nothing of the cluster's, and blocks could no longer split an axis of one of the two which nothing sweeps: a store of a vector
/// would leave rows of a whole batch to each of its elements.
bool Clusters::losesBlocks(Operation* op, const Cluster& cluster) const {
  auto isPlain = [](Operation* each) { return isa<ir::ReduceOp, ir::TileStoreOp>(each); };
  if (cluster.roots.empty() || !isPlain(op) || !llvm::all_of(cluster.roots, isPlain))
    return false;
  bool isRelated = false;
  forEachSource(op, [&](Value value) { isRelated |= llvm::is_contained(cluster.roots, value.getDefiningOp()); });
  Cluster alone, joined = cluster;
  if (isRelated || !extend(alone, op) || !extend(joined, op))
    return false;
  AxisSet swept;
  auto addSwept = [&](Operation* each) {
    if (auto reduce = dyn_cast<ir::ReduceOp>(each)) {
      SmallVector<Axis> axes = axes_.of(reduce.getValue());
      for (int64_t dim : reduce.getDims())
        swept.insert(axes[static_cast<size_t>(dim)]);
    }
  };
  llvm::for_each(cluster.roots, addSwept);
  addSwept(op);
  auto loses = [&](const Cluster& before) {
    return llvm::any_of(before.shared, [&](Axis axis) {
      return !before.whole.contains(axis) && !joined.shared.contains(axis) && !swept.contains(axis);
    });
  };
  return loses(alone) || loses(cluster);
}

/// Loads of the last cluster that nothing there uses come along, which saves a copy. Where `op` cannot have them in its cluster, those that have no
/// axis of the last one's outputs get a cluster of their own: there each block would copy all of them.
void Clusters::startCluster(Operation* op) {
  Cluster loads;
  if (!list.empty() && list.back().kind == Cluster::Kind::Parallel && list.back().hasOutput) {
    Cluster& last = list.back();
    llvm::DenseSet<Value> used;
    for (Operation* root : last.roots)
      forEachSource(root, [&](Value value) { used.insert(value); });
    auto isFree = [&](Operation* root) {
      auto load = dyn_cast<ir::TileLoadOp>(root);
      return load && !used.contains(load.getResult()) && !storesTo(load.getView(), last);
    };
    auto isApart = [&](Operation* root) {
      return llvm::none_of(axes_.of(root->getResult(0)), [&](Axis axis) { return last.shared.contains(axis); });
    };
    llvm::copy_if(last.roots, std::back_inserter(loads.roots), isFree);
    const bool isAlone = !loads.roots.empty() && mustStartCluster(op, loads);
    if (isAlone)
      llvm::erase_if(loads.roots, [&](Operation* load) { return !isApart(load); });
    llvm::erase_if(last.roots, [&](Operation* root) { return llvm::is_contained(loads.roots, root); });
    for (Operation* load : loads.roots)
      cluster_[load] = static_cast<unsigned>(list.size());
    if (isAlone && !loads.roots.empty())
      list.push_back(std::exchange(loads, {}));
  }
  list.push_back(std::move(loads));
}

}  // namespace vortex::passes
