// The graph of one function that every check of `lang/flow` reads: basic blocks of steps about values and places.
//
// What an analysis needs to know:
// * Steps are numbered in the order they were lowered; a block is a range of them and its last step is its terminator (Jump, Branch,
//   Return). A step is also a point: `pointOf(step)` is the place in the program just before it. Blocks stand in an order in which every
//   edge but those back to loop headers goes forward, so one walk over `blocks` in order sees definitions before uses.
// * Integers, bools, floats, enums and references in variables are values (SSA): reading or assigning such a variable is no step. A value
//   is a node of `values` (value/node.h). A loop header or a join has a phi for each variable that differs between its edges; what is
//   computed in a loop is read behind it through a phi at the loop's exit. Structs, tuples and ranges are taken apart into their scalars.
//   Variables whose parts are chosen at run time or whose address is taken mutably, and arrays, are places with Load and Store steps.
// * What no node can express (floats, `popcount`, warp operations) is an Unknown node made by a step: `definition(value)` is that step, its
//   `uses` are what the value depends on. The same call answers for Load and Ticket nodes.
// * Memory is touched by the accesses of a step: `for (const Access& a : graph.accessesOf(step))`. Load, Store and Atomic have one;
//   Stage two, Tile, Output and Call any number. `x[i] += v` is a Load and a Store. All of them: `for (StepId s : graph.steps()) …`.
// * A place is a root local and a path (Field, Slot, At, Window, and, in functions as written, Deref). In kernels views and references are
//   followed to what they name, so `let v = &x[8..16]; v[i]` is a place of `x` with the path Window, At. `dims` holds the same in
//   coordinates of the tensor itself (`8 + i`), `storage` the tensor without subscripts. A reference that is one of several is `isUnknown`
//   with the `candidates` it may name.
// * Block code, thread code: the graph is what one thread of the block executes. `level` of a step (Block: all threads of the block get here
//   together and with equal operands) is what check/uniform finds; before it everything says Block. A Tile step is done by the block together.
// * Whole-tensor and tile expressions are one Tile step for each expression, which reads the places of its operands and, in `x = …` or
//   `x[a..b] = …`, writes one. A tile that is not in memory (`let acc: f32 [M, N]`) is a local with Storage::Tile.
// * A call in a kernel is inlined: its steps have a `frame` of their own whose parent is the caller's. A `return` in it is a Jump to the block
//   behind it; its value is a phi there. Early exits of loops and functions are edges like others; each loop that is left has a block of
//   its own on the edge (Loop::exits), and that block has only predecessors inside the loop.
// * A `for` has a Counter: the phi at the header, and begin, step, end or the list. The condition is the header's Branch.
// * Code that nothing reaches is not in the graph.
// * The graph of a function as written is what ownership asks: places keep their Derefs, every use of a variable is a step, and locals (temporaries
//   too) are told which loans their values may hold. Calls are what they do to their arguments; a closure's body is a loop where it is written.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lang/flow/value/node.h"
#include "lang/sema/program.h"

