#include "pipeline/schedule.h"

#include "base/text.h"
#include "passes/merge_products.h"
#include "passes/pipeline_loops.h"
#include "passes/simplify.h"
#include "passes/unroll_loops.h"
#include "pipeline/build_id.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace vortex::pipeline {

static void addPasses(mlir::OpPassManager& passes, const passes::TensorSchedule& rules, passes::PlanObserver observer) {
  passes.addPass(passes::createUnrollLoopsPass());
  passes.addPass(passes::createMergeProductsPass());
  passes.addPass(passes::createPipelineLoopsPass());
  passes.addPass(passes::createPhasesPass(rules, std::move(observer)));
  passes.addPass(passes::createSimplifyPass());
  passes.addPass(mlir::createCSEPass());
}

bool schedule(mlir::ModuleOp module, const passes::TensorSchedule& rules, std::string& plans) {
  mlir::PassManager passes(module.getContext());
  addPasses(passes, rules, [&](llvm::StringRef plan) { plans += plan; });
  return mlir::succeeded(passes.run(module));
}

std::string reproducerHead(const std::string& target) {
  mlir::OpPassManager passes;
  addPasses(passes, {}, {});
  std::string names;
  for (mlir::Pass& pass : passes.getPasses())
    names += base::concat(" -", std::string_view(pass.getArgument()));
  return base::concat("// vx-opt FILE", names, "; vortex ", buildId(), ", ", target, "\n");
}

}  // namespace vortex::pipeline
