#include "tools/vortex/session.h"

#include "lang/flow/front.h"

#include "base/nearest.h"
#include "base/text.h"
#include "chip/chip.h"
#include "host/evaluator.h"
#include "runtime/cpu/cpu_driver.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/null/null_driver.h"
#include "session/request.h"
#include "tools/vortex/device_backend.h"
#include "tools/vortex/interpreter_backend.h"
#include "tools/vortex/metal_model.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <unistd.h>

namespace vortex::tools {

void writeOutput(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return;
  if (errno != EPIPE)
    std::fprintf(stderr, "error: cannot write to the standard output: %s\n", std::strerror(errno));
  std::_Exit(1);
}

void writeError(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void writeStage(std::string_view kernel, std::string_view stage, std::string_view text) {
  writeError(base::concat("// ---- ", kernel, " after ", stage, "\n", text, "\n"));
}

void writeTime(const std::string& kernel, const std::string& stage, double milliseconds) {
  char line[160];
  std::snprintf(line, sizeof line, "%-20s %-16s %8.3f ms\n", kernel.c_str(), stage.c_str(), milliseconds);
  writeError(line);
}

static void write(const Settings& settings, diag::Severity severity, std::string_view id, const std::string& message) {
  diag::Diagnostic diagnostic;
  diagnostic.severity = severity;
  diagnostic.id = id;
  diagnostic.message = message;
  source::SourceManager none;
  if (settings.json)
    writeError(diag::renderJson({&diagnostic, 1}, none));
  else
    writeError(diag::renderText(diagnostic, none, {.color = diag::terminalTakesColor(STDERR_FILENO)}));
}

std::string didYouMean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string close = base::nearest(word, candidates);
  return close.empty() ? "" : "; did you mean `" + close + "`?";
}

int failWith(const Settings& settings, std::string_view id, const std::string& message) {
  write(settings, diag::Severity::Error, id, message);
  return 1;
}

void tell(const Settings& settings, std::string_view id, const std::string& message) {
  write(settings, diag::Severity::Note, id, message);
}

std::string nothingMarked(const Settings& settings, std::string_view attribute) {
  const std::string name = settings.filter.empty() ? "" : base::concat(" whose name contains `", settings.filter, "`");
  return base::concat("`", base::join(settings.files, "`, `"), "`: there is nothing marked ", attribute, name);
}

std::vector<std::string> standardPaths() {
  std::error_code error;
  auto program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<std::string> paths;
  // The source tree (build/bin/vortex), then an installed bundle (bin/vortex, share/vortex/std).
  for (auto folder : {program / "../../std", program / "../std", program / "../share/vortex/std"})
    if (std::filesystem::is_directory(folder, error))
      paths.push_back(folder.lexically_normal().string());
  return paths;
}

void addDrivers(hal::DriverList& drivers) {
  // Opening the NVIDIA driver takes up to a second: it comes last, and only names that the others do not know reach it.
  drivers.add(cpu::createDriver());
  drivers.add(null_device::createDriver());
  drivers.add(createMetalModel());
  drivers.add(cuda::createDriver());
}

bool Session::load(const std::string& path, lang::LaunchGrids launchGrids) {
  auto start = std::chrono::steady_clock::now();
  auto file = sources_.addFile(path);
  if (!file) {
    failWith(settings_, "E0801", file.error().message);
    return false;
  }
  lang::AnalyzeOptions options;
  options.importPaths = standardPaths();
  options.fixedDims = settings_.dims;
  options.launchGrids = launchGrids;
  if (const chip::Gpu* gpu = chip::findGpu(settings_.target)) {
    options.sharedBytes = gpu->sharedBytesPerBlock;
    options.target = std::string(gpu->name);
  } else {
    for (const std::string& name : pipeline::targetNames())
      if (const chip::Gpu* other = chip::findGpu(name); other && other->sharedBytesPerBlock > options.sharedBytes) {
        options.sharedBytes = other->sharedBytesPerBlock;
        options.target = name;
        options.isSharedAdvice = true;
      }
  }
  lang::flow::CheckOptions checks{.races = settings_.races, .times = settings_.time ? &checkTimes_ : nullptr};
  if (settings_.check && checks.races == lang::flow::RacePolicy::Report)
    checks.races = lang::flow::RacePolicy::Warn;
  program_ = lang::flow::analyze(*file, sources_, sink_, options, checks);
  frontMs_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return flush() && checkDims();
}

/// `--dim` must name dimensions that there are, each with one value.
bool Session::checkDims() {
  const std::set<std::string> known = session::dimensionsOf(*program_);
  std::map<std::string_view, int64_t> values;
  for (const auto& [name, value] : settings_.dims)
    if (const int64_t first = values.emplace(name, value).first->second; first != value) {
      failWith(
          settings_, "E0805",
          base::concat("--dim ", name, "=", first, " and --dim ", name, "=", value, ": a dimension has one value"));
      return false;
    } else if (!known.contains(name)) {
      failWith(settings_, "E0805",
               base::concat("--dim ", name, "=", value, ": no kernel has a dimension `", name, "`",
                            known.empty() ? "" : "; there are " + base::join(known, ", ")));
      return false;
    }
  return true;
}

bool Session::flush() {
  bool ok = !sink_.hasErrors();
  sink_.sortByPosition();
  if (settings_.json) {
    if (!sink_.all().empty() || !ok)
      writeError(diag::renderJson(sink_.all(), sources_));
  } else {
    writeError(diag::renderText(sink_.all(), sources_, {.color = diag::terminalTakesColor(STDERR_FILENO)}));
  }
  sink_.clear();
  return ok;
}

pipeline::Compiler& Session::compiler() {
  if (compiler_)
    return *compiler_;
  pipeline::Options options;
  options.target = target_.empty() ? settings_.target : target_;
  options.cpu = settings_.cpu;
  options.useCache = !settings_.noCache;
  options.dumpAfter = settings_.dumpAfter;
  options.reproducer = settings_.reproducer;
  options.dump = writeStage;
  options.warn = [](std::string_view message) { writeError(base::concat("warning: ", message, "\n")); };
  compiler_ = std::make_unique<pipeline::Compiler>(*program_, sources_, std::move(options));
  return *compiler_;
}

host::Backend* Session::backend() {
  if (backend_)
    return backend_.get();
  auto output = [](std::string_view text) { writeOutput(text); };
  if (settings_.check || settings_.device == "interpreter") {
    backend_ = std::make_unique<InterpreterBackend>(
        compiler(),
        InterpreterOptions{settings_.check, settings_.checks == "fast", settings_.seed, settings_.maxSteps, output});
    return backend_.get();
  }
  hal::DriverList drivers;
  addDrivers(drivers);
  auto device = drivers.find(settings_.device);
  if (!device) {
    failWith(settings_, "E0802", device.error().message + "; `interpreter` runs on the reference interpreter");
    return nullptr;
  }
  const hal::DeviceInfo& info = device.value()->info();
  const std::string named = base::concat("'", info.name, "' (", info.product, ")");
  if (auto target = session::compileTarget(info.target, named))
    target_ = *target;
  else
    return failWith(settings_, "E0802", target.error().message), nullptr;
  auto created = DeviceBackend::create(std::move(device).value(), compiler(), output);
  if (!created) {
    failWith(settings_, "E0802", created.error().message);
    return nullptr;
  }
  backend_ = std::move(created).value();
  return backend_.get();
}

int Session::run(const lang::Function& function) {
  host::Backend* device = backend();
  if (!device)
    return 1;
  host::Options options;
  options.arguments = settings_.programArguments;
  options.sources = &sources_;
  options.reportsOverflow = settings_.check;
  options.output = [](std::string_view text) { writeOutput(text); };
  int status = host::run(function, *device, sink_, options);
  if (!flush() && status == 0)
    status = 1;
  return status;
}

void Session::printTimes() const {
  writeError(base::concat("parse and check      ", frontMs_, " ms\n"));
  for (const lang::flow::CheckTime& time : checkTimes_) {
    char line[160];
    std::snprintf(line, sizeof line, "%-20s %-26s %8.3f ms  ", time.kernel.c_str(), std::string(time.check).c_str(),
                  time.milliseconds);
    writeError(base::concat("  ", line, time.counts, "\n"));
  }
  if (!compiler_)
    return;
  double total = frontMs_;
  for (const pipeline::StageTime& time : compiler_->times()) {
    writeTime(time.kernel, time.stage, time.milliseconds);
    total += time.milliseconds;
  }
  char line[64];
  std::snprintf(line, sizeof line, "%-37s %8.3f ms\n", "total", total);
  writeError(line);
}

}  // namespace vortex::tools
