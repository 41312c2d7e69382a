// The steps of a cluster with a product, for the ways that products.h finds.
#pragma once

#include "passes/plan/launch_plan.h"

namespace vortex::passes {

class ProductSteps {
public:
  /// `products`: planned the ways. `sizes`: of blocks as the rules have them.
  ProductSteps(const TensorSchedule& rules, const KernelPlan& plan, Products& products, Chunks& sizes)
      : rules_(rules), plan_(plan), products_(products), sizes_(sizes) {}

  std::vector<StepPlan> plan(const Cluster& cluster, const ProductWays& ways, llvm::ArrayRef<ir::SizeAttr> chunks);

private:
  using Steps = std::vector<StepPlan>;
  PhasePlan copy(llvm::StringRef name, mlir::Value tile, const CopiedLoad& copy);
  Steps align(const AlignedCopy& copy);
  PhasePlan write(const WrittenOperand& operand);
  Steps bulk(const Cluster& cluster, const BulkPlan& bulk, llvm::ArrayRef<AlignedCopy> aligned);
  Steps whole(const Cluster& cluster, llvm::ArrayRef<ir::SizeAttr> chunks, const ProductWays& ways);
  PhasePlan small(const Cluster& cluster);
  PhasePlan product(const Cluster& cluster, llvm::ArrayRef<ir::SizeAttr> chunks, ir::SizeAttr blocks);
  /// Blocks multiply pieces of the depth, then a phase adds those in order and does what follows the product. `isAnyhow`: they read operands as
  /// they lie.
  Steps split(const Cluster& cluster, ir::DotOp dot, const DepthSplit& split, llvm::ArrayRef<AlignedCopy> copies,
              bool isAnyhow);
  PhasePlan partial(const Cluster& cluster, ir::DotOp dot, const DepthSplit& split, const DepthSplit::Blocks& blocks);
  int64_t groupOf(const Cluster& cluster) const;

  const TensorSchedule& rules_;
  const KernelPlan& plan_;
  Products& products_;
  Chunks& sizes_;
};

}  // namespace vortex::passes
