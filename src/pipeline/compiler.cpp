#include "pipeline/compiler.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "ir/vx.h"
#include "lang/sema/dump.h"
#include "passes/narrow_math.h"
#include "pipeline/back_end.h"
#include "pipeline/build_id.h"
#include "pipeline/entry_source.h"
#include "pipeline/error_collector.h"
#include "pipeline/schedule.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace vortex::pipeline {

static constexpr Stage kStages[] = {
    {"irgen", "vx as generated from the source"},
    {"plan", "phases of whole-tensor kernels, their pieces, and which launches take them"},
    {"schedule", "vx as the back end gets it: phases with grids, canonical"},
    {"vxnv", "roles and rings of phases that have them (NVIDIA)"},
    {"vxt", "per-thread code (GPUs)"},
    {"llvm", "LLVM IR as emitted"},
    {"optimized-llvm", "LLVM IR after the optimiser"},
    {"assembly", "machine code as text; PTX for NVIDIA"},
};

std::span<const Stage> stages() { return kStages; }

Compiler::Compiler(const lang::Program& program, const source::SourceManager& sources, Options options)
    : program_(program), sources_(sources), options_(std::move(options)) {
  if (options_.useCache)
    cache_ = std::make_shared<artifact::Cache>();
}

Compiler::~Compiler() = default;

mlir::MLIRContext& Compiler::context() {
  if (!context_) {
    context_ = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
    irgen::loadDialects(*context_);
  }
  return *context_;
}

bool Compiler::wants(std::string_view stage) const {
  return std::any_of(options_.dumpAfter.begin(), options_.dumpAfter.end(),
                     [&](const std::string& name) { return name == stage || name == "all"; });
}

static std::string print(mlir::ModuleOp module, bool locations) {
  std::string text;
  llvm::raw_string_ostream out(text);
  mlir::OpPrintingFlags flags;
  if (locations)
    flags.enableDebugInfo();
  module.print(out, flags);
  return text;
}

void Compiler::dump(const lang::Function& kernel, std::string_view stage, mlir::ModuleOp module) {
  if (options_.dump && wants(stage))
    options_.dump(kernel.name, stage, print(module, false));
}

template <class Work> auto Compiler::timed(const lang::Function& kernel, std::string_view stage, Work work) {
  auto start = std::chrono::steady_clock::now();
  auto result = work();
  std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  times_.push_back({kernel.name, std::string(stage), spent.count()});
  return result;
}

bool Compiler::schedule(const lang::Function& kernel, mlir::ModuleOp module, Failure& failure) {
  if (!prepareTarget(failure))  // tile sizes are the target's
    return false;
  ErrorCollector errors(context(), failure);
  std::string plans;
  if (!timed(kernel, "schedule", [&] { return pipeline::schedule(module, target_->tensorSchedule(), plans); })) {
    if (failure.message.empty())
      failure.message = base::concat("`", kernel.name, "` cannot be scheduled");
    return false;
  }
  if (options_.dump && wants("plan"))
    options_.dump(kernel.name, "plan", plans);
  dump(kernel, "schedule", module);
  return true;
}

mlir::OwningOpRef<mlir::ModuleOp> Compiler::module(const lang::Function& kernel, const irgen::Options& request,
                                                   bool scheduled, Failure& failure) {
  ErrorCollector errors(context(), failure);
  auto module =
      timed(kernel, "irgen", [&] { return irgen::generateKernel(kernel, program_, sources_, context(), request); });
  if (!module) {
    if (failure.message.empty())
      failure.message = base::concat("`", kernel.name, "` cannot be compiled");
    return nullptr;
  }
  dump(kernel, "irgen", *module);
  mlir::PassManager passes(&context());
  passes.addPass(
      passes::createNarrowMathPass());  // before the schedule, and for the interpreter too: one program for all
  if (mlir::failed(passes.run(*module)))
    return nullptr;
  if (!scheduled)
    return module;
  return schedule(kernel, *module, failure) ? std::move(module) : nullptr;
}

bool Compiler::prepareTarget(Failure& failure) {
  if (target_)
    return true;
  auto target = createBackEnd(options_.target, options_.cpu);
  if (!target) {
    failure.message = target.error().message;
    return false;
  }
  target_ = std::move(target).value();
  return true;
}

static void addSizes(base::Hasher& hasher, const std::optional<std::array<int64_t, 3>>& sizes) {
  hasher.addNumber(sizes.has_value());
  for (int64_t size : sizes.value_or(std::array<int64_t, 3>{}))
    hasher.addNumber(static_cast<uint64_t>(size));
}

