#include "vortex/metal_program.h"

#include "artifact/artifact.h"
#include "base/text.h"
#include "pipeline/module_compiler.h"
#include "session/metal_read.h"
#include "session/public_diagnostic.h"
#include "session/request.h"

#include <algorithm>
#include <mutex>

namespace vortex {

struct MetalProgram::State {
  std::mutex mutex;  ///< compilers are for one thread at a time
  msl::Request request;
  msl::Response response;
  bool useCache = true;
  bool isGood = false;
  std::vector<Diagnostic> diagnostics;
  std::string report;
  std::map<std::string, std::unique_ptr<pipeline::ModuleCompiler>> compilers;  ///< by target

  Result<msl::Response> read(std::string_view kernel, const MetalBuildRequest& build) const {
    if (!isGood)
      return Error{report};
    msl::Request one = request;
    one.kernel = kernel;
    one.block = build.block;
    one.isWhole = build.isWhole;
    one.threadgroupBytes = build.threadgroupBytes;
    one.constants = build.constants;
    auto read = session::readMetal(one, useCache);
    if (!read || read->problems.empty())
      return read;
    source::SourceManager sources;
    diag::DiagnosticSink sink;
    session::reportProblems(one, *read, sources, sink);
    return Error{diag::renderText(sink.all(), sources)};
  }

  static MetalCode describe(const msl::Response& response) {
    MetalCode code;
    code.staticThreadgroupBytes = response.staticThreadgroupBytes;
    for (const msl::BufferUse& use : response.buffers)
      code.buffers.push_back({use.index, use.elemBytes, use.isWritten});
    return code;
  }
};

MetalProgram MetalProgram::compile(std::string name, std::string text, const MetalCompileOptions& options) {
  auto state = std::make_shared<State>();
  state->useCache = options.useCache;
  state->request.file = std::move(name);
  state->request.text = std::move(text);
  state->request.includeFolders = options.includePaths;
  state->request.definitions = options.definitions;
  auto read = session::readMetal(state->request, options.useCache);
  if (!read) {
    state->diagnostics.push_back({"E0903", "error", read.error().message, {}, {}, {}, read.error().message});
    state->report = read.error().message + "\n";
    return MetalProgram(std::move(state));
  }
  state->response = *std::move(read);
  state->isGood = state->response.problems.empty();
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  session::reportProblems(state->request, state->response, sources, sink);
  for (const diag::Diagnostic& diagnostic : sink.all())
    state->diagnostics.push_back(session::toPublic(diagnostic, sources));
  state->report = diag::renderText(sink.all(), sources);
  return MetalProgram(std::move(state));
}

bool MetalProgram::ok() const { return state_->isGood; }
const std::vector<Diagnostic>& MetalProgram::diagnostics() const { return state_->diagnostics; }
std::string MetalProgram::report() const { return state_->report; }

std::vector<MetalKernelInfo> MetalProgram::kernels() const {
  std::vector<MetalKernelInfo> infos;
  for (const msl::Kernel& kernel : state_->response.kernels) {
    MetalKernelInfo& info = infos.emplace_back(kernel.name, std::vector<MetalParameter>(), kernel.maxThreads);
    for (const msl::Parameter& each : kernel.parameters)
      info.parameters.push_back(
          {static_cast<MetalParameterKind>(each.kind), each.name, each.type, each.index, each.leastBytes});
  }
  return infos;
}

std::vector<MetalConstant> MetalProgram::constants() const {
  std::vector<MetalConstant> all;
  for (const msl::Constant& constant : state_->response.constants)
    all.push_back({constant.name, constant.index});
  return all;
}

Result<MetalCode> MetalProgram::lower(std::string_view kernel, const MetalBuildRequest& request) const {
  const std::scoped_lock lock(state_->mutex);
  const Result<msl::Response> read = state_->read(kernel, request);
  return read ? Result<MetalCode>(State::describe(*read)) : read.error();
}

Result<MetalCode> MetalProgram::build(std::string_view kernel, const MetalBuildRequest& request) const {
  const std::scoped_lock lock(state_->mutex);
  const Result<std::string> target = session::compileTarget(request.target);
  if (!target)
    return target.error();
  const Result<msl::Response> read = state_->read(kernel, request);
  if (!read)
    return read.error();
  std::unique_ptr<pipeline::ModuleCompiler>& compiler = state_->compilers[*target];
  if (!compiler)
    compiler = std::make_unique<pipeline::ModuleCompiler>(*target, "native", state_->useCache);
  pipeline::Failure failure;
  const auto compiled = compiler->compile(read->module, failure);
  if (!compiled)
    return session::toPublic(failure);
  MetalCode code = State::describe(*read);
  code.artifact = artifact::serialize(*compiled);
  return code;
}

}  // namespace vortex
