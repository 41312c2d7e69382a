// ours <case> [sizes]: the Vortex side of bench/cpu.py, speaking the protocol of peers/protocol.h. Kernels are those of bench/kernels.
//   matmul m [n k] · chain|silu|softmax|rmsnorm rows columns · reduce n · transpose n · compile (source to loaded code, no cache) · cached
#include "base/file.h"
#include "bench/peers/protocol.h"
#include "vortex/compiler.h"
#include "vortex/runtime.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <unistd.h>

namespace {

using vortex::Argument;
using vortex::Tensor;

template <class T> T need(vortex::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "ours: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

std::string kernelFile(const std::string& name) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  std::string folder(path, length > 0 ? static_cast<size_t>(length) : 0);
  for (int up = 0; up < 4; ++up)
    folder.resize(folder.rfind('/'));
  return folder + "/bench/kernels/" + name + ".vx";
}

/// Everything from text to a kernel in memory, with or without the on-disk cache.
vortex::Kernel compile(const std::string& name, const vortex::Device& device, bool useCache) {
  const std::string path = kernelFile(name);
  const vortex::Program program = vortex::Program::compile(path, need(vortex::base::readFile(path)));
  if (!program.ok()) {
    std::fputs(program.report().c_str(), stderr);
    std::exit(1);
  }
  return need(device.load(need(program.build(program.kernels().at(0).name, {.useCache = useCache}))));
}

struct Matrix {
  float* values;
  size_t count;
  Tensor tensor;
};

Matrix matrix(const vortex::Device& device, std::vector<int64_t> extents, uint32_t seed) {
  size_t count = 1;
  for (int64_t extent : extents)
    count *= static_cast<size_t>(extent);
  float* values = bench::allocate(count);
  if (seed)
    bench::fill(values, count, seed);
  return {values, count, need(device.wrap(std::span(values, count), extents))};
}

int serveLaunch(const vortex::Device& device, const std::string& name, std::vector<Argument> arguments,
                const Matrix& output, bool isResult) {
  vortex::Kernel kernel = compile(name, device, false);
  vortex::Stream stream = need(device.createStream());
  vortex::LaunchOptions options;
  if (isResult)
    options.results = {output.tensor};
  auto sample = [&] {
    need(stream.launch(kernel, arguments, options));
    if (auto done = stream.synchronize(); !done)
      std::exit(1);
  };
  return bench::serve(sample, [&] { bench::printDigest(output.values, output.count); });
}

int serveRows(const vortex::Device& device, const std::string& name, int64_t rows, int64_t columns) {
  Matrix x = matrix(device, {rows, columns}, 1), weight = matrix(device, {columns}, 2),
         out = matrix(device, {rows, columns}, 0);
  std::vector<Argument> arguments{x.tensor};
  if (name == "rmsnorm")
    arguments.emplace_back(weight.tensor);
  return serveLaunch(device, name, arguments, out, true);
}

int serveCompile(const vortex::Device& device, bool cached) {
  if (cached)
    compile("silu", device, true);
  return bench::serve([&] { compile("silu", device, cached); }, [] { std::puts("0 0"); });
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = argc > 1 ? argv[1] : "";
  auto size = [&](int i) -> int64_t { return argc > i ? std::atoll(argv[i]) : 1024; };
  vortex::Device device = need(vortex::Runtime().open("cpu"));
  if (name == "matmul") {
    int64_t m = size(2), n = argc > 3 ? size(3) : m, k = argc > 4 ? size(4) : m;
    Matrix a = matrix(device, {m, k}, 1), b = matrix(device, {k, n}, 2), c = matrix(device, {m, n}, 0);
    return serveLaunch(device, name, {a.tensor, b.tensor}, c, true);
  }
  if (name == "reduce") {
    int64_t n = size(2);
    Matrix data = matrix(device, {n}, 1), partial = matrix(device, {n / 256}, 0);
    return serveLaunch(device, name, {data.tensor, partial.tensor}, partial, false);
  }
  if (name == "transpose") {
    int64_t n = size(2);
    Matrix data = matrix(device, {n, n}, 1), out = matrix(device, {n, n}, 0);
    return serveLaunch(device, name, {data.tensor, out.tensor}, out, false);
  }
  if (name == "compile" || name == "cached")
    return serveCompile(device, name == "cached");
  if (name == "chain" || name == "silu" || name == "softmax" || name == "rmsnorm")
    return serveRows(device, name, size(2), size(3));
  std::fprintf(stderr, "ours: no case `%s`\n", name.c_str());
  return 2;
}