static std::string keyFor(const Coverage& coverage, const std::string& complete) {
  if (coverage.isComplete())
    return complete;
  base::Hasher hasher;
  hasher.addField("coverage").addField(complete).addNumber(coverage.isUsual);
  for (const Coverage::Extent& extent : coverage.extents)
    hasher.addNumber(extent.argument).addNumber(extent.dim).addNumber(static_cast<uint64_t>(extent.value));
  return hasher.finishHex();
}

/// Length of the kernel, the kernel, what its entry points are made of.
static std::vector<uint8_t> writePlan(const BackEnd::Plan& plan) {
  const std::vector<uint8_t> kernel = artifact::serialize(plan.kernel);
  const uint64_t length = kernel.size();
  std::vector<uint8_t> bytes(sizeof length);
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes.insert(bytes.end(), kernel.begin(), kernel.end());
  bytes.insert(bytes.end(), plan.entries.begin(), plan.entries.end());
  return bytes;
}

/// Nothing if the cache has no such plan.
static std::optional<BackEnd::Plan> readPlan(artifact::Cache& cache, const std::string& key) {
  const auto bytes = cache.get(key);
  uint64_t length = 0;
  if (!bytes || bytes->size() < sizeof length)
    return std::nullopt;
  std::memcpy(&length, bytes->data(), sizeof length);
  if (length > bytes->size() - sizeof length)
    return std::nullopt;
  const auto kernelEnd = bytes->begin() + static_cast<ptrdiff_t>(sizeof length + length);
  auto kernel = artifact::deserialize({bytes->begin() + sizeof length, kernelEnd});
  if (!kernel)
    return std::nullopt;
  return BackEnd::Plan{std::move(kernel).value(), {kernelEnd, bytes->end()}};
}

/// Everything irgen and the later stages read: the compiler, the target, the text and name of every source file (names are part of
/// messages of a kernel), which instance it is, and the request. Computed before irgen, so that a hit needs no MLIR.
std::string Compiler::cacheKey(const lang::Function& kernel, const irgen::Options& request) const {
  base::Hasher hasher;
  hasher.addField(buildId()).addField(options_.target).addField(backEndIdentity(options_.target, options_.cpu));
  hasher.addNumber(sources_.fileCount());
  for (uint32_t id = 0; id < sources_.fileCount(); ++id) {
    const source::SourceFile& file = sources_.file(source::FileId{id});
    hasher.addField(file.name()).addField(file.text());
  }
  hasher.addField(kernel.uniqueName).addNumber(kernel.nameRange.file.value).addNumber(kernel.nameRange.begin);
  // The instance in full: choices that its name does not show (where arguments live, `--dim`) differ here.
  hasher.addField(lang::dump(kernel, {.types = true, .uniformity = false}));
  for (const lang::DimBinding& dim : kernel.dims)
    hasher.addNumber(dim.constant.has_value()).addNumber(static_cast<uint64_t>(dim.constant.value_or(0)));
  hasher.addNumber(request.isGridGiven);
  addSizes(hasher, request.block);
  hasher.addNumber(request.dims.size());
  for (const std::optional<int64_t>& dim : request.dims)
    hasher.addNumber(dim.has_value()).addNumber(static_cast<uint64_t>(dim.value_or(0)));
  return hasher.finishHex();
}

bool Compiler::dumps() const {
  return options_.dump &&
         std::any_of(std::begin(kStages), std::end(kStages), [&](const Stage& s) { return wants(s.name); });
}

void Compiler::keep(const std::string& key, std::span<const uint8_t> bytes) {
  if (auto stored = cache_->put(key, bytes); !stored && options_.warn && !std::exchange(warnedCache_, true))
    options_.warn(stored.error().message);
}

mlir::OwningOpRef<mlir::ModuleOp> Compiler::scheduledModule(const lang::Function& kernel, const irgen::Options& request,
                                                            Failure& failure) {
  if (!prepareTarget(failure))
    return nullptr;
  auto generated = module(kernel, request, false, failure);
  if (!generated)
    return nullptr;
  if (!options_.reproducer.empty()) {
    if (auto written =
            base::writeFileAtomic(options_.reproducer, reproducerHead(target_->name()) + print(*generated, true));
        !written && options_.warn)
      options_.warn(written.error().message);
  }
  return schedule(kernel, *generated, failure) ? std::move(generated) : nullptr;
}

