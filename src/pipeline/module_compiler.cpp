#include "pipeline/module_compiler.h"

#include "base/hash.h"
#include "pipeline/back_end.h"
#include "pipeline/build_id.h"
#include "pipeline/error_collector.h"
#include "pipeline/schedule.h"

#include "mlir/Parser/Parser.h"

#include <chrono>

namespace vortex::pipeline {

ModuleCompiler::ModuleCompiler(std::string target, std::string cpu, bool useCache, Effort effort)
    : target_(std::move(target)), cpu_(std::move(cpu)), effort_(effort),
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

static void show(const BackEnd::Observer& observer, std::string_view stage, mlir::ModuleOp module) {
  if (!observer.wants(stage))
    return;
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out);
  observer.text(stage, text);
}

std::shared_ptr<const artifact::Kernel> ModuleCompiler::compile(std::string_view text, Failure& failure,
                                                                const BackEnd::Observer* observer) {
  if (observer)
    return compileAnew(text, failure, *observer);
  static const BackEnd::Observer nobody{[](std::string_view) { return false; },
                                        [](std::string_view, std::string_view) {}, [](std::string_view, double) {}};
  if (!cache_)
    return compileAnew(text, failure, nobody);
  base::Hasher hasher;
  hasher.addField("vx module").addField(buildId()).addField(target_).addField(backEndIdentity(target_, cpu_));
  if (effort_ == Effort::Quick)
    hasher.addField("quick");
  const std::string key = hasher.addField(text).finishHex();
  if (auto bytes = cache_->get(key))
    if (auto known = artifact::deserialize(*bytes))
      return std::make_shared<const artifact::Kernel>(*std::move(known));
  auto compiled = compileAnew(text, failure, nobody);
  if (compiled)
    (void)cache_->put(key, artifact::serialize(*compiled));  // a cache that cannot be written stops nothing
  return compiled;
}

std::shared_ptr<const artifact::Kernel> ModuleCompiler::compileAnew(std::string_view text, Failure& failure,
                                                                    const BackEnd::Observer& observer) {
  auto backEnd = createBackEnd(target_, cpu_, effort_);
  if (!backEnd) {
    failure.message = backEnd.error().message;
    return nullptr;
  }
  auto module = parse(text, failure);
  if (!module)
    return nullptr;
  show(observer, "irgen", *module);
  const auto start = std::chrono::steady_clock::now();
  ErrorCollector errors(context(), failure);
  std::string plans;
  if (!schedule(*module, (*backEnd)->tensorSchedule(), plans))
    return nullptr;
  observer.time("schedule",
                std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  if (observer.wants("plan"))
    observer.text("plan", plans);
  show(observer, "schedule", *module);
  auto compiled = (*backEnd)->compile(*module, observer);
  if (!compiled) {
    if (failure.message.empty())
      failure.message = compiled.error().message;
    return nullptr;
  }
  return std::make_shared<const artifact::Kernel>(std::move(compiled).value());
}

}  // namespace vortex::pipeline
