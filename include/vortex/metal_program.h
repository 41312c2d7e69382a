// Compiling Metal source in a running program: text to artifacts that runtime.h loads. metal/metal.h is the interface of Apple's metal-cpp over it.
//
//   vortex::MetalProgram program = vortex::MetalProgram::compile("gemm.metal", text);
//   if (!program.ok()) std::fputs(program.report().c_str(), stderr);
//   vortex::MetalCode code = program.build("gemm", {.target = device.target(), .block = {8, 8, 1}}).value();
//   vortex::Kernel kernel = device.load(code.artifact).value();
//
// A launch takes a tensor for each of `code.buffers`, in their order, and then six numbers: the threads of the grid and those of a threadgroup, in
// x, y and z. Link libvortex_compiler; libvortex_msl.so lies beside it or beside the program. Members may be called from any thread, one at a time.
#pragma once

#include "vortex/compiler.h"

#include <map>

namespace vortex {

struct MetalCompileOptions {
  std::vector<std::string> includePaths;
  std::vector<std::string> definitions;  ///< NAME or NAME=VALUE
  bool useCache = true;                  ///< the on-disk cache: what was read before needs no Clang
};

enum class MetalParameterKind : uint8_t { Buffer, Threadgroup, Input };

struct MetalParameter {
  MetalParameterKind kind = MetalParameterKind::Buffer;
  std::string name;
  std::string type;         ///< as written
  uint32_t index = 0;       ///< of a buffer or of threadgroup memory
  uint32_t leastBytes = 0;  ///< of a buffer that is a reference: what it refers to, without padding at the end
};

struct MetalKernelInfo {
  std::string name;  ///< the host name
  std::vector<MetalParameter> parameters;
  uint32_t maxThreads = 0;  ///< [[max_total_threads_per_threadgroup(n)]]; 0: none
};

/// `constant T name [[function_constant(index)]]`
struct MetalConstant {
  std::string name;
  uint32_t index = 0;
};

/// What a pipeline and a dispatch fix at compile time. Every distinct value is another artifact.
struct MetalBuildRequest {
  std::string target = "cpu";                     ///< Device::target()
  std::optional<std::array<int64_t, 3>> block{};  ///< threads of a threadgroup; none: known at the launch
  bool isWhole = false;  ///< with `block`: launches of whole threadgroups only, for faster code
  std::map<uint32_t, uint64_t> threadgroupBytes{};  ///< by [[threadgroup(n)]]
  std::map<uint32_t, double> constants{};           ///< by [[function_constant(n)]]
};

/// A buffer that the kernel accesses.
struct MetalBufferUse {
  uint32_t index = 0;      ///< [[buffer(n)]]
  uint32_t elemBytes = 1;  ///< of the launch's tensor: what the kernel reads and writes at once
  bool isWritten = false;
};

struct MetalCode {
  std::vector<MetalBufferUse> buffers;
  uint64_t staticThreadgroupBytes = 0;
  std::vector<uint8_t> artifact;  ///< empty from lower()
};

/// A handle; copies refer to the same program.
class MetalProgram {
public:
  /// Reads source text; `name` is the file's name in messages, and its folder the one of `#include "…"`.
  static MetalProgram compile(std::string name, std::string text, const MetalCompileOptions& options = {});

  bool ok() const;
  const std::vector<Diagnostic>& diagnostics() const;
  std::string report() const;  ///< all diagnostics as the command line prints them
  std::vector<MetalKernelInfo> kernels() const;
  std::vector<MetalConstant> constants() const;

  /// What a launch must give, without making code. Errors: as report(); no such kernel; what the kernel uses that cannot be compiled.
  Result<MetalCode> lower(std::string_view kernel, const MetalBuildRequest& request = {}) const;
  /// The artifact. Errors: as lower(); an unknown target; what a stage of the compiler does not support, with its place in the source.
  Result<MetalCode> build(std::string_view kernel, const MetalBuildRequest& request = {}) const;

private:
  struct State;
  explicit MetalProgram(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace vortex
