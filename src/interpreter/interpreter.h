// Reference interpreter of vx: executes whole-tensor and block-level modules on host memory, straight from the semantics in vx_ops.td
// and independent of every lowering. It judges passes and back ends, and is what `--check` runs on.
//
// Execution: phases in order; blocks one after another; a thread region one warp of 32 lanes at a time in lockstep, divergent control under
// masks. Block and warp order follow the seed. Memory nobody wrote is poisoned with 0xff bytes (NaN, -1).
// Numbers: every float operation rounds once, to its type; math functions are evaluated in double first; float reductions, scans and
// `vx.dot` accumulate in double, so they are at least as exact as any order a schedule picks. Nothing is contracted to FMA.
#pragma once

#include "base/result.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vortex::interpreter {

/// One entry argument. Strides are in elements; empty strides mean row-major and contiguous.
struct Argument {
  void* data = nullptr;
  std::vector<int64_t> extents = {};
  std::vector<int64_t> strides = {};
  uint64_t scalar = 0;                ///< scalars: bits in the low end, as in a launch slot
  std::vector<uint8_t> storage = {};  ///< results and temporaries that the run allocated

  static Argument tensor(void* data, std::vector<int64_t> extents, std::vector<int64_t> strides = {}) {
    return {data, std::move(extents), std::move(strides)};
  }
  static Argument bits(uint64_t scalar) { return {nullptr, {}, {}, scalar}; }
};

struct Options {
  /// Report out-of-bounds guarded accesses (not those of surplus threads, see `vx.domain`), uninitialised reads, races and warp operations under divergence.
  /// Unguarded accesses outside a view end the run in any case.
  bool check = false;
  /// With `check`: leaves out of the search for races what the compiler has proven to be free of them (`race_free`).
  bool trustsProofs = false;
  /// With `check`: report `vx.checked_add`, `vx.checked_sub` and `vx.checked_mul` that wrap.
  bool overflow = false;
  uint64_t seed = 0;  ///< order of blocks and warps; 0 is ascending
  /// Not 0: draws the cases of vx.choose by lot among those whose needs hold. All must compute the same.
  uint64_t drawnCases = 0;
  /// Operations that a warp executes in one thread region, and the block-level code of a block, before the run ends with a finding; 0: no limit.
  /// Blocks and warps run one after another, so one that waits for another does so for ever.
  uint64_t maxSteps = 0;
  std::function<void(std::string_view)> print = {};  ///< one call per executed vx.print; default: dropped
  std::optional<std::array<int64_t, 3>> grid = {};   ///< what `launch_grid` stands for
};

struct Location {
  std::string file;  ///< empty: unknown
  uint32_t line = 0, column = 0;
};

/// What stopped a run, in terms of the user's program.
struct Finding {
  enum class Kind : uint8_t {
    Assertion,
    Bounds,
    Uninitialised,
    Race,
    Divergence,
    Overflow,
    Constraint,
    Shape,
    Steps,
    Memory,
  };
  Kind kind = Kind::Assertion;
  std::string id = {};  ///< assertions: the op's id
  std::string message = {};
  Location location = {};
  struct Note {
    std::string message;
    Location location;
  };
  std::vector<Note> notes = {};
};

/// The diagnostic that says so: "E0601".
std::string idOf(const Finding& finding);
/// "file:line:column: message", notes on further lines.
std::string toText(const Finding& finding);

/// A decoded module. The module must outlive it. Not for concurrent use.
class Interpreter {
public:
  /// Error: no vx.entry, or an operation the interpreter does not execute (named with its location).
  static base::Result<Interpreter> create(mlir::ModuleOp module);
  Interpreter(Interpreter&&) noexcept;
  Interpreter& operator=(Interpreter&&) noexcept;
  ~Interpreter();

  /// `arguments`: the parameters, optionally followed by results and temporaries; missing ones are allocated and appended (data points
  /// into `storage`). Results marked `zero` are zeroed first. Returns the findings: none means the run completed, one that it stopped there.
  /// Error: wrong number of arguments, an operation that has no meaning (a loop with step 0).
  base::Result<std::vector<Finding>> run(std::vector<Argument>& arguments, const Options& options = {});

  /// The same with launch slots (artifact.h) for the parameters, optionally followed by those of results and temporaries.
  base::Result<std::vector<Finding>> runSlots(std::span<const uint64_t> slots, const Options& options = {});

private:
  struct State;
  explicit Interpreter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vortex::interpreter
