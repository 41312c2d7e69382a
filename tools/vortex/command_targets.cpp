#include "base/text.h"
#include "chip/chip.h"
#include "pipeline/build_id.h"
#include "pipeline/compiler.h"
#include "source/json.h"
#include "tools/vortex/session.h"
#include "tools/vortex/settings.h"

namespace vortex::tools {

/// Every usable device; drivers that are there and broken become warnings.
static std::vector<hal::DeviceRef> findDevices() {
  hal::DriverList drivers;
  addDrivers(drivers);
  std::vector<Error> problems;
  std::vector<hal::DeviceRef> devices = drivers.devices(&problems);
  for (const Error& problem : problems)
    writeError(base::concat("warning: ", problem.message, "\n"));
  return devices;
}

static void printDevices(const std::vector<hal::DeviceRef>& devices) {
  writeOutput("devices (--device):\n");
  for (const hal::DeviceRef& device : devices) {
    const hal::DeviceInfo& info = device->info();
    const std::string target = info.target.starts_with("sm_") ? base::concat(" (", info.target, ")") : "";
    writeOutput(base::concat("  ", info.name, std::string(info.name.size() < 12 ? 12 - info.name.size() : 1, ' '),
                             info.product, target, ", ", info.workers, " workers, ", info.memoryBytes >> 20, " MiB\n"));
  }
}

int commandTargets(const Settings& settings) {
  const std::vector<hal::DeviceRef> devices = findDevices();
  if (settings.json) {
    std::string text = "[";
    for (const hal::DeviceRef& device : devices) {
      const hal::DeviceInfo& info = device->info();
      text += base::concat(text.size() > 1 ? ",\n " : "", "{\"device\": ", source::jsonString(info.name),
                           ", \"product\": ", source::jsonString(info.product),
                           ", \"target\": ", source::jsonString(info.target), ", \"memoryBytes\": ", info.memoryBytes,
                           ", \"workers\": ", info.workers, "}");
    }
    writeOutput(text + "]\n");
    return 0;
  }
  printDevices(devices);
  writeOutput("  interpreter the reference interpreter; `--check` uses it with all checks on\n"
              "targets (vortex build --target):\n"
              "  cpu         object file, C header and artifact for this machine or --cpu=<LLVM processor name>\n");
  for (const std::string& name : pipeline::targetNames())
    if (name.starts_with("metal"))
      writeOutput(base::concat("  ", name, "    Metal source and artifact; --device ", name,
                               " reads it back and runs it on the CPU\n"));
    else if (const chip::Gpu* gpu = chip::findGpu(name))
      writeOutput(base::concat("  ", name, std::string(12 - std::min<size_t>(11, name.size()), ' '),
                               "PTX and artifact for ", gpu->product,
                               " and later; .cubin and register counts where ptxas is found\n"));
  return 0;
}

int commandInfo(const Settings&) {
  writeOutput("vortex, build " + pipeline::buildId() + "\nstages (--dump-after=):\n");
  for (const pipeline::Stage& stage : pipeline::stages())
    writeOutput(base::concat("  ", stage.name, std::string(16 - std::min<size_t>(15, stage.name.size()), ' '),
                             stage.what, "\n"));
  for (const std::string& path : standardPaths())
    writeOutput("standard library: " + path + "\n");
  printDevices(findDevices());
  return 0;
}

}  // namespace vortex::tools
