// Compiling kernels in a running program: source text to artifacts that runtime.h loads.
//
//   vortex::Program program = vortex::Program::compile("scale.vx", text);
//   if (!program.ok()) std::fputs(program.report().c_str(), stderr);
//   std::vector<uint8_t> artifact = program.build("scale", {.target = device.target()}).value();
//   vortex::Kernel kernel = device.load(artifact).value();
//
// For launches in this process it is faster to make entry points when launches need them:
//
//   vortex::KernelPlan plan = program.plan("scale", {.target = device.target()}).value();
//   vortex::Kernel kernel = device.load(plan.artifact, plan.entries).value();
//
// Link libvortex_compiler beside libvortex_runtime. A Program is a handle; copies refer to the same program. Its members may be called from
// any thread, one at a time.
#pragma once

#include "vortex/entry_source.h"
#include "vortex/fault.h"
#include "vortex/tensor.h"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vortex {

/// A piece of source with a message. Lines and columns count from 1, columns in code points; the end is exclusive.
struct SourceLabel {
  std::string file;
  uint32_t line = 0, column = 0, endLine = 0, endColumn = 0;
  std::string message;
  bool isPrimary = false;  ///< the culprit; the others say where the other half comes from
};

/// An error, a warning or a note about a program.
struct Diagnostic {
  std::string id;        ///< "E0312"
  std::string severity;  ///< "error", "warning", "note"
  std::string message;
  std::vector<SourceLabel> labels;
  std::vector<std::string> notes, helps;
  std::string rendered;  ///< as the command line prints it, without colours
};

/// An instance of a generic kernel: scalar types by name ("f64"), constants as numbers.
struct KernelInstance {
  std::string kernel;
  std::vector<std::string> arguments;
};

struct CompileOptions {
  std::vector<std::pair<std::string, int64_t>> dims;  ///< dimension variables fixed for kernels, as --dim
  std::vector<std::string> importPaths;               ///< searched after the importing file's own folder
  bool isGridGiven = false;  ///< every launch gives the numbers of blocks: none is inferred from subscripts
  std::vector<KernelInstance> instances;  ///< made beside those that the program uses; an error if one cannot be
  bool isChecked = false;  ///< kernels run checked: races that are found are warnings, as the run decides
};

struct TraceOptions {
  bool onlineSoftmax =
      true;  ///< sums of exponentials are collected in the loop that finds the maximum, where that is the same sum
  bool warnsOfRaces = false;  ///< races that every launch has are warnings, too: the caller judges launches
  /// For runs with InterpretOptions::check: shared memory has no zeros where nothing was written, and lanes that store one value are no race.
  bool isChecked = false;
};

struct KernelParam {
  std::string name;
  std::string type;  ///< the source's spelling: "&mut Tensor<f32, [M, N]>"
  bool isTensor = false;
  bool isWritten = false;
  DType dtype = DType::F32;  ///< of a number, or of a tensor's elements
  uint32_t rank = 0;
};

/// A parameter of a generic kernel in one instance.
struct GenericArgument {
  std::string value;              ///< "f32", "256"
  std::optional<uint32_t> param;  ///< the parameter of the kernel that tells it: the type of its elements, or an extent
  std::optional<uint32_t> dim;    ///< of a constant: which extent
};

/// A kernel of a program; generic kernels appear once per instance that the program uses, or with one representative instance.
struct KernelInfo {
  std::string name;        ///< as written
  std::string uniqueName;  ///< with the instance's arguments: "scale.scale<f32>"
  std::vector<KernelParam> params;
  uint32_t results = 0;
  std::vector<std::pair<uint32_t, uint32_t>>
      fixedExtents;  ///< (parameter, dimension) whose values BuildRequest::extents must give
  std::vector<GenericArgument> genericArguments{};
  bool isRepresentative = false;  ///< nothing uses the kernel: the arguments are examples
};

/// What a launch fixes at compile time. Every distinct value is another artifact.
struct BuildRequest {
  std::string target = "cpu";  ///< Device::target()
  bool isGridGiven = false;    ///< every launch gives the numbers of blocks (LaunchOptions::grid)
  std::optional<std::array<int64_t, 3>> block{};
  /// By parameter: extents of tensors (missing: not known), from which shared and local tensors take their sizes; {value} of integers.
  std::vector<std::optional<std::vector<int64_t>>> extents{};
  bool useCache = true;  ///< the on-disk cache of compiled kernels
};

