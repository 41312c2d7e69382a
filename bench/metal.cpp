// metal <case>: kernels in Metal source by vortex::metal on the CPU, a side of bench/metal.py in the protocol of peers/protocol.h.
//   naive|vec4|mat4 m k n (the lecture's kernels, B by columns) · tiled|fragments n · reduce n
//   own-product n · own-reduce n (kernels of .vx)
//   cold (source that no cache knows, to the end of its first dispatch) · cached (source that it knows, likewise)
#include "bench/peers/protocol.h"

#include <vortex/compiler.h>
#include <vortex/metal/metal.h>
#include <vortex/runtime.h>

#include <chrono>
#include <fstream>
#include <span>
#include <sstream>
#include <vector>

namespace MTL = vortex::metal::MTL;
namespace NS = vortex::metal::NS;

namespace {

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "metal: %s\n", text.c_str());
  std::exit(1);
}

std::string readFile(const std::string& name) {
  std::ifstream file(std::string(VORTEX_ROOT) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return file ? text.str() : (fail("cannot read " + name), "");
}

std::string textOf(const NS::Error* error) { return error ? error->localizedDescription()->utf8String() : "no reason"; }
NS::String* string(const std::string& text) { return NS::String::string(text.c_str(), NS::UTF8StringEncoding); }

/// A kernel with three buffers at most, of which the last is the output, and the sizes m, k, n behind them.
class Work {
public:
  Work(std::vector<size_t> counts, std::vector<uint32_t> sizes, MTL::Size grid, MTL::Size block)
      : devices_(NS::TransferPtr(MTL::CopyAllDevices())), device_(devices_->object<MTL::Device>(0)),
        queue_(NS::TransferPtr(device_->newCommandQueue())), sizes_(std::move(sizes)), grid_(grid), block_(block) {
    for (size_t i = 0; i < counts.size(); ++i) {
      buffers_.push_back(NS::TransferPtr(device_->newBuffer(counts[i] * 4, MTL::ResourceStorageModeShared)));
      if (i + 1 < counts.size())
        bench::fill(values(i), counts[i], static_cast<uint32_t>(i + 1));
    }
    outputs_ = counts.back();
  }

  void compile(const std::string& source, const std::string& kernel) {
    NS::Error* error = nullptr;
    const auto library = NS::TransferPtr(device_->newLibrary(string(source), nullptr, &error));
    if (!library)
      fail(textOf(error));
    const auto function = NS::TransferPtr(library->newFunction(string(kernel)));
    pipeline_ = NS::TransferPtr(device_->newComputePipelineState(function.get(), &error));
    if (!pipeline_)
      fail(textOf(error));
  }

  void dispatch() {
    auto* pool = NS::AutoreleasePool::alloc()->init();
    MTL::CommandBuffer* commands = queue_->commandBuffer();
    MTL::ComputeCommandEncoder* encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline_.get());
    for (size_t i = 0; i < buffers_.size(); ++i)
      encoder->setBuffer(buffers_[i].get(), 0, i);
    if (!sizes_.empty())
      encoder->setBytes(sizes_.data(), sizes_.size() * 4, buffers_.size());
    encoder->dispatchThreads(grid_, block_);
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    if (commands->status() != MTL::CommandBufferStatusCompleted)
      fail(textOf(commands->error()));
    pool->release();
  }

  void digest() const { bench::printDigest(values(buffers_.size() - 1), outputs_); }

private:
  float* values(size_t i) const { return static_cast<float*>(buffers_[i]->contents()); }

  NS::SharedPtr<NS::Array> devices_;
  MTL::Device* device_;
  NS::SharedPtr<MTL::CommandQueue> queue_;
  NS::SharedPtr<MTL::ComputePipelineState> pipeline_;
  std::vector<NS::SharedPtr<MTL::Buffer>> buffers_;
  std::vector<uint32_t> sizes_;
  MTL::Size grid_, block_;
  size_t outputs_ = 0;
};

int serve(Work work, const std::string& source, const std::string& kernel) {
  work.compile(source, kernel);
  return bench::serve([&] { work.dispatch(); }, [&] { work.digest(); });
}

