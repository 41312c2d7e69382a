// Where a new cluster begins: it takes loads along that the one before it has no use for.
#include "passes/plan/clusters.h"

namespace vortex::passes {

using namespace mlir;

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
