// math_accuracy [function…] [--step=N] [--cpu=NAME]: largest error of each f32 function over every N-th bit pattern
// (default 1: all 2^32), against the C library's f64 functions. The table in accuracy.md is its output.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "target/cpu/math/testing/compile.h"
#include "target/cpu/math/testing/reference.h"

namespace {
using namespace vortex::target::cpu;
using namespace vortex::target::cpu::math;

struct Named {
  const char* name;
  Unary function;
};
constexpr Named kFunctions[] = {
#define VORTEX_NAMED(id, name, ...) {name, Unary::id},
    VORTEX_FLOAT_FUNCTIONS(VORTEX_NAMED)
#undef VORTEX_NAMED
};

struct Worst {
  double ulp = 0;
  float at = 0;
};

Worst measure(ElementFunction* run, Unary function, uint64_t first, uint64_t last, uint64_t step) {
  constexpr uint64_t kBatch = 4096;
  std::vector<float> x(kBatch), out(kBatch);
  Worst worst;
  for (uint64_t at = first; at < last; at += kBatch * step) {
    for (uint64_t i = 0; i < kBatch; i++)
      x[i] = std::bit_cast<float>(static_cast<uint32_t>(at + i * step));
    run(x.data(), x.data(), out.data(), kBatch);
    for (uint64_t i = 0; i < kBatch; i++) {
      const double error = ulpError32(out[i], reference(function, x[i]));
      if (error > worst.ulp)
        worst = {error, x[i]};
    }
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t step = 1;
  std::string cpu = "native";
  std::vector<std::string> names;
  for (int i = 1; i < argc; i++) {
    if (std::strncmp(argv[i], "--step=", 7) == 0)
      step = std::strtoull(argv[i] + 7, nullptr, 10);
    else if (std::strncmp(argv[i], "--cpu=", 6) == 0)
      cpu = argv[i] + 6;
    else
      names.push_back(argv[i]);
  }
  auto target = codegen::createTarget({.cpu = cpu, .features = ""});
  if (!target || !target->runsOnHost) {
    std::fprintf(stderr, "cannot run code for '%s' here\n", cpu.c_str());
    return 1;
  }
  std::printf("| function | largest error, ULP | at | (%s, step %llu)\n", target->cpu.c_str(),
              static_cast<unsigned long long>(step));
  for (const Named& named : kFunctions) {
    if (!names.empty() && std::find(names.begin(), names.end(), named.name) == names.end())
      continue;
    llvm::LLVMContext context;
    auto* f32 = llvm::Type::getFloatTy(context);
    auto code =
        compileElements(context, *target, f32, f32, 8, [&](llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value*) {
          return emitUnary(b, target->vector, named.function, x);
        });
    auto* run = code->entry<ElementFunction>("elements");
    const uint64_t end = uint64_t(1) << 32;
    Worst halves[2];
    std::thread other([&] { halves[1] = measure(run, named.function, end / 2, end, step); });
    halves[0] = measure(run, named.function, 0, end / 2, step);
    other.join();
    const Worst worst = halves[0].ulp > halves[1].ulp ? halves[0] : halves[1];
    std::printf("| %s | %.3f | %a\n", named.name, worst.ulp, worst.at);
    std::fflush(stdout);
  }
  return 0;
}
