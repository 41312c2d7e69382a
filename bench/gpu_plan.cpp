// gpu_plan FOLDER FILE.vxk…: what bench/gpu.py needs of GPU artifacts: FOLDER/NAME.ptx and FOLDER/NAME.json with the launch plan, size
// expressions as lists of [operation, value].
#include "artifact/artifact.h"

#include <fstream>
#include <functional>
#include <iostream>

using namespace vortex::artifact;

static std::string list(size_t count, const std::function<std::string(size_t)>& item) {
  std::string text = "[";
  for (size_t i = 0; i < count; ++i)
    text += (i ? "," : "") + item(i);
  return text + "]";
}

static std::string expression(const SizeExpr& size) {
  return list(size.steps.size(), [&](size_t i) {
    return "[" + std::to_string(static_cast<int>(size.steps[i].op)) + "," + std::to_string(size.steps[i].value) + "]";
  });
}

static std::string params(const std::vector<Param>& all) {
  return list(all.size(), [&](size_t i) {
    const Param& param = all[i];
    return "{\"name\":\"" + param.name + "\",\"type\":\"" + name(param.type) +
           "\",\"extents\":" + list(param.extents.size(), [&](size_t dim) { return expression(param.extents[dim]); }) +
           "}";
  });
}

static std::string plan(const Kernel& kernel) {
  return "{\"name\":\"" + kernel.name + "\",\"params\":" + params(kernel.params) +
         ",\"results\":" + params(kernel.results) + ",\"temporaries\":" + params(kernel.temporaries) + ",\"phases\":" +
         list(kernel.phases.size(),
              [&](size_t i) {
                const Phase& phase = kernel.phases[i];
                return "{\"symbol\":\"" + phase.symbol + "\",\"versions\":" +
                       list(phase.versions.size(),
                            [&](size_t v) {
                              return "[" + expression(phase.versions[v].when) + ",\"" + phase.versions[v].symbol +
                                     "\"]";
                            }) +
                       ",\"grid\":" + list(3, [&](size_t axis) { return expression(phase.grid[axis]); }) +
                       ",\"threads\":" + expression(phase.hardwareThreads) +
                       ",\"shared\":" + expression(phase.sharedBytes) + "}";
              }) +
         "}\n";
}

int main(int count, char** arguments) {
  for (int i = 2; i < count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(file)), {});
    auto kernel = deserialize(bytes);
    if (!kernel) {
      std::cerr << arguments[i] << ": " << kernel.error().message << "\n";
      return 1;
    }
    std::string path = std::string(arguments[1]) + "/" + kernel->name;
    std::ofstream(path + ".ptx")
        .write(reinterpret_cast<const char*>(kernel->code.data()), static_cast<std::streamsize>(kernel->code.size()));
    std::ofstream(path + ".json") << plan(*kernel);
  }
  return 0;
}
