// The measurements of GPU MODE's lecture 31, "Beginner's Guide to Metal Kernels": three kernels for C = A·B in f32, A by rows, B by columns, each run 200
// times by itself. Here with our own product beside them, and results that are checked.
//
//   gemm_study [device] [--size MxNxK] [--dispatches COUNT]
//
// MTL_CAPTURE_ENABLED=1 writes one more run of each kernel to NAME.gputrace.json.
#include <vortex/metal/metal.h>

#include <vortex/compiler.h>
#include <vortex/runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>
#include <sstream>

namespace MTL = vortex::metal::MTL;
namespace NS = vortex::metal::NS;

namespace {

struct Options {
  std::string device = "cpu";
  uint32_t m = 32, n = 4128, k = 4096;
  int dispatches = 200;
};

[[noreturn]] void fail(const std::string& text) {
  std::cerr << "gemm_study: " << text << std::endl;
  std::exit(1);
}

std::string textOf(const NS::Error* error) {
  return error ? error->localizedDescription()->utf8String() : "no reason was given";
}

NS::String* string(const std::string& text) { return NS::String::string(text.c_str(), NS::UTF8StringEncoding); }

std::string readFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return file ? text.str() : (fail("cannot read " + path), "");
}

/// Mean seconds of a call.
double measureTime(int count, const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i)
    work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / count;
}

struct Problem {
  Options options;
  std::vector<float> a, b;

  explicit Problem(const Options& chosen)
      : options(chosen), a(size_t{chosen.m} * chosen.k), b(size_t{chosen.n} * chosen.k) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::vector<float>* matrix : {&a, &b})
      for (float& value : *matrix)
        value = uniform(random);
  }

  /// Compares some thousand elements with sums in f64.
  void check(const std::string& name, const float* c) const {
    const size_t count = size_t{options.m} * options.n;
    for (size_t at = 0; at < count; at += count / 2000 + 1) {
      const float *row = &a[at / options.n * options.k], *column = &b[at % options.n * options.k];
      double sum = 0, magnitude = 0;
      for (uint32_t k = 0; k < options.k; ++k) {
        sum += double{row[k]} * column[k];
        magnitude += std::abs(double{row[k]} * column[k]);
      }
      if (!(std::abs(c[at] - sum) <= 1e-6 * magnitude))
        fail(name + ": element " + std::to_string(at) + " is " + std::to_string(c[at]) + ", not " +
             std::to_string(sum));
    }
  }

  /// The lecture's line, which counts M·N·K operations, and the usual count of as many multiplications and additions.
  void report(const std::string& name, double seconds) const {
    const double gflops = 1e-9 * options.n * options.m * options.k / seconds;
    std::cout << "Perf of " << name << " dim " << options.m << "x" << options.n << "x" << options.k << " is " << gflops
              << " GFLOPs" << std::endl;
    std::cout << "        counted as 2*M*N*K: " << 2 * gflops << " GFLOP/s" << std::endl;
  }
};

struct Shader {
  std::string name, file;
  uint32_t columns;  ///< of C, for each thread
  MTL::Size group;   ///< no threads: as many rows as fit
};

class Study {
public:
  Study(MTL::Device* device, const Problem& problem)
      : device_(device), problem_(problem), queue_(NS::TransferPtr(device->newCommandQueue())),
        a_(sharedBuffer(problem.a.size(), problem.a.data())), b_(sharedBuffer(problem.b.size(), problem.b.data())),
        c_(sharedBuffer(size_t{problem.options.m} * problem.options.n, nullptr)) {}

  void run(const Shader& shader) {
    const auto pipeline = makePipeline(readFile(STUDY_FOLDER "/../" + shader.file));
    auto* c = static_cast<float*>(c_->contents());
    std::fill(c, c + size_t{problem_.options.m} * problem_.options.n, NAN);
    dispatch(pipeline.get(), shader);
    problem_.check(shader.name, c);
    const double seconds = measureTime(problem_.options.dispatches, [&] { dispatch(pipeline.get(), shader); });
    problem_.report(shader.name, seconds);
    capture(pipeline.get(), shader);
  }

private:
  NS::SharedPtr<MTL::Buffer> sharedBuffer(size_t count, const float* values) const {
    const size_t bytes = count * sizeof(float);
    auto made = NS::TransferPtr(values ? device_->newBuffer(values, bytes, MTL::ResourceStorageModeShared)
                                       : device_->newBuffer(bytes, MTL::ResourceStorageModeShared));
    if (!made)
      fail("Can't allocate " + std::to_string(bytes) + " bytes on GPU");
    return made;
  }

  NS::SharedPtr<MTL::ComputePipelineState> makePipeline(const std::string& source) const {
    NS::Error* error = nullptr;
    const auto options = NS::TransferPtr(MTL::CompileOptions::alloc()->init());
    options->setLanguageVersion(MTL::LanguageVersion3_1);
    const auto library = NS::TransferPtr(device_->newLibrary(string(source), options.get(), &error));
    if (!library)
      fail("Failed to compile: " + textOf(error));
    const auto function = NS::TransferPtr(library->newFunction(string("gemm")));
    auto made = NS::TransferPtr(device_->newComputePipelineState(function.get(), &error));
    if (!made)
      fail("Failed to make a pipeline: " + textOf(error));
    return made;
  }

