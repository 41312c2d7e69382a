#include "target/gpu/tiles/testing/lower.h"

#include "ir/vxnv.h"
#include "passes/merge_products.h"
#include "passes/phases.h"
#include "passes/pipeline_loops.h"
#include "passes/simplify.h"
#include "target/gpu/tiles/schedule.h"
#include "target/gpu/tiles/tiles.h"
#include "target/interface/describe.h"

#include <mlir/IR/Verifier.h>
#include <mlir/Parser/Parser.h>
#include <mlir/Pass/PassManager.h>
#include <mlir/Transforms/Passes.h>

namespace vortex::target::gpu::tiles::testing {

Lowered lower(mlir::MLIRContext& context, const std::string& text, Assumptions assumptions,
              llvm::function_ref<void(passes::TensorSchedule&)> adjust,
              std::unique_ptr<TileLowering> (*makeTiles)(Lowering&), const chip::Gpu* chosen) {
  mlir::DialectRegistry registry;
  ir::registerVxDialects(registry);
  registry.insert<ir::vxt::VxtDialect, ir::vxnv::VxnvDialect, mlir::vector::VectorDialect>();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  Lowered result;
  result.vx = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  VORTEX_CHECK(result.vx, "test module does not parse:\n%s", text.c_str());
  const chip::Gpu& chip = chosen ? *chosen : *chip::findGpu("sm_90");
  passes::TensorSchedule schedule = tensorSchedule(chip);
  if (adjust)
    adjust(schedule);
  mlir::PassManager passes(&context);
  passes.addPass(passes::createMergeProductsPass());
  passes.addPass(passes::createPipelineLoopsPass());
  passes.addPass(passes::createPhasesPass(schedule));
  passes.addPass(passes::createSimplifyPass());
  passes.addPass(mlir::createCSEPass());
  if (mlir::failed(passes.run(*result.vx))) {
    result.error = "cannot be scheduled";
    return result;
  }
  result.vxt = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  artifact::Kernel kernel;
  auto entry = *result.vx->getOps<ir::EntryOp>().begin();
  describeInterface(entry, kernel);
  ModuleState state{*result.vxt, chip, kernel, makeTiles ? makeTiles : makeTileLowering, {}};
  for (auto phase : result.vx->getOps<ir::KernelOp>()) {
    Lowering lowering(state, phase, phase.getSymName(), assumptions);
    if (!lowering.run()) {
      result.error = state.error;
      return result;
    }
  }
  if (mlir::failed(mlir::verify(*result.vxt)))
    result.error = "vxt does not verify";
  return result;
}

}  // namespace vortex::target::gpu::tiles::testing