namespace vortex::lang::flow {

/// Step::index of a Declare: the launch has filled it with zeros.
inline constexpr uint32_t kBeginsAsZeros = 1;
/// Step::index of a Declare in shared memory: a barrier of the compiler's comes first, see check/shared_bytes.
inline constexpr uint32_t kAfterBarrier = 2;
/// Step::index of the Tile or Store that gives a shared tensor the values of its declaration: a barrier follows.
inline constexpr uint32_t kBeforeBarrier = 3;
/// Step::index of a Barrier at which all blocks of the grid meet.
inline constexpr uint32_t kOfGrid = 4;

enum class LocalId : uint32_t {};
inline constexpr LocalId kNoLocal{UINT32_MAX};

/// Who agrees on a value, or gets to a point together: the block, each warp, nobody.
enum class Level : uint8_t { Block, Warp, Lane };
constexpr Level most(Level a, Level b) { return a < b ? b : a; }

enum class Storage : uint8_t {
  Variable,  ///< a thread's own variable, or a variable of the host
  Tile,      ///< a tensor value of the whole block, which the compiler places
  Local,     ///< an array of each thread
  Shared,
  Global,
  Constant,
  Result,  ///< what a kernel returns
};

/// A variable, a temporary that has a place, or a result of a kernel.
struct Local {
  const Variable* variable = nullptr;  ///< null: a temporary or a result
  Type type = nullptr;
  source::SourceRange range;
  Storage storage = Storage::Variable;  ///< of what it holds; an array of tensors: of these
  uint32_t index = 0;                   ///< Result: its number
  LoopId loop = kNoLoop;                ///< the innermost loop it is declared in
  FrameId frame = kNoFrame;
  // of functions as written
  bool holdsBorrows = false;  ///< its values may hold borrows
  bool isView = false;        ///< names storage of another local; its parts are reached through a Deref
  bool isElement = false;     ///< a view: an element that a `for`, `map` or `fold` walks over
  uint32_t closure = 0;       ///< depth of closures it is declared in
};

enum class ProjectionKind : uint8_t {
  Field,
  Deref,   ///< functions as written only
  Slot,    ///< of an array or Vec: `index`
  At,      ///< an element of a tensor: `dims`
  Window,  ///< of a tensor, or of a Vec: `dims`; single indices take a dimension away
};

/// What is taken of one dimension: the element `begin`, or begin … end - 1.
struct DimRange {
  ValueId begin = kNoValue, end = kNoValue;
  bool isIndex() const { return end == kNoValue; }
  bool operator==(const DimRange&) const = default;
};

struct Projection {
  ProjectionKind kind = ProjectionKind::Field;
  uint32_t field = 0;               ///< Field
  ValueId index = kNoValue;         ///< Slot
  std::vector<DimRange> dims = {};  ///< At, Window
  bool operator==(const Projection&) const = default;
};

struct Place {
  LocalId root = kNoLocal;
  std::vector<Projection> path = {};
  Type type = nullptr;  ///< of what stands there, references stripped in kernels
  Storage storage = Storage::Variable;
  /// Leading projections (Field, Slot) that lead to the tensor subscripted by the rest; path.size() if nothing is subscripted.
  uint32_t storagePath = 0;
  /// The part in coordinates of that tensor, one entry per dimension; empty: the whole.
  std::vector<DimRange> dims = {};
  /// It is not known which: one of these. `root` is then their first and the path leads from any of them.
  std::vector<LocalId> candidates = {};
  bool isWhole = false;  ///< isUnknown(): a whole tensor, so that `dims` are in its coordinates
  bool isUnknown() const { return !candidates.empty(); }
  /// What it may be of; none: anything.
  std::span<const LocalId> roots() const {
    return isUnknown() ? std::span(candidates) : std::span(&root, root == kNoLocal ? 0u : 1u);
  }
  bool hasDeref() const;
  bool isIndexed() const;
  /// Only fields: what a move or an assignment can empty or fill as a whole.
  bool isMovePath() const;
  /// The leading fields.
  std::vector<uint32_t> fields() const;
  /// All values that say which part it is: slots, begins and ends.
  std::vector<ValueId> subscripts() const;
  bool operator==(const Place&) const = default;
};

enum class StepKind : uint8_t {
  Declare,  ///< place.root comes to life
  Empty,    ///< … and was declared without a value
  End,      ///< place.root goes out of scope
  Bind,     ///< dimension variable `index` is `value` from here on
  Load,     ///< value = place; uses: none
  Store,    ///< place = value; of structs uses are all their scalars
  Atomic,   ///< value = atomic operation (origin->builtin) on place with uses; kNoValue for atomic_store
  Item,     ///< value = number `uses[0]` of a constant list (Loop::Counter::list)
  View,     ///< the window `place` is taken (origin: the Slice); nothing is read yet
  Compute,  ///< value = something of `uses` that no node expresses
  Barrier,
  WarpBarrier,
  Warp,    ///< value = an operation of the warp, or of the block behind a Barrier (origin->builtin), on uses
  Stage,   ///< reads accesses[0], writes accesses[1]; asynchronous where origin->builtin says so
  Tile,    ///< work of the block on tensors: accesses
  Assert,  ///< uses[0] holds from here on, or the thread ends
  Print,
  Output,  ///< the kernel's results are written: accesses
  // of functions as written, which have no loads, stores and work of kernels but Store: place gets a new value
  Use,       ///< place is looked at; value: what is read, of a scalar in memory
  Copy,      ///< … and duplicated
  Move,      ///< moves[index]
  MoveOut,   ///< a Move of what cannot be moved: it is borrowed, in a list or outside the closure
  Mutate,    ///< part of place changes, or a method changes it
  Borrow,    ///< place is lent: loans[index]; its holder then holds this and what place was reached through holds
  Flow,      ///< the local place.root holds what local `index` holds (kNoLocal: nothing), no longer what it held
  FlowMore,  ///< … and what it held
  Keep,      ///< what the local place.root holds is used here
  Result,    ///< … is returned
  // terminators
  Jump,
  Branch,  ///< value: the condition; targets: then, else
  Return,  ///< of the function or kernel; uses: scalars returned
};

struct Step {
  StepKind kind = StepKind::Jump;
  Level level = Level::Block;
  uint16_t useCount = 0;
  uint16_t accessCount = 0;
  uint32_t firstUse = 0, firstAccess = 0;
  PlaceId place = kNoPlace;
  ValueId value = kNoValue;
  uint32_t index = 0;
  FrameId frame = kNoFrame;
  const Expr* origin = nullptr;
};
static_assert(sizeof(Step) <= 40);

enum class AccessMode : uint8_t { Read, Write, Update };  ///< Update: atomic

struct Access {
  StepId step = kNoStep;
  PlaceId place = kNoPlace;
  AccessMode mode = AccessMode::Read;
  const Expr* origin =
      nullptr;  ///< the place as written: its Element or Slice has the guard; null where the graph made the access
};

struct Block {
  StepId begin = kNoStep, end = kNoStep;  ///< the last one is the terminator
  LoopId loop = kNoLoop;                  ///< the innermost
  bool joinsDivergent = false;        ///< sides meet here that different threads of a block took; check/uniform says so
  std::vector<BlockId> predecessors;  ///< phis have one operand for each, in this order
  std::vector<BlockId> successors;    ///< Branch: then, else
  std::vector<ValueId> phis;
};

/// What a `for` counts. Branch of the header asks for the next iteration; `value` is the variable in the body.
struct Counter {
  enum class Kind : uint8_t { Range, List, Array } kind = Kind::Range;
  ValueId phi = kNoValue;
  /// phi is 0, 1, 2, … below `trips`; else it is the variable itself, begin + step·k, and the step is 1 or -1.
  bool isPosition = false;
  ValueId value = kNoValue;
  ValueId begin = kNoValue, end = kNoValue,
          step = kNoValue;      ///< Range: of the variable's type; values lie in [begin, end) or (end, begin]
  ValueId trips = kNoValue;     ///< usize, where isPosition
  ValueId isWithin = kNoValue;  ///< Range, where isPosition: a condition that holds in every iteration
  const Expr* list = nullptr;   ///< List: its intList; Array: the array
};

struct Loop {
  BlockId header = kNoBlock;
  BlockId before = kNoBlock;     ///< the predecessor of the header outside
  std::vector<BlockId> latches;  ///< predecessors of the header inside
  std::vector<BlockId> exits;    ///< blocks outside that edges from inside go to
  BlockId last =
      kNoBlock;  ///< blocks header … last are the loop's, those of inner loops and of blocks that only lead out included
  LoopId parent = kNoLoop;
  uint32_t depth = 1;
  const Expr* origin = nullptr;  ///< While, Loop or For
  std::optional<Counter> counter;
};

/// An Element or Slice of a tensor, where it is evaluated.
struct Subscript {
  /// Of one dimension: begin, begin + 1, … below begin + length must lie below the extent. Length, begin: usize, as the machine computes them.
  struct Part {
    ValueId begin = kNoValue, length = kNoValue, extent = kNoValue;
  };
  const Expr* origin = nullptr;
  StepId before = kNoStep;  ///< it is evaluated just before this step
  std::vector<Part> parts;  ///< none of dimensions that are taken whole
};

/// The function itself (frame 0), or a call that was inlined.
struct Frame {
  const Expr* call = nullptr;  ///< the Inline; null for the function
  std::string_view callee;
  FrameId parent = kNoFrame;
};

/// What an Argument node stands for.
struct Argument {
  const Variable* variable = nullptr;
  uint32_t leaf = 0;  ///< of a struct or tuple: which of its scalars
};

enum class MoveReason : uint8_t { Binding, Argument, Launch, ToDevice, Part, Result };

/// Of a Move step.
struct Move {
  PlaceId place = kNoPlace;
  const Expr* origin = nullptr;
  MoveReason reason = MoveReason::Binding;
  const Function* callee = nullptr;  ///< Argument, Launch
  const Expr* launch = nullptr;      ///< an argument of this launch
};

enum class LoanKind : uint8_t { Shared, Mutable };

/// Of a Borrow step.
struct Loan {
  PlaceId place = kNoPlace;
  LocalId holder = kNoLocal;
  source::SourceRange range;
  LoanKind kind = LoanKind::Shared;
  Type lent = nullptr;                 ///< what `&` refers to
  bool isReserved = false;             ///< of a `&mut` argument, until the call
  bool wasReserved = false;            ///< by the launch: that it was there then is known
  const Expr* call = nullptr;          ///< an argument of this call or launch
  bool isView = false;                 ///< a slice or loop element rather than `&`
  bool isLoop = false;                 ///< held by a `for` while it walks
  bool isCapture = false;              ///< by a closure
  const Expr* writer = nullptr;        ///< of a view: what writes through it
  std::optional<uint32_t> param = {};  ///< stands for what the caller lent as this parameter; conflicts with nothing