  void dispatch(const MTL::ComputePipelineState* pipeline, const Shader& shader) const {
    const Options& size = problem_.options;
    auto* pool = NS::AutoreleasePool::alloc()->init();
    MTL::CommandBuffer* commands = queue_->commandBuffer();
    MTL::ComputeCommandEncoder* encoder = commands->computeCommandEncoder();
    const uint32_t sizes[] = {size.m, size.k, size.n};
    encoder->setComputePipelineState(pipeline);
    encoder->setBuffer(a_.get(), 0, 0);
    encoder->setBuffer(b_.get(), 0, 1);
    encoder->setBuffer(c_.get(), 0, 2);
    encoder->setBytes(sizes, sizeof sizes, 3);
    const NS::UInteger rows = std::min<NS::UInteger>(pipeline->maxTotalThreadsPerThreadgroup(), size.m);
    encoder->dispatchThreads(MTL::Size(size.n / shader.columns, size.m, 1),
                             shader.group.width ? shader.group : MTL::Size(rows, 1, 1));
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    if (commands->status() != MTL::CommandBufferStatusCompleted)
      fail(shader.name + ": " + textOf(commands->error()));
    pool->release();
  }

  void capture(const MTL::ComputePipelineState* pipeline, const Shader& shader) const {
    MTL::CaptureManager* manager = MTL::CaptureManager::sharedCaptureManager();
    if (!manager->supportsDestination(MTL::CaptureDestinationGPUTraceDocument))
      return;
    NS::Error* error = nullptr;
    const auto descriptor = NS::TransferPtr(MTL::CaptureDescriptor::alloc()->init());
    descriptor->setCaptureObject(queue_.get());
    descriptor->setDestination(MTL::CaptureDestinationGPUTraceDocument);
    descriptor->setOutputURL(NS::URL::fileURLWithPath(string(shader.name + ".gputrace")));
    if (!manager->startCapture(descriptor.get(), &error))
      fail(textOf(error));
    dispatch(pipeline, shader);
    manager->stopCapture();
  }

  MTL::Device* device_;
  const Problem& problem_;
  NS::SharedPtr<MTL::CommandQueue> queue_;
  NS::SharedPtr<MTL::Buffer> a_, b_, c_;
};

/// The same by our own compiler, on memory of the device.
vortex::Result<void> runOwn(const Problem& problem) {
  const Options& size = problem.options;
  vortex::Runtime runtime;
  auto device = runtime.open(size.device);
  if (!device)
    return device.takeError();
  vortex::CompileOptions compile;
  compile.dims = {{"M", size.m}, {"N", size.n}, {"K", size.k}};
  const auto program = vortex::Program::compile("product.vx", readFile(STUDY_FOLDER "/product.vx"), compile);
  auto artifact = program.build("product", {.target = device->target()});
  if (!artifact)
    return artifact.takeError();
  auto kernel = device->load(*artifact);
  auto stream = device->createStream();
  auto a = device->upload(std::span(problem.a), {size.m, size.k});
  auto b = device->upload(std::span(problem.b), {size.n, size.k});
  if (!kernel || !stream || !a || !b)
    return !kernel ? kernel.takeError() : !stream ? stream.takeError() : !a ? a.takeError() : b.takeError();
  auto prepared = stream->prepare(*kernel, std::vector<vortex::Argument>{*a, *b});
  if (!prepared)
    return prepared.takeError();
  vortex::Result<void> done;
  const auto once = [&] {
    if (done && (done = stream->submit(*prepared)))
      done = stream->synchronize();
  };
  once();
  const double seconds = measureTime(size.dispatches, once);
  if (!done)
    return done;
  auto c = stream->read<float>(prepared->results()[0]);
  if (!c)
    return c.takeError();
  problem.check("product.vx", c->data());
  problem.report("product.vx", seconds);
  return {};
}

Options readOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--size" && std::sscanf(value.c_str(), "%ux%ux%u", &options.m, &options.n, &options.k) == 3)
      ++i;
    else if (word == "--dispatches" && (options.dispatches = std::atoi(value.c_str())) > 0)
      ++i;
    else if (!word.starts_with("-"))
      options.device = word;
    else
      fail("usage: gemm_study [device] [--size MxNxK] [--dispatches COUNT]");
  }
  if (options.m == 0 || options.n == 0 || options.k == 0 || options.n % 4 || options.k % 4)
    fail("N and K are multiples of 4: the kernels read four numbers at once");
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = readOptions(argc, argv);
  ::setenv("VORTEX_METAL_DEVICE", options.device.c_str(), 1);
  const auto devices = NS::TransferPtr(MTL::CopyAllDevices());
  if (devices->count() == 0)
    fail("Metal is not supported on `" + options.device + "`");
  const Problem problem(options);
  Study study(devices->object<MTL::Device>(0), problem);
  for (const Shader& shader : {Shader{"naive", "gemm_naive.metal", 1, {}}, Shader{"vec4", "gemm_vec4.metal", 1, {}},
                               Shader{"mat4", "gemm_mat4.metal", 4, {8, 8, 1}}})
    study.run(shader);
  if (const vortex::Result<void> own = runOwn(problem); !own)
    fail(own.error().message);
}
