#include "tools/vortex/metal_run.h"

#include "base/file.h"
#include "base/text.h"
#include "host/place_named.h"
#include "interpreter/interpreter.h"
#include "pipeline/schedule.h"
#include "runtime/hal/launch.h"
#include "session/request.h"
#include "tools/vortex/command_build.h"
#include "tools/vortex/session.h"

#include <algorithm>

namespace vortex::tools {

using base::Error;
using base::Result;

/// A message at a place that is named by file, line and column.
static int failAt(const Settings& settings, const std::string& id, const std::string& message, const std::string& file,
                  uint32_t line, uint32_t column) {
  diag::Diagnostic diagnostic;
  diagnostic.id = diag::findId(id) ? id : "E0704";
  diagnostic.message = message;
  source::SourceManager sources;
  if (!file.empty() && sources.addFile(file))
    if (source::SourceRange place = host::placeNamed(sources, file, {line, column}); place.isValid())
      diagnostic.labels.push_back({place, "", true});
  writeError(settings.json ? diag::renderJson({&diagnostic, 1}, sources) : diag::renderText(diagnostic, sources, {}));
  return 1;
}

/// What is given and the kernel or the program has no place for.
static Result<void> findPlaces(const MetalLaunch& launch, const msl::Response& response) {
  auto kernel = std::ranges::find(response.kernels, launch.request.kernel, &msl::Kernel::name);
  auto refuse = [](const std::string& of, const char* what, uint32_t index) {
    return Error{base::concat(of, " has no [[", what, "(", index, ")]]")};
  };
  auto has = [&](msl::ParameterKind kind, uint32_t index) {
    return std::ranges::any_of(kernel->parameters,
                               [&](const msl::Parameter& each) { return each.kind == kind && each.index == index; });
  };
  if (kernel == response.kernels.end())
    return {};
  const std::string name = base::concat("the kernel `", kernel->name, "`");
  for (const auto& [index, buffer] : launch.buffers)
    if (!has(msl::ParameterKind::Buffer, index))
      return refuse(name, "buffer", index);
  for (const auto& [index, bytes] : launch.request.threadgroupBytes)
    if (!has(msl::ParameterKind::Threadgroup, index))
      return refuse(name, "threadgroup", index);
  for (const auto& [index, value] : launch.request.constants)
    if (std::ranges::find(response.constants, index, &msl::Constant::index) == response.constants.end())
      return refuse("the program", "function_constant", index);
  return {};
}

Result<std::vector<MetalArgument>> metalArguments(MetalLaunch& launch, const msl::Response& response) {
  if (auto found = findPlaces(launch, response); !found)
    return found.takeError();
  std::vector<MetalArgument> arguments;
  for (const msl::BufferUse& use : response.buffers) {
    auto given = launch.buffers.find(use.index);
    if (given == launch.buffers.end())
      return Error{base::concat("[[buffer(", use.index, ")]] is not given: --buffer ", use.index,
                                "=TYPE:VALUES, TYPE[COUNT] or FILE.npy")};
    arguments.push_back({&given->second.bytes, &use, 0});
  }
  if (std::ranges::any_of(launch.grid, [](int64_t extent) { return extent < 1; }))
    return Error{"the grid is empty"};
  const auto& block = *launch.request.block;
  int64_t threads = block[0] * block[1] * block[2];
  auto kernel = std::find_if(response.kernels.begin(), response.kernels.end(),
                             [&](const msl::Kernel& each) { return each.name == launch.request.kernel; });
  int64_t most = kernel != response.kernels.end() && kernel->maxThreads ? kernel->maxThreads : 1024;
  if (threads < 1 || threads > most)
    return Error{base::concat("a threadgroup of ", block[0], " by ", block[1], " by ", block[2],
                              " threads does not fit: it has 1 to ", most)};
  for (int64_t extent : launch.grid)
    arguments.push_back({nullptr, nullptr, extent});
  for (int64_t extent : block)
    arguments.push_back({nullptr, nullptr, extent});
  return arguments;
}

static bool wantsText(const Settings& settings, std::string_view stage) {
  return std::any_of(settings.dumpAfter.begin(), settings.dumpAfter.end(),
                     [&](const std::string& name) { return name == stage || name == "all"; });
}

static void keepModule(const Settings& settings, const std::string& target, const msl::Response& response) {
  if (settings.reproducer.empty())
    return;
  if (auto written = base::writeFileAtomic(settings.reproducer, pipeline::reproducerHead(target) + response.module);
      !written)
    writeError(base::concat("warning: ", written.error().message, "\n"));
}

std::shared_ptr<const artifact::Kernel> compileMetal(const Settings& settings, const std::string& target,
                                                     const std::string& kernel, const msl::Response& response,
                                                     pipeline::Failure& failure) {
  keepModule(settings, target, response);
  pipeline::ModuleCompiler compiler(target, settings.cpu, !settings.noCache);
  if (settings.dumpAfter.empty() && settings.emit.empty() && !settings.time)
    return compiler.compile(response.module, failure);
  const std::string emitted = settings.emit.empty() ? "" : stageOf(settings.emit);
  pipeline::BackEnd::Observer observer;
  observer.wants = [&](std::string_view stage) { return stage == emitted || wantsText(settings, stage); };
  observer.text = [&](std::string_view stage, std::string_view text) {
    if (wantsText(settings, stage))
      writeStage(kernel, stage, text);
    if (stage == emitted)
      writeOutput(text);
  };
  observer.time = [&](std::string_view stage, double milliseconds) {
    if (settings.time)
      writeTime(kernel, std::string(stage), milliseconds);
  };
  return compiler.compile(response.module, failure, &observer);
}

static int interpret(const Settings& settings, const std::string& kernel, const msl::Response& response,
                     std::vector<MetalArgument>& arguments) {
  keepModule(settings, "cpu", response);
  if (wantsText(settings, "irgen"))
    writeStage(kernel, "irgen", response.module);
  pipeline::ModuleCompiler compiler("cpu", settings.cpu, false);
  pipeline::Failure failure;
  auto module = compiler.parse(response.module, failure);
  if (!module)
    return failWith(settings, "E0713", failure.message);
  auto interpreter = interpreter::Interpreter::create(*module);
  if (!interpreter)
    return failWith(settings, "E0713", interpreter.error().message);
  std::vector<interpreter::Argument> values;
  for (MetalArgument& each : arguments)
    values.push_back(each.bytes
                         ? interpreter::Argument::tensor(
                               each.bytes->data(), {static_cast<int64_t>(each.bytes->size() / each.use->elemBytes)})
                         : interpreter::Argument::bits(static_cast<uint64_t>(each.number)));
  interpreter::Options options;
  options.check = settings.check;
  options.seed = settings.seed;
  options.maxSteps = settings.check ? settings.maxSteps : 0;
  auto findings = interpreter->run(values, options);
  if (!findings)
    return failWith(settings, "E0712", findings.error().message);
  for (const interpreter::Finding& finding : *findings)
    return failAt(settings, interpreter::idOf(finding), finding.message, finding.location.file, finding.location.line,
                  finding.location.column);
  return 0;
}

int launchMetal(const Settings& settings, const std::string& name, const msl::Response& response,
                std::vector<MetalArgument>& arguments) {
  if (settings.check || settings.device == "interpreter")
    return interpret(settings, name, response, arguments);
  hal::DriverList drivers;
  addDrivers(drivers);
  auto device = drivers.find(settings.device);
  if (!device)
    return failWith(settings, "E0802", device.error().message + "; `interpreter` runs on the reference interpreter");
  auto target = session::compileTarget((*device)->info().target, settings.device);
  if (!target)
    return failWith(settings, "E0802", target.error().message);
  pipeline::Failure failure;
  auto compiled = compileMetal(settings, *target, name, response, failure);
  if (!compiled)
    return failAt(settings, "E0713", failure.message, failure.file, failure.line, failure.column);
  auto kernel = (*device)->load(compiled);
  auto stream = (*device)->createStream();
  if (!kernel || !stream)
    return failWith(settings, "E0708", kernel ? stream.error().message : kernel.error().message);
  std::vector<hal::Argument> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    MetalArgument& each = arguments[i];
    if (!each.bytes) {
      values.push_back(hal::Scalar{compiled->params[i].type, static_cast<uint64_t>(each.number)});
      continue;
    }
    auto buffer = (*device)->allocate(each.bytes->size());
    if (!buffer)
      return failWith(settings, "E0708", buffer.error().message);
    if (auto copied = (*stream)->write(*buffer, 0, each.bytes->data(), each.bytes->size()); !copied)
      return failWith(settings, "E0708", copied.error().message);
    int64_t count = static_cast<int64_t>(each.bytes->size() / each.use->elemBytes);
    values.push_back(hal::Tensor{*buffer, 0, compiled->params[i].type, {count}, {}});
  }
  auto prepared = hal::prepare(**device, *kernel, values);
  if (!prepared)
    return failWith(settings, "E0712", prepared.error().message);
  if (auto submitted = (*stream)->submit(*prepared); !submitted)
    return failWith(settings, "E0708", submitted.error().message);
  if (auto done = (*stream)->synchronize(); !done)
    return failWith(settings, "E0708", done.error().message);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].bytes && arguments[i].use->isWritten)
      if (auto read = (*stream)->read(arguments[i].bytes->data(), std::get<hal::Tensor>(values[i]).buffer, 0,
                                      arguments[i].bytes->size());
          !read)
        return failWith(settings, "E0708", read.error().message);
  return 0;
}

}  // namespace vortex::tools
