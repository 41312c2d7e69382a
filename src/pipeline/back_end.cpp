#include "pipeline/back_end.h"

#include "pipeline/compiler.h"

#include "artifact/cache.h"
#include "artifact/validate.h"
#include "base/check.h"
#include "base/text.h"
#include "pipeline/error_collector.h"
#include "target/cpu/cpu_target.h"
#include "target/metal/metal_target.h"
#include "target/nvidia/nvidia_target.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Parser/Parser.h"

#include <llvm/Target/TargetMachine.h>

namespace vortex::pipeline {
namespace {

class CpuBackEnd : public BackEnd {
public:
  explicit CpuBackEnd(target::cpu::codegen::Target target) : target_(std::move(target)) {}

  std::string name() const override { return target_.cpu; }
  passes::TensorSchedule tensorSchedule() const override { return target::cpu::tensorSchedule(target_); }

private:
  Result<artifact::Kernel> doCompile(mlir::ModuleOp scheduled, const Observer& observer, const Choose&) override {
    std::string llvm, optimized, assembly;
    target::cpu::CompileTexts texts;
    texts.llvm = observer.wants("llvm") ? &llvm : nullptr;
    texts.optimizedLlvm = observer.wants("optimized-llvm") ? &optimized : nullptr;
    texts.assembly = observer.wants("assembly") ? &assembly : nullptr;
    target::cpu::CompileTimes spent;
    auto compiled = target::cpu::compileKernel(scheduled, target_, texts, &spent);
    observer.time("llvm", spent.emit);
    observer.time("optimized-llvm", spent.optimize);
    observer.time("assembly", spent.codegen);
    for (auto [stage, text] :
         {std::pair{"llvm", texts.llvm}, {"optimized-llvm", texts.optimizedLlvm}, {"assembly", texts.assembly}})
      if (text && !text->empty())
        observer.text(stage, *text);
    return compiled;
  }

  target::cpu::codegen::Target target_;
};

std::vector<uint8_t> writeEntries(mlir::ModuleOp entries) {
  std::string bytes;
  llvm::raw_string_ostream out(bytes);
  VORTEX_CHECK(mlir::succeeded(mlir::writeBytecodeToFile(entries, out)), "entry points cannot be written");
  out.flush();
  return {bytes.begin(), bytes.end()};
}

class NvidiaBackEnd : public BackEnd {
public:
  explicit NvidiaBackEnd(target::nvidia::Target target) : target_(std::move(target)) {}

  std::string name() const override { return target_.chip; }
  passes::TensorSchedule tensorSchedule() const override { return target::nvidia::tensorSchedule(target_); }

private:
  Result<artifact::Kernel> doCompile(mlir::ModuleOp scheduled, const Observer& observer,
                                     const Choose& choose) override {
    std::string vxnv, vxt;
    target::nvidia::CompileTexts texts;
    texts.vxnv = observer.wants("vxnv") ? &vxnv : nullptr;
    texts.vxt = observer.wants("vxt") ? &vxt : nullptr;
    target::nvidia::CompileTimes spent;
    auto lowered = target::nvidia::lowerKernel(scheduled, target_, texts, &spent);
    observer.time("vxt", spent.lower);
    for (auto [stage, text] : {std::pair{"vxnv", texts.vxnv}, {"vxt", texts.vxt}})
      if (text && !text->empty())
        observer.text(stage, *text);
    if (!lowered)
      return lowered.takeError();
    std::optional<std::set<std::string>> chosen;
    if (choose)
      chosen = choose(lowered->kernel);
    auto done =
        emit(*lowered, [&](const std::string& symbol) { return !chosen || chosen->contains(symbol); }, observer);
    return done ? Result<artifact::Kernel>(std::move(lowered->kernel)) : done.takeError();
  }

  Result<Plan> doPlan(mlir::ModuleOp scheduled, const Observer& observer) override {
    target::nvidia::CompileTimes spent;
    auto lowered = target::nvidia::lowerKernel(scheduled, target_, {}, &spent);
    observer.time("vxt", spent.lower);
    if (!lowered)
      return lowered.takeError();
    if (lowered->kernel.absent.size() == 1) {  // nothing to wait for
      auto done = emit(*lowered, [](const std::string&) { return true; }, observer);
      return done ? Result<Plan>(Plan{std::move(lowered->kernel), {}}) : done.takeError();
    }
    return Plan{std::move(lowered->kernel), writeEntries(*lowered->entries)};
  }

  /// Adds the code of what is wanted.
  Result<void> emit(target::nvidia::LoweredKernel& lowered, const std::function<bool(const std::string&)>& wanted,
                    const Observer& observer) {
    std::string llvm, optimized;
    target::nvidia::CompileTexts texts;
    texts.llvm = observer.wants("llvm") ? &llvm : nullptr;
    texts.optimizedLlvm = observer.wants("optimized-llvm") ? &optimized : nullptr;
    target::nvidia::CompileTimes spent;
    auto done = target::nvidia::addCode(lowered, wanted, target_, texts, &spent);
    observer.time("llvm", spent.emit);
    observer.time("optimized-llvm", spent.optimize);
    observer.time("assembly", spent.codegen);
    for (auto [stage, text] : {std::pair{"llvm", texts.llvm}, {"optimized-llvm", texts.optimizedLlvm}})
      if (text && !text->empty())
        observer.text(stage, *text);
    if (done && observer.wants("assembly"))
      observer.text("assembly", std::string(lowered.kernel.code.begin(), lowered.kernel.code.end()));
    return done;
  }

