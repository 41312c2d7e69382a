#include "pipeline/module_compiler.h"

#include "base/hash.h"
#include "passes/phases.h"
#include "passes/pipeline_loops.h"
#include "passes/simplify.h"
#include "passes/unroll_loops.h"
#include "pipeline/back_end.h"
#include "pipeline/build_id.h"
#include "pipeline/error_collector.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace vortex::pipeline {

ModuleCompiler::ModuleCompiler(std::string target, std::string cpu, bool useCache)
    : target_(std::move(target)), cpu_(std::move(cpu)),
      cache_(useCache ? std::make_unique<artifact::Cache>() : nullptr) {}

ModuleCompiler::~ModuleCompiler() = default;

mlir::MLIRContext& ModuleCompiler::context() {
  if (!context_) {
    context_ = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
    irgen::loadDialects(*context_);
  }
  return *context_;
}

mlir::OwningOpRef<mlir::ModuleOp> ModuleCompiler::parse(std::string_view text, Failure& failure) {
  ErrorCollector errors(context(), failure);
  return mlir::parseSourceString<mlir::ModuleOp>(llvm::StringRef(text.data(), text.size()), &context());
}

static std::string printed(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out);
  return text;
}

std::shared_ptr<const artifact::Kernel> ModuleCompiler::compile(std::string_view text, Failure& failure,
                                                                std::string_view stage, std::string* stageText) {
  if (!cache_ || !stage.empty())
    return compileAnew(text, failure, stage, stageText);
  base::Hasher hasher;
  hasher.addField("vx module").addField(buildId()).addField(target_).addField(backEndIdentity(target_, cpu_));
  const std::string key = hasher.addField(text).finishHex();
  if (auto bytes = cache_->get(key))
    if (auto known = artifact::deserialize(*bytes))
      return std::make_shared<const artifact::Kernel>(*std::move(known));
  auto compiled = compileAnew(text, failure, stage, stageText);
  if (compiled)
    (void)cache_->put(key, artifact::serialize(*compiled));  // a cache that cannot be written stops nothing
  return compiled;
}

std::shared_ptr<const artifact::Kernel> ModuleCompiler::compileAnew(std::string_view text, Failure& failure,
                                                                    std::string_view stage, std::string* stageText) {
  auto backEnd = createBackEnd(target_, cpu_);
  if (!backEnd) {
    failure.message = backEnd.error().message;
    return nullptr;
  }
  auto module = parse(text, failure);
  if (!module)
    return nullptr;
  if (stage == "irgen")
    *stageText = printed(*module);
  ErrorCollector errors(context(), failure);
  mlir::PassManager passes(&context());
  passes.addPass(passes::createUnrollLoopsPass());
  passes.addPass(passes::createPipelineLoopsPass());
  const passes::PlanObserver onPlan = [&](llvm::StringRef plan) {
    if (stage == "plan")
      *stageText += plan;
  };
  passes.addPass(passes::createPhasesPass((*backEnd)->tensorSchedule(*module), onPlan));
  passes.addPass(passes::createSimplifyPass());
  passes.addPass(mlir::createCSEPass());
  if (mlir::failed(passes.run(*module)))
    return nullptr;
  if (stage == "schedule")
    *stageText = printed(*module);
  BackEnd::Observer observer;
  observer.wants = [&](std::string_view name) { return name == stage; };
  observer.text = [&](std::string_view, std::string_view produced) { *stageText = produced; };
  observer.time = [](std::string_view, double) {};
  auto compiled = (*backEnd)->compile(*module, observer);
  if (!compiled) {
    if (failure.message.empty())
      failure.message = compiled.error().message;
    return nullptr;
  }
  return std::make_shared<const artifact::Kernel>(std::move(compiled).value());
}

}  // namespace vortex::pipeline
