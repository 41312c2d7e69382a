#include "vortex/compiler.h"

#include "artifact/artifact.h"
#include "base/text.h"
#include "lang/flow/front.h"
#include "lang/sema/element.h"
#include "pipeline/build_id.h"
#include "pipeline/entry_source.h"
#include "session/program_state.h"
#include "session/public_diagnostic.h"
#include "session/request.h"

namespace vortex {

using base::concat;

namespace {

uint32_t resultCount(lang::Type type) {
  if (!type || type->kind == lang::TypeKind::Unit)
    return 0;
  return type->kind == lang::TypeKind::Tuple ? static_cast<uint32_t>(type->elems.size()) : 1;
}

KernelParam describe(const lang::Variable& variable, const std::vector<std::string>& dimNames) {
  KernelParam param;
  param.name = variable.name;
  param.type = lang::text(variable.type, dimNames);
  param.isWritten = variable.type->kind == lang::TypeKind::Ref && variable.type->isMutable;
  const lang::Type type = lang::stripRef(variable.type);
  param.isTensor = type->isTensor();
  param.rank = type->rank();
  const lang::Type element = param.isTensor ? type->elem : type;
  if (element->kind == lang::TypeKind::Scalar)
    param.dtype = static_cast<DType>(session::toArtifact(element->scalar));
  return param;
}

}  // namespace

void Program::State::publish() {
  sink.sortByPosition();
  for (const diag::Diagnostic& diagnostic : sink.all())
    diagnostics.push_back(session::toPublic(diagnostic, sources));
  report = diag::renderText(sink.all(), sources);
}

pipeline::Compiler& Program::State::compiler(const std::string& target, bool useCache) {
  std::unique_ptr<pipeline::Compiler>& known = compilers[{target, useCache}];
  if (!known) {
    pipeline::Options options;
    options.target = target;
    options.useCache = useCache;
    known = std::make_unique<pipeline::Compiler>(*program, sources, std::move(options));
  }
  return *known;
}

const lang::Function* Program::State::find(std::string_view kernel) const {
  for (const lang::Function* candidate : program->kernels)
    if (candidate->uniqueName == kernel)
      return candidate;
  for (const lang::Function* candidate : program->kernels)
    if (candidate->name == kernel)
      return candidate;
  return nullptr;
}

Result<const lang::Function*> Program::State::require(std::string_view kernel) const {
  if (sink.hasErrors())
    return Error{report};
  if (const lang::Function* found = find(kernel))
    return found;
  std::vector<std::string> names;
  for (const lang::Function* candidate : program->kernels)
    names.push_back(candidate->name);
  return Error{
      concat("there is no kernel '", kernel, "'; there are ", names.empty() ? "none" : base::join(names, ", "))};
}

std::shared_ptr<Program::State> Program::State::of(const std::string& name, const std::string& text,
                                                   const CompileOptions& options,
                                                   const std::optional<lang::OutsideLaunch>& launch) {
  auto state = std::make_shared<State>();
  const source::FileId root = state->sources.addText(name, text);
  lang::AnalyzeOptions analysis;
  analysis.importPaths = options.importPaths;
  analysis.fixedDims = options.dims;
  analysis.launchGrids = options.isGridGiven ? lang::LaunchGrids::Always : lang::LaunchGrids::Possible;
  for (const KernelInstance& instance : options.instances)
    analysis.instances.push_back({instance.kernel, instance.arguments});
  analysis.launch = launch;
  state->isGridGiven = options.isGridGiven;
  const lang::flow::CheckOptions checks{.races = options.isChecked ? lang::flow::RacePolicy::Warn
                                                                   : lang::flow::RacePolicy::Report};
  state->program = lang::flow::analyze(root, state->sources, state->sink, analysis, checks);
  state->publish();
  return state;
}

Program Program::compile(std::string name, std::string text, const CompileOptions& options) {
  std::shared_ptr<State> state = State::of(name, text, options, std::nullopt);
  state->checkedFor = [name = std::move(name), text = std::move(text), options](const lang::OutsideLaunch& launch) {
    return State::of(name, text, options, launch);
  };
  return Program(std::move(state));
}

const std::string& Program::compilerId() { return pipeline::buildId(); }
bool Program::ok() const { return !state_->sink.hasErrors(); }
const std::vector<Diagnostic>& Program::diagnostics() const { return state_->diagnostics; }
const std::vector<Diagnostic>& Program::remarks() const { return state_->remarks; }
std::string Program::report() const { return state_->report; }

std::vector<KernelInfo> Program::kernels() const {
  std::vector<KernelInfo> infos;
  if (!ok())
    return infos;
  for (const lang::Function* kernel : state_->program->kernels) {
    KernelInfo info{
        kernel->name, kernel->uniqueName, {}, resultCount(kernel->resultType), session::fixedExtents(*kernel)};
    for (const lang::Variable* param : kernel->params)
      info.params.push_back(describe(*param, kernel->dimNames()));
    for (const lang::GenericArgument& argument : kernel->genericArguments)
      info.genericArguments.push_back({argument.value, argument.param, argument.dim});
    info.isRepresentative = !kernel->examples.empty();
    infos.push_back(std::move(info));
  }
  return infos;
}

std::vector<std::string> Program::dimensions() const {
  const std::set<std::string> names = session::dimensionsOf(*state_->program);
  return {names.begin(), names.end()};
}

std::vector<std::pair<std::string, std::string>> Program::files() const {
  std::vector<std::pair<std::string, std::string>> files;
  for (size_t i = 0; i < state_->sources.fileCount(); ++i) {
    const source::SourceFile& file = state_->sources.file(source::FileId{static_cast<uint32_t>(i)});
    files.emplace_back(file.name(), file.text());
  }
  return files;
}

Result<Program::State::Asked> Program::State::ask(std::string_view kernel, const BuildRequest& request) {
  // What is wrong with the kernel, or with others, in blocks and grids of the program is none of a launch with its own.
  if (const lang::Function* candidate = find(kernel); candidate && candidate->kernel && checkedFor)
    if (const auto block = session::uncheckedBlock(*candidate, request); block || (isGridGiven && sink.hasErrors())) {
      const lang::OutsideLaunch launch{candidate->uniqueName, block ? block : request.block};
      std::shared_ptr<State>& other = others[{launch.kernel, launch.block}];
      if (!other)
        other = checkedFor(launch);
      return other->ask(launch.kernel, request);
    }
  const Result<const lang::Function*> found = require(kernel);
  if (!found)
    return found.error();
  Result<irgen::Options> options = session::toIrgen(**found, request);
  if (!options)
    return options.takeError();
  const Result<std::string> target = session::compileTarget(request.target);
  if (!target)
    return target.error();
  return Asked{**found, *std::move(options), compiler(*target, request.useCache)};
}

Result<std::vector<uint8_t>> Program::build(std::string_view kernel, const BuildRequest& request) const {
  const std::scoped_lock lock(state_->mutex);
  const Result<State::Asked> asked = state_->ask(kernel, request);
  if (!asked)
    return asked.error();
  pipeline::Failure failure;
  const auto compiled = asked->compiler.compile(asked->kernel, asked->options, failure);
  if (!compiled)
    return session::toPublic(failure);
  return artifact::serialize(*compiled);
}

static EntrySource entriesOf(std::shared_ptr<pipeline::EntrySource> source) {
  return [source = std::move(source)](const std::string& entry) { return source->make(entry); };
}

Result<KernelPlan> Program::plan(std::string_view kernel, const BuildRequest& request) const {
  const std::scoped_lock lock(state_->mutex);
  const Result<State::Asked> asked = state_->ask(kernel, request);
  if (!asked)
    return asked.error();
  pipeline::Failure failure;
  const pipeline::Compiler::Plan planned = asked->compiler.plan(asked->kernel, asked->options, failure);
  if (!planned.kernel)
    return session::toPublic(failure);
  KernelPlan plan{artifact::serialize(*planned.kernel), nullptr, {}};
  if (planned.entries) {
    plan.entries = vortex::entriesOf(planned.entries);
    plan.kept = planned.entries->kept();
  }
  return plan;
}

Result<EntrySource> Program::entriesOf(std::span<const uint8_t> kept, bool useCache) {
  auto source = pipeline::EntrySource::of(kept, useCache ? std::make_shared<artifact::Cache>() : nullptr);
  return source ? vortex::entriesOf(*std::move(source)) : Result<EntrySource>(source.takeError());
}

Result<std::string> Program::text(std::string_view kernel, std::string_view stage, const BuildRequest& request) const {
  const std::scoped_lock lock(state_->mutex);
  const Result<State::Asked> asked = state_->ask(kernel, request);
  if (!asked)
    return asked.error();
  std::vector<std::string> names;
  for (const pipeline::Stage& known : pipeline::stages())
    names.emplace_back(known.name);
  if (std::find(names.begin(), names.end(), stage) == names.end())
    return Error{concat("there is no stage '", stage, "'; there are ", base::join(names, ", "))};
  pipeline::Failure failure;
  std::string text = asked->compiler.text(asked->kernel, asked->options, stage, failure);
  if (!failure.message.empty())
    return session::toPublic(failure);
  return text;
}

}  // namespace vortex
