// A compiled kernel: code, calling convention, launch plan, resource facts. Independent of any compiler library.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "artifact/scalar_type.h"
#include "artifact/tensor_map.h"
#include "base/result.h"
#include "size/evaluate.h"

namespace vortex::artifact {

enum class Access : uint8_t { Read, Write, ReadWrite };

using size::kMaxClusterBlocks;

/// One launch parameter and its slots. Every launch argument list is a flat array of 64-bit slots:
/// a tensor of rank r takes 1 + 2r slots (data pointer; extents[r]; strides[r] in elements), a scalar one slot
/// (bits in the low end, floats as their bit pattern, integers sign- or zero-extended, bool 0/1).
/// Order: the user's parameters, then results, then lets, then temporaries.
struct Param {
  std::string name;
  ScalarType type = ScalarType::F32;
  bool isTensor = false;
  uint32_t rank = 0;
  Access access = Access::Read;
  uint32_t firstSlot = 0;
  /// Results and temporaries only: extents, allocated (row-major, contiguous) by the launch. Temporaries that no phase of a launch writes are
  /// not allocated: their slots are 0, or their original's.
  std::vector<size::Id> extents{};
  /// Results: storage must be zero before phase 0 (elements a kernel does not write are zero).
  bool zeroFill = false;
  /// One field of an array of structs (`@layout(aos)`): the structs have `structBytes` bytes and the field begins at `fieldOffset` of them. The
  /// fields of one tensor follow each other in the parameter list, the first one at offset 0. Results are allocated so; parameters are
  /// strided views, for which this is what callers are told. 0: a tensor of its own.
  uint32_t structBytes = 0, fieldOffset = 0;
  /// Temporaries only: index of the parameter whose slots it has in launches where no phase writes it; that one is only read.
  uint32_t original = kNoOriginal;
  static constexpr uint32_t kNoOriginal = UINT32_MAX;
};

/// Must evaluate to non-zero before anything is launched; otherwise the launch fails with `message`, where
/// "{0}", "{1}", … are replaced by the values of `operands`.
struct Constraint {
  size::Id condition;
  std::string message;
  std::vector<size::Id> operands;
};

/// An entry point for launches whose tensors lie in a certain way, or have rows of certain lengths.
struct Version {
  size::Id when{};  ///< not zero for those launches; pointers count as integers
  std::string symbol;
};

/// One grid launch. It sees all effects of the phases that ran before it.
struct Phase {
  std::string symbol;   ///< entry point in `code`, for launches that no version is for
  size::Id grid[3]{};   ///< number of blocks in x, y, z; a zero skips the phase
  size::Id block[3]{};  ///< logical threads of a block (1,1,1 for tile code)
  size::Id
      scratchBytes{};  ///< CPU: block-local memory (shared, local, spilled values) one worker provides, 64-byte aligned
  size::Id sharedBytes{};  ///< shared memory per block; GPU: dynamic shared memory of the launch, everything included
  /// GPU: hardware threads of a block, launched as (hardwareThreads, 1, 1); the code derives logical ids from the linear one. Empty on CPUs.
  size::Id hardwareThreads{};
  /// GPU: the first of these whose condition holds is launched instead, the same way.
  std::vector<Version> versions{};
  /// GPU: what the code's bulk copies read and write; every entry point of the phase finds them in its parameter (device_report.h).
  std::vector<TensorMap> maps{};
  /// GPU: this many neighbouring blocks of the grid run together, at most kMaxClusterBlocks; the grid is a multiple of them. 1,1,1: none.
  uint32_t cluster[3] = {1, 1, 1};
  bool isCooperative = false;       ///< all blocks run at the same time, or the launch is refused
  std::vector<uint32_t> written{};  ///< temporaries that it may write, by index
  std::string name;                 ///< for profiles: "softmax", "softmax.pack_b"
};

/// What launches do, in order. One kernel serves all launches: those of few rows take other steps than those of many.
struct Step;

/// Runs a phase. Every phase of a kernel has one such step, which runs as often as the loops around it say.
struct Run {
  uint32_t phase = 0;  ///< index into Kernel::phases
};

/// Sets the slot of a let. Lets of cases that are not taken are 0.
struct Let {
  uint32_t let = 0;  ///< index into Kernel::lets; steps set them in their order
  size::Id value{};
};

/// Waits for what the steps before it run, then sets the slot of a let to the element of a temporary (i64[1]). Nothing that is allocated
/// depends on such a let.
struct Read {
  uint32_t let = 0;        ///< index into Kernel::lets, numbered as those of Let
  uint32_t temporary = 0;  ///< index into Kernel::temporaries
};

/// `needs` is what the steps rely on, `when` is where they pay: any case whose needs hold computes the same.
struct Case {
  std::string name;  ///< "split", "small", …
  size::Id needs{}, when{};
  std::vector<Step> steps;
};

/// Takes the first case whose `needs` and `when` are not zero; those of the last case are a constant.
struct Choose {
  std::vector<Case> cases;
};

/// Sets lets to `first`, then takes the steps while `condition` is not zero; after each round the lets are `next`, all at once.
struct Loop {
  std::string name;  ///< for errors: "the loop at power.vx:3:5"
  uint32_t firstLet =
      0;  ///< index into Kernel::lets; these and those of Let and Read are numbered in the order of steps
  std::vector<size::Id> first{}, next{};
  size::Id condition{};
  std::vector<Step> steps;
};

/// From here on each of two temporaries, equal in type and extents, is where the other was.
struct Exchange {
  uint32_t a = 0, b = 0;  ///< indices into Kernel::temporaries
};

struct Step {
  std::variant<Run, Let, Choose, Loop, Exchange, Read> what;
};
constexpr unsigned kMostNesting = 32;  ///< of steps in steps

/// Combines per-block values of a `-> T reduce(op)` result on the host side of the launch: the last phase already leaves a
/// single element in the result parameter, so a scalar result is simply read back from a one-element tensor.
struct ScalarResult {
  uint32_t resultIndex;  ///< index among the results
};

struct Fact {  ///< resource facts: "registers", "spill_bytes", "flops", … Exact unless `estimated`.
  std::string key;
  int64_t value = 0;
  bool estimated = false;
};

/// A tensor in the memory of a block, or a piece of it that the compiler takes for itself, for the report.
struct SharedTensor {
  std::string name;
  std::string type;  ///< the user's spelling; of the compiler's own: what it is for
  std::string file;
  uint32_t line = 0;                     ///< of the declaration
  uint32_t firstLine = 0, lastLine = 0;  ///< of the code during which its bytes are its own
  uint64_t bytes = 0;
  uint64_t offset = 0;       ///< in the block's shared memory; CPU: in the block's scratch memory
  uint32_t phase = 0;        ///< index into Kernel::phases
  bool isCompilers = false;  ///< no tensor of the program: no name
};

/// A message the code can raise at run time: entry point returns 1 + index of the fault (0 = success). The format of a kernel print is one
/// too: its message has a `{}` per value and its id is "print:" and a letter per value: d (an f64), f (a shorter float; bits of the
/// f64 it equals), i, u or b (integers extended to 64 bits). So is what a fault's message shows: "assert:" and the letters, with the fault's message
/// and place. CPU code passes its values to CpuBlock::print just before it returns the fault, GPU code to DeviceReport::values.
struct Fault {
  std::string id;       ///< diagnostic id, e.g. "E0701"
  std::string message;  ///< one sentence
  std::string file;
  uint32_t line = 0, column = 0;
};

struct Kernel {
  std::string name;
  std::string target;         ///< "cpu-x86_64-<cpu>", "sm_90", …
  size::Table sizes;          ///< what all ids below stand for; arguments: parameters, results, lets, temporaries
  std::vector<Param> params;  ///< user's parameters
  std::vector<Param> results;
  std::vector<Param> lets;  ///< scalars (u64) that steps compute
  std::vector<Param> temporaries;
  std::vector<Constraint> constraints;
  std::vector<Phase> phases;
  std::vector<Step> steps;
  std::vector<uint32_t> scalarResults;  ///< indices of results that are one-element storage of a scalar `reduce` result
  std::vector<Fault> faults;
  std::vector<std::string> notes;  ///< guards inserted, conflicts, … for the report
  std::vector<Fact> facts;
  std::vector<SharedTensor> sharedTensors;  ///< of phases[phase].symbol, in the order of allocation
  std::vector<uint8_t> code;  ///< CPU: ELF relocatable object; NVIDIA: PTX text; entry points: see device_report.h
  /// Entry points without code. It is made when a launch first needs it (EntrySource), or not at all.
  std::vector<std::string> absent;
  /// What launches need so as not to come to an absent entry point, where code is made for such launches only.
  std::vector<Constraint> coverage;
  uint32_t slotCount = 0;
};

/// Makes the code of absent entry points, as `Kernel::code` has it. Any thread may ask.
class EntrySource {
public:
  virtual ~EntrySource();
  /// Error: the compiler cannot, or does not know it.
  virtual Result<std::vector<uint8_t>> make(const std::string& symbol) = 0;
};

/// The entry point of a version, of the phase itself for their number.
const std::string& symbolOf(const Phase& phase, uint32_t version);
/// The argument of that number; null if there is none.
const Param* findArgument(const Kernel& kernel, uint32_t number);
/// Of a valid row that is an argument.
uint32_t slotOf(const Kernel& kernel, const size::Row& row);
/// The sizes of a valid kernel over its launch slots.
size::Program sizeProgram(const Kernel& kernel);

/// Serialised form: versioned, length-checked, ends with a content hash; a truncated or altered file is an error, never a crash.
std::vector<uint8_t> serialize(const Kernel& kernel);
Result<Kernel> deserialize(const std::vector<uint8_t>& bytes);

/// What CPU entry points look like. Returns 0, or 1 + index into Kernel::faults.
/// `scratch`: Phase::scratchBytes bytes, 64-byte aligned, uninitialised. Called concurrently for different blocks.
struct CpuBlock {
  uint32_t id[3];     ///< block index
  uint32_t grid[3];   ///< blocks in the grid
  uint32_t block[3];  ///< logical threads
  uint32_t worker;
  void* scratch;
  /// Kernel print: format index and raw 64-bit values; may be null.
  void (*print)(void* context, uint32_t fault, const uint64_t* values, uint32_t count);
  /// Of cooperative phases: waits for all blocks of the grid. Not 0: another block has failed, so that this one ends, too.
  uint32_t (*meet)(void* context);
  void* context;  ///< of both
};
using CpuEntry = uint32_t (*)(const uint64_t* slots, const CpuBlock* block);

}  // namespace vortex::artifact
