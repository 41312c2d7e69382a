#include "base/text.h"
#include "source/json.h"
#include "tools/vortex/command_build.h"
#include "tools/vortex/cpp_header.h"

#include <filesystem>

namespace vortex::tools {

std::vector<std::string> splitList(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

namespace {

/// A kernel's artifacts, one per target, in the order of the targets.
struct Built {
  std::string name;
  std::vector<artifact::Kernel> artifacts;
};

bool buildTarget(const Settings& settings, std::vector<Built>& built) {
  Session session(settings);
  if (!session.load(settings.files[0], lang::LaunchGrids::Possible))
    return false;
  const std::vector<const lang::Function*> kernels = chosenKernels(session);
  built.resize(kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::optional<irgen::Options> request = buildRequest(session, *kernels[i]);
    const auto compiled = request ? buildArtifact(session, *kernels[i], *request) : nullptr;
    if (!compiled)
      return false;
    built[i].name = kernels[i]->artifactName;
    built[i].artifacts.push_back(*compiled);
  }
  if (settings.time)
    session.printTimes();
  return !kernels.empty();
}

}  // namespace

int buildHeaders(const Settings& settings) {
  std::vector<Built> built;
  for (const std::string& target : splitList(settings.target)) {
    Settings one = settings;
    one.target = target;
    if (!checkTarget(settings, target) || !buildTarget(one, built))
      return 1;
  }
  const std::filesystem::path source = settings.files[0];
  BuildOutputs outputs;
  std::vector<std::string> reports;
  for (const Built& kernel : built) {
    const std::string path =
        (std::filesystem::path(settings.output) / base::concat(source.stem().string(), ".", kernel.name, ".hpp"))
            .string();
    outputs.add(path, cppHeader(kernel.artifacts, source.filename().string()));
    reports.push_back(settings.json ? base::concat("{\"kernel\": ", source::jsonString(kernel.name), ", \"files\": [",
                                                   source::jsonString(path), "]}")
                                    : base::concat(kernel.name, ": ", path, "\n"));
  }
  if (auto written = outputs.write(settings.output); !written)
    return failWith(settings, "E0801", written.error().message);
  if (!settings.json)
    reports = {base::join(reports, "")};
  writeReports(settings, reports);
  return 0;
}

}  // namespace vortex::tools
