// The prelude's text and the precompiled prelude are two ways to the same: kernels, code and problems.
#include "msl/front/compile.h"
#include "msl/front/precompile.h"

#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>

#include <gtest/gtest.h>

namespace vortex::msl::front {
namespace {

/// Written once for all tests.
llvm::StringRef precompiled() {
  static const std::unique_ptr<llvm::MemoryBuffer> kBytes = [] {
    llvm::SmallString<128> path;
    if (llvm::sys::fs::createTemporaryFile("prelude", "pch", path))
      return std::unique_ptr<llvm::MemoryBuffer>();
    const std::string problem = precompilePrelude(std::string(path));
    EXPECT_EQ(problem, "");
    auto read = llvm::MemoryBuffer::getFile(path);
    llvm::sys::fs::remove(path);
    return read ? std::move(*read) : nullptr;
  }();
  return kBytes ? kBytes->getBuffer() : llvm::StringRef();
}

/// All that the reader goes on with, as text.
std::string outcome(const Request& request, llvm::StringRef prelude) {
  const std::unique_ptr<Unit> unit = compile(request, prelude);
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const Problem& problem : unit->problems) {
    out << problem.id << " " << problem.file << ":" << problem.begin << "-" << problem.end << " " << problem.message
        << "\n";
    for (const Note& note : problem.notes)
      out << "  " << note.file << ":" << note.offset << " " << note.message << "\n";
  }
  for (const Kernel& kernel : unit->kernels) {
    out << kernel.name << " " << kernel.maxThreads;
    for (const Parameter& parameter : kernel.parameters)
      out << ", " << parameter.name << " " << parameter.type << " " << parameter.index << " " << parameter.input << " "
          << parameter.constant << " " << parameter.leastBytes;
    out << "\n";
  }
  for (const FunctionConstant& constant : unit->constants)
    out << constant.symbol << " " << constant.index << " " << constant.least << " " << constant.most << "\n";
  if (unit->problems.empty() && unit->module)
    unit->module->print(out, nullptr);
  return text;
}

struct Source {
  const char* title;
  const char* kernel;
  const char* text;
};

constexpr Source kSources[] = {
    {"Plain", "add", R"(#include <metal_stdlib>
using namespace metal;
kernel void add(device const float4* a [[buffer(0)]], device float4* b [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  b[i] = exp(a[i].wzyx) + fma(a[i], 2.0f, float4(simd_sum(a[i].x)));
})"},
    {"TemplatesAndConstants", "scale_half", R"(#include <metal_stdlib>
constant int kWide [[function_constant(3)]];
namespace metal { template <typename T> T twice(T x) { return x + x; } }
template <typename T> [[kernel]] void scale(device T* x, constant T& by, uint i [[thread_position_in_grid]]) {
  x[i] = metal::twice(x[i]) * by + T(kWide);
}
template [[host_name("scale_half")]] [[kernel]] void scale<half>(device half*, constant half&, uint);
template [[host_name("scale_float")]] [[kernel]] void scale<float>(device float*, constant float&, uint);)"},
    {"ThreadgroupMemoryAndMatrices", "mm", R"(#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
kernel void mm(device const float* a, device float* c, threadgroup float* given [[threadgroup(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float own[64];
  own[i] = a[i];
  given[i] = own[63 - i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 x, y = simdgroup_float8x8(0);
  simdgroup_load(x, given, 8);
  simdgroup_multiply_accumulate(y, x, x, y);
  simdgroup_store(y, c, 8);
})"},
    {"SpecializedPrelude", "k", R"(#include <metal_stdlib>
struct Mine { float x; };
namespace metal { template <> struct numeric_limits<Mine> { static float max() { return 7; } }; }
kernel void k(device float* x, device atomic_uint* n, uint i [[thread_position_in_grid]]) {
  x[i] = metal::numeric_limits<Mine>::max() + metal::numeric_limits<float>::max();
  metal::atomic_fetch_add_explicit(n, 1u, metal::memory_order_relaxed);
})"},
    {"NoMember", "k", "kernel void k(device float4* x, uint i [[thread_position_in_grid]]) { x[i].q = 1; }"},
    {"NoOverload", "k",
     "kernel void k(device float* x, uint i [[thread_position_in_grid]]) { x[i] = metal::fma(x, x, x) + undeclared; }"},
    {"InsideThePrelude", "k",
     "kernel void k(device float4* x) { x[0] = metal::select(x[0], x[0], 1, 2, 3); metal::vec<float, 9> w; }"},
    {"RedefinesThePrelude", "k", "typedef float half;\nkernel void k(device half* x) { x[0] = metal::exp(x[0]); }"},
    {"ReturnsNothing", "k",
     "float f(float x) { if (x > 0) return 1; }\nkernel void k(device float* x) { x[0] = f(x[1] / 0); }"},
    {"NoSpace", "k",
     "kernel void k(float* x [[buffer(0)]], device float* y [[buffer(0)]], double d) { double e = 1; y[0] = e; }"},
};

class Prelude : public testing::TestWithParam<Source> {};

TEST_P(Prelude, PrecompiledOrNotIsTheSame) {
  const Source& source = GetParam();
  Request request;
  request.file = "source.metal";
  request.text = source.text;
  request.kernel = source.kernel;
  request.definitions = {"UNUSED=1"};
  ASSERT_FALSE(precompiled().empty());
  const std::string plain = outcome(request, {});
  EXPECT_EQ(outcome(request, precompiled()), plain);
  EXPECT_NE(plain, "");
}

INSTANTIATE_TEST_SUITE_P(Sources, Prelude, testing::ValuesIn(kSources),
                         [](const auto& info) { return std::string(info.param.title); });

}  // namespace
}  // namespace vortex::msl::front