  const Expr* launch() const { return call && call->kind == ExprKind::Launch ? call : nullptr; }
};

/// All threads of the block wait for each other here.
inline bool isBlockBarrier(const Step& step) {
  return step.kind == StepKind::Barrier || (step.kind == StepKind::Declare && step.index == kAfterBarrier);
}

/// The same, or they do once the step is done.
inline bool endsAtBarrier(const Step& step) {
  const bool fills = step.kind == StepKind::Tile || step.kind == StepKind::Store;
  return isBlockBarrier(step) || (fills && step.index == kBeforeBarrier);
}

/// All blocks of the grid wait for each other here.
inline bool isGridBarrier(const Step& step) { return step.kind == StepKind::Barrier && step.index == kOfGrid; }

/// What it takes to get to a block: a condition, a branch, a loop's list; and what that means for a variable that is not assigned on the way.
struct Choice {
  const Expr* by = nullptr;
  std::string_view label;
  BlockId loopEntry = kNoBlock;  ///< the choice is to go on after a loop that was entered from this block
};

class Graph {
public:
  const Function* function = nullptr;
  bool isKernel = false;  ///< calls are inlined and places resolved; else the function is as it was written
  NodeTable values;
  std::vector<Block> blocks;  ///< BlockId{0} is the entry
  std::vector<Local> locals;
  std::vector<Place> places;  ///< equal places have one id
  std::vector<Loop> loops;    ///< outer ones first
  std::vector<Frame> frames;
  std::vector<LocalId> params;  ///< by position
  std::vector<Access> accesses;
  std::vector<Subscript> subscripts;
  std::vector<Argument> arguments;  ///< by the number of Argument nodes
  /// The integer parameter that the value is.
  std::optional<uint32_t> parameterOf(ValueId value) const;
  /// Where the evaluation of an expression begins, of a Let or Assign where it is done; none of what nothing reaches.
  std::unordered_map<const Expr*, BlockId> entered;
  /// The scalars of an expression that was wanted as a value.
  std::unordered_multimap<const Expr*, ValueId> evaluated;
  // of functions as written
  std::vector<Move> moves;
  std::vector<Loan> loans;
  std::unordered_map<uint32_t, Choice> choices;  ///< by block

