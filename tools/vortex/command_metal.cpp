#include "tools/vortex/command_metal.h"

#include "base/text.h"
#include "session/metal_read.h"
#include "tools/vortex/command_build.h"
#include "tools/vortex/metal_run.h"

#include <filesystem>

namespace vortex::tools {

bool isMetalFile(const std::string& path) { return path.ends_with(".metal"); }

static void report(const Settings& settings, const msl::Request& request, const msl::Response& response) {
  source::SourceManager sources;
  diag::DiagnosticSink sink;
  session::reportProblems(request, response, sources, sink);
  writeError(settings.json ? diag::renderJson(sink.all(), sources) : diag::renderText(sink.all(), sources, {}));
}

/// Nothing after messages.
static std::optional<msl::Response> read(const Settings& settings, const msl::Request& request) {
  auto response = session::readMetal(request, !settings.noCache);
  if (!response) {
    failWith(settings, "E0903", response.error().message);
    return std::nullopt;
  }
  if (response->problems.empty())
    return *std::move(response);
  report(settings, request, *response);
  return std::nullopt;
}

/// Nothing after a message: several kernels and no name.
static std::optional<msl::Response> readOne(const Settings& settings, msl::Request& request) {
  request.lowersOnlyKernel = true;
  auto response = read(settings, request);
  if (!response || !response->module.empty()) {
    if (response && request.kernel.empty())
      request.kernel = response->kernels[0].name;
    return response;
  }
  std::vector<std::string> names;
  for (const msl::Kernel& kernel : response->kernels)
    names.push_back("`" + kernel.name + "`");
  failWith(settings, "E0807",
           names.empty() ? "`" + request.file + "` has no kernel"
                         : "choose one with --kernel; there are " + base::join(names, ", "));
  return std::nullopt;
}

int runMetal(const Settings& settings) {
  auto launch = readMetalLaunch(settings);
  if (!launch)
    return failWith(settings, "E0904", launch.error().message);
  if (!launch->request.block)
    launch->request.block = {std::min<int64_t>(launch->grid[0], 256), 1, 1};
  launch->request.checksBarriers = settings.check;
  auto response = readOne(settings, launch->request);
  if (!response)
    return 1;
  auto arguments = metalArguments(*launch, *response);
  if (!arguments)
    return failWith(settings, "E0904", arguments.error().message);
  if (int status = launchMetal(settings, launch->request.kernel, *response, *arguments))
    return status;
  for (uint32_t index : launch->prints)
    writeOutput(printBuffer(launch->buffers[index]) + "\n");
  for (const auto& [index, path] : launch->saves)
    if (auto saved = saveBuffer(launch->buffers[index], path); !saved)
      return failWith(settings, "E0801", saved.error().message);
  return 0;
}

static int buildKernel(const Settings& settings, const msl::Request& request, BuildOutputs& outputs,
                       std::vector<std::string>& reports) {
  auto response = read(settings, request);
  if (!response)
    return 1;
  if (settings.emit == "vx")
    return writeOutput(response->module), 0;
  pipeline::Failure failure;
  auto compiled = compileMetal(settings, settings.target, request.kernel, *response, failure);
  if (!compiled)
    return failWith(settings, "E0713", base::concat("`", request.kernel, "`: ", failure.message));
  if (!settings.emit.empty())
    return 0;
  artifact::Kernel built = *compiled;
  const auto files = collectFiles(settings, built, std::filesystem::path(request.file).stem().string(), outputs);
  if (!files)
    return 1;
  reports.push_back(buildReport(settings, built, *files, 0));
  return 0;
}

int buildMetal(const Settings& settings) {
  if (!checkTarget(settings, settings.target))
    return 1;
  auto launch = readMetalLaunch(settings);
  if (!launch)
    return failWith(settings, "E0904", launch.error().message);
  std::vector<std::string> kernels{launch->request.kernel};
  if (launch->request.kernel.empty()) {
    auto response = read(settings, launch->request);
    if (!response)
      return 1;
    kernels.clear();
    for (const msl::Kernel& kernel : response->kernels)
      kernels.push_back(kernel.name);
    if (kernels.empty())
      return failWith(settings, "E0807", "`" + launch->request.file + "` has no kernel");
  }
  BuildOutputs outputs;
  std::vector<std::string> reports;
  int status = 0;
  for (const std::string& kernel : kernels) {
    launch->request.kernel = kernel;
    status |= buildKernel(settings, launch->request, outputs, reports);
  }
  if (!settings.emit.empty() || status != 0)
    return status;
  if (auto written = outputs.write(settings.output); !written)
    return failWith(settings, "E0801", written.error().message);
  writeReports(settings, reports);
  return 0;
}

int checkMetal(const Settings& settings, const std::string& path) {
  Settings one = settings;
  one.files = {path};
  auto launch = readMetalLaunch(one);
  if (!launch)
    return failWith(settings, "E0801", launch.error().message);
  auto response = read(settings, launch->request);
  if (!response)
    return 1;
  constexpr size_t kMost = 8;  // a library may have thousands of instances of few templates
  constexpr uint64_t kMostThreadgroupBytes = 32 << 10;
  int status = 0;
  for (size_t i = 0; i < std::min(response->kernels.size(), kMost); ++i) {
    const msl::Kernel& kernel = response->kernels[i];
    msl::Request request = launch->request;
    request.kernel = kernel.name;
    request.isCheck = true;
    for (const msl::Parameter& parameter : kernel.parameters)
      if (parameter.kind == msl::ParameterKind::Threadgroup)
        request.threadgroupBytes.try_emplace(parameter.index, 16384);
    const auto lowered = read(settings, request);
    if (lowered && lowered->staticThreadgroupBytes > kMostThreadgroupBytes) {
      msl::Response large;
      large.problems.push_back({"E0904",
                                base::concat("`", kernel.name, "` has ", lowered->staticThreadgroupBytes,
                                             " bytes of threadgroup memory; Apple's GPUs have ", kMostThreadgroupBytes),
                                kernel.place.file,
                                kernel.place.offset,
                                kernel.place.offset,
                                {}});
      report(settings, request, large);
    }
    status |= lowered && lowered->staticThreadgroupBytes <= kMostThreadgroupBytes ? 0 : 1;
  }
  return status;
}

}  // namespace vortex::tools
