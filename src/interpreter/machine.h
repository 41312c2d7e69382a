// The state of a run: registers of the current frame, where in the grid it stands, which lanes are active.
#pragma once

#include "interpreter/interpreter.h"
#include "interpreter/program.h"
#include "interpreter/races.h"
#include "interpreter/together.h"

#include "llvm/ADT/DenseSet.h"

#include <deque>
#include <optional>
#include <random>

namespace vortex::interpreter {

inline constexpr unsigned kWarpSize = 32;

/// Inside vx.threads: the warp being executed.
struct Warp {
  int64_t base = 0;      ///< linear id of lane 0
  uint32_t present = 0;  ///< lanes that are threads of the block
  uint32_t active = 0;   ///< lanes that execute the current operation
};

/// Threads have read what nobody had written. Where another thread writes it before a barrier that is a race, and told as one.
struct UnwrittenReads {
  Finding first;
  llvm::SmallDenseSet<const void*, 8> addresses;
};

/// The state of a block whose turn it is not.
struct PausedBlock {
  int64_t id[3] = {0, 0, 0};
  uint32_t linear = 0;
  Warp* warp = nullptr;
  int64_t threadExtents[3] = {1, 1, 1};
  RaceDetector::InBlock races;
  CopiesInFlight copies;
  std::deque<Buffer> buffers;
  std::optional<UnwrittenReads> unwritten;
  uint64_t steps = 0;
  std::vector<Value>* frame = nullptr;
};

class Machine {
public:
  Machine(const Options& options, std::vector<Finding>& findings)
      : options(options), random(options.seed), findings_(findings) {}

  bool execute(const Body& body);
  /// Calls `run` with a new frame for a function; `bind` sets the arguments' registers first, `leave` reads results afterwards.
  template <typename Bind, typename Leave, typename Run> bool call(Function& function, Bind bind, Leave leave, Run run);

  Value& reg(int number) { return (*frame_)[size_t(number)]; }
  uint64_t cell(int number, size_t lane = 0) { return reg(number).cell(lane); }
  int64_t integer(int number, size_t lane = 0) { return int64_t(cell(number, lane)); }
  /// A result register as a scalar: one cell per lane.
  uint64_t* scalarResult(int number) {
    reg(number).cells.resize(lanes());
    return reg(number).cells.data();
  }

  /// The block at hand becomes `other`, which becomes it.
  void exchange(PausedBlock& other);
  /// In a cooperative phase: other blocks run, until they have come as far (Together::meet) or for a while (pass). False: the run ends.
  bool pause(bool (Together::*turn)());

  bool inThreads() const { return warp != nullptr; }
  size_t lanes() const { return warp ? kWarpSize : 1; }
  uint32_t active() const { return warp ? warp->active : 1u; }
  /// Calls f(lane) for active lanes in ascending order while it returns true.
  template <typename F> bool forActive(F f) {
    for (uint32_t rest = active(); rest; rest &= rest - 1)
      if (!f(size_t(std::countr_zero(rest))))
        return false;
    return true;
  }
  int32_t threadOf(size_t lane) const { return warp ? int32_t(warp->base + int64_t(lane)) : kBlockThread; }

  /// Copies a value; inside thread regions only the active lanes.
  void assign(int target, const Value& source);
  void assign(llvm::ArrayRef<int> targets, llvm::ArrayRef<int> sources);

  // All return false.
  bool find(Finding::Kind kind, const Node& node, std::string message, std::vector<Finding::Note> notes = {},
            std::string id = {});
  bool fail(const Node& node, const std::string& message);
  /// No race was found with reads of what nobody had written. True: there were none.
  bool tellUnwritten();
  /// False, with a finding, where the cells of such a tile do not fit into memory.
  bool fits(const Node& node, llvm::ArrayRef<int64_t> shape);
  /// "thread (1, 0, 0) of block (0, 0, 0)".
  std::string describe(int32_t thread, uint32_t block) const;

  /// A buffer that lives until the block (or the run, before blocks start) ends.
  Buffer& newBuffer();

  const Options& options;
  std::string error;

  // Position.
  int64_t grid[3] = {1, 1, 1}, blockDim[3] = {1, 1, 1}, blockId[3] = {0, 0, 0};
  uint32_t linearBlock = 0;
  Warp* warp = nullptr;
  int64_t threadExtents[3] = {1, 1, 1};  ///< of the current thread region
  /// Extents that the grid was inferred from (`vx.domain`): a thread whose global id is beyond them is surplus.
  int64_t domain[3] = {INT64_MAX, INT64_MAX, INT64_MAX};
  bool isSurplus(size_t lane) const;
  bool checkRaces = false;  ///< off for whole-tensor kernels: one block, no threads
  RaceDetector races;
  CopiesInFlight copies;
  std::optional<UnwrittenReads> unwritten;  ///< since the last barrier
  std::vector<IterationRaces*> claimed;  ///< loops around that the program says to be parallel, in whole-tensor kernels
  std::deque<Buffer> blockBuffers;
  std::mt19937_64 random;
  uint64_t steps = 0;            ///< of the warp, or of the block-level code
  Together* together = nullptr;  ///< of a cooperative phase
  uint64_t sinceTurn = 0;        ///< operations that the block at hand has executed in its turn
  bool hasUnwritten = false;     ///< some tile was declared without a value

private:
  bool checkWritten(const Node& node);
  std::vector<Finding>& findings_;
  std::vector<Value>* frame_ = nullptr;
};

template <typename Bind, typename Leave, typename Run>
bool Machine::call(Function& function, Bind bind, Leave leave, Run run) {
  std::vector<Value> registers(function.registers);
  for (const auto& [number, value] : function.constants)
    registers[size_t(number)] = value;
  bind(registers);
  std::vector<Value>* outer = std::exchange(frame_, &registers);
  bool completed = run();
  frame_ = outer;
  if (completed)
    leave(registers);
  return completed;
}

/// Message parts shared by access checks.
bool reportOutside(Machine& machine, const Node& node, const View& view, size_t dim, int64_t index, size_t lane,
                   bool guarded);
/// Checks initialisation and races of one element, in check mode; false when something was found.
bool checkElement(Machine& machine, const Node& node, const View& view, int64_t element, size_t lane, bool isWrite,
                  Atomicity atomicity);

}  // namespace vortex::interpreter