  const Step& operator[](StepId step) const { return steps_[indexOf(step)]; }
  Step& operator[](StepId step) { return steps_[indexOf(step)]; }
  const Block& operator[](BlockId block) const { return blocks[indexOf(block)]; }
  const Place& operator[](PlaceId place) const { return places[indexOf(place)]; }
  const Loop& operator[](LoopId loop) const { return loops[indexOf(loop)]; }
  const Local& operator[](LocalId local) const { return locals[indexOf(local)]; }
  const Frame& operator[](FrameId frame) const { return frames[indexOf(frame)]; }

  size_t stepCount() const { return steps_.size(); }
  std::span<const ValueId> uses(const Step& step) const { return {uses_.data() + step.firstUse, step.useCount}; }
  std::span<const Access> accessesOf(const Step& step) const {
    return {accesses.data() + step.firstAccess, step.accessCount};
  }
  /// Operands, and subscripts of what the step accesses.
  std::vector<ValueId> inputsOf(StepId id) const;
  const Step& terminator(BlockId block) const { return steps_[indexOf((*this)[block].end) - 1]; }
  BlockId blockOf(StepId step) const { return stepBlocks_[indexOf(step)]; }
  /// The step that made a Load, Ticket or Unknown node; kNoStep for other nodes.
  StepId definition(ValueId value) const;
  bool isInside(LoopId loop, LoopId outer) const;
  bool isInside(BlockId block, LoopId loop) const { return isInside((*this)[block].loop, loop); }
  /// The value may be another one in the loop's next iteration.
  bool changesIn(ValueId value, LoopId loop) const;
  /// "`p.pixels`", or "this value".
  std::string describe(PlaceId place) const;
  std::string describe(LocalId local) const;

private:
  friend class GraphBuilder;
  std::vector<Step> steps_;
  std::vector<BlockId> stepBlocks_;
  std::vector<ValueId> uses_;
  std::vector<StepId> definitions_;  ///< by value
};

/// The machine's view of a scalar or enum; of a float its bits.
MachineType machineType(Type type);
/// A tensor that is a value of the whole block.
inline bool isTile(Type type) { return type && type->isTensor() && type->isValue; }
/// Where a variable of the type is, or what a reference to it refers to.
Storage storageOf(Type type);
/// Storage that other threads see.
bool isSharedStorage(Storage storage);

constexpr PointId pointOf(StepId step) { return PointId{indexOf(step)}; }
constexpr StepId stepAt(PointId point) { return StepId{indexOf(point)}; }

}  // namespace vortex::lang::flow
