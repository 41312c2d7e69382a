// Metal Shading Language to vx: what the reader takes and gives. The reader itself is libvortex_msl.so, which only programs that meet Metal
// source open (msl/loader.h); nothing here names Clang or MLIR.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vortex::msl {

/// A kernel and what is fixed when its pipeline is made.
struct Request {
  std::string file;  ///< shown in diagnostics; the folder of `#include "…"`
  std::string text;
  std::vector<std::string> includeFolders;
  std::vector<std::string> definitions;              ///< NAME or NAME=VALUE
  std::string kernel;                                ///< empty: all kernels are listed, none is lowered
  bool lowersOnlyKernel = false;                     ///< without a name: the kernel is lowered if there is but one
  std::optional<std::array<int64_t, 3>> block = {};  ///< threads of a threadgroup; none: known at the launch
  bool isWhole = false;                              ///< with `block`: every threadgroup has that many
  std::map<uint32_t, uint64_t> threadgroupBytes;     ///< by [[threadgroup(n)]]
  std::map<uint32_t, double> constants;              ///< by [[function_constant(n)]]
  bool checksBarriers = false;                       ///< code for the interpreter, which finds threads that miss one
  bool isCheck = false;                              ///< nothing is launched: constants that are not given are 0
};

struct Note {
  std::string message;
  std::string file;
  uint32_t offset = 0;  ///< in bytes; meaningful with a file
};

struct Problem {
  std::string id;
  std::string message;
  std::string file;             ///< empty: no position
  uint32_t begin = 0, end = 0;  ///< bytes of the file as it is on disk
  std::vector<Note> notes;
};

/// Where a name is declared.
struct Place {
  std::string file;
  uint32_t offset = 0;  ///< in bytes
};

enum class ParameterKind : uint8_t { Buffer, Threadgroup, Input };

struct Parameter {
  ParameterKind kind = ParameterKind::Buffer;
  std::string name;
  std::string type;      ///< as written
  uint32_t index = 0;    ///< of a buffer or of threadgroup memory
  std::string input;     ///< "thread_position_in_grid"
  std::string constant;  ///< name of the function constant that the parameter exists with
  uint32_t leastBytes =
      0;  ///< of a buffer: what it refers to, without padding at the end; 0: a pointer, or an incomplete type
  Place place;
  uint32_t elementBytes = 0;  ///< of what a pointer leads to; 0: a reference, or an incomplete type
};

struct Kernel {
  std::string name;  ///< the host name
  std::vector<Parameter> parameters;
  uint32_t maxThreads = 0;  ///< [[max_total_threads_per_threadgroup(n)]]; 0: none
  Place place;
};

/// `constant T name [[function_constant(index)]]`
struct Constant {
  std::string name;
  uint32_t index = 0;
};

/// An argument of the launch interface of the lowered kernel, in order. After them come six index scalars: the threads of the grid and those of a
/// threadgroup, in x, y and z.
struct BufferUse {
  uint32_t index = 0;  ///< [[buffer(n)]]
  std::string elem;    ///< element type of the view: "f32", "i8", …
  uint32_t elemBytes = 1;
  bool isWritten = false;
};

struct Response {
  std::vector<Problem> problems;  ///< any: nothing below is valid but `files`
  std::vector<Kernel> kernels;
  std::vector<std::string> files;  ///< all that were read, for caches
  std::vector<Constant> constants;
  std::vector<BufferUse> buffers;
  uint64_t staticThreadgroupBytes = 0;  ///< of the lowered kernel, without what launches give
  std::string module;                   ///< text of the vx module, with locations
};

/// The one function of libvortex_msl.so.
using ReadFunction = void (*)(const Request& request, Response& response);
inline constexpr const char* kReadSymbol = "vortex_msl_read";

}  // namespace vortex::msl
