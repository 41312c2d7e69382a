#include "target/cpu/cpu_target.h"

#include "ir/vx.h"
#include "passes/expand_staging.h"
#include "target/cpu/codegen/emit_object.h"
#include "target/cpu/emit/kernel_functions.h"
#include "target/cpu/keep_values.h"
#include "target/cpu/prepare_dots.h"
#include "target/cpu/tiles/tiles.h"
#include "target/cpu/walk_blocks.h"
#include "target/interface/describe.h"
#include "target/interface/llvm_module.h"
#include "target/interface/stopwatch.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

namespace vortex::target::cpu {

passes::TensorSchedule tensorSchedule(const codegen::Target& target) {
  gemm::Plan plan = dotPlan(target.vector, 4);
  passes::TensorSchedule schedule;
  schedule.dotRows = plan.mc;
  schedule.dotRowStep = plan.mr;
  schedule.dotColumns = plan.nc;
  schedule.dotColumnStep = plan.nr();
  schedule.dotLeastRows = 4 * plan.mr;       // the rows of A that pass by pay for bringing a panel of B near
  schedule.dotLeastColumns = 4 * plan.nr();  // the columns pay for packing the rows of A
  schedule.dotLeastWork = int64_t{1} << 20;  // 10 to 20 µs
  schedule.streamedStep =
      static_cast<int64_t>(llvm::alignTo(512, plan.nr()));  // scores of a block's rows stay in the second-level cache
  schedule.squareSide = 32;        // rows and columns of a transpose: lines of both sides stay in the first-level cache
  schedule.reductionBlocks = 256;  // enough pieces for many cores, few enough to combine at once
  return schedule;
}

Result<artifact::Kernel> compileKernel(mlir::ModuleOp scheduled, const codegen::Target& target,
                                       const CompileTexts& texts, CompileTimes* times) {
  if (!llvm::hasSingleElement(scheduled.getOps<ir::EntryOp>()))
    return base::Error{"the module has no single vx.entry"};
  for (ir::KernelOp kernel : scheduled.getOps<ir::KernelOp>())
    if (kernel.getWholeTensor())
      return base::Error{"kernel '" + kernel.getSymName().str() + "' is not scheduled yet"};

  Stopwatch watch;
  mlir::OwningOpRef<mlir::ModuleOp> prepared = scheduled.clone();
  mlir::ModuleOp module = *prepared;
  keepValues(module);
  passes::expandStaging(module);
  prepareDots(module, target.vector);
  ir::EntryOp entry = *module.getOps<ir::EntryOp>().begin();
  CompileTimes spent;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = codegen::createModule(context, entry.getSymName().str(), target);
  artifact::Kernel kernel;
  kernel.name = entry.getSymName().str();
  kernel.target = "cpu-x86_64-" + target.cpu;
  describeInterface(entry, kernel);
  emit::ModuleState state{*code, target, entry, kernel, {}, tiles::makeTileEmitter};
  for (ir::KernelOp phase : module.getOps<ir::KernelOp>()) {
    artifact::Phase described = describePhase(phase, kernel);
    described.scratchBytes = kernel.sizes.add(emit::emitKernelFunctions(state, phase, described.symbol));
    if (runsInBands(phase))
      kernel.facts.push_back({"bands." + described.symbol, 1, false});
    kernel.phases.push_back(std::move(described));
    describeGuards(phase, kernel);
  }
  describeSteps(module, kernel);
  if (!state.error.empty())
    return base::Error{state.error};
  std::string complaint = verify(*code);
  VORTEX_CHECK(complaint.empty(), "%s", complaint.c_str());
  if (texts.llvm)
    *texts.llvm = printModule(*code);
  spent.emit = watch.lap();
  codegen::optimize(*code, target);
  if (texts.optimizedLlvm)
    *texts.optimizedLlvm = printModule(*code);
  spent.optimize = watch.lap();
  if (texts.assembly)
    *texts.assembly = codegen::emitAssembly(*code, target);
  watch.lap();
  kernel.code = codegen::emitObject(*code, target);
  spent.codegen = watch.lap();
  kernel.facts.push_back({"object_bytes", int64_t(kernel.code.size()), false});
  if (times)
    *times = spent;
  return kernel;
}

}  // namespace vortex::target::cpu