  target::nvidia::Target target_;
};

class MetalBackEnd : public BackEnd {
public:
  explicit MetalBackEnd(std::string target) : target_(std::move(target)) {}

  std::string name() const override { return target_; }
  passes::TensorSchedule tensorSchedule() const override { return target::metal::tensorSchedule(); }

private:
  Result<artifact::Kernel> doCompile(mlir::ModuleOp scheduled, const Observer& observer, const Choose&) override {
    std::string vxt;
    auto compiled = target::metal::compileKernel(scheduled, target_, observer.wants("vxt") ? &vxt : nullptr);
    if (!vxt.empty())
      observer.text("vxt", vxt);
    if (compiled && observer.wants("assembly"))
      observer.text("assembly", std::string(compiled->code.begin(), compiled->code.end()));
    return compiled;
  }

  std::string target_;
};

}  // namespace

static void checkArtifact(const artifact::Kernel& kernel) {
  const Result<void> valid = artifact::validate(kernel);
  VORTEX_CHECK(valid, "%s", valid.error().message.c_str());
}

Result<artifact::Kernel> BackEnd::compile(mlir::ModuleOp scheduled, const Observer& observer, const Choose& choose) {
  auto compiled = doCompile(scheduled, observer, choose);
  if (compiled)
    checkArtifact(*compiled);
  return compiled;
}

Result<BackEnd::Plan> BackEnd::plan(mlir::ModuleOp scheduled, const Observer& observer) {
  auto planned = doPlan(scheduled, observer);
  if (planned)
    checkArtifact(planned->kernel);
  return planned;
}

Result<BackEnd::Plan> BackEnd::doPlan(mlir::ModuleOp scheduled, const Observer& observer) {
  auto compiled = doCompile(scheduled, observer, {});
  if (!compiled)
    return compiled.takeError();
  return Plan{std::move(compiled).value(), {}};
}

Result<std::vector<uint8_t>> compileEntry(const std::string& name, std::span<const uint8_t> entries,
                                          const std::string& symbol, uint32_t slotCount) {
  auto target = target::nvidia::createTarget(name);
  if (!target)
    return target.takeError();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  irgen::loadDialects(context);
  Failure failure;
  ErrorCollector errors(context, failure);
  llvm::StringRef bytes(reinterpret_cast<const char*>(entries.data()), entries.size());
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(bytes, mlir::ParserConfig(&context, /*verifyAfterParse=*/false));
  if (!module)
    return base::Error{"its entry points are damaged: " + failure.message};
  auto text = target::nvidia::compileEntry(*module, symbol, slotCount, *target);
  if (!text)
    return text.takeError();
  return std::vector<uint8_t>(text->begin(), text->end());
}

Result<std::unique_ptr<BackEnd>> createBackEnd(const std::string& name, const std::string& cpu, Effort effort) {
  if (name == "cpu") {
    auto target = target::cpu::codegen::createTarget({.cpu = cpu, .features = ""});
    if (!target)
      return target.takeError();
    if (effort == Effort::Quick)
      target->machine->setOptLevel(llvm::CodeGenOptLevel::None);
    return std::unique_ptr<BackEnd>(new CpuBackEnd(std::move(target).value()));
  }
  if (target::metal::isTarget(name))
    return std::unique_ptr<BackEnd>(new MetalBackEnd(name));
  auto target = target::nvidia::createTarget(name);
  if (!target)
    return target.takeError();
  return std::unique_ptr<BackEnd>(new NvidiaBackEnd(std::move(target).value()));
}

std::vector<std::string> targetNames() {
  std::vector<std::string> names = target::nvidia::targetNames();
  names.insert(names.begin(), "cpu");
  for (std::string& name : target::metal::targetNames())
    names.push_back(std::move(name));
  return names;
}

Result<std::vector<uint8_t>> assemble(artifact::Kernel& kernel, bool useCache) {
  if (target::metal::isTarget(kernel.target))
    return std::vector<uint8_t>();
  auto target = target::nvidia::createTarget(kernel.target);
  if (!target)
    return target.takeError();
  std::optional<artifact::Cache> cache;
  if (useCache)
    cache.emplace();
  return target::nvidia::assembleKernel(kernel, *target, useCache ? &*cache : nullptr);
}

const chip::Gpu* chipOf(const std::string& target) {
  return chip::findGpu(target::metal::isTarget(target) ? target::metal::chipName() : target);
}

std::string backEndIdentity(const std::string& target, const std::string& cpu) {
  return target == "cpu" ? target::cpu::codegen::identity({.cpu = cpu, .features = ""}) : target;
}

}  // namespace vortex::pipeline