Work product(uint32_t m, uint32_t k, uint32_t n, MTL::Size grid, MTL::Size block) {
  return Work({size_t{m} * k, size_t{k} * n, size_t{m} * n}, {m, k, n}, grid, block);
}

/// The lecture's first kernel on a product of 8 × 8; `isKnown`: with the same text every time.
int serveCompile(bool isKnown) {
  Work work = product(8, 8, 8, MTL::Size(8, 8, 1), MTL::Size(8, 1, 1));
  const std::string source = readFile("examples/metal/gemm_naive.metal");
  const auto mark = std::chrono::system_clock::now().time_since_epoch().count();
  int round = 0;
  const auto sample = [&] {
    work.compile(isKnown ? source : source + "// " + std::to_string(mark) + "." + std::to_string(++round), "gemm");
    work.dispatch();
  };
  return bench::serve(sample, [&] { work.digest(); });
}

template <class T> T need(vortex::Result<T> result) {
  return result ? std::move(result).value() : (fail(result.error().message), std::move(result).value());
}

/// A kernel of bench/kernels/NAME.vx on inputs of these extents. Its output is the last argument, or what it returns.
int serveOwn(const std::string& name, const std::vector<std::vector<int64_t>>& extents, bool returns) {
  vortex::Runtime runtime;
  vortex::Device device = need(runtime.open("cpu"));
  const auto program = vortex::Program::compile(name + ".vx", readFile("bench/kernels/" + name + ".vx"), {});
  const auto artifact = need(program.build(name, {.target = device.target()}));
  const auto kernel = need(device.load(artifact));
  auto stream = need(device.createStream());
  std::vector<vortex::Argument> arguments;
  std::vector<vortex::Tensor> tensors;
  for (const std::vector<int64_t>& each : extents) {
    std::vector<float> values(1);
    for (int64_t extent : each)
      values.resize(values.size() * static_cast<size_t>(extent));
    bench::fill(values.data(), values.size(), static_cast<uint32_t>(tensors.size() + 1));
    tensors.push_back(need(device.upload(std::span<const float>(values), each)));
    arguments.emplace_back(tensors.back());
  }
  auto prepared = need(stream.prepare(kernel, arguments));
  const auto sample = [&] {
    if (!stream.submit(prepared) || !stream.synchronize())
      fail("the launch failed");
  };
  return bench::serve(sample, [&] {
    const auto output = need(stream.read<float>(returns ? prepared.results()[0] : tensors.back()));
    bench::printDigest(output.data(), output.size());
  });
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("VORTEX_METAL_DEVICE", "cpu", 1);
  const std::string name = argc > 1 ? argv[1] : "";
  const auto size = [&](int i) { return static_cast<uint32_t>(argc > i ? std::atoi(argv[i]) : 512); };
  const uint32_t n = size(2);
  if (name == "cold" || name == "cached")
    return serveCompile(name == "cached");
  if (name == "naive" || name == "vec4" || name == "mat4") {
    const bool isWide = name == "mat4";
    const MTL::Size grid(isWide ? size(4) / 4 : size(4), n, 1),
        block = isWide ? MTL::Size(8, 8, 1) : MTL::Size(32, 1, 1);
    return serve(product(n, size(3), size(4), grid, block), readFile("examples/metal/gemm_" + name + ".metal"), "gemm");
  }
  const std::string products = "bench/kernels/products.metal";
  if (name == "tiled")
    return serve(product(n, n, n, MTL::Size(n, n, 1), MTL::Size(16, 16, 1)), readFile(products), name);
  if (name == "fragments")
    return serve(product(n, n, n, MTL::Size(n * 2, n / 16, 1), MTL::Size(32, 1, 1)), readFile(products), name);
  if (name == "reduce")
    return serve(Work({n, n / 256}, {}, MTL::Size(n, 1, 1), MTL::Size(256, 1, 1)),
                 readFile("bench/kernels/reduce.metal"), name);
  if (name == "own-product")
    return serveOwn("matmul", {{n, n}, {n, n}}, true);
  if (name == "own-reduce")
    return serveOwn("reduce", {{n}, {n / 256}}, false);
  fail("no case `" + name + "`");
}
