// Prints the best time of several runs on one thread, beside a copy of the same size: `cpu_tiles_bench [filter]`.
#include "target/cpu/tiles/testing/tensors.h"

#include <chrono>
#include <cstring>

using namespace vortex::target::cpu::tiles::testing;

namespace {

double best(const std::function<void()>& run) {
  double least = 1e30;
  for (int i = 0; i < 9; ++i) {
    auto start = std::chrono::steady_clock::now();
    run();
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

const std::string kHead = R"(
  %c0 = arith.constant 0 : index
  %m = vx.dim %x, 0 : !vx.view<?x?xf32, global>
  %n = vx.dim %x, 1 : !vx.view<?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
)";
const std::string kTail = "  vx.tile_store %r, %o[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>\n";

const std::string kSoftmax = kHead + R"(
  %max = vx.reduce maxf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %d = arith.subf %t, %maxb : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %sum = vx.reduce addf %e dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %sumb = vx.broadcast %sum dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.divf %e, %sumb : tensor<?x?xf32>
)" + kTail;

const std::string kRmsNorm = kHead + R"(
  %s = arith.constant 0.0009765625 : f32
  %sb = vx.broadcast %s dims [] sizes(%m) : f32 -> tensor<?xf32>
  %q = arith.mulf %t, %t : tensor<?x?xf32>
  %sum = vx.reduce addf %q dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %mean = arith.mulf %sum, %sb : tensor<?xf32>
  %rstd = math.rsqrt %mean : tensor<?xf32>
  %rb = vx.broadcast %rstd dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.mulf %t, %rb : tensor<?x?xf32>
)" + kTail;

const std::string kChain = kHead + R"(
  %a = arith.constant 1.5 : f32
  %ab = vx.broadcast %a dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
  %1 = arith.mulf %t, %ab : tensor<?x?xf32>
  %2 = arith.addf %1, %t : tensor<?x?xf32>
  %3 = arith.maximumf %2, %ab : tensor<?x?xf32>
  %4 = arith.subf %3, %t : tensor<?x?xf32>
  %r = arith.mulf %4, %4 : tensor<?x?xf32>
)" + kTail;

const std::string kSilu = kHead + R"(
  %a = arith.constant 1.0 : f32
  %ab = vx.broadcast %a dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
  %1 = arith.negf %t : tensor<?x?xf32>
  %2 = math.exp %1 : tensor<?x?xf32>
  %3 = arith.addf %2, %ab : tensor<?x?xf32>
  %r = arith.divf %t, %3 : tensor<?x?xf32>
)" + kTail;

const std::string kTranspose = kHead + R"(
  %r = vx.transpose %t [1, 0] : tensor<?x?xf32> -> tensor<?x?xf32>
)" + kTail;

const std::string kColumnSum = kHead + R"(
  %s = vx.reduce addf %t dims [0] : tensor<?x?xf32> -> tensor<?xf32>
  vx.tile_store %s, %v[%c0] inbounds : tensor<?xf32>, !vx.view<?xf32, global>
)";

void elementwise(const char* filter, const char* name, const std::string& body, int64_t m, int64_t n) {
  if (!strstr(name, filter))
    return;
  bool sums = body.find("%v[") != std::string::npos, transposed = !strcmp(name, "transpose");
  std::vector<Argument> arguments{{"x", "?x?xf32"}, {sums ? "v" : "o", sums ? "?xf32" : "?x?xf32", true}};
  TensorKernel first(arguments, body), kernel(arguments, body);  // the first one loads pages of the compiler
  std::vector<float> x = randomFloats(m * n), out(m * n);
  Arg result = sums         ? Arg::strided(out.data(), {n}, {1})
               : transposed ? Arg::tensor(out, {n, m})
                            : Arg::tensor(out, {m, n});
  double seconds = best(kernel.prepare({Arg::tensor(x, {m, n}), result}));
  const auto& times = kernel.kernel().times();
  printf("%-10s %6lld x %-6lld %7.2f GB/s  compile %.1f ms (emit %.1f, optimise %.1f, code %.1f), %lld bytes\n", name,
         (long long)m, (long long)n, (sums ? 4.0 : 8.0) * m * n / seconds / 1e9,
         times.emit + times.optimize + times.codegen, times.emit, times.optimize, times.codegen,
         (long long)kernel.kernel().kernel().code.size());
}

void matmul(const char* filter, int64_t size) {
  if (!strstr("matmul", filter))
    return;
  const std::string body = kHead + R"(
  %zero = arith.constant 0.0 : f32
  %p = vx.dim %w, 1 : !vx.view<?x?xf32, global>
  %tw = vx.tile_load %w[%c0, %c0] sizes(%n, %p) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %acc = vx.broadcast %zero dims [] sizes(%m, %p) : f32 -> tensor<?x?xf32>
  %r = vx.dot %t, %tw, %acc : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
)" + kTail;
  const std::vector<Argument> arguments{{"x", "?x?xf32"}, {"w", "?x?xf32"}, {"o", "?x?xf32", true}};
  TensorKernel first(arguments, body), kernel(arguments, body);
  std::vector<float> x = randomFloats(size * size), w = randomFloats(size * size), out(size * size);
  double seconds = best(
      kernel.prepare({Arg::tensor(x, {size, size}), Arg::tensor(w, {size, size}), Arg::tensor(out, {size, size})}));
  const auto& times = kernel.kernel().times();
  printf(
      "matmul     %6lld           %7.2f GFLOP/s  compile %.1f ms (emit %.1f, optimise %.1f, code %.1f), %lld bytes\n",
      (long long)size, 2.0 * size * size * size / seconds / 1e9, times.emit + times.optimize + times.codegen,
      times.emit, times.optimize, times.codegen, (long long)kernel.kernel().kernel().code.size());
}

}  // namespace

int main(int count, char** arguments) {
  const char* filter = count > 1 ? arguments[1] : "";
  std::vector<float> from(16 << 20, 1), to(16 << 20, 2);
  double seconds = best([&] { std::memcpy(to.data(), from.data(), from.size() * 4); });
  printf("memcpy     64 MB            %7.2f GB/s\n", 8.0 * from.size() / seconds / 1e9);
  elementwise(filter, "chain", kChain, 16384, 1024);
  elementwise(filter, "chain", kChain, 256, 1024);
  elementwise(filter, "chain", kChain, 5000000, 3);
  elementwise(filter, "silu", kSilu, 16384, 1024);
  elementwise(filter, "softmax", kSoftmax, 16384, 1024);
  elementwise(filter, "softmax", kSoftmax, 256, 1024);
  elementwise(filter, "softmax", kSoftmax, 100, 160000);
  elementwise(filter, "rmsnorm", kRmsNorm, 16384, 1024);
  elementwise(filter, "transpose", kTranspose, 4096, 4096);
  elementwise(filter, "columns", kColumnSum, 4096, 4096);
  matmul(filter, 1024);
  matmul(filter, 2048);
}
