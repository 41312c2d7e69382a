// gemm_ir_bench [sizes M N K …] : the generated f32 product against OpenBLAS in one process, alternating, medians of
// the ratio. Options: --threads=1,2 --seconds=2 --mc= --kc= --nc= --mr= --unroll= --asm=FILE. Set OPENBLAS_CORETYPE
// before starting.
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "target/cpu/gemm/testing/strided.h"

namespace {
using namespace vortex::target::cpu;
using namespace vortex::target::cpu::gemm;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// One thread is timed by its processor time, which other programs disturb less.
double clockFor(uint32_t threads) {
  if (threads > 1)
    return now();
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

using Sgemm = void(int order, int transA, int transB, int m, int n, int k, float alpha, const float* a, int lda,
                   const float* b, int ldb, float beta, float* c, int ldc);

struct OpenBlas {
  Sgemm* sgemm = nullptr;
  void (*setThreads)(int) = nullptr;
  const char* (*coreName)() = nullptr;
  OpenBlas() {
    void* library = dlopen("libopenblas.so.0", RTLD_NOW);
    if (!library)
      return;
    sgemm = reinterpret_cast<Sgemm*>(dlsym(library, "cblas_sgemm"));
    setThreads = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"));
    coreName = reinterpret_cast<const char* (*)()>(dlsym(library, "openblas_get_corename"));
  }
};

/// Two persistent threads that take block numbers from a counter, like the runtime's pool.
struct Workers {
  explicit Workers(uint32_t count) : count(count) {
    for (uint32_t i = 1; i < count; i++)
      threads.emplace_back([this, i] { serve(i); });
  }
  ~Workers() {
    stop = true, generation++, generation.notify_all();
    for (std::thread& t : threads)
      t.join();
  }
  template <typename Body> void parallel(uint64_t blocks, Body body) {
    std::function<void(uint64_t, uint32_t)> work = body;
    task = &work, total = blocks, next = 0, done = 0;
    generation++, generation.notify_all();
    drain(0);
    while (done.load() + 1 < count)
      ;
  }
  void drain(uint32_t worker) {
    for (uint64_t i; (i = next++) < total;)
      (*task)(i, worker);
  }
  void serve(uint32_t worker) {
    for (uint64_t seen = 0;;) {
      for (uint32_t spin = 0; generation.load() == seen && spin < 20000; spin++)
        ;
      generation.wait(seen);  // asleep while the peer runs
      seen++;
      if (stop)
        return;
      drain(worker);
      done++;
    }
  }
  uint32_t count;
  std::vector<std::thread> threads;
  std::function<void(uint64_t, uint32_t)>* task = nullptr;
  uint64_t total = 0;
  std::atomic<uint64_t> next{0}, generation{0};
  std::atomic<uint32_t> done{0};
  std::atomic<bool> stop{false};
};

struct Options {
  std::vector<uint32_t> threads = {1, 2};
  double seconds = 2;
  uint32_t mc = 0, kc = 0, nc = 0, mr = 0, unroll = 0;
  std::string assembly;
  std::vector<uint64_t> sizes;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; i++) {
    const std::string text = argv[i];
    auto number = [&](const char* name, uint32_t& field) {
      if (text.rfind(name, 0) == 0)
        field = static_cast<uint32_t>(std::strtoul(text.c_str() + std::strlen(name), nullptr, 10));
    };
    number("--mc=", o.mc), number("--kc=", o.kc), number("--nc=", o.nc), number("--mr=", o.mr),
        number("--unroll=", o.unroll);
    if (text == "--threads=1")
      o.threads = {1};
    else if (text == "--threads=2")
      o.threads = {2};
    else if (text.rfind("--seconds=", 0) == 0)
      o.seconds = std::atof(text.c_str() + 10);
    else if (text.rfind("--asm=", 0) == 0)
      o.assembly = text.substr(6);
    else if (text[0] != '-')
      o.sizes.push_back(std::strtoull(text.c_str(), nullptr, 10));
  }
  if (o.sizes.empty())
    o.sizes = {1024, 1024, 1024, 2048, 2048, 2048};
  return o;
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

void product(const Kernels& kernels, Workers& workers, const Arguments& arguments, std::vector<AlignedBytes>& scratch) {
  const Plan& plan = kernels.plan;
  const bool direct = plan.usesDirect(arguments.m, arguments.n, arguments.k);
  if (!direct) {
    const uint64_t panels = (arguments.n + plan.nr() - 1) / plan.nr(), group = 16;
    workers.parallel((panels + group - 1) / group, [&](uint64_t i, uint32_t) {
      kernels.packB(&arguments, i * group, std::min((i + 1) * group, panels));
    });
  }
  const uint64_t tileRows = direct ? plan.directMc : plan.mc, tileColumns = direct ? plan.directNc : plan.nc;
  const uint64_t rows = (arguments.m + tileRows - 1) / tileRows,
                 columns = (arguments.n + tileColumns - 1) / tileColumns;
  workers.parallel(rows * columns, [&](uint64_t i, uint32_t worker) {
    (direct ? kernels.directBlock : kernels.packedBlock)(&arguments, scratch[worker].data(), i / columns, rows,
                                                         i % columns, columns);
  });
}

void measure(const codegen::Target& target, const OpenBlas& blas, const Options& o, uint64_t m, uint64_t n, uint64_t k,
             uint32_t threads) {
  Plan plan = choosePlan(target.vector, {}, 4, {m, n, k});
  plan.mc = o.mc ? o.mc : plan.mc, plan.kc = o.kc ? o.kc : plan.kc, plan.nc = o.nc ? o.nc : plan.nc;
  plan.mr = o.mr ? o.mr : plan.mr, plan.unroll = o.unroll ? o.unroll : plan.unroll;
  const Configuration configuration;
  std::string assembly;
  const double beforeCompile = now();
  const Kernels kernels = compile(target, plan, configuration, o.assembly.empty() ? nullptr : &assembly);
  const double compileMs = (now() - beforeCompile) * 1e3;
  if (!o.assembly.empty())
    std::ofstream(o.assembly) << assembly;
  auto matrix = [](uint64_t size) {
    std::vector<float> values(size);
    for (uint64_t i = 0; i < size; i++)
      values[i] = static_cast<float>((i * 7919) % 1013) / 1013.0f - 0.5f;
    return values;
  };
  const std::vector<float> a = matrix(m * k), b = matrix(k * n);
  std::vector<float> c(m * n), expected(m * n);
  AlignedBytes packed(plan.packedElements(n, k) * 4);
  std::vector<AlignedBytes> scratch;
  for (uint32_t i = 0; i < threads; i++)
    scratch.emplace_back(plan.scratchBytes(true));
  const Arguments arguments{a.data(), b.data(), c.data(), packed.data(), m, n, k, k, 1, n, 1, n};
  if (blas.sgemm)
    blas.setThreads(static_cast<int>(threads));
  Workers workers(threads);
  std::vector<double> ours, theirs;
  const double flops = 2.0 * double(m) * double(n) * double(k);
  const uint64_t repeat = std::max<uint64_t>(1, static_cast<uint64_t>(2e7 / flops));
  const double start = now();
  while (now() - start < o.seconds || ours.size() < 7) {
    double t0 = clockFor(threads);
    for (uint64_t i = 0; i < repeat; i++)
      product(kernels, workers, arguments, scratch);
    ours.push_back((clockFor(threads) - t0) / double(repeat));
    t0 = clockFor(threads);
    for (uint64_t i = 0; i < repeat && blas.sgemm; i++)
      blas.sgemm(101, 111, 111, int(m), int(n), int(k), 1, a.data(), int(k), b.data(), int(n), 0, expected.data(),
                 int(n));
    theirs.push_back((clockFor(threads) - t0) / double(repeat));
  }
  double worst = 0;
  for (uint64_t i = 0; i < m * n; i++)
    worst = std::max(worst, std::fabs(double(c[i]) - expected[i]));
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); i++)
    ratios.push_back(theirs[i] / ours[i]);
  std::printf("%5llu %5llu %5llu  threads %u  ours %8.2f GF/s  openblas %8.2f GF/s  ratio %.3f  (best %.2f / %.2f)  "
              "max diff %.1e  compile %.1f ms (opt %.1f, emit %.1f)\n",
              (unsigned long long)m, (unsigned long long)n, (unsigned long long)k, threads, flops / median(ours) * 1e-9,
              flops / median(theirs) * 1e-9, median(ratios), flops / *std::min_element(ours.begin(), ours.end()) * 1e-9,
              flops / *std::min_element(theirs.begin(), theirs.end()) * 1e-9, worst, compileMs,
              kernels.code->optimizeMs(), kernels.code->emitMs());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const auto target = codegen::createTarget();
  if (!target) {
    std::fprintf(stderr, "%s\n", target.error().message.c_str());
    return 1;
  }
  const OpenBlas blas;
  std::printf("target %s, OpenBLAS core %s\n", target->cpu.c_str(), blas.coreName ? blas.coreName() : "(not found)");
  for (uint32_t threads : options.threads)
    for (size_t i = 0; i + 2 < options.sizes.size(); i += 3)
      measure(*target, blas, options, options.sizes[i], options.sizes[i + 1], options.sizes[i + 2], threads);
  return 0;
}