/// A kernel for launches in this process: they run one to three of the dozen entry points that products and rows have on GPUs.
struct KernelPlan {
  std::vector<uint8_t> artifact;  ///< for Device::load
  EntrySource
      entries;  ///< makes the entry points that the artifact lacks, also when the program is gone; empty: it lacks none
  std::vector<uint8_t>
      kept;  ///< for Program::entriesOf in a later process that kept the artifact; empty: it lacks none
};

/// An argument of interpret(): host memory with strides in elements (empty: row-major), or the bits of a number as in runtime.h.
struct HostArgument {
  void* data = nullptr;
  std::vector<int64_t> extents, strides;
  uint64_t bits = 0;
};

struct InterpretOptions {
  bool check = false;  ///< bounds, races, uninitialised reads, divergence, integers that wrap
  uint64_t seed = 0;   ///< order of blocks and warps; 0 is ascending
  std::function<void(std::string_view)> print{};
  std::optional<std::array<int64_t, 3>> grid{};  ///< numbers of blocks, for kernels that are given them
  std::function<void(const Fault&)>
      stopped{};                    ///< told where the run ended before the kernel did; interpret() returns the error
  std::function<void()> started{};  ///< called when the kernel is built: errors from here on are of the launch
};

/// A result that interpret() allocated, row-major; a number has no extents. A tensor of structs is one result for each scalar in them.
struct HostResult {
  DType dtype = DType::F32;
  std::vector<int64_t> extents;
  std::vector<uint8_t> bytes;
};

class Program {
public:
  /// Parses, checks and analyses source text; `name` is the file's name in messages and the folder from which its imports are resolved.
  static Program compile(std::string name, std::string text, const CompileOptions& options = {});

  /// A kernel that `metile` traced (src/metile/trace.h says how) with the source files, name and text, that its positions are in.
  static Program fromTrace(std::string_view trace, const std::vector<std::pair<std::string, std::string>>& files,
                           const TraceOptions& options = {});

  /// libraryId() of the library that holds the compiler.
  static const std::string& compilerId();

  bool ok() const;                                     ///< no errors
  const std::vector<Diagnostic>& diagnostics() const;  ///< by position, warnings included
  std::string report() const;                          ///< all diagnostics as the command line prints them
  const std::vector<Diagnostic>&
  remarks() const;  ///< notes without ids: what of a trace was rewritten, what was not and why
  std::vector<KernelInfo> kernels() const;
  /// Names of the dimensions that its kernels have, those of CompileOptions::dims among them: others that are given there fix nothing.
  std::vector<std::string> dimensions() const;
  /// Name and text of all that was read: the program's own file first, then its imports and theirs.
  std::vector<std::pair<std::string, std::string>> files() const;

  /// The artifact of a kernel, by name or unique name. Errors: no such kernel; an extent that is needed and missing; a target that is not
  /// known; what a stage of the compiler does not support, with its place in the source.
  Result<std::vector<uint8_t>> build(std::string_view kernel, const BuildRequest& request = {}) const;
  /// The same for launches in this process. With BuildRequest::useCache the code that `entries` makes is kept on disk too. Errors as build(); what only
  /// the code of an entry point shows is an error of the launch that needs it.
  Result<KernelPlan> plan(std::string_view kernel, const BuildRequest& request = {}) const;
  /// KernelPlan::entries of a plan that was kept. Errors: damaged; made by another build of the compiler.
  static Result<EntrySource> entriesOf(std::span<const uint8_t> kept, bool useCache = true);
  /// The kernel after a stage: "irgen", "schedule", "vxt", "llvm", "optimized-llvm", "assembly". Errors as build(); no such stage, or none in the code for that target.
  Result<std::string> text(std::string_view kernel, std::string_view stage, const BuildRequest& request = {}) const;
  /// Runs a kernel in the reference interpreter on host memory. Errors as build(); what the run found, with id, place and notes.
  Result<std::vector<HostResult>> interpret(std::string_view kernel, std::span<const HostArgument> arguments,
                                            const BuildRequest& request = {},
                                            const InterpretOptions& options = {}) const;

private:
  friend struct ProgramAccess;
  struct State;
  explicit Program(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace vortex
