#include "pipeline/module_compiler.h"

#include "passes/schedule_tensors.h"
#include "passes/simplify.h"
#include "pipeline/back_end.h"
#include "pipeline/error_collector.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace vortex::pipeline {

ModuleCompiler::ModuleCompiler(std::string target, std::string cpu)
    : target_(std::move(target)), cpu_(std::move(cpu)),
      context_(std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED)) {
  irgen::loadDialects(*context_);
}

ModuleCompiler::~ModuleCompiler() = default;

mlir::OwningOpRef<mlir::ModuleOp> ModuleCompiler::parse(std::string_view text, Failure& failure) {
  ErrorCollector errors(*context_, failure);
  return mlir::parseSourceString<mlir::ModuleOp>(llvm::StringRef(text.data(), text.size()), context_.get());
}

static std::string printed(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out);
  return text;
}

std::shared_ptr<const artifact::Kernel> ModuleCompiler::compile(std::string_view text, Failure& failure,
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
  ErrorCollector errors(*context_, failure);
  mlir::PassManager passes(context_.get());
  passes.addPass(passes::createScheduleTensorsPass((*backEnd)->tensorSchedule(*module)));
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
