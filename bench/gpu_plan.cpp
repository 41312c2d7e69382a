// gpu_plan FOLDER FILE.vxk…: what bench/gpu.py needs of GPU artifacts: FOLDER/NAME.ptx and FOLDER/NAME.json with the launch plan: "sizes" are
// rows [operator, value, slot or blocks of a cluster, operands…], elsewhere a size is the number of its row. Steps are described at steps().
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

static std::string sizes(const Kernel& kernel) {
  return list(kernel.sizes.rows().size(), [&](size_t i) {
    const vortex::size::Row& row = kernel.sizes.rows()[i];
    bool isArgument = vortex::size::isArgument(row.op);
    const int64_t value = isArgument                           ? static_cast<int64_t>(slotOf(kernel, row))
                          : row.op == vortex::size::Op::Device ? row.operands[0]
                                                               : row.value;
    std::string text = "[" + std::to_string(static_cast<int>(row.op)) + "," + std::to_string(value);
    for (uint32_t k = 0; k < vortex::size::arity(row.op); ++k)
      text += "," + std::to_string(row.operands[k]);
    return text + "]";
  });
}

static std::string expression(vortex::size::Id size) { return std::to_string(size.index); }

static std::string params(const std::vector<Param>& all) {
  return list(all.size(), [&](size_t i) {
    const Param& param = all[i];
    return "{\"name\":\"" + param.name + "\",\"type\":\"" + name(param.type) +
           "\",\"tensor\":" + (param.isTensor ? "true" : "false") +
           ",\"extents\":" + list(param.extents.size(), [&](size_t dim) { return expression(param.extents[dim]); }) +
           "}";
  });
}

static std::string maps(const Phase& phase) {
  return list(phase.maps.size(), [&](size_t i) {
    const TensorMap& map = phase.maps[i];
    return std::string("{\"type\":\"") + (map.roundToTf32 ? "tf32" : name(map.type)) +
           "\",\"address\":" + expression(map.address) +
           ",\"extents\":" + list(map.rank, [&](size_t dim) { return expression(map.extents[dim]); }) +
           ",\"strides\":" + list(map.rank - 1, [&](size_t dim) { return expression(map.byteStrides[dim]); }) +
           ",\"box\":" + list(map.rank, [&](size_t dim) { return std::to_string(map.box[dim]); }) +
           ",\"swizzle\":" + std::to_string(map.swizzleBytes) + "}";
  });
}

/// A phase's number, ["let", value], or [["case", needs, when, steps], …].
static std::string steps(const std::vector<Step>& all) {
  return list(all.size(), [&](size_t i) -> std::string {
    if (const auto* run = std::get_if<Run>(&all[i].what))
      return std::to_string(run->phase);
    if (const auto* let = std::get_if<Let>(&all[i].what))
      return "[\"let\"," + expression(let->value) + "]";
    const std::vector<Case>& cases = std::get<Choose>(all[i].what).cases;
    return list(cases.size(), [&](size_t c) {
      return "[\"" + cases[c].name + "\"," + expression(cases[c].needs) + "," + expression(cases[c].when) + "," +
             steps(cases[c].steps) + "]";
    });
  });
}

static std::string plan(const Kernel& kernel) {
  return "{\"name\":\"" + kernel.name + "\",\"sizes\":" + sizes(kernel) + ",\"params\":" + params(kernel.params) +
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
                       ",\"shared\":" + expression(phase.sharedBytes) + ",\"maps\":" + maps(phase) + ",\"written\":" +
                       list(phase.written.size(), [&](size_t t) { return std::to_string(phase.written[t]); }) + "}";
              }) +
         ",\"steps\":" + steps(kernel.steps) + "}\n";
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