/// What `compile` makes with an observer; nothing and `failure` set if it fails.
template <class Compile>
auto Compiler::runBackEnd(const lang::Function& kernel, Failure& failure, const Compile& compile) {
  ErrorCollector errors(context(), failure);
  BackEnd::Observer observer;
  observer.wants = [&](std::string_view stage) { return options_.dump && wants(stage); };
  observer.text = [&](std::string_view stage, std::string_view text) { options_.dump(kernel.name, stage, text); };
  observer.time = [&](std::string_view stage, double spent) {
    times_.push_back({kernel.name, std::string(stage), spent});
  };
  auto compiled = compile(observer);
  if (!compiled && failure.message.empty())
    failure.message = compiled.error().message;
  return compiled;
}

std::shared_ptr<const artifact::Kernel> Compiler::compile(const lang::Function& kernel, const irgen::Options& request,
                                                          Failure& failure, const Coverage& coverage) {
  std::string key;
  if (cache_ && !dumps() && options_.reproducer.empty()) {
    auto cached = timed(kernel, "cache", [&]() -> Result<artifact::Kernel> {
      key = keyFor(coverage, cacheKey(kernel, request));
      auto bytes = cache_->get(key);
      return bytes ? artifact::deserialize(*bytes) : Error{"not in the cache"};
    });
    if (cached)
      return std::make_shared<const artifact::Kernel>(std::move(cached).value());
  }
  auto module = scheduledModule(kernel, request, failure);
  if (!module)
    return nullptr;
  BackEnd::Choose choose;
  if (!coverage.isComplete())
    choose = [&](artifact::Kernel& lowered) { return coverEntries(lowered, coverage); };
  auto compiled = runBackEnd(
      kernel, failure, [&](const BackEnd::Observer& observer) { return target_->compile(*module, observer, choose); });
  if (!compiled)
    return nullptr;
  if (!key.empty())
    keep(key, artifact::serialize(*compiled));
  return std::make_shared<const artifact::Kernel>(std::move(compiled).value());
}

Compiler::Plan Compiler::plan(const lang::Function& kernel, const irgen::Options& request, Failure& failure) {
  if (dumps() || !options_.reproducer.empty())  // of everything
    return {compile(kernel, request, failure), nullptr};
  const std::string key = base::Hasher().addField("plan").addField(cacheKey(kernel, request)).finishHex();
  auto finish = [&](BackEnd::Plan plan) -> Plan {
    std::shared_ptr<EntrySource> entries;
    if (!plan.entries.empty())
      entries = std::make_shared<EntrySource>(
          EntrySource::Plan{plan.kernel.target, key, plan.kernel.slotCount, std::move(plan.entries)}, cache_,
          options_.warn);
    return {std::make_shared<const artifact::Kernel>(std::move(plan.kernel)), std::move(entries)};
  };
  if (cache_)
    if (auto cached = timed(kernel, "cache", [&] { return readPlan(*cache_, key); }))
      return finish(*std::move(cached));
  auto module = scheduledModule(kernel, request, failure);
  if (!module)
    return {};
  auto planned =
      runBackEnd(kernel, failure, [&](const BackEnd::Observer& observer) { return target_->plan(*module, observer); });
  if (!planned)
    return {};
  if (cache_)
    keep(key, writePlan(*planned));
  return finish(std::move(planned).value());
}

std::string Compiler::text(const lang::Function& kernel, const irgen::Options& request, std::string_view stage,
                           Failure& failure, const Coverage& coverage) {
  bool isModule = stage == "irgen" || stage == "schedule";
  auto generated = module(kernel, request, stage != "irgen", failure);
  if (!generated)
    return {};
  if (isModule)
    return print(*generated, false);
  if (!prepareTarget(failure))
    return {};
  std::string text;
  BackEnd::Observer observer;
  observer.wants = [&](std::string_view name) { return name == stage; };
  observer.text = [&](std::string_view, std::string_view produced) { text = produced; };
  observer.time = [](std::string_view, double) {};
  BackEnd::Choose choose;
  if (stage == "vxnv" || stage == "vxt")  // before there is code
    choose = [](artifact::Kernel&) { return std::set<std::string>(); };
  else if (!coverage.isComplete())
    choose = [&](artifact::Kernel& lowered) { return coverEntries(lowered, coverage); };
  ErrorCollector errors(context(), failure);
  if (auto compiled = target_->compile(*generated, observer, choose); !compiled && failure.message.empty())
    failure.message = compiled.error().message;
  if (text.empty() && failure.message.empty())
    failure.message = base::concat("code for this target has no stage `", stage, "`; choose another target");
  return text;
}

}  // namespace vortex::pipeline
