#include "passes/register.h"

#include "passes/expand_staging.h"
#include "passes/merge_products.h"
#include "passes/narrow_math.h"
#include "passes/narrow_operands.h"
#include "passes/phases.h"
#include "passes/pipeline_loops.h"
#include "passes/simplify.h"
#include "passes/stream_reductions.h"
#include "passes/unroll_loops.h"

namespace vortex::passes {

void registerVxPasses() {
  mlir::registerPass([] { return createMergeProductsPass(); });
  mlir::registerPass([] { return createNarrowMathPass(); });
  mlir::registerPass([] { return createPhasesPass(); });
  mlir::registerPass([] { return createNarrowOperandsPass(); });
  mlir::registerPass([] { return createSimplifyPass(); });
  mlir::registerPass([] { return createStreamReductionsPass(); });
  mlir::registerPass([] { return createExpandStagingPass(); });
  mlir::registerPass([] { return createUnrollLoopsPass(); });
  mlir::registerPass([] { return createPipelineLoopsPass(); });
}

}  // namespace vortex::passes
